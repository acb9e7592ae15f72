"""Sparse rows as columns of a file: the round trip keeps every bit, and no damaged or hostile file gives a wrong row."""

from __future__ import annotations

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlinear import streams
from onlinear.rows import Rows
from onlinear.streams import converted_reader, converted_writer
from onlinear.streams.ahead import Ahead
from onlinear.streams.blocks import Block, Stream, StreamError
from onlinear.streams.converted import KEY, is_converted
from onlinear.streams.converted_reader import Converted
from onlinear.streams.converted_writer import write_converted
from onlinear.streams.encoding import describe_numbering
from onlinear.streams.svmlight import Svmlight

SUFFIXES = [".parquet", ".arrow"]
TEXT = "".join(f"{1 if i % 3 else -1} {1 + i % 7}:{i}.25 {9 + i % 5}:-1e-3\n" for i in range(1, 3000)) + "1\n"


class Given(Stream):
    """Rows written down: (label, weight, {column: value}) each; two blocks."""

    name, rereadable, errors, text_bytes, total, done = "given", True, (), 0, None, 0

    def __init__(self, rows, task=None, classes=None, labels=None, encoding=None, weighted=True):
        self.given, self.rows, self.task, self.labels, self.encoding = rows, len(rows), task, labels, encoding
        self.classes = None if classes is None else np.array(classes)
        self.weighted = weighted

    def __iter__(self):
        half = len(self.given) // 2
        for part in (self.given[:half], self.given[half:]):
            if part:
                yield self._block(part)

    def _block(self, part):
        columns = np.array([j for *_, row in part for j in sorted(row)], np.uint32)
        values = np.array([row[j] for *_, row in part for j in sorted(row)], np.float64)
        starts = np.cumsum([0, *(len(row) for *_, row in part)]).astype(np.uint64)
        y, weights = (np.array([item[k] for item in part], np.float64) for k in (0, 1))
        lines, size = np.arange(1, len(part) + 1), int(columns.max()) + 1 if len(columns) else 0
        largest = float(np.abs(values).max(initial=0.0))
        return Block(
            Rows(starts, columns, values), y, lines, ("given",), size, largest, None, weights if self.weighted else None
        )


def rows_of(stream):
    """(label, weight, columns, values) of every row, as bits."""
    found = []
    for block in stream:
        starts, columns, values = (array.tolist() for array in block.rows)
        for i in range(block.n):
            row = slice(starts[i], starts[i + 1])
            found.append((block.y[i].hex(), float(block.importance[i]).hex(), columns[row], [x.hex() for x in values[row]]))
    return found


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text(TEXT)
    return str(path)


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
ROWS = st.lists(
    st.tuples(
        NUMBERS, st.floats(0.0, 1e9), st.dictionaries(st.integers(0, 2**31 - 2), NUMBERS.filter(lambda x: x != 0.0), max_size=4)
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=25)
@given(rows=ROWS, suffix=st.sampled_from([".parquet", ".pq", ".arrow", ".feather", ".ipc"]), weighted=st.booleans())
def test_every_bit_comes_back(tmp_path_factory, rows, suffix, weighted):
    path = tmp_path_factory.mktemp("sparse") / f"a{suffix}"
    stream = Given(rows, weighted=weighted)
    assert write_converted(path, stream) == len(rows)
    assert is_converted(path)
    back = Converted((str(path),))
    assert rows_of(back) == rows_of(stream)
    assert back.rows == back.total == back.done == len(rows)
    assert back.n_features == max(block.size for block in stream)
    assert all((block.weights is None) == (not weighted) for block in back)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("entries", [500, 1 << 20])
def test_text_converted_reads_as_the_text_in_groups_of_bounded_size(tmp_path, text, suffix, entries, monkeypatch):
    monkeypatch.setattr(converted_writer, "ENTRIES", entries)
    path = str(tmp_path / f"a{suffix}")
    assert write_converted(path, Svmlight((text,), block_bytes=5000)) == 3000
    wanted = list(Svmlight((text,)))
    for stream in (Converted((path,), threads=1), Converted((path,), threads=3), Ahead(Converted((path,)))):
        for _ in range(2):
            blocks = list(stream)
            assert rows_of(blocks) == rows_of(wanted)
            assert [int(line) for block in blocks for line in block.lines] == list(range(1, 3001))
            assert max(len(block.rows.values) for block in blocks) <= 2 * entries
            assert blocks[-1].where(0) == f"{path}:{int(blocks[-1].lines[0])}"
            assert stream.done == stream.rows == 3000
    assert (stream.base, stream.task, stream.classes, stream.labels, stream.encoding) == (
        1,
        None,
        None,
        None,
        describe_numbering(1),
    )
    assert os.listdir(tmp_path) == ["a.svm", f"a{suffix}"] or os.listdir(tmp_path) == [f"a{suffix}", "a.svm"]


def header(path):
    schema = pq.read_schema(path) if path.endswith("parquet") else pa.ipc.open_file(path).schema
    return json.loads(schema.metadata[KEY])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_the_metadata_say_what_the_rows_are(tmp_path, text, suffix):
    path = str(tmp_path / f"a{suffix}")
    write_converted(path, Svmlight((text,), base=0))
    assert header(path) == {
        "version": 1, "rows": 3000, "n_features": 14, "base": 0,
        "task": None, "classes": [-1.0, 1.0], "labels": None, "encoding": None, "float32": False,
    }  # fmt: skip
    assert (Converted((path,)).base, Converted((path,)).encoding) == (0, describe_numbering(0))
    stream = Given([(0, 1, {0: 1.0}), (1, 1, {1: 2.0})], "classify", [0.0, 1.0], ("no", "yes"), {"bits": 4})
    write_converted(path, stream)
    back = Converted((path,))
    assert (back.task, back.labels, back.encoding, back.classes.tolist()) == (
        "classify",
        ("no", "yes"),
        {"bits": 4},
        [0.0, 1.0],
    )
    write_converted(path, Given([(i + 0.5, 1, {0: 1.0}) for i in range(3)], "regress"))
    assert header(path)["classes"] is None
    write_converted(path, Given([(i, 1, {0: 1.0}) for i in range(300)], "regress"))
    assert header(path)["classes"] is None


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_float32_rounds_and_leaves_out_what_rounds_to_zero(tmp_path, suffix):
    path = str(tmp_path / f"a{suffix}")
    rows = [(1.1, 0.1, {0: 0.1, 3: 1e-60, 7: -2.0}), (2.2, 1.0, {5: 1e-50}), (3.3, 1.0, {1: 3.0})]
    write_converted(path, Given(rows), float32=True)
    wanted = [(1.1, 0.1, {0: float(np.float32(0.1)), 7: -2.0}), (2.2, 1.0, {}), (3.3, 1.0, {1: 3.0})]
    assert rows_of(Converted((path,))) == rows_of(Given(wanted))
    with pytest.raises(ValueError, match=r"given:1: the value 1e\+39 is too large for float32"):
        write_converted(path, Given([(1, 1, {0: 1.0}), (1, 1, {0: 1e39})]), float32=True)
    assert rows_of(Converted((path,))) == rows_of(Given(wanted)), "the file of before is still there"


def test_several_files_in_order_and_files_that_do_not_go_together(tmp_path):
    paths = tuple(str(tmp_path / name) for name in ("a.parquet", "b.arrow"))
    one, two = [(0, 1, {0: 1.0})], [(1, 1, {9: 2.0}), (1, 1, {})]
    for path, rows in zip(paths, (one, two), strict=True):
        write_converted(path, Given(rows, "classify", [rows[0][0]]))
    stream = Converted(paths)
    assert rows_of(stream) == rows_of(Given(one + two))
    assert (stream.rows, stream.n_features, stream.classes.tolist(), stream.name) == (3, 10, [0.0, 1.0], "2 files")
    write_converted(paths[1], Given(two, "regress"))
    with pytest.raises(StreamError, match=r"b\.arrow: its task is not that of .*a\.parquet; .*: convert their"):
        Converted(paths)


def test_names_and_options(tmp_path, text):
    with pytest.raises(ValueError, match=r"a\.csv: the name must end with one of \.parquet"):
        write_converted(tmp_path / "a.csv", Svmlight((text,)))
    with pytest.raises(ValueError, match="threads must be at least 1, got 0"):
        Converted((text,), threads=0)
    with pytest.raises(FileNotFoundError, match=r"no file at 'gone\.arrow'"):
        Converted(("gone.arrow",))
    pq.write_table(pa.table({"label": [1.0]}), tmp_path / "other.parquet")
    (tmp_path / "junk.arrow").write_bytes(b"junk")
    (tmp_path / "empty.parquet").write_bytes(b"")
    for name in ("other.parquet", "junk.arrow", "empty.parquet", "gone.parquet", "a.svm"):
        assert not is_converted(tmp_path / name)
    with pytest.raises(StreamError, match="expected the metadata 'onlinear-rows'"):
        Converted((str(tmp_path / "other.parquet"),))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_failed_conversion_leaves_nothing(tmp_path, suffix):
    (tmp_path / "bad.svm").write_text("1 1:1\njunk\n")
    with pytest.raises(StreamError, match=r"bad\.svm:2"):
        write_converted(tmp_path / f"a{suffix}", Svmlight((str(tmp_path / "bad.svm"),)))
    assert os.listdir(tmp_path) == ["bad.svm"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_no_rows_at_all(tmp_path, suffix):
    path = str(tmp_path / f"a{suffix}")
    assert write_converted(path, Given([])) == 0
    assert list(Converted((path,))) == []


# --- hostile files ---------------------------------------------------------------------------------------------------

PLAIN = {"version": 1, "rows": 2, "n_features": 10}


def craft(path, columns=None, metadata=PLAIN):
    """A file with these columns, whatever they are."""
    arrays = {
        "label": pa.array([1.0, -1.0]),
        "indices": pa.array([[0, 3], [5]], pa.list_(pa.uint32())),
        "values": pa.array([[1.0, 2.0], [3.0]], pa.list_(pa.float64())),
    } | (columns or {})
    text = metadata if isinstance(metadata, str) else json.dumps(metadata)
    table = pa.table({name: array for name, array in arrays.items() if array is not None}).replace_schema_metadata({KEY: text})
    if path.endswith("parquet"):
        pq.write_table(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    return path


def lists(kind, *rows):
    return pa.array(rows, pa.list_(kind))


def packed(kind, *rows):
    return pa.array([None if row is None else np.array(row, kind).tobytes() for row in rows], pa.binary())


COLUMNS = "expected columns label, weight (double), indices and values (lists or binary)"
WRONG = [
    ({"indices": lists(pa.uint32(), [3, 0], [5])}, ":1: expected ascending indices, got 0"),
    ({"indices": lists(pa.uint32(), [0, 3], [10])}, ":2: expected indices below 10, as the metadata say, got 10"),
    ({"indices": lists(pa.uint32(), [0, 3], [2**32 - 1])}, ":2: expected indices below 10"),
    ({"indices": lists(pa.uint32(), [0], [3, 5])}, ":1: expected as many values as indices"),
    ({"indices": lists(pa.uint32(), [0, None], [5])}, "expected no missing label, index or value"),
    ({"indices": lists(pa.uint32(), [0, 3], None)}, "expected no missing label, index or value"),
    ({"values": lists(pa.float64(), [1.0, None], [3.0])}, "expected no missing label, index or value"),
    ({"values": lists(pa.float64(), [1.0, 2.0], [np.nan])}, ":2: expected finite values other than 0, got nan"),
    ({"values": lists(pa.float64(), [1.0, -np.inf], [1.0])}, ":1: expected finite values other than 0, got -inf"),
    ({"values": lists(pa.float64(), [1.0, 2.0], [0.0])}, ":2: expected finite values other than 0, got 0.0"),
    ({"values": lists(pa.float32(), [1.0, 2.0], [np.inf])}, ":2: expected finite values other than 0, got inf"),
    ({"indices": packed("<u4", [3, 0], [5])}, ":1: expected ascending indices, got 0"),
    ({"indices": packed("<u4", [0], [3, 5])}, ":1: expected as many values as indices"),
    ({"indices": packed("<u4", [0, 3], None)}, "expected no missing label, index or value"),
    ({"indices": packed("<u2", [0, 3], [5])}, ":2: expected indices and values of 4 bytes each, got a part of one"),
    ({"values": packed("<f8", [1.0, 2.0], [np.nan])}, ":2: expected finite values other than 0, got nan"),
    ({"values": packed("<f4", [1.0, 2.0], [3.0])}, ":2: expected indices and values of 8 bytes each, got a part of one"),
    ({"values": packed("<f4", [1.0, 2.0], [3.0, 4.0])}, ":1: expected as many values as indices"),
    ({"label": pa.array([1.0, np.nan])}, ":2: expected a finite label, got nan"),
    ({"label": pa.array([1.0, None])}, "expected no missing label, index or value"),
    ({"weight": pa.array([1.0, -2.0])}, ":2: expected a weight of 0 or more, got -2.0"),
    ({"weight": pa.array([np.inf, None])}, ":1: expected a weight of 0 or more, got inf"),
    ({"label": pa.array([1, 2])}, COLUMNS),
    ({"indices": lists(pa.int64(), [0, 3], [5])}, COLUMNS),
    ({"values": None}, COLUMNS),
    ({"weight": pa.array(["a", "b"])}, COLUMNS),
]


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(("columns", "message"), WRONG)
def test_wrong_content_is_refused_with_its_row(tmp_path, suffix, columns, message):
    path = craft(str(tmp_path / f"a{suffix}"), columns)
    with pytest.raises(StreamError) as error:
        list(Converted((path,)))
    assert str(error.value).startswith(path)
    assert message in str(error.value)


METADATA = [
    ("{", "metadata of sparse rows are damaged"),
    ("[" * 100_000, "metadata of sparse rows are damaged"),
    ([1], "metadata of sparse rows are damaged"),
    ({}, "metadata of sparse rows are damaged"),
    ({**PLAIN, "version": 2, "more": 1}, "sparse rows of version 2; this release reads up to 1"),
    ({**PLAIN, "version": True}, "metadata of sparse rows are damaged"),
    ({**PLAIN, "version": "1"}, "metadata of sparse rows are damaged"),
    ({**PLAIN, "more": 1}, "metadata of sparse rows are damaged"),
    ({**PLAIN, "rows": -1}, "metadata of sparse rows are damaged"),
    ({**PLAIN, "n_features": 1e3}, "metadata of sparse rows are damaged"),
    ({**PLAIN, "n_features": 2**31}, "metadata of sparse rows are damaged"),
    ({**PLAIN, "base": 2}, "metadata of sparse rows are damaged"),
    ({**PLAIN, "task": "sing"}, "metadata of sparse rows are damaged"),
    ({**PLAIN, "classes": ["a"]}, "metadata of sparse rows are damaged"),
    ({**PLAIN, "classes": 3}, "metadata of sparse rows are damaged"),
    ({**PLAIN, "labels": [1]}, "metadata of sparse rows are damaged"),
    ({**PLAIN, "encoding": "x"}, "metadata of sparse rows are damaged"),
    ({**PLAIN, "float32": 1}, "metadata of sparse rows are damaged"),
    ({**PLAIN, "rows": 3}, "expected 3 rows, as its metadata say, got 2"),
]


@pytest.mark.parametrize(("metadata", "message"), METADATA, ids=[str(text)[:40] for text, _ in METADATA])
def test_wrong_metadata_are_refused(tmp_path, metadata, message):
    path = craft(str(tmp_path / "a.arrow"), metadata=metadata)
    with pytest.raises(StreamError) as error:
        list(Converted((path,)))
    assert message in str(error.value)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("indices", [lists(pa.uint32(), [0, 3], [5]), packed("<u4", [0, 3], [5])])
@pytest.mark.parametrize(
    ("values", "float32"),
    [
        (lists(pa.float64(), [1.0, 2.0], [3.0]), False),
        (lists(pa.float32(), [1.0, 2.0], [3.0]), True),
        (packed("<f8", [1.0, 2.0], [3.0]), False),
        (packed("<f4", [1.0, 2.0], [3.0]), True),
    ],
)
def test_what_others_write_in_either_form_is_read(tmp_path, suffix, indices, values, float32):
    columns = {"indices": indices, "values": values, "weight": pa.array([None, 2.0]), "extra": pa.array([1, 2])}
    path = craft(str(tmp_path / f"a{suffix}"), columns, {**PLAIN, "float32": float32})
    assert rows_of(Converted((path,))) == rows_of(Given([(1, 1, {0: 1.0, 3: 2.0}), (-1, 2, {5: 3.0})]))


def test_a_part_of_an_arrow_file_s_memory_is_read_as_that_part(tmp_path):
    columns = {
        "label": pa.array([9.0, 1.0, -1.0, 9.0])[1:3],
        "indices": packed("<u4", [7, 8, 9], [0, 3], [5], [1])[1:3],
        "values": lists(pa.float64(), [9.0] * 3, [1.0, 2.0], [3.0], [9.0])[1:3],
    }
    path = craft(str(tmp_path / "a.arrow"), columns)
    assert rows_of(Converted((path,))) == rows_of(Given([(1, 1, {0: 1.0, 3: 2.0}), (-1, 1, {5: 3.0})]))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_that_is_changed_while_it_is_read_changes_no_row_that_was_checked(tmp_path, text, suffix, monkeypatch):
    path = tmp_path / f"rows{suffix}"
    monkeypatch.setattr(converted_writer, "ENTRIES", 200)
    write_converted(path, Svmlight((text,)))
    blocks = iter(Converted((str(path),)))
    first = next(blocks)
    before = [array.copy() for array in (*first.rows, first.y)]
    path.write_bytes(bytes(path.stat().st_size // 2))
    for array, kept in zip((*first.rows, first.y), before, strict=True):
        np.testing.assert_array_equal(array, kept)
    with pytest.raises(StreamError, match=r"cannot be read to its end|expected"):
        list(blocks)


def test_the_form_of_either_kind_of_file(tmp_path, text):
    for suffix, float32, kinds in (
        (".parquet", False, [pa.binary(), pa.binary()]),
        (".arrow", False, ["list<element: uint32 not null>", "list<element: double not null>"]),
        (".arrow", True, ["list<element: uint32 not null>", "list<element: float not null>"]),
    ):
        path = str(tmp_path / f"a{suffix}")
        write_converted(path, Svmlight((text,)), float32=float32)
        schema = pq.read_schema(path) if suffix == ".parquet" else pa.ipc.open_file(path).schema
        assert [str(schema.field(name).type) for name in ("indices", "values")] == [str(kind) for kind in kinds]
        assert header(path)["float32"] is float32
    write_converted(str(tmp_path / "a.parquet"), Svmlight((text,)))
    table = pq.read_table(tmp_path / "a.parquet")
    assert np.frombuffer(table["indices"][0].as_py(), "<u4").tolist() == [1, 9]
    assert np.frombuffer(table["values"][0].as_py(), "<f8").tolist() == [1.25, -1e-3]


def test_a_row_of_more_bytes_than_its_offsets_count(tmp_path, text, monkeypatch):
    monkeypatch.setattr(converted_writer, "MOST_BYTES", 20)
    with pytest.raises(ValueError, match=r"given:1: expected at most 2 entries in a row, got 3\."):
        write_converted(tmp_path / "a.parquet", Given([(1, 1, {0: 1.0, 1: 2.0, 2: 3.0})]))


def test_a_row_group_larger_than_allowed(tmp_path, text, monkeypatch):
    path = str(tmp_path / "a.parquet")
    write_converted(path, Svmlight((text,)))
    monkeypatch.setattr(converted_reader, "LARGEST_GROUP", 1000)
    with pytest.raises(StreamError, match="expected row groups of at most 1000 bytes"):
        list(Converted((path,)))


def test_a_row_group_whose_rows_stand_once_in_a_dictionary(tmp_path, monkeypatch):
    path, again = tmp_path / "a.parquet", tmp_path / "b.parquet"
    write_converted(str(path), Given([(1, 1, dict.fromkeys(range(50), value)) for value in (2.0, 3.0)] * 45))
    pq.write_table(pq.read_table(path), again)  # 56 kB of rows, which may be 92
    assert pq.read_metadata(again).row_group(0).total_byte_size < 3000
    monkeypatch.setattr(converted_reader, "MOST_SHARED", 2000)
    for limit in (1 << 20, 80_000):  # at once, and a row at a time
        monkeypatch.setattr(converted_reader, "LARGEST_GROUP", limit)
        (block,) = Converted((str(again),))
        np.testing.assert_array_equal(block.X.toarray(), np.tile([[2.0], [3.0]], (45, 50)))
    monkeypatch.setattr(converted_reader, "LARGEST_GROUP", 20_000)
    with pytest.raises(StreamError, match=r"b\.parquet: expected row groups of at most 20000 bytes, got \d+ and more"):
        list(Converted((str(again),)))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_damage_gives_an_error_or_other_numbers_but_no_crash(tmp_path, text, suffix):
    path = str(tmp_path / f"a{suffix}")
    write_converted(path, Svmlight((text,)))
    whole = (tmp_path / f"a{suffix}").read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for trial in range(30):
        damaged = bytearray(whole)
        if trial % 3 == 0:
            damaged = damaged[: int(rng.integers(len(whole)))]
        else:
            end = len(damaged) if trial % 3 == 1 else 2000
            for at in (len(damaged) - rng.integers(1, end, 4)).tolist():
                damaged[at] = int(rng.integers(256))
        (tmp_path / f"b{suffix}").write_bytes(damaged)
        try:
            for block in Converted((str(tmp_path / f"b{suffix}"),)):
                assert np.isfinite(block.rows.values).all()
                assert block.rows.indices.max(initial=0) < 2**31 - 1
        except StreamError:
            refused += 1
    assert refused >= 10


def test_files_of_other_classes_are_not_read_as_one(tmp_path):
    for name, label in (("a", "yes"), ("b", "maybe")):
        (tmp_path / f"{name}.csv").write_text(f"x,y\n1,no\n2,{label}\n")
        write_converted(tmp_path / f"{name}.arrow", streams.open(tmp_path / f"{name}.csv", target="y"))
    with pytest.raises(StreamError, match=r"b\.arrow: its labels are not those of .*a\.arrow"):
        streams.open([tmp_path / "a.arrow", tmp_path / "b.arrow"])
