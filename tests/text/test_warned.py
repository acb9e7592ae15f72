"""Warnings name the line of the user that led to them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from onlinear import Learner, OnlineClassifier, OnlineRegressor

RNG = np.random.default_rng(0)
X = RNG.standard_normal((1200, 3))


def of_arrays():
    OnlineRegressor(solver="rls", random_state=0).fit(X, X[:, 0] + 1e8)


def of_a_stream():
    OnlineRegressor(solver="rls").partial_fit(X, X[:, 0])  # says nothing
    OnlineClassifier().fit([(X, np.where(np.arange(1200) < 1100, 1, -1))], classes=[-1, 1])


def of_a_gap():
    OnlineRegressor("huber", penalty="l2=1e-3", tol=1e-15, max_passes=2).fit(X, X[:, 0])


def of_offsets():
    OnlineRegressor(penalty="l2=1e-3", tol=1e-3).fit(X + 1e3, X[:, 0])


def of_a_solver():
    Learner("csgd,m=10", "squared", n_features=3).learn(X, X[:, 0])


@pytest.mark.parametrize("call", [of_arrays, of_a_stream, of_a_gap, of_offsets, of_a_solver])
def test_warnings_stand_at_the_line_outside_the_package(call):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        call()
    assert said
    assert {found.filename for found in said} == {__file__}
