"""How many bytes the text of a batch has: where texts are long, few rows are as much as a block takes.

A dictionary, and views, hold a long text once for many rows, which each get it when they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

MOST = 1 << 25  # bytes of the text of a block, and of one text that is read as words


def parts_of(batch: Any, columns: Mapping[str, int]) -> Iterator[tuple[int, Any]]:
    """The batch as parts of about ``MOST`` bytes of text, each with the place of its first row.

    ``columns`` has the columns that are read as text, and how often the bytes of each count.
    """
    held = [(array, columns[name]) for name, array in zip(batch.schema.names, batch.columns, strict=True) if name in columns]
    if sum(factor * _bound(array) for array, factor in held) <= MOST:
        yield 0, batch
        return
    ends = np.cumsum(sum(factor * sizes(array) for array, factor in held))
    first = 0
    while first < batch.num_rows:
        before = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + MOST, side="right")))
        yield first, batch.slice(first, last - first)
        first = last


def is_text(held: Any) -> bool:
    """Whether a column of this type holds text, one for each row."""
    return bool(pa.types.is_string(held) or pa.types.is_large_string(held) or pa.types.is_string_view(held))


def longest(array: Any) -> int:
    """The bytes of the longest text of an array."""
    return int(sizes(array).max(initial=0))


def _bound(array: Any) -> int:
    """Bytes that the texts of an array have at most, one after the other."""
    return len(array) * longest(array.dictionary) if pa.types.is_dictionary(array.type) else in_memory(array)


def in_memory(array: Any) -> int:
    """Bytes of an array; of views, whose ``nbytes`` older releases of pyarrow do not tell, those of the texts."""
    return int(sizes(array).sum()) if pa.types.is_string_view(array.type) else int(array.nbytes)


def sizes(array: Any) -> np.ndarray:
    """The bytes of each text; what is no text counts as none."""
    kinds = pa.types
    if kinds.is_dictionary(array.type):
        places = pc.fill_null(array.indices, len(array.dictionary)).to_numpy(zero_copy_only=False)
        return np.append(sizes(array.dictionary), 0)[places]
    if kinds.is_string_view(array.type):  # of which pyarrow tells no lengths: a view begins with its own
        views = np.frombuffer(array.buffers()[1], np.int32)[4 * array.offset : 4 * (array.offset + len(array)) : 4]
        return np.where(array.is_valid().to_numpy(zero_copy_only=False), views, 0).astype(np.int64)
    if not is_text(array.type):
        return np.zeros(len(array), np.int64)
    return pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
