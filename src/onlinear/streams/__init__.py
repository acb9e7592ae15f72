"""Readers: a source of rows -> blocks of checked rows, in bounded memory.

    for block in streams.open("train.svm.gz"):
        learner.learn(block.X, block.y)

A stream can be iterated several times (one pass each), except standard input.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from onlinear.streams import encoding as _encoding
from onlinear.streams import formats
from onlinear.streams.blocks import Block, Stream, StreamError
from onlinear.streams.bundled import BUNDLED, Bundled
from onlinear.streams.files import STDIN, is_pipe
from onlinear.streams.formats import FORMATS
from onlinear.streams.lines import BLOCK_BYTES
from onlinear.streams.shuffle import Shuffled
from onlinear.streams.suffixes import TABLES, is_uri
from onlinear.streams.svmlight import Svmlight
from onlinear.text.form import unknown

__all__ = ["BUNDLED", "FORMATS", "Block", "Shuffled", "Stream", "StreamError", "open"]


def open(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    format: str = "auto",
    base: int | None = None,
    sort: bool = False,
    target: str | None = None,
    weight: str | None = None,
    features: Iterable[str] | None = None,
    exclude: Iterable[str] = (),
    text: Iterable[str] = (),
    numbers: Iterable[str] = (),
    categories: str = "hash",
    hash_bits: int | None = None,
    missing: str | Mapping[str, str] = "error",
    dates: str | None = None,
    classes: Sequence[str] | None = None,
    nulls: Sequence[str] | None = None,
    delimiter: str | None = None,
    unlabelled: bool | None = None,
    encoding: Mapping[str, Any] | None = None,
    max_errors: int = 0,
    block_bytes: int = BLOCK_BYTES,
) -> Stream:
    """A stream of the rows of one or several sources, in order.

    ``source``: files (text also as .gz, .xz, .bz2, .zst), patterns such as ``part-*.svm``, folders of Parquet, Arrow or CSV
    files, URIs such as s3://bucket/folder that pyarrow opens, ``-`` for standard input, or a bundled data set (``BUNDLED``).
    ``format``: svmlight, vw, parquet, arrow, csv, columns (any of the last three), or auto: by suffix, else svmlight. Parquet
    and Arrow files of converted rows (``onlinear convert``) are known by what is in them.
    ``max_errors``: wrong rows that are skipped; ``block_bytes``: text or numbers in memory at a time. docs/streams.md has all.

    svmlight: ``base``, the first index in the files, 1 or 0 (default: that of the encoding, else 1); ``sort``: accept indices
    in any order, repeated ones are summed.

    Columns: ``target`` and ``weight`` name columns; ``features`` and ``exclude`` names or patterns (default: all others).
    ``text``, ``numbers``: columns to be read as categories, or as numbers, whatever their type. ``categories``: hash, or
    one-hot by a dictionary. ``missing``: error, omit or indicator, for all or as 'numbers=omit,categories=indicator';
    ``dates``: seconds or days since 1970; ``classes``: the names of a text target, in the order of ``Stream.labels``.
    CSV: ``nulls``, the texts that are missing values; ``delimiter``.

    ``hash_bits``: text goes to 2^hash_bits columns (default 18). ``encoding``: that of another stream, whose columns these
    are to be. ``unlabelled``: rows may lack a target, their y is nan; None: only with an encoding and without a target.

    Raises FileNotFoundError; ValueError for options that do not fit; StreamError as ``file:line: expected ..., got ...``.
    """
    names = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    if not names:
        raise ValueError("source must name at least one file.")
    if format not in FORMATS:
        raise unknown("format", format, FORMATS)
    paths = [path for name in names for path in _expanded(os.fspath(name))]
    if format == "auto" and len(paths) == 1 and paths[0] in BUNDLED and not os.path.exists(paths[0]):
        return Bundled(paths[0])
    for path in paths:
        _must_exist(path)
    kind = formats.one_format(paths, format, encoding)
    options = {name: value for name, value in locals().items() if name in formats.ONLY_FOR}
    formats.must_fit(kind, options, hash_bits, encoding)
    if kind == "svmlight":
        first = _encoding.base_of(encoding, base)
        return Svmlight(tuple(paths), base=first, ordered=not sort, max_errors=max_errors, block_bytes=block_bytes)
    if encoding is not None and _encoding.format_of(encoding) == "svmlight":
        encoding = None  # says nothing of names
    if kind in TABLES:
        from onlinear.streams.column_plan import TableOptions
        from onlinear.streams.columns import Columns
        from onlinear.streams.converted_reader import Converted

        places = _places(paths)
        if formats.hold_converted_rows(places, kind, options):
            return Converted(tuple(place.path for place in places))
        own = {name: value for name, value in options.items() if name in TableOptions._fields and value is not None}
        table = TableOptions(**own, hash_bits=hash_bits, unlabelled=unlabelled, max_errors=max_errors)
        return Columns(places, kind, table, encoding, block_bytes)
    from onlinear.streams.vowpal import Vowpal

    bits = _encoding.bits_of({"hash_bits": hash_bits} if encoding is None else encoding)
    lacking = encoding is not None if unlabelled is None else unlabelled
    return Vowpal(tuple(paths), hash_bits=bits, unlabelled=lacking, max_errors=max_errors, block_bytes=block_bytes)


def local_files(source: Sequence[str]) -> list[str]:
    """The files of this machine that a source is read from, ``-`` included; what does not exist is left to ``open``."""
    found = []
    for path in (path for name in source for path in _expanded(name)):
        if os.path.isdir(path) or path.startswith("file:"):
            from onlinear.streams.places import find_places

            found += [place.path for place in find_places(path)]
        elif path == STDIN or (not is_uri(path) and os.path.exists(path)):
            found.append(path)
    return found


def _expanded(name: str) -> list[str]:
    if "://" in name or not any(c in name for c in "*?[") or os.path.exists(name):
        return [name]
    found = sorted(glob.glob(name))
    if not found:
        raise FileNotFoundError(f"no file matches {name!r}.")
    return found


def _must_exist(path: str) -> None:
    if path != STDIN and "://" not in path and not os.path.exists(path):
        near = unknown("data set", path, BUNDLED) if os.path.basename(path) == path and "." not in path else ""
        raise FileNotFoundError(f"no file at {path!r}.{f' As a name: {near}' if near else ''}")


def _places(paths: Sequence[str]) -> list[Any]:
    from onlinear.streams.places import Place, find_places

    files = [[Place(path, path)] if os.path.isfile(path) or is_pipe(path) else find_places(path) for path in paths]
    return [place for found in files for place in found]
