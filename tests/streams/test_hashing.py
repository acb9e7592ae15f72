"""Hashed features: the published hash, its sign and column, and sums where features meet."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils import murmurhash3_32

from onlinear.rows import Rows
from onlinear.streams.hashing import hash_texts, key_hash, tidy

# Of MurmurHash3_x86_32 with seed 0, from the published algorithm: these must never change, models depend on them.
KNOWN = {
    "": 0,
    "a": 0x3C2569B2,
    "hello": 0x248BFA47,
    "hello, world": 0x149BBB7F,
    "The quick brown fox jumps over the lazy dog": 0x2E4FF723,
}


@pytest.mark.parametrize("key", KNOWN)
def test_published_values(key):
    assert key_hash(key) == KNOWN[key]


@given(st.text(max_size=40))
def test_the_hash_is_scikit_learns(key):
    assert key_hash(key) == murmurhash3_32(key.encode(), seed=0, positive=True)


@given(
    texts=st.lists(st.text(max_size=12), min_size=1, max_size=20),
    prefixes=st.lists(st.text(max_size=9), min_size=1, max_size=3),
)
def test_texts_have_the_documented_hashes_and_signs(texts, prefixes):
    raw = [text.encode() for text in texts] * len(prefixes)
    ends = np.cumsum([0, *map(len, raw)]).astype(np.int64)
    content = np.frombuffer(b"".join(raw) + b"\0", np.uint8)
    present = np.arange(len(raw)) % 4 != 3
    hashes, signs = np.ones((len(prefixes), len(texts)), np.uint32), np.full((len(prefixes), len(texts)), 7.0)
    heads = [prefix.encode() for prefix in prefixes]
    keys, starts = np.frombuffer(b"".join(heads), np.uint8), np.cumsum([0, *map(len, heads)])
    with np.errstate(over="ignore"):
        hash_texts(keys, starts, content, ends, present, hashes, signs)
    found = zip([(prefix, text) for prefix in prefixes for text in texts], present, hashes.flat, signs.flat, strict=True)
    for (prefix, text), there, hashed, sign in found:
        h = murmurhash3_32((prefix + text).encode(), seed=0, positive=True)
        assert (hashed, sign) == ((h, -1.0 if h >= 2**31 else 1.0) if there else (0, 0.0))


ROWS = st.lists(
    st.lists(st.tuples(st.integers(0, 40) | st.just(2**31 - 2), st.sampled_from([0.0, 1.0, -1.0, 0.1, 3e10])), max_size=150),
    max_size=8,
)


@given(ROWS)
def test_rows_are_put_in_order_and_repeated_columns_are_summed_as_they_stand(given_rows):
    starts = np.cumsum([0, *map(len, given_rows)]).astype(np.uint64)
    flat = [entry for row in given_rows for entry in row]
    found = tidy(Rows(starts, np.array([j for j, _ in flat], np.uint32), np.array([x for _, x in flat], np.float64)))
    for i, row in enumerate(given_rows):
        sums: dict[int, float] = {}
        for j, x in row:
            sums[j] = sums.get(j, 0.0) + x
        part = slice(int(found.indptr[i]), int(found.indptr[i + 1]))
        wanted = sorted((j, x) for j, x in sums.items() if x != 0.0)
        assert list(zip(found.indices[part].tolist(), found.values[part].tolist(), strict=True)) == wanted
    assert len(found.values) == int(found.indptr[-1])
