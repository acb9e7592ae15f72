"""All outputs of a learner on their way to certified optima, over rows that are read again and again (MATH 20.5)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from onlinear.certified import Gap, Standing, gap_of_output
from onlinear.certified.joint_rounds import JointRounds
from onlinear.certified.rounds import Rounds
from onlinear.certified.sums import Asked, Sums, add_block
from onlinear.files.model_file import arrays_of_each
from onlinear.learner.certificates import scales_of
from onlinear.learner.learner import Learner
from onlinear.learner.loss_sums import loss_weights
from onlinear.losses import is_joint
from onlinear.rows import Source
from onlinear.solvers.core.certified import stand
from onlinear.solvers.core.state import BIAS


class RoundsOfBlocks:
    """The rounds of each output. ``learner``: one whose solver ends at a certified gap, at its first weights; ``before``: the
    readings of all rows that led there."""

    def __init__(self, learner: Learner, before: int) -> None:
        self.learner, self.before = learner, before
        given = learner.loss, learner.penalty, learner.fit_intercept, scales_of(learner)
        weights = [state.arrays["w"] for state in learner.states]
        intercepts = [float(state.now[BIAS]) + self._share(state.arrays["w"]) for state in learner.states]
        self._joint = is_joint(learner.loss)
        self.rounds: list[Rounds]
        if self._joint:
            self.rounds = [JointRounds(*given, np.column_stack(weights), np.array(intercepts), learner.solver.tol)]
        else:
            end = learner.solver.tol, learner.n_outputs
            self.rounds = [Rounds(*given, w, b, *end) for w, b in zip(weights, intercepts, strict=True)]
        self._asked: list[tuple[int, Asked, Sums]] = []

    @property
    def done(self) -> bool:
        """Whether every output's gap is small enough."""
        return all(rounds.done for rounds in self.rounds)

    @property
    def iterations(self) -> int:
        """Rounds, of several outputs the most."""
        return max(rounds.rounds for rounds in self.rounds)

    @property
    def passes(self) -> int:
        """Readings of all rows so far, those before included."""
        return self.before + self.iterations

    @property
    def standing(self) -> Standing:
        """Where all outputs stand together."""
        return Standing.of((rounds.gap, rounds.w) for rounds in self.rounds)

    @property
    def working(self) -> int:
        """Columns of the working set, of several outputs the most."""
        return max(rounds.columns for rounds in self.rounds)

    @property
    def crowded(self) -> bool:
        """Whether a working set is as large as it may be."""
        return any(rounds.crowded for rounds in self.rounds)

    def begin(self) -> None:
        """Before a reading of all rows."""
        self._asked = []
        for k, rounds in enumerate(self.rounds):
            if not rounds.done:
                point = rounds.point()
                self._asked.append((k, point, point.nothing()))

    def add(self, source: Source, y: np.ndarray, weights: np.ndarray) -> None:
        """Add rows of the learner's columns, in the order of the rows: targets (n, K) and weights (n,)."""
        loss = self.learner.loss
        add_block(self._asked, loss, source, y, loss_weights(loss, weights))

    @property
    def points(self) -> list[tuple[int, Asked]]:
        """The outputs that are not done, and what they ask about in this reading."""
        return [(k, point) for k, point, _ in self._asked]

    def take(self, sums: Sequence[Sums]) -> None:
        """Take the sums of all rows at ``points`` that were made elsewhere."""
        self._asked = [(k, point, found) for (k, point, _), found in zip(self._asked, sums, strict=True)]

    def end(self, learned: int) -> None:
        """After all rows of a reading: certify, and let the learner stand there, with so many rows learned.

        Raises ArithmeticError for an objective that is not finite.
        """
        for k, _, sums in self._asked:
            self.rounds[k].take(sums)
        self._asked = []
        if not np.isfinite(self.standing.objective):
            raise ArithmeticError("the objective of the online passes is not finite: name another solver, or a scale.")
        for state, (w, b, rounds, gap) in zip(self.learner.states, self._outputs(), strict=True):
            stand(state, w, b - self._share(w), gap, (rounds.rounds, self.before + rounds.rounds, learned))

    def _outputs(self) -> Iterator[tuple[np.ndarray, float, Rounds, Gap]]:
        """Of each output its weights and intercept, its rounds, and its gap; that of all is with the first."""
        if not self._joint:
            for rounds in self.rounds:
                yield rounds.w, float(rounds.b[0]), rounds, rounds.gap
            return
        (joint,) = self.rounds
        weights = joint.w.reshape(-1, len(joint.b))
        for k, b in enumerate(joint.b.tolist()):
            yield weights[:, k], b, joint, gap_of_output(joint.gap, k)

    def _share(self, w: np.ndarray) -> float:
        """What the means of centred columns add to the intercept: rounds read rows as they are, and the intercept is free."""
        scaler = self.learner.scaler
        return 0.0 if scaler is None else scaler.centre(w[scaler.centred])

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, np.ndarray]:
        """All that the rounds know, beside the learner."""
        return {f"{k}.{name}": array for k, rounds in enumerate(self.rounds) for name, array in rounds.state().items()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take what ``arrays`` gave. Raises ModelFileError for what no run gives."""
        own = arrays_of_each(arrays, ".")
        for k, rounds in enumerate(self.rounds):
            rounds.restore(own.get(str(k), {}))
