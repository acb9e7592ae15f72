"""Every container of the same rows trains the same model, bit for bit: sorted CSR is what the others are compared with."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from onlinear import Learner, OnlineClassifier

N, D = 600, 9
RNG = np.random.default_rng(12)
SPARSE = np.round(RNG.standard_normal((N, D)), 2) * (RNG.random((N, D)) < 0.4)
SPARSE[[0, 7, -1]] = 0.0  # empty rows
FULL = np.where(SPARSE == 0.0, 1.5, SPARSE)  # no zeros
MOSTLY = FULL.copy()
MOSTLY[11, 4] = 0.0  # one zero
ROWS = {"sparse": SPARSE, "without zeros": FULL, "with one zero": MOSTLY}
Y = np.where(RNG.random(N) < 0.4, -1.0, 1.0)


def in_disorder(X):
    X = sp.coo_matrix(X)
    order = np.random.default_rng(1).permutation(X.nnz)
    by_row = order[np.argsort(X.row[order], kind="stable")]
    return sp.csr_matrix((X.data[by_row], X.col[by_row], sp.csr_matrix(X).indptr), shape=X.shape)


def with_zeros(X):
    """A zero before the first entry of a row that has none in column 0, or another of value 0 beside it."""
    X = sp.csr_matrix(X)
    return sp.csr_matrix(
        (np.insert(X.data, 9, 0.0), np.insert(X.indices, 9, X.indices[9]), X.indptr + (X.indptr > 9)), shape=X.shape
    )


def with_repeats(X):
    """Every entry as two of half its value."""
    X = sp.csr_matrix(X)
    return sp.csr_matrix((np.repeat(X.data / 2.0, 2), np.repeat(X.indices, 2), X.indptr * 2), shape=X.shape)


def mapped(X, folder):
    X = sp.csr_matrix(X)
    for name in ("data", "indices", "indptr"):
        np.save(folder / f"{name}.npy", getattr(X, name))
        setattr(X, name, np.load(folder / f"{name}.npy", mmap_mode="r"))
    return X


def frame(X):
    return pd.DataFrame(X, columns=[f"column {j}" for j in range(D)])


CONTAINERS = {
    "a stored zero": with_zeros,
    "repeated entries": with_repeats,
    "columns in disorder": in_disorder,
    "columns reversed": lambda X: sp.csr_matrix(sp.csr_matrix(X[:, ::-1]))[:, ::-1],
    "64-bit indices": lambda X: _as(sp.csr_matrix(X), np.int64),
    "CSC": sp.csc_matrix,
    "COO": sp.coo_matrix,
    "COO in disorder": lambda X: in_disorder(X).tocoo(),
    "COO by column": lambda X: sp.csc_matrix(X).tocoo(),
    "COO with repeats": lambda X: with_repeats(X).tocoo(),
    "sparse array": sp.csr_array,
    "a view of other rows": lambda X: sp.csr_matrix(np.vstack([X, X]))[: len(X)],
    "dense": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "big-endian": lambda X: X.astype(">f8"),
    "pandas": frame,
    "polars": lambda X: pl.DataFrame(X),
    "lists": lambda X: X.tolist(),
}


def _as(X, dtype):
    X.indices, X.indptr = X.indices.astype(dtype), X.indptr.astype(dtype)
    return X


LEARNERS = {
    "comid": {"solver": "comid,eta=0.3", "loss": "hinge", "penalty": "l1=0.001"},
    "the default": {
        "solver": "fiol,eta=20",
        "loss": "logistic",
        "average": "weighted-t1",
        "scale": "rms",
        "fit_intercept": True,
    },
    "csgd": {"solver": "csgd,eta=0.1,m=50", "loss": "squared", "scale": "max-abs", "fit_intercept": True},
}


def state(learner):
    arrays = learner.freeze()[1]
    return {name: array.tobytes() for name, array in arrays.items()}


@pytest.fixture(scope="module")
def wanted():
    known = {}

    def found(rows, kind):
        if (rows, kind) not in known:
            learner = Learner(**LEARNERS[kind], n_features=D).learn(sp.csr_matrix(ROWS[rows]), Y)
            known[rows, kind] = state(learner), learner.predict(sp.csr_matrix(ROWS[rows])).tobytes()
        return known[rows, kind]

    return found


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("container", [*CONTAINERS, "memory-mapped"])
def test_any_container_trains_and_predicts_as_sorted_csr(container, rows, wanted, tmp_path, monkeypatch):
    monkeypatch.setattr("onlinear.rows.arrays.ENTRIES", 1000)
    X = mapped(ROWS[rows], tmp_path) if container == "memory-mapped" else CONTAINERS[container](ROWS[rows])
    for kind, settings in LEARNERS.items():
        learner = Learner(**settings, n_features=D).learn(X, Y)
        assert (state(learner), learner.predict(X).tobytes()) == wanted(rows, kind), kind


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, bool])
def test_other_numbers_train_as_their_float64_copy(dtype):
    X = (SPARSE * 3.0).astype(dtype)
    wanted = state(Learner(**LEARNERS["the default"], n_features=D).learn(sp.csr_matrix(X.astype(np.float64)), Y))
    for make in (np.asarray, np.asfortranarray, sp.csr_matrix, sp.csc_matrix, sp.coo_matrix):
        assert state(Learner(**LEARNERS["the default"], n_features=D).learn(make(X), Y)) == wanted


@pytest.mark.parametrize("shuffle", [False, True, "replacement"])
@pytest.mark.parametrize("passes", [1, 3])
def test_estimators_take_any_container_in_any_order(passes, shuffle):
    found = set()
    for container in ("dense", "Fortran order", "pandas", "CSC", "columns in disorder", "a stored zero"):
        X = CONTAINERS[container](MOSTLY)
        model = OnlineClassifier(solver="fiol,eta=20", passes=passes, shuffle=shuffle, random_state=0).fit(X, Y)
        found.add((model.coef_.tobytes(), model.decision_function(X).tobytes()))
    assert len(found) == 1
