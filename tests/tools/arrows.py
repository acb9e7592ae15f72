"""Arrows of a picture of boxes in levels, which pass between the boxes of the levels on their way."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

NEAR, BESIDE = 5.0, 6.0  # pixels that an arrow keeps from a box or another arrow, and between two arrows in one gap


class Gaps:
    """Where arrows pass a level, whose boxes begin at ``starts`` and have one size."""

    def __init__(self, starts: Sequence[float], size: float, gap: float) -> None:
        self.starts, self.size, self.gap = sorted(starts), size, gap
        self.taken: list[float] = []

    def pass_near(self, wanted: float) -> float:
        """The free place nearest to ``wanted``, which is taken from then on."""
        middles = [self.starts[0] - self.gap / 2, *(start + self.size + self.gap / 2 for start in self.starts)]
        places = [wanted, *(middle + shift * BESIDE for shift in (0, -1, 1) for middle in middles)]
        found = min(filter(self._free, places), key=lambda place: abs(place - wanted), default=wanted)
        self.taken.append(found)
        return found

    def _free(self, place: float) -> bool:
        clear = all(not start - NEAR < place < start + self.size + NEAR for start in self.starts)
        return clear and all(abs(place - other) >= NEAR for other in self.taken)


def arrow(points: Sequence[tuple[float, float]], down: bool) -> str:
    """An arrow through points, which leaves and meets each of them along its way: down, or to the right."""
    path = f"M{points[0][0]:g} {points[0][1]:g}"
    for (x, y), (u, v) in pairwise(points):
        along = (v - y if down else u - x) / 2
        first, second = ((x, y + along), (u, v - along)) if down else ((x + along, y), (u - along, v))
        path += f"C{first[0]:g} {first[1]:g} {second[0]:g} {second[1]:g} {u:g} {v:g}"
    return f'<path d="{path}" fill="none" stroke="#99a" marker-end="url(#tip)"/>'
