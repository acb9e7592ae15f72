"""Write the table of planted faults in docs/faithful.md: which verdicts turn where a solver is wrong.

python tests/tools/planted.py DATA            DATA: the folder of the real sets
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "papers"))

from test_planted import FAULTS, PLANTED, both, fallen  # noqa: E402  the folder of the test is found first

PAGE = ROOT / "docs" / "faithful.md"
BEGIN, END = "<!-- planted -->\n", "<!-- /planted -->"
HEAD = "| experiment | planted | verdicts that turn | the one that falls farthest |\n|---|---|---|---|"


def row(name: str, data: str) -> str:
    """An experiment's line of the table."""
    fault, solver, _ = PLANTED[name]
    with tempfile.TemporaryDirectory() as folder:
        right, planted = both(name, data, Path(folder))
    turned, falls = sum(right[text] != planted[text] for text in right), fallen(right, planted)
    first = f"{falls[0].replace('|', chr(92) + '|')}: {right[falls[0]]}, now {planted[falls[0]]}" if falls else "none falls"
    return f"| `{name}` | `{solver or 'all'}`: {FAULTS[fault]} | {turned} of {len(right)} | {first} |"


def main(data: str) -> None:
    """Run every experiment with and without its fault, and write the table."""
    rows = []
    for name in PLANTED:
        rows.append(row(name, data))
        print(rows[-1], flush=True)
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(before + BEGIN + "\n".join(["", HEAD, *rows, "", ""]) + END + after, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
