"""What the record batches of Arrow files ask for is known before it is given."""

from __future__ import annotations

import io
from contextlib import suppress

import memory
import numpy as np
import pyarrow as pa
import pytest

from onlinear import streams
from onlinear.streams import StreamError, ipc


def written(table, compression=None, **options):
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_table(table, **options)
    return sink.getvalue()


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_the_largest_batch_or_dictionary_is_found(compression):
    numbers = pa.table({"x": np.random.default_rng(0).standard_normal(5000), "s": ["a"] * 5000, "n": pa.nulls(5000)})
    for rows in (5000, 1000, 7):
        found = ipc.largest(pa.BufferReader(written(numbers, compression, max_chunksize=rows)))
        assert rows * 13 <= found <= rows * 13 + 500
        batches = ipc.rows_of_batches(pa.BufferReader(written(numbers, compression, max_chunksize=rows)))
        assert batches == [min(rows, 5000 - first) for first in range(0, 5000, rows)]
    words = pa.table({"d": pa.array(["w" * 9000, "v"] * 4).dictionary_encode(), "y": pa.array([[1]] * 8)})
    assert 9000 < ipc.largest(pa.BufferReader(written(words, compression))) < 9500
    assert ipc.rows_of_batches(pa.BufferReader(written(words, compression))) == [8]
    assert ipc.largest(pa.BufferReader(written(numbers.slice(0, 0), compression))) == 0


def test_damage_is_told_or_does_no_harm():
    content, rng = written(pa.table({"x": np.arange(50.0), "s": ["a"] * 50}), "zstd"), np.random.default_rng(1)
    for _ in range(2000):
        changed = bytearray(content)
        for at in rng.integers(0, len(changed), 3):
            changed[at] = rng.integers(0, 256)
        file = pa.BufferReader(bytes(changed[: rng.integers(0, 2 * len(changed))]))
        for read in (ipc.largest, ipc.rows_of_batches):
            with suppress(pa.ArrowInvalid):
                read(file)


def test_a_small_file_of_large_batches_takes_no_memory(tmp_path):
    path = tmp_path / "a.arrow"
    path.write_bytes(written(pa.table({"y": np.zeros(6 << 20), "x": np.zeros(6 << 20)}), "zstd"))
    code = f"""
import onlinear.streams.columnar_table as tables
from onlinear import streams
tables.LARGEST_BATCH = 1 << 26
list(streams.open({str(path)!r}, target="y"))
"""
    done = memory.run(code)
    assert "a.arrow: expected record batches of at most 67,108,864 bytes, got one of 100,663,296" in done.error
    assert path.stat().st_size < 100_000
    assert done.peak < 1 << 30


def test_converted_rows_have_the_limit_too(tmp_path, monkeypatch):
    from onlinear.streams import converted_reader
    from onlinear.streams.converted_writer import write_converted

    (tmp_path / "a.svm").write_text("1 1:1\n" * 3000)
    write_converted(tmp_path / "a.arrow", streams.open(tmp_path / "a.svm"))
    monkeypatch.setattr(converted_reader, "LARGEST_GROUP", 1000)
    with pytest.raises(StreamError, match=r"a\.arrow: expected record batches of at most 1000 bytes, got"):
        list(streams.open(tmp_path / "a.arrow"))
