"""Systems on faces: LAPACK's solution, whichever face was factored before, and none where a pivot is rounding."""

import numpy as np
import pytest

from onlinear.certified.faces import FEW, SMALL, Faces, solve_dependent


def is_solution(H, ridge, r, members, x):
    A = H[np.ix_(members, members)] + np.diag(ridge[members])
    off = np.abs(A @ x - r).max()
    return off <= 1e-8 * (np.abs(A).max() * np.abs(x).max() + np.abs(r).max())


def counted(monkeypatch):
    made, anew = [], Faces._anew
    monkeypatch.setattr(Faces, "_anew", lambda self, r, members: made.append(len(members)) or anew(self, r, members))
    return made


@pytest.mark.parametrize("size", [1, 5, 9])
def test_one_face(size):
    rng = np.random.default_rng(size)
    A = rng.normal(size=(12, 10))
    H, r, members = A.T @ A, rng.normal(size=size), np.sort(rng.choice(10, size, replace=False))
    ridge, before = np.where(np.arange(10) < 9, 0.3, 0.0), H.copy()
    assert is_solution(H, ridge, r, members, Faces(H, ridge).solve(r, members))
    assert np.array_equal(H, before)
    assert Faces(H[:, :1] @ H[:1], 0.0 * ridge).solve(r, members) is None or size == 1
    assert Faces(np.zeros_like(H), 0.0 * ridge).solve(r, members) is None
    assert Faces(H, ridge).solve(r[:0], members[:0]) is None


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_faces_that_differ_little_are_solved_by_the_factors_of_one(monkeypatch, ridge):
    rng, d = np.random.default_rng(0), 2 * SMALL
    A = rng.normal(size=(3 * d, d)) @ (np.eye(d) + rng.normal(size=(d, d)) / np.sqrt(d))
    H, made = A.T @ A, counted(monkeypatch)
    inside = np.arange(d) % 4 > 0
    faces, ridges = Faces(H, np.full(d, ridge)), np.full(d, ridge)
    for changes in (0, 0, 1, 3, 5, 8, 2):
        flipped = rng.choice(d, changes, replace=False)
        inside[flipped] = ~inside[flipped]
        members = np.flatnonzero(inside)
        r = rng.normal(size=len(members))
        np.testing.assert_allclose(
            faces.solve(r, members), np.linalg.solve(H[np.ix_(members, members)] + ridge * np.eye(len(members)), r), rtol=1e-6
        )
        assert is_solution(H, ridges, r, members, faces.solve(r, members))
    assert len(made) == 1
    far = np.flatnonzero(~inside | (np.arange(d) % 3 == 0))
    assert len(np.setxor1d(far, members)) * FEW > len(members)
    assert is_solution(H, ridges, r[: len(far)], far, faces.solve(r[: len(far)], far))
    assert len(made) == 2


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
def test_a_column_that_others_make_is_refused_with_any_factors(scale):
    rng, d = np.random.default_rng(1), SMALL + 20
    A = rng.normal(size=(2 * d, d))
    A[:, d - 1] = A[:, :3].sum(axis=1)
    H, ridge = scale * (A.T @ A), np.zeros(d)
    faces = Faces(H, ridge)
    good = np.arange(d - 1)
    r = scale * rng.normal(size=d)
    assert is_solution(H, ridge, r[good], good, faces.solve(r[good], good))
    assert faces.solve(r, np.arange(d)) is None
    assert faces.solve(r[good], good) is None, "later faces have such pivots too, as a rule: no attempt is made in vain"
    faces = Faces(H, ridge)
    assert is_solution(H, ridge, r[good], good, faces.solve(r[good], good))
    without = np.delete(np.arange(d), 1)  # the column takes the place of one of those that make it
    assert is_solution(H, ridge, r[without], without, faces.solve(r[without], without))


def test_what_is_not_finite_is_refused():
    d = SMALL + 5
    H = np.eye(d)
    faces = Faces(H, np.zeros(d))
    faces.solve(np.ones(d - 1), np.arange(d - 1))
    H[d - 1, 0] = H[0, d - 1] = np.nan
    assert faces.solve(np.ones(d), np.arange(d)) is None


def test_columns_that_depend_on_each_other_have_a_long_step_along_which_nothing_curves():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 40)) * 10.0 ** rng.uniform(-3.0, 3.0, 40)
    A, r = X.T @ X, rng.normal(size=40)
    x = solve_dependent(A, r)
    sizes = np.sqrt(A.diagonal())
    assert np.abs(sizes * x).max() > 1e10 * np.abs(r / sizes).max()
    assert np.linalg.norm(X @ x) < 1e-3 * np.linalg.norm(sizes * x)
    assert r @ x > 0.0
    B = A + np.diag(A.diagonal())
    np.testing.assert_allclose(B @ solve_dependent(B, r), r, rtol=1e-9)
