"""The page of claims is put together from reports without losing or doubling one."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

from onlinear.papers import experiments

ROOT = Path(__file__).parents[2]


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return SimpleNamespace(**runpy.run_path(str(ROOT / "benchmarks/claims.py")))


def row(experiment: str, text: str, verdict: str) -> str:
    return f"| {experiment} | {text} | Thm 3 | **{verdict}** | 1 of 1 checks hold | 1 = 1 | Why. |"


def test_every_claim_of_every_experiment_has_a_key_of_its_own(script):
    rows = [row(name, claim.text, "reproduced") for name in experiments.names() for claim in experiments.load(name).claim]
    assert len({script.key(one) for one in rows}) == len(rows)


def test_equal_words_of_two_experiments_are_two_claims(script):
    first = [row("p4/fig1", "The bound holds", "not run"), row("p4/synthetic", "The bound holds", "not run")]
    later = [row("p4/fig1", "The bound holds", "partly"), row("p4/synthetic", "The bound holds", "reproduced")]
    assert script.merged([first, later]) == later


def test_a_folder_of_one_experiment_adds_its_claims_in_their_place(script):
    first = [row("p1/fig1", "A", "reproduced"), row("ours/gain", "C", "not run")]
    later = [row("p4/table2", "B", "partly"), row("p1/fig1", "A", "not reproduced")]
    assert script.merged([first, later]) == [first[0], later[0], first[1]]


def test_the_page_of_faithfulness_names_every_experiment_of_the_papers():
    text = (ROOT / "docs/faithful.md").read_text(encoding="utf-8")
    lists = text.split("## Planted faults")[0]
    named = {name for line in re.findall(r"^\|.*\|$", lists, re.MULTILINE) for name in re.findall(r"`(p\d/[\w-]+)`", line)}
    assert named == {name for name in experiments.names() if not name.startswith("ours/")}


def test_the_page_has_every_claim_once(script):
    _, *tables = re.split("\n## (?:Full|Quick) runs\n", (ROOT / "docs/claims.md").read_text())
    for table in tables:
        keys = [script.key(line) for line in table.splitlines() if line.startswith(("| p", "| ours"))]
        assert keys
        assert len(set(keys)) == len(keys)
