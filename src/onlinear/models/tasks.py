"""scikit-learn's callbacks (its release 1.9 and later): what they are told of ``fit``, and their requests to end it.

The root task is ``fit``. The tasks within are its passes; of a fit of one pass the blocks of rows; with ``tol`` the readings of
all rows. A callback that asks to stop after one of them ends the fit there, and the model is that of the rows so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Self

import sklearn
from sklearn.utils.metaestimators import available_if

from onlinear.models.arguments import is_stream
from onlinear.training.tasks import NOBODY, Attributes, Tasks

CALLBACKS = "_skl_callbacks"  # the attribute in which scikit-learn keeps them


def is_supported() -> bool:
    """Whether this scikit-learn has callbacks."""
    return find_spec("sklearn.callback") is not None


def _check_support(estimator: Any) -> bool:
    if not is_supported():
        raise AttributeError(
            f"set_callbacks needs scikit-learn 1.9 or later, which has sklearn.callback; this is {sklearn.__version__}. The "
            "parameter callbacks= of the estimators takes functions with any release."
        )
    return True


class TakesCallbacks:
    """The method of estimators that takes scikit-learn's callbacks."""

    @available_if(_check_support)  # type: ignore[untyped-decorator]
    def set_callbacks(self, *callbacks: Any) -> Self:
        """Set scikit-learn's callbacks, such as ``ProgressBar`` and ``ScoringMonitor`` of ``sklearn.callback``.

        Parameters
        ----------
        *callbacks : callback instances
            Objects of scikit-learn's protocol ``FitCallback``. None at all removes those that were set.

        Returns
        -------
        estimator
            This estimator.

        Raises
        ------
        AttributeError
            Where scikit-learn is older than 1.9: the method is missing.
        TypeError
            For an object that lacks a method of the protocol.

        Notes
        -----
        ``fit`` tells them of each pass, of a single pass of each block of rows, and with ``tol`` of each reading of all rows
        (docs/models.md). A callback that asks to stop ends ``fit`` there. ``partial_fit`` tells them nothing. Clones share
        the callbacks, pickles have copies, model files have none.
        """
        from sklearn.callback import CallbackSupportMixin

        CallbackSupportMixin.set_callbacks(self, *callbacks)
        return self


class Told(Tasks):
    """Tells the callbacks of an estimator, whose ``copied_attributes`` make copies of it predict."""

    def __init__(self, estimator: Any, X: Any, y: Any, sample_weight: Any) -> None:
        self._estimator = estimator
        metadata = {} if sample_weight is None else {"sample_weight": sample_weight}
        self._rows = {"estimator": estimator, "X": X, "y": y, "metadata": metadata}
        self._kind: str | None = None
        self._root: Any = None
        self._task: Any = None
        self._fitted: Callable[[], Attributes | None] = estimator.copied_attributes

    def start(self, task: str | None, most: int | None, fitted: Callable[[], Attributes | None] | None = None) -> None:
        from sklearn.callback import CallbackSupportMixin

        self._kind, self._fitted = task, fitted or self._fitted
        self._root = CallbackSupportMixin._init_callback_context(self._estimator, max_subtasks=most)  # noqa: SLF001
        self._root.call_on_fit_task_begin(**self._rows)

    def begin(self, task: str) -> None:
        if task == self._kind:
            self._task = self._root.subcontext(task_name=task)
            self._task.call_on_fit_task_begin(**self._rows)

    def end(self, task: str) -> bool:
        if task != self._kind:
            return False
        asked = self._task.call_on_fit_task_end(**self._rows, reconstruction_attributes=self._fitted)
        self.stopped = self.stopped or asked
        return bool(asked)

    def finish(self) -> None:
        """Say that the fit has ended."""
        if self._root is not None:
            self._root.call_on_fit_task_end(**self._rows, reconstruction_attributes=self._estimator.copied_attributes)

    @contextmanager
    def around(self, task: str, other: Any) -> Iterator[None]:
        self._task = self._root.subcontext(task_name=task)
        with self._task.propagate_callback_context(other):
            self._task.call_on_fit_task_begin(**self._rows)
            yield
            self._task.call_on_fit_task_end(**self._rows)


@contextmanager
def fit_tasks(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Iterator[Tasks]:
    """The tasks of a fit to rows as they were given; the callbacks are torn down at its end, also after an error."""
    if not vars(estimator).get(CALLBACKS):
        yield NOBODY
        return
    from sklearn.callback import with_callbacks

    tasks = Told(estimator, None if is_stream(X, y) else X, None if isinstance(y, str) else y, sample_weight)
    try:
        yield tasks
        tasks.finish()
    finally:
        with_callbacks(lambda ended: None)(estimator)
