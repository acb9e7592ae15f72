"""Blocks: what every reader gives, a bounded number of checked rows with their targets and where they came from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from onlinear.rows import Rows, Source


class StreamError(ValueError):
    """Input that cannot be read, as ``file:line: expected ..., got ...``."""


class Block(NamedTuple):
    """Some consecutive rows of a stream, all checked: finite, columns ascending, no entry equal to 0."""

    rows: Rows
    y: np.ndarray  # (n,) float64
    lines: np.ndarray  # (n,) int64: the line of each row in its file, from 1; the row's number where there are no lines
    name: str  # the file
    size: int  # 1 + the largest column of an entry
    largest: float  # the largest absolute value

    @property
    def n(self) -> int:
        """Rows in the block."""
        return len(self.y)

    @property
    def source(self) -> Source:
        """The rows as the learner takes them, without a second check."""
        return Source(self.n, self.size, self.size, self.largest, self.rows)

    @property
    def X(self) -> Any:  # noqa: N802
        """The rows as a CSR matrix of ``size`` columns; the arrays are shared."""
        return self.csr(self.size)

    def csr(self, width: int) -> Any:
        """The rows as a CSR matrix of ``width`` columns, entries beyond it left out."""
        starts, columns, values = self.rows
        matrix = sp.csr_matrix((values, columns.view(np.int32), starts.astype(np.int64)), shape=(self.n, max(self.size, width)))
        return matrix if matrix.shape[1] == width else matrix[:, :width]

    def where(self, row: int) -> str:
        """'file:line' of a row."""
        return f"{self.name}:{int(self.lines[row])}"

    def cut(self, first: int, last: int) -> Block:
        """Rows first .. last-1; the arrays are shared."""
        starts, columns, values = self.rows
        begin, end = int(starts[first]), int(starts[last])
        rows = Rows(starts[first : last + 1] - np.uint64(begin), columns[begin:end], values[begin:end])
        return self._replace(rows=rows, y=self.y[first:last], lines=self.lines[first:last])


class Stream(ABC):
    """A source of rows: each iteration is one pass."""

    name: str
    rereadable: bool  # whether it can be iterated a second time
    rows: int | None  # rows in a pass, where known
    task: str | None  # classify or regress, where known
    classes: np.ndarray | None  # the classes of the target, where known
    total: int | None  # size of a pass, in bytes on the disk or in rows, where known
    done: int  # how much of ``total`` the current pass has taken
    text_bytes: int  # bytes of text read so far
    errors: Sequence[str]  # wrong lines that were skipped

    @abstractmethod
    def __iter__(self) -> Iterator[Block]:
        """The blocks of one pass, in order."""
