"""Public: reads sources of rows as blocks of checked rows, in bounded memory. ``__all__`` and ``encoding.names`` are public.

    for block in streams.open("train.svm.gz"):
        learner.learn(block.X, block.y)

A stream can be iterated several times (one pass each), except standard input.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from onlinear.files.paths import exists
from onlinear.streams import encoding as _encoding
from onlinear.streams import formats
from onlinear.streams.blocks import Block, Stream, StreamError
from onlinear.streams.bundled import BUNDLED, Bundled
from onlinear.streams.decided import must_have_bits, must_hold_namespaces
from onlinear.streams.files import STDIN, is_open_file, is_pipe
from onlinear.streams.formats import FORMATS
from onlinear.streams.frames import NAME, as_arrow, is_table, one_by_one
from onlinear.streams.interactions import pairs_of_namespaces
from onlinear.streams.lines import BLOCK_BYTES
from onlinear.streams.shuffle import Shuffled
from onlinear.streams.suffixes import ARROW, TABLES, is_uri
from onlinear.streams.svmlight import Svmlight
from onlinear.text.form import check_flag, unknown
from onlinear.text.names import printable

__all__ = ["BUNDLED", "FORMATS", "Block", "Shuffled", "Stream", "StreamError", "open"]


def open(
    source: Any,
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
    categories: str | None = None,
    hash_bits: int | None = None,
    interactions: Iterable[Any] = (),
    ngrams: Any = (),
    bins: Any = (),
    missing: str | Mapping[str, str] | None = None,
    dates: str | None = None,
    classes: Sequence[str] | None = None,
    nulls: Sequence[str] | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    unlabelled: bool | None = None,
    encoding: Mapping[str, Any] | None = None,
    max_errors: int = 0,
    block_bytes: int = BLOCK_BYTES,
) -> Stream:
    """Open one or several sources as a stream of blocks of rows, in the order of the rows and in bounded memory.

    docs/streams.md describes every format and option.

    Parameters
    ----------
    source : str, path, sequence of them, or table
        Files (text also as .gz, .xz, .bz2, .zst), patterns such as ``part-*.svm``, folders of Parquet, Arrow or CSV files, URIs
        such as ``s3://bucket/folder`` that pyarrow opens, ``-`` for standard input, or a bundled data set (``BUNDLED``).
        Or a table in memory: a pandas or polars data frame, an Arrow table or batch, or a list of dicts. It is read as a
        Parquet file of it would be.
    format : str, default "auto"
        One of ``FORMATS``: svmlight, vw, parquet, arrow, csv, columns (any of the last three), or auto: by suffix, else
        svmlight. Parquet and Arrow files of converted rows (``onlinear convert``) are recognised by their metadata.
    base : {0, 1}, optional
        svmlight: the first index in the files. Default: that of the encoding, else 1.
    sort : bool, default False
        svmlight: accept indices in any order, and sum repeated ones.
    target, weight : str, optional
        Tables: the column to predict, and the column of the rows' weights, at least 0.
    features, exclude : iterable of str, optional
        Tables: names or patterns of the columns to use, and of columns to leave out. Default: all but target and weight.
    text, numbers : iterable of str, optional
        Tables: columns to read as categories, or as numbers, whatever their type.
    categories : {"hash", "one-hot"}, optional
        Tables: whether text is hashed, or numbered by a dictionary. Default: as in the encoding, else hash.
    hash_bits : int, optional
        Tables and vw: text is hashed to 2^hash_bits columns, from 1 to 30. Default: 18.
    interactions : iterable of pairs of str, default ()
        Tables and vw: pairs of columns or namespaces to cross, as ``("a", "b")`` or ``"a:b"``, hashed to the same 2^hash_bits
        columns. A pattern such as ``*`` stands for all that it fits. A number with itself is its square.
    ngrams : mapping of str to int, default ()
        Tables: text columns to read as words, and the most words of an n-gram: ``{"review": 2}`` or ``"review:2"``. Each
        n-gram of up to so many words is an entry, hashed. ``2`` alone is for all text columns.
    bins : mapping of str to int or list of float, default ()
        Tables: numbers to read as categories, by the bins they fall into: edges ``{"age": [18, 30, 65]}`` or
        ``"age:18:30:65"``, or a number of bins ``{"price": 10}`` or ``"price:10"``, which the first 16,384 rows fill equally.
    missing : str or mapping, optional
        Tables: error, omit or indicator, for all columns or as "numbers=omit,categories=indicator". Default: as in the
        encoding, else error.
    dates : {"seconds", "days"}, optional
        Tables: read dates as numbers since 1970. Default: refuse them.
    classes : sequence of str, optional
        Tables: the names of a text target, in the order of ``Stream.labels``.
    nulls : sequence of str, optional
        CSV: the texts that are missing values.
    delimiter : str, optional
        CSV: the text between two values, such as ``";"``. Default: by suffix.
    decimal : {".", ","}, optional
        CSV: what stands before the decimals of a number. Default: a point.
    unlabelled : bool, optional
        Tables and vw: whether rows may lack a target; their y is nan. Default: only with an encoding and without a target.
    encoding : mapping, optional
        The ``encoding`` of another stream or of a model, whose columns the features get. Options that ask for other columns are
        refused.
    max_errors : int, default 0
        Wrong rows of a pass that are skipped; the next one raises.
    block_bytes : int, default 2097152
        Text or numbers in memory at a time, in bytes.

    Returns
    -------
    Stream
        A source of ``Block``. It can be iterated several times, except standard input and pipes.

    Raises
    ------
    FileNotFoundError
        Where a source does not exist.
    ValueError
        Where options do not fit the format.
    StreamError
        Where input cannot be read, as ``file:line: expected ..., got ...``.

    Examples
    --------
    >>> from onlinear import Learner, streams
    >>> learner = Learner("comid,eta=0.1", "squared", "l1=1e-3", scale="rms")
    >>> stream = streams.open("diabetes")
    >>> for block in stream:
    ...     _ = learner.learn(block.X, block.y)
    >>> stream.rows, learner.weights().shape
    (442, (10,))
    """
    if format not in FORMATS:
        raise unknown("format", str(format), FORMATS)
    asked = formats.as_asked({name: value for name, value in locals().items() if name in formats.ONLY_FOR})
    hash_bits = int(hash_bits) if isinstance(hash_bits, np.integer) else hash_bits
    unlabelled = None if unlabelled is None else check_flag("unlabelled", unlabelled)
    shared = {"hash_bits": hash_bits, "unlabelled": unlabelled, "max_errors": max_errors}
    if is_table(source):
        return _open_memory(source, format, asked, shared, encoding, block_bytes)
    paths = [path for name in _names_in(source) for path in _expand(name)]
    if format == "auto" and len(paths) == 1 and paths[0] in BUNDLED and not os.path.exists(paths[0]):
        formats.refuse_options(asked, hash_bits, f"is for files and tables; the data set {paths[0]!r} is as it is.")
        return Bundled(paths[0])
    for path in paths:
        _must_exist(path)
    _refuse_repeated_pipes(paths)
    kind = formats.one_format(paths, format, encoding)
    formats.must_fit(kind, asked, hash_bits, encoding)
    if kind == "svmlight":
        first = _encoding.base_of(encoding, base)
        return Svmlight(tuple(paths), base=first, ordered=not sort, max_errors=max_errors, block_bytes=block_bytes)
    if encoding is not None and _encoding.format_of(encoding) == "svmlight":
        encoding = None  # it has no names
    if kind in TABLES:
        return _open_tables(paths, kind, asked, shared, encoding, block_bytes)
    return _open_vowpal(paths, asked["interactions"], shared, encoding, block_bytes)


def _names_in(source: Any) -> list[str]:
    """The names of files in a source that is no table. Raises TypeError for what is no name, ValueError where there is none."""
    name = (str, bytes, os.PathLike)
    if is_open_file(source) or not (isinstance(source, name) or hasattr(source, "__iter__")):
        held = "an open file: give its name, or a URI such as s3://bucket/file" if is_open_file(source) else repr(source)
        raise TypeError(f"source must be the name of a file, several of them, or a table, got {held}.")
    names = [source] if isinstance(source, name) else list(source)
    if other := [given for given in names if not isinstance(given, name)]:
        held = f"{type(source).__name__} of {type(other[0]).__name__}"
        hint = one_by_one(other[0]) or "fit takes arrays"
        raise TypeError(f"source must be the name of a file, several of them, or a table, got {held}; {hint}.")
    if not names:
        raise ValueError("source must name at least one file, or be a table.")
    return [os.fsdecode(given) for given in names]


def _open_vowpal(
    paths: Sequence[str],
    interactions: Iterable[Any],
    shared: Mapping[str, Any],
    encoding: Mapping[str, Any] | None,
    block_bytes: int,
) -> Stream:
    """Open Vowpal Wabbit text. ``shared`` are the options that tables have too."""
    from onlinear.streams.vowpal import Vowpal

    hash_bits, lacking = shared["hash_bits"], shared["unlabelled"]
    bits = _encoding.bits_of({"hash_bits": hash_bits} if encoding is None else encoding)
    pairs = pairs_of_namespaces(interactions) if encoding is None else _encoding.crosses_of(encoding)
    must_have_bits(bits, hash_bits)
    must_hold_namespaces(pairs, interactions)
    return Vowpal(
        tuple(paths),
        hash_bits=bits,
        interactions=pairs,
        unlabelled=encoding is not None if lacking is None else lacking,
        max_errors=shared["max_errors"],
        block_bytes=block_bytes,
    )


def _open_tables(
    paths: Sequence[str],
    kind: str,
    options: Mapping[str, Any],
    shared: Mapping[str, Any],
    encoding: Mapping[str, Any] | None,
    block_bytes: int,
) -> Stream:
    """Open files of named columns, or of converted rows. ``options`` are those of tables, ``shared`` those of vw too."""
    from onlinear.streams.converted_reader import Converted

    places = _places(paths)
    if formats.hold_converted_rows(places, kind, options, shared["hash_bits"]):
        return Converted(tuple(place.path for place in places))
    formats.must_have_named_columns(kind, encoding)
    return _columns(places, kind, {**options, **shared}, encoding, block_bytes)


def _open_memory(
    source: Any,
    format: str,
    options: Mapping[str, Any],
    shared: Mapping[str, Any],
    encoding: Mapping[str, Any] | None,
    block_bytes: int,
) -> Stream:
    """Open a table in memory, by the rules that an Arrow file of it has."""
    from onlinear.streams.places import Place

    if format not in ("auto", "columns", ARROW):
        raise ValueError(f"format={format!r} is for files, and the source is a table in memory: leave format out.")
    formats.must_fit(ARROW, options, shared["hash_bits"], encoding)
    formats.must_have_named_columns(ARROW, encoding)
    numbered = encoding is None or _encoding.format_of(encoding) == "svmlight"  # which has no names
    names = () if encoding is None or numbered else [name for name, _ in encoding["features"]]
    others = None if encoding is None else encoding.get("target"), options["target"], options["weight"]

    def wanted(columns: Sequence[str]) -> set[str | None]:
        """The columns whose values are read; all where the plan finds that features or exclude name none."""
        try:
            chosen = _encoding.choose_columns(columns, options["features"], options["exclude"]) if numbered else names
        except ValueError:
            return set(columns)
        return {*chosen, *others}

    table = as_arrow(source, names, wanted)
    return _columns([Place(NAME, "", table=table)], ARROW, {**options, **shared}, None if numbered else encoding, block_bytes)


def _columns(
    places: Sequence[Any], kind: str, options: Mapping[str, Any], encoding: Mapping[str, Any] | None, block_bytes: int
) -> Stream:
    from onlinear.streams.columns import Columns
    from onlinear.streams.table_options import TableOptions

    own = {name: value for name, value in options.items() if name in TableOptions._fields and value is not None}
    return Columns(places, kind, TableOptions(**own), encoding, block_bytes)


def local_files(source: Sequence[str]) -> list[str]:
    """The files of this machine behind a source's names, ``-`` included. Names that do not exist are left out: ``open`` refuses
    them."""
    found = []
    for path in (path for name in source for path in _expand(name)):
        if os.path.isdir(path) or path.startswith("file://"):
            from onlinear.streams.places import find_places

            found += [place.path for place in find_places(path)]
        elif path == STDIN or (not is_uri(path) and os.path.exists(path)):
            found.append(path)
    return found


def files(source: Iterable[str | bytes | os.PathLike[str]]) -> list[str]:
    """The files and URIs behind a source's names, each to be opened by itself, in the order of their rows.

    Raises FileNotFoundError where there is none, and ValueError for folders whose names give columns (``key=value``) and for
    bundled data sets.
    """
    found: list[str] = []
    for name in (path for given in source for path in _expand(os.fsdecode(given))):
        if name in BUNDLED and not os.path.exists(name):
            raise ValueError(f"{name} is a bundled data set, which is no file.")
        _must_exist(name)
        if not (os.path.isdir(name) or is_uri(name)):
            found.append(name)
            continue
        from onlinear.streams.places import find_places

        places = find_places(name)
        if any(place.keys for place in places):
            raise ValueError(f"{printable(name)}: folders named key=value give columns that their files alone do not have.")
        found += [place.name for place in places]
    if not found:
        raise ValueError("source must name at least one file.")
    return found


def _expand(name: str) -> list[str]:
    if "://" in name or not any(c in name for c in "*?[") or os.path.exists(name):
        return [name]
    found = sorted(glob.glob(name))
    if not found:
        raise FileNotFoundError(f"no file matches {name!r}.")
    return found


def _must_exist(path: str) -> None:
    if path != STDIN and "://" not in path and not exists(path):
        raise FileNotFoundError(f"no file at {path!r}.{_as_data_set(path)}")


def _as_data_set(name: str) -> str:
    """What a name that no file has says of the bundled data sets, after a blank."""
    if name in BUNDLED:
        return f" The data set {name!r} is read by itself, and without a format."
    return f" As a name: {unknown('data set', name, BUNDLED)}" if os.path.basename(name) == name and "." not in name else ""


def _refuse_repeated_pipes(paths: Sequence[str]) -> None:
    for path in (path for path, times in Counter(paths).items() if times > 1 and is_pipe(path)):
        name = "standard input" if path == STDIN else f"the pipe {printable(path)}"
        raise ValueError(f"source names {name} more than once, which gives its rows once.")


def _places(paths: Sequence[str]) -> list[Any]:
    from onlinear.streams.places import Place, find_places

    files = [[Place(path, path)] if os.path.isfile(path) or is_pipe(path) else find_places(path) for path in paths]
    return [place._replace(name=printable(place.name)) for found in files for place in found]
