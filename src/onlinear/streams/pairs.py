"""Blocks (X, y) or (X, y, weight) of any iterable as a stream: lists, generators, loaders of other libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from onlinear import rows
from onlinear.rows import checks
from onlinear.streams.blocks import Block, Stream, StreamError
from onlinear.streams.frames import one_by_one, refuse_repeated
from onlinear.streams.labels import label_array
from onlinear.text.form import quote_names

# takes the place of the first block and the names of its columns, None where they have none
CheckNames = Callable[[str, list[str] | None], None]


class Pairs(Stream):
    """The rows of blocks (X, y), (X, y, weight) or ``Block``, in order.

    X: CSR, CSC, dense or a data frame, the dense ones of equally many columns; y: (n,) numbers or text; weight: (n,), at least
    0. An iterator can be read once, any other iterable as often as it can be iterated. Raises StreamError that names the block,
    from 1, and its row; ``name`` stands before it.
    """

    name = "the blocks"
    task = classes = rows = total = None
    done = text_bytes = 0
    errors = ()

    def __init__(self, blocks: Iterable[Any], name: str | None = None, check: CheckNames | None = None) -> None:
        self._blocks = blocks
        self._prefix = "" if name is None else f"{name}, "
        self.name = name or self.name
        self._read = False
        self.rereadable = not isinstance(blocks, Iterator)
        self.width = 0  # columns of the widest X so far
        self.columns: list[str] | None = None  # their names, where X are data frames
        self.dense: int | None = None  # columns of those X that are dense
        self.check = check  # raises ValueError where they are not those of a model

    def __iter__(self) -> Iterator[Block]:
        if self._read and not self.rereadable:
            raise StreamError("an iterator cannot be read twice; several passes need a list of blocks or a stream.")
        self._read = True
        for number, block in enumerate(self._blocks, 1):
            if isinstance(block, Block):
                yield block
                continue
            place = f"{self._prefix}block {number}"
            if not (isinstance(block, tuple) or is_listed(block)) or len(block) not in (2, 3):
                found = f"a tuple of {len(block)}" if isinstance(block, tuple) else type(block).__name__
                hint = one_by_one(block)
                raise StreamError(f"{place}: expected (X, y) or (X, y, weight), got {found}{f': {hint}' if hint else ''}.")
            try:
                yield self._block(place, *block)
            except (ValueError, TypeError) as error:
                raise StreamError(f"{place}: {error}") from None

    def _block(self, name: str, X: Any, y: Any, weight: Any = None) -> Block:
        checks.refuse_missing(X, "X")
        checks.refuse_missing(y, "y")
        self._name_columns(name, X)
        sparse = rows.is_sparse(X)
        source = rows.read(X if sparse else _numbers_of(X)).stored()
        if not sparse and source.n:
            self._refuse_other_width(source.width)
        self.width = max(self.width, source.width)
        found = checks.same_length(self._targets(label_array(y)), "y", source.n)
        weights = None if weight is None else checks.weights(weight, source.n)
        data = source.data._replace(values=source.data.values.astype(np.float64, copy=False))
        return Block(data, found, np.arange(1, source.n + 1), (name,), source.size, source.largest, weights=weights)

    def _refuse_other_width(self, width: int) -> None:
        """Raise ValueError for a dense X of other columns than those before; sparse ones may leave out the last columns."""
        if self.dense not in (None, width):
            raise ValueError(f"X has {width} columns, dense X of the blocks before have {self.dense}.")
        self.dense = width

    def _name_columns(self, place: str, X: Any) -> None:
        named = list(X.columns) if hasattr(X, "columns") else None
        if named is not None and not all(isinstance(name, str) for name in named):
            named = None
        refuse_repeated(named or (), "X")
        if self.width and named != self.columns:
            first, got = (quote_names(names) if names else "none" for names in (self.columns, named))
            raise ValueError(f"the columns of X must have the same names in all blocks, first {first}, got {got}.")
        if not self.width and self.check is not None:
            self.check(place, named)
        self.columns = named

    def _targets(self, y: np.ndarray) -> np.ndarray:
        """Numbers as they are; text as places among ``labels``, which grow."""
        if y.ndim != 1:
            raise ValueError(f"y must be 1-D with one value per row, got shape {y.shape}; several targets need fit(X, y).")
        text = y.dtype.kind == "U" or (y.dtype.kind == "O" and all(isinstance(label, str) for label in y))
        if self.width and len(y) and text != (self.labels is not None) and self._met:
            raise ValueError("y must be text in all blocks or numbers in all.")
        if not text:
            _refuse_beside_text(y)
            found = checks.column(y, "y", len(y))
            self._met = self._met or len(y) > 0
            return found
        place = {label: k for k, label in enumerate(self.labels or ())}
        found = np.array([place.setdefault(str(label), len(place)) for label in y], np.float64)
        self.labels, self._met = tuple(place), True
        return found

    _met = False  # whether a block had a row


def is_listed(block: Any) -> bool:
    """Whether a block is a list that begins with rows, as loaders of PyTorch collate them."""
    return isinstance(block, list) and len(getattr(block[0] if block else None, "shape", ())) == 2


def _refuse_beside_text(y: np.ndarray) -> None:
    """Raise ValueError for what is no text among labels that begin with text."""
    if y.dtype.kind == "O" and len(y) and isinstance(y[0], str):
        row = next(row for row, label in enumerate(y) if not isinstance(label, str))
        raise ValueError(f"y begins with text and must hold text in every row, got {checks.shown(y[row])} at row {row}.")


def _numbers_of(X: Any) -> np.ndarray:
    """X as an array. Raises TypeError for a data frame with a column that holds no numbers, by its name."""
    array = np.asarray(X)
    if array.dtype.kind in "fiub" or not hasattr(X, "columns"):
        return array
    name = next((name for name in X.columns if np.asarray(X[name]).dtype.kind not in "fiub"), None)
    if name is None:  # numbers and booleans side by side
        return array.astype(np.float64)
    raise TypeError(
        f"X must hold numbers, got {X[name].dtype} in column {name!r}: text, categories and dates of tables are read whole "
        "(fit(table, y), streams.open) or from files (frame.to_parquet; then open_shards, or onlinear.dask with target=)."
    )
