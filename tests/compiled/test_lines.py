"""Lines of memory: keys exchanged side by side, non-zeros packed, columns turned into rows."""

import numpy as np
import pytest

from onlinear.compiled import COMPILED, LINE, exchange, kernel, non_zeros, turned


@kernel
def _exchange(keys, a, b):
    exchange(keys, a, b)


@kernel
def _non_zeros(values, at, column, indices, found, end):
    return non_zeros(values, at, column, indices, found, end)


@kernel
def _turned(values, at, apart, out, to, beside):
    turned(values, at, apart, out, to, beside)


@pytest.mark.parametrize("dtype", [np.uint32, np.uint64])
def test_the_smaller_of_two_keys_goes_to_the_first_row(dtype):
    rng = np.random.default_rng(0)
    top = np.iinfo(dtype).max
    keys = rng.integers(0, top, (5, LINE // np.dtype(dtype).itemsize), dtype, endpoint=True)
    keys[3, :3], keys[1, :3] = (0, top, top // 2), (top, 0, top // 2)
    wanted = keys.copy()
    wanted[3], wanted[1] = np.minimum(keys[3], keys[1]), np.maximum(keys[3], keys[1])
    _exchange(keys, 3, 1)
    np.testing.assert_array_equal(keys, wanted)


@pytest.mark.parametrize("packs", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_non_zeros_are_kept_in_order(dtype, packs, monkeypatch):
    call = _non_zeros
    if COMPILED:
        from onlinear.compiled import compiler, lines_code

        monkeypatch.setattr(lines_code, "packs", lambda: packs and compiler.lines_code.binding.llvm_version_info[0] >= 20)
        call = compiler.anew(_non_zeros.__wrapped__)
    for kept in range(256):
        values = np.array([np.nan if kept >> k & 1 else -0.0 if k % 2 else 0.0 for k in range(8)], dtype)
        values = np.concatenate([np.ones(3, dtype), values])
        indices, found = np.full(12, 99, np.uint32), np.full(12, 5.0, dtype)
        count = kept.bit_count()
        assert call(values, 3, 40, indices, found, 2) == 2 + count
        assert indices[2 : 2 + count].tolist() == [40 + k for k in range(8) if kept >> k & 1]
        assert np.isnan(found[2 : 2 + count]).all()
        assert (indices[[0, 1, 10, 11]] == 99).all()
        assert (found[[0, 1, 10, 11]] == 5.0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_are_turned_into_rows(dtype):
    values, out = np.arange(300, dtype=dtype), np.full(300, -1.0, dtype)
    _turned(values, 7, 31, out, 5, 13)
    wanted = np.full(300, -1.0, dtype)
    for row in range(8):
        for column in range(8):
            wanted[5 + 13 * row + column] = values[7 + 31 * column + row]
    np.testing.assert_array_equal(out, wanted)
