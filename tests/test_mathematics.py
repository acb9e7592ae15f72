"""Every "(MATH 11.6b)" and "contract 6" of the code has its heading, and every test that those pages name exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from math import exp, sqrt
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
CITING = [path for name in ("src", "tests", "benchmarks", "docs", "examples") for path in sorted((ROOT / name).rglob("*.*"))]
TEXT = (".py", ".md", ".toml", ".html")
NUMBER = r"\d+(?:\.\d+)?[a-z]?\b"  # 6, 2b, 4.2d, 11.6b
PAGES = {  # page: what begins a citation of it, and how many there are at least
    "mathematics": (re.compile(rf"\bMATH ({NUMBER}(?:, {NUMBER})*)"), 60),
    "contract": (re.compile(rf"\b[Cc]ontract ({NUMBER}(?:, {NUMBER})*)"), 8),
}


def page(name: str) -> str:
    return (ROOT / f"docs/{name}.md").read_text(encoding="utf-8")


def headings(text: str) -> list[str]:
    """The numbers at the beginnings of a page's headings."""
    return re.findall(rf"^#{{2,4}} ({NUMBER}) \S", text, re.MULTILINE)


def citations(name: str) -> Iterator[tuple[str, str]]:
    """Where a number of the page is cited, and the number."""
    pattern, _ = PAGES[name]
    for path in CITING:
        if path.suffix in TEXT and path != Path(__file__):
            for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                for found in pattern.findall(text):
                    yield from ((f"{path.relative_to(ROOT)}:{line}", number) for number in found.split(", "))


def without_heading(name: str, text: str) -> list[str]:
    """The citations whose number no heading of ``text`` has."""
    known = headings(text)
    return [f"{place} cites {number}" for place, number in citations(name) if number not in known]


def named_tests(text: str) -> list[tuple[str, str]]:
    """The tests that a page names, as (file, function)."""
    return re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text)


def missing_tests(text: str) -> list[str]:
    """The named tests that do not exist."""
    missing = []
    for file, name in named_tests(text):
        found = ast.parse((ROOT / file).read_text(encoding="utf-8")).body if (ROOT / file).exists() else []
        if name not in [each.name for each in found if isinstance(each, ast.FunctionDef)]:
            missing.append(f"{file}::{name}")
    return missing


@pytest.mark.parametrize("name", PAGES)
def test_what_is_cited_has_its_heading(name: str) -> None:
    assert without_heading(name, page(name)) == []
    assert len(list(citations(name))) >= PAGES[name][1]  # so that a change of spelling does not empty the test


@pytest.mark.parametrize("name", PAGES)
def test_a_number_has_one_heading(name: str) -> None:
    found = headings(page(name))
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("name", [*PAGES, "family", "faithful"])
def test_the_tests_that_a_page_names_exist(name: str) -> None:
    text = page(name)
    assert missing_tests(text) == []
    assert len(named_tests(text)) == len(re.findall(r"`tests/[^`]*::", text)) > 10


@pytest.mark.parametrize(("name", "number"), [("mathematics", "11.6b"), ("mathematics", "10"), ("contract", "6")])
def test_a_heading_that_is_gone_is_told(name: str, number: str) -> None:
    text = re.sub(rf"^(#+) {re.escape(number)} ", r"\1 ", page(name), flags=re.MULTILINE)
    told = set(without_heading(name, text)) - set(without_heading(name, page(name)))
    assert told
    assert all(line.endswith(f"cites {number}") for line in told)


def test_a_test_that_is_gone_is_told() -> None:
    names = "`tests/test_mathematics.py::test_no_more` `tests/no_more.py::test_a` `tests/test_mathematics.py::page`"
    assert missing_tests(names) == ["tests/test_mathematics.py::test_no_more", "tests/no_more.py::test_a"]


# --- what no solver holds so far ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", [0.5, 1.0])
def test_ftrl_proximal_is_the_minimiser_of_its_definition(beta: float) -> None:
    """18.4: its lazy form against the minimum of the gradients' sum, the penalty and the centred squares."""
    d, eta, l1, l2 = 6, 0.8, 0.03, 0.05
    rng = np.random.default_rng(0)
    z, n = np.zeros(d), np.zeros(d)
    G, centred, total = np.zeros(d), np.zeros(d), np.full(d, beta / eta)  # sums of g, of d_k w_k, of d_k
    w, zeros = np.zeros(d), 0
    for t in range(1, 150):
        x = rng.normal(size=d) * (rng.random(d) < 0.4)
        lazy = -soft(z, (t - 1) * l1) / ((beta + np.sqrt(n)) / eta + (t - 1) * l2)
        np.testing.assert_allclose(lazy, w, rtol=1e-11, atol=1e-14)
        y = 1.0 if rng.random() < 0.5 else -1.0
        g = -y / (1.0 + exp(y * (x @ w)))
        for j in np.flatnonzero(x):
            before = (beta + sqrt(n[j])) / eta
            n[j] += (g * x[j]) ** 2
            rise = (beta + sqrt(n[j])) / eta - before
            z[j] += g * x[j] - rise * lazy[j]
            centred[j] += rise * w[j]
            total[j] += rise
        G += g * x

        w = np.array([minimum(G[j] - centred[j], total[j] + t * l2, t * l1) for j in range(d)])
        rest = G + t * l2 * w + total * w - centred  # the gradient there of all but l1
        moved = w != 0.0
        np.testing.assert_allclose(rest[moved], -t * l1 * np.sign(w[moved]), rtol=0, atol=1e-11 * t)
        assert np.all(np.abs(rest[~moved]) <= t * l1)
        zeros += np.count_nonzero(~moved)
    assert zeros > 50


def soft(v: np.ndarray, k: float) -> np.ndarray:
    return np.sign(v) * np.maximum(np.abs(v) - k, 0.0)


def minimum(slope: float, curvature: float, k: float) -> float:
    """argmin_v slope v + curvature v^2 / 2 + k |v|."""
    return 0.0 if abs(slope) <= k else (-slope + k * (1.0 if slope > 0.0 else -1.0)) / curvature
