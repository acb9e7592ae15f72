"""Rows by name: generators, splits, transformations, and what is said where data is not there."""

import inspect

import numpy as np
import pytest
import scipy.sparse as sp

from onlinear.papers import data
from onlinear.papers.data import MissingDataError, Where
from onlinear.papers.data_spec import DataSpec
from onlinear.papers.generators import GENERATORS
from onlinear.papers.problems import FACTS, LearningProblem, rows_of

NOWHERE = Where()


@pytest.mark.parametrize("name", GENERATORS)
def test_generators_repeat_and_differ_by_seed(name):
    given = {key: value for key, value in {"n": 80, "d": 30}.items() if key in inspect.signature(GENERATORS[name]).parameters}
    spec = DataSpec("x", generator=name, settings=given)
    one, again, other = (data.split(spec, NOWHERE, seed) for seed in (1, 1, 2))
    dense = [found.X.toarray() if sp.issparse(found.X) else found.X for found in (one, again, other)]
    np.testing.assert_array_equal(dense[0], dense[1])
    np.testing.assert_array_equal(one.y, again.y)
    assert not np.array_equal(dense[0], dense[2])
    assert np.isfinite(dense[0]).all()
    assert np.isfinite(one.y).all()
    assert dense[0].shape == (80, 30)


def test_a_split_covers_every_row_once():
    spec = DataSpec("x", generator="uniform", settings={"n": 50, "d": 4, "constant": False}, test=20)
    whole = data.split(DataSpec("x", generator="uniform", settings={"n": 50, "d": 4, "constant": False}), NOWHERE, 0)
    found = data.split(spec, NOWHERE, 0)
    assert (len(found.y), len(found.y_test)) == (30, 20)
    assert sorted([*found.y, *found.y_test]) == sorted(whole.y)
    with pytest.raises(ValueError, match="40 training and 20 test rows are asked of 50"):
        data.split(DataSpec("x", generator="uniform", settings={"n": 50, "d": 4}, train=40, test=20), NOWHERE, 0)


@pytest.mark.parametrize("sparse", [False, True])
def test_transformations(sparse):
    rng = np.random.default_rng(0)
    X, X_test = rng.normal(2.0, 3.0, (40, 5)), rng.normal(size=(10, 5))
    X[:, 3] = 0.0
    wrap = sp.csr_matrix if sparse else np.asarray

    def apply(name):
        return [A.toarray() if sp.issparse(A) else A for A in data.TRANSFORMS[name](wrap(X), wrap(X_test))]

    np.testing.assert_allclose(apply("centre")[0].mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(apply("centre")[1], X_test - X.mean(axis=0))
    np.testing.assert_allclose(np.delete(apply("standard")[0], 3, axis=1).std(axis=0), 1.0)
    np.testing.assert_allclose(np.delete(np.abs(apply("max-abs")[0]).max(axis=0), 3), 1.0)
    np.testing.assert_allclose(np.linalg.norm(apply("unit-rows")[1], axis=1), 1.0)
    np.testing.assert_array_equal(apply("constant")[0][:, 0], 1.0)
    np.testing.assert_array_equal(apply("dense")[0], X)


def test_what_is_missing_is_said():
    assert data.missing(DataSpec("x", generator="uniform"), NOWHERE) is None
    assert "--download (fetch_covtype, a network)" in data.missing(DataSpec("x", set="covtype"), NOWHERE)
    assert "--download" not in data.missing(DataSpec("x", set="astro-physic"), Where(download=True))
    assert data.missing(DataSpec("x", set="covtype"), Where(download=True)) is None
    with pytest.raises(ValueError, match=r"data set 'covtyp' is not known.* Did you mean 'covtype'"):
        data.missing(DataSpec("x", set="covtyp"), NOWHERE)
    with pytest.raises(ValueError, match=r"generator 'uniform': setting 'dd' is not known"):
        data.missing(DataSpec("x", generator="uniform", settings={"dd": 3}), NOWHERE)
    with pytest.raises(MissingDataError, match="'phishing' is not here"):
        data.load("phishing", NOWHERE)


def test_real_sets(data):  # the fixture: the folder that ONLINEAR_DATA names
    from onlinear.papers.data import SETS, load, missing, split

    where = Where(str(data))
    here = [name for name in SETS if missing(DataSpec("x", set=name), where) is None]
    assert {"a9a", "ccat", "covtype", "mnist"} <= set(here)
    (X, y), test = load("a9a", where)
    assert X.shape == (32561, 123)
    assert test[0].shape == (16281, 123)
    assert set(y) == {-1.0, 1.0}
    pooled = split(DataSpec("x", set="a9a", train=40000, test=8000), where, 0)
    assert (len(pooled.y), len(pooled.y_test)) == (40000, 8000)
    few = split(DataSpec("x", set="a9a", test=1000), where, 0)
    assert (len(few.y), len(few.y_test)) == (32561, 1000)


def test_the_training_file_alone(data):
    from onlinear.papers.data import load, split

    where = Where(str(data))
    whole = DataSpec("a9a", set="a9a", part="train", train=24703, test=7858)
    found = split(whole, where, 0)
    rows = load("a9a", where)[0][0]
    assert len(found.y) + len(found.y_test) == rows.shape[0] == 32561
    assert found.X.sum() + found.X_test.sum() == rows.sum()


def test_facts():
    split = rows_of(DataSpec("x", generator="uniform", settings={"n": 60, "d": 4}), NOWHERE, 0)
    found = {name: fact(split) for name, fact in FACTS.items()}
    assert (found["n"], found["d"], found["n_test"]) == (60, 4, 0)
    assert found["R2"] == pytest.approx(np.max(np.sum(split.X**2, axis=1)))
    values = np.linalg.eigvalsh(split.X.T @ split.X / 60)
    assert [found["eig_min"], found["eig_second"], found["eig_max"]] == pytest.approx([values[0], values[-2], values[-1]])
    assert found["mean_R2"] == pytest.approx(values.sum())
    assert found["constraint_at_optimum"] < 1e-12


def test_several_classes_are_one_hot_problems():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 3)), rng.integers(0, 3, 30).astype(float)
    problem = LearningProblem(data.Split(X, y, X, y), "squared", "none")
    assert problem.n_outputs == 3
    assert set(problem.y.ravel()) == {0.0, 1.0}
    w = np.linalg.lstsq(X, problem.y)[0]
    np.testing.assert_allclose(problem.optimum.w, w, atol=1e-10)
    assert problem.objective(w) == pytest.approx(problem.optimum.value)
    assert problem.error(w, 0.0, True) == np.mean(np.argmax(X @ w, axis=1) != y)
    assert set(LearningProblem(data.Split(X, y, X, y), "hinge", "none").y.ravel()) == {-1.0, 1.0}
