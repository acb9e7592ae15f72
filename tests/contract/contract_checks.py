"""What the contract says of one combination on one stream of rows, as functions that fail, or say what they discard."""

from __future__ import annotations

import itertools
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp
from combinations import FEATURES, Case, own_solver, reference, without_batches
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from onlinear import DivergenceError, Learner, load, rows
from onlinear.learner.parts import build_loss, build_penalty
from onlinear.rows.scaling import Scaler
from onlinear.solvers.adagrad import LazyAdagradComid, LazyAdagradRda
from onlinear.solvers.core.state import ONE, OWN, VISIT, T, everything
from onlinear.solvers.csgd import MASS, Y
from onlinear.solvers.ftrl import LazyFtrl
from onlinear.solvers.implicit_ftrl import LazyImplicitFtrl
from onlinear.solvers.mixture import LazyMixture

AVERAGES = ("average", "wbar", "xbar", "zbar")
TOLERANCE = 1e-10  # of the largest absolute value of a vector
UNSTABLE = 1e-11  # a run that moves by more under a perturbation of its data by 1e-14 has no stable recursion
NEAR_KINK, NEAR_THRESHOLD = 1e-9, 1e-12


class Stream(NamedTuple):
    """Rows for a learner, and how they are cut into calls."""

    X: sp.csr_matrix
    y: np.ndarray
    s: np.ndarray
    cuts: tuple[int, ...]
    strength: float
    start: np.ndarray | None

    def pieces(self) -> Iterator[slice]:
        ends = [0, *sorted(min(cut, len(self.y)) for cut in self.cuts), len(self.y)]
        return (slice(a, b) for a, b in itertools.pairwise(ends))


class Shape(NamedTuple):
    """What hypothesis draws; ``stream`` makes the rows that suit a loss."""

    seed: int
    n: int
    density: float
    kind: str
    weighted: bool
    warm: bool
    cuts: tuple[int, ...]
    strength: float

    def stream(self, case: Case) -> Stream:
        rng = np.random.default_rng(self.seed)
        values = self._values(rng)
        values[rng.random(values.shape) >= self.density] = 0.0
        if self.kind == "repeats":
            values = values[rng.integers(0, max(1, self.n // 4), self.n)]
        if rng.random() < 0.5:
            values[:, rng.integers(FEATURES)] = 0.0  # a feature that is never seen
        stored = (values != 0.0) | (rng.random(values.shape) < 0.1)  # some zeros are stored
        rows, columns = np.nonzero(stored)
        X = sp.csr_matrix((values[rows, columns], (rows, columns)), shape=values.shape)
        weights = rng.choice([0.0, 1.0], self.n, p=[0.3, 0.7]) if self.weighted else np.ones(self.n)
        if self.weighted and takes_weights(case):
            weights *= rng.choice([0.25, 1.0, 2.5], self.n)
        start = feasible_start(rng, case) if self.warm and takes_start(case) else None
        return Stream(X, self._targets(rng, case, values), weights, self.cuts, self.strength, start)

    def _values(self, rng: np.random.Generator) -> np.ndarray:
        shape = (self.n, FEATURES)
        if self.kind == "kinks":
            return rng.choice([-1.0, -0.5, 0.5, 1.0], shape)
        if self.kind == "scales":
            return rng.normal(size=shape) * 10.0 ** rng.uniform(-3.0, 1.0, (self.n, 1))
        return 0.7 * rng.normal(size=shape)

    def _targets(self, rng: np.random.Generator, case: Case, X: np.ndarray) -> np.ndarray:
        labels = getattr(build_loss(case.loss), "labels", "real")
        if labels == "signs":
            return rng.choice([-1.0, 1.0], self.n)
        if labels == "counts":
            return rng.poisson(1.0, self.n).astype(float)
        return (
            rng.integers(-1, 2, self.n).astype(float)
            if self.kind == "kinks"
            else X @ np.arange(FEATURES) + rng.normal(size=self.n)
        )


def shapes(wild: bool = False, rows: int = 75) -> st.SearchStrategy[Shape]:
    """Streams; wild ones may have steps of any size. The first has so many rows: where few are drawn, it is a rich one."""
    strengths = [1.0, 1e-8, 1e-3, 1e3, 1e8] if wild else [0.3, 0.1, 1.0, 1e-3, 10.0]
    return st.builds(
        Shape,
        seed=st.integers(0, 2**32 - 1),
        n=st.sampled_from([rows, 75, 30, 140, 9, 2, 1]),
        density=st.sampled_from([0.7, 0.3, 0.3, 1.0, 0.0]),
        kind=st.sampled_from(["normal", "normal", "kinks", "repeats", "scales"]),
        weighted=st.sampled_from([True, False]),  # rows without weights are learned one by one, too
        warm=st.booleans(),
        cuts=st.lists(st.integers(0, 140), max_size=3).map(lambda cuts: (rows // 2, *cuts)),
        strength=st.sampled_from(strengths),
    )


def takes_weights(case: Case) -> bool:
    """Whether the method is defined for sample weights other than 0 and 1."""
    try:
        case.learner().engine.check_rows(np.array([0.25, 2.5]))
    except ValueError:
        return False
    return True


def masked_by_rounding(got: np.ndarray, want: np.ndarray, size: float, learner: Learner) -> np.ndarray:
    """Where only one of two last iterates is 0, by rounding, so that only one of two masked averages is."""
    if not learner.engine.masked:
        return np.zeros(len(got), bool)
    return ((got == 0.0) != (want == 0.0)) & (np.maximum(np.abs(got), np.abs(want)) <= NEAR_THRESHOLD * size)


def takes_start(case: Case) -> bool:
    """Whether the method can begin at given weights."""
    try:
        case.learner(start=np.full(FEATURES, 0.01))
    except ValueError:
        return False
    return True


def feasible_start(rng: np.random.Generator, case: Case) -> np.ndarray:
    penalty = build_penalty(case.penalty)
    start = rng.normal(size=FEATURES) * (rng.random(FEATURES) < 0.7)
    return np.clip(start, getattr(penalty, "lower", -np.inf), getattr(penalty, "upper", np.inf))


def learner_for(case: Case, stream: Stream) -> Learner:
    return case.learner(stream.strength, start=stream.start)


@contextmanager
def quiet() -> Iterator[None]:
    """Interpreted arithmetic warns of overflow; CSGD without an intercept warns that its constraint is biased."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*without a constant column.*")
        yield


def learn(learner: Learner, stream: Stream, which: slice = slice(None)) -> Learner:
    with quiet():
        return learner.learn(stream.X[which], stream.y[which], stream.s[which])


def vectors(learner: Learner) -> dict[str, np.ndarray]:
    """All that can be read of a learner, each as one vector (an intercept is the first place)."""
    found = {}
    for average in (False, True) if learner.average is not None else (False,):
        weights, bias = learner.weights(average=average), learner.intercept(average=average)
        found["average" if average else "last"] = np.concatenate([[bias], weights])
    found |= {letter: np.array(value) for letter, value in learner.variables().items() if np.ndim(value) == 1}
    return found


def frozen(learner: Learner) -> tuple[Any, dict[str, bytes]]:
    """Everything that a model file would hold."""
    header, arrays = learner.freeze()
    return header, {name: array.shape.__repr__().encode() + array.tobytes() for name, array in arrays.items()}


# --- lazy = dense -----------------------------------------------------------------------------------------------------


def size_of(before: np.ndarray, after: np.ndarray, learner: Learner) -> float:
    """What an error is measured by (contract 2)."""
    state = learner.states[0]
    since = range(int(state.now[VISIT]) + 1, state.t + 1)
    l1 = float(getattr(learner.penalty, "l1", 0.0))
    swept = l1 * sum(learner.engine.eta(t) for t in since) if l1 > 0.0 else 0.0
    return max(np.abs(before).max(initial=0.0), np.abs(after).max(initial=0.0), swept)


def differences(
    got: dict[str, np.ndarray], want: dict[str, np.ndarray], before: dict[str, np.ndarray], learner: Learner
) -> tuple[list[str], bool]:
    """What differs in value or zero pattern, and whether only values at a threshold do."""
    found, at_threshold = [], True
    of_mask = masked_by_rounding(got["last"], want["last"], size_of(before["last"], want["last"], learner), learner)
    for letter in got.keys() & want.keys():
        a, b = got[letter], want[letter]
        if a.shape != b.shape:
            continue
        size = size_of(before[letter], b, learner)
        follows = of_mask[-len(a) :] if letter in AVERAGES else np.zeros(len(a), bool)
        far = ~((np.abs(a - b) <= TOLERANCE * size) | follows)
        pattern = ((a == 0.0) != (b == 0.0)) & ~follows
        if far.any() or pattern.any():
            found.append(f"{letter}: {a} against {b}, size {size:.3g}")
            largest = np.maximum(np.abs(a), np.abs(b))[pattern]
            at_threshold = at_threshold and not far.any() and bool(np.all(largest <= NEAR_THRESHOLD * size))
    return found, at_threshold


def near_kink(case: Case, stream: Stream, dense: Learner) -> bool:
    """Whether a row's margin, at any vector of the recursion, is within 1e-9 of a kink of the loss."""
    loss = dense.loss
    X = scaled_rows(case, stream)
    for i in range(len(stream.y)):
        row = np.concatenate([[float(case.intercept)], X[i]])
        state = dense.states[0]
        with quiet():
            for vector in (*state.arrays["U"], getattr(dense.engine, "inner", dense.engine).predictor(state)):
                p = float(vector @ row)
                h = NEAR_KINK * max(1.0, abs(p))
                if abs(loss.slope(p + h, stream.y[i]) - loss.slope(p - h, stream.y[i])) > 0.1:
                    return True
        learn(dense, stream, slice(i, i + 1))
    return False


def scaled_rows(case: Case, stream: Stream) -> np.ndarray:
    """The rows in the running scales of their columns, each as the step finds it."""
    if case.scale == "none":
        return stream.X.toarray()
    source = rows.read(stream.X)
    starts, columns, values = source.stored().data
    values = Scaler(case.scale, source.width).learn(rows.Rows(starts, columns, values), stream.s)[0].values
    return sp.csr_matrix((values, columns.astype(np.int64), starts.astype(np.int64)), shape=stream.X.shape).toarray()


def is_unstable(case: Case, stream: Stream) -> bool:
    """Whether the dense recursion moves by more than rounding when its data does (contract 2)."""

    def run(X: sp.csr_matrix, y: np.ndarray) -> list[dict[str, np.ndarray]]:
        dense = reference(learner_for(case, stream), stream.start)
        found = [vectors(dense)]
        for piece in stream.pieces():
            learn(dense, stream._replace(X=X, y=y), piece)
            found.append(vectors(dense))
        return found

    try:
        if near_kink(case, stream, reference(learner_for(case, stream), stream.start)):
            return True
        plain = run(stream.X, stream.y)
        for seed in range(4):
            rng = np.random.default_rng(seed)
            X = stream.X.copy()
            X.data *= 1.0 + 1e-14 * rng.choice([-1.0, 1.0], X.nnz)
            labels = getattr(build_loss(case.loss), "labels", "real")
            y = stream.y * (1.0 + 1e-14 * rng.choice([-1.0, 1.0], len(stream.y))) if labels == "real" else stream.y
            for a, b, start in zip(plain[1:], run(X, y)[1:], plain, strict=False):
                for letter in a:
                    size = max(np.abs(start[letter]).max(initial=0.0), np.abs(a[letter]).max(initial=0.0))
                    if not np.all(np.abs(a[letter] - b[letter]) <= UNSTABLE * size):
                        return True
    except DivergenceError:
        return True
    return False


def lazy_run_is_the_recursion(case: Case, shape: Shape, tally: Counter[str]) -> None:
    """Contract 2b, with stops at random and reads at every stop, which change nothing (bit for bit)."""
    stream = shape.stream(case)
    tally["examples"] += 1
    lazy, dense = learner_for(case, stream), reference(learner_for(case, stream), stream.start)
    before = vectors(lazy)
    try:
        for piece in stream.pieces():
            learn(lazy, stream, piece)
            learn(dense, stream, piece)
            got, want = vectors(lazy), vectors(dense)
            found, at_threshold = differences(got, want, before, lazy)
            if found and (at_threshold or is_unstable(case, stream)):
                tally["discarded"] += 1
                return
            assert not found, f"{case} after {lazy.t} rows: {'; '.join(found)}"
            with quiet():
                lazy.predict(stream.X)
            before = want
    except DivergenceError:
        assert is_unstable(case, stream), f"{case} diverges where its recursion is stable"
        tally["diverged"] += 1
        return
    unread = learn(learner_for(case, stream), stream)
    assert frozen(lazy) == frozen(unread), f"{case}: reading or cutting the stream changes the model"


def settled(learner: Learner, letters: tuple[str, ...]) -> np.ndarray:
    """The rows of the dense recursion's U as a lazy learner's settled state gives them."""
    return np.stack([settled_letter(learner, letter) for letter in letters])


def settled_letter(learner: Learner, letter: str) -> np.ndarray:
    """One row of U: the intercept's place, then the features'."""
    state, engine = learner.states[0], learner.engine
    known = learner.variables()
    nothing = np.zeros(learner.size)
    of_intercept = intercepts(learner)
    if letter in of_intercept:
        return np.concatenate([[of_intercept[letter]], known.get(letter, nothing)])
    first, rest = {
        "G": lambda: (state.now[OWN], known["G"]),
        "mu": lambda: (0.0, known["mu"]),
        "theta": lambda: (known["theta"], nothing),
        "total": lambda: (engine.sum_bias(state), engine.sums(state, everything(state))),
        "wbar": lambda: (engine.mean_bias(state), known["wbar"]),
        "S": lambda: (state.now[MASS] * state.now[ONE], state.arrays["pS"][1::2]),
        "Y": lambda: (state.now[Y], nothing),
    }.get(letter, lambda: (learner.intercept(), known[letter]))()
    return np.concatenate([[first], rest])


def intercepts(learner: Learner) -> dict[str, float]:
    """The intercept's numbers in a state of several for each feature."""
    own, b, solver = learner.states[0].now[OWN:], learner.intercept(), without_batches(own_solver(learner))
    engine = getattr(learner.engine, "inner", learner.engine)  # of a batch, the one that makes its step
    if isinstance(engine, LazyFtrl):
        return {"n": own[0], "z": -(solver.beta + np.sqrt(own[0])) / solver.eta * b}
    if isinstance(engine, LazyAdagradRda):
        return {"n": own[0], "z": -solver.sigma_of(own[0]) * b}
    if isinstance(engine, LazyAdagradComid):
        return {"n": own[0]}
    if isinstance(engine, LazyImplicitFtrl):
        return {"G": own[0], "sigma": own[1], "N": own[2], "z": -own[1] * b}
    if isinstance(engine, LazyMixture):
        table = learner.states[0].kept["table"]
        return dict.fromkeys(solver.letters[1:], 0.0) | {f"table{place}": number for place, number in enumerate(table)}
    return {}


def one_step_is_the_recursion(case: Case, shape: Shape, tally: Counter[str]) -> None:
    """Contract 2a: a step of any size from a settled state (of rows as they are: scales are state of their own)."""
    case = case._replace(scale="none")
    stream = shape.stream(case)
    tally["examples"] += 1
    lazy = learner_for(case, stream)
    dense, twin = (reference(learner_for(case, stream), stream.start) for _ in range(2))
    rows_of_a_step = lazy.states[0].batch
    end = len(stream.y) // rows_of_a_step * rows_of_a_step
    step = slice(max(0, end - rows_of_a_step), end)
    try:
        learn(lazy, stream, slice(0, step.start))
        before = vectors(lazy)
    except DivergenceError:
        tally["diverged"] += 1
        return
    for learner in (dense, twin):
        learner.states[0].arrays["U"][:] = settled(lazy, without_batches(own_solver(lazy)).letters)
        learner.states[0].now[T] = lazy.states[0].t
    try:
        learn(dense, stream, step)
    except DivergenceError:
        tally["diverged"] += 1
        return
    want = vectors(dense)
    try:
        learn(lazy, stream, step)
        got = vectors(lazy)
    except DivergenceError:
        assert sums_overflow(want["last"], lazy), f"{case} diverges at step {lazy.t}, and its recursion does not"
        tally["diverged"] += 1
        return
    for averaged in {"average", "wbar", "xbar", "zbar", "mutbar"} & got.keys():
        del got[averaged]
    found, at_threshold = differences(got, want, before, lazy)
    last = stream._replace(X=stream.X[step], y=stream.y[step], s=stream.s[step])
    if found and (at_threshold or near_kink(case, last, twin)):
        tally["discarded"] += 1
        return
    assert not found, f"{case} at step {lazy.t}: {'; '.join(found)}"


def sums_overflow(w: np.ndarray, learner: Learner) -> bool:
    """Whether an average's sums of weights as large as these are not finite: its steps weigh up to t, so up to t^2 times w."""
    with np.errstate(over="ignore"):
        return learner.average is not None and not np.all(np.isfinite(float(learner.t) ** 2 * w))


# --- bits -------------------------------------------------------------------------------------------------------------


def layouts(X: sp.csr_matrix) -> Iterator[tuple[str, Any]]:
    """The same rows in other containers."""
    yield "dense", X.toarray()
    yield "dense in Fortran order", np.asfortranarray(X.toarray())
    yield "CSC", X.tocsc()
    pruned = X.copy()
    pruned.eliminate_zeros()
    yield "without stored zeros", pruned
    backwards = X.copy()
    for a, b in zip(X.indptr, X.indptr[1:], strict=False):
        backwards.indices[a:b] = X.indices[a:b][::-1]
        backwards.data[a:b] = X.data[a:b][::-1]
    yield "unsorted", sp.csr_matrix((backwards.data, backwards.indices.astype(np.int64), backwards.indptr), shape=X.shape)


def same_bits(
    case: Case, shape: Shape, tally: Counter[str], folder: Path | None, single: bool = True, turn: int | None = None
) -> None:
    """Contract 3, 4, 5: any cut, layout, width (``single``: and precision) and resumption (``folder``: through files) gives the
    same bits. ``turn``: of the layouts one, whose turn it is."""
    stream = shape.stream(case)
    tally["examples"] += 1
    try:
        whole = frozen(learn(learner_for(case, stream), stream))
    except DivergenceError:
        tally["diverged"] += 1
        return
    n = len(stream.y)

    cut = learner_for(case, stream)
    for piece in stream.pieces():
        learn(cut, stream, piece)
    learn(cut, stream, slice(0, 0))
    assert frozen(cut) == whole, f"{case}: another model when the stream is cut at {stream.cuts}"

    found = list(layouts(stream.X))
    for name, X in found if turn is None else [found[turn % len(found)]]:
        other = learn(learner_for(case, stream), stream._replace(X=X))
        assert frozen(other) == whole, f"{case}: another model from rows that are {name}"

    if not shape.weighted:
        single = learner_for(case, stream)
        for i in range(n):
            begin, end = stream.X.indptr[i : i + 2]
            with quiet():
                score = single.learn_one(stream.X.indices[begin:end], stream.X.data[begin:end], stream.y[i])
            assert np.isfinite(score)
        assert frozen(single) == whole, f"{case}: learn_one gives another model than learn"

    resumed_is_uninterrupted(case, stream, folder)
    grown_is_known(case, stream)
    if single and case.average == "none" and "tv=" not in case.penalty and "lower=" not in case.penalty:  # one more type
        single_precision_is_upcast(case, stream)


def resumed_is_uninterrupted(case: Case, stream: Stream, folder: Path | None) -> None:
    """Through a real file where a folder is given, else through what the file would hold."""
    middle = min(stream.cuts[0] if stream.cuts else len(stream.y) // 2, len(stream.y))
    first = learn(learner_for(case, stream), stream, slice(0, middle))
    if folder is not None:
        first.save(folder / "middle.onl")
    resumed = Learner.thaw(*first.freeze()) if folder is None else load(folder / "middle.onl")
    for learner in (resumed, first):
        learn(learner, stream, slice(middle, None))
    assert frozen(resumed) == frozen(first), f"{case}: another model when the run is resumed after {middle} rows"
    if folder is not None:
        resumed.save(folder / "resumed.onl")
        first.save(folder / "whole.onl")
        same = (folder / "resumed.onl").read_bytes() == (folder / "whole.onl").read_bytes()
        assert same, f"{case}: another model file when the run is resumed after {middle} rows"


def grown_is_known(case: Case, stream: Stream) -> None:
    try:
        growing = case.learner(stream.strength, n_features=None)
    except ValueError:
        return  # methods that need all columns refuse growth (tested by name)
    for piece in stream.pieces():
        learn(growing, stream, piece)
    known = learn(case.learner(stream.strength), stream)
    assert growing.size == (stream.X.indices[stream.X.data != 0.0].max(initial=-1) + 1)
    a, b = vectors(growing), vectors(known)
    for letter in a:
        longer = np.zeros(len(b[letter]))
        longer[: len(a[letter])] = a[letter]
        assert longer.tobytes() == b[letter].tobytes(), f"{case}: {letter} differs when features grow"
    assert growing.freeze()[1]["losses"].tobytes() == known.freeze()[1]["losses"].tobytes()


def single_precision_is_upcast(case: Case, stream: Stream) -> None:
    X = stream.X.astype(np.float32)
    X.eliminate_zeros()  # rows with stored zeros are copied, as float64
    results = []
    for same in (X, X.astype(np.float64), X.toarray(), X.tocsc()):
        learner = learner_for(case, stream)
        try:
            results.append(frozen(learn(learner, stream._replace(X=same))))
        except DivergenceError:
            results.append(None)
    assert all(result == results[0] for result in results), f"{case}: float32 rows give another model than their float64 copy"


def outputs_are_columns(case: Case, shape: Shape) -> None:
    """A learner of two outputs is two learners of one, bit for bit."""
    stream = shape.stream(case)._replace(start=None)
    Y = np.stack([stream.y, stream.y[::-1]], axis=1)
    both = case.learner(n_outputs=2)
    with quiet():
        both.learn(stream.X, Y, stream.s)
    for k in range(2):
        one = learn(case.learner(), stream._replace(y=Y[:, k]))
        for average in (False, True):
            got, want = both.weights(average=average)[:, k], one.weights(average=average)
            assert got.tobytes() == want.tobytes(), f"{case}: output {k} of two is not what it is alone"
            assert both.intercept(average=average)[k] == one.intercept(average=average)


def weight_0_is_a_step_without_loss(case: Case, outputs: int) -> None:
    """A row of weight 0 leaves the same state whatever its score, even where the loss and its slope overflow (MATH 17)."""
    X = 0.1 * np.random.default_rng(5).normal(size=(8, FEATURES))  # with the row of weight 0 three batches of three
    y = np.full((8, outputs), 3.0 if getattr(build_loss(case.loss), "labels", "real") == "counts" else 1.0)

    def learned(score: float) -> Any:
        learner = case.learner(0.1, n_outputs=outputs)
        with quiet():
            learner.learn(X[:6], y[:6])
            w = learner.weights().reshape(FEATURES, outputs)[:, 0]
            assert np.any(w), f"{case}: nothing was learned"
            learner.learn((score / (w @ w)) * w[None], y[:1], [0.0])
            learner.learn(X[6:], y[6:])
        return frozen(learner)

    want = learned(0.5)
    for score in (-1e4, 1e4):
        assert learned(score) == want, f"{case}: a row of weight 0 and score {score:g} leaves a trace of its loss"


# --- examples ---------------------------------------------------------------------------------------------------------

SHARE_DISCARDED, SHARE_DIVERGED = 0.08, 0.10


def examples(
    check: Callable[..., None],
    case: Case,
    tally: dict[str, Counter[str]],
    n: int,
    wild: bool = False,
    rows: int = 75,
    **more: Any,
) -> None:
    """Run a check of the contract on ``n`` streams; the same ones in each run."""

    @settings(
        max_examples=n, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )  # fmt: skip
    @given(shape=shapes(wild, rows))
    def run(shape: Shape) -> None:
        check(case, shape, tally=tally[check.__name__], **more)

    run()


@pytest.fixture(scope="module")
def tally() -> Iterator[dict[str, Counter[str]]]:
    """What each check counts; a check that discards more than a small share of its examples shows nothing."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    yield counts
    for name, count in counts.items():
        print(f"\n{name}: {dict(count)}")
        assert count["discarded"] <= SHARE_DISCARDED * count["examples"] + 1, f"{name} discards too much: {count}"
        assert count["diverged"] <= SHARE_DIVERGED * count["examples"] + 1, f"{name}: too many runs diverge: {count}"
