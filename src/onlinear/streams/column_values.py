"""Converts columns of pyarrow to arrays of doubles or of text, and notes the rows whose values are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onlinear.compiled.calls import EXACT
from onlinear.streams import text_sizes
from onlinear.streams.column_plan import WANTED, kind_of
from onlinear.streams.encoding import DATE, ERROR, OMIT, TEXT
from onlinear.streams.row_errors import OF_FEATURES, ColumnGroup, RowErrors
from onlinear.text.form import quoted

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def join_arrays(arrays: Sequence[Any]) -> Any:
    """Arrays, one after the other, as one."""
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def write_numbers(
    array: Any, kind: str, group: ColumnGroup, dates: str | None, policy: str, errors: RowErrors, out: np.ndarray
) -> np.ndarray | None:
    """Write the columns that ``array`` holds one after the other to ``out`` as float64, 0 where a value is missing.

    Returns where values are missing, or None where none is.
    """
    if pa.types.is_null(array.type):
        array = array.cast(pa.date32() if kind == DATE else pa.float64())
    if pa.types.is_dictionary(array.type):
        array = _decode(array)
    missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    if kind == DATE:
        out[:] = _count_since_1970(array, dates or "seconds")
    elif kind_of(array.type) == TEXT:
        out[:] = _parse_numbers(array, group, errors)
    else:
        if pa.types.is_decimal(array.type):
            array = array.cast(pa.string()).cast(pa.float64())  # the direct cast does not round to the nearest double
        values = _fill(array)
        if values.dtype in (np.int64, np.uint64) and len(values) and (values.max() > EXACT or values.min() < -EXACT):
            far = (values > EXACT) | ((values < -EXACT) if values.dtype == np.int64 else False)
            hint = "text reads the column as categories"
            words = "expected a number within 2^53 in column"
            errors.note(group, far, lambda name, at: f"{words} {quoted(name)}, got {array[at]} ({hint})")
        out[:] = values
    if not np.isfinite(out).all():
        missing = np.isnan(out) if missing is None else missing | np.isnan(out)
        infinite = np.isinf(out)
        remedy = "max_errors, or --max-errors, leaves out such rows"
        if policy != ERROR or group.hint == OF_FEATURES:
            remedy += "; nulls, or --nulls, makes a text of CSV a missing value"
        errors.note(
            group, infinite, lambda name, at: f"expected a finite number in column {quoted(name)}, got {out[at]} ({remedy})"
        )
    if missing is not None:
        out[missing] = 0.0
        if policy == ERROR:
            words = f"got a missing value{group.hint}"
            errors.note(group, missing, lambda name, at: f"expected {WANTED[kind]} in column {quoted(name)}, {words}")
    return missing


def _fill(array: Any) -> np.ndarray:
    """The values of an array, 0 where it is null."""
    if array.null_count:
        array = pc.fill_null(array, False if pa.types.is_boolean(array.type) else 0)
    return array.to_numpy(zero_copy_only=False)


def _parse_numbers(array: Any, group: ColumnGroup, errors: RowErrors) -> np.ndarray:
    """Text as numbers, blanks around which are none of them, as in CSV."""
    texts = pc.ascii_trim(array.cast(pa.large_string()), " \t")
    try:
        return _fill(texts.cast(pa.float64()))
    except pa.ArrowInvalid:
        values = np.zeros(len(texts))
        wrong = np.zeros(len(texts), bool)
        for row, text in enumerate(texts.to_pylist()):
            try:
                values[row] = 0.0 if text is None else pa.scalar(text).cast(pa.float64()).as_py()
            except pa.ArrowInvalid:
                wrong[row] = True
        errors.note(
            group, wrong, lambda name, at: f"expected a number in column {quoted(name)}, got {quoted(array[at].as_py())}"
        )
        return values


def _count_since_1970(array: Any, unit: str) -> np.ndarray:
    """Dates and times in seconds or days; times of day since midnight, durations as they are."""
    held, kinds = array.type, pa.types
    if kinds.is_date32(held):
        whole = _fill(array.cast(pa.int32())).astype(np.int64)
        return whole * (1 if unit == "days" else 86400)
    size = 10**3 if kinds.is_date64(held) else _PER_SECOND[held.unit]
    narrow = pa.int32() if kinds.is_time32(held) else pa.int64()
    ticks = _fill(array.cast(narrow)).astype(np.int64)
    whole, rest = np.divmod(ticks, size * (86400 if unit == "days" else 1))
    return whole + rest / (size * (86400 if unit == "days" else 1))


def known_values(array: Any, kind: str, dates: str | None) -> np.ndarray:
    """The values of a column that are there and right, as float64."""
    found, errors = np.empty(len(array)), RowErrors()
    missing = write_numbers(array, kind, ColumnGroup.of([(0, 0, "")]), dates, OMIT, errors, found)
    wrong = np.zeros(len(found), bool) if missing is None else missing.copy()
    wrong[list(errors)] = True
    return found[~wrong]


def plain_values(array: Any, kind: str) -> list[Any]:
    """The values of a column one by one, None where missing: text of categories, scalars of dates, else floats."""
    if kind == TEXT:
        found: list[Any] = text_array(array).to_pylist()
        return found
    if kind == DATE:
        plain_dates = _decode(array) if pa.types.is_dictionary(array.type) else array
        return [value if value.is_valid else None for value in plain_dates]
    values = np.empty(len(array))
    missing = write_numbers(array, kind, ColumnGroup.of([(0, 0, "")]), None, OMIT, RowErrors(), values)
    plain: list[Any] = values.tolist()
    return plain if missing is None else [None if gone else value for gone, value in zip(missing.tolist(), plain, strict=True)]


def text_array(array: Any) -> Any:
    """A column as a large_string array."""
    return (_decode(array) if pa.types.is_dictionary(array.type) else array).cast(pa.large_string())


def _decode(array: Any) -> Any:
    """A dictionary's values, one for each row."""
    if pa.types.is_string_view(array.type.value_type):  # which pyarrow cannot take apart
        array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.large_string()))
    return array.dictionary_decode()


def text_arrays(arrays: Sequence[Any]) -> Any:
    """Columns, one after the other, as a large_string array; those that are plain text are converted in one call."""
    quick = [pa.types.is_string(array.type) for array in arrays]
    chosen = [array for array, is_quick in zip(arrays, quick, strict=True) if is_quick]
    done = iter(pa.chunked_array(chosen, pa.string()).cast(pa.large_string()).chunks)
    return join_arrays([next(done) if is_quick else text_array(array) for array, is_quick in zip(arrays, quick, strict=True)])


def note_missing_text(text: Any, group: ColumnGroup, policy: str, errors: RowErrors) -> None:
    """Note the rows whose text is missing, where the policy makes that an error."""
    if policy == ERROR and text.null_count:
        missing = text.is_null().to_numpy(zero_copy_only=False)
        errors.note(group, missing, lambda name, at: f"expected text in column {quoted(name)}, got a missing value{group.hint}")


def note_long_text(sizes: np.ndarray, group: ColumnGroup, errors: RowErrors) -> None:
    """Note the rows whose text has too many bytes to be read as words."""
    most = text_sizes.MOST
    words = f"expected at most {most:,} bytes of words in column"
    errors.note(group, sizes > most, lambda name, at: f"{words} {quoted(name)}, got {sizes[at]:,}")
