"""The tools that are compared, behind one interface: ``learn`` a block of rows, ``scores`` of rows, ``nonzeros``.

Every tool gets the same rows in the same order and one pass. Class labels are -1 and +1; several classes are learned one
against the rest by each tool's own means.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from importlib.metadata import version
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier, SGDRegressor

import onlinear
from onlinear import DivergenceError, OnlineClassifier, OnlineRegressor

BITS = 18  # Vowpal Wabbit's table: 2^18 weights hold the columns of every set here without a collision


class Tool(ABC):
    """A linear model of one package. ``classes``: of a classifier, or None for numbers."""

    def __init__(self, classes: np.ndarray | None) -> None:
        self.classes = classes

    @abstractmethod
    def learn(self, X: sp.csr_matrix, y: np.ndarray) -> None:
        """Learn the rows once, in order; raises ArithmeticError where the state stops being finite."""

    @abstractmethod
    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        """(n,) margins or predicted numbers; (n, K) for several classes."""

    @abstractmethod
    def nonzeros(self) -> int:
        """Weights that are not 0."""

    def predict(self, X: sp.csr_matrix) -> np.ndarray:
        """Classes or numbers."""
        scores = self.scores(X)
        if self.classes is None:
            return scores
        return self.classes[np.argmax(scores, axis=1) if scores.ndim == 2 else (scores > 0.0).astype(int)]


class Estimator(Tool):
    """A model with the methods of scikit-learn's."""

    model: Any

    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        return self.model.predict(X) if self.classes is None else self.model.decision_function(X)

    def nonzeros(self) -> int:
        return int(np.count_nonzero(self.model.coef_))


class Onlinear(Estimator):
    """onlinear's estimators; ``params`` as theirs."""

    def __init__(self, classes: np.ndarray | None, **params: Any) -> None:
        super().__init__(classes)
        self.model = (OnlineRegressor if classes is None else OnlineClassifier)(shuffle=False, **params)

    def learn(self, X: sp.csr_matrix, y: np.ndarray) -> None:
        named = {} if self.classes is None else {"classes": self.classes}
        try:
            self.model.partial_fit(X, y, **named)
        except DivergenceError as error:
            raise ArithmeticError(str(error)) from None


class ScikitLearn(Estimator):
    """SGDClassifier or SGDRegressor; ``params`` as theirs."""

    def __init__(self, classes: np.ndarray | None, **params: Any) -> None:
        super().__init__(classes)
        self.model = (SGDRegressor if classes is None else SGDClassifier)(shuffle=False, random_state=0, **params)

    def learn(self, X: sp.csr_matrix, y: np.ndarray) -> None:
        named = {} if self.classes is None else {"classes": self.classes}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                self.model.partial_fit(X, y, **named)
            except ValueError as error:  # scikit-learn's word for overflow
                raise ArithmeticError(str(error)) from None


class VowpalWabbit(Tool):
    """A Vowpal Wabbit workspace; ``options`` as on its command line."""

    def __init__(self, classes: np.ndarray | None, options: str = "") -> None:
        super().__init__(classes)
        from vowpalwabbit import Workspace

        self.several = classes is not None and len(classes) > 2
        kind = "" if classes is None else "--loss_function logistic"
        if classes is not None and self.several:
            kind += f" --oaa {len(classes)} --scores"
        self.vw = Workspace(f"--quiet -b {BITS} {kind} {options}")

    def _lines(self, X: sp.csr_matrix) -> list[str]:
        pieces = [f"{j}:{x!r}" for j, x in zip(X.indices.tolist(), X.data.tolist(), strict=True)]
        return [" ".join(pieces[a:b]) for a, b in zip(X.indptr[:-1].tolist(), X.indptr[1:].tolist(), strict=True)]

    def learn(self, X: sp.csr_matrix, y: np.ndarray) -> None:
        labels = np.searchsorted(self.classes, y) + 1 if self.several else y
        for label, line in zip(labels.tolist(), self._lines(X), strict=True):
            self.vw.learn(f"{label} | {line}")

    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        found = np.array([self.vw.predict(f"| {line}") for line in self._lines(X)])
        if not np.all(np.isfinite(found)):
            raise ArithmeticError("a prediction is not finite")
        return found

    def nonzeros(self) -> int:
        return sum(self.vw.get_weight(i) != 0.0 for i in range(self.vw.num_weights()))


class River(Tool):
    """River's linear models, by SGD with a step size, or by another optimiser as it comes; rows as dictionaries."""

    def __init__(self, classes: np.ndarray | None, step: float | None = None, optimizer: str | None = None) -> None:
        super().__init__(classes)
        from river import linear_model, optim

        chosen = {} if step is None else {"optimizer": optim.SGD(step)}
        if optimizer is not None:
            chosen = {"optimizer": getattr(optim, optimizer)()}
        self.model = (linear_model.LinearRegression if classes is None else linear_model.LogisticRegression)(**chosen)

    @staticmethod
    def _rows(X: sp.csr_matrix) -> list[dict[int, float]]:
        columns, values, starts = X.indices.tolist(), X.data.tolist(), X.indptr.tolist()
        return [dict(zip(columns[a:b], values[a:b], strict=True)) for a, b in pairwise(starts)]

    def learn(self, X: sp.csr_matrix, y: np.ndarray) -> None:
        targets = y.tolist() if self.classes is None else (y > 0.0).tolist()
        try:
            for row, target in zip(self._rows(X), targets, strict=True):
                self.model.learn_one(row, target)
        except (OverflowError, FloatingPointError) as error:
            raise ArithmeticError(str(error)) from None

    def scores(self, X: sp.csr_matrix) -> np.ndarray:
        if self.classes is None:
            found = np.array([self.model.predict_one(row) for row in self._rows(X)])
        else:
            chances = np.array([self.model.predict_proba_one(row)[True] for row in self._rows(X)])
            with np.errstate(divide="ignore"):
                found = np.log(chances) - np.log1p(-chances)
        if np.any(np.isnan(found)):
            raise ArithmeticError("a prediction is not a number")
        return found

    def nonzeros(self) -> int:
        return sum(weight != 0.0 for weight in self.model.weights.values())


def versions() -> str:
    """The packages and their versions."""
    packages = ("scikit-learn", "vowpalwabbit", "river", "liblinear-official", "numba", "numpy")
    return ", ".join([f"onlinear {onlinear.__version__}", *(f"{name} {version(name)}" for name in packages)])


def log_loss(margins: np.ndarray, y: np.ndarray) -> np.ndarray:
    """log(1 + exp(-y m)) per row, infinite margins included."""
    return np.logaddexp(0.0, -y * margins)
