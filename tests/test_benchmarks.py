"""One command runs every benchmark: each script is known to it, leaves JSON, and has a place for its table."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parent.parent
SCRIPTS = sorted(path.stem for path in (ROOT / "benchmarks").glob("*.py") if '__name__ == "__main__"' in path.read_text())
APART = {"run", "session", "claims"}


@pytest.fixture
def known(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return runpy.run_path(str(ROOT / "benchmarks/run.py"))


@pytest.fixture
def pages():
    return SimpleNamespace(**runpy.run_path(str(ROOT / "benchmarks/pages.py")))


def test_run_knows_every_script_and_no_other(known):
    assert sorted(known["BENCHMARKS"]) == [name for name in SCRIPTS if name not in APART]


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in APART])
def test_a_benchmark_takes_the_options_it_is_given_and_has_a_place_for_its_table(known, pages, name):
    options = known["BENCHMARKS"][name]
    text = (ROOT / "benchmarks" / f"{name}.py").read_text()
    assert known["JSON"] in options
    (shared,) = re.findall(r"parser_of\((.*)\)", text)
    asked = {"--data": "data=True", "--write": "page=True", "--json": "__doc__"}
    for option, _ in options:
        assert f'"{option}"' in text or asked[option] in shared, f"{name} lacks {option}"
    if name not in known["OWN_PAGE"]:
        shown = [pages.markers((ROOT / page).read_text(), name) for page in known["PAGES"]]
        assert sorted(which for each in shown for which in each)
        assert all(len(each) <= 1 for each in shown)


@pytest.mark.parametrize("name", [name for name in SCRIPTS if name not in APART])
def test_written_again_a_benchmarks_tables_are_where_they_were(known, pages, tmp_path, name):
    """Every table of the pages is taken from them, put together as the script prints them, and placed again."""
    if name in known["OWN_PAGE"]:
        return
    copies = [tmp_path / Path(page).name for page in known["PAGES"]]
    tables: dict[int, str] = {}
    head: list[str] = []
    for page, copy in zip(known["PAGES"], copies, strict=True):
        copy.write_text((ROOT / page).read_text())
        for which in pages.markers(copy.read_text(), name):
            begin, end = f"<!-- {name}{which}: begin -->", f"<!-- {name}{which}: end -->"
            head, found = pages.parts(copy.read_text().split(begin)[1].split(end)[0])
            tables |= dict(zip(pages.chosen(which, 99 if which else len(found)), found, strict=True))
    printed = "\n\n".join([*head, *(tables[k] for k in sorted(tables))])
    pages.place(copies, name, printed)
    for page, copy in zip(known["PAGES"], copies, strict=True):
        assert re.sub(r"\n+", "\n", copy.read_text()) == re.sub(r"\n+", "\n", (ROOT / page).read_text())


PRINTED = "A machine.\n\nfirst:\n\n| a |\n|---|\n| 1 |\n\n![a](a.svg)\n\n### second\n\n| b |\n|---|\n\n| c |\n|---|\n"


def test_some_tables_on_one_page_and_some_on_another(pages, tmp_path):
    one, two = tmp_path / "one.md", tmp_path / "two.md"
    one.write_text("x\n<!-- name 1, 3: begin -->\nold\n<!-- name 1, 3: end -->\ny\n")
    two.write_text("<!-- name 2: begin -->\n<!-- name 2: end -->\n")
    pages.place([one, two], "name", PRINTED)
    first = "A machine.\n\nfirst:\n\n| a |\n|---|\n| 1 |\n\n![a](a.svg)\n\n| c |\n|---|"
    assert one.read_text() == f"x\n<!-- name 1, 3: begin -->\n{first}\n<!-- name 1, 3: end -->\ny\n"
    assert two.read_text() == "<!-- name 2: begin -->\nA machine.\n\n### second\n\n| b |\n|---|\n<!-- name 2: end -->\n"


@pytest.mark.parametrize("which", ["1", "1-2", "1-2, 2-3", "2-3"])
def test_a_table_without_a_place_or_with_two_is_told(pages, tmp_path, which):
    page = tmp_path / "page.md"
    page.write_text(f"<!-- name {which}: begin -->\n<!-- name {which}: end -->\n")
    with pytest.raises(SystemExit, match="name has 3 tables"):
        pages.place([page], "name", PRINTED)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_page_has_each_text_that_it_takes(name, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    path = ROOT / "benchmarks" / f"{name}.py"
    taken = set(re.findall(r'TEXT\["([^"]+)"\]', path.read_text()))
    assert not taken or taken == set(runpy.run_path(str(path))["TEXT"])
