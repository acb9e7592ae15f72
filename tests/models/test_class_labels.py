"""Labels are looked at once, and refused as scikit-learn refuses them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.utils.multiclass import check_classification_targets

from onlinear.models.class_labels import FEW, classes_of, places_among, places_of


def outcome(check, y):
    """The error or the warnings of a check, as text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            check(y)
        except (ValueError, TypeError) as error:
            return f"{type(error).__name__}: {error}"
    return [str(warning.message) for warning in caught]


LABELS = {
    "signs": np.array([-1.0, 1.0] * 20),
    "one class": np.zeros(30),
    "one row": np.array([3]),
    "none": np.array([], float),
    "booleans": np.array([True, False, True]),
    "text": np.array(["b", "a"] * 3),
    "objects": np.array(["b", "a"] * 3, dtype=object),
    "mixed objects": np.array([1, "a"], dtype=object),
    "bytes": np.array([b"b", b"a"]),
    "numbers": np.array([0.5, 1.5] * 30),
    "few numbers": np.linspace(0.0, 1.0, 7),
    "whole numbers": np.arange(100.0),
    "many classes": np.arange(30) % 20,
    "half as many classes": np.arange(2 * FEW) % FEW,
    "more classes": np.arange(2 * FEW + 2) % (FEW + 1),
    "infinite": np.array([0.0, np.inf] * 20),
    "unsigned": np.array([200, 3, 3], np.uint8),
}


@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
def test_labels_are_refused_as_by_scikit_learn(y):
    assert outcome(classes_of, y) == outcome(check_classification_targets, y)


def test_the_check_is_given_the_classes_alone(monkeypatch):
    seen = []
    monkeypatch.setattr("onlinear.models.class_labels.check_classification_targets", seen.append)
    np.testing.assert_array_equal(classes_of(LABELS["signs"]), [-1.0, 1.0])
    assert [len(labels) for labels in seen] == [2]


@pytest.mark.parametrize("name", ["signs", "booleans", "text", "objects", "many classes", "unsigned"])
def test_places(name):
    y = LABELS[name]
    classes = np.unique(y)
    for places in (places_of(classes, y), places_among(classes, y)):
        assert places.dtype == np.intp
        np.testing.assert_array_equal(classes[places], y)
