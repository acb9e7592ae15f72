"""The files for those who report, cite and contribute say what the package says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from test_docs import avoided

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TEMPLATES = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.md"))


def test_the_citation_has_the_package_s_version_and_licence():
    text = (ROOT / "CITATION.cff").read_text()
    found = dict(re.findall(r"^([\w-]+): (.+)$", text, re.MULTILINE))
    assert found["version"] == PROJECT["version"]
    assert found["license"] == PROJECT["license"]
    assert {"cff-version", "message", "title", "type"} <= set(found)
    holder = re.search(r"Copyright \(c\) \d+, (?:the )?(.+)", (ROOT / "LICENSE").read_text())[1]
    assert holder in text


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.stem)
def test_a_template_has_a_name_and_says_what_it_is_for(template):
    head = template.read_text().split("---\n")[1]
    assert re.findall(r"^(\w+): .+$", head, re.MULTILINE) == ["name", "about", "labels"]


@pytest.mark.parametrize(
    "name", ["CODE_OF_CONDUCT.md", ".github/pull_request_template.md", *(f".github/ISSUE_TEMPLATE/{t.name}" for t in TEMPLATES)]
)
def test_they_are_in_plain_words_and_name_files_that_exist(name):
    text = (ROOT / name).read_text()
    assert avoided(text) == []
    for file in re.findall(r"`((?:tests|docs|benchmarks|\.ci)/[\w./-]*)`", text):
        assert (ROOT / file).exists(), file
