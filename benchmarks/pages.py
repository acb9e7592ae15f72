"""The pages that show benchmarks: tables between markers, and a line on the machine."""

from __future__ import annotations

import os
import platform
from pathlib import Path


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
