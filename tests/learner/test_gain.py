"""``gain=True``: the sums of P3's Lemma 1 are those of the weights before and after each row, and change nothing else."""

import inspect
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from seldom import often, seldom

from onlinear import Learner, load
from onlinear.losses import weighted

N, D = 90, 9
RNG = np.random.default_rng(11)
X = np.round(RNG.standard_normal((N, D)), 2) * (RNG.random((N, D)) < 0.6)
X[[4, 50]] = 0.0
CLASSES = np.where(X @ RNG.standard_normal(D) + 0.5 * RNG.standard_normal(N) > 0.0, 1.0, -1.0)
NUMBERS = X @ RNG.standard_normal(D) + 0.3 * RNG.standard_normal(N)
WEIGHTS = RNG.integers(0, 3, N).astype(float)
TARGETS = {"hinge": CLASSES, "logistic": CLASSES, "squared": NUMBERS, "absolute": NUMBERS, "poisson": np.abs(np.round(NUMBERS))}
PENALTIES = ("none", "elastic-net,l1=0.01,l2=0.1", "lower=-0.2,upper=0.3,l1=0.01")
KINDS = {
    "plain": {},
    "averaged": {"average": "weighted-t1", "fit_intercept": True},
    "adaptive": {"average": "adaptive"},
    "sorted": {"solver": "fiol,inner=sort", "fit_intercept": True},
    "constant": {"solver": "fiol,schedule=constant,eta=0.5"},
    "scaled": {"scale": "rms", "fit_intercept": True},
}
EACH_KIND = often(KINDS, set(KINDS) - {"sorted"})  # the search for theta gains nothing itself


def made(loss, penalty="l1=0.02", kind="plain", gain=True, **more):
    settings = {"solver": "fiol,eta=2", **KINDS[kind], **more}
    return Learner(settings.pop("solver"), loss, penalty, gain=gain, **settings)


def by_the_weights(loss, penalty, kind):
    """The two sums, from the weights before and after each row."""
    learner = made(loss, penalty, kind, n_features=D)
    y, part = TARGETS[loss], learner.loss
    gain = squares = 0.0
    for t in range(N):
        w, b = learner.weights(), learner.intercept()
        learner.learn(X[t : t + 1], y[t : t + 1], WEIGHTS[t : t + 1])
        s = learner.factor * WEIGHTS[t]
        before, after = X[t] @ w + b, X[t] @ learner.weights() + learner.intercept()
        slope = weighted(s, part.slope(before, y[t]))
        gain += weighted(s, part.value(after, y[t]) - part.value(before, y[t])) - slope * (after - before)
        squares += 0.5 * learner.engine.eta(t + 1) * slope**2 * (X[t] @ X[t] + (b != 0.0 or learner.fit_intercept))
    return gain, squares


CASES = [("averaged", PENALTIES[1], loss) for loss in TARGETS] + [("plain", PENALTIES[2], loss) for loss in TARGETS]
CASES += [seldom("averaged", penalty, loss) for penalty in PENALTIES[::2] for loss in TARGETS]
CASES += [("plain", "none", "squared"), seldom("sorted", "l1=0.02", "logistic"), ("constant", "l1=0.02", "hinge")]


@pytest.mark.parametrize(("kind", "penalty", "loss"), CASES)
def test_it_is_what_the_weights_say(kind, penalty, loss):
    gain, squares = by_the_weights(loss, penalty, kind)
    learner = made(loss, penalty, kind).learn(X, TARGETS[loss], WEIGHTS)
    assert learner.gain == pytest.approx(gain, rel=1e-9, abs=1e-12)
    assert learner.gradient_squares == pytest.approx(squares, rel=1e-9)
    assert learner.gain > (-1e-9 if loss in ("hinge", "absolute") else 0.0)  # their steps may stay on one line


@pytest.mark.parametrize("kind", EACH_KIND)
def test_it_changes_no_weight_and_no_split_or_container_changes_it(kind):
    with_it, without = made("logistic", kind=kind), made("logistic", kind=kind, gain=False)
    with_it.learn(X, CLASSES, WEIGHTS)
    without.learn(X, CLASSES, WEIGHTS)
    assert with_it.weights().tobytes() == without.weights().tobytes()
    assert with_it.predict(X).tobytes() == without.predict(X).tobytes()
    assert with_it.progressive_loss == without.progressive_loss
    for container in (sp.csr_array, sp.csc_array, np.asfortranarray):
        parts = made("logistic", kind=kind)
        for first, end in ((0, 1), (1, 1), (1, 64), (64, 65), (65, N)):
            parts.learn(container(X[first:end]), CLASSES[first:end], WEIGHTS[first:end])
        assert (parts.gain, parts.gradient_squares) == (with_it.gain, with_it.gradient_squares)


@pytest.mark.parametrize("kind", [seldom("plain"), seldom("averaged"), seldom("adaptive"), "scaled"])
def test_single_rows_have_the_bits_of_a_block(kind):
    block, single = made("squared", kind=kind).learn(X, NUMBERS), made("squared", kind=kind)
    for row, y in zip(X, NUMBERS, strict=True):
        found = np.flatnonzero(row)
        single.learn_one(found, row[found], y)
    assert (single.gain, single.gradient_squares) == (block.gain, block.gradient_squares)


def test_outputs_are_those_of_learners_of_their_own():
    targets = np.stack([CLASSES, -CLASSES, np.where(NUMBERS > 0.5, 1.0, -1.0)], axis=1)
    several = made("hinge", n_outputs=3).learn(X, targets)
    alone = [made("hinge").learn(X, targets[:, k]) for k in range(3)]
    assert several.gain == sum(learner.gain for learner in alone)
    assert several.gradient_squares == sum(learner.gradient_squares for learner in alone)
    for k, learner in enumerate(alone):
        assert several.weights()[:, k].tobytes() == learner.weights().tobytes()
    one_by_one = made("hinge", n_outputs=3)
    for row, y in zip(X, targets, strict=True):
        found = np.flatnonzero(row)
        one_by_one.learn_one(found, row[found], y)
    assert one_by_one.gain == several.gain


@pytest.mark.parametrize("kind", EACH_KIND)
def test_files_and_pickles_continue_it_to_the_byte(kind, tmp_path):
    whole, first = made("logistic", kind=kind).learn(X, CLASSES), made("logistic", kind=kind).learn(X[:37], CLASSES[:37])
    first.save(tmp_path / "half.onl")
    for again in (load(tmp_path / "half.onl"), pickle.loads(pickle.dumps(first))):
        assert (again.gain, again.gradient_squares) == (first.gain, first.gradient_squares)
        again.learn(X[37:], CLASSES[37:])
        assert (again.gain, again.gradient_squares) == (whole.gain, whole.gradient_squares)
        assert again.weights().tobytes() == whole.weights().tobytes()


@pytest.mark.parametrize("schedule", ["schedule=constant,eta=0.5", "eta=2", seldom("schedule=two-phase,m=20,eta=2")])
@pytest.mark.parametrize("loss", TARGETS)
def test_the_bound_is_above_the_regret_at_every_row(loss, schedule):
    y, learner = TARGETS[loss], made(loss, "l1=0.02", solver=f"fiol,{schedule}", n_features=D)
    rivals = [np.zeros(D), made(loss).learn(np.tile(X, (30, 1)), np.tile(y, 30)).weights(), RNG.standard_normal(D) / 3]
    part, r = learner.loss, learner.penalty.value
    regret, distance = np.zeros(3), np.zeros(3)
    assert learner.regret_bound(2.0) == 0.0
    for t in range(N):
        w = learner.weights()
        distance = np.maximum(distance, [np.linalg.norm(w - u) for u in rivals])
        regret += [part.value(X[t] @ w, y[t]) + r(w) - part.value(X[t] @ u, y[t]) - r(u) for u in rivals]
        learner.learn(X[t : t + 1], y[t : t + 1])
        assert all(regret[k] <= learner.regret_bound(distance[k]) + 1e-9 for k in range(3))


def test_a_start_adds_its_penalty():
    start = np.full(D, 0.5)
    learner = made("squared", "l1=0.1", start=start).learn(X, NUMBERS)
    by_hand = 4.0 / (2.0 * learner.engine.eta(N)) + learner.gradient_squares - learner.gain + 0.1 * 0.5 * D
    assert learner.regret_bound(2.0) == pytest.approx(by_hand)


def test_a_loss_that_overflows_leaves_the_gain_finite_and_the_bound_infinite(tmp_path):
    learner = made("squared", "none").learn([[1.0], [1.0]], [1.0, 1e200])
    assert np.isfinite(learner.gain)
    assert learner.regret_bound(1.0) == np.inf
    learner.save(tmp_path / "huge.onl")
    assert load(tmp_path / "huge.onl").gradient_squares == np.inf


def test_what_has_no_gain_is_refused():
    for solver in ("comid", "implicit-sgd", "odrs", "fiol,batch=4"):
        with pytest.raises(ValueError, match="gain=True needs the solver 'fiol', one row to a step"):
            Learner(solver, "hinge", gain=True)
    with pytest.raises(ValueError, match="a loss of one score"):
        Learner("fiol", "softmax", n_outputs=3, gain=True)
    with pytest.raises(TypeError, match="gain"):
        Learner("fiol", "hinge", gain="yes")
    plain = Learner("fiol", "hinge").learn(X, CLASSES)
    for read in (lambda: plain.gain, lambda: plain.gradient_squares, lambda: plain.regret_bound(1.0)):
        with pytest.raises(AttributeError, match="make it with gain=True"):
            read()
    assert "gain" not in dict(inspect.getmembers(plain))
    for more in ({"scale": "rms"}, {"n_outputs": 2}, {"weights": "relative"}):
        with pytest.raises(ValueError, match="regret_bound needs one output"):
            made("hinge", **more).regret_bound(1.0)
    for distance, kind in ((-1.0, ValueError), (float("nan"), ValueError), ("1", TypeError)):
        with pytest.raises(kind, match=r"distance must be .*\[0, inf\], got"):
            made("hinge").regret_bound(distance)
