"""AUC and curve by comparing every positive with every negative, and beside scikit-learn."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score, roc_curve

from onlinear.models import ranking
from onlinear.models.ranking import Ranking

rng = np.random.default_rng(3)


def ranked(scores, positive, weights, cuts=()):
    found = Ranking()
    for rows in np.split(np.arange(len(scores)), cuts):
        found.add(scores[rows], positive[rows], weights[rows])
    return found.measure()


@pytest.mark.parametrize("weights", ["none", "some", "of one block"])
@pytest.mark.parametrize("ties", [True, False])
@pytest.mark.parametrize("rows", [1, 7, 1 << 20])  # positives at once
def test_the_area_by_its_definition(weights, ties, rows, monkeypatch):
    monkeypatch.setattr(ranking, "ROWS", rows)
    n = 300
    positive = rng.random(n) < 0.3
    scores = rng.standard_normal(n) + positive
    scores = np.round(scores) if ties else scores  # among them 0.0 and -0.0
    given = np.ones(n)
    if weights == "some":
        given = rng.integers(0, 4, n) / 3.0
    elif weights == "of one block":
        given[100:150] = rng.random(50)
    above = (scores[positive][:, None] > scores[~positive]) + 0.5 * (scores[positive][:, None] == scores[~positive])
    pairs = given[positive][:, None] * given[~positive]
    area, points = ranked(scores, positive, given)
    assert area == pytest.approx(np.sum(pairs * above) / pairs.sum(), rel=1e-12)
    assert (area, points) == ranked(scores, positive, given, (0, 5, 100, 150, 150))


@pytest.mark.parametrize("power", [-700, 700])
def test_weights_of_any_size_give_the_same_area_and_curve(power):
    positive, given = rng.random(200) < 0.3, rng.random(200)
    scores = rng.standard_normal(200) + positive
    assert ranked(scores, positive, given * 2.0**power) == ranked(scores, positive, given)


def test_the_curve_passes_the_points_of_another():
    positive = rng.random(5_000) < 0.2
    scores = np.round(rng.standard_normal(5_000) + positive, 1)
    area, points = ranked(scores, positive, np.ones(5_000))
    false, true, _ = roc_curve(positive, scores, drop_intermediate=False)
    assert {(p.false_rate, p.true_rate) for p in points} == set(zip(false[1:].tolist(), true[1:].tolist(), strict=True))
    assert area == pytest.approx(roc_auc_score(positive, scores), rel=1e-12)
    assert [p.precision for p in points[-1:]] == [pytest.approx(positive.mean())]


def test_a_curve_of_many_scores_is_thinned_and_ends_at_all_rows():
    positive = np.arange(10_000) % 3 == 0
    _, points = ranked(rng.standard_normal(10_000), positive, np.ones(10_000))
    assert len(points) == ranking.POINTS
    assert points[-1][:2] == (1.0, 1.0)
    assert all(a.true_rate <= b.true_rate and a.false_rate <= b.false_rate for a, b in pairwise(points))


@pytest.mark.parametrize("positive", [np.zeros(3, bool), np.ones(3, bool), np.array([True, False, True])])
def test_a_class_without_weight_has_no_area(positive):
    weights = np.array([1.0, 0.0, 2.0])
    assert ranked(np.arange(3.0), positive, weights) == (None, None)
    assert ranked(np.empty(0), np.empty(0, bool), np.empty(0)) == (None, None)
