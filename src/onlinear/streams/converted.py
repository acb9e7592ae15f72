"""The layout of converted files: sparse rows as columns of a Parquet or Arrow IPC file, so that later passes parse no text.

    label    double
    weight   double, missing where it is 1
    indices  list of uint32, from 0, ascending
    values   list of double, or of float where asked for; finite, none equal to 0

In the Parquet files written here a row's indices and values are binary instead: the numbers' bytes, little-endian. Those are
read three times as fast as lists, of whose every number a level is decoded. Either form is read from either kind of file.

A record batch or row group holds about a million entries and is read back as one block. The metadata's entry
``onlinear-rows`` is JSON: version, rows, n_features (1 + the largest column), base (the first index in the text the rows came
from), task, classes, labels (the classes' names), encoding (how named features became columns) and float32 (whether values are
floats). A column of a Parquet file is compressed by LZ4 where that halves it; Arrow files are mapped, and kernels work on the
file's own pages.

One compiled pass checks every block: a damaged or hostile file gives an error, and no wrong row.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from onlinear.rows import LARGEST_COLUMN
from onlinear.streams.arrow import ERRORS, check_names, first_line, opened
from onlinear.streams.blocks import StreamError
from onlinear.streams.files import is_pipe
from onlinear.streams.suffixes import suffix_of
from onlinear.text.names import printable

KEY = b"onlinear-rows"
VERSION = 1
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
COLUMNS = ("label", "weight", "indices", "values")
T = TypeVar("T")


class Header(NamedTuple):
    """The metadata of a converted file; the module's docstring explains the fields."""

    rows: int
    n_features: int
    base: int = 1
    task: str | None = None
    classes: tuple[float, ...] | None = None
    labels: tuple[str, ...] | None = None
    encoding: dict[str, Any] | None = None
    float32: bool = False


def is_converted(path: str | os.PathLike[str]) -> bool:
    """Whether a file is a converted one, by its suffix and its metadata."""
    suffix = suffix_of(path)
    if suffix not in PARQUET + ARROW or is_pipe(os.fspath(path)):
        return False
    try:
        return KEY in (_read_schema(os.fspath(path)).metadata or {})
    except ERRORS:
        return False  # the reader of tables will say what is wrong with it


def read_header(path: str) -> Header:
    """The header of a converted file. Raises StreamError where the metadata or the columns are not those of one."""
    (schema,) = explain_damage(path, (_read_schema(path) for _ in range(1)))
    if KEY not in (schema.metadata or {}):
        raise StreamError(f"{printable(path)}: expected the metadata {KEY.decode()!r} of sparse rows, got none.")
    try:
        found = json.loads(schema.metadata[KEY])
        version = found.pop("version")
        if type(version) is not int:
            raise TypeError(f"version {version!r}")
        newer = version > VERSION
        header = Header(0, 0) if newer else Header(**found)
        if not newer and (version != VERSION or not _is_plausible(header)):
            raise ValueError("a value is not what it must be")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StreamError(
            f"{printable(path)}: the metadata of sparse rows are damaged ({type(error).__name__}: {error})."
        ) from None
    if newer:
        raise StreamError(
            f"{printable(path)}: sparse rows of version {version}; this release reads up to {VERSION}. Upgrade onlinear."
        )
    kinds = {name: schema.field(name).type for name in COLUMNS if schema.names.count(name) == 1}
    double = kinds.get("label") == kinds.get("weight", pa.float64()) == pa.float64()
    if not (double and _holds(kinds.get("indices"), pa.uint32()) and _holds(kinds.get("values"), pa.float32(), pa.float64())):
        expected = "label, weight (double), indices and values (lists or binary)"
        raise StreamError(f"{printable(path)}: expected columns {expected}, got {schema.names}.")
    return header


def _holds(kind: Any, *numbers: Any) -> bool:
    """Whether a column holds lists of numbers of one of these types, or bytes."""
    return kind is not None and (kind == pa.binary() or (pa.types.is_list(kind) and kind.value_type in numbers))


def _is_plausible(header: Header) -> bool:
    classes, labels = header.classes, header.labels
    return (
        all(type(count) is int and count >= 0 for count in header[:3])
        and header.n_features <= LARGEST_COLUMN + 1
        and header.base in (0, 1)
        and header.task in (None, "classify", "regress")
        and (classes is None or all(type(label) in (int, float) and np.isfinite(label) for label in classes))
        and (labels is None or all(type(name) is str for name in labels))
        and (header.encoding is None or type(header.encoding) is dict)
        and type(header.float32) is bool
    )


def _read_schema(path: str) -> Any:
    with opened(path) as file:
        if suffix_of(path) in PARQUET:
            return check_names(pq.read_schema(file, memory_map=False))
        return check_names(pa.ipc.open_file(file).schema)


def explain_damage(path: str, parts: Iterator[T]) -> Iterator[T]:
    """Pass the parts of a file on; an error of Arrow becomes a StreamError that names the file."""
    try:
        yield from parts
    except FileNotFoundError:
        raise FileNotFoundError(f"no file at {path!r}.") from None
    except ERRORS as error:
        words = first_line(error).removesuffix(".")
        raise StreamError(
            f"{printable(path)}: cannot be read to its end, the file is damaged or cut short ({words})."
        ) from None
