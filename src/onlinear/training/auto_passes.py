"""``passes="auto"`` of a run over a stream: its rows are read once more before it, where they are few."""

from __future__ import annotations

from collections.abc import Callable

from onlinear.learner.uncertainty import refuse_more_passes
from onlinear.streams import Shuffled, Stream
from onlinear.training.few_rows import ENOUGH, choose_passes, most_passes
from onlinear.training.options import Options
from onlinear.training.trainable import Trainable
from onlinear.training.training import Training


def with_passes(stream: Stream, options: Options, make: Callable[[str], Trainable], shuffled: Shuffled | None) -> Options:
    """The options of a run with the passes and the slope that its rows are worth: one pass where they are many, or cannot be
    read twice. A run that ends at a certified gap keeps its passes.

    ``make`` gives models that begin anew. The generator of a shuffle stands where it stood.
    """
    if options.most is not None:
        return options
    options = options._replace(passes=1)
    if not stream.rereadable or (stream.rows is not None and stream.rows >= ENOUGH):
        return options
    state = None if shuffled is None else shuffled.state()
    probe = Training(stream, options, make, shuffled=shuffled)
    rows = probe.few_rows()
    if shuffled is not None and state is not None:
        shuffled.restore(state)
    if rows is None:
        return options
    refuse_more_passes(probe.learner, most_passes(rows.n), "auto")
    chosen = choose_passes(probe.learner, rows, shuffled is not None)
    return options._replace(passes=chosen.passes, auto=True, slope=chosen.slope)
