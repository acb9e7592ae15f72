"""A run as a checkpoint holds it, and whether its parts go together."""

from __future__ import annotations

from typing import Any, NamedTuple

from onlinear.files import trust
from onlinear.files.model_file import arrays_below
from onlinear.learner import Learner
from onlinear.learner.classes import outputs_of
from onlinear.learner.stored_learner import Arrays, Header
from onlinear.streams import Stream
from onlinear.streams.labels import Labels
from onlinear.training.held_out import Best
from onlinear.training.trainable import Trainable


class RunState(NamedTuple):
    """All that a run knows beside its model: what fits JSON, and arrays."""

    run: Header
    arrays: Arrays

    def named(self, prefix: str) -> Arrays:
        """The arrays whose names begin with ``prefix``, without it."""
        return arrays_below(self.arrays, prefix)

    def labels(self, stream: Stream, classes: Any) -> Labels:
        """The labels of the stream, with the classes that the run knew."""
        labels, known = Labels(stream, classes), self.run["classes"]
        if known is not None:
            trust.must(isinstance(known[0], str) == (stream.labels is not None), "classes that are not of the source's labels")
            labels.know(known)
        return labels

    def best(self) -> Best | None:
        """The best model of the passes before."""
        if self.run["best"] is None:
            return None
        number, loss, header = self.run["best"]
        return Best(number, loss, header, self.named("best."))

    def check(self, model: Trainable, labels: Labels | None, passes: int, certified: bool) -> None:
        """Raise ModelFileError for parts that are not of one run: what is found at the end would cost the run."""
        learner, rows, number, best = model.learner_, self.run["rows"], self.run["pass"], self.best()
        trust.must(isinstance(learner, Learner), "a run of a model that learns no more")
        trust.must(rows == learner.t, f"a run of {rows} rows, of a model that has learned {learner.t}")
        outputs = 1 if labels is None else outputs_of(labels.count)
        trust.must(learner.n_outputs == outputs, f"{learner.n_outputs} outputs, where the run has {outputs}")
        trust.must(number < passes or (certified and number == passes), f"a place in pass {number + 1} of {passes}")
        if best is not None:
            kept = best.learner()
            trust.must(kept.n_outputs == outputs, f"a best model of {kept.n_outputs} outputs")
