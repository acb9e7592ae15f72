"""Crosses of two columns: entries, their names, and the options that ask for them."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase as fnmatch
from itertools import combinations, product

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
    {"y": 0, "a": 1.5, "b": -2.0, "site": "x", "ad": "u"},
    {"y": 1, "a": None, "b": 3.0, "site": None, "ad": "v"},
    {"y": 1, "a": 0.0, "b": None, "site": "z", "ad": "u"},
    {"y": 0, "a": None, "b": None, "site": None, "ad": None},
]
PAIRS = [("a", "b"), ("site", "ad"), ("ad", "a"), ("b", "b")]


def hashed(key):
    return murmurhash3_32(key.encode() if isinstance(key, str) else key, seed=0, positive=True)


def crossed(*hashes):
    return hashed(b"".join(h.to_bytes(4, "little") for h in sorted(hashes)))


def reference(row, missing, bits):
    """The row's entries, by the formulas of the page on streams."""
    numbers, texts = ["a", "b"], ["site", "ad"]
    offset = 4 if missing == "indicator" else 2
    sides, found = {}, {}

    def add(column, value):
        found[column] = found.get(column, 0.0) + value

    def add_hashed(h, value):
        add(offset + h % 2**bits, -value if h >> 31 else value)

    for k, name in enumerate(numbers):
        value = row[name]
        sides[name] = (name, value) if value is not None else (f"{name} is missing", float(missing == "indicator"))
        add(k if value is not None else k + 2, sides[name][1])
    for name in texts:
        value = row[name]
        key, x = (f"{name}={value}", 1.0) if value is not None else (name, float(missing == "indicator"))
        sides[name] = key, x
        add_hashed(hashed(key), x)
    for first, second in [("a", "b"), ("site", "ad"), ("a", "ad"), ("b", "b")]:
        add_hashed(crossed(*(hashed(sides[name][0]) for name in (first, second))), sides[first][1] * sides[second][1])
    return {column: value for column, value in found.items() if value != 0.0}


@pytest.mark.parametrize("missing", ["omit", "indicator"])
@pytest.mark.parametrize("bits", [3, 18])
def test_rows_have_the_entries_of_the_formulas_whichever_way_they_come(missing, bits, tmp_path):
    frame = pd.DataFrame(ROWS)
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    wanted = [reference(row, missing, bits) for row in ROWS]
    options = {"target": "y", "interactions": PAIRS, "missing": missing, "hash_bits": bits}
    for source in (frame, ROWS, tmp_path / "rows.parquet", tmp_path / "rows.csv"):
        stream = streams.open(source, **options, block_bytes=1 << 20)
        assert rows_of(stream) == wanted
        assert rows_of(streams.open(source, **options, block_bytes=1)) == wanted
        assert rows_of(streams.open(source, encoding=json.loads(json.dumps(stream.encoding)), target="y")) == wanted
    reader = row_reader(stream.encoding)
    for row, entries in zip(ROWS, wanted, strict=True):
        columns, values = reader.row({name: value for name, value in row.items() if name != "y"}, False)
        assert {c: v for c, v in zip(columns, values, strict=True) if v != 0.0} == entries


def test_patterns_take_each_pair_once_and_the_order_of_a_pair_does_not_matter():
    def pairs(*asked):
        return streams.open(ROWS, target="y", missing="omit", interactions=asked).encoding["interactions"]

    assert pairs(("site", "*")) == [["a", "site"], ["b", "site"], ["site", "ad"]]
    assert pairs(("ad", "site")) == pairs("site:ad") == pairs(("site", "*"), ("site", "ad"))[2:] == [["site", "ad"]]
    assert len(pairs(("*", "*"))) == 6
    assert "interactions" not in streams.open(ROWS, target="y", missing="omit").encoding


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"interactions": [("sit", "ad")]}, "interactions: the column 'sit' is not known. Did you mean 'site'?"),
        ({"interactions": [("site", "y")]}, "interactions: the column 'y' is not known"),
        ({"interactions": [("site", "ad"), ("ad", "site")]}, "expected each pair once, got 'ad' with 'site' twice"),
        ({"interactions": [("site", "site")]}, "'site' is text, and crossed with itself"),
        ({"interactions": ["site"]}, "expected pairs of names"),
        ({"interactions": ["site:ad:a"]}, "expected pairs of names"),
        ({"interactions": ("site", "ad")}, "expected pairs of names"),
        ({"interactions": [("site", "ad")], "categories": "one-hot"}, "interactions are hashed"),
    ],
)
def test_wrong_pairs_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        streams.open(ROWS, target="y", missing="omit", **options)


LINES = """1 2 |user age:2 x |ad:0.5 y z:1e400 |user w |c q
0 |ad y y |user:3 x
|
1 | bare:2 |ad z:0
-1 'tag|useful k:0.125 l |c |user x |ad z:3
"""
ASKED = [("user", "ad"), ("us*", "c"), ("ad", "ad"), ("", "*")]


def reference_row(line, asked, bits):
    """The row's entries, by the formulas of the page on streams."""
    spaces = []
    for part in line.partition("|")[2].split("|"):
        head, _, body = part.partition(" ")
        name, _, scale = head.partition(":")
        tokens = [token.partition(":") for token in body.split()]
        found = [(f"{name}^{f}" if name else f, float(value or 1) * float(scale or 1)) for f, _, value in tokens]
        spaces.append((name, [(hashed(key), x) for key, x in found]))
    entries = [entry for _, own in spaces for entry in own]
    for k, (one, own) in enumerate(spaces):
        for j, (other, others) in enumerate(spaces[k:], k):
            both_ways = [*asked, *((b, a) for a, b in asked)]
            if any(fnmatch(one, a) and fnmatch(other, b) for a, b in both_ways):
                pairs = combinations(own, 2) if j == k else product(own, others)
                entries += [(crossed(g, h), x * z) for (g, x), (h, z) in pairs]
    sums = {}
    for h, x in entries:
        sums[h % 2**bits] = sums.get(h % 2**bits, 0.0) + (-x if h >> 31 else x)
    return {column: x for column, x in sums.items() if x != 0.0}


@pytest.mark.parametrize("bits", [3, 18])
def test_namespaces_are_crossed_by_the_formulas_for_any_block_size(bits, tmp_path):
    text = LINES.replace("1e400", "1" + "0" * 30)  # a number that is left to float
    (tmp_path / "rows.vw").write_text(text.replace("|\n", "1 |ad x:nan |user w\n|\n"))
    wanted = [reference_row(line, ASKED, bits) for line in text.splitlines()]
    for block_bytes in (1, 800, 1 << 20):
        options = {"interactions": ASKED, "hash_bits": bits, "unlabelled": True, "block_bytes": block_bytes, "max_errors": 1}
        stream = streams.open(tmp_path / "rows.vw", **options)
        assert rows_of(stream) == wanted
        described = json.loads(json.dumps(stream.encoding))
        again = streams.open(tmp_path / "rows.vw", encoding=described, max_errors=1)
        assert rows_of(again) == wanted
        assert again.encoding == stream.encoding
        assert len(stream.errors) == 1


def test_rows_with_too_many_crosses_or_infinite_ones_are_refused(tmp_path):
    names = " ".join(map(str, range(363)))
    (tmp_path / "rows.vw").write_text(f"1 |a x |b x\n1 |a {names}\n1 |a x:1e200 |b x:1e200\n1 |a x:-1e308 |b x\n")
    stream = streams.open(tmp_path / "rows.vw", interactions="*:*", max_errors=2)
    assert [len(row) for row in rows_of(stream)] == [3, 3]
    many, infinite = stream.errors
    assert "rows.vw:2: expected at most 65,536 crosses of features in a row, got 65,703." in many
    assert "rows.vw:3: expected features with finite values and sums, got infinity." in infinite


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ([("a", "b"), ("b", "a")], "expected each pair once, got 'b' with 'a' twice"),
        ([("a b", "c")], "without blanks, bars and colons, got 'a b'"),
        ([("a", f"n{k}") for k in range(64)], "at most 64 names"),
        ([("a", 3)], "expected pairs of names"),
        (3, "expected pairs of names"),
    ],
)
def test_wrong_pairs_of_namespaces_are_refused(asked, message, tmp_path):
    (tmp_path / "rows.vw").write_text("1 |a x\n")
    with pytest.raises(ValueError, match=message):
        streams.open(tmp_path / "rows.vw", interactions=asked)


def test_svmlight_has_no_names_to_cross(tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:2\n")
    with pytest.raises(ValueError, match="interactions is for the format parquet or arrow or csv or vw, and the input is svm"):
        streams.open(tmp_path / "rows.svm", interactions=[("1", "2")])


def test_a_product_beyond_all_numbers_is_an_error_of_its_row():
    rows = [{"y": 1, "a": 1.0, "b": 1.0}, {"y": 0, "a": 1e200, "b": 1e200}]
    with pytest.raises(StreamError, match="expected a product of columns 'a' and 'b'"):
        list(streams.open(rows, target="y", interactions=[("a", "b")]))
    (block,) = streams.open(rows, target="y", interactions=[("a", "b")], max_errors=1)
    assert block.n == 1
    reader = row_reader(streams.open(rows[:1], target="y", interactions=[("a", "b")]).encoding)
    with pytest.raises(StreamError, match="expected a product"):
        reader.row(rows[1], False)


def test_a_description_of_crosses_has_a_version_of_its_own():
    description = streams.open(ROWS, target="y", missing="omit", interactions=PAIRS).encoding
    assert description["version"] == enc.CROSSED
    assert enc.widest(description) == 2 + 2**18
    for changed in ({"version": enc.VERSION}, {"interactions": [["a", "no"]]}, {"interactions": 3}, {"categories": "one-hot"}):
        with pytest.raises(ValueError, match="encoding: expected"):
            enc.read({**description, **changed})
    hashed_text = enc.describe_hashing(18, [("a", "b*")])
    assert enc.crosses_of(hashed_text) == [("a", "b*")]
    assert enc.crosses_of(enc.describe_hashing(18)) == []
    enc.must_be_known(hashed_text)
    for changed in ({"version": enc.VERSION}, {"interactions": [["a", 3]]}, {"interactions": [["a"]]}):
        with pytest.raises(ValueError, match="encoding: expected"):
            enc.must_be_known({**hashed_text, **changed})


def planted(n, seed):
    """Clicks that depend on whether site and ad fit each other, and on neither alone."""
    rng = np.random.default_rng(seed)
    site, ad = rng.integers(0, 4, n), rng.integers(0, 4, n)
    y = rng.random(n) < np.where((site + ad) % 2 == 0, 0.9, 0.1)
    return pd.DataFrame({"site": [f"s{k}" for k in site], "ad": [f"a{k}" for k in ad], "y": y.astype(int)})


def test_a_planted_cross_is_found_and_kept_by_the_model(tmp_path):
    train, test = planted(2000, 0), planted(500, 1)
    model = OnlineClassifier(random_state=0).fit(streams.open(train, target="y", interactions=[("site", "ad")]))
    plain = OnlineClassifier(random_state=0).fit(streams.open(train, target="y"))
    rows = test[["site", "ad"]]
    assert np.mean(model.predict(rows) == test.y) > 0.85 > 0.65 > np.mean(plain.predict(rows) == test.y)
    model.save(tmp_path / "m.onlinear")
    again = load(tmp_path / "m.onlinear")
    scores = again.decision_function(rows)
    assert np.array_equal(scores, model.decision_function(rows))
    one = again.predict_proba_one(rows.iloc[0].to_dict())
    assert np.isclose(one[1], again.predict_proba(rows)[0, 1])
    names = {name for name, *_ in row_reader(again.encoding_).named({"site": "s1", "ad": "a2"})}
    assert names == {"site=s1", "ad=a2", "site=s1 x ad=a2"}


def test_more_pairs_of_columns_than_there_may_be_are_refused():
    table = pd.DataFrame(np.zeros((1, 93)), columns=[f"c{k}" for k in range(93)])
    with pytest.raises(ValueError, match=r"interactions: expected at most 4096 pairs, got more\."):
        streams.open(table, target="c92", interactions=[("c*", "c*")])
