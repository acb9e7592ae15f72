"""The part of a learner that predicts: the non-zero weights in the columns' own units, in O(non-zeros).

Its scores are bit-identical to those of the learner. It cannot learn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from math import isfinite
from typing import Any, NoReturn

import numpy as np

from onlinear import rows
from onlinear.compiled.calls import TAKES_CALLS
from onlinear.files import trust
from onlinear.learner import Learner, row_calls, stored_parts
from onlinear.learner.arguments import one_row
from onlinear.learner.clip import are_ranges, bounded
from onlinear.learner.learn_one import retyped
from onlinear.learner.parts import build_loss
from onlinear.learner.predict_one import OneScore, bound_of
from onlinear.learner.scores import Weights, predictors_of
from onlinear.learner.stored_learner import Arrays, Header
from onlinear.learner.uncertainty import NONE, Spread, interval_of, std_of, thawed
from onlinear.rows import LARGEST_COLUMN, checks
from onlinear.solvers.core.state import SCALARS

_OWN = ("_one", "_looked_up", "words", "predict_one")  # what is made when it is asked for, and no copy has
DENSE = 1 << 20  # weights that may be spread out to be looked up by place, however few are not 0


class NotHeldError(ValueError, AttributeError):
    """What a final model does not hold: an AttributeError too, so that ``hasattr`` and ``dir`` find that it is missing."""


class Final:
    """The predicting part of a learner: ``columns[k]`` ascending and ``values[k]`` for output k, and the intercepts."""

    scaler = None
    names: dict[int, str] | None = None  # of the columns whose weight is not 0, where a data frame gave them
    stopped = None  # it cannot diverge
    lock = None  # nothing changes it
    _one: OneScore | None = None  # made by the first predict_one

    def __init__(
        self,
        spec: dict[str, Any],
        columns: list[np.ndarray],
        values: list[np.ndarray],
        intercepts: np.ndarray,
        *,
        size: int,
        growing: bool,
        t: int,
        progressive_loss: float,
        bounds: np.ndarray | None = None,
        spread: Spread | None = None,
    ) -> None:
        self.spec = spec
        self.loss = build_loss(spec["loss"])
        self.columns, self.values, self.intercepts = columns, values, intercepts
        self.size, self.growing, self.t, self.progressive_loss = size, growing, t, progressive_loss
        self.spread = spread  # of what predictions may be off; None where nothing tells
        self.bounds = bounds  # what predictions are clipped to (K, 2); None where they are not

    @classmethod
    def of(cls, learner: Learner | Final) -> Final:
        """The predicting part of ``learner``."""
        if isinstance(learner, Final):
            return learner
        weights, intercepts = predictors_of(learner)
        kept = [np.flatnonzero((w != 0.0) | np.signbit(w)).astype(np.uint32) for w in weights.T]
        return cls(
            learner.spec,
            kept,
            [w[columns] for w, columns in zip(weights.T, kept, strict=True)],
            intercepts,
            size=learner.size,
            growing=learner.growing,
            t=learner.t,
            progressive_loss=learner.progressive_loss,
            bounds=learner.bounds(),
            spread=None if learner.spread is None else learner.spread.alone(),
        )

    # --- reading -----------------------------------------------------------------------------------------------------

    @property
    def n_outputs(self) -> int:
        """Outputs."""
        return len(self.columns)

    def all_columns(self) -> np.ndarray:
        """The columns that have a weight in any output, ascending."""
        return np.unique(np.concatenate(self.columns))

    def predict(self, X: Any) -> np.ndarray:
        """Scores <w, x> + b, (n,) or (n, K); columns beyond those learned have weight 0."""
        source = self._read(X)
        columns, weights = self._looked_up
        if columns is None:
            out = weights.score_rows(source)
        else:
            out = np.empty((source.n, self.n_outputs))
            for which, block in source.blocks():
                weights.score_block(block._replace(indices=_places(columns, block.indices)), out[which])
        return bounded(out[:, 0] if self.n_outputs == 1 else out, self.bounds)

    @cached_property
    def words(self) -> np.ndarray:
        """What built-in functions look at, as of a ``Learner``."""
        return row_calls.new_words(self.lock)

    def predict_one(self, indices: Any, values: Any) -> Any:
        """The score of one row, a float or (K,), given by its non-zeros; as ``predict`` gives it."""
        one = self._one_score()
        score = None if one is None else one.score(indices, values)
        if score is None and one is not None and (others := retyped(indices, values)) is not None:
            score = one.score(*others)
        if score is not None:
            return score
        scores = self.predict(one_row(indices, values))
        return float(scores[0]) if self.n_outputs == 1 else scores[0]

    def score_compiled(self, row: Any, names: Any) -> Any:
        """As ``Learner.score_compiled``."""
        return None if self._one is None else self._one.score(row, names)

    def _one_score(self) -> OneScore | None:
        """What scores single rows; None where the weights are too wide to stand at their own places."""
        if self._one is None and self.size <= DENSE:
            weights = self.weights().reshape(self.size, self.n_outputs)
            one = OneScore(weights, self.intercepts, np.zeros(SCALARS), bound_of(self.growing, self.size), self.bounds)
            one = vars(self).setdefault("_one", one)  # another thread may have made it
            if one.take is not None and TAKES_CALLS and type(self) is Final:
                row_calls.tell(self.words, row_calls.LISTED, one.address, one.here)
                built = row_calls.built_in_of(row_calls.predict_one, self, "indices, values")
                self.__dict__["predict_one"] = built
        return self._one

    @cached_property
    def _looked_up(self) -> tuple[np.ndarray | None, Weights]:
        """The columns with a weight, and the weights of these; no columns where the weights stand at their own places."""
        columns = self.all_columns()
        width = int(columns[-1]) + 1 if len(columns) else 0
        if width <= DENSE + 8 * len(columns):
            return None, Weights.of(self._spread_out(width, self.columns), self.n_outputs, width)
        places = [np.searchsorted(columns, own) for own in self.columns]
        return columns, Weights.of(self._spread_out(len(columns), places), self.n_outputs, len(columns))

    def _spread_out(self, size: int, places: list[np.ndarray]) -> Iterator[tuple[float, np.ndarray]]:
        """The intercept of each output, and its weights at these of ``size`` places."""
        for bias, own, values in zip(self.intercepts, places, self.values, strict=True):
            weights = np.zeros(size)
            weights[own] = values
            yield bias, weights

    def predict_std(self, X: Any) -> np.ndarray:
        """How far predictions may be off, (n,) or (n, K), as ``Learner.predict_std`` gives it."""
        return std_of(self, self._read(X))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """Intervals (n, 2) or (n, K, 2), as ``Learner.predict_interval`` gives them."""
        return interval_of(self, self._read(X), self.predict(X), coverage)

    def _read(self, X: Any) -> rows.Source:
        source = rows.read(X)
        if not self.growing and source.size > self.size:
            raise checks.width_error(source.width, self.size)
        return source

    def weights(self, average: bool = True) -> np.ndarray:
        """The weights that predict, (d,) or (d, K)."""
        if not average:
            raise NotHeldError("a final model holds only the weights that predict uses, not those after the last row.")
        out = np.zeros((self.size, self.n_outputs))
        for k, (columns, values) in enumerate(zip(self.columns, self.values, strict=True)):
            out[columns, k] = values
        return out[:, 0] if self.n_outputs == 1 else out

    def intercept(self, average: bool = True) -> Any:
        """The intercept, a float or (K,)."""
        return float(self.intercepts[0]) if self.n_outputs == 1 else self.intercepts.copy()

    def reading(self) -> AbstractContextManager[None]:
        """Nothing changes it, inside the block or outside."""
        return nullcontext()

    def __getstate__(self) -> dict[str, Any]:
        """What a copy has: what scores single rows is bound to addresses of this object's arrays."""
        return {name: value for name, value in vars(self).items() if name not in _OWN}

    # --- not learning ------------------------------------------------------------------------------------------------

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise ValueError(
            "this is a final model, which can only predict. Continue training from a file that was not saved as final."
        )

    learn = learn_one = solve = learn_checked = check_input = _refuse

    # --- files -------------------------------------------------------------------------------------------------------

    def freeze(self) -> tuple[Header, Arrays]:
        """Settings and weights as a JSON-able header and arrays."""
        header = {
            "final": True,
            "spec": {role: stored_parts.store(spec) for role, spec in self.spec.items()},
            "size": self.size,
            "growing": self.growing,
            "n_outputs": self.n_outputs,
            "rows": self.t,
            "loss": self.progressive_loss if isfinite(self.progressive_loss) else None,
        }
        arrays: Arrays = {"intercepts": self.intercepts}
        for k in range(self.n_outputs):
            arrays |= {f"{k}.columns": self.columns[k], f"{k}.values": self.values[k]}
        if self.spread is not None:
            header["uncertainty"] = self.spread.kind
            arrays |= self.spread.arrays()
        return header, arrays if self.bounds is None else arrays | {"bounds": self.bounds}

    @classmethod
    def thaw(cls, header: Header, arrays: Arrays, **parts: Any) -> Final:
        """What ``freeze`` described; a loss from outside the package is passed by role."""
        size, outputs, t, loss, growing = (header[name] for name in ("size", "n_outputs", "rows", "loss", "growing"))
        trust.must(trust.count(size, 0, LARGEST_COLUMN + 1), f"a final model of {size!r} features")
        trust.must(trust.count(outputs, 1, len(arrays)), f"a final model of {outputs!r} outputs")
        trust.must(trust.count(t), f"{t!r} rows learned")
        spread = thawed(header.get("uncertainty", NONE), arrays, outputs, size, t)
        known = 1 + ("bounds" in arrays) + (0 if spread is None else len(spread.arrays()))
        trust.must(len(arrays) == known + 2 * outputs, f"a final model of {outputs!r} outputs")
        trust.must(loss is None or trust.real(loss), f"a loss of {loss!r}")
        trust.must(type(growing) is bool, f"growing of {growing!r}")
        intercepts = trust.array(arrays, "intercepts", np.float64, outputs)
        trust.finite("intercepts", intercepts)
        columns, values = [], []
        for k in range(outputs):
            columns.append(trust.array(arrays, f"{k}.columns", np.uint32, None))
            values.append(trust.array(arrays, f"{k}.values", np.float64, len(columns[k])))
            trust.finite(f"{k}.values", values[k])
            inside = not len(columns[k]) or int(columns[k][-1]) < size
            trust.must(inside and np.all(columns[k][1:] > columns[k][:-1]), "columns that do not ascend below its features")
        bounds = None
        if "bounds" in arrays:
            bounds = trust.array(arrays, "bounds", np.float64, outputs, 2)
            trust.must(are_ranges(bounds, open_ends=True), "bounds that no targets have")
        spec = {
            role: stored_parts.restore(role, header["spec"][role], parts, needed=role == "loss") for role in stored_parts.ROLES
        }
        found = float("nan") if loss is None else float(loss)
        numbers = {"size": size, "growing": growing, "t": t, "progressive_loss": found}
        return cls(spec, columns, values, intercepts, **numbers, bounds=bounds, spread=spread)


def _places(columns: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Where each index stands among the columns, which ascend; their number for one that is not there."""
    places = np.searchsorted(columns, indices)
    found = columns[np.minimum(places, len(columns) - 1)] == indices
    return np.where(found, places, len(columns)).astype(np.uint32)
