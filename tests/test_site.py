"""The documentation site: every page is in its menu, every public name in its reference, and it builds without a warning."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import onlinear
import onlinear.streams

ROOT = Path(__file__).parent.parent
MENU = set(re.findall(r"([\w./-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
MADE = {"reference/parts.md", "reference/command-line.md", "gallery/index.md"}  # by tests/tools/site_pages.py and the gallery
FROM_ROOT = {"CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md"}


def test_every_page_is_in_the_menu():
    folders = ("", "tutorials/", "reference/")
    pages = {f"{folder}{path.name}" for folder in folders for path in (ROOT / "docs" / folder).glob("*.md")}
    assert pages == MENU - MADE - FROM_ROOT


def test_every_public_name_has_its_entry():
    text = "\n".join(path.read_text() for path in (ROOT / "docs/reference").glob("*.md"))
    shown = re.findall(r"^::: ([\w.]+)$", text, re.MULTILINE)
    assert {f"onlinear.{name}" for name in onlinear.__all__} <= set(shown)
    streams = {name for name in onlinear.streams.__all__ if name not in ("BUNDLED", "FORMATS")}
    assert {f"onlinear.streams.{name}" for name in streams} <= set(shown)


@pytest.mark.parametrize("picture", sorted((ROOT / "docs").rglob("*.svg")), ids=lambda path: path.name)
def test_a_picture_loads_nothing_from_another_host(picture):
    assert not re.findall(r"""(?:url\(|href=|@import )["']?(?:https?:)?//[^"')]+""", picture.read_text())


def test_pages_of_the_whole_width_are_in_the_menu():
    wide = re.search(r"^WIDE = \((.*)\)$", (ROOT / "tests/tools/site_pages.py").read_text(), re.MULTILINE)
    assert set(re.findall(r'"([\w./-]+)"', wide[1])) <= MENU


@pytest.mark.parametrize("picture", sorted((ROOT / "docs").rglob("*.svg")), ids=lambda path: path.name)
def test_a_page_shows_every_picture(picture):
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    assert any(picture.relative_to(ROOT / "docs").as_posix() in page.read_text() for page in pages)


@pytest.mark.exhaustive
def test_it_builds_without_a_warning(tmp_path):
    pytest.importorskip("mkdocs_gallery", reason="the site needs the extra docs")
    built = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(built, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for page in ("index.html", "gallery/quantiles/index.html", "reference/parts/index.html", "search/search_index.json"):
        assert (tmp_path / "site" / page).stat().st_size > 10_000
