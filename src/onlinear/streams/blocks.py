"""Blocks, the output of every reader: a bounded number of checked rows with their targets and their place in the source."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from onlinear.compiled import lean_kernel
from onlinear.rows import Rows, Source, permuted_rows, take_rows
from onlinear.rows.arrays import as_bits, from_bits, mask
from onlinear.text.form import check_whole

UNSHARED = 4096  # bytes of which zlib makes a checksum without letting other threads run Python, which takes longer


class StreamError(ValueError):
    r"""The error for input that cannot be read, as ``file:line: expected ..., got ...``.

    Examples
    --------
    >>> from onlinear import streams
    >>> with open("rows.svm", "w") as file:
    ...     _ = file.write("1 3:0.5\n-1 x:2\n")
    >>> list(streams.open("rows.svm"))
    Traceback (most recent call last):
        ...
    onlinear.streams.blocks.StreamError: rows.svm:2: expected index:value, got 'x:2'.
    """


def refuse_no_rows(name: str, rows: int) -> None:
    """Raise StreamError for a source of this name that has no rows."""
    if not rows:
        raise StreamError(no_rows(name))


def refuse_weightless(name: str, rows: int, weight: float) -> None:
    """Raise StreamError where there is no row of any weight."""
    refuse_no_rows(name, rows)
    if not weight > 0.0:
        raise StreamError(f"{name}: every row has the weight 0.")


def no_rows(name: str) -> str:
    """What is wrong with a source of this name that has no rows."""
    return f"{name}: expected at least one row, got none."


class Block(NamedTuple):
    """Some consecutive rows of a stream, all checked: values are finite and not 0, columns ascend.

    Parameters
    ----------
    rows : Rows
        The entries, as indptr (uint64), indices (uint32) and values (float64).
    y : ndarray of shape (n,)
        The targets, as float64; of a text target the places in ``Stream.labels``.
    lines : ndarray of shape (n,)
        The line of each row in its file, from 1; the row's number where there are no lines.
    names : tuple of str
        The files.
    size : int
        1 + the largest column of an entry.
    largest : float
        The largest absolute value.
    files : ndarray of shape (n,), optional
        The file of each row, as its place in ``names``; None: all are of the first file.
    weights : ndarray of shape (n,), optional
        The weight of each row, at least 0; None: all are 1.
    held : ndarray of shape (n,), optional
        Whether each row is held out: scored, never learned; None: no row is.
    seen : int, default 0
        How many names of hashed columns the stream had kept when it gave the block.

    Examples
    --------
    >>> from onlinear import streams
    >>> block = next(iter(streams.open("iris")))
    >>> block.n, block.X.shape, block.y[:3].tolist(), block.where(0)
    (150, (150, 4), [0.0, 0.0, 0.0], 'iris:1')
    """

    rows: Rows
    y: np.ndarray
    lines: np.ndarray
    names: tuple[str, ...]
    size: int
    largest: float
    files: np.ndarray | None = None
    weights: np.ndarray | None = None
    held: np.ndarray | None = None
    seen: int = 0

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
        from scipy.sparse import csr_matrix

        starts, columns, values = self.within(width).data
        return csr_matrix((values, columns.view(np.int32), starts.astype(np.int64)), shape=(self.n, width))

    def within(self, width: int) -> Source:
        """The rows as a model of ``width`` columns sees them: entries beyond it left out."""
        if self.size <= width:
            return self.source._replace(width=width)
        starts, columns, values = self.rows
        inside = columns < width
        before = np.concatenate([[0], np.cumsum(inside)]).astype(np.uint64)
        rows = Rows(before[starts], columns[inside], values[inside])
        size = int(rows.indices.max()) + 1 if len(rows.indices) else 0
        return Source(self.n, width, size, self.largest, rows)

    def where(self, row: int) -> str:
        """'file:line' of a row, counted from 0."""
        name = self.names[0 if self.files is None else int(self.files[row])]
        return f"{name}:{int(self.lines[row])}"

    def cut(self, first: int, last: int) -> Block:
        """Rows first .. last-1; the arrays are shared."""
        starts, columns, values = self.rows
        begin, end = int(starts[first]), int(starts[last])
        rows = Rows(starts[first : last + 1] - np.uint64(begin), columns[begin:end], values[begin:end])
        return self._pick(rows, slice(first, last))

    def parts(self, most: int) -> Iterator[Block]:
        """The rows, at most so many at a time; the arrays are shared."""
        if self.n <= most:
            yield self
            return
        for first in range(0, self.n, most):
            yield self.cut(first, min(first + most, self.n))

    def take(self, order: np.ndarray) -> Block:
        """The rows in another order, copied."""
        return self._pick(take_rows(self.rows, order), order)

    def _pick(self, rows: Rows, which: slice | np.ndarray) -> Block:
        files = None if self.files is None else self.files[which]
        weights = None if self.weights is None else self.weights[which]
        held = None if self.held is None else self.held[which]
        return self._replace(rows=rows, y=self.y[which], lines=self.lines[which], files=files, weights=weights, held=held)

    @property
    def importance(self) -> np.ndarray:
        """(n,) the weight of each row."""
        return np.ones(self.n) if self.weights is None else self.weights

    @property
    def learned_importance(self) -> np.ndarray:
        """(n,) the weight of each row in what is learned: 0 of those that are held out."""
        return self.importance if self.held is None else np.where(self.held, 0.0, self.importance)


def joined(blocks: Sequence[Block]) -> Block:
    """Blocks as one, copied."""
    ends = np.cumsum([0, *(len(block.rows.values) for block in blocks)])
    starts = [block.rows.indptr[:-1] + np.uint64(end) for block, end in zip(blocks, ends, strict=False)]
    rows = Rows(
        np.append(np.concatenate(starts), np.uint64(ends[-1])),
        np.concatenate([block.rows.indices for block in blocks]),
        np.concatenate([block.rows.values for block in blocks]),
    )
    return _block_of(blocks, rows, slice(None))


def permute_blocks(blocks: Sequence[Block], order: np.ndarray) -> Block:
    """The rows of blocks in another order: row i is row order[i] of all of them; each entry is copied once."""
    return _block_of(blocks, permuted_rows([block.rows for block in blocks], order), order)


def _block_of(blocks: Sequence[Block], rows: Rows, order: slice | np.ndarray) -> Block:
    """The block of ``rows``; targets, lines, files, weights and marks are those of ``blocks``, in this order."""
    names = tuple(dict.fromkeys(name for block in blocks for name in block.names))
    places = [
        np.array([names.index(name) for name in block.names])[np.zeros(block.n, int) if block.files is None else block.files]
        for block in blocks
    ]
    return Block(
        rows,
        np.concatenate([block.y for block in blocks])[order],
        np.concatenate([block.lines for block in blocks])[order],
        names,
        max(block.size for block in blocks),
        max(block.largest for block in blocks),
        np.concatenate(places)[order] if len(names) > 1 else None,
        None
        if all(block.weights is None for block in blocks)
        else np.concatenate([block.importance for block in blocks])[order],
        None if blocks[0].held is None else np.concatenate([block.held for block in blocks])[order],  # type: ignore[misc]
        max(block.seen for block in blocks),
    )


def must_be_limits(block_bytes: Any, max_errors: Any) -> None:
    """Raise ValueError for limits of a reader that are no whole numbers, or too small."""
    check_whole("block_bytes", block_bytes, 1)
    check_whole("max_errors", max_errors, 0)


def skip(blocks: Iterable[Block], rows: int) -> Iterator[Block]:
    """The blocks without their first ``rows`` rows."""
    for block in blocks:
        if rows < block.n:
            yield block.cut(rows, block.n) if rows else block
        rows = max(0, rows - block.n)


@dataclass
class Timing:
    """Seconds that reading has taken so far, by activity; the seconds of several threads add up."""

    read: float = 0.0  # bytes from the disk, decompression included; for columns, all that gives a block
    parse: float = 0.0  # text to rows
    wait: float = 0.0  # the consumer waited for a block
    full: float = 0.0  # reading waited because enough blocks were ready


class Stream(ABC):
    """A source of rows. Each iteration is one pass, and yields ``Block``.

    Attributes
    ----------
    name : str
        The source, in words.
    rereadable : bool
        Whether it can be iterated a second time.
    rows : int or None
        Rows in a pass, where known.
    task : str or None
        classify or regress, where known.
    classes : ndarray or None
        The classes of the target, where known.
    labels : tuple of str or None
        The classes' names where the target is text: ``Block.y`` holds their places in this order.
    encoding : dict or None
        How features became columns, for ``open(encoding=)``; None: they were columns.
    total, done : int or None, int
        The size of a pass, in bytes on the disk or in rows, where known, and how much of it the current pass has taken.
    text_bytes : int
        Bytes of text read so far.
    errors : sequence of str
        The errors of wrong rows that were skipped.
    marks : mapping of str to tuple of str
        Features of a CSV file that are read as text because of these few values among numbers, or because of numbers that
        are written as this one.
    label_marks : tuple of str
        The same of the target.
    nulls : sequence of str
        The texts of a CSV file that are missing values.
    grows : bool
        Whether new categories get columns while rows are read.

    Examples
    --------
    >>> from onlinear import streams
    >>> stream = streams.open("wine")
    >>> stream.rows, stream.task, stream.classes.tolist()
    (178, 'classify', [0.0, 1.0, 2.0])
    >>> sum(block.n for block in stream)
    178
    """

    name: str
    rereadable: bool
    rows: int | None
    task: str | None
    classes: np.ndarray | None
    labels: tuple[str, ...] | None = None
    encoding: dict[str, Any] | None = None
    total: int | None
    done: int
    text_bytes: int
    errors: Sequence[str]
    marks: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    label_marks: tuple[str, ...] = ()
    nulls: Sequence[str] = ()
    grows: bool = False

    @cached_property
    def timing(self) -> Timing:
        """Where the time went, over all passes so far."""
        return Timing()

    @property
    def first_pass(self) -> dict[str, list[int]] | None:
        """What later passes must give again: a summary of each file's rows in the first whole pass, if any."""
        return None

    def expect(self, first_pass: Mapping[str, Sequence[int]] | None) -> None:
        """Take what another process found in the first whole pass for the first pass of this one."""

    @abstractmethod
    def __iter__(self) -> Iterator[Block]:
        """The blocks of one pass, in order."""


class Fingerprint(NamedTuple):
    """A summary of some rows that does not depend on how they are cut into blocks.

    It is the number of rows, checksums of the labels and of the numbers of entries in order, and the sums of the columns and of
    the values' bits.
    """

    rows: int = 0
    labels: int = 0
    lengths: int = 0
    columns: int = 0
    values: int = 0

    def plus(self, block: Block, entries: EntrySums) -> Fingerprint:
        """The summary of these rows and of a block after them, whose entries have these sums."""
        starts = block.rows.indptr
        return Fingerprint(
            self.rows + block.n,
            _checksum(block.y, self.labels),
            _checksum(starts[1:] - starts[:-1], self.lengths),
            self.columns + entries.columns,
            (self.values + entries.values) % 2**64,
        )


class EntrySums(NamedTuple):
    """Of the entries of some rows the sums of the columns and of the values' bits."""

    columns: int
    values: int

    @classmethod
    def of(cls, rows: Rows) -> EntrySums:
        """Those of these rows."""
        return look_over(rows)[2]


def look_over(rows: Rows) -> tuple[int, float, EntrySums]:
    """1 + the largest column, the largest absolute value, and the sums of the entries of rows with values of float64."""
    with np.errstate(over="ignore"):
        high, largest, columns, values = _looked_over(rows.indices, as_bits(rows.values), mask(np.float64))
    size = int(high) + 1 if len(rows.indices) else 0
    return size, from_bits(largest, np.float64), EntrySums(int(columns), int(values) % 2**64)


@lean_kernel
def _looked_over(columns, bits, mask):  # type: ignore[no-untyped-def]
    """The largest column and absolute value (as bits), and the sums of the columns and of the bits: one call, as each that
    NumPy would make lets other threads run Python."""
    high, largest, total, sums = np.uint32(0), np.int64(0), np.uint64(0), np.int64(0)
    for k in range(columns.shape[0]):
        high = high if high > columns[k] else columns[k]
        total += np.uint64(columns[k])
    for k in range(bits.shape[0]):
        size = bits[k] & mask
        largest = largest if largest > size else size
        sums += bits[k]
    return high, largest, total, sums


def _checksum(array: np.ndarray, before: int) -> int:
    """The checksum of the numbers of an array, after others."""
    found = memoryview(array.tobytes())
    for first in range(0, len(found), UNSHARED):
        before = zlib.crc32(found[first : first + UNSHARED], before)
    return before


class Reader(Stream):
    """The rows of files. A pipe gives them once; of other files every pass must give the rows of the first pass."""

    _read = False
    _first: dict[str, Fingerprint] | None = None  # of each file, by the first whole pass

    @property
    def first_pass(self) -> dict[str, list[int]] | None:
        """What later passes must give again: a summary of each file's rows in the first whole pass; None before its end."""
        return None if self._first is None else {name: list(sums) for name, sums in self._first.items()}

    def expect(self, first_pass: Mapping[str, Sequence[int]] | None) -> None:
        """Take what another process found in the first whole pass for the first pass of this one."""
        self._first = None if first_pass is None else {name: Fingerprint(*sums) for name, sums in first_pass.items()}

    def __iter__(self) -> Iterator[Block]:
        if self._read and not self.rereadable:
            name = "standard input" if self.name == "-" else f"{self.name}: a pipe"
            raise StreamError(f"{name} cannot be read twice; several passes need a file.")
        self._read, self.done = True, 0
        first, found = self._first, dict[str, Fingerprint]()
        with closing(self._pass()) as blocks:
            for block in blocks:
                (name,) = block.names
                found[name] = found.get(name, Fingerprint()).plus(block, self._entry_sums(block))
                if first is not None and found[name].rows > first.get(name, Fingerprint()).rows:
                    raise _change_error(name, first.get(name, Fingerprint()), found[name])
                yield block
        if first is None:
            self._first = found
            return
        for name, sums in first.items():
            if found.get(name) != sums:
                raise _change_error(name, sums, found.get(name, Fingerprint()))

    @abstractmethod
    def _pass(self) -> Generator[Block, None, None]:
        """The blocks of one pass, each of one file."""

    def _entry_sums(self, block: Block) -> EntrySums:
        """The sums of a block that ``_pass`` has just given."""
        return EntrySums.of(block.rows)


def _change_error(name: str, first: Fingerprint, found: Fingerprint) -> StreamError:
    """The error for a file whose rows differ from those of the first pass."""
    got = f"{found.rows:,}{' or more' if found.rows > first.rows else ''}"
    got = got if found.rows != first.rows else "as many with other labels, columns or values"
    return StreamError(f"{name}: expected the {first.rows:,} rows of the first pass again, got {got}; has the file changed?")


def _passed_on(name: str) -> Any:
    """The attribute of this name of the stream that is changed: a default of ``Stream`` would hide it."""
    return property(lambda stream: stream.__getattr__(name), doc=f"``{name}`` of the stream that is changed.")


class Wrapped(Stream):
    """A stream that changes another one. It takes every attribute that it does not define from that stream."""

    first_pass, timing, labels, encoding = map(_passed_on, ("first_pass", "timing", "labels", "encoding"))
    marks, label_marks, nulls, grows = map(_passed_on, ("marks", "label_marks", "nulls", "grows"))

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def expect(self, first_pass: Mapping[str, Sequence[int]] | None) -> None:
        """Take what another process found in the first whole pass for the first pass of this one."""
        self._stream.expect(first_pass)
