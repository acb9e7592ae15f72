"""One command runs every benchmark: each script is known to it, leaves JSON, and has a place for its table."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if '__name__ == "__main__"' in path.read_text())
APART = {"run", "session", "claims", "off_path"}  # off_path: its tables are part of those of defaults


@pytest.fixture
def known(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return runpy.run_path(str(ROOT / "benchmarks/run.py"))


def test_run_knows_every_script_and_no_other(known):
    assert sorted(known["BENCHMARKS"]) == [name for name in SCRIPTS if name not in APART]


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in APART])
def test_a_benchmark_takes_the_options_it_is_given_and_has_a_place_for_its_table(known, name):
    options = known["BENCHMARKS"][name]
    text = (ROOT / "benchmarks" / f"{name}.py").read_text()
    assert known["JSON"] in options
    for option, _ in options:
        assert f'"{option}"' in text, f"{name} lacks {option}"
    if name not in known["OWN_PAGE"]:
        page = (ROOT / "docs/benchmarks.md").read_text()
        assert page.count(f"<!-- {name}: begin -->") == page.count(f"<!-- {name}: end -->") == 1
