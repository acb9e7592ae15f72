"""The pages of the documentation site that are made from the code: parts, the command, and files of the project's root.

A hook of mkdocs.yml. ``mkdocs build`` makes the site.
"""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from typing import Any

from markdown import Extension, Markdown
from markdown.inlinepatterns import InlineProcessor
from mkdocs.structure.files import File, Files
from typer.cli import get_docs_for_click
from typer.main import get_command

from onlinear.cli import app
from onlinear.cli.parts import TITLES, shown
from onlinear.learner.catalogue import Entry, entries

ROOT = Path(__file__).parents[2]
FROM_ROOT = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")
WIDE = ("claims.md", "family.md")


class InnerProduct(InlineProcessor):
    """The bracket that opens <w, x> is text, as on GitHub, and no tag."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:
        return self.md.htmlStash.store("&lt;"), m.start(0), m.end(0)


class InnerProducts(Extension):
    """Inner products in text and in docstrings."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.inlinePatterns.register(InnerProduct(r"<(?=\w+, )", md), "inner_product", 95)


def on_config(config: Any) -> None:
    """Read inner products as such on every page."""
    config.markdown_extensions.append(InnerProducts())


def on_files(files: Files, config: Any) -> None:
    """Add the pages."""
    for name, text in {"reference/parts.md": parts(), "reference/command-line.md": commands()}.items():
        files.append(File.generated(config, name, content=text))
    for name in FROM_ROOT:
        files.append(File.generated(config, name, content=moved((ROOT / name).read_text(encoding="utf-8"))))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """A link to a file of the root, or to the examples, leads to its page; a page of one wide table has the whole width."""
    if page.file.src_uri in WIDE:
        page.meta["hide"] = ["toc"]
    markdown = re.sub(r"\]\(((?:\.\./)*)\.\./examples/README\.md\)", r"](\1gallery/index.md)", markdown)
    return re.sub(rf"\]\(\.\./({'|'.join(map(re.escape, FROM_ROOT))})", r"](\1", markdown)


def moved(text: str) -> str:
    """A page of the root as a page of docs."""
    return re.sub(r"\]\(docs/", "](", text)


def parts() -> str:
    """Every part with its formula, its settings and its names in other libraries."""
    lines = ["# Parts", "", "`onlinear parts` prints the same; `onlinear parts huber` prints all about one of them.", ""]
    for role, found in groupby(entries(), lambda entry: entry.role):
        lines += [f"## {TITLES[role]}", "", f"Written `{role}=` in Python, `--{role}` in the command.", ""]
        lines += ["| name | what it is | settings and defaults | elsewhere |", "|---|---|---|---|"]
        lines += [row(entry) for entry in found]
        lines.append("")
    return "\n".join(lines)


def row(entry: Entry) -> str:
    """A part as a row of a table."""
    settings = "<br>".join(f"`{shown(setting)}`" for setting in entry.settings.items())
    cells = f"`{entry.name}`", entry.words.replace("|", "\\|"), settings, ", ".join(entry.elsewhere)
    return f"| {' | '.join(cells)} |"


def commands() -> str:
    """Every command with its options, as typer writes them."""
    command = get_command(app)
    text = get_docs_for_click(obj=command, ctx=command.make_context("onlinear", [], resilient_parsing=True), name="onlinear")
    return text.replace("# `onlinear`", "# The command line", 1)
