"""Leverages: the formula over all rows so far, for any cut of them."""

import numpy as np
import pytest
import scipy.sparse as sp

from onlinear.errors import ModelFileError
from onlinear.rows import read
from onlinear.rows.leverage import Leverage


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 7)) * (rng.random((60, 7)) < 0.4)
    X[:, 0] = 1e6 + rng.normal(size=60)  # far from 0
    X[:, 1] = 3.0  # constant
    return X


def leverages(X, s, cuts=(), half_life=None):
    found, leverage = [], Leverage(half_life)
    for rows, weights in zip(np.split(X, cuts), np.split(s, cuts), strict=True):
        source = read(sp.csr_matrix(rows))
        leverage.grow(X.shape[1])
        found += [leverage.learn(block, weights[which]) for which, block in source.blocks()]
    return np.concatenate(found), leverage


def test_leverage_is_that_of_the_formula(X):
    s = np.ones(60)
    s[[3, 20]] = 0.0
    found, _ = leverages(X, s)
    for t in range(1, 60):
        seen = X[: t + 1][s[: t + 1] > 0]
        mean, squares = seen.mean(axis=0), ((seen - seen.mean(axis=0)) ** 2).sum(axis=0)
        x, used = X[t], (X[t] != 0.0) & (squares > 1e-9)
        new = (X[t] != 0.0) & ~seen.any(axis=0)
        wanted = 1.0 / len(seen) + ((x - mean)[used] ** 2 / squares[used]).sum() + np.count_nonzero(new)
        assert found[t] == pytest.approx(wanted, rel=1e-6)


def test_where_the_past_fades_columns_tell_what_their_entries_that_count_do():
    X = np.column_stack([np.full(4000, 1.0), np.tile([1.0, -1.0], 2000), np.arange(4000) % 50 == 0, np.arange(4000) == 7])
    X[:, 0] += 0.5 * X[::-1, 1]
    found, leverage = leverages(X, np.ones(4000), half_life=10.0)
    T = 1.0 / (1.0 - 2.0**-0.1)
    assert leverage.rows == pytest.approx([4000, T])
    assert found[3999] == pytest.approx(3.0 / T)  # two columns and the intercept
    assert found[3950] == pytest.approx(3.0 / T + 1.0, rel=0.03)  # 80 entries in 4,000 rows, less than one of which counts
    (_, old), *_ = read(sp.csr_matrix(([1.0], [3], [0, 1]), shape=(1, 4))).blocks()
    assert leverage.learn(old, np.zeros(1)) == pytest.approx([1.0 / T + 1.0], rel=1e-3)


@pytest.mark.parametrize("half_life", [None, 10.0])
def test_leverages_do_not_depend_on_cuts(X, half_life):
    s = np.ones(60)
    np.testing.assert_array_equal(leverages(X, s, [1, 2, 30], half_life)[0], leverages(X, s, half_life=half_life)[0])


def test_rows_of_weight_0_and_new_columns(X):
    _, leverage = leverages(X, np.ones(60))
    before = leverage.moments.copy()
    (_, row), *_ = read(sp.csr_matrix(([2.0], [40], [0, 1]), shape=(1, 50))).blocks()
    assert leverage.learn(row, np.zeros(1)).tolist() == [1.0 / 60 + 1.0]
    np.testing.assert_array_equal(leverage.moments, before)
    (_, nothing), *_ = read(sp.csr_matrix((1, 7))).blocks()
    assert Leverage().learn(nothing, np.ones(1)).tolist() == [1.0]


@pytest.mark.parametrize("change", [(0, -1.0), (0, 0.5), (0, 61.0), (1, np.nan), (2, -1.0)])
def test_statistics_that_no_rows_give_are_refused(X, change):
    _, leverage = leverages(X, np.ones(60))
    moments = leverage.moments.copy()
    moments[change[0], 0] = change[1]
    with pytest.raises(ModelFileError):
        Leverage().restore(moments, leverage.rows, 60)
    with pytest.raises(ModelFileError):
        Leverage().restore(leverage.moments, np.array([61.0]), 60)
    for rows in ([], [60.0, 61.0], [60.0, 0.5], [60.0, np.nan], [60.0, 50.0, 50.0]):
        with pytest.raises(ModelFileError):
            Leverage().restore(leverage.moments, np.array(rows), 60)
