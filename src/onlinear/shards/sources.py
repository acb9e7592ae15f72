"""Shards: pieces of the rows, each of which can be opened as a stream, anywhere and as often as it is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from onlinear import streams
from onlinear.streams import Stream, StreamError
from onlinear.streams.decided import DECIDED
from onlinear.streams.encoding import ONE_HOT, upto
from onlinear.streams.files import STDIN, is_pipe
from onlinear.streams.pairs import Pairs
from onlinear.text.names import printable


class Shard(Protocol):
    """A piece of the rows."""

    def open(self) -> Stream:
        """Its rows."""


class File(NamedTuple):
    """The rows of a file.

    Parameters
    ----------
    name : str
        The path or URI.
    options : dict
        What ``streams.open`` is given with it.
    """

    name: str
    options: dict[str, Any]

    def open(self) -> Stream:
        """Its rows. Raises StreamError for a file that lacks a column which the options name."""
        try:
            return streams.open(self.name, **self.options)
        except StreamError:
            raise
        except ValueError as error:  # of options that the first file took
            raise StreamError(f"{printable(self.name)}: {error}") from None


class Blocks(NamedTuple):
    """Rows in memory.

    Parameters
    ----------
    name : str
        What messages call the shard.
    blocks : tuple
        (X, y) or (X, y, weight), in order.
    """

    name: str
    blocks: tuple[Any, ...]

    def open(self) -> Stream:
        """Its rows."""
        return Pairs(self.blocks, self.name)


def open_shards(source: str | os.PathLike[str] | Iterable[Any], **options: Any) -> list[File]:
    """Make a shard of each file, in the order in which one machine would read them.

    The first file says which columns the features of all files get, or ``encoding=model.encoding_`` does.

    Parameters
    ----------
    source : str, path or sequence of them
        Files, patterns, folders and URIs, as ``streams.open`` takes them.
    **options
        Those of ``streams.open``.

    Returns
    -------
    list of File
        One for each file.

    Raises
    ------
    FileNotFoundError
        Where a source does not exist.
    ValueError
        For standard input and pipes, and for ``categories="one-hot"``, whose columns are numbered
        in the order in which all rows are read.
    StreamError
        Where the first file cannot be read.
    """
    names = streams.files([source] if isinstance(source, (str, bytes, os.PathLike)) else source)
    for name in names:
        if name == STDIN or is_pipe(name):
            raise ValueError(f"{printable(name)}: a pipe gives its rows once and in one place; shards need files.")
    if options.get("encoding") is not None:
        return [File(name, options) for name in names]
    encoding = streams.open(names[0], **options).encoding
    if encoding is not None and encoding.get("categories") == ONE_HOT:
        raise ValueError("categories='one-hot' numbers values in the order of all rows, which no shard knows: use 'hash'.")
    kept = options if encoding is None else _with_encoding(options, encoding)
    return [File(name, kept) for name in names]


def _with_encoding(options: Mapping[str, Any], encoding: dict[str, Any]) -> dict[str, Any]:
    """The options of files whose features get the columns of an encoding."""
    return {**{name: value for name, value in options.items() if name not in DECIDED}, "encoding": encoding}


def name_columns(model: Any, shards: Sequence[Shard], columns: Sequence[str] | None, seen: Mapping[int, str]) -> None:
    """Tell a trained model how the features of files became columns and what hashed ones are called (``seen``, by hash),
    or the names of the columns of data frames."""
    first = shards[0]
    if isinstance(first, File) and first.options.get("encoding") is not None:
        model.encoding_ = upto(first.options["encoding"], model.learner_.size)
        if "seen" in model.encoding_:
            model.encoding_["seen"] = {"hashes": list(seen), "names": list(seen.values())}
    if columns is not None:
        model.feature_names_in_ = np.array(columns, dtype=object)
