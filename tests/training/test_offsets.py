"""Columns far from 0 under tol, whose penalty holds their weights back, are named with the scale that mends it."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

from onlinear import OnlineClassifier, OnlineRegressor, QualityWarning, streams
from onlinear.cli import app
from onlinear.rows import Rows
from onlinear.training.offsets import far_from_zero

RNG = np.random.default_rng(0)
X = RNG.standard_normal((1200, 3)) + np.array([0.0, 5.0, 2000.0])
y = X[:, 2] + 0.1 * RNG.standard_normal(1200)


def rows_of(array):
    held = sp.csr_matrix(array)
    return Rows(held.indptr.astype(np.uint64), held.indices.astype(np.uint32), held.data)


def columns_of(array):
    return [offset.column for offset in far_from_zero(rows_of(array))]


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.coo_array, lambda X: pd.DataFrame(X, columns=list("abc"))])
def test_fit_names_the_column_and_the_scale_that_learns_it(container):
    name = "'c'" if container([[0.0]] if container is np.asarray else X).__class__ is pd.DataFrame else "column 2"
    with pytest.warns(QualityWarning, match=rf"farther from 0 than they vary: {name} \(\d,\d\d\d times\)\. .*scale=.centred."):
        held_back = OnlineRegressor(penalty="l2=1e-4", tol=1e-3).fit(container(X), y)
    assert held_back.score(container(X), y) < 0.1
    best = OnlineRegressor(penalty="l2=1e-4", tol=1e-3, scale="centred").fit(container(X), y)
    assert best.score(container(X), y) > 0.95


def test_a_stream_names_it_too_and_without_tol_nothing_is_said(tmp_path):
    path = tmp_path / "a.csv"
    pd.DataFrame(X, columns=["a", "b", "year"]).assign(y=y).to_csv(path, index=False)
    with pytest.warns(QualityWarning, match="than they vary: 'year' "):
        OnlineRegressor(penalty="l2=1e-4", tol=1e-3).fit(streams.open(path, target="y"))
    for options in ({}, {"tol": 1e-3, "scale": "centred"}, {"tol": 1e-3, "scale": "rms"}):  # rms by name is meant
        OnlineRegressor(penalty="l2=1e-4", **options).fit(streams.open(path, target="y"))


def test_what_is_not_far_or_does_not_vary_is_not_named():
    assert columns_of(X) == [2]
    assert columns_of(np.full((1000, 2), 3.0)) == columns_of(np.zeros((1000, 2))) == columns_of(X[:999]) == []
    assert columns_of(np.where(RNG.random((1200, 1)) < 0.5, 0.0, X[:, 2:])) == []  # half the rows have no entry
    assert columns_of(-X * 1e150) == [2]
    assert columns_of(np.full((1000, 1), 1e308) * RNG.uniform(0.9, 1.0, (1000, 1))) == []


LABELS = [0, 1, 1, 0, 1] * 8
CONTAINERS = {
    "array": np.asarray,
    "frame": pd.DataFrame,
    "sparse": sp.csr_matrix,
    "stream": lambda X: streams.open(pd.DataFrame(X).assign(y=LABELS), target="y"),
}


@pytest.mark.parametrize("scale", [None, "rms", "tempered", "dense"])
@pytest.mark.parametrize("container", CONTAINERS)
def test_columns_whose_squares_are_0_are_named(container, scale):
    X = np.random.default_rng(1).normal(size=(len(LABELS), 5)) * [1.0, 1e-170, 1e-100, 1e-300, 0.0]
    rows = CONTAINERS[container](X)
    with pytest.warns(
        QualityWarning, match=r"squares are 0, so nothing is learned of them: (column 1, column 3|'1', '3')\. Mul"
    ):
        model = OnlineClassifier(scale=scale).fit(rows, None if isinstance(rows, streams.Stream) else LABELS)
    assert model.coef_[0, [1, 3]].tolist() == [0.0, 0.0]


def test_the_command_names_columns_whose_squares_are_0(tmp_path):
    rows = "".join(f"{y},{1 + y}e-200,{y}.5\n" for y in LABELS)
    (tmp_path / "a.csv").write_text("y,small,x\n" + rows)
    done = CliRunner().invoke(app, ["train", str(tmp_path / "a.csv"), "--target", "y", "--json"])
    (said,) = [text for text in json.loads(done.stdout.splitlines()[-1])["doubts"] if "squares" in text]
    assert "'small'. Multiply them" in said
    shown = CliRunner().invoke(app, ["train", str(tmp_path / "a.csv"), "--target", "y"])
    assert "squares are 0" in shown.output.replace("\n", " ")


NUMBERS = np.random.default_rng(2).normal(size=(200, 3))


@pytest.mark.parametrize("loss", ["squared", "absolute", "poisson"])
@pytest.mark.parametrize("size", [1.0, 1e-140, 1e-160, 1e-200, 1e-300])
@pytest.mark.parametrize("stream", [False, True])
def test_targets_whose_squares_are_0_are_named(loss, size, stream):
    y = np.abs(NUMBERS @ [1.0, -2.0, 0.5]) * size
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        OnlineRegressor(loss).fit(*(([(NUMBERS, y)],) if stream else (NUMBERS, y)))
    said = [str(warning.message) for warning in caught if "squares are 0, so they are not learned" in str(warning.message)]
    assert len(said) == (size < 1e-150)


@pytest.mark.parametrize("size", [1.0, 1e-140, 1e-160, 1e-200, 1e-310])
@pytest.mark.parametrize("make", [OnlineRegressor, OnlineClassifier])
@pytest.mark.parametrize("stream", [False, True])
def test_weights_whose_squares_are_0_are_named(make, size, stream):
    y, s = NUMBERS @ [1.0, -2.0, 0.5], np.full(200, size)
    y = y if make is OnlineRegressor else (y > 0.0).astype(float)
    rows = ([(NUMBERS, y, s)],) if stream else (NUMBERS, y, s)
    classes = {"classes": [0.0, 1.0]} if stream and make is OnlineClassifier else {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        make().fit(*rows, **classes)
        make().fit(NUMBERS, y, np.append(s[1:], 1.0))
    assert sum("weights of all rows are so small" in str(warning.message) for warning in caught) == (size < 1e-150)


@pytest.mark.parametrize("size", [1.0, 1e-140, 1e-160, 1e-200])
def test_without_an_intercept_too(size):
    y = NUMBERS @ [1.0, -2.0, 0.5] * size
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        OnlineRegressor(fit_intercept=False).fit(NUMBERS, y)
        OnlineRegressor(fit_intercept=False).fit(NUMBERS, np.zeros(200))
    assert sum("squares are 0, so they are not learned" in str(warning.message) for warning in caught) == (size < 1e-150)


def test_targets_that_are_equal_or_few_of_which_are_small_are_not_named():
    for y in (np.zeros(200), np.full(200, 1e-300), np.where(np.arange(200) < 100, 1e-300, NUMBERS[:, 0])):
        with warnings.catch_warnings():
            warnings.filterwarnings("error", "Targets are so small")
            OnlineRegressor().fit(NUMBERS, y)


def test_the_command_names_targets_whose_squares_are_0(tmp_path):
    rows = "".join(f"{k % 7}e-200,{k % 7}.5\n" for k in range(50))
    (tmp_path / "a.csv").write_text("y,x\n" + rows)
    done = CliRunner().invoke(app, ["train", str(tmp_path / "a.csv"), "--target", "y", "--task", "regress", "--json"])
    assert any("Targets are so small" in text for text in json.loads(done.stdout.splitlines()[-1])["doubts"])
