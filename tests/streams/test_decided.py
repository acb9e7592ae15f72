"""Options that an encoding decides: those that contradict it are refused, those that say the same are taken."""

from __future__ import annotations

import re

import pytest

from onlinear import streams
from onlinear.streams.converted_writer import write_converted

ROWS = [
    {
        "y": float(k % 2),
        "age": 20.0 + k,
        "price": float(k),
        "site": f"s{k % 3}",
        "review": f"good word{k % 5}",
        "flag": k > 9,
        "id": k,
    }
    for k in range(40)
]
MADE = {
    "exclude": ["id"],
    "text": ["site"],
    "numbers": "price",
    "hash_bits": 12,
    "missing": "numbers=omit,categories=indicator",
    "dates": "days",
    "interactions": ["site:flag", "*:price"],
    "ngrams": "review:2",
    "bins": {"age": [30, 45], "price": 4},
}
SAME = [
    *({name: value} for name, value in MADE.items()),
    MADE,
    {"features": ["age", "price", "site", "review", "flag"]},
    {"features": "*", "exclude": ["id", "not-here"]},
    {"features": ["age", "p*", "site", "review", "flag", "y", "id"], "exclude": "i?"},
    {"numbers": ["flag", "age"]},
    {"missing": {"numbers": "omit", "categories": "indicator"}},
    {"interactions": [("flag", "site"), ("price", "*")]},
    {"ngrams": ["re*:2"]},
    {"bins": ["age:30:45", "price:4"]},
]
OTHER = {
    "exclude: expected columns that are no features of the model's encoding, got 'price'; leave exclude out (in the command: "
    "--exclude).": {"exclude": ["id", "pr*"]},
    "features: expected all features of the model's encoding, got none that is 'flag'": {
        "features": ["age", "price", "site", "re*"]
    },
    "features: expected features of the model's encoding, got 'id'": {"features": ["*", "id"]},
    "features: the column 'ages' is not known. Did you mean 'age'?": {"features": ["*", "ages"]},
    "text: expected columns that are categories in the model's encoding, got 'age', numbers": {"text": ["site", "age"]},
    "text: the column 'sit' is not known": {"text": "sit"},
    "numbers: expected columns that are numbers in the model's encoding, got 'site', categories": {"numbers": ["site"]},
    "categories: expected 'hash' as the model's encoding has it, got 'one-hot'": {"categories": "one-hot"},
    "categories 'onehot' is not known": {"categories": "onehot"},
    "hash_bits: expected 12 as the model's encoding has it, got 18; leave hash_bits out (in the command: --hash-bits).": {
        "hash_bits": 18
    },
    "hash_bits must be a whole number from 1 to 30, got 31": {"hash_bits": 31},
    "missing: expected 'numbers=omit,categories=indicator' as the model's encoding has it, got 'omit'": {"missing": "omit"},
    "missing: expected 'numbers=omit,categories=indicator' as the model's encoding has it, got 'error'": {"missing": "error"},
    "dates: expected 'days' as the model's encoding has it, got 'seconds'": {"dates": "seconds"},
    "interactions: expected 'site:flag,age:price,price:site,price:flag' as the model's encoding has it, got 'site:flag'": {
        "interactions": ["site:flag"]
    },
    "ngrams: expected 'review:2' as the model's encoding has it, got 'review:3'": {"ngrams": "review:3"},
    "bins: expected 'age:30:45,price:10:20:30' as the model's encoding has it, got 'age:30:50,price:10:20:30'": {
        "bins": ["age:30:50", "price:10:20:30"]
    },
    "as the model's encoding has it, got 'age:30:45'": {"bins": "age:30:45"},
    "as the model's encoding has it, got 'age:30:45,price:3'": {"bins": ["age:30:45", "price:3"]},
}


@pytest.fixture(scope="module")
def encoding():
    return streams.open(ROWS, target="y", **MADE).encoding


@pytest.mark.parametrize("asked", SAME, ids=str)
def test_options_that_say_the_same_are_taken(encoding, asked):
    (plain,) = streams.open(ROWS, encoding=encoding, target="y")
    (block,) = streams.open(ROWS, encoding=encoding, target="y", **asked)
    assert (block.X != plain.X).nnz == 0


@pytest.mark.parametrize("message", OTHER, ids=str)
def test_options_that_contradict_are_refused(encoding, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        streams.open(ROWS, encoding=encoding, target="y", **OTHER[message])


def test_bins_of_equal_values_may_be_fewer_than_were_asked_for():
    rows = [{"y": 1.0, "x": float(k % 3)} for k in range(30)]
    stream = streams.open(rows, target="y", bins="x:10")
    assert len(stream.encoding["bins"]["x"]) == 2
    assert len(list(streams.open(rows, encoding=stream.encoding, bins="x:10"))) == 1


def test_encodings_without_dates_and_of_one_hot_columns_say_so():
    rows = [{"y": 1.0, "x": "a"}]
    encoding = streams.open(rows, target="y", categories="one-hot").encoding
    streams.open(rows, encoding=encoding, categories="one-hot")
    with pytest.raises(ValueError, match=r"dates: expected nothing as the model's encoding has it, got 'days'"):
        streams.open(rows, encoding=encoding, dates="days")
    with pytest.raises(ValueError, match=r"categories: expected 'one-hot' as the model's encoding has it, got 'hash'"):
        streams.open(rows, encoding=encoding, categories="hash")
    with pytest.raises(ValueError, match=r"categories='one-hot'"):
        streams.open(rows, encoding=encoding, ngrams=2)


def test_namespaces_and_bits_of_vowpal_wabbit_text(tmp_path):
    path = tmp_path / "a.vw"
    path.write_text("1 |user a |ad x\n0 |user b |ad y\n")
    asked = {"hash_bits": 10, "interactions": ["user:ad"]}
    encoding = streams.open(path, **asked).encoding
    for same in ({}, asked, {"interactions": [("ad", "user")]}, {"hash_bits": 10}):
        assert len(list(streams.open(path, encoding=encoding, **same))) == 1
    with pytest.raises(ValueError, match="hash_bits: expected 10 as the model's encoding has it, got 18"):
        streams.open(path, encoding=encoding, hash_bits=18)
    with pytest.raises(ValueError, match="interactions: expected 'user:ad' as the model's encoding has it, got 'user:user'"):
        streams.open(path, encoding=encoding, interactions=["user:user"])
    plain = streams.open(path).encoding
    with pytest.raises(ValueError, match="interactions: expected none as the model's encoding has it, got 'user:ad'"):
        streams.open(path, encoding=plain, interactions=["user:ad"])


def test_converted_rows_have_no_hash_bits(tmp_path):
    write_converted(tmp_path / "a.parquet", streams.open(ROWS, target="y"))
    with pytest.raises(ValueError, match=r"hash_bits is for columns with names; .* holds converted rows"):
        streams.open(tmp_path / "a.parquet", hash_bits=18)
