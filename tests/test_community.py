"""The files for those who report, cite and contribute say what the package says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import onlinear
from test_docs import avoided

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
TEMPLATES = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.md"))


def test_the_citation_has_the_package_s_version_and_licence():
    text = (ROOT / "CITATION.cff").read_text()
    found = dict(re.findall(r"^([\w-]+): (.+)$", text, re.MULTILINE))
    assert found["version"] == PROJECT["version"] == onlinear.__version__
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


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_files_that_exist_and_may_do_no_more_than_it_says(workflow):
    text = workflow.read_text()
    for file in re.findall(r"\b((?:tests|src|benchmarks)/[\w/]+(?:\.py)?)", text):
        assert (ROOT / file).exists(), file
    assert re.search(r"^permissions:\n  contents: read$", text, re.MULTILINE)
    for extra in re.findall(r"'\.\[(\w+)\]'", text):
        assert extra in PROJECT["optional-dependencies"]


def test_the_workflow_of_tests_has_every_python_that_the_package_names():
    pythons = re.findall(r"Programming Language :: Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    named = re.search(r"^        python: \[(.+)\]$", (ROOT / ".github/workflows/tests.yml").read_text(), re.MULTILINE)[1]
    assert set(pythons) <= set(re.findall(r"3\.\d+", named))


def test_the_recipe_for_conda_asks_for_what_the_package_asks_for():
    jinja2 = pytest.importorskip("jinja2", reason="the recipe is a template of it")
    recipe = jinja2.Template((ROOT / "conda/meta.yaml").read_text())
    text = recipe.render(load_file_data=lambda *_, **__: {"project": PROJECT}, PYTHON="python")
    assert set(re.findall(r"^    - (\S+>=.+)$", text, re.MULTILINE)) == set(PROJECT["dependencies"])
    assert f'version: "{PROJECT["version"]}"' in text
    assert (ROOT / PROJECT["license-files"][0]).exists()
