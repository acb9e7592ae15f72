"""Streaming measures against scikit-learn's over all rows at once, whatever the blocks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mean_absolute_error, r2_score, roc_auc_score

from onlinear.training.metrics import BINS, Area, ClassMeasures, NumberMeasures, bins

finite = st.floats(allow_nan=False, allow_infinity=False)


def in_blocks(measures, cuts, *columns):
    for first, last in zip([0, *cuts], [*cuts, columns[0].shape[-1]], strict=True):
        measures.add(*(column[..., first:last] for column in columns))
    return measures


@given(low=finite, high=finite)
def test_bins_keep_the_order_of_scores(low, high):
    a, b = bins(np.array(sorted([low, high])))
    assert 0 <= a <= b < BINS


@given(score=st.floats(2.0**-31, 2.0**31), sign=st.sampled_from([-1.0, 1.0]))
def test_bins_tell_scores_apart_that_differ_by_a_five_hundredth(score, sign):
    a, b = bins(sign * np.array([score, score * (1.0 + 1.0 / 256.0)]))
    assert a != b


@pytest.mark.parametrize("spread", [1e-3, 1.0, 1e5])
def test_auc_is_within_its_doubt_of_the_exact_one(spread):
    rng = np.random.default_rng(1)
    positive, weights = rng.random(4000) < 0.3, rng.random(4000)
    scores = spread * (rng.standard_normal(4000) + positive)
    area = Area()
    area.add(scores, positive, weights)
    exact = roc_auc_score(positive, scores, sample_weight=weights)
    assert abs(area.value - exact) <= area.doubt + 1e-12
    assert area.doubt < 2e-3


def test_equal_scores_count_half():
    area = Area()
    area.add(np.zeros(4), np.array([True, False, True, False]), np.ones(4))
    assert area.value == 0.5
    assert np.isnan(Area().value)


@given(cuts=st.lists(st.integers(0, 60), max_size=4).map(sorted), seed=st.integers(0, 99), classes=st.integers(2, 4))
def test_blocks_change_no_bit(cuts, seed, classes):
    rng = np.random.default_rng(seed)
    y, p, s = rng.standard_normal(60), rng.standard_normal(60), rng.random(60)
    scores, places = rng.standard_normal((1 if classes == 2 else classes, 60)), rng.integers(0, classes, 60)
    for kind, columns in ((NumberMeasures, (p, y, s)), (ClassMeasures, (scores, places, s))):
        whole, pieces, restored = kind(), in_blocks(kind(), cuts, *columns), kind()
        whole.add(*columns)
        restored.restore(pieces.arrays())
        for found in (pieces, restored):
            assert found.values() == whole.values() or (classes > 2 and found.values()[0] == whole.values()[0])
            assert all(np.array_equal(a, b) for a, b in zip(found.arrays().values(), whole.arrays().values(), strict=True))


def test_regression_measures_are_scikit_learns():
    rng = np.random.default_rng(0)
    y, s = 1e6 + rng.standard_normal(500), rng.random(500)
    p = y + rng.standard_normal(500) / 2
    measures = in_blocks(NumberMeasures(), [7, 100], p, y, s)
    wanted = mean_absolute_error(y, p, sample_weight=s), r2_score(y, p, sample_weight=s)
    np.testing.assert_allclose(measures.values(), wanted, rtol=1e-8)
    assert np.isnan(NumberMeasures().values()).all()


def test_error_is_the_share_of_wrong_rows_by_weight():
    measures = ClassMeasures()
    measures.add(np.array([[1.0, -1.0, 2.0]]), np.array([1, 1, 0]), np.array([1.0, 2.0, 5.0]))
    assert measures.values() == (7 / 8, 0.0)
    several = ClassMeasures()
    several.add(np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 3.0]]), np.array([0, 1]), np.ones(2))
    error, area = several.values()
    assert error == 0.5
    assert np.isnan(area)


@pytest.mark.parametrize("power", [-700, 700])
def test_weights_of_any_size_give_the_same_measures(power):
    rng = np.random.default_rng(0)
    y, p, s = rng.normal(size=50), rng.normal(size=50), rng.random(50)
    for measures, truth, predicted in ((NumberMeasures, y, p), (ClassMeasures, (y > 0.0).astype(np.intp), p[None])):
        found, wanted = measures(), measures()
        found.add(predicted, truth, s * 2.0**power)
        wanted.add(predicted, truth, s)
        assert found.values() == wanted.values()


def test_a_row_without_weight_takes_no_digits_of_the_others():
    rng = np.random.default_rng(0)
    y, p, s = rng.normal(size=50), rng.normal(size=50), np.ones(50)
    y[0], s[0] = 1e12, 0.0
    for cuts in ([], [1]):
        found = in_blocks(NumberMeasures(), cuts, p, y, s)
        np.testing.assert_allclose(found.values()[1], r2_score(y[1:], p[1:]), rtol=1e-12)
        np.testing.assert_allclose(found.mean_square, np.mean((y - p)[1:] ** 2), rtol=1e-12)
        assert found.weight == 49.0
