"""Reads from their descriptions how much memory the record batches of an Arrow file ask for, before any is given, and how many
rows they have.

pyarrow gives a batch the memory that its compressed buffers claim. A few bytes can claim gigabytes, so the claims are summed
first. The layout is that of Apache Arrow's columnar format: a footer, and a flatbuffer before the buffers of each batch.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa

TAIL = 10  # the footer's length and "ARROW1"
CONTINUED = 0xFFFFFFFF
# Fields by their place in their tables.
FOOTER_DICTIONARIES, FOOTER_BATCHES = 2, 3
MESSAGE_KIND, MESSAGE_HEADER = 1, 2
BATCH_ROWS, BATCH_BUFFERS, BATCH_COMPRESSION = 0, 2, 3
DICTIONARY_DATA = 1
DICTIONARY = 2  # the kind of a message


class MessagePlace(NamedTuple):
    """Where a message stands in the file."""

    offset: int
    description: int  # bytes
    body: int  # bytes


class FlatTable(NamedTuple):
    """A table of a flatbuffer."""

    data: bytes
    at: int

    @classmethod
    def root(cls, data: bytes) -> FlatTable:
        """The outermost table."""
        return cls(data, struct.unpack_from("<I", data)[0])

    def field(self, place: int) -> int:
        """Where a field stands, 0 for none."""
        described = self.at - struct.unpack_from("<i", self.data, self.at)[0]
        if described < 0 or 4 + 2 * place >= struct.unpack_from("<H", self.data, described)[0]:
            return 0
        offset = struct.unpack_from("<H", self.data, described + 4 + 2 * place)[0]
        return self.at + offset if offset else 0

    def table(self, place: int) -> FlatTable | None:
        """A field that is a table."""
        at = self.field(place)
        return FlatTable(self.data, at + struct.unpack_from("<I", self.data, at)[0]) if at else None

    def structs(self, place: int, layout: str) -> Iterator[tuple[int, ...]]:
        """The members of a field that is a vector of structs."""
        at = self.field(place)
        if not at:
            return
        at += struct.unpack_from("<I", self.data, at)[0]
        count, size = struct.unpack_from("<I", self.data, at)[0], struct.calcsize(layout)
        for k in range(count):
            yield struct.unpack_from(layout, self.data, at + 4 + k * size)


def largest(file: Any) -> int:
    """The bytes that the largest record batch or dictionary of an Arrow file asks for.

    Raises ArrowInvalid where the descriptions are damaged.
    """
    with _damage_told():
        return max((_size(file, block) for block in _blocks(file, FOOTER_DICTIONARIES, FOOTER_BATCHES)), default=0)


def rows_of_batches(file: Any) -> list[int]:
    """The rows that each record batch of an Arrow file says it has. Raises ArrowInvalid where the descriptions are damaged."""
    with _damage_told():
        return [_rows(_batch(file, block)) for block in _blocks(file, FOOTER_BATCHES)]


@contextmanager
def _damage_told() -> Iterator[None]:
    try:
        yield
    except (struct.error, IndexError, OverflowError) as error:
        raise pa.ArrowInvalid(f"the description of its batches is damaged ({error}).") from None


def _at(file: Any, offset: int, length: int) -> bytes:
    if offset < 0 or length < 0 or offset + length > file.size():
        raise pa.ArrowInvalid(f"a description that is said to stand at {offset} and to have {length} bytes.")
    return bytes(file.read_at(length, offset))


def _blocks(file: Any, *places: int) -> Iterator[MessagePlace]:
    size = file.size()
    if size < TAIL or _at(file, size - 6, 6) != b"ARROW1":
        raise pa.ArrowInvalid("no Arrow file: it does not end as one does.")
    length = struct.unpack("<i", _at(file, size - TAIL, 4))[0]
    footer = FlatTable.root(_at(file, size - TAIL - length, length))
    described = 0
    for place in places:
        for found in footer.structs(place, "<qi4xq"):
            block = MessagePlace(*found)
            described += max(0, block.description)
            if described > size:  # descriptions that overlap would be read again and again
                raise pa.ArrowInvalid(f"expected descriptions of at most {size} bytes, got more.")
            yield block


def _batch(file: Any, block: MessagePlace) -> FlatTable | None:
    """What describes a record batch, or that of a dictionary."""
    data = _at(file, block.offset, block.description)
    message = FlatTable.root(data[8:] if struct.unpack_from("<I", data)[0] == CONTINUED else data[4:])
    kind, batch = message.field(MESSAGE_KIND), message.table(MESSAGE_HEADER)
    return batch.table(DICTIONARY_DATA) if batch is not None and kind and message.data[kind] == DICTIONARY else batch


def _rows(batch: FlatTable | None) -> int:
    at = 0 if batch is None else batch.field(BATCH_ROWS)
    return 0 if batch is None or not at else int(struct.unpack_from("<q", batch.data, at)[0])


def _size(file: Any, block: MessagePlace) -> int:
    """The bytes of a batch once it is unpacked."""
    batch = _batch(file, block)
    if batch is None or not batch.field(BATCH_COMPRESSION):
        return block.body
    total = 0
    for offset, length in batch.structs(BATCH_BUFFERS, "<qq"):
        held = length
        if length >= 8:
            said = struct.unpack("<q", _at(file, block.offset + block.description + offset, 8))[0]
            held = length if said < 0 else said
        total += held
    return total
