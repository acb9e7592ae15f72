"""Tables of named columns: the rows they give, for any block size and file format, and every way they can be wrong."""

from __future__ import annotations

import bz2
import datetime
import gzip
import io
import json
import lzma
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from contextlib import suppress
from itertools import pairwise
from threading import Thread

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_wine
from sklearn.metrics import roc_auc_score
from sklearn.utils import murmurhash3_32

from onlinear import Learner, OnlineClassifier, streams
from onlinear.streams import StreamError, column_blocks, csv_table, text_sizes
from onlinear.streams import encoding as enc
from onlinear.streams.ahead import Ahead
from onlinear.streams.blocks import joined
from onlinear.streams.converted_writer import write_converted

DAY = datetime.date(1970, 1, 1)
NOON = datetime.datetime(1970, 1, 1)
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6) | st.sampled_from(["", "NA", "a,b", 'say "x"', "1"])
# arrow type: (kind, values, value -> number)
TYPES = {
    "double": ("number", st.floats(allow_infinity=False, allow_nan=False), float),
    "float": ("number", st.floats(width=32, allow_infinity=False, allow_nan=False), float),
    "int8": ("number", st.integers(-128, 127), float),
    "int64": ("number", st.integers(-(2**53), 2**53), float),
    "uint64": ("number", st.integers(0, 2**53), float),
    "decimal128(12, 3)": ("number", st.decimals(-(10**6), 10**6, places=3), float),
    "bool": ("boolean", st.booleans(), float),
    "date32": ("date", st.dates(datetime.date(1900, 1, 1), datetime.date(2200, 1, 1)), lambda d: float((d - DAY).days)),
    "timestamp[us]": (
        "date",
        st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2200, 1, 1)),
        lambda t: (
            divmod((t - NOON) // datetime.timedelta(microseconds=1), 86400 * 10**6)[0]
            + divmod((t - NOON) // datetime.timedelta(microseconds=1), 86400 * 10**6)[1] / (86400 * 10**6)
        ),
    ),
    "string": ("text", WORDS, None),
    "dictionary": ("text", st.sampled_from(["red", "green", "blå"]), None),
}


def arrow_type(name):
    if name == "dictionary":
        return pa.dictionary(pa.int8(), pa.string())
    if name.startswith("decimal"):
        return pa.decimal128(12, 3)
    return {"timestamp[us]": pa.timestamp("us"), "bool": pa.bool_()}.get(name) or pa.type_for_alias(name)


@st.composite
def tables(draw):
    """A table with a target y, a weight w, and features f0, f1, ... of any types."""
    n = draw(st.integers(1, 25))
    names = draw(st.lists(st.sampled_from(sorted(TYPES)), min_size=1, max_size=6))
    columns = {"y": pa.array(draw(st.lists(st.floats(-9, 9), min_size=n, max_size=n)), pa.float64())}
    for i, name in enumerate(names):
        values = draw(st.lists(st.none() | TYPES[name][1], min_size=n, max_size=n))
        columns[f"f{i}"] = pa.array(values, arrow_type(name))
    columns["w"] = pa.array(draw(st.lists(st.floats(0, 5), min_size=n, max_size=n)), pa.float64())
    return pa.table(columns), {f"f{i}": name for i, name in enumerate(names)}


def reference(table, types, *, categories, hash_bits, missing):
    """The rows as dictionaries column -> value, by plain Python."""
    numeric = [name for name in types if TYPES[types[name]][0] != "text"]
    texts = [name for name in types if name not in numeric]
    numbers, labels = enc.read_policies(missing)
    offset = len(numeric) * (2 if numbers == "indicator" else 1)
    dictionary, rows = {}, []
    for record in table.to_pylist():
        row = {}

        def add(column, value, row=row):
            row[column] = row.get(column, 0.0) + value

        for i, name in enumerate(numeric):
            if record[name] is not None:
                add(i, TYPES[types[name]][2](record[name]))
            elif numbers == "indicator":
                add(len(numeric) + i, 1.0)
        for name in texts:
            if record[name] is None and labels == "omit":
                continue
            if categories == "one-hot":
                add(offset + dictionary.setdefault((name, record[name]), len(dictionary)), 1.0)
            else:
                h = murmurhash3_32((name if record[name] is None else f"{name}={record[name]}").encode(), positive=True)
                add(offset + h % 2**hash_bits, -1.0 if h >= 2**31 else 1.0)
        rows.append({column: value for column, value in sorted(row.items()) if value != 0.0})
    return rows


def rows_of(blocks):
    found = []
    for block in blocks:
        starts, columns, values = block.rows
        for begin, end in pairwise(starts.astype(int)):
            assert np.all(np.diff(columns[begin:end].astype(np.int64)) > 0)
            found.append(dict(zip(columns[begin:end].tolist(), values[begin:end].tolist(), strict=True)))
        assert block.size == 1 + max((int(j) for j in columns), default=-1)
        assert block.largest == max(np.abs(values), default=0.0)
    return found


def write(path, table, rows_in_group=7):
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=rows_in_group)
    elif path.suffix == ".arrow":
        feather.write_feather(table, path, chunksize=rows_in_group, compression="uncompressed")
    else:
        path.write_text(as_csv(table), newline="")
    return path


def as_csv(table):
    def shown(value):
        if value is None:
            return ""
        if isinstance(value, str):
            return '"' + value.replace('"', '""') + '"'
        return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)

    lines = [",".join(table.column_names)]
    return "\n".join(lines + [",".join(map(shown, record.values())) for record in table.to_pylist()]) + "\n"


MISSING = st.sampled_from(["omit", "indicator", "numbers=indicator,categories=omit", "categories=indicator,numbers=omit"])


@settings(max_examples=60)
@given(
    made=tables(),
    suffix=st.sampled_from([".parquet", ".arrow"]),
    categories=st.sampled_from(["hash", "one-hot"]),
    hash_bits=st.integers(1, 20),
    missing=MISSING,
    block_bytes=st.integers(1, 1000),
)
def test_any_table_reads_as_the_plain_reference_does(
    tmp_path_factory, made, suffix, categories, hash_bits, missing, block_bytes
):
    table, types = made
    folder = tmp_path_factory.mktemp("columns")
    path = write(folder / f"a{suffix}", table)
    options = {"target": "y", "weight": "w", "block_bytes": block_bytes}
    bits = hash_bits if categories == "hash" else None
    stream = streams.open(path, categories=categories, hash_bits=bits, missing=missing, dates="days", **options)
    blocks = list(stream)
    wanted = reference(table, types, categories=categories, hash_bits=hash_bits, missing=missing)
    assert rows_of(blocks) == wanted
    assert np.concatenate([block.y for block in blocks]).tolist() == table["y"].to_pylist()
    assert np.concatenate([block.weights for block in blocks]).tolist() == table["w"].to_pylist()
    assert np.concatenate([block.lines for block in blocks]).tolist() == list(range(1, len(table) + 1))
    assert stream.rows == stream.total == stream.done == len(table)
    # The description alone gives the same columns from another file, in another format, twice.
    description = json.loads(json.dumps(stream.encoding))
    again = streams.open(write(folder / "b.csv", table), encoding=description, **options)
    for _ in range(2):
        assert rows_of(again) == wanted
    assert again.encoding == description
    assert np.concatenate([block.lines for block in again]).tolist() == list(range(2, len(table) + 2))
    names = enc.names(description, max((block.size for block in blocks), default=0))
    assert all(name is None or isinstance(name, str) for name in names)


def test_click_data_with_categories_learns_from_the_command_of_the_issue(data):
    """The first 80 % of the rows are learned; the rest are ranked far better than by chance."""
    path = data / "criteo-tiny" / "criteo-tiny.csv.xz"
    stream = streams.open(path, target="Label", exclude=["Id"], missing="indicator")
    assert [kind for _, kind in stream.encoding["features"]] == ["number"] * 13 + ["text"] * 26
    rows = joined(list(stream))
    n = int(0.8 * rows.n)
    assert (rows.n, stream.done, stream.text_bytes) == (1999, path.stat().st_size, len(lzma.decompress(path.read_bytes())))
    learner = Learner("fiol,eta=1", "logistic", scale="rms", fit_intercept=True)
    learner.learn(rows.cut(0, n).csr(rows.size), np.where(rows.y[:n] > 0, 1.0, -1.0))
    tail = rows.cut(n, rows.n)
    assert roc_auc_score(tail.y, learner.predict(tail.csr(rows.size))) > 0.65
    frame = pd.read_csv(path)
    dense = rows.X[:, :13].toarray()
    np.testing.assert_array_equal(dense, frame.filter(regex=r"^I\d").fillna(0.0).to_numpy())
    np.testing.assert_array_equal(rows.X[:, 13:26].toarray(), frame.filter(regex=r"^I\d").isna().to_numpy())


# --- what is asked for -----------------------------------------------------------------------------------------------


def frame_of(tmp_path, name="a.parquet", **columns):
    """A file of these columns, with a target y of ones unless it is among them."""
    n = len(next(iter(columns.values())))
    return write(tmp_path / name, pa.table({"y": [1.0] * n, **columns}))


def read(path, **options):
    stream = streams.open(path, **{"target": "y", **options})
    blocks = list(stream)
    return stream, rows_of(blocks)


def hashed(key, offset, bits=18):
    h = murmurhash3_32(key.encode(), positive=True)
    return offset + h % 2**bits, -1.0 if h >= 2**31 else 1.0


def test_features_are_chosen_by_names_and_patterns(tmp_path):
    path = frame_of(tmp_path, I1=[1.0], I2=[2.0], I10=[3.0], w=[4.0], id=[5])
    for options, names in [
        ({}, ["I1", "I2", "I10", "w", "id"]),
        ({"weight": "w"}, ["I1", "I2", "I10", "id"]),
        ({"exclude": ["id", "w"]}, ["I1", "I2", "I10"]),
        ({"exclude": "id"}, ["I1", "I2", "I10", "w"]),
        ({"features": ["I*"]}, ["I1", "I2", "I10"]),
        ({"features": ["I?", "w"], "exclude": ["I2"]}, ["I1", "w"]),
    ]:
        stream, rows = read(path, **options)
        assert [name for name, _ in stream.encoding["features"]] == names
        assert len(rows[0]) == len(names)
        assert enc.names(stream.encoding, 9)[: len(names) + 1] == [*names, None]


def test_nan_is_a_missing_value(tmp_path):
    path = frame_of(tmp_path, x=[1.0, float("nan"), None], z=[5, None, 7])
    assert read(path, missing="omit")[1] == [{0: 1.0, 1: 5.0}, {}, {1: 7.0}]
    assert read(path, missing="indicator")[1] == [{0: 1.0, 1: 5.0}, {2: 1.0, 3: 1.0}, {1: 7.0, 2: 1.0}]


def test_missing_text_is_a_category_of_its_own_if_asked_and_differs_from_empty_text(tmp_path):
    path = frame_of(tmp_path, c=["", None, "x"])
    assert read(path, missing="omit")[1] == [dict([hashed("c=", 0)]), {}, dict([hashed("c=x", 0)])]
    assert read(path, missing="indicator")[1] == [dict([hashed(key, 0)]) for key in ("c=", "c", "c=x")]
    stream, rows = read(path, missing="indicator", categories="one-hot")
    assert rows == [{0: 1.0}, {1: 1.0}, {2: 1.0}]
    assert enc.names(stream.encoding, 4) == ["c=", "c is missing", "c=x", None]


def test_features_that_meet_in_a_column_are_summed(tmp_path):
    columns = {f"c{k}": ["a", "b"] for k in range(20)}
    _, rows = read(frame_of(tmp_path, **columns), hash_bits=1)
    for row, value in zip(rows, "ab", strict=True):
        entries = [hashed(f"c{k}={value}", 0, 1) for k in range(20)]
        sums = {j: sum(x for column, x in entries if column == j) for j in (0, 1)}
        assert row == {j: x for j, x in sums.items() if x}


def test_categories_of_pandas_and_polars(tmp_path):
    """Integers that are categories come as numbers out of Parquet, which does not keep that they are: text says so."""
    categories = pd.Categorical(["b", "a", None])
    frame = pd.DataFrame({"y": [0, 1, 1], "c": categories, "k": pd.Categorical([3, 1, 3])})
    frame.to_parquet(tmp_path / "pandas.parquet")
    frame.to_feather(tmp_path / "pandas.feather")
    column = pl.Series(["b", "a", None], dtype=pl.Categorical)
    pl.DataFrame({"y": [0, 1, 1], "c": column, "k": [3, 1, 3]}).write_parquet(tmp_path / "polars.parquet")
    wanted = [dict(sorted([hashed("c=b", 0), hashed("k=3", 0)])), dict(sorted([hashed("c=a", 0), hashed("k=1", 0)]))]
    for name in ("pandas.parquet", "pandas.feather", "polars.parquet"):
        assert read(tmp_path / name, missing="omit", text="k")[1] == [*wanted, dict([hashed("k=3", 0)])]
    assert read(tmp_path / "pandas.feather", missing="omit")[1][:2] == wanted
    assert dict(read(tmp_path / "pandas.parquet", missing="omit")[0].encoding["features"]) == {"c": "text", "k": "number"}


def test_numbers_as_categories_and_text_as_numbers(tmp_path):
    path = frame_of(tmp_path, zip=[12, 7], flag=[True, False], price=["1.5", None], day=[DAY, DAY])
    _, rows = read(path, text=["zip", "flag", "day"], numbers="price", missing="omit")
    day = hashed("day=1970-01-01", 1)
    assert rows == [
        dict(sorted([(0, 1.5), hashed("zip=12", 1), hashed("flag=true", 1), day])),
        dict(sorted([hashed("zip=7", 1), hashed("flag=false", 1), day])),
    ]


@pytest.mark.parametrize(
    ("unit", "wanted"),
    [
        ("seconds", [86400.0, 90061.5, -0.25, 3600.0, 7.5]),
        ("days", [1.0, 90061.5 / 86400, -0.25 / 86400, 3600 / 86400, 7.5 / 86400]),
    ],
)
def test_dates_and_times_are_numbers_if_asked(tmp_path, unit, wanted):
    moment = pa.array([86400 + 3600 + 61.5], pa.float64()).to_pylist()[0]
    path = frame_of(
        tmp_path,
        date=pa.array([1], pa.date32()),
        stamp=pa.array([int(moment * 10**6)], pa.timestamp("us", "UTC")),
        before=pa.array([-250], pa.timestamp("ms")),
        clock=pa.array([3600], pa.time32("s")),
        span=pa.array([7_500_000_000], pa.duration("ns")),
    )
    (row,) = read(path, dates=unit)[1]
    assert list(row.values()) == pytest.approx(wanted, rel=1e-15)


def test_a_text_target_is_given_as_places_in_labels(tmp_path):
    path = frame_of(tmp_path, y=["no", "yes", "no", "maybe"], x=[1.0, 2.0, 3.0, 4.0])
    stream = streams.open(path, target="y", block_bytes=1)
    assert (stream.task, stream.labels, stream.classes) == ("classify", (), None)
    assert [float(y) for block in stream for y in block.y] == [0, 1, 0, 2]
    assert stream.labels == ("no", "yes", "maybe")
    stream = streams.open(path, target="y", classes=["maybe", "no", "yes"])
    assert stream.classes.tolist() == [0, 1, 2]
    assert [float(y) for block in stream for y in block.y] == [1, 2, 1, 0]
    stream = streams.open(path, target="y", classes=["no", "yes"])
    with pytest.raises(StreamError, match=r"a\.parquet:4: expected a class of 'no', 'yes', got 'maybe'"):
        list(stream)
    with pytest.raises(ValueError, match="classes must not repeat"):
        streams.open(path, target="y", classes=["no", "no"])
    with pytest.raises(ValueError, match=r"and 'x' of .* holds numbers: give them to fit\(classes=\), or read it as text"):
        streams.open(path, target="x", classes=["1", "2"])


def test_rows_without_a_target_are_for_prediction(tmp_path):
    trained = streams.open(frame_of(tmp_path, x=[1.0]), target="y").encoding
    for columns in (
        {"x": [2.0]},
        {"x": [2.0], "y": pa.array([None], pa.float64())},
        {"x": [2.0], "y": pa.array([None], pa.string())},
    ):
        path = write(tmp_path / "new.parquet", pa.table(columns))
        (block,) = streams.open(path, encoding=trained)
        assert np.isnan(block.y).all()
        assert rows_of([block]) == [{0: 2.0}]
        with pytest.raises(ValueError, match=r"target|got a missing value"):
            list(streams.open(path, encoding=trained, target="y"))
    (block,) = streams.open(frame_of(tmp_path, y=[3.0], x=[1.0]), encoding=trained)
    assert block.y.tolist() == [3.0]
    with pytest.raises(ValueError, match="target must name the column to predict, one of 'x'"):
        streams.open(write(tmp_path / "new.parquet", pa.table({"x": [1.0]})))


@pytest.mark.parametrize("name", ["new.csv", "new.parquet", "new.arrow"])
def test_a_target_without_any_value_is_none_for_prediction(tmp_path, name):
    encoding = read(frame_of(tmp_path, x=[1.0, 2.0]))[0].encoding
    path = write(tmp_path / name, pa.table({"y": pa.nulls(2), "x": [3.0, 4.0]}))
    (block,) = streams.open(path, encoding=encoding)
    assert np.isnan(block.y).all()
    assert block.X[:, 0].toarray().ravel().tolist() == [3.0, 4.0]
    for options in ({"encoding": encoding, "unlabelled": False}, {"target": "y"}):
        with pytest.raises(StreamError, match=r": expected a target in every row, got no value in the column 'y': is this a"):
            streams.open(path, **options)


def test_a_dictionary_can_be_cut_to_what_a_model_has_seen(tmp_path):
    path = frame_of(tmp_path, c=["a", "b", "a", "c"], x=[1.0] * 4)
    description = streams.open(path, target="y", categories="one-hot").encoding
    assert description["values"] == []
    stream, rows = read(path, categories="one-hot", block_bytes=1)
    assert rows == [{0: 1.0, 1: 1.0}, {0: 1.0, 2: 1.0}, {0: 1.0, 1: 1.0}, {0: 1.0, 3: 1.0}]
    part = enc.upto(stream.encoding, 3)
    assert part["values"] == [[0, "a"], [0, "b"]]
    assert read(path, encoding=part)[1] == rows, "the rest gets the same numbers again"
    assert enc.upto(stream.encoding, 99) == stream.encoding
    assert enc.upto(stream.encoding, 0)["values"] == []


def test_a_dictionary_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(enc, "MOST_VALUES", 2)
    path = frame_of(tmp_path, c=["a", "b", "a", "c"])
    with pytest.raises(StreamError, match=r"a\.parquet: expected at most 2 values in all one-hot columns, got one more"):
        read(path, categories="one-hot")


def test_what_a_model_file_must_hold_of_a_table_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(enc, "MOST_BYTES", 130)
    monkeypatch.setattr(column_blocks, "MOST_BYTES", 130)
    path = frame_of(tmp_path, c=["a", "b", "a", "b" * 70])
    with pytest.raises(StreamError, match=r"a\.parquet: expected one-hot values of at most 130 bytes in all, got more; hash"):
        read(path, categories="one-hot")
    assert len(read(path)[1]) == 4
    path = frame_of(tmp_path, y=["a", "b", "c", "d" * 70], c=[1, 2, 3, 4])
    with pytest.raises(StreamError, match=r"a\.parquet: expected classes of at most 130 bytes in all in the target, got more"):
        read(path)
    path = frame_of(tmp_path, **{"c" * 70: [1, 2, 3, 4], "d" * 30: [1, 2, 3, 4]})
    with pytest.raises(StreamError, match=r"a\.parquet: expected features whose names take at most 130 bytes in a model file"):
        read(path)
    assert len(read(path, features="d*")[1]) == 4


def test_errors_show_the_beginning_of_long_names_and_values(tmp_path):
    long, path = "x" * 5000, tmp_path / "a.csv"
    path.write_text(f"{long},y\n" + "1,0\n" * 9 + f"{'2' * 2**20},0\nz{long},0\n")
    with pytest.raises(ValueError, match="target: the column 'xxxx") as missing:
        streams.open(path, target=f"x{long}")
    with pytest.raises(StreamError, match=r"a\.csv:12: expected a number in column 'xx.*, got 'zxx") as wrong:
        read(path)
    path.write_text("a,y\n" + f"1,{long}\n" * 2)
    with pytest.raises(StreamError, match=r"a\.csv:2: expected a class of 'b', 'c', got 'xxx") as strange:
        read(path, classes=["b", "c"])
    assert max(len(str(error.value)) for error in (missing, wrong, strange)) < 1000


def test_a_text_that_is_too_long_to_be_read_as_words_is_an_error_of_its_row(tmp_path, monkeypatch):
    monkeypatch.setattr(text_sizes, "MOST", 100)
    path = frame_of(tmp_path, c=["a b", "b" * 101, "c"], d=["a" * 200, "b", "c"])
    with pytest.raises(StreamError, match=r"a\.parquet:2: expected at most 100 bytes of words in column 'c', got 101\."):
        read(path, ngrams={"c": 1})
    stream, rows = read(path, ngrams={"c": 1}, max_errors=1)
    assert len(rows) == 2
    assert len(stream.errors) == 1


def test_a_folder_that_leads_back_to_itself_is_refused(tmp_path):
    frame_of(tmp_path, a=[1])
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "same").symlink_to(tmp_path / "a.parquet")
    assert len(streams.open(tmp_path, target="y", format="parquet").places) == 2
    (tmp_path / "in" / "back").symlink_to(tmp_path)
    with pytest.raises(OSError, match="is a link to a folder that it is in"):
        streams.open(tmp_path, target="y", format="parquet")


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_a_block_has_few_rows_where_they_have_long_texts(suffix, kind, tmp_path, monkeypatch):
    if suffix == ".arrow" and pa.types.is_string_view(kind):
        pytest.skip("the oldest pyarrow has no such files")
    texts = [*"abc", "x" * 400, None, "x" * 400, "x" * 400, *"abc", "z" * 3000, *"abcd"]
    array = pa.array(texts).dictionary_encode() if pa.types.is_dictionary(kind) else pa.array(texts, kind)
    table = pa.table({"c": array, "y": np.arange(15.0)}).slice(1)
    path = write(tmp_path / f"a{suffix}", table, 14)
    sources = [path, table] if suffix == ".parquet" else [path]
    for source in sources:
        wanted = list(streams.open(source, target="y", missing="indicator"))
        assert [block.n for block in wanted] == [14]
        with monkeypatch.context() as patch:
            patch.setattr(text_sizes, "MOST", 1000)
            found = list(streams.open(source, target="y", missing="indicator"))
        assert rows_of(found) == rows_of(wanted)
        assert [y for block in found for y in block.y] == wanted[0].y.tolist()
        longest = [sum(len(texts[int(y)] or "") for y in block.y) for block in found]
        assert max(longest) == 3000
        assert all(size <= 1000 or block.n == 1 for size, block in zip(longest, found, strict=True))


# --- where rows come from --------------------------------------------------------------------------------------------


def test_a_folder_is_read_in_the_order_of_its_paths_with_its_keys(tmp_path):
    for day, part, x in [("2", "b", 4.0), ("1", "b", 2.0), ("1", "a", 1.0), ("10", "a", 3.0)]:
        (tmp_path / f"day={day}" / "city=New%20York").mkdir(parents=True, exist_ok=True)
        frame_of(tmp_path / f"day={day}" / "city=New%20York", f"{part}.parquet", x=[x])
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".hidden").touch()
    stream = streams.open(tmp_path, target="y")
    rows = rows_of(stream)
    assert [row[0] for row in rows] == [1.0, 2.0, 3.0, 4.0]
    assert [row[1] for row in rows] == [1.0, 1.0, 10.0, 2.0]
    assert all(row.items() >= dict([hashed("city=New York", 2)]).items() for row in rows)
    assert next(iter(stream)).where(0) == f"{tmp_path}/day=1/city=New%20York/a.parquet:1"
    assert stream.rows == 4


def test_uris_and_patterns(tmp_path):
    for k in range(3):
        frame_of(tmp_path, f"part-{k}.parquet", x=[k + 1.0])
    (tmp_path / "other.txt").touch()
    uri = tmp_path.as_uri()
    assert [row[0] for row in read(f"{uri}/part-*.parquet")[1]] == [1.0, 2.0, 3.0]
    assert read(f"{uri}/part-1.parquet")[1] == [{0: 2.0}]
    assert read(str(tmp_path / "part-[12].parquet"))[1] == [{0: 2.0}, {0: 3.0}]
    table = pa.table({"y": [1.0], "x": [5.0]})
    for suffix in ("", ".gz", ".xz", ".zst", ".bz2"):
        (tmp_path / f"z.csv{suffix}").write_bytes(packed(as_csv(table).encode(), suffix))
        assert read(f"{uri}/z.csv{suffix}")[1] == read(tmp_path / f"z.csv{suffix}")[1] == [{0: 5.0}]
    with pytest.raises(FileNotFoundError, match="no file matches"):
        streams.open(f"{uri}/gone-*.parquet", target="y")
    with pytest.raises(FileNotFoundError, match="no file of that name"):
        streams.open(f"{uri}/gone.parquet", target="y")
    with pytest.raises(FileNotFoundError, match="cannot be opened"):
        streams.open("nosuchscheme://x/y.parquet", target="y")
    (tmp_path / "rows.svm").write_text("1 1:2\n")
    for kind in ("auto", "svmlight"):
        with pytest.raises(ValueError, match=r"rows\.svm: expected a URI of Parquet, Arrow or CSV"):
            streams.open(f"{uri}/rows.svm", format=kind)


def packed(content, suffix):
    if suffix == ".zst":
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as file:
            file.write(content)
        return sink.getvalue().to_pybytes()
    return {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}[suffix](content)


@pytest.fixture
def let_go(monkeypatch):
    """What threads that linger have let go, of the arguments of each call of pyarrow's ``open_csv``: a file, options."""
    ended = []

    def lingers(file, read, parse, convert):
        def hold(held):
            time.sleep(0.2)
            ended.append(type(held).__name__)

        Thread(target=hold, args=[file]).start()
        Thread(target=hold, args=[parse]).start()
        try:
            return opened(file, read, parse, convert)
        finally:
            del file, parse  # an error keeps this frame

    opened = pacsv.open_csv
    monkeypatch.setattr(pacsv, "open_csv", lingers)
    monkeypatch.setattr(csv_table, "PATIENCE", 60.0)
    return ended


@pytest.mark.parametrize("text", ["y,x\n1,2\n", "y,x\n", "y,x\n1,2,3\n"], ids=["rows", "no rows", "a wrong row"])
def test_a_thread_of_pyarrow_holds_no_function_once_csv_is_looked_at(text, let_go, tmp_path):
    """The end of the process aborts where such a thread lets one go: ``terminate called without an active exception``."""
    (tmp_path / "t.csv").write_text(text)
    with suppress(StreamError):
        streams.open(tmp_path / "t.csv", target="y")
    assert "ParseOptions" in let_go


@pytest.mark.parametrize("last", ["1,2\n", "1,text\n"], ids=["a block of several", "a wrong one"])
def test_a_thread_of_pyarrow_holds_neither_function_nor_file_once_csv_was_read(last, let_go, tmp_path):
    (tmp_path / "types.csv").write_text("y,x\n1,2\n")
    (tmp_path / "t.csv").write_text("y,x\n" + "1,2\n" * 100 + last)
    encoding = streams.open(tmp_path / "types.csv", target="y").encoding
    stream = streams.open(tmp_path / "t.csv", encoding=encoding, block_bytes=64)
    let_go.clear()
    started = time.monotonic()
    with suppress(StreamError):
        next(iter(stream))
    assert {"ParseOptions", "PythonFile"} <= set(let_go)
    assert time.monotonic() - started < 30.0


def test_csv_from_standard_input(monkeypatch, tmp_path):
    text = "y,x\n" + "".join(f"1,{k}\n" for k in range(1, 150_000))
    assert len(text) > csv_table.HEAD
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    stream = streams.open("-", format="csv", target="y")
    assert np.concatenate([block.rows.values for block in Ahead(stream)]).tolist() == list(range(1, 150_000))
    assert stream.text_bytes == len(text)
    with pytest.raises(StreamError, match="cannot be read twice"):
        list(stream)
    with pytest.raises(StreamError, match="standard input cannot be read as Parquet"):
        streams.open("-", format="parquet", target="y")


def test_csv_by_other_rules(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('\ufeffy\tname\tx\n1\t"a\tb"\t?\n\n0\t"c\nd"\t2\n', newline="")
    _, rows = read(path, nulls=["?"], missing="omit")
    assert rows == [dict([hashed("name=a\tb", 1)]), {0: 2.0, **dict([hashed("name=c\nd", 1)])}]
    path = tmp_path / "a.csv"
    path.write_text("y;x\n1;2\n")
    assert read(path, delimiter=";")[1] == [{0: 2.0}]
    with pytest.raises(ValueError, match=r"the column 'y' is not known.*is the delimiter ';'"):
        read(path)


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.arrow"])
def test_blanks_around_numbers_that_are_text_are_none_of_them(tmp_path, name):
    path = write(tmp_path / name, pa.table({"x": pa.array([" 5", "7 \t", None]).dictionary_encode(), "y": [0, 1, 1]}))
    assert rows_of(streams.open(path, target="y", numbers=["x"], missing="omit")) == [{0: 5.0}, {0: 7.0}, {}]


def test_text_that_looks_missing_is_missing_unless_quoted(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('y,c\n1,NA\n1,"NA"\n1,\n1,""\n')
    assert read(path, missing="omit")[1] == [{}, dict([hashed("c=NA", 0)]), {}, dict([hashed("c=", 0)])]
    with pytest.raises(StreamError, match=r"a\.csv:2: expected text in column 'c', got a missing value"):
        read(path)


# --- what is wrong ---------------------------------------------------------------------------------------------------

WRONG_COLUMNS = [
    (pa.array([[1.0]]), {}, r"holds lists \(list<.*: double>\), which is no feature"),
    (pa.array([{"a": 1}]), {}, r"holds records \(struct<a: int64>\), which is no feature"),
    (pa.array([[1.0]], pa.large_list(pa.float64())), {}, r"holds lists \(large_list<.*: double>\), which is no feature"),
    (pa.array([b"x"]), {}, r"holds bytes \(binary\), which is no feature: exclude it, or decode it"),
    (
        pa.array([b"x"], pa.binary(1)),
        {},
        r"holds bytes \(fixed_size_binary\[1\]\), which is no feature: exclude it, or decode it",
    ),
    (pa.array([None]), {}, "has no value that tells its type: exclude it, or name it in text or numbers"),
    (pa.array([1], pa.date32()), {}, r"holds dates or times \(date32\[day\]\): exclude it, read it as a number \(dates="),
    (pa.array([1.5]), {"text": ["x"]}, "expected text, as asked or as in the first file, got numbers"),
    (pa.array([[1]]), {"text": ["x"]}, "expected text, as asked"),
]


@pytest.mark.parametrize(("column", "options", "message"), WRONG_COLUMNS)
def test_columns_that_are_no_features(tmp_path, column, options, message):
    with pytest.raises(StreamError, match=rf"a\.parquet: column 'x' {message}|a\.parquet: column 'x': {message}"):
        streams.open(frame_of(tmp_path, x=column), target="y", **options)


@pytest.mark.parametrize(
    ("target", "found"),
    [
        (pa.array([DAY]), r"dates or times \(date32\[day\]\): turn them into numbers first"),
        (pa.array([[1.0]]), r"lists \(list<.*: double>\): turn it into plain columns"),
        (pa.array([b"a"]).dictionary_encode(), r"categories \(bytes \(binary\)\): decode it to text"),
    ],
)
def test_columns_that_are_no_targets(tmp_path, target, found):
    path = write(tmp_path / "a.arrow", pa.table({"y": target, "x": [1.0]}))
    with pytest.raises(StreamError, match=rf"a\.arrow: expected numbers, .* in the target column 'y', got {found}"):
        streams.open(path, target="y")


@pytest.mark.parametrize("name", ["a.arrow", "a.parquet"])
@pytest.mark.parametrize("values", [[10, 2, 10], [False, True, True], [1.5, -1.0, 1.5]])
def test_a_target_of_categories_that_are_numbers_is_numbers(tmp_path, name, values):
    path = write(tmp_path / name, pa.table({"y": pa.array(values).dictionary_encode(), "x": [1.0, 2.0, 3.0]}))
    stream = streams.open(path, target="y")
    assert [block.y.tolist() for block in stream] == [values]
    assert stream.labels is None


INFINITE = "expected a finite number in column 'w', got inf (max_errors, or --max-errors, leaves out such rows)"
WRONG_VALUES = [
    ({"x": [1.0, None]}, {}, "expected a number in column 'x', got a missing value (missing: omit or indicator accept it)"),
    ({"x": [1.0, float("nan")]}, {}, "expected a number in column 'x', got a missing value"),
    ({"x": [True, None]}, {}, "expected true or false in column 'x', got a missing value"),
    ({"x": ["a", None]}, {}, "expected text in column 'x', got a missing value"),
    ({"x": [1.0, float("inf")]}, {"missing": "omit"}, "expected a finite number in column 'x', got inf (max_errors, or"),
    ({"x": [1.0, -float("inf")]}, {"missing": "omit"}, "expected a finite number in column 'x', got -inf"),
    ({"x": [1, 2**53 + 1]}, {}, f"expected a number within 2^53 in column 'x', got {2**53 + 1} (text reads the column"),
    ({"x": [1, -(2**63)]}, {}, f"expected a number within 2^53 in column 'x', got {-(2**63)}"),
    ({"x": pa.array([1, 2**64 - 1], pa.uint64())}, {}, f"expected a number within 2^53 in column 'x', got {2**64 - 1}"),
    ({"x": ["1", "1,5"]}, {"numbers": ["x"]}, "expected a number in column 'x', got '1,5'"),
    ({"x": [1, 1], "y": [1.0, None]}, {"missing": "omit"}, "expected a number in column 'y', got a missing value"),
    ({"x": [1, 1], "y": ["a", None]}, {"missing": "omit"}, "expected text in column 'y', got a missing value"),
    ({"x": [1, 1], "w": [1.0, -1.0]}, {"weight": "w"}, "expected a weight of 0 or more in column 'w', got -1"),
    ({"x": [1, 1], "w": [1.0, float("inf")]}, {"weight": "w"}, INFINITE),
    ({"x": [1, 1], "y": [1.0, float("inf")]}, {"missing": "omit"}, INFINITE.replace("'w'", "'y'")),
    ({"x": [1, 1], "w": [1.0, None]}, {"weight": "w", "missing": "omit"}, "expected a number in column 'w', got a missing"),
]


@pytest.mark.parametrize(("columns", "options", "message"), WRONG_VALUES, ids=[w[2][:50] for w in WRONG_VALUES])
def test_wrong_values_are_refused_with_their_row_or_skipped(tmp_path, columns, options, message):
    good, bad = ({name: pa.array(column)[k:m] for name, column in columns.items()} for k, m in ((0, 1), (1, 2)))
    with_target = [{"y": pa.array([1.0]), **part} if "y" not in part else part for part in (good, bad)]
    good, bad = map(pa.table, with_target)
    path = write(tmp_path / "a.parquet", pa.concat_tables([good, good, bad, good, bad]), 3)
    found = []
    with pytest.raises(StreamError) as error:
        found.extend(streams.open(path, target="y", **options))
    assert str(error.value).startswith(f"{path}:3: {message}")
    assert [int(line) for block in found for line in block.lines] == [1, 2]
    stream = streams.open(path, target="y", max_errors=2, **options)
    for _ in range(2):
        assert [int(line) for block in stream for line in block.lines] == [1, 2, 4]
        assert [error.removeprefix(f"{path}:")[:2] for error in stream.errors] == ["3:", "5:"]


LATER_FILES = [
    ({"x": [1.0]}, "expected a column 'c', got 'y', 'x'"),
    ({"x": ["a"], "c": ["a"]}, "column 'x': expected a number, as asked or as in the first file, got text"),
    ({"x": [1.0], "c": [1.5]}, "column 'c': expected text, as asked or as in the first file, got numbers"),
    ({"x": [1.0], "c": ["a"], "z": [1.0]}, "the column 'z' is not in"),
    ({"y": ["a"], "x": [1.0], "c": ["a"]}, "column 'y': expected a number, as asked or as in the first file, got text"),
]


@pytest.mark.parametrize(("columns", "message"), LATER_FILES)
def test_later_files_must_agree_with_the_first(tmp_path, columns, message):
    first = frame_of(tmp_path, "1.parquet", x=[1.0], c=["a"])
    second = frame_of(tmp_path, "2.parquet", **columns)
    stream = streams.open([first, second], target="y")
    found = []
    with pytest.raises(StreamError) as error:
        found.extend(stream)
    assert str(error.value).startswith(f"{second}: {message}")
    assert len(found) == 1


def test_later_files_may_hold_numbers_or_categories_of_other_types_and_columns_of_nothing(tmp_path):
    first = frame_of(tmp_path, "1.parquet", x=[1.0], c=["a"])
    second = frame_of(tmp_path, "2.parquet", c=pa.array(["a"]).dictionary_encode(), x=pa.array([7], pa.int8()))
    third = frame_of(tmp_path, "3.parquet", c=pa.array([None]), x=pa.array([None]))
    _, rows = read([first, second, third], missing="omit")
    assert rows == [{0: 1.0, **dict([hashed("c=a", 1)])}, {0: 7.0, **dict([hashed("c=a", 1)])}, {}]


def test_repeated_names(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,x,x\n1,2,3\n")
    with pytest.raises(StreamError, match="expected each column name once, got 'x' twice"):
        streams.open(path, target="y")
    pq.write_table(pa.Table.from_arrays([pa.array([1.0])] * 3, names=["y", "x", "x"]), tmp_path / "a.parquet")
    with pytest.raises(StreamError, match="expected each column name once, got 'x' twice"):
        streams.open(tmp_path / "a.parquet", target="y")
    (tmp_path / "x=1").mkdir()
    frame_of(tmp_path / "x=1", x=[1.0])
    (tmp_path / "a.parquet").unlink()
    (tmp_path / "a.csv").unlink()
    with pytest.raises(StreamError, match="the column 'x' is both in the file and in its folder's name"):
        streams.open(tmp_path, target="y")


OPTIONS = [
    ({"target": "z"}, ValueError, "target: the column 'z' is not known. Known: x, y"),
    ({"target": None}, ValueError, "target must name the column to predict, one of 'y', 'x'"),
    ({"target": 0}, TypeError, "target must be the name of a column, which is text, got 0"),
    ({"features": [1]}, TypeError, "features must hold texts, as ['a', 'b'], got 1"),
    ({"text": 1}, TypeError, "text must hold texts, as ['a', 'b'], got 1"),
    ({"weight": "z"}, ValueError, "weight: the column 'z' is not known"),
    ({"weight": "y"}, ValueError, "weight must name another column than the target, got 'y' for both"),
    ({"features": ["z*"]}, ValueError, "features: the column 'z*' is not known"),
    ({"exclude": ["z"]}, ValueError, "exclude: the column 'z' is not known"),
    ({"exclude": ["x"]}, ValueError, "no column is left as a feature"),
    ({"text": ["z"]}, ValueError, "text and numbers: the column 'z' is not known"),
    ({"text": ["x"], "numbers": ["x"]}, ValueError, "text and numbers must name each column once"),
    ({"categories": "onehot"}, ValueError, "categories 'onehot' is not known. Did you mean 'one-hot'?"),
    ({"hash_bits": 31}, ValueError, "hash_bits must be a whole number from 1 to 30, got 31"),
    ({"hash_bits": 5, "categories": "one-hot"}, ValueError, "hash_bits is for categories='hash', got categories='one-hot'"),
    ({"missing": "zero"}, ValueError, "missing 'zero' is not known"),
    ({"missing": "text=omit"}, ValueError, "missing: the kind 'text' is not known"),
    ({"dates": "weeks"}, ValueError, "dates 'weeks' is not known"),
    ({"format": "xml"}, ValueError, "format 'xml' is not known"),
    ({"base": 0}, ValueError, "base is for the format svmlight, and the input is parquet"),
    ({"delimiter": ";"}, ValueError, "delimiter is for the format csv, and the input is parquet"),
    ({"missing": 1}, TypeError, "missing must be text, as 'omit', or a mapping, as {'numbers': 'omit'}, got 1"),
    ({"missing": {1: "omit"}}, ValueError, "missing: the kind '1' is not known"),
    ({"format": None}, ValueError, "format 'None' is not known"),
    ({"classes": "scan"}, TypeError, "classes must be a list of names, as ['a', 'b'], got 'scan'"),
    ({"sort": "no"}, TypeError, "sort must be True or False, got 'no'"),
    ({"unlabelled": "no"}, TypeError, "unlabelled must be True or False, got 'no'"),
    ({"block_bytes": 0}, ValueError, "block_bytes must be an integer of at least 1, got 0"),
    ({"block_bytes": "2M"}, ValueError, "block_bytes must be an integer of at least 1, got '2M'"),
    ({"max_errors": -1}, ValueError, "max_errors must be an integer of at least 0, got -1"),
    ({"encoding": {"format": "vw", "version": 1}}, ValueError, "encoding: expected one of parquet input, got one of vw"),
    ({"encoding": {"format": "columns", "version": 4}}, ValueError, "encoding: expected a description that a stream of this"),
]


@pytest.mark.parametrize(("options", "error", "message"), OPTIONS, ids=[str(option[0]) for option in OPTIONS])
def test_options_that_do_not_fit(tmp_path, options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        streams.open(frame_of(tmp_path, x=[1.0]), **{"target": "y", **options})


def test_options_may_be_arrays_sets_and_iterators(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,x,z\nno,1,2\nyes,3,4\n")
    with pytest.raises(ValueError, match="delimiter must be one ASCII character, and no quote or line end, got 3"):
        streams.open(path, target="y", delimiter=3)
    expected = list(streams.open(path, target="y", classes=["no", "yes"], features=["x"], hash_bits=4))
    for kind in (np.array, pd.Series, set, iter):
        options = {"classes": kind(["no", "yes"]), "features": kind(["x"]), "exclude": kind([]), "nulls": kind(["NA"])}
        stream = streams.open(path, target="y", hash_bits=np.int64(4), **options)
        assert stream.labels == ("no", "yes")
        assert [(b.X.toarray().tolist(), b.y.tolist()) for b in stream] == [
            (b.X.toarray().tolist(), b.y.tolist()) for b in expected
        ]
        with pytest.raises(ValueError, match="classes is for files and tables"):
            streams.open("iris", classes=kind(["no", "yes"]))


def test_files_of_other_kinds_are_named_with_what_reads_them(tmp_path):
    for name, reader in {
        "a.jsonl": "read_json",
        "b.json.gz": "read_json",
        "c.xlsx": "read_excel",
        "d.npz": "numpy.load",
        "e.arrows": "open_stream",
    }.items():
        (tmp_path / name).write_bytes(b"1 1:2\n")
        with pytest.raises(ValueError, match=rf"{re.escape(name)}: a file of this kind is not read; read it with .*{reader}"):
            streams.open(tmp_path / name)
    assert len(list(streams.open(tmp_path / "a.jsonl", format="svmlight"))) == 1


def test_open_files_and_iterables_are_refused_with_what_to_give(tmp_path):
    path = frame_of(tmp_path, x=[1.0])
    with open(path, "rb") as file, tempfile.NamedTemporaryFile(dir=tmp_path) as wrapped:
        for held in (file, wrapped, io.BytesIO(b"y,x"), zipfile.ZipFile(io.BytesIO(), "w")):
            with pytest.raises(TypeError, match="got an open file: give its name, or a URI such as"):
                streams.open(held, target="y")
    for pieces, hint in (
        ([{"x": 1}], "give a list of the dicts, or each to learn_one"),
        ([pd.DataFrame({"x": [1.0]})], "give each table to partial_fit"),
    ):
        with pytest.raises(TypeError, match=hint):
            streams.open(iter(pieces), target="y")
        with pytest.raises(StreamError, match=rf"block 1: expected \(X, y\) .*: {hint}"):
            OnlineClassifier().fit(iter(pieces))


def test_formats_that_do_not_fit(tmp_path):
    svm = tmp_path / "a.svm"
    svm.write_text("1 1:2\n")
    path = frame_of(tmp_path, x=[1.0])
    for options, message in [
        ({"source": [path, svm], "target": "y"}, "expected files of one format"),
        ({"source": svm, "target": "y"}, "target is for the format parquet or arrow or csv, and the input is svmlight"),
        ({"source": svm, "hash_bits": 3}, "hash_bits is for columns and vw"),
        ({"source": svm, "format": "columns"}, "its name does not tell whether it is parquet, arrow or csv"),
    ]:
        with pytest.raises(ValueError, match=message):
            streams.open(**options)
    for folder, message in [("empty", "with no file in it"), ("mixed", "of one kind"), ("text", "of one kind")]:
        (tmp_path / folder).mkdir()
        if folder == "mixed":
            frame_of(tmp_path / folder, "a.arrow", x=[1.0])
            frame_of(tmp_path / folder, x=[1.0])
        if folder == "text":
            (tmp_path / folder / "a.svm").write_text("1 1:1")
        with pytest.raises(IsADirectoryError, match=message):
            streams.open(tmp_path / folder, target="y")
    with pytest.raises(IsADirectoryError, match="is a folder; expected a file"):
        streams.open(tmp_path, format="svmlight")


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_files_that_are_damaged_or_something_else(tmp_path, name):
    rng = np.random.default_rng(0)
    path = frame_of(tmp_path, name, x=rng.normal(size=5000))
    whole = path.read_bytes()
    for content in (b"", b"PAR1", b"y,x\n1,2\n", whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(StreamError, match=rf"{name}: expected an? (Parquet|Arrow \(Feather\)) file, got "):
            streams.open(path, target="y")
    path.write_bytes(whole[:1000] + bytes(2000) + whole[3000:])
    if name == "a.parquet":
        with pytest.raises(StreamError, match=rf"{name}: cannot be read after row \d+: "):
            list(streams.open(path, target="y"))


CSV = [
    ("", r"a\.csv:1: expected a line of column names, got an empty file"),
    ("\n\r\n", r"a\.csv:1: expected a line of column names, got an empty file"),
    ("\xef\xbb\xbf", r"a\.csv:1: expected a line of column names, got an empty file"),
    ("x,y", r"a\.csv: expected rows after the line of names, got none"),
    ("\xef\xbb\xbfx,y", r"a\.csv: expected rows after the line of names, got none"),
    ("y,x\n1,2\n1\n1,3\n", r"a\.csv:3: expected 2 values as in the line of names, got 1\."),
    ("y,x\n1,2\n1,2,3\n1,3\n", r"a\.csv:3: expected 2 values as in the line of names, got 3\."),
    ("y,x\n1,2\n1,\xff\n", r"a\.csv:3: expected UTF-8 text in column 'x', got "),
    ("\x89PNG\n1,2\n", r"a\.csv:1: expected names of columns in UTF-8, got b'.x89PNG"),
    ("y,x\n1,2\n1,2,\xff\n1,3\n", r"a\.csv:3: expected 2 values as in the line of names, got 3: '1,2,"),
    ("y,x\n1,\n1,\n", "has no value that tells its type"),
    ('y,"x\n1,2\n1,3\n', r"a\.csv:1: expected rows after the line of names, got none; is a quote left open\?"),
    ('y,x\n1,2\n"1,3\n1,4\n', r"a\.csv:3: expected 2 values as in the line of names, got 1; is a quote left open\?"),
    ('y,x\n"1,2\n1,3\n', r"a\.csv:2: expected 2 values as in the line of names, got 1; is a quote left open\?"),
    ("y\n1,2\n", r"a\.csv:2: expected 1 values as in the line of names, got 2\."),
    ("y,x\n1,\xe9\n", r"a\.csv:2: expected UTF-8 text in column 'x', got .* \(of Latin-1 text: iconv -f LATIN1 -t UTF-8\)"),
    ("3,1,1\n2,1,0\n", "expected each column name once, got '1' twice. Are these values of a row"),
    ("y,\xe9\n1,2\n", r"a\.csv:1: expected names of columns in UTF-8, got .* \(of Latin-1 text: iconv -f LATIN1 -t UTF-8\)"),
]


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(("text", "message"), CSV)
def test_csv_that_is_wrong(tmp_path, text, message):
    path = tmp_path / "a.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(StreamError, match=message):
        read(path)


FOREIGN = {
    "gzip data; a file named *.gz": gzip.compress(b"y,x\n1,2\n"),
    "bzip2 data; a file named *.bz2": bz2.compress(b"y,x\n1,2\n"),
    "Zstandard data; a file named *.zst": pa.compress(b"y,x\n1,2\n", "zstd", asbytes=True),
    "a Parquet file; a file named *.parquet": b"PAR1" + bytes(20),
    "a tar archive; unpack it": bytes(257) + b"ustar" + bytes(250),
    "a model file; give the rows here": bytes(8) + b'{"__metadata__":{"onlinear-model":"{}"}}',
    "a zip archive or a spreadsheet; unpack it": b"PK\x03\x04" + bytes(20),
    "UTF-16 text; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)": "y,x\n1,2\n".encode("utf-16"),
    "UTF-16 text; convert it to UTF-8": "y,x\n1,2\n".encode("utf-16-le"),
}


def test_other_layouts_of_arrow_are_named_with_what_writes_them_anew(tmp_path):
    path, table = tmp_path / "a.feather", pa.table({"x": [1.0], "y": [0]})
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(StreamError, match=r"a\.feather: expected an Arrow .* got a stream of Arrow, .*\.open_stream\(path\)"):
        streams.open(path, target="y")
    path.write_bytes(b"FEA1" + bytes(40))
    with pytest.raises(StreamError, match=r"got a Feather file of version 1: write it anew, .*feather\.read_table\(path\)"):
        streams.open(path, target="y")


def test_a_column_more_that_exclude_fits_does_not_matter(tmp_path):
    for name, columns in (("1", {"x": [1.0], "q1": [1]}), ("2", {"x": [2.0], "q1": [1], "q2": [[1]]})):
        pq.write_table(pa.table({**columns, "y": [0]}), tmp_path / f"{name}.parquet")
    assert rows_of(streams.open(tmp_path / "*.parquet", target="y", exclude=["q*"])) == [{0: 1.0}, {0: 2.0}]
    with pytest.raises(
        StreamError, match=r"2\.parquet: the column 'q2' is not in .*1\.parquet; name the features \(features=, in"
    ):
        list(streams.open(tmp_path / "*.parquet", target="y", exclude=["q1"]))


@pytest.mark.parametrize("what", FOREIGN)
def test_csv_that_is_another_kind_of_file(tmp_path, what):
    path = tmp_path / "a.csv"
    path.write_bytes(FOREIGN[what])
    with pytest.raises(StreamError, match=re.escape(f"a.csv:1: expected CSV text, got what looks like {what}")):
        read(path)


def test_an_open_quote_is_named_by_its_line_in_a_long_file(tmp_path):
    path = tmp_path / "a.csv"
    wrongs = {
        ("2.5", 400_000): "expected a number in column 'x', got text with a line end",
        ("word", 300_000): "expected rows of at most",
        ("word", 599_990): "expected a value that ends, got text up to the end of the file",
        ("word", 600_000): "expected a value that ends, got text up to the end of the file",
    }
    for (value, at), what in wrongs.items():
        lines = ["y,x"] + [f"1,{value}"] * 600_000
        lines[at] = f'1,"{value}'
        path.write_text("\n".join(lines) + "\n")
        with pytest.raises(StreamError, match=rf"a\.csv:{at + 1}: {what}.*; is a quote left open\?"):
            list(streams.open(path, target="y"))


def test_a_last_value_of_several_lines_is_no_open_quote(tmp_path):
    path = tmp_path / "a.csv"
    for end in ("", "\n", "\r\n", "\n\n", " \n", "\n" * 20, "\n" * (1 << 21)):
        path.write_bytes(('y,x\n1,a\n0,"b\nc ""d"""' + end).encode())
        (block,) = streams.open(path, target="y")
        assert block.n == 2


@pytest.mark.parametrize("last", ['"b\nc"d', '"b\nc"d\n', '"\n"\n', '5" pipe', '"a""\n"b"'])
def test_a_last_value_with_a_line_end_and_text_behind_its_quote_is_no_open_quote(tmp_path, last):
    path = tmp_path / "a.csv"
    for text in (f"y,x\n1,a\n0,{last}", f"x,y\nb,1\nc,{last}"):
        path.write_text(text)
        assert sum(block.n for block in streams.open(path, target="y")) == 2


@pytest.mark.parametrize("rows", [3, 300_000])
@pytest.mark.parametrize("last", ['1,2,"a\nb\n', '1,2,"a\n', '1,2,"a', '1,2,"a ""', '1,"2,a\nb'])
def test_the_row_of_an_open_quote_at_the_end_is_not_learned_whatever_columns_are_read(tmp_path, rows, last):
    path = tmp_path / "a.csv"
    path.write_text("y,x,z\n" + "1,2,a\n" * rows + last)
    for features in (["x"], ["x", "z"]):
        found = []
        with pytest.raises(StreamError, match=rf"a\.csv:{rows + 2}: .*; is a quote left open\?"):
            found.extend(streams.open(path, target="y", features=features, max_errors=4))
        assert sum(block.n for block in found) == rows


@pytest.mark.parametrize("short", [0, 1, 9, 19])
def test_what_stands_behind_a_file_goes_beyond_no_block(tmp_path, monkeypatch, short):
    asked, read = [], csv_table._Rewindable.read

    def noted(file, size):
        asked.append((read(file, size), size))
        return asked[-1][0]

    monkeypatch.setattr(csv_table._Rewindable, "read", noted)
    path = tmp_path / "a.csv"
    for last, ends in (("1,b", True), ('1,"b', False)):
        rows = "y,x\n" + "0,a\n" * 50_000
        rows += f"0,{'a' * (csv_table.HEAD - short - len(rows) - len(last) - 3)}\n{last}"
        assert len(rows) == csv_table.HEAD - short
        path.write_text(rows)
        asked.clear()
        if ends:
            assert sum(block.n for block in streams.open(path, target="y")) == 50_002
        else:
            with pytest.raises(StreamError, match="is a quote left open"):
                list(streams.open(path, target="y"))
        assert asked
        assert all(len(found) <= size for found, size in asked)


def test_csv_rows_with_too_few_or_many_values_are_skipped_if_asked(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,x\n1,2\n1\n1,3\n1,,\n,\n1,4\n,9,9")
    stream, rows = read(path, max_errors=4)
    assert rows == [{0: 2.0}, {0: 3.0}, {0: 4.0}]
    assert [error.removeprefix(str(path)).partition(" ")[0] for error in stream.errors] == [":3:", ":5:", ":6:", ":8:"]
    found = []
    with pytest.raises(StreamError, match=r"a\.csv:5: expected 2 values"):
        found.extend(streams.open(path, target="y", max_errors=1))
    assert [int(line) for block in found for line in block.lines] == [2, 4]


@pytest.mark.parametrize("delimiter", ["", "ab", "\\n", "\n", '"', "é", "\0"])
def test_a_delimiter_that_is_none_is_refused_in_words(tmp_path, delimiter):
    path = tmp_path / "a.csv"
    path.write_text("y,c\n1,2\n")
    with pytest.raises(ValueError, match="delimiter must be one ASCII character, and no quote or line end, got"):
        list(streams.open(path, target="y", delimiter=delimiter))


def test_a_csv_column_that_changes_its_type_names_the_way_out(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,c\n" + "1,2\n" * 300_000 + "1,2.5\n1,x\n")
    with pytest.raises(
        StreamError,
        match=r"a\.csv:300003: expected a number in column 'c', got 'x'.*text='c' reads the column.*--text c or --nulls ,x",
    ):
        list(streams.open(path, target="y"))
    assert sum(block.n for block in streams.open(path, target="y", text="c")) == 300_002
    path.write_text("y,c\n1,x\n1," + "x" * 2**21 + "\n")
    with pytest.raises(StreamError, match=r"a\.csv:3: expected rows of at most 1048576 bytes"):
        read(path)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2", ".zst"])
def test_csv_that_is_cut_short(tmp_path, suffix):
    text = "y,x\n" + "".join(f"1,{k * k % 9973}\n" for k in range(5000))
    path = tmp_path / f"a.csv{suffix}"
    path.write_bytes(packed(text.encode(), suffix)[:-200])
    with pytest.raises(StreamError, match="damaged or cut short"):
        list(streams.open(path, target="y"))


HOSTILE = [
    {"features": [["x"]]},
    {"features": [["x", "binary"]]},
    {"features": [["x", "number"], ["x", "number"]]},
    {"features": [[1, "number"]]},
    {"hash_bits": 10**9},
    {"hash_bits": True},
    {"categories": "none"},
    {"missing": {"numbers": "guess"}},
    {"missing": None},
    {"dates": 3},
    {"target": 3},
    {"values": [[0, "a"]]},
    {"values": [[0.0, "a"]]},
    {"values": "ab"},
    {"seed": 7},
]


@pytest.mark.parametrize("change", HOSTILE, ids=str)
def test_descriptions_that_no_stream_gave(tmp_path, change):
    path = frame_of(tmp_path, x=[1.0])
    description = streams.open(path, target="y").encoding
    with pytest.raises(ValueError, match="encoding: expected a description"):
        streams.open(path, encoding={**description, **change})
    with pytest.raises(ValueError, match="encoding: expected a description"):
        streams.open(path, encoding={key: value for key, value in description.items() if key not in change})


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_converted_rows_are_known_by_what_is_in_them(tmp_path, suffix):
    (tmp_path / "a.svm").write_text("1 1:2 5:3\n-1 2:1\n")
    text = streams.open(tmp_path / "a.svm")
    path = tmp_path / f"a{suffix}"
    write_converted(path, text)
    assert rows_of(streams.open(path)) == rows_of(text)
    assert rows_of(streams.open(path, format="columns")) == rows_of(text)
    with pytest.raises(ValueError, match="target is for columns with names"):
        streams.open(path, target="y")
    with pytest.raises(ValueError, match="expected files of one kind"):
        streams.open([path, frame_of(tmp_path, f"b{suffix}", x=[1.0])], target="y")


def test_bundled_sets_have_names_and_read_from_other_files_alike(tmp_path):
    bundled = streams.open("wine")
    (block,) = bundled
    names = load_wine().feature_names
    assert enc.names(bundled.encoding, 14) == [*names, None]
    pd.DataFrame(block.X.toarray(), columns=names)[names[::-1]].to_csv(tmp_path / "wine.csv", index=False)
    assert rows_of(streams.open(tmp_path / "wine.csv", encoding=bundled.encoding)) == rows_of([block])


def test_names_of_more_columns_than_features(tmp_path):
    one = streams.open(frame_of(tmp_path, x=[1.0], c=["a"]), target="y", hash_bits=2).encoding
    two = streams.open(frame_of(tmp_path, c=["a"], d=["a"]), target="y", hash_bits=1).encoding
    assert enc.names(one, 7) == ["x", *["c (hashed)"] * 4, None, None]
    assert enc.names(one, 2) == ["x", "c (hashed)"]
    assert enc.names(two, 3) == ["(hashed)", "(hashed)", None]
    assert enc.names(None, 2) == enc.names(enc.describe_hashing(3), 2) == [None, None]


def test_reading_ahead_gives_the_same_rows_and_the_dictionary_that_belongs_to_them(tmp_path):
    path = frame_of(tmp_path, c=[f"v{k % 97}" for k in range(500)], y=["a", "b"] * 250)
    stream = streams.open(path, target="y", categories="one-hot", block_bytes=200)
    plainly = [(rows_of([block]), block.y.tolist()) for block in stream]
    ahead = Ahead(streams.open(path, target="y", categories="one-hot", block_bytes=200))
    seen, size = [], 0
    for block in ahead:
        seen.append((rows_of([block]), block.y.tolist()))
        size = max(size, block.size)
        part = enc.upto(ahead.encoding, size)
        assert part["values"] == [[0, f"v{k}"] for k in range(size)]
        assert ahead.labels == ("a", "b")
    assert seen == plainly


# --- hostile Arrow files ---------------------------------------------------------------------------------------------


def patched(path, table, old, new):
    """An uncompressed Arrow file of the table, in which the first ``old`` bytes are ``new``."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    content = path.read_bytes()
    at = content.find(old)
    assert at > 0
    path.write_bytes(content[:at] + new + content[at + len(old) :])
    return path


HOSTILE = {
    "an offset far away": ([0, 1, 2, 3], [0, 0x3FFFFFFF, 2, 3]),
    "an offset beyond the end": ([0, 1, 2, 3], [0, 1, 2, 300]),
    "a negative offset": ([0, 1, 2, 3], [0, -1, 2, 3]),
    "offsets that descend": ([0, 1, 2, 3], [0, 3, 1, 3]),
}


@pytest.mark.parametrize("change", HOSTILE)
def test_offsets_of_arrow_text_are_checked_before_they_are_used(tmp_path, change):
    old, new = (np.array(offsets, np.int32).tobytes() for offsets in HOSTILE[change])
    path = patched(tmp_path / "a.arrow", pa.table({"y": [0, 1, 0], "s": ["a", "b", "c"]}), old, new)
    with pytest.raises(StreamError, match=r"a\.arrow: cannot be read after row 0: "):
        list(streams.open(path, target="y"))
    if change == "an offset far away":  # a process that has read it ends as others do
        command = [sys.executable, "-m", "onlinear", "train", path, "--target", "y"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode, "cannot be read after row 0" in done.stderr) == (1, True)


def test_places_in_a_dictionary_are_checked(tmp_path):
    codes = pa.array([0, 1, 2, 1], pa.int32())
    table = pa.table({"y": [0, 1, 0, 1], "s": pa.DictionaryArray.from_arrays(codes, pa.array(["x", "y", "z"]))})
    old, new = (np.array(places, np.int32).tobytes() for places in ([0, 1, 2, 1], [0, 1, 200, 1]))
    with pytest.raises(StreamError, match=r"a\.arrow: cannot be read after row 0: .*200"):
        list(streams.open(patched(tmp_path / "a.arrow", table, old, new), target="y"))


def test_text_that_is_no_utf8_is_refused_in_every_file(tmp_path):
    table = pa.table({"y": [0, 1, 0], "s": ["abcdef", "b", "c"]})
    path = patched(tmp_path / "a.arrow", table, b"abcdef", b"abc\xffef")
    pq.write_table(table, tmp_path / "a.parquet", compression="none", write_statistics=False, use_dictionary=False)
    content = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(content.replace(b"abcdef", b"abc\xffef"))
    for path in (tmp_path / "a.arrow", tmp_path / "a.parquet"):
        with pytest.raises(StreamError, match=r"cannot be read after row 0: .*Invalid UTF"):
            list(streams.open(path, target="y"))


NO_FEATURES = {
    "list": pa.array([[1]] * 2),
    "bytes": pa.array([b"0" * 16] * 2, pa.binary(16)),
    "nested": pa.array([[[[{"a": [1]}]]]] * 2),
    "union": pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]),
    "run-end encoded": pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array([1.0])),
    "interval": pa.array([(1, 2, 3)] * 2, pa.month_day_nano_interval()),
}  # fmt: skip


@pytest.mark.parametrize("kind", NO_FEATURES)
def test_types_that_are_no_features_are_refused_in_words(tmp_path, kind):
    table = pa.table({"y": [0, 1], "c": NO_FEATURES[kind]})
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(StreamError, match=r"a\.arrow: column 'c' holds .* which is no feature"):
        streams.open(tmp_path / "a.arrow", target="y")


def test_a_parquet_file_that_says_it_has_other_rows(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"y": [0.0, 1.0], "x": [1.0, 2.0]}), path)
    stream = streams.open(path, target="y")
    pq.write_table(pa.table({"y": [0.0], "x": [1.0]}), path)
    assert sum(block.n for block in stream) == 1  # the metadata are those of the file that is read


# --- many columns ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_many_columns_of_every_kind_are_read_as_few_are(tmp_path, suffix):
    rng, n = np.random.default_rng(3), 40
    kinds = [
        lambda: pa.array(np.where(rng.random(n) < 0.3, 0.0, rng.standard_normal(n))),
        lambda: pa.array([None if x < 0.2 else float(x) for x in rng.random(n)]),
        lambda: pa.array(rng.random(n) < 0.5),
        lambda: pa.array(rng.choice(["red", "green", ""], n)),
        lambda: pa.array([None if x < 0.3 else f"v{int(9 * x)}" for x in rng.random(n)]),
    ]
    if suffix != ".csv":
        kinds += [
            lambda: pa.array(rng.integers(-9, 9, n), pa.int16()),
            lambda: pa.array(rng.choice(["a", "b"], n)).dictionary_encode(),
            lambda: pa.array([None if x < 0.2 else int(9 * x) for x in rng.random(n)]),
        ]
    names = [f"c{k}" for k in range(300)]
    table = pa.table({"y": pa.array(rng.integers(0, 2, n)), **{name: kinds[k % len(kinds)]() for k, name in enumerate(names)}})
    path = write(tmp_path / f"a{suffix}", table)
    for categories in ("hash", "one-hot"):
        options = {"target": "y", "missing": "indicator", "categories": categories}
        whole = streams.open(path, **options)
        wide = rows_of(whole)
        assert wide == rows_of(streams.open(path, **options, block_bytes=3000))
        names_of = enc.names(whole.encoding, 10**6)
        if categories == "one-hot":
            for k in (0, 1, 2, 3, 4, 148, 149, 298, 299):  # each column as it is read alone
                alone = streams.open(path, **options, features=f"c{k}")
                found = [{enc.names(alone.encoding, 99)[j]: x for j, x in row.items()} for row in rows_of(alone)]
                own = {f"c{k}", f"c{k} is missing"}
                wanted = [
                    {names_of[j]: x for j, x in row.items() if names_of[j] in own or names_of[j].startswith(f"c{k}=")}
                    for row in wide
                ]
                assert found == wanted


def test_of_several_wrong_columns_the_first_is_named(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"y": [0.0, np.nan], "a": [1, 2**60], "s": ["u", None], "b": [1.0, np.inf], "c": [1, 2**61]}), path)
    for exclude, name in (((), "a"), (("a",), "b"), (("a", "b"), "c"), (("a", "b", "c"), "s")):
        with pytest.raises(StreamError, match=rf"a\.parquet:2: expected .* in column '{name}'"):
            list(streams.open(path, target="y", exclude=exclude))


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".arrow"])
def test_eight_thousand_columns_take_no_millisecond_each(tmp_path, suffix):
    names = [f"column_{k}" for k in range(8000)]
    table = pa.table({"y": [0, 1] * 20, **{name: [float(k % 9)] * 40 for k, name in enumerate(names)}})
    path = tmp_path / f"a{suffix}"
    if suffix == ".csv":
        pacsv.write_csv(table, path)
    else:
        write(path, table, 40)
    began = time.process_time()
    (block,) = [joined(list(streams.open(path, target="y")))]
    assert time.process_time() - began < 2.0  # it was 2 on a free machine, and is 0.3
    assert block.size == 8000
    assert block.csr(8000)[39].toarray().tolist() == [[float(k % 9) for k in range(8000)]]


def test_a_line_of_names_longer_than_a_mebibyte(tmp_path):
    names = [f"{'a_long_name_of_a_column_' * 5}{k}" for k in range(10_000)]
    (tmp_path / "a.csv").write_text(",".join(["y", *names]) + "\n" + "1,5" + "," * 9_999 + "\n")
    (block,) = streams.open(tmp_path / "a.csv", target="y", missing="omit", numbers=names)
    assert block.csr(1).toarray().tolist() == [[5.0]]


def test_rows_of_which_every_one_is_skipped(tmp_path):
    (tmp_path / "a.csv").write_text("y,a,s\n1,2,u\n,3,v\n,4,w\n")
    stream = streams.open(tmp_path / "a.csv", target="y", max_errors=9, block_bytes=1)
    assert [block.y.tolist() for block in stream] == [[1.0]]
    assert len(stream.errors) == 2


def test_a_packed_file_of_nothing_but_commas(tmp_path):
    (tmp_path / "a.csv.bz2").write_bytes(bz2.compress(b"," * 3_000_000 + b"\n"))
    with pytest.raises(StreamError, match=r"a\.csv\.bz2:1: expected at most 262,144 columns, got 3,000,001"):
        streams.open(tmp_path / "a.csv.bz2", target="y")
    (tmp_path / "b.csv").write_text("y" + ",c" * 100_000 + "\n1" + ",2" * 100_000 + "\n")
    with pytest.raises(StreamError, match="expected each column name once, got 'c' twice"):
        streams.open(tmp_path / "b.csv", target="y")


def test_a_csv_file_that_is_left_early_is_not_read_on(tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("y,t\n" + "1,0.123456789\n" * 1_000_000)
    stream = streams.open(rows, target="y")
    for _ in range(3):
        blocks = iter(stream)
        next(blocks)
        began = time.perf_counter()
        blocks.close()
        assert time.perf_counter() - began < 5.0
    assert sum(block.n for block in stream) == 1_000_000
