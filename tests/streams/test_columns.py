"""Tables of named columns: the rows they give, for any block size and file format, and every way they can be wrong."""

from __future__ import annotations

import datetime
import json
import lzma
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from sklearn.utils import murmurhash3_32

from onlinear import Learner, streams
from onlinear.streams import encoding as enc
from onlinear.streams.blocks import joined

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
    numbers, labels = enc.policies(missing)
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
    stream = streams.open(path, categories=categories, hash_bits=hash_bits, missing=missing, dates="days", **options)
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
    """The first 80 % of the rows are learnt; the rest are ranked far better than by chance."""
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
