"""How often each class is taken for each, counted by pairs."""

import numpy as np
import pytest

from onlinear.models import confusion
from onlinear.models.confusion import Confusion


@pytest.mark.parametrize("pending", [1, 7, 1000])
def test_the_matrix_has_the_sums_of_the_rows_in_their_order(pending, monkeypatch):
    monkeypatch.setattr(confusion, "PENDING", pending)
    draw = np.random.default_rng(0)
    true, predicted, weights = draw.integers(5, size=60), draw.integers(4, size=60), draw.random(60)
    expected, found = np.zeros((5, 5)), Confusion(5)
    np.add.at(expected, (true, predicted), weights)
    for start in range(0, 60, 9):
        rows = slice(start, start + 9)
        found.add(true[rows], predicted[rows], weights[rows])
    assert found == expected.tolist()
    assert found[-2:] == expected[-2:].tolist()
    assert found.wrong() == pytest.approx(expected.sum() - expected.trace())
    np.testing.assert_allclose(found.totals(), expected.sum(axis=1))


def test_of_many_classes_the_pairs_that_occur_are_held():
    found = Confusion(1 << 20)
    found.add(np.array([3, 3, 1]), np.array([1, 1, 1]), np.ones(3))
    assert [part.tolist() for part in found.pairs()] == [[1, 3], [1, 1], [1.0, 2.0]]
    assert found.wrong() == 2.0
    assert repr(found) == (
        "Confusion(1048576 classes, Pairs(true=array([1, 3]), predicted=array([1, 1]), weights=array([1., 2.])))"
    )
