"""Named features as columns by hashing, the same on every machine and in every version.

    h = MurmurHash3_x86_32(key, seed 0)                              (Appleby, 2011)
    column = offset + h mod 2^bits
    sign = -1 if the top bit of h is set, else +1

The key is the UTF-8 text ``column=value`` of a category, ``namespace^name`` or ``name`` of a Vowpal Wabbit feature. An entry is
the sign times the feature's value (1 for a category). Features of a row that meet in one column are summed, in the order of the
row; thanks to the sign a collision is as likely to cancel as to add, so products of rows keep their expectation
(Weinberger et al., ICML 2009).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinear.compiled import function, kept_function, kernel
from onlinear.rows import ALL_OWNED, Rows, plain, sorted_rows

SEED = 0
BITS = 18  # the default: 262,144 columns
MOST_BITS = 30

_C1, _C2, _FIVE, _ADD = (np.uint64(c) for c in (0xCC9E2D51, 0x1B873593, 5, 0xE6546B64))
_F1, _F2 = np.uint64(0x85EBCA6B), np.uint64(0xC2B2AE35)
_ONE, _EIGHT, _LOW32, TOP_BIT = np.uint64(1), np.uint64(8), np.uint64(0xFFFFFFFF), np.uint64(31)
_S8, _S13, _S15, _S16, _S17, _S19, _S32 = (np.uint64(s) for s in (8, 13, 15, 16, 17, 19, 32))


@function
def _mix(k):  # type: ignore[no-untyped-def]
    k = (k * _C1) & _LOW32
    k = ((k << _S15) | (k >> _S17)) & _LOW32
    return (k * _C2) & _LOW32


@function
def _absorb_four(h, k):  # type: ignore[no-untyped-def]
    """Absorb four bytes, the lowest first."""
    h ^= _mix(k)
    h = ((h << _S13) | (h >> _S19)) & _LOW32
    return (h * _FIVE + _ADD) & _LOW32


@function
def absorb(h, k, shift, byte):  # type: ignore[no-untyped-def]
    """Absorb one more byte: ``k`` holds the last ``shift`` bits, which are not yet in ``h``. All start at 0."""
    k |= byte << shift
    shift += _S8
    if shift == _S32:
        h = _absorb_four(h, k)
        k = shift = np.uint64(0)
    return h, k, shift


@function
def absorb_bytes(h, k, shift, word, count):  # type: ignore[no-untyped-def]
    """Absorb the first ``count`` bytes of a word, at most four, as ``absorb`` does one after the other."""
    bits = _S8 * count
    k |= (word & ((_ONE << bits) - _ONE)) << shift
    shift += bits
    if shift >= _S32:
        h = _absorb_four(h, k & _LOW32)
        k >>= _S32
        shift -= _S32
    return h, k, shift


@function
def finish(h, k, shift, length):  # type: ignore[no-untyped-def]
    """The hash of the ``length`` absorbed bytes, as uint64."""
    if shift > 0:
        h ^= _mix(k)
    h ^= length
    h = ((h ^ (h >> _S16)) * _F1) & _LOW32
    h = ((h ^ (h >> _S13)) * _F2) & _LOW32
    return h ^ (h >> _S16)


@kept_function
def murmur(text, begin, end, h, k, shift, length):  # type: ignore[no-untyped-def]
    """The hash of the bytes absorbed so far and of ``text[begin:end]`` after them."""
    i, stop = np.uint64(begin), np.uint64(end)
    while i < stop:
        h, k, shift = absorb(h, k, shift, np.uint64(text[i]))
        i += _ONE
    return finish(h, k, shift, length + (stop - np.uint64(begin)))


@function
def pair_hash(first, second):  # type: ignore[no-untyped-def]
    """The hash of two hashes, as of their eight bytes, the smaller first: their order does not matter."""
    zero = np.uint64(0)
    h = _absorb_four(_absorb_four(zero, min(first, second)), max(first, second))
    return finish(h, zero, zero, _EIGHT)


def crossed_hash(first: int, second: int) -> int:
    """``pair_hash`` of two hashes."""
    return key_hash(min(first, second).to_bytes(4, "little") + max(first, second).to_bytes(4, "little"))


def key_hash(key: str | bytes) -> int:
    """The hash of one key."""
    text, zero = np.frombuffer(key.encode() if isinstance(key, str) else key, np.uint8), np.uint64(0)
    with np.errstate(over="ignore"):
        return int(murmur(text, 0, len(text), zero, zero, zero, zero))


def text_buffers(array: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The bytes of a large_string array, where each value begins and ends, and whether it is there."""
    _, ends, text = array.buffers()
    offsets = np.frombuffer(ends, np.int64)[array.offset : array.offset + len(array) + 1]
    content = np.frombuffer(text, np.uint8) if text is not None and text.size else np.zeros(1, np.uint8)
    return plain(content), plain(offsets), plain(array.is_valid().to_numpy(zero_copy_only=False))


@kernel
def hash_texts(keys, starts, text, ends, present, hashes, signs):  # type: ignore[no-untyped-def]
    """Hash texts, those of one feature after those of another: text i of feature f, which has ``keys[starts[f]:starts[f+1]]``
    before it, into ``hashes[f, i]``, and its sign into ``signs[f, i]``. Text p of all is ``text[ends[p]:ends[p+1]]``.

    Where ``present[p]`` is False the sign is 0: no entry.
    """
    p = 0
    for f in range(hashes.shape[0]):
        h = k = shift = np.uint64(0)
        for j in range(starts[f], starts[f + 1]):
            h, k, shift = absorb(h, k, shift, np.uint64(keys[j]))
        length = np.uint64(starts[f + 1] - starts[f])
        for i in range(hashes.shape[1]):
            signs[f, i] = 0.0
            hashes[f, i] = 0
            if present[p]:
                found = murmur(text, ends[p], ends[p + 1], h, k, shift, length)
                hashes[f, i] = np.uint32(found)
                signs[f, i] = -1.0 if found >> TOP_BIT else 1.0
            p += 1


def tidy(rows: Rows) -> Rows:
    """The rows, changed in place: columns ascending, repeated ones summed in the order they stand, no entry equal to 0."""
    with np.errstate(over="ignore", invalid="ignore"):
        return sorted_rows(rows, int(rows.indices.max(initial=0)), ALL_OWNED)[0]
