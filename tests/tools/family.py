"""Draw the table of docs/family.md: which method is a special case of which.

python tests/tools/family.py            writes docs/family.svg
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import NamedTuple

from arrows import Gaps, arrow

ROOT = Path(__file__).parent.parent.parent
PAGE, PICTURE = ROOT / "docs" / "family.md", ROOT / "docs" / "family.svg"
WIDTH, HEIGHT, BESIDE, GAP, EDGE = 200, 40, 90, 14, 16  # of a box, between columns, between boxes, around, in pixels


class Case(NamedTuple):
    """A line of the table."""

    special: str
    general: str
    where: str


def cases() -> list[Case]:
    """The lines of the table."""
    text = PAGE.read_text(encoding="utf-8")
    lines = re.findall(r"^\| ([^|]+)\| ([^|]+)\| ([^|]+)\| `tests/", text, re.MULTILINE)
    return [Case(*(cell.strip() for cell in line)) for line in lines]


def columns(found: list[Case]) -> list[list[str]]:
    """The methods from left to right: each stands right of all that it is a case of. Raises ValueError for a circle."""
    methods = list(dict.fromkeys(name for case in found for name in (case.general, case.special)))
    above = {name: {case.general for case in found if case.special == name} for name in methods}
    placed: dict[str, int] = {}
    while len(placed) < len(methods):
        ready = [name for name in methods if name not in placed and above[name] <= placed.keys()]
        if not ready:
            raise ValueError(f"cases of one another: {', '.join(sorted(set(methods) - placed.keys()))}")
        placed |= {name: 1 + max((placed[other] for other in above[name]), default=-1) for name in ready}
    return [[name for name in methods if placed[name] == column] for column in range(1 + max(placed.values()))]


def places(found: list[Case]) -> dict[str, tuple[float, float]]:
    """Where each box stands: a column's boxes in the order of those that they are cases of."""
    place: dict[str, tuple[float, float]] = {}
    levels = columns(found)
    tall = max(len(level) for level in levels)
    for column, level in enumerate(levels):
        heights = {
            name: [place[case.general][1] for case in found if case.special == name and case.general in place] for name in level
        }
        ordered = sorted(level, key=lambda name: sum(heights[name]) / len(heights[name]) if heights[name] else 0.0)
        spread = tall / len(level)
        for k, name in enumerate(ordered):
            place[name] = EDGE + column * (WIDTH + BESIDE), EDGE + (k + 0.5) * spread * (HEIGHT + GAP) - HEIGHT / 2
    return place


def ways(found: list[Case], place: dict[str, tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """The points of every arrow: from method to method, past the methods of the columns between."""
    lefts = sorted({x for x, _ in place.values()})
    gaps = {left: Gaps([y for x, y in place.values() if x == left], HEIGHT, GAP) for left in lefts}
    result = []
    for case in found:
        (x, y), (u, v) = place[case.general], place[case.special]
        points = [(x + WIDTH, y + HEIGHT / 2)]
        for left in (left for left in lefts if x < left < u):
            at = gaps[left].pass_near(y + HEIGHT / 2 + (v - y) * (left - x) / (u - x))
            points += [(left, at), (left + WIDTH, at)]
        result.append([*points, (u, v + HEIGHT / 2)])
    return result


def drawn() -> str:
    """The picture as SVG."""
    found = cases()
    place = places(found)
    width = max(x for x, _ in place.values()) + WIDTH + EDGE
    height = max(y for _, y in place.values()) + HEIGHT + EDGE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-family="sans-serif" role="img">',
        "<title>Each method points to its special cases</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#667"/></marker></defs>',
        f'<rect width="{width:g}" height="{height:g}" fill="#fff"/>',
    ]
    lines += [arrow(points, down=False) for points in ways(found, place)]
    for name, (x, y) in place.items():
        where = " / ".join(dict.fromkeys(case.where for case in found if case.special == name))
        lines += [
            f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#eef3fb" stroke="#456"/>',
            f'<text x="{x + WIDTH / 2:g}" y="{y + (17 if where else 25):g}" font-size="14" text-anchor="middle" fill="#123">'
            f"{escape(name)}</text>",
        ]
        if where:
            lines.append(
                f'<text x="{x + WIDTH / 2:g}" y="{y + 32:g}" font-size="10.5" text-anchor="middle" fill="#567">'
                f"{escape(where)}</text>"
            )
    return "\n".join([*lines, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
