"""Draw the package: its rooms on floors, with an arrow from each room to those whose modules it imports.

    python tests/tools/rooms.py            writes docs/rooms.svg
    python tests/tools/rooms.py --text     prints rooms, floors and imports

A room is a folder of the package, or a file at its top; the files of parts are one room. A room stands one floor above the
highest room that it imports. An arrow is left out where other arrows lead the same way.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from arrows import Gaps, arrow

ROOT = Path(__file__).parent.parent.parent
HOME = ROOT / "src" / "onlinear"
PICTURE = ROOT / "docs" / "rooms.svg"
PARTS = ("losses", "softmax", "penalties", "schedules", "averages")
INNER = (("solvers", "core"), ("solvers", "packs"))  # folders inside a room that are rooms
SHIMS = ("jit", "estimators", "path", "final")  # where files and pickles of 0.1 look
WIDTH, HEIGHT, GAP, BETWEEN = 128, 44, 26, 54  # of a box, beside it, and between floors, in pixels


def room_of(parts: tuple[str, ...]) -> str | None:
    """The room of a module of the package, given the parts of its name; None for the package itself and for old places."""
    if not parts or parts[0] in ("__init__", "__main__", *SHIMS):
        return None
    if parts[0] in PARTS:
        return "parts"
    return "/".join(parts[:2]) if parts[:2] in INNER else parts[0]


def imported(path: Path) -> Iterator[tuple[str, ...]]:
    """The modules of the package that a file imports, wherever the statement stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "onlinear":
            first = tuple(node.module.split(".")[1:])
            for alias in node.names:
                name = (*first, alias.name)
                place = HOME.joinpath(*name)
                yield name if place.is_dir() or place.with_suffix(".py").is_file() else first
        elif isinstance(node, ast.Import):
            yield from (tuple(alias.name.split(".")[1:]) for alias in node.names if alias.name.startswith("onlinear."))


@cache
def rooms() -> dict[str, set[str]]:
    """Each room with the rooms that it imports."""
    found: dict[str, set[str]] = {}
    for path in sorted(HOME.rglob("*.py")):
        room = room_of(path.relative_to(HOME).with_suffix("").parts)
        if room is not None:
            others = {room_of(name) for name in imported(path)} - {room, None}
            found.setdefault(room, set()).update(other for other in others if other)
    return found


def floors(found: dict[str, set[str]]) -> list[list[str]]:
    """The rooms by floor, the ground floor first. Raises ValueError where rooms import one another in a circle."""
    left, placed, result = dict(found), set[str](), list[list[str]]()
    while left:
        ready = sorted(room for room, others in left.items() if others <= placed)
        if not ready:
            raise ValueError(f"rooms on a circle, or above one: {', '.join(sorted(left))}")
        result.append(ready)
        placed.update(ready)
        for room in ready:
            del left[room]
    return result


def arrows(found: dict[str, set[str]]) -> list[tuple[str, str]]:
    """The imports between rooms that no other imports imply."""
    below: dict[str, set[str]] = {}
    for floor in floors(found):
        for room in floor:
            below[room] = set().union(*(found[other] | below[other] for other in found[room])) if found[room] else set()
    return [(room, other) for room in sorted(found) for other in sorted(found[room] - below[room])]


def size_of(room: str) -> tuple[int, int]:
    """Files and lines of a room."""
    paths = [path for path in HOME.rglob("*.py") if room_of(path.relative_to(HOME).with_suffix("").parts) == room]
    return len(paths), sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def ways(found: dict[str, set[str]], place: dict[str, tuple[float, float]]) -> list[list[tuple[float, float]]]:
    """The points of every arrow: from room to room, past the rooms of the floors between."""
    tops = sorted({y for _, y in place.values()})
    gaps = {top: Gaps([x for x, y in place.values() if y == top], WIDTH, GAP) for top in tops}
    result = []
    for room, other in arrows(found):
        (x, y), (u, v) = place[room], place[other]
        points = [(x + WIDTH / 2, y + HEIGHT)]
        for top in (top for top in tops if y < top < v):
            at = gaps[top].pass_near(x + WIDTH / 2 + (u - x) * (top - y) / (v - y))
            points += [(at, top), (at, top + HEIGHT)]
        result.append([*points, (u + WIDTH / 2, v)])
    return result


def drawn() -> str:
    """The picture as SVG."""
    found = rooms()
    levels = floors(found)
    wide = max(len(floor) for floor in levels)
    width = wide * (WIDTH + GAP) + GAP
    height = len(levels) * (HEIGHT + BETWEEN) + GAP
    place: dict[str, tuple[float, float]] = {}
    for level, floor in enumerate(levels):
        left = (width - len(floor) * (WIDTH + GAP) + GAP) / 2
        for k, room in enumerate(floor):
            place[room] = left + k * (WIDTH + GAP), height - GAP - HEIGHT - level * (HEIGHT + BETWEEN)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" role="img">',
        "<title>The rooms of onlinear: each imports those its arrows point to</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#667"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    lines += [arrow(points, down=True) for points in ways(found, place)]
    for room, (x, y) in place.items():
        files, _ = size_of(room)
        lines += [
            f'<rect x="{x:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#eef3fb" stroke="#456"/>',
            f'<text x="{x + WIDTH / 2:g}" y="{y + 19:g}" font-size="14" text-anchor="middle" fill="#123">{room}</text>',
            f'<text x="{x + WIDTH / 2:g}" y="{y + 35:g}" font-size="11" text-anchor="middle" fill="#567">'
            f"{files} file{'s' if files > 1 else ''}</text>",
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def main(arguments: list[str]) -> None:
    """Write the picture, or print what it shows."""
    if "--text" in arguments:
        found = rooms()
        for level, floor in enumerate(floors(found)):
            for room in floor:
                files, lines = size_of(room)
                print(f"{level}  {room:14s} {files:3d} files {lines:6d} lines  {' '.join(sorted(found[room]))}")
        print(f"{len(found)} rooms, {sum(map(len, found.values()))} arrows, {len(arrows(found))} drawn")
    else:
        PICTURE.write_text(drawn(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
