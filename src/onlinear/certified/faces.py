"""Systems on faces of the model of a Newton step, with H at hand: (H + diag(ridge)) x = r on some of its coordinates.

LAPACK factors one face as A = U'U. Faces that follow have nearly its members, and the factors serve them too. With R the
members that are gone, and D those that are new,

    [ A    A_D   E_R ] [ x  ]   [ r   ]
    [ A_D' A_DD  0   ] [ x_D] = [ r_D ]     x_R = 0,
    [ E_R' 0     0   ] [ mu ]   [ 0   ]

whose Schur complement has a row for each member that changed.
"""

from __future__ import annotations

import numpy as np

from onlinear.certified.models import FACTORED, FLAT, SOLVED, TINY

SMALL, FEW = 150, 8  # faces of so few members are factored anew, as are those of which more than one in FEW changed
TRUE = 1e-10  # of the sizes of H and x: a larger residual is none of rounding


class Faces:
    """Those of one H."""

    def __init__(self, H: np.ndarray, ridge: np.ndarray) -> None:
        self._H, self._ridge = H, ridge
        self._members = np.empty(0, np.intp)  # that are factored
        self._factor = np.empty((0, 0))  # U
        self._fails = False  # whether a pivot was rounding: later faces then have such pivots too

    def solve(self, r: np.ndarray, members: np.ndarray) -> np.ndarray | None:
        """x on up to FACTORED members; None beyond, and once a pivot was rounding where ``solve_face`` solves the system."""
        if self._fails or not 0 < len(members) <= FACTORED:
            return None
        x = self._changed(r, members)
        return self._anew(r, members) if x is None else x

    def _anew(self, r: np.ndarray, members: np.ndarray) -> np.ndarray | None:
        from scipy.linalg.lapack import dposv

        self._members = members[:0]
        A = self._H[members[:, None], members]
        diagonal = A.reshape(-1)[:: len(members) + 1]
        before = diagonal.copy()
        diagonal += self._ridge[members]
        factor, x, info = dposv(A.T, r, overwrite_a=True)
        pivots = factor.diagonal()
        if info != 0 or not (pivots * pivots > FLAT * before + TINY).all():
            self._fails = len(members) <= SOLVED
            return None
        self._members, self._factor = members, factor
        return np.asarray(x)

    def _changed(self, r: np.ndarray, members: np.ndarray) -> np.ndarray | None:
        """``solve`` by the factors at hand; None where they are of no use."""
        base = self._members
        if min(len(members), len(base)) < SMALL:
            return None
        gone, new = np.flatnonzero(~np.isin(base, members)), members[~np.isin(members, base)]
        if FEW * (len(gone) + len(new)) > len(base):
            return None
        given, x = np.zeros(len(self._H)), np.zeros(len(self._H))
        given[members] = r
        own, border = self._halfway(given[base]), self._border(gone, new)
        y = self._complement(border, new, np.append(given[new], np.zeros(len(gone))) - border.T @ own)
        if y is None:
            return None
        x[base] = self._halfway(own - border @ y, trans=0)
        x[base[gone]], x[new] = 0.0, y[: len(new)]
        return x[members] if self._solves(x, given, members) else None

    def _halfway(self, right: np.ndarray, trans: int = 1) -> np.ndarray:
        """The solution with U', or with U."""
        from scipy.linalg.lapack import dtrtrs

        return np.asarray(dtrtrs(self._factor, right, trans=trans)[0])

    def _border(self, gone: np.ndarray, new: np.ndarray) -> np.ndarray:
        """U'^-1 (A_D, E_R)."""
        found = np.zeros((len(self._members), len(new) + len(gone)), order="F")
        found[:, : len(new)] = self._H[np.ix_(self._members, new)]
        found[gone, np.arange(len(new), found.shape[1])] = 1.0
        return self._halfway(found) if found.size else found

    def _complement(self, border: np.ndarray, new: np.ndarray, right: np.ndarray) -> np.ndarray | None:
        """The solution with the Schur complement; None where a pivot is rounding."""
        S, own = -(border.T @ border), np.arange(len(new))
        S[: len(new), : len(new)] += self._H[np.ix_(new, new)]
        S[own, own] += self._ridge[new]
        if not (S[own, own] > FLAT * self._H[new, new] + TINY).all():
            return None
        try:
            return np.linalg.solve(S, right)
        except np.linalg.LinAlgError:
            return None

    def _solves(self, x: np.ndarray, given: np.ndarray, members: np.ndarray) -> bool:
        """Whether x, which is 0 elsewhere, solves the system of the members but for rounding."""
        off = (self._H @ x + self._ridge * x - given)[members]
        size = (self._H[members, members] + self._ridge[members]).max() * np.abs(x).max() + np.abs(given).max()
        return bool(np.abs(off).max() <= TRUE * size)


def solve_dependent(A: np.ndarray, r: np.ndarray) -> np.ndarray:
    """x with A x = r where many columns depend on others: large along these, whose pivots stand for rounding.

    By factors with the largest pivot next, which rounding does not blow up as it may those of ``solve_face``."""
    from scipy.linalg.lapack import dpstrf, dtrtrs

    sizes = np.sqrt(A.diagonal() + TINY)
    factor, places, rank, _ = dpstrf((A / sizes).T / sizes, tol=FLAT)
    order, right = places - 1, r / sizes
    factor[rank:, rank:] = np.diag(np.full(len(A) - rank, np.sqrt(FLAT)))
    x = np.empty(len(A))
    x[order] = dtrtrs(factor, dtrtrs(factor, right[order], trans=1)[0])[0]
    return x / sizes
