"""Parquet files whose metadata understate their texts, or whose texts are far longer than what is stored of them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from onlinear import streams
from onlinear.streams import StreamError, row_groups, text_sizes
from onlinear.streams.arrow import opened
from onlinear.streams.pages import pages_of
from onlinear.streams.row_groups import RowGroups

ROWS, LONG = 4096, "x" * (1 << 12)
LAYOUTS = {
    "dictionary": {},
    "plain": {"use_dictionary": False},
    "version 2": {"data_page_version": "2.0", "compression": "zstd"},
    "small pages": {"data_page_size": 100, "write_batch_size": 10},
    "shared": {"use_dictionary": False, "column_encoding": {"c": "DELTA_BYTE_ARRAY"}},
}


def written(path, texts, **layout):
    pq.write_table(pa.table({"c": texts, "y": [k % 2 for k in range(len(texts))]}), path, **layout)
    return path


def rows_at_a_time(path):
    reader = pq.ParquetFile(path)
    return [rows for _, rows in RowGroups(reader, opened(str(path)), ["c", "y"], near=True).runs(1 << 16)]


def understated(path, said):
    """The file, whose metadata say that its texts have ``said`` bytes."""
    data, column = path.read_bytes(), pq.ParquetFile(path).metadata.row_group(0).column(0)
    true = varint(2 * column.total_uncompressed_size)
    other = varint(2 * said)
    other = other[:-1] + bytes([other[-1] | 128]) + b"\x80" * (len(true) - len(other) - 1) + b"\0"
    begin = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    path.write_bytes(data[:begin] + data[begin:].replace(true, other))
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).total_uncompressed_size == said
    return path


def varint(value):
    found = []
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_pages_of_a_column_are_those_of_its_metadata(tmp_path, layout):
    texts = [None if k % 7 == 0 else f"{k % 30} {'long ' * 300 if k % 30 == 1 else ''}" for k in range(300)]
    path = written(tmp_path / "a.parquet", texts, **LAYOUTS[layout])
    for place in range(2):
        column = pq.ParquetFile(path).metadata.row_group(0).column(place)
        pages = pages_of(opened(str(path)), column)
        assert 0.2 * column.total_uncompressed_size < pages.size < column.total_uncompressed_size
        assert bool(pages.dictionary) == column.has_dictionary_page
        assert bool(pages.largest) == ("DELTA_BYTE_ARRAY" in column.encodings)


@pytest.mark.parametrize("layout", ["dictionary", "plain"])
def test_texts_that_metadata_understate_are_read_a_few_at_a_time(tmp_path, monkeypatch, layout):
    monkeypatch.setattr(text_sizes, "MOST", 1 << 16)
    path = understated(written(tmp_path / "a.parquet", [LONG] * ROWS, compression="zstd", **LAYOUTS[layout]), 10)
    assert max(rows_at_a_time(path)) <= 16
    first = next(iter(streams.open(path, target="y", categories="one-hot")))
    assert first.n <= 16
    assert first.X.toarray().tolist() == [[1.0]] * first.n


def test_texts_that_share_their_beginnings_are_read_a_few_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr(row_groups, "MOST_SHARED", 1 << 16)
    path = written(tmp_path / "a.parquet", [LONG] * 64, compression="zstd", **LAYOUTS["shared"])
    assert max(rows_at_a_time(path)) <= 16
    assert [block.n for block in streams.open(path, target="y")] == [64]  # read a few at a time, and joined
    short = written(tmp_path / "b.parquet", ["a", "ab"] * 30, **LAYOUTS["shared"])
    assert rows_at_a_time(short) == [1 << 16]


def test_a_damaged_header_of_a_page_is_an_error_of_the_file(tmp_path):
    path = written(tmp_path / "a.parquet", ["a", "b"])
    data = bytearray(path.read_bytes())
    for damage in (b"\xff" * 12, b"\x1c" * 12, b"\0"):
        data[4 : 4 + len(damage)] = damage
        path.write_bytes(data)
        with pytest.raises(StreamError, match=r"a\.parquet: cannot be read after row 0: expected the header of a page at 4 of"):
            list(streams.open(path, target="y"))
