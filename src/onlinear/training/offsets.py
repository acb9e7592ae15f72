"""Columns that are not learned well for where their values lie: far from 0, or too near to it.

Far from 0 a penalty acts on columns that are divided by their size and keep their mean.

A year varies by some ten around 2,000: divided by its root mean square it hardly varies, so its weight must be large, and the
penalty holds it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from onlinear.rows import Rows

OFFSET_DEVIATIONS = 10.0  # deviations from 0: there an l2 counts a hundred times
ROWS = 1000  # that are looked at; of fewer nothing is said, as of a model's quality
SHOWN = 3  # columns that are named
SAME = 1e-9  # of its mean: what varies less does not vary


class Offset(NamedTuple):
    """A column far from 0, and how many of its deviations far."""

    column: int
    times: float


def far_from_zero(rows: Rows) -> list[Offset]:
    """The columns with an entry in each row whose mean is many of their deviations from 0, the farthest first."""
    n = len(rows.indptr) - 1
    if n < ROWS:
        return []
    columns, places = np.unique(rows.indices, return_inverse=True)
    values = rows.values.astype(np.float64)
    counts = np.bincount(places)
    with np.errstate(all="ignore"):  # of the largest values: no comparison is true then
        means = np.bincount(places, values) / counts
        deviations = np.sqrt(np.bincount(places, (values - means[places]) ** 2) / counts)
        far = (counts == n) & (np.abs(means) > OFFSET_DEVIATIONS * deviations) & (deviations > SAME * np.abs(means))
        found = [Offset(int(columns[k]), float(abs(means[k]) / deviations[k])) for k in np.flatnonzero(far)]
    return sorted(found, key=lambda offset: (-offset.times, offset.column))


def too_small(columns: Sequence[int], names: Sequence[str | None], *, targets: bool, weights: bool) -> list[str]:
    """What to say of columns whose entries have squares of 0, ``names`` those of the first ones, and of such targets and
    weights of rows."""
    of_targets = "Targets are so small, or differ by so little, that their squares are 0, so they are not learned."
    of_weights = "The weights of all rows are so small that their squares are 0, so nothing is learned."
    said = [f"{said} Multiply them by a constant." for said, true in ((of_targets, targets), (of_weights, weights)) if true]
    if not columns:
        return said
    shown = [f"column {column}" if name is None else repr(name) for column, name in zip(columns[:SHOWN], names, strict=False)]
    more = f" and {len(columns) - SHOWN} more" if len(columns) > SHOWN else ""
    where = ", ".join(shown) + more
    return [
        *said,
        f"Values are so small that their squares are 0, so nothing is learned of them: {where}. Multiply them by a constant.",
    ]


def remark(found: Sequence[Offset], names: Sequence[str | None], *, command: bool) -> str:
    """What to say of such columns, ``names`` those of the first ones, in the command's words or Python's."""
    shown = [
        f"{f'column {offset.column}' if name is None else repr(name)} ({offset.times:,.0f} times)"
        for offset, name in zip(found[:SHOWN], names, strict=False)
    ]
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    scale = "--scale centred" if command else 'scale="centred"'
    return (
        f"Columns are much farther from 0 than they vary: {', '.join(shown)}{more}. The penalty holds their weights back, as "
        f"with tol the columns keep their means. Try {scale}."
    )
