"""Writes rows as svmlight text: every number in the shortest form that reads back to the same bits."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from onlinear.files.standard_streams import standard_output
from onlinear.files.writing import new_file
from onlinear.streams.blocks import Block, Stream, StreamError
from onlinear.streams.files import STDIN
from onlinear.streams.labels import shown
from onlinear.streams.suffixes import suffix_of


def write_svmlight(path: str | os.PathLike[str], stream: Stream, base: int | None = None) -> int:
    """Write the rows of a stream as svmlight text, compressed by suffix, or to standard output (-); returns their number.

    ``base``: the first index, 1 or 0; None: that of the source, else 1. The file gets its name when it is whole. The format
    cannot hold labels that are text or missing, nor weights other than 1: they raise StreamError.
    """
    first = getattr(stream, "base", 1) if base is None else base
    rows = 0
    with _open(os.fsdecode(path)) as file:
        for block in stream:
            _must_fit(stream, block)
            file.write(_text(block, first).encode())
            rows += block.n
    return rows


@contextmanager
def _open(path: str) -> Iterator[Any]:
    if path == STDIN:
        out = standard_output()
        yield out.buffer
        out.flush()
        return
    with new_file(path) as raw, _compress(raw, suffix_of(path)) as file:
        yield file


@contextmanager
def _compress(raw: Any, suffix: str) -> Iterator[Any]:
    """No name and no time in the file: the same rows give the same bytes."""
    if suffix == ".gz":
        with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as file:
            yield file
    elif suffix in (".bz2", ".xz"):
        with (bz2.BZ2File if suffix == ".bz2" else lzma.LZMAFile)(raw, "wb") as file:  # type: ignore[operator]
            yield file
    elif suffix == ".zst":
        import pyarrow as pa

        with pa.CompressedOutputStream(pa.PythonFile(_Unclosed(raw), mode="w"), "zstd") as file:
            yield file
    else:
        yield raw


class _Unclosed:
    """A file that stays open when its user closes it."""

    closed = False

    def __init__(self, raw: Any) -> None:
        self.write, self.flush = raw.write, raw.flush

    def close(self) -> None:
        pass


def _must_fit(stream: Stream, block: Block) -> None:
    if stream.labels is not None:
        raise StreamError(
            f"{stream.name}: the labels are text, and those of svmlight files are numbers; write Parquet or Arrow."
        )
    wrong = np.isnan(block.y)
    if wrong.any():
        raise StreamError(f"{block.where(int(np.argmax(wrong)))}: expected a label, got none; svmlight rows have one.")
    heavy = block.importance != 1.0
    if heavy.any():
        row = int(np.argmax(heavy))
        found = shown(block.importance[row])
        raise StreamError(f"{block.where(row)}: the row's weight is {found}, and svmlight has none; write Parquet or Arrow.")


def _text(block: Block, base: int) -> str:
    """The rows, a line each; whole numbers without a point."""
    starts, columns, values = block.rows
    pairs = [f"{j}:{_number(x)}" for j, x in zip((columns.astype(np.int64) + base).tolist(), values.tolist(), strict=True)]
    ends = starts.tolist()
    labels = map(_number, block.y.tolist())
    return "".join([" ".join([label, *pairs[a:b]]) + "\n" for label, a, b in zip(labels, ends, ends[1:], strict=False)])


def _number(x: float) -> str:
    text = repr(x)
    return text[:-2] if text.endswith(".0") else text
