"""Word n-grams of text columns and bins of numbers: entries, names, and the options that ask for them."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import murmurhash3_32
from test_columns import rows_of

from onlinear import OnlineClassifier, load, streams
from onlinear.streams import StreamError
from onlinear.streams import encoding as enc
from onlinear.streams.dict_rows import row_reader

ROWS = [
    {"y": 0, "age": 17.0, "site": "x", "review": "Not good, not GOOD!", "n": 1.0},
    {"y": 1, "age": 18.0, "site": "y", "review": "über_2 3x", "n": 2.0},
    {"y": 1, "age": None, "site": None, "review": None, "n": 3.0},
    {"y": 0, "age": 64.5, "site": "x", "review": " ... ", "n": 4.0},
    {"y": 0, "age": 1e9, "site": "z", "review": "a b c d e", "n": 5.0},
]
OPTIONS = {"target": "y", "ngrams": {"review": 3}, "bins": {"age": [18, 30.5]}, "interactions": [("site", "age"), ("age", "n")]}
BINS = {"17.0": "(-inf, 18)", "18.0": "[18, 30.5)", "64.5": "[30.5, inf)", "1000000000.0": "[30.5, inf)"}


def hashed(key):
    return murmurhash3_32(key.encode() if isinstance(key, str) else key, seed=0, positive=True)


def reference(row, missing, bits):
    """The row's entries, by the formulas of the page on streams."""
    found = {0: row["n"]}
    offset = 2 if missing == "indicator" else 1

    def add(key, value=1.0):
        h = hashed(key)
        found[offset + h % 2**bits] = found.get(offset + h % 2**bits, 0.0) + (-value if h >> 31 else value)

    def pair(first, second):
        return b"".join(h.to_bytes(4, "little") for h in sorted((hashed(first), hashed(second))))

    kept = missing == "indicator"
    age = "age" if row["age"] is None else f"age={BINS[str(row['age'])]}"
    site = "site" if row["site"] is None else f"site={row['site']}"
    if row["age"] is not None or kept:
        add(age)
        add(pair(age, "n"), row["n"])
    if row["site"] is not None or kept:
        add(site)
        if row["age"] is not None or kept:
            add(pair(site, age))
    if row["review"] is None and kept:
        add("review")
    words = re.findall("[a-z0-9_\u0080-\U0010ffff]+", (row["review"] or "").lower())
    for n in (1, 2, 3):
        for k in range(len(words) - n + 1):
            add("review=" + " ".join(words[k : k + n]))
    return {column: value for column, value in found.items() if value != 0.0}


@pytest.mark.parametrize("missing", ["omit", "indicator"])
@pytest.mark.parametrize("bits", [3, 18])
def test_rows_have_the_entries_of_the_formulas_whichever_way_they_come(missing, bits, tmp_path):
    frame = pd.DataFrame(ROWS)
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    wanted = [reference(row, missing, bits) for row in ROWS]
    options = {**OPTIONS, "missing": missing, "hash_bits": bits}
    described = set()
    for source in (frame, ROWS, tmp_path / "rows.parquet", tmp_path / "rows.csv"):
        for block_bytes in (1, 2000, 1 << 20):
            stream = streams.open(source, **options, block_bytes=block_bytes)
            assert rows_of(stream) == wanted
            described.add(json.dumps(stream.encoding))
        assert rows_of(streams.open(source, encoding=json.loads(json.dumps(stream.encoding)), target="y")) == wanted
    (encoding,) = map(json.loads, described)  # with the names of hashed columns, in one order
    enc.must_be_known(encoding)
    reader = row_reader(streams.open(ROWS, **options).encoding)
    for row, entries in zip(ROWS, wanted, strict=True):
        columns, values = reader.row({name: value for name, value in row.items() if name != "y"}, True)
        assert {c: v for c, v in zip(columns, values, strict=True) if v != 0.0} == entries
    assert reader.description()["seen"] == encoding["seen"]


def test_entries_have_names(tmp_path):
    (block,) = stream = streams.open(ROWS, **OPTIONS, missing="indicator")
    names = set(enc.names_of(stream.encoding, np.unique(block.rows.indices)))
    assert {"n", "age=(-inf, 18)", "age=[30.5, inf) x site=x", "age is missing x n", "review is missing"} <= names
    assert {"review=not good not", "review=good not good", "review=über_2 3x", "review=e"} <= names
    assert None not in names
    reader = row_reader(enc.without_seen(stream.encoding))
    named = {name: value for name, _, value in reader.named({**ROWS[0], "age": np.float32(18)})}
    assert set(named) == {
        *("n", "site=x", "age=[18, 30.5)", "age=[18, 30.5) x site=x", "age=[18, 30.5) x n"),
        *(f"review={words}" for words in ("not", "good", "not good", "good not", "not good not", "good not good")),
    }
    assert abs(named["review=not good"]) == 2.0


def test_a_number_of_bins_parts_the_first_rows_alike(tmp_path):
    x = np.random.default_rng(0).normal(size=20_000)
    frame = pd.DataFrame({"x": x, "k": np.arange(20_000) % 2.0, "y": 0})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    first = np.sort(x[: 1 << 14])
    for source in (frame, tmp_path / "rows.csv", tmp_path / "rows.parquet", [str(tmp_path / "rows.csv")] * 2):
        for block_bytes in (1 << 12, 1 << 20):
            stream = streams.open(source, target="y", bins=["x:4", "k:10"], block_bytes=block_bytes)
            assert stream.encoding["bins"] == {"x": first[[1 << 12, 1 << 13, 3 << 12]].tolist(), "k": [1.0]}
    (block, *_) = streams.open(frame, target="y", bins={"x": 4}, block_bytes=1 << 24)
    shares = np.unique(block.rows.indices[block.rows.indices > 0], return_counts=True)[1] / block.n
    assert len(shares) == 4
    assert np.allclose(shares, 0.25, atol=0.02)
    gaps = [{"x": x, "y": 1} for x in (None, 1.0, 2.0, float("nan"), 3.0, 4.0)]
    assert streams.open(gaps, target="y", bins="x:2", missing="omit").encoding["bins"] == {"x": [3.0]}


def test_patterns_take_the_columns_that_fit():
    def asked(**options):
        return streams.open(ROWS, target="y", missing="omit", **options).encoding

    assert asked(ngrams=2)["ngrams"] == asked(ngrams="2")["ngrams"] == {"site": 2, "review": 2}
    assert asked(ngrams=["*:2", "site:1"])["ngrams"] == {"site": 1, "review": 2}
    assert asked(bins="0.5:2")["bins"] == {"age": [0.5, 2.0], "n": [0.5, 2.0]}
    assert asked(bins={"a*": 2})["bins"] == {"age": [64.5]}
    assert asked(bins=["n:18.0"])["bins"] == asked(bins={"n": [18]})["bins"] == {"n": [18.0]}
    assert asked(ngrams=2, interactions=[("*", "*")])["interactions"] == [["age", "n"]]
    assert not {"ngrams", "bins"} & set(asked())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ngrams": {"revie": 2}}, "ngrams: the text column 'revie' is not known. Did you mean 'review'?"),
        ({"ngrams": {"age": 2}}, "ngrams: the text column 'age' is not known"),
        ({"ngrams": {"review": 0}}, "expected a whole number of words from 1 to 8"),
        ({"ngrams": "review:2.5"}, "expected a whole number of words from 1 to 8"),
        ({"ngrams": "review"}, "expected a whole number of words from 1 to 8"),
        ({"ngrams": {"review": "2"}}, "ngrams: expected a name and numbers"),
        ({"ngrams": {"review": 2}, "categories": "one-hot"}, "ngrams are hashed"),
        ({"ngrams": {"review": 2}, "interactions": "review:site"}, "interactions: the column 'review' is read as words"),
        ({"bins": {"site": 3}}, "bins: the numeric column 'site' is not known"),
        ({"bins": {"age": 1}}, "expected from 2 to 4,097 bins of 'age', got 1"),
        ({"bins": {"age": []}}, "expected from 1 to 4,096 edges of 'age'"),
        ({"bins": "age:3:2"}, "edges of 'age' that ascend"),
        ({"bins": {"age": [1.0, float("nan")]}}, "edges of 'age' that ascend"),
        ({"bins": {"age": True}}, "bins: expected a name and numbers"),
        ({"bins": {"age": 3}, "interactions": "age:age"}, "'age' is in bins, and crossed with itself"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        streams.open(ROWS, target="y", missing="omit", **options)


def test_what_cannot_be_binned_or_has_no_words_is_refused(tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:2\n")
    for option in ("bins", "ngrams"):
        with pytest.raises(ValueError, match=f"{option} is for the format parquet or arrow or csv, and the input is svmlight"):
            streams.open(tmp_path / "rows.svm", **{option: "1:2"})
    same = [{"x": 1.0, "y": 0}] * 3
    with pytest.raises(ValueError, match="'x' has no two values in the first rows that differ"):
        streams.open(same, target="y", bins={"x": 3})
    with pytest.raises(StreamError, match="expected a number in column 'age', got a missing value"):
        list(streams.open(ROWS, target="y", bins={"age": [3]}, missing="numbers=omit"))
    with pytest.raises(StreamError, match="expected text in column 'review', got a missing value"):
        list(streams.open(ROWS, target="y", ngrams=2, features=["review"]))


def test_a_description_of_them_has_a_version_of_its_own():
    description = streams.open(ROWS, **OPTIONS, missing="omit").encoding
    assert description["version"] == enc.EXPANDED
    assert enc.widest(description) == 1 + 2**18
    changes = (
        *(
            {"version": enc.CROSSED},
            {"ngrams": {"age": 2}},
            {"ngrams": {"review": 9}},
            {"ngrams": 3},
            {"bins": {"site": [1.0]}},
        ),
        *({"bins": {"age": [2.0, 1.0]}}, {"bins": {"age": []}}, {"bins": {"age": [1]}}, {"categories": "one-hot"}),
        {"interactions": [["site", "review"]]},
    )
    for changed in changes:
        with pytest.raises(ValueError, match="encoding: expected"):
            enc.read({**description, **changed})


def test_a_model_keeps_them(tmp_path):
    rng = np.random.default_rng(0)
    words = rng.choice(["good", "bad", "not", "very"], (600, 4))
    y = np.array([sum((w == "good") - (w == "bad") for w in row) for row in words]) + 2 * (rng.random(600) < 0.5) > 0
    frame = pd.DataFrame({"review": [" ".join(row) for row in words], "age": rng.uniform(0, 90, 600), "y": y.astype(int)})
    stream = streams.open(frame, target="y", ngrams={"review": 2}, bins={"age": 3}, hash_bits=12)
    model = OnlineClassifier(random_state=0).fit(stream)
    model.save(tmp_path / "m.onlinear")
    again = load(tmp_path / "m.onlinear")
    rows = frame[["review", "age"]]
    scores = again.decision_function(rows)
    assert np.array_equal(scores, model.decision_function(rows))
    assert np.array_equal(scores, again.decision_function(rows.to_dict("records")))
    rows.to_csv(tmp_path / "new.csv", index=False)
    assert np.allclose(scores, again.decision_function(streams.open(tmp_path / "new.csv", encoding=again.encoding_)))
    assert np.isclose(again.predict_proba_one(rows.iloc[3].to_dict())[1], again.predict_proba(rows)[3, 1])
    assert "review=not good" in " + ".join(map(str, again.coef_frame_.index))
