"""Names of hashed columns: kept as they appear, bounded, the same whichever way rows come."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from onlinear import OnlineClassifier, load, streams
from onlinear.streams import encoding as enc
from onlinear.streams import seen_names
from onlinear.streams.hashing import crossed_hash, key_hash

DRAW = np.random.default_rng(0)
N = 60
TABLE = pd.DataFrame({
    "y": DRAW.integers(0, 2, N),
    "price": np.where(DRAW.random(N) < 0.2, np.nan, DRAW.integers(-1, 2, N)),
    "site": np.where(DRAW.random(N) < 0.1, None, DRAW.integers(0, 9, N).astype(str)),
    "ad": DRAW.choice(["u", "v"], N),
})  # fmt: skip
RECORDS = TABLE.astype(object).where(TABLE.notna(), None).to_dict("records")
PAIRS = [("site", "ad"), ("price", "ad")]


def appeared(missing, most=1 << 17):
    """Hashes and names in the order in which the rows have them, by plain Python."""
    found = {}
    for row in RECORDS:
        sides = {}
        for name in ("site", "ad"):
            value = row[name]
            present = value is not None or missing == "indicator"
            sides[name] = (name if value is None else f"{name}={value}", enc.category(name, value), present)
        gone = row["price"] is None
        label = "price is missing" if gone else "price"
        sides["price"] = (label, label, row["price"] != 0.0 and (not gone or missing == "indicator"))
        entries = [(key_hash(key), label, most) for key, label, present in (sides["site"], sides["ad"]) if present]
        for one, other in (sides["site"], sides["ad"]), (sides["price"], sides["ad"]):
            if one[2] and other[2]:
                entries.append((crossed_hash(key_hash(one[0]), key_hash(other[0])), f"{one[1]} x {other[1]}", most // 2))
        for h, name, limit in entries:
            if h not in found and len(found) < limit:
                found[h] = name
    return {"hashes": list(found), "names": list(found.values())}


@pytest.mark.parametrize("missing", ["omit", "indicator"])
def test_names_are_kept_as_they_appear_for_any_block_size_and_one_by_one(missing, monkeypatch):
    options = {"target": "y", "missing": missing, "interactions": PAIRS}
    for most in (1 << 17, 14):
        for module in (enc, seen_names):
            monkeypatch.setattr(module, "MOST_SEEN", most)
        wanted = appeared(missing, most)
        for block_bytes in (1, 200, 1 << 20):
            stream = streams.open(TABLE, **options, block_bytes=block_bytes)
            assert [block.seen for block in stream][-1] == len(wanted["names"])
            assert stream.encoding["seen"] == wanted
            first = streams.open(TABLE[:20], **options)
            list(first)
            later = streams.open(TABLE[20:], encoding=json.loads(json.dumps(first.encoding)), target="y")
            list(later)
            assert later.encoding["seen"] == stream.encoding["seen"]
        start = streams.open(TABLE[:20], **options)
        one_by_one, as_arrays, by_table = (OnlineClassifier().fit(start, classes=[0, 1]) for _ in range(3))
        assert one_by_one.encoding_["seen"] == first.encoding["seen"]
        for row in RECORDS[20:]:
            features = {name: value for name, value in row.items() if name != "y"}
            one_by_one.learn_one(features, row["y"])
            by_table.learn_one(features | {"price": np.float32(np.nan if row["price"] is None else row["price"])}, row["y"])
        for rows in (TABLE[20:41], TABLE[41:]):
            as_arrays.partial_fit(rows.drop(columns="y"), rows["y"])
        for model in (one_by_one, as_arrays, by_table):
            assert model.encoding_["seen"] == later.encoding["seen"]


def test_a_model_names_its_columns_after_it_was_saved(tmp_path):
    stream = streams.open(TABLE, target="y", missing="indicator", hash_bits=4, interactions=PAIRS)
    model = OnlineClassifier().fit(stream, classes=[0, 1])
    model.save(tmp_path / "live")
    model.save(tmp_path / "final", final=True)
    names = model.get_feature_names_out()
    shared = {column: name.split(" + ") for column, name in enumerate(names) if " + " in name}
    assert shared
    for column, several in shared.items():
        seen = zip(*stream.encoding["seen"].values(), strict=True)
        assert several == [name for h, name in seen if 2 + h % 16 == column]
    for path in ("live", "final"):
        assert load(tmp_path / path).get_feature_names_out().tolist() == names.tolist()
    frame = load(tmp_path / "final").coef_frame_
    assert frame.shape[1] == 1
    assert set(frame.index) <= set(names)
    assert np.all(np.diff(np.abs(frame.to_numpy()[:, 0])) <= 0.0)


@pytest.mark.parametrize("wrong", [([1 << 32], ["a"]), ([1], [2]), ([1], []), ([True], ["a"]), (3, 4)])
def test_names_that_no_hash_has_are_refused(wrong):
    description = streams.open(TABLE, target="y", missing="omit").encoding
    enc.must_be_known({**description, "seen": {"hashes": [1], "names": ["a"]}})
    with pytest.raises(ValueError, match="encoding: expected"):
        enc.must_be_known({**description, "seen": {"hashes": wrong[0], "names": wrong[1]}})


def test_rows_to_predict_leave_the_names_alone():
    model = OnlineClassifier().fit(streams.open(TABLE[:5], target="y", missing="omit"), classes=[0, 1])
    before = dict(model.encoding_["seen"])
    model.predict(TABLE)
    assert model.encoding_["seen"] == before
    model.partial_fit(TABLE)
    assert len(model.encoding_["seen"]["names"]) > len(before["names"])


def test_of_long_names_the_beginning_is_kept_whichever_way_rows_come():
    texts = ["x" * 199 + "end", "\u8a9e" * 5000, '"' * 150, "short", "\n" * 90]
    table = pd.DataFrame({"y": [0, 1, 0, 1, 0], "a": texts, "b": texts[::-1], "w": ["z" * 300, *"12345"[:4]]})
    options = {"target": "y", "interactions": [("a", "b")], "ngrams": {"w": 1}}
    found = [streams.open(table, **options, block_bytes=size) for size in (1, 1 << 20)]
    for stream in found:
        list(stream)
    names = found[0].encoding["seen"]["names"]
    assert names == found[1].encoding["seen"]["names"]
    assert all(enc.size_in_header(name) <= enc.LONGEST_SEEN for name in names)
    assert names[0].startswith("a=xxx")
    assert names[0].endswith("x...")
    assert "a=short x b=" + "\u8a9e" * 10 in names[names.index("a=short") + 2][:30]
    model = OnlineClassifier().partial_fit(streams.open(table[:1], **options), classes=[0, 1])
    for row in table[1:].drop(columns="y").to_dict("records"):
        model.learn_one(row, 1)
    assert model.encoding_["seen"]["names"] == names
