"""Readers: a source of rows -> blocks of checked rows, in bounded memory.

    for block in streams.open("train.svm.gz"):
        learner.learn(block.X, block.y)

A stream can be iterated several times (one pass each), except standard input.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence

from onlinear.names import unknown
from onlinear.streams.blocks import Block, Stream, StreamError
from onlinear.streams.bundled import BUNDLED, Bundled
from onlinear.streams.files import STDIN
from onlinear.streams.shuffle import Shuffled
from onlinear.streams.svmlight import BLOCK_BYTES, Svmlight

__all__ = ["BUNDLED", "Block", "Shuffled", "Stream", "StreamError", "open"]


def open(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    base: int = 1,
    sort: bool = False,
    max_errors: int = 0,
    block_bytes: int = BLOCK_BYTES,
) -> Stream:
    """A stream of the rows of one or several sources, in order.

    ``source``: svmlight files (plain, .gz, .xz, .bz2, .zst), patterns such as ``part-*.svm``, ``-`` for standard input, or the
    name of a bundled data set (``BUNDLED``). ``base``: the first index in the files, 1 or 0; ``sort``: accept indices in any
    order, repeated ones are summed; ``max_errors``: wrong lines that are skipped; ``block_bytes``: text in memory at a time.

    Raises FileNotFoundError; while iterating StreamError as ``file:line: expected ..., got ...``.
    """
    names = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    if not names:
        raise ValueError("source must name at least one file.")
    paths = [path for name in names for path in _expanded(os.fspath(name))]
    if len(paths) == 1 and paths[0] in BUNDLED and not os.path.exists(paths[0]):
        return Bundled(paths[0])
    for path in paths:
        _must_exist(path)
    return Svmlight(tuple(paths), base=base, ordered=not sort, max_errors=max_errors, block_bytes=block_bytes)


def _expanded(name: str) -> list[str]:
    if not any(c in name for c in "*?[") or os.path.exists(name):
        return [name]
    found = sorted(glob.glob(name))
    if not found:
        raise FileNotFoundError(f"no file matches {name!r}.")
    return found


def _must_exist(path: str) -> None:
    if path == STDIN or os.path.isfile(path):
        return
    if os.path.isdir(path):
        raise IsADirectoryError(f"{path} is a folder; expected a file.")
    if not os.path.exists(path):
        near = unknown("data set", path, BUNDLED) if os.path.basename(path) == path and "." not in path else ""
        raise FileNotFoundError(f"no file at {path!r}.{f' As a name: {near}' if near else ''}")
