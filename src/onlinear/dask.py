"""Public: fits to a certified optimum, or in so many rounds, on a Dask cluster. The extra ``dask`` installs what it needs.

    from dask.distributed import Client
    from onlinear.dask import OnlineClassifier

    model = OnlineClassifier(penalty="l1=1e-4", tol=1e-3, client=Client("tcp://scheduler:8786"))
    model.fit("part-*.parquet", target="click")
    model.to_local().save("clicks.onlinear")

A shard is a file, or a block of rows of a Dask collection. The tasks are those of ``onlinear.shards``, and so is the tree by
which their sums are merged. All that a task needs is in Dask's graph, so it makes again what a lost worker held.
"""

from __future__ import annotations

import os
import platform
import warnings
from collections import deque
from collections.abc import Callable, Generator, Sequence
from importlib.metadata import version
from itertools import islice
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.exceptions import NotFittedError

from onlinear import __version__
from onlinear.models.base import Model
from onlinear.models.classifier import OnlineClassifier as LocalClassifier
from onlinear.models.evaluation import Result
from onlinear.models.path import PenaltyPath as LocalPath
from onlinear.models.regressor import OnlineRegressor as LocalRegressor
from onlinear.shards import Blocks, CorrectedRound, Round, Tree, evaluate, fit, open_shards, predict_to, refuse, rotate
from onlinear.text.extras import needed_by

with needed_by("onlinear.dask", "'onlinear[dask]'"):
    from dask import array as arrays
    from dask.delayed import Delayed
    from dask.delayed import delayed as as_delayed
    from distributed import Client, KilledWorker, get_client
    from distributed.client import FutureCancelledError
    from distributed.comm.addressing import resolve_address
    from distributed.protocol.pickle import dumps, loads

__all__ = ["OnDask", "OnlineClassifier", "OnlineRegressor", "PenaltyPath", "shards_of"]

ATTEMPTS = 3  # at a round
TOL = 1e-3  # where neither tol nor rounds are given
AHEAD = 2  # tasks for each thread of a worker that are begun before their results are taken
MUST_AGREE = ("numba", "numpy")  # besides this package and Python


class HeldRows(NamedTuple):
    """Rows that the cluster holds: futures of X, y and perhaps weights, or of several blocks of them."""

    name: str
    pieces: tuple[Any, ...]

    def open(self) -> Any:
        """Refused: they are opened where they are."""
        raise TypeError(f"{self.name} is on the cluster, and only its workers open it.")


class OnDask:
    """Runs tasks on the workers of a cluster: ``fit(model, shards, OnDask(client))``.

    Parameters
    ----------
    client : distributed.Client
        The connection to the cluster.

    Raises
    ------
    RuntimeError
        Where a worker has another version of onlinear, Numba, NumPy or Python than this process, or lacks one: their results
        would differ in the last digits, or their files in more.
    """

    def __init__(self, client: Client) -> None:
        self.client = client
        mine = _versions()
        try:
            found = client.run(_versions)
        except Exception as error:
            raise RuntimeError(f"a worker cannot import onlinear: {error}") from error
        for address, its in found.items():
            for name, own in mine.items():
                if its[name] != own:
                    raise RuntimeError(f"the worker {address} has {name} {its[name]}, this process {own}: they must agree.")

    def reduce(self, task: Callable[..., Any], shards: Sequence[Any], *asked: Any) -> Any:
        """The results of ``task(shard, *asked)``, merged by ``Tree``. Where workers died it is run again, twice at most."""
        left = ATTEMPTS
        while True:
            left -= 1
            try:
                return self._root(task, shards, asked).result()
            except (KilledWorker, FutureCancelledError) as error:
                if not left:
                    error.add_note(
                        f"{ATTEMPTS} attempts at {task.__name__!r} failed. Workers may lack memory: make smaller shards, or "
                        "give them more."
                    )
                    raise

    def map(self, task: Callable[..., Any], shards: Sequence[Any], *asked: Any) -> Generator[Any, None, None]:
        """The results of ``task(shard, *asked)`` in the order of the shards; few are begun before theirs is taken."""
        ahead, rest = AHEAD * max(1, sum(self.client.nthreads().values())), iter(shards)
        begun: deque[tuple[Any, Any]] = deque()
        told = self._told(task, asked)
        while True:
            begun.extend((shard, self._begin(told, shard)) for shard in islice(rest, ahead - len(begun)))
            if not begun:
                return
            yield begun.popleft()[1].result()

    def rotate(self, task: Callable[..., Any], shards: Sequence[Any], carried: Sequence[bytes], *asked: Any) -> list[bytes]:
        """Each of ``carried`` after all shards in their order: it becomes ``task(shard, it, *asked)``. What a dead worker had
        is made again from the graph."""
        told = self._told(task, asked)
        ends = []
        for it in carried:
            future = self.client.submit(bytes, it, pure=False)
            for shard in shards:
                future = self._begin(told, shard, future)
            ends.append(future)
        return list(self.client.gather(ends))

    def _told(self, task: Callable[..., Any], asked: tuple[Any, ...]) -> Any:
        """The future of a task and what it is asked, as workers hold it."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sending large graph")  # the weights, which a lost worker needs again
            return self.client.submit(bytes, dumps((task, asked)), pure=False)

    def _begin(self, told: Any, shard: Any, carried: Any = None) -> Any:
        """The future of a task's result; ``carried``: that of what the task is given beside the shard."""
        pieces = shard.pieces if isinstance(shard, HeldRows) else ()
        what = shard.name if isinstance(shard, HeldRows) else dumps(shard)
        return self.client.submit(_run, told, what, carried, *pieces, pure=False)

    def _root(self, task: Callable[..., Any], shards: Sequence[Any], asked: tuple[Any, ...]) -> Any:
        """The future of all results as one."""
        tree, told = Tree(), self._told(task, asked)
        for shard in shards:
            tree.add(_Result(self.client.submit, self._begin(told, shard)))
        return tree.result().future


def connected(address: str, seconds: float) -> Client:
    """A connection to a scheduler, which other code of the process does not take for its own. Raises OSError where none answers
    within so many seconds, and ValueError for what is no address, of which a client would wait for its own end."""
    resolve_address(address)
    return Client(address, timeout=seconds, set_as_default=False)


def _client_or_default(client: Client | None) -> Client:
    """The connection that was given, else that of the process."""
    if client is not None:
        return client
    try:
        return get_client()
    except ValueError:
        raise ValueError("there is no connection to a cluster: make one, distributed.Client(...), or give client=.") from None


class _Result:
    """A result that a worker will have, as ``Tree`` merges it."""

    def __init__(self, submit: Callable[..., Any], future: Any) -> None:
        self.submit, self.future = submit, future

    def merged(self, other: _Result) -> _Result:
        return _Result(self.submit, self.submit(_merge, self.future, other.future, pure=False))


def _run(told: bytes, what: str | bytes, carried: bytes | None, *pieces: Any) -> Any:
    """A task, on a worker: of a shard, or of rows that are there under a name."""
    task, asked = loads(told)
    more = () if carried is None else (carried,)
    return task(loads(what) if isinstance(what, bytes) else Blocks(what, _blocks(pieces)), *more, *asked)


def _blocks(pieces: tuple[Any, ...]) -> tuple[Any, ...]:
    """(X, y), (X, y, weight) or a list of them, as blocks."""
    if len(pieces) > 1:
        return (pieces,)
    (held,) = pieces
    return tuple(held) if isinstance(held, list) else (held,)


def _merge(first: Any, second: Any) -> Any:
    return first.merged(second)


def _versions() -> dict[str, str]:
    """What must be the same everywhere."""
    own = {"onlinear": __version__}  # which may be run from a folder, and not be installed
    return own | {name: version(name) for name in MUST_AGREE} | {"Python": ".".join(platform.python_version_tuple()[:2])}


def shards_of(client: Client, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> list[Any]:
    """Make shards: one for each file, or for each block of rows of a Dask collection.

    Blocks are computed once and stay in the memory of the workers while the shards are kept.

    Parameters
    ----------
    client : distributed.Client
        The connection to the cluster.
    X : str, path, sequence of them, dask array, data frame or bag, or sequence of delayed
        Files as ``onlinear.shards.open_shards`` takes them; an array of dense or CSR blocks; a bag of blocks (X, y) or
        (X, y, weight); delayed values, each such a block or a list of them.
    y : dask array or series, or str, optional
        The targets of an array or a frame, or the name of the frame's column.
    sample_weight : dask array or series, optional
        The weights of the rows of an array or a frame.
    **options
        For files: those of ``streams.open``.

    Returns
    -------
    list
        The shards, in the order of the rows.

    Raises
    ------
    ValueError, TypeError
        For blocks that do not go together, and for what is no collection.
    """
    if isinstance(X, (str, os.PathLike)) or (
        isinstance(X, (list, tuple)) and all(isinstance(x, (str, os.PathLike)) for x in X)
    ):
        if y is not None or sample_weight is not None:
            raise ValueError("the targets and weights of files are columns of them: give target= and weight=, not y.")
        return list[Any](open_shards(X, **options))
    if options:
        raise ValueError(f"{next(iter(options))}= is an option of files, and X is a {type(X).__name__}.")
    if isinstance(y, str):
        X, y = X.drop(columns=[y]), X[y]
    columns = [_delayed(X, "X")]
    columns += [_delayed(values, name) for values, name in ((y, "y"), (sample_weight, "sample_weight")) if values is not None]
    if len({len(column) for column in columns}) > 1:
        raise ValueError(
            f"X, y and sample_weight must have the same blocks, got {[len(column) for column in columns]} of them."
        )
    futures = client.compute([piece for column in columns for piece in column])
    n = len(columns[0])
    return [HeldRows(f"shard {k + 1} of {n}", tuple(futures[k::n])) for k in range(n)]


def _delayed(values: Any, name: str) -> list[Delayed]:
    """The blocks of rows of a collection."""
    if isinstance(values, arrays.Array) and values.ndim == 2 and values.numblocks[1] > 1:
        raise ValueError(f"{name} has {values.numblocks[1]} blocks of columns: rechunk it so that a block holds whole rows.")
    if hasattr(values, "to_delayed"):
        return list(np.ravel(np.asarray(values.to_delayed(), object)))
    if isinstance(values, (list, tuple)) and values and all(isinstance(value, Delayed) for value in values):
        return list(values)
    raise TypeError(f"{name} must be files, a dask collection or a list of delayed values, got {type(values).__name__}.")


class _OnCluster:
    """What the estimators share: settings of a local model, which becomes the fitted one."""

    local: type[Any]

    def __init__(
        self,
        loss: Any = None,
        *,
        tol: float | None = None,
        rounds: int | None = None,
        client: Client | None = None,
        **settings: Any,
    ) -> None:
        self.client, self.rounds = client, rounds
        tol = TOL if tol is None and rounds is None else tol
        self.settings = {"tol": tol, **settings} | ({} if loss is None else {"loss": loss})
        self.history_: list[Round | CorrectedRound] = []
        self._model: Model = self.local(**self.settings)

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        tell: Callable[[Any], None] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> Self:
        """Fit to all rows until the certified relative gap is at most ``tol``, or in so many ``rounds``.

        Parameters
        ----------
        X, y, sample_weight
            The rows, as ``shards_of`` takes them.
        tell : callable, optional
            Called after each round, with a ``Round`` or a ``CorrectedRound`` of ``onlinear.shards``.
        checkpoint : str or path, optional
            A file of this machine that is written after each round.
        resume : str or path, optional
            Such a file, from which the fit continues: on any cluster, or after one with ``onlinear.shards``.
        **options
            For files: those of ``streams.open``.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For settings that have no form in sums over rows, and for input that does not go together.
        StreamError
            For rows that cannot be read, by shard, file and line.
        RuntimeError
            For workers with other versions.
        """
        client = self._connected()
        runner, model = OnDask(client), self.local(**self.settings)
        history: list[Any] = []

        def note(found: Any) -> None:
            history.append(found)
            if tell is not None:
                tell(found)

        refuse(model, self.rounds)
        shards = shards_of(client, X, y, sample_weight, **options)
        self._model = fit(model, shards, runner, note, rounds=self.rounds, checkpoint=checkpoint, resume=resume)
        self.history_ = history
        return self

    def to_local(self) -> Any:
        """The fitted model, which needs no cluster: it predicts, explains and is saved as any other.

        Returns
        -------
        OnlineClassifier or OnlineRegressor
            That of ``onlinear``.

        Raises
        ------
        NotFittedError
            Before the first ``fit``.
        """
        self._model.fitted_learner()
        return self._model

    def predict(self, X: Any) -> Any:
        """Predict each row, lazily.

        Parameters
        ----------
        X : dask array or data frame
            The rows.

        Returns
        -------
        dask array of shape (n,)
            Classes or numbers.

        Raises
        ------
        NotFittedError
            Before the first ``fit``.
        """
        local = self.to_local()
        return _lazily(local.predict, X, getattr(local, "classes_", np.zeros(1)).dtype)

    def evaluate(self, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Result:
        """Compare predictions with targets, to the digits of ``onlinear evaluate``.

        Parameters
        ----------
        X, y, sample_weight, **options
            The rows, as ``shards_of`` takes them; of tables the model knows which columns are features.

        Returns
        -------
        Result
            Loss, measures, confusion, calibration.

        Raises
        ------
        NotFittedError
            Before the first ``fit``.
        StreamError
            For rows that cannot be read, have no target, or a label that is no class of the model.
        """
        client, local = self._connected(), self.to_local()
        return evaluate(local, self._shards(client, X, y, sample_weight, options), OnDask(client))

    def predict_to(self, X: Any, folder: str | os.PathLike[str], kind: str = "labels", **options: Any) -> list[str]:
        """Write the predictions of each shard to a Parquet file with its name.

        Parameters
        ----------
        X
            Files, as ``shards_of`` takes them.
        folder : str or path
            Where the files go. It must exist, and every worker must reach it under this name.
        kind : {"labels", "scores", "probabilities", "intervals"}, default="labels"
            What to predict.
        **options
            Those of ``streams.open``.

        Returns
        -------
        list of str
            The files, in the order of the shards. Each has its name when it is whole.

        Raises
        ------
        NotFittedError
            Before the first ``fit``.
        OSError, StreamError
            For files that cannot be written or read.
        """
        client, local = self._connected(), self.to_local()
        return predict_to(local, self._shards(client, X, None, None, options), OnDask(client), folder, kind)

    def _connected(self) -> Client:
        return _client_or_default(self.client)

    def _shards(self, client: Client, X: Any, y: Any, sample_weight: Any, options: dict[str, Any]) -> list[Any]:
        """The shards of rows, their columns numbered as the model's."""
        known = self.to_local().encoding_
        return shards_of(client, X, y, sample_weight, **({} if known is None else {"encoding": known}), **options)


def _lazily(predict: Callable[[Any], np.ndarray], X: Any, dtype: Any, columns: int | None = None) -> Any:
    """The predictions of the blocks of X, as an array with their rows."""
    more = () if columns is None else (columns,)
    blocks = [as_delayed(_predicted)(predict, block, more, dtype) for block in _delayed(X, "X")]
    lengths = X.chunks[0] if isinstance(X, arrays.Array) else (np.nan,) * len(blocks)
    parts = [arrays.from_delayed(block, (n, *more), dtype=dtype) for block, n in zip(blocks, lengths, strict=True)]
    return arrays.concatenate(parts, allow_unknown_chunksizes=True)


def _predicted(predict: Callable[[Any], np.ndarray], block: Any, more: tuple[int, ...], dtype: Any) -> np.ndarray:
    """The predictions of a block; none of one without rows, which a filter leaves and local models refuse."""
    return predict(block) if block.shape[0] else np.empty((0, *more), dtype)


class OnlineClassifier(_OnCluster):
    """``onlinear.OnlineClassifier`` on a Dask cluster, fitted to a certified optimum or in so many rounds.

    Parameters
    ----------
    loss : str, default=None
        A loss with a second derivative; None is ``"logistic"`` for two classes and ``"softmax"`` for more; with ``rounds``
        ``"logistic"``, one class against the rest.
    tol : float, optional
        The certified relative gap at which ``fit`` ends. Default: 1e-3 where no ``rounds`` are given.
    rounds : int, optional
        How many rounds are made instead, the online pass included, as ``onlinear.shards.fit`` takes them.
    client : distributed.Client, optional
        The connection to the cluster. Default: that of the process; there must be one.
    **settings
        Those of ``onlinear.OnlineClassifier``. With ``tol`` a ``penalty`` must be given.

    Attributes
    ----------
    history_ : list of Round or CorrectedRound
        Where the fit stood after each round.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> from onlinear.dask import OnlineClassifier
    >>> from sklearn.datasets import load_breast_cancer
    >>> import dask.array as da
    >>> X, y = (da.from_array(each, chunks=200) for each in load_breast_cancer(return_X_y=True))
    >>> with Client(processes=False, dashboard_address=None) as client:
    ...     model = OnlineClassifier(penalty="l1=1e-2", client=client).fit(X.rechunk({1: -1}), y)
    >>> model.to_local().converged_
    True
    """

    local = LocalClassifier

    def predict_proba(self, X: Any) -> Any:
        """Give the probability of each class, lazily.

        Parameters
        ----------
        X : dask array or data frame
            The rows.

        Returns
        -------
        dask array of shape (n, K)
            In the order of ``to_local().classes_``.

        Raises
        ------
        NotFittedError
            Before the first ``fit``.
        AttributeError
            For a loss without probabilities.
        """
        local = self.to_local()
        return _lazily(local.predict_proba, X, np.float64, len(local.classes_))


class OnlineRegressor(_OnCluster):
    """``onlinear.OnlineRegressor`` on a Dask cluster, fitted to a certified optimum or in so many rounds.

    Parameters
    ----------
    loss : str, default=None
        A loss with a second derivative; None is ``"squared"``.
    tol : float, optional
        The certified relative gap at which ``fit`` ends. Default: 1e-3 where no ``rounds`` are given.
    rounds : int, optional
        How many rounds are made instead, the online pass included, as ``onlinear.shards.fit`` takes them.
    client : distributed.Client, optional
        The connection to the cluster. Default: that of the process; there must be one.
    **settings
        Those of ``onlinear.OnlineRegressor``. With ``tol`` a ``penalty`` must be given.

    Attributes
    ----------
    history_ : list of Round or CorrectedRound
        Where the fit stood after each round.
    """

    local = LocalRegressor


class PenaltyPath:
    """``onlinear.PenaltyPath`` on a Dask cluster: groups of eight penalties go from shard to shard, and learn each row by row.

    The models have the bytes that one machine gives them, which reads the shards in their order: nothing is averaged.

    Parameters
    ----------
    estimator : onlinear.OnlineClassifier or onlinear.OnlineRegressor
        The settings of all models.
    penalties : list of str, float or penalty objects
        The K penalties.
    client : distributed.Client, optional
        The connection to the cluster. Default: that of the process; there must be one.

    Examples
    --------
    >>> from dask.distributed import Client
    >>> from onlinear import OnlineClassifier
    >>> from onlinear.dask import PenaltyPath
    >>> from sklearn.datasets import load_breast_cancer
    >>> import dask.array as da
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> with Client(processes=False, dashboard_address=None) as client:
    ...     path = PenaltyPath(OnlineClassifier(), ["l1=1e-4", "l1=1e-2"], client=client)
    ...     _ = path.fit(da.from_array(X, chunks=(200, -1)), da.from_array(y, chunks=200))
    >>> path.to_local().coefs_.shape
    (2, 30)
    """

    def __init__(self, estimator: Any, penalties: Any, *, client: Client | None = None) -> None:
        self.estimator, self.penalties, self.client = estimator, penalties, client
        self._path: LocalPath | None = None

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, **options: Any) -> Self:
        """Train every model on all rows once, in the order of the shards.

        Parameters
        ----------
        X, y, sample_weight, **options
            The rows, as ``shards_of`` takes them.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            For settings that ``partial_fit`` does not take, and for input that does not go together.
        StreamError
            For rows that cannot be read or learned, by shard, file and line.
        DivergenceError
            Where the state of a model stops being finite.
        RuntimeError
            For workers with other versions.
        """
        client = _client_or_default(self.client)
        path, runner = LocalPath(self.estimator, self.penalties), OnDask(client)
        path.in_groups(1)  # refuses what cannot be
        (self._path,) = rotate([path], shards_of(client, X, y, sample_weight, **options), runner)
        return self

    def to_local(self) -> LocalPath:
        """The trained path, which needs no cluster.

        Returns
        -------
        onlinear.PenaltyPath
            Its best model, losses and weights are those of all rows.

        Raises
        ------
        NotFittedError
            Before the first ``fit``.
        """
        if self._path is None:
            raise NotFittedError("this path has not been trained: call fit first.")
        return self._path
