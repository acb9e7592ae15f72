"""A problem: an experiment's rows with a loss and a penalty, its optimum, and the facts that formulas may name."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from onlinear.learner.parts import build_loss, build_penalty
from onlinear.learner.scores import penalty_value
from onlinear.losses import loss_labels
from onlinear.papers.data import Split, Where
from onlinear.papers.data import split as split_rows
from onlinear.papers.data_spec import DataSpec
from onlinear.papers.optimum import Optimum, gram, mean_loss, optimum, squares


class ByText:
    """A data specification that can stand in a cache's key: equal where its text is."""

    def __init__(self, spec: DataSpec) -> None:
        self.spec, self.text = spec, repr(spec)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByText) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)


@lru_cache(maxsize=3)
def _split(data: ByText, where: Where, seed: int) -> Split:
    return split_rows(data.spec, where, seed)


def rows_of(spec: DataSpec, where: Where, seed: int) -> Split:
    """The rows of a data set; the last few are kept in memory."""
    return _split(ByText(spec), where, seed)


class LearningProblem:
    """Rows, loss and penalty. Several classes: K problems with targets 1/0, or 1/-1 for a loss of signs."""

    def __init__(self, split: Split, loss: str, penalty: str) -> None:
        self.split = split
        self.loss: Any = build_loss(loss)
        self.penalty: Any = build_penalty(penalty)
        self.known: Optimum | None = None
        self.asked = False  # whether a measure has needed the optimum
        self.keep: Callable[[Optimum], None] = lambda best: None  # told the optimum when it has been found
        self.classes = np.unique(split.y) if _few_classes(split.y) else None
        if self.classes is not None and len(self.classes) > 2:
            low = -1.0 if loss_labels(self.loss) == "signs" else 0.0
            self.y = np.where(split.y[:, None] == self.classes, 1.0, low)
        else:
            self.y = split.y

    @property
    def n_outputs(self) -> int:
        """K."""
        return self.y.shape[1] if self.y.ndim == 2 else 1

    def objective(self, w: np.ndarray) -> float:
        """F(w) on the training rows, summed over outputs."""
        scores = np.asarray(self.split.X @ w)
        if self.n_outputs == 1:
            return mean_loss(self.loss, scores, self.y) + self.penalty_value(w)
        parts = [mean_loss(self.loss, scores[:, k], self.y[:, k]) + self.penalty_value(w[:, k]) for k in range(self.n_outputs)]
        return float(sum(parts))

    def penalty_value(self, w: np.ndarray) -> float:
        """r(w)."""
        return penalty_value(self.penalty, w)

    def error(self, w: np.ndarray, bias: Any, test: bool) -> float:
        """The share of rows whose class is not guessed (0 counts as -1); for numbers the mean squared error."""
        X, y = (self.split.X_test, self.split.y_test) if test else (self.split.X, self.split.y)
        if len(y) == 0:
            raise ValueError("the test error needs test rows: give the data a test = ... or a set with a test half.")
        if self.classes is None:
            return float(np.mean((X @ w + bias - y) ** 2))
        return float(np.mean(self.wrong(w, bias, test)))

    def wrong(self, w: np.ndarray, bias: Any, test: bool = True) -> np.ndarray:
        """Which rows are not guessed."""
        X, y = (self.split.X_test, self.split.y_test) if test else (self.split.X, self.split.y)
        scores = np.asarray(X @ w) + bias
        assert self.classes is not None
        if self.n_outputs > 1:
            return self.classes[np.argmax(scores, axis=1)] != y
        return np.where(scores > 0.0, self.classes[-1], self.classes[0]) != y

    @property
    def optimum(self) -> Optimum:
        """The minimiser of F, found when it is first asked for."""
        self.asked = True
        if self.known is None:
            self.known = optimum(self.split.X, self.y, self.loss, self.penalty)
            self.keep(self.known)
        return self.known


def _few_classes(y: np.ndarray) -> bool:
    return bool(np.all(y[:1000] == np.rint(y[:1000])) and len(np.unique(y)) <= 20)


# --- facts -----------------------------------------------------------------------------------------------------------


def spectrum(split: Split) -> np.ndarray:
    """The eigenvalues of the Hessian X'X / n of the squared loss, least first."""
    return np.linalg.eigvalsh(gram(split.X) / split.X.shape[0])


def _constraint_at_optimum(split: Split) -> float:
    """|ybar - <w*, xbar>| of the least-squares solution."""
    w = optimum(split.X, split.y, build_loss("squared"), build_penalty("none")).w
    return float(abs(split.y.mean() - np.asarray(split.X.mean(axis=0)).ravel() @ w))


# Numbers of the training rows that formulas may name; only those that a file names are computed.
FACTS: dict[str, Callable[[Split], float]] = {
    "n": lambda split: float(split.X.shape[0]),
    "d": lambda split: float(split.X.shape[1]),
    "n_test": lambda split: float(len(split.y_test)),
    "nonzeros_per_row": lambda split: float((split.X != 0).sum()) / split.X.shape[0],
    "positive_share": lambda split: float(np.mean(split.y > 0)),
    "R2": lambda split: float(squares(split.X).max()),
    "mean_R2": lambda split: float(squares(split.X).mean()),
    "x_max": lambda split: float(abs(split.X).max()),
    "xty_max": lambda split: float(np.abs(split.X.T @ split.y).max()) / split.X.shape[0],
    "eig_max": lambda split: float(spectrum(split)[-1]),
    "eig_second": lambda split: float(spectrum(split)[-2]),
    "eig_min": lambda split: float(spectrum(split)[0]),
    "constraint_at_optimum": _constraint_at_optimum,
}


def optimum_facts(problem: LearningProblem) -> dict[str, float]:
    """The facts that the optimum of one loss and penalty adds."""
    best = problem.optimum
    return {
        "F_star": best.value,
        "F_star_gap": best.gap,
        "F_zero": problem.objective(np.zeros_like(best.w)),
        "w_norm": float(np.linalg.norm(best.w)),
        "mu_norm": float(np.linalg.norm(best.mu)),
        "zeros_star": float(np.mean(best.w == 0.0)),
        "test_error_star": problem.error(best.w, 0.0, True) if len(problem.split.y_test) else float("nan"),
    }
