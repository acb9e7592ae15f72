"""One run: a method on a problem, one order of rows, measured at checkpoints. It depends on its specification alone."""

from __future__ import annotations

import time
import warnings
from collections.abc import Hashable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from onlinear import Learner
from onlinear.errors import DivergenceError
from onlinear.papers.data import SETS, Where
from onlinear.papers.data_spec import DataSpec
from onlinear.papers.experiments import ExperimentError
from onlinear.papers.leading import solver_of
from onlinear.papers.measures import MEASURES, Moment
from onlinear.papers.optimum import Optimum
from onlinear.papers.problems import FACTS, ByText, LearningProblem, optimum_facts, rows_of
from onlinear.papers.store import Store, digest

BLOCK = 1 << 16  # rows drawn at once
ENTRIES = 1 << 23  # entries copied at once


@dataclass(frozen=True)
class RunSpec:
    """Everything a run's numbers depend on, beside the code."""

    data: DataSpec
    data_seed: int
    solver: str
    loss: str
    penalty: str
    average: str | None
    scale: str
    intercept: bool
    order: str
    seed: tuple[int, ...]
    checkpoints: tuple[int, ...]
    measures: tuple[str, ...]
    seconds: float | None = None

    @property
    def shares(self) -> frozenset[Hashable]:
        """What other runs need too and the first of them makes: kernels, as far as they are known, and the optimum."""
        parts = (text.split(",")[0] for text in (self.solver, self.loss, self.penalty, self.average or ""))
        kernels = (self.data.name, self.intercept, self.scale, *parts)
        return frozenset({kernels, (self.data.name, self.data_seed, self.loss, self.penalty)})

    def key(self, where: Where) -> str:
        """The run's name in the store."""
        return digest({"run": asdict(self), "source": source_of(self.data, where)})


@dataclass(frozen=True)
class FactSpec:
    """Facts of a data set."""

    data: DataSpec
    data_seed: int
    facts: tuple[str, ...]

    shares: ClassVar[frozenset[Hashable]] = frozenset()

    def key(self, where: Where) -> str:
        """The facts' name in the store."""
        return digest({"facts": asdict(self), "source": source_of(self.data, where)})


@dataclass(frozen=True)
class MapSpec:
    """A map of the test rows on a plane by t-SNE."""

    data: DataSpec
    data_seed: int
    rows: int | None = None

    shares: ClassVar[frozenset[Hashable]] = frozenset()

    def key(self, where: Where) -> str:
        """The map's name in the store."""
        return digest({"map": asdict(self), "source": source_of(self.data, where)})


Task = RunSpec | FactSpec | MapSpec


def source_of(spec: DataSpec, where: Where) -> Any:
    """A mark that differs between copies of a real set: the sizes of its files, or that it was fetched."""
    if spec.set is None:
        return None
    real = SETS[spec.set]
    found = [path for folder in [where.folder] if folder for path in sorted(Path(folder, real.train).parent.glob("*"))]
    return [[path.name, path.stat().st_size] for path in found] or "fetched"


def perform(task: Task, where: Where, folder: str) -> dict[str, Any]:
    """Do a piece of work on one core; the same in every process."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        started = time.perf_counter()
        if isinstance(task, FactSpec):
            split = rows_of(task.data, where, task.data_seed)
            found: dict[str, Any] = {"facts": {name: FACTS[name](split) for name in task.facts}}
        elif isinstance(task, MapSpec):
            found = {"map": embedding(task, where)}
        else:
            try:
                found = run(task, where, Store(folder))
            except ValueError as error:
                parts = f"{task.solver!r}, {task.loss!r}, {task.penalty!r} on {task.data.name!r}"
                raise ValueError(f"{parts}: {error}") from error
        return found | {"wall": time.perf_counter() - started}


# --- the problem -----------------------------------------------------------------------------------------------------


@lru_cache(maxsize=6)
def problem_of(data: ByText, where: Where, seed: int, loss: str, penalty: str, folder: str) -> LearningProblem:
    """The problem of a run, its optimum read from the store or put there."""
    problem = LearningProblem(rows_of(data.spec, where, seed), loss, penalty)
    name = digest({"optimum": [repr(data.spec), seed, loss, penalty], "source": source_of(data.spec, where)})
    store = Store(folder)

    kept = store.arrays(name)
    if kept is not None:
        problem.known = Optimum(kept["w"], float(kept["value"]), float(kept["gap"]), kept["mu"])
    else:
        problem.keep = lambda best: store.put_arrays(name, {key: np.asarray(value) for key, value in best._asdict().items()})
    return problem


# --- one run ---------------------------------------------------------------------------------------------------------


def order_of(kind: str, n: int, seed: tuple[int, ...]) -> Iterator[np.ndarray]:
    """Row numbers without end, in blocks; the same for every method with the same seed."""
    rng = np.random.default_rng(seed)
    while True:
        if kind == "replacement":
            yield rng.integers(0, n, size=BLOCK)
        else:
            yield rng.permutation(n) if kind == "permutation" else np.arange(n)


def checkpoints_of(wanted: Any, steps: int) -> tuple[int, ...]:
    """'log 40', 'linear 50', 'powers of 2', 'every 10', or a list: step numbers up to ``steps``, the last one included."""
    if isinstance(wanted, (list, tuple)):
        found = [int(t) for t in wanted]
    else:
        match str(wanted).split():
            case ["log", count]:
                found = np.unique(np.rint(np.geomspace(1, steps, int(count))).astype(int)).tolist()
            case ["linear", count]:
                found = np.unique(np.rint(np.linspace(0, steps, int(count) + 1)[1:]).astype(int)).tolist()
            case ["powers", "of", base]:
                found = [int(base) ** k for k in range(64) if int(base) ** k <= steps]
            case ["every", count]:
                found = list(range(int(count), steps + 1, int(count)))
            case _:
                raise ExperimentError(
                    f"checkpoints must be a list, 'log 40', 'linear 50', 'powers of 2' or 'every 10', got {wanted!r}."
                )
    return tuple(sorted({t for t in found if 0 < t <= steps} | {steps}))


def new_learner(spec: RunSpec, problem: LearningProblem) -> Learner:
    """The run's learner before its first row."""
    return Learner(
        solver_of(spec.solver),
        problem.loss,
        problem.penalty,
        spec.average,
        scale=spec.scale,
        fit_intercept=spec.intercept,
        n_features=problem.split.X.shape[1],
        n_outputs=problem.n_outputs,
        total=spec.checkpoints[-1],
    )


def run(spec: RunSpec, where: Where, store: Store) -> dict[str, Any]:
    """Learn and measure. CPU time is that of learning alone."""
    problem = problem_of(ByText(spec.data), where, spec.data_seed, spec.loss, spec.penalty, str(store.folder))
    problem.asked = False
    # a step that is too large is a result, not an accident
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        warnings.filterwarnings("ignore", message=".* without an intercept and without a constant column")
        learner = new_learner(spec, problem)
        batch = learner.engine.batch
        warm_up(spec, problem, batch)
        measured = Measured(spec, problem, learner, problem.split.X.shape[0] if batch else 1)
        feed = Feed(spec, problem, learner, measured, batch)
        for t in spec.checkpoints:
            reached = feed.reach(t)
            if reached or feed.out_of_time:
                feed.measure(measured)
            if not reached or feed.diverged:
                break
    found = measured.result(feed)
    if problem.asked:
        found["facts"] = optimum_facts(problem)
    return found


def warm_up(spec: RunSpec, problem: LearningProblem, batch: bool) -> None:
    """Compile outside the measured time."""
    if not batch:
        learner = new_learner(spec, problem)
        with suppress(DivergenceError):  # the run itself will say so
            learner.learn(problem.split.X[:2], problem.y[:2])
            learner.weights(average=True)


class Feed:
    """Gives a learner its rows, in chunks that end where something is measured."""

    def __init__(self, spec: RunSpec, problem: LearningProblem, learner: Learner, measured: Measured, batch: bool) -> None:
        self.spec, self.problem, self.learner, self.batch = spec, problem, learner, batch
        X = problem.split.X
        self.order = order_of(spec.order, X.shape[0], spec.seed)
        self.waiting = np.zeros(0, np.int64)
        self.cpu, self.diverged = 0.0, ""
        self.out_of_time = False
        told = measured.trackers.values()
        self.trackers = [tracker for tracker in told if tracker.by_row]
        self.of_pieces = [tracker for tracker in told if not tracker.by_row]
        width = X.nnz / X.shape[0] if sp.issparse(X) else X.shape[1]
        self.largest = 1 if self.trackers else max(1, int(ENTRIES / max(width, 1)))
        self.chunk = 1 if spec.seconds is not None else self.largest

    def reach(self, t: int) -> bool:
        """Learn up to t rows; False where the run ended before."""
        while self.learner.t < t:
            count = min(t - self.learner.t, self.chunk)
            try:
                self.learn(count)
            except DivergenceError as error:
                self.diverged = str(error)
                return False
            if self.spec.seconds is not None:
                if self.cpu > self.spec.seconds:
                    self.out_of_time = True
                    return False
                pace = self.cpu / self.learner.t
                self.chunk = max(1, min(self.largest, int(0.01 * self.spec.seconds / max(pace, 1e-9))))
        return True

    def measure(self, measured: Measured) -> None:
        """Measure where the run stands; a state that turns out to be infinite has diverged."""
        try:
            measured.take(self.learner.t, self.cpu)
        except DivergenceError as error:
            self.diverged = str(error)

    def learn(self, count: int) -> None:
        """Learn the next rows."""
        X, y = self.problem.split.X, self.problem.y
        if self.batch:
            started = time.process_time()
            self.learner.solve(X, y, count)
            self.cpu += time.process_time() - started
            for tracker in self.trackers:
                tracker.iterated()
            return
        while len(self.waiting) < count:
            self.waiting = np.concatenate([self.waiting, next(self.order)])
        which, self.waiting = self.waiting[:count], self.waiting[count:]
        rows, targets = X[which], y[which]
        if self.trackers:
            x = rows.toarray()[0] if sp.issparse(rows) else rows[0]
            for tracker in self.trackers:
                tracker.before(x, float(targets[0]))
        started = time.process_time()
        self.learner.learn(rows, targets)
        self.cpu += time.process_time() - started
        for tracker in self.trackers:
            tracker.after(x, float(targets[0]))
        for tracker in self.of_pieces:
            tracker.learned(rows, targets)


class Measured:
    """The measures of a run so far."""

    def __init__(self, spec: RunSpec, problem: LearningProblem, learner: Learner, rows_per_step: int) -> None:
        self.spec, self.problem, self.learner, self.rows_per_step = spec, problem, learner, rows_per_step
        used = {MEASURES[name].tracker for name in spec.measures} - {None}
        self.trackers: dict[Any, Any] = {tracker: tracker(learner, problem) for tracker in used if tracker is not None}
        self.t: list[int] = []
        self.series: dict[str, list[float]] = {name: [] for name in ("samples", "time", *spec.measures)}
        self.arrays: dict[str, dict[str, str]] = {}

    def take(self, t: int, cpu: float) -> None:
        """Measure now. Raises DivergenceError, and keeps nothing, where the state is found to be infinite as it is read."""
        moment = Moment(self.learner, self.problem, self.trackers)
        with np.errstate(all="ignore"):  # a run that will diverge may overflow first
            found = {name: MEASURES[name].take(moment) for name in self.spec.measures}
        self.t.append(t)
        self.series["samples"].append(float(t * self.rows_per_step))
        self.series["time"].append(cpu)
        for name, value in found.items():
            if isinstance(value, np.ndarray):
                self.arrays.setdefault(name, {})[str(t)] = "".join(map(str, value.tolist()))
            else:
                self.series[name].append(float(value))

    def result(self, feed: Feed) -> dict[str, Any]:
        """The measured values. A run that diverged is infinite at the checkpoints it did not reach."""
        if feed.diverged:
            for t in self.spec.checkpoints[len(self.t) :]:
                self.t.append(t)
                for name, values in self.series.items():
                    values.append({"samples": float(t), "time": feed.cpu}.get(name, float("inf")))
        if "wrong now" in self.arrays:
            self.series["wrong beyond the end"] = beyond_the_end(self.arrays["wrong now"])
        series = {name: values for name, values in self.series.items() if values}
        return {
            "t": self.t,
            "series": series,
            "arrays": self.arrays,
            "diverged": feed.diverged,
            "out_of_time": feed.out_of_time,
            "cpu": feed.cpu,
            "facts": {},
        }


def beyond_the_end(wrong: dict[str, str]) -> list[float]:
    """How many test rows are wrong at each checkpoint and right at the last."""
    rows = [np.array(list(text)) == "1" for text in wrong.values()]
    return [float(np.sum(now & ~rows[-1])) for now in rows]


def embedding(task: MapSpec, where: Where) -> list[list[float]]:
    """t-SNE of the test rows (the first ``rows``), after principal components to 50, by scikit-learn."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    split = rows_of(task.data, where, task.data_seed)
    X = split.X_test[: task.rows] if task.rows else split.X_test
    X = X.toarray() if sp.issparse(X) else np.asarray(X)
    few = PCA(min(50, *X.shape), random_state=0).fit_transform(X)
    places = TSNE(2, init="pca", perplexity=min(30.0, (len(few) - 1) / 3), random_state=0).fit_transform(few)
    return [[float(round(v, 3)) for v in place] for place in places]
