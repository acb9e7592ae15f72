"""The pages that show benchmarks: tables between markers, and a line on the machine."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

Cells = list[list[str]]  # of a table, its head first


def machine() -> str:
    """What the machine is, in a line."""
    cpu = next(
        (line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), platform.processor()
    )
    memory = next((int(line.split()[1]) // 2**20 for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    system = f"{platform.system()}, Python {platform.python_version()}"
    return f"{os.cpu_count()} cores of {cpu or platform.machine()}, {memory} GiB, {system}"


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if os.path.exists(path) else []


def fill(page: Path, name: str, text: str) -> None:
    """Put ``text`` between the page's markers of this name."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    content = page.read_text()
    if begin not in content:
        raise SystemExit(f"{page} has no markers for {name!r}.")
    before, rest = content.split(begin)
    page.write_text(f"{before}{begin}\n{text.strip()}\n{end}{rest.split(end)[1]}")


def place(pages: Sequence[Path], name: str, text: str) -> None:
    """Put a benchmark's output where the pages have markers of its name: all of it at <!-- name: begin -->, or at
    <!-- name 1, 3-5: begin --> the tables of these numbers, below what stands before the first. Every table has one place."""
    head, tables = parts(text)
    placed: list[int] = []
    for page in pages:
        content = page.read_text()
        for which in markers(content, name):
            numbers = chosen(which, len(tables))
            placed += numbers
            fill(page, f"{name}{which}", "\n\n".join([*head, *(tables[k - 1] for k in numbers)]) if which else text)
    if sorted(placed) != list(range(1, len(tables) + 1)):
        raise SystemExit(f"{name} has {len(tables)} tables; the markers of {', '.join(map(str, pages))} show {sorted(placed)}.")


def markers(content: str, name: str) -> list[str]:
    """What follows the name in each pair of markers of a page: nothing, or the numbers of tables."""
    return re.findall(rf"^<!-- {name}((?: [\d, -]+)?): begin -->$(?=[^\0]*^<!-- {name}\1: end -->$)", content, re.MULTILINE)


def chosen(which: str, count: int) -> list[int]:
    """The numbers that " 1, 3-5" names; all where it is empty."""
    if not which:
        return list(range(1, count + 1))
    ends = [[int(end) for end in part.split("-")] for part in which.split(",")]
    return [k for first, last in ((each[0], each[-1]) for each in ends) for k in range(first, min(last, count) + 1)]


def parts(text: str) -> tuple[list[str], list[str]]:
    """The paragraphs before the first table, and the tables, each with its caption and what follows it, such as a plot.

    A caption is a paragraph before a table that is no sentence: it does not end with a full stop.
    """
    head: list[str] = []
    caption: list[str] = []
    tables: list[list[str]] = []
    for paragraph in re.split(r"\n{2,}", text.strip()):
        if paragraph.startswith("|"):
            tables.append([*caption, paragraph])
            caption = []
        elif paragraph.endswith(".") or paragraph.startswith("!"):
            (tables[-1] if tables else head).append(paragraph)
        else:
            caption.append(paragraph)
    return head, ["\n\n".join(table) for table in tables]


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; the first column is text, the others are numbers."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def report(name: str, found: Iterable[tuple[str, Cells]], page: Path | None, figures: Path | None) -> None:
    """Print the tables, put them where the page has markers of the benchmark's name, and their cells into a JSON file."""
    kept, shown = {}, []
    for title, cells in found:
        kept[title] = cells
        shown.append(table(cells[0], cells[1:]))
        print(f"{title}\n\n{shown[-1]}\n", flush=True)
    if page:
        place([page], name, "\n\n".join(shown))
    if figures:
        figures.write_text(json.dumps(kept, indent=1))
