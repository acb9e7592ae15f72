"""Rows for tests of solvers, and what it means that two runs agree."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from onlinear import Learner

N, D = 150, 12


def stream(seed: int = 0) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray]:
    """Sparse rows, some empty, with two columns that never occur; signs; weights, some 0."""
    rng = np.random.default_rng(seed)
    X = sparse.random(N, D, 0.2, "csr", None, rng, rng.standard_normal)  # rng by place: its name is new
    X.data[np.isin(X.indices, (D - 2, D - 1))] = 0.0
    return X, rng.choice([-1.0, 1.0], N), rng.choice([0.0, 0.4, 1.0, 7.0], N)


def close(got: np.ndarray, want: np.ndarray) -> None:
    """Equal to 1e-10 of the largest absolute value."""
    np.testing.assert_allclose(got, want, rtol=0.0, atol=1e-10 * max(np.abs(want).max(initial=0.0), 1e-3))


def same_bits(one: Learner, other: Learner) -> None:
    """The states of two learners are equal, bit for bit."""
    for mine, theirs in zip(one.states, other.states, strict=True):
        np.testing.assert_array_equal(mine.now, theirs.now)
        for name, array in mine.arrays.items():
            np.testing.assert_array_equal(array, theirs.arrays[name])
