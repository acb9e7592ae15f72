"""Collects the errors of a batch's rows: one for each wrong row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

OF_FEATURES = " (missing: omit or indicator accept it)"
OF_MODELS = (
    " (the columns are those of a model that takes no missing values; train it on rows read with missing: omit or indicator, "
    "by the estimator, streams.open or onlinear train)"
)
OF_OTHERS = " (a target or a weight must be given in every row; max_errors, or --max-errors, leaves out wrong rows)"


class ColumnGroup(NamedTuple):
    """Columns that are read together: their ranks among all columns that are read, their places in a batch, their names;
    ``hint``: what to do about their missing values."""

    ranks: np.ndarray
    places: list[int]
    names: list[str]
    hint: str

    @classmethod
    def of(cls, members: Sequence[tuple[int, int, str]], hint: str = OF_FEATURES) -> ColumnGroup:
        """The group of columns given as (rank, place, name)."""
        ranks, places, names = (list(found) for found in zip(*members, strict=True)) if members else ([], [], [])
        return cls(np.array(ranks, np.int64), places, names, hint)


class RowError(NamedTuple):
    """The error of a row: the rank of the wrong column, and a call that words the error."""

    rank: int
    words: Callable[[], str]


class RowErrors(dict[int, RowError]):
    """The error of each wrong row: the first one found in the first of its wrong columns."""

    def note(self, group: ColumnGroup, wrong: np.ndarray, words: Callable[[str, int], str]) -> None:
        """Note an error where ``wrong``, the rows of one column of the group after another, is True.

        ``words`` takes the column's name and the place in ``wrong``, and gives the error's words.
        """
        rows = len(wrong) // len(group.names)
        for at in np.flatnonzero(wrong).tolist():
            column, row = divmod(at, rows)
            rank = int(group.ranks[column])
            if row not in self or rank < self[row].rank:
                self[row] = RowError(rank, partial(words, group.names[column], at))
