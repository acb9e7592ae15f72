"""The claims of the papers and the table of solvers in the documentation, from folders that `onlinear reproduce` wrote.

    python benchmarks/claims.py --quick QUICK --full FULL [FULL ...] [--note TEXT] --write .

Of a claim that several full folders have run, the first folder's row is taken: name the newest first. docs/solvers.md takes its
table from the first folder, full before quick, that has the experiment ours/solvers.
"""

from __future__ import annotations

import argparse
import csv
from itertools import chain
from pathlib import Path

import pages
from onlinear.papers import experiments
from onlinear.papers.report import WHAT_A_VERDICT_COUNTS

NOT_RUN = "**not run**"
VERDICTS = ("reproduced", "mostly", "partly", "not reproduced", "not decided", "not run")
MARKS = {
    "Statements of the papers": "",
    "Statements that cannot fail": " (identity)",
    "Statements of our own": " (ours)",
    "Repeats on synthetic rows": " (repeat)",
}
TABLE = "ours-solvers-table-1.csv"


def read(folder: Path) -> tuple[str, list[str], list[str]]:
    """What a report's claims.md says of its run, the table's head, and its rows."""
    lines = (folder / "claims.md").read_text().splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("| experiment"))
    made = next(line for line in lines if line.startswith("Written by"))
    return made.split(" run; ")[1].removesuffix(")."), lines[at : at + 2], lines[at + 2 :]


def written_by(runs: list[str]) -> list[str]:
    """With what the runs were made: each set of versions once, with the digests of the code that ran."""
    codes: dict[str, list[str]] = {}
    for run in dict.fromkeys(runs):
        versions, _, code = run.partition("; code ")
        codes.setdefault(versions, []).append(code)
    return ["Written by `onlinear reproduce`:", ""] + [f"- {made}; code {', '.join(each)}." for made, each in codes.items()]


def key(row: str) -> tuple[str, str]:
    """What makes two rows the same claim: experiment and text."""
    _, experiment, rest = row.split("| ", 2)
    return experiment.strip(), rest.split(" | ")[0]


def merged(tables: list[list[str]]) -> list[str]:
    """Each claim once, in the order of the experiments: its first row that was run, or else its first."""
    known: dict[tuple[str, str], str] = {}
    for row in chain(*tables):
        if key(row) not in known or (NOT_RUN in known[key(row)] and NOT_RUN not in row):
            known[key(row)] = row
    place = {name: k for k, name in enumerate(experiments.names())}
    return sorted(known.values(), key=lambda row: place[key(row)[0]])


def counts(rows: list[str]) -> list[str]:
    """How many claims have which verdict, a line for each kind of claim."""
    lines = []
    for label, mark in MARKS.items():
        found = {verdict: sum(f"| **{verdict}**{mark} |" in row for row in rows) for verdict in VERDICTS}
        lines.append(f"- {label}: {', '.join(f'{count} {verdict}' for verdict, count in found.items() if count) or 'none'}.")
    return lines


def claims(quick: Path | None, full: list[Path], note: str) -> str:
    """The page of claims; ``note``: of what tree and what part of the experiments the runs are."""
    text = ["# Every claim of the five papers", "", WHAT_A_VERDICT_COUNTS, *([note, ""] if note else [])]
    if quick and full:
        text += ["Quick runs make noisy verdicts: where both tables have a claim, the full run's counts.", ""]
    for title, folders in (("Full runs", full), ("Quick runs", [quick] if quick else [])):
        if not folders:
            continue
        each = [read(folder) for folder in folders]
        rows, head = merged([rows for _, _, rows in each]), each[0][1]
        ran = [row for row in rows if NOT_RUN not in row] if quick and full and title == "Full runs" else rows
        text += [f"## {title}", "", *written_by([made for made, _, _ in each]), "", *counts(ran), "", *head, *ran, ""]
    return "\n".join(text)


def solvers(folder: Path, kind: str) -> str:
    """The table of ours/solvers, a row for each method, a column for each set: the test error, the best of a set bold."""
    with (folder / "data" / TABLE).open(newline="") as file:
        rows = list(csv.DictReader(file))
    sets, methods = (list(dict.fromkeys(row[name] for row in rows)) for name in ("data", "method"))
    error = {(row["method"], row["data"]): row["test error"] for row in rows}
    best = {name: min(float(error[method, name]) for method in methods if (method, name) in error) for name in sets}
    lines = [f"Test error after one pass, every method with its best step size ({kind} run); bold: the least of its set.", ""]
    lines += ["| method | " + " | ".join(sets) + " |", "|---|" + "---:|" * len(sets)]
    for method in methods:
        cells = [error.get((method, name), "–") for name in sets]
        bold = [cell != "–" and float(cell) <= best[name] for cell, name in zip(cells, sets, strict=True)]
        shown = [f"**{cell}**" if one else cell for cell, one in zip(cells, bold, strict=True)]
        lines.append(f"| {method} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", type=Path, help="the folder of a quick run")
    parser.add_argument("--full", type=Path, nargs="*", default=[], help="folders of full runs")
    parser.add_argument("--note", default="", help="what the page says of the runs")
    parser.add_argument("--write", type=Path, required=True, help="the repository whose docs are written")
    given = parser.parse_args()
    folders = [*((folder, "full") for folder in given.full), *([(given.quick, "quick")] if given.quick else [])]
    if not folders:
        parser.error("name at least one report: --quick or --full.")
    (given.write / "docs" / "claims.md").write_text(claims(given.quick, given.full, given.note))
    for folder, kind in folders:
        if (folder / "data" / TABLE).exists():
            pages.fill(given.write / "docs" / "solvers.md", "solvers", solvers(folder, kind))
            break


if __name__ == "__main__":
    main()
