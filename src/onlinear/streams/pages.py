"""What the pages of a text column of a Parquet file hold, by their own headers, as the file's metadata may understate it.

pyarrow gives a page the memory that its header claims, and refuses one that is unpacked to another size. Headers are structs of
Thrift's compact protocol.
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import pyarrow as pa

HEAD, LONGEST_HEAD = 1 << 8, 1 << 24  # bytes of a header that are read at first, and at most
# Fields of a page's header, and of the structs in it that tell the number of values and how they are encoded.
KIND, UNPACKED, PACKED = 1, 2, 3
STRUCTS = {5: (1, 2), 8: (1, 4)}  # of data pages of both versions
VALUES, ENCODING = "values", "encoding"
DICTIONARY = 2  # the kind of a page
SHARED = 7  # an encoding: a text has the beginning of the one before it, by its length alone
_TRUE, _FALSE, _BYTE, _I64, _DOUBLE, _TEXT, _STRUCT = 1, 2, 3, 6, 7, 8, 12


class Pages(NamedTuple):
    """The pages of a column in a row group."""

    size: int  # bytes of all of them, unpacked
    dictionary: int  # bytes of the dictionary
    largest: int  # bytes of the largest page whose texts have their beginnings from others; 0 where there is none


def pages_of(file: Any, column: Any) -> Pages:
    """The pages of a column of a row group, as ``metadata`` describe it. Raises ArrowInvalid where a header is damaged."""
    at = column.data_page_offset
    if column.has_dictionary_page:
        at = min(at, column.dictionary_page_offset or at)
    size = dictionary = largest = seen = 0
    while seen < column.num_values:
        header, length = _header(file, at)
        unpacked, packed = header[UNPACKED], header[PACKED]
        if unpacked < 0 or packed < 0:
            raise pa.ArrowInvalid(f"a page at {at} that is said to have {min(unpacked, packed)} bytes.")
        size += unpacked
        dictionary = max(dictionary, unpacked if header[KIND] == DICTIONARY else 0)
        largest = max(largest, unpacked if header.get(ENCODING) == SHARED else 0)
        seen += max(0, header.get(VALUES, 0))
        at += length + packed
    return Pages(size, dictionary, largest)


def _header(file: Any, at: int) -> tuple[dict[Any, int], int]:
    """The numbers of the header of a page, and its bytes."""
    wanted, end = HEAD, file.size()
    while 0 <= at < end:
        data = bytes(file.read_at(min(wanted, end - at), at))
        try:
            return _numbers(data)
        except (IndexError, struct.error):
            if wanted >= min(LONGEST_HEAD, end - at):
                break
            wanted *= 16
        except (KeyError, RecursionError):
            break
    raise pa.ArrowInvalid(f"expected the header of a page at {at} of {end} bytes.")


def _numbers(data: bytes) -> tuple[dict[Any, int], int]:
    """The whole numbers among the fields of a struct, and those of pages' structs by ``VALUES`` and ``ENCODING``."""
    found, fields = dict[Any, int](), _Fields(data, 0)
    for field, kind, place in fields:
        if kind == _STRUCT and field in STRUCTS:
            inner = {number: _whole(data, begin) for number, held, begin in _Fields(data, place) if _BYTE < held <= _I64}
            found |= {name: inner[number] for name, number in zip((VALUES, ENCODING), STRUCTS[field], strict=True)}
        elif _BYTE < kind <= _I64:
            found[field] = _whole(data, place)
    if not found.keys() >= {KIND, UNPACKED, PACKED}:
        raise KeyError(data)
    return found, fields.at


class _Fields:
    """The fields of a struct, each as its number, its type and its place; ``at`` is then where the struct ends."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at

    def __iter__(self) -> Any:
        number = 0
        while first := self.data[self.at]:
            kind, step = first & 15, first >> 4
            self.at += 1
            if step:
                number += step
            else:
                number, self.at = _whole(self.data, self.at), _after(self.data, self.at, _I64)
            yield number, kind, self.at
            self.at = _after(self.data, self.at, kind)
        self.at += 1


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
        if shift > 63:
            raise KeyError(at)


def _whole(data: bytes, at: int) -> int:
    value, _ = _varint(data, at)
    return (value >> 1) ^ -(value & 1)


def _after(data: bytes, at: int, kind: int) -> int:
    """Where a value ends."""
    if kind in (_TRUE, _FALSE):
        return at
    if kind == _BYTE:
        end = at + 1
    elif kind <= _I64:
        return _varint(data, at)[1]
    elif kind == _DOUBLE:
        end = at + 8
    elif kind == _TEXT:
        size, at = _varint(data, at)
        end = at + size
    elif kind == _STRUCT:
        fields = _Fields(data, at)
        list(fields)
        return fields.at
    else:
        raise KeyError(kind)  # a header has no lists, sets or maps
    if end > len(data):
        raise IndexError(end)
    return end
