"""The mixture: its models are those of implicit-ftrl, its shares follow from their scores, and one of wide rows is kept."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy import sparse
from seldom import seldom
from sparse_rows import D, close, same_bits, stream

from onlinear import Learner, OnlineClassifier, OnlineRegressor, load
from onlinear.errors import ModelFileError
from onlinear.losses import Hinge, Logistic, Squared
from onlinear.solvers.mixture import (
    BEFORE,
    ETA,
    FIRST_MOVE,
    FOLLOWS,
    GONE,
    GRID,
    HELD,
    KEPT,
    LAST,
    LEVEL,
    MODELS,
    PLAIN,
    ROWS,
    SIDE,
    Mixture,
)  # fmt: skip

LOSSES = {"logistic": Logistic(), "squared": Squared(), "hinge": Hinge()}


def running_rms(X, s, whole):
    """The rows divided by the running root mean square of their columns, or of all values (``whole``)."""
    X, squares, count = X.toarray(), np.zeros(X.shape[1]), np.zeros(X.shape[1])
    out = np.zeros(X.shape)
    for i, x in enumerate(X):
        on = x != 0.0
        if s[i] > 0.0:
            squares += x**2
            count += on
        sizes = np.full(len(x), squares.sum() / max(count.sum(), 1.0)) if whole else squares / np.maximum(count, 1.0)
        out[i, on] = np.divide(x[on], np.sqrt(sizes[on]), out=np.zeros(on.sum()), where=sizes[on] > 0.0)
    return out, np.sqrt(squares.sum() / max(count.sum(), 1.0)) if whole else np.sqrt(squares / np.maximum(count, 1.0))


def replay(loss, penalty, X, y, s, eta=1.0):
    """Weights and intercept of the mixture of 16 predictors by eight learners of implicit-ftrl and a recursion in NumPy, for
    fewer rows than move a step size; and its scores."""
    n, losses, rows, mean, level = len(y), np.zeros(2 * MODELS + 1), 0.0, 0.0, 0.0
    held = np.append(np.tile(2.0 * np.log(np.maximum(1.0, np.array(GRID) / 2.0)), 4), 0.0)
    scaled, scales = zip(*(running_rms(X, s, whole) for whole in (True, False)), strict=True)
    runs = [
        (Learner(f"implicit-ftrl,eta={eta * step}", loss, penalty, "weighted-t1", n_features=X.shape[1], fit_intercept=True), k)
        for k in range(2)
        for step in GRID
    ]
    found, value = np.zeros(n), LOSSES[loss].value
    for i in range(n):
        a = [
            run.weights(average=mean) @ scaled[k][i] + run.intercept(average=mean) for mean in (False, True) for run, k in runs
        ]
        p = shares(losses, rows, loss, held)
        found[i] = p @ (*a, level)
        if s[i] > 0.0:
            mean += (s[i] - mean) / np.count_nonzero(s[: i + 1])
            kept = 1.0 - 3.0 / (i + 1 + BEFORE)
            losses = kept * losses + s[i] / mean * np.array([value(score, y[i]) for score in (*a, level)])
            rows, held = kept * rows + s[i] / mean, kept * held
            if loss == "squared":
                level = s[: i + 1] @ y[: i + 1] / s[: i + 1].sum()
        for run, k in runs:
            run.learn(scaled[k][i : i + 1], y[i : i + 1], s[i : i + 1])
    p = shares(losses, rows, loss, held)
    w, b = 0.0, p[-1] * level
    for e, (average, (run, k)) in enumerate((average, run) for average in (False, True) for run in runs):
        inverse = np.divide(1.0, scales[k], out=np.zeros(np.shape(scales[k])), where=np.asarray(scales[k]) > 0.0)
        w, b = w + p[e] * run.weights(average=average) * inverse, b + p[e] * run.intercept(average=average)
    return w, b, found, p


def shares(losses, rows, loss, held):
    rate = 1.0 if loss == "logistic" else rows / (2.0 * max(losses.min(), 1e-200))
    p = np.exp(-rate * (losses - losses.min()) - held)
    return p / p.sum()


@pytest.mark.parametrize(
    ("loss", "penalty"),
    [
        ("logistic", "none"),
        seldom("logistic", "l2=0.05"),
        seldom("squared", "none"),
        ("hinge", "l2=0.05"),
    ],
)
def test_it_is_the_mixture_of_its_models(loss, penalty):
    X, y, s = stream(3)
    X, y, s = X[: FIRST_MOVE - 1], y[: FIRST_MOVE - 1], s[: FIRST_MOVE - 1]
    X = sparse.csr_matrix(X.multiply(10.0 ** np.linspace(-3.0, 4.0, D)))
    if loss == "squared":
        y = y + 0.3 * np.arange(len(y)) % 1.7
    run = Learner("mixture,eta=0.7", loss, penalty, n_features=D, fit_intercept=True)
    w, b, scores, p = replay(loss, penalty, X, y, s, 0.7)
    got = run.learn_checked(*run.check_input(X, y, s))[0, 0]
    close(got, scores)
    close(run.variables()["p"], p)
    close(run.weights(), w)
    assert run.intercept() == pytest.approx(b, abs=1e-10)
    assert run.predict(X[:5]) == pytest.approx(X[:5] @ w + b, abs=1e-10)


@pytest.mark.parametrize("eta", [1e-4, 1e4])
def test_step_sizes_move_to_where_they_are_needed(eta):
    rng = np.random.default_rng(5)
    X, w = rng.standard_normal((2100, 6)), rng.standard_normal(6)
    y = np.sign(X @ w + 2.0 * rng.standard_normal(len(X)))
    run = Learner(f"mixture,eta={eta}", "logistic", fit_intercept=True).learn(X, y)
    table = run.states[0].kept["table"]
    assert table[ETA : ETA + MODELS].max() > 512.0 if eta < 1.0 else table[ETA : ETA + MODELS].min() < 1.0 / 32.0
    assert np.mean(np.sign(run.predict(X)) == np.sign(X @ w)) > 0.85


def test_a_step_size_moves_at_the_second_power_of_two_in_succession():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((130, 6))
    run = Learner("mixture,eta=1e-4", "logistic")
    y = np.sign(X @ rng.standard_normal(6))
    first = set(GRID)
    run.learn(X[:127], y[:127])
    table = run.states[0].kept["table"]
    assert set(table[ETA : ETA + MODELS]) == first
    assert table[SIDE] == 1.0
    run.learn(X[127:128], y[127:128])
    assert set(table[ETA : ETA + MODELS]) - first == {512.0}
    assert table[SIDE] == 0.0


def test_weights_of_rows_have_no_unit():
    X, y, s = stream(1)
    one, many = (Learner("mixture", "logistic", fit_intercept=True).learn(X, y, by * s) for by in (1.0, 1024.0))
    close(many.variables()["p"], one.variables()["p"])


def wide(n=150):
    """Rows of which number 100 is the first with a column beyond 40."""
    rng = np.random.default_rng(2)
    X = sparse.random(n, 60, 0.2, "lil", None, rng, rng.standard_normal)
    X[:100, 40:] = 0.0
    X[100, 50] = 1.0
    X = X.tocsr()
    X.eliminate_zeros()
    return X, np.sign(X @ np.arange(60.0) + 1.0)


@pytest.mark.parametrize("penalty", ["none", seldom("l2=0.01")])
def test_beyond_the_limit_the_best_model_is_kept(tmp_path, penalty):
    X, y = wide()

    def learner(**options):
        return Learner("mixture,limit=40", "logistic", penalty, fit_intercept=True, **options)

    whole, before = learner(), learner().learn(X[:100], y[:100])
    with pytest.warns(UserWarning, match=r"a row has a column of number 40 or beyond .* only the best of its models is kept"):
        whole.learn(X, y)
    table = before.states[0].kept["table"]
    best = int(np.argmin(np.minimum(table[LAST : LAST + MODELS], table[LAST + MODELS : LAST + 2 * MODELS])))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before.learn(X[100:101], y[100:101])
    table, kept = before.states[0].kept["table"], before.variables()
    assert table[KEPT] == 1.0
    assert table[ETA] == GRID[best % 4]
    assert [name for name in kept if name.startswith("w")] == ["w", "w1"]
    before.save(tmp_path / "half")
    again = load(tmp_path / "half").learn(X[101:], y[101:])
    same_bits(again, whole)
    same_bits(before.learn(X[101:], y[101:]), whole)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        single, known = learner(), learner(n_features=60).learn(X, y)
        for i in range(X.shape[0]):
            single.learn_one(X[i].indices, X[i].data, y[i])
    same_bits(single, whole)
    same_bits(known, whole)
    assert known.predict(X).tobytes() == whole.predict(X).tobytes()
    np.testing.assert_array_equal(whole.variables()["w1"].shape, (60,))


def test_the_kept_model_goes_on_as_in_the_mixture():
    X, y = wide()
    whole = Learner("mixture", "logistic", fit_intercept=True).learn(X[:100], y[:100])
    table = whole.states[0].kept["table"]
    best = 1 + int(np.argmin(np.minimum(table[LAST : LAST + MODELS], table[LAST + MODELS : LAST + 2 * MODELS])))
    whole.learn(X[100:127], y[100:127])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kept = Learner("mixture,limit=40", "logistic", fit_intercept=True).learn(X[:127], y[:127])
    for letter in "wGS":
        close(kept.variables()[f"{letter}1"], whole.variables()[f"{letter}{best}"])


def test_wide_states_hold_no_models_of_columns_beyond_the_limit():
    run = Learner("mixture,limit=40", "logistic", n_features=1_000_000)
    assert run.states[0].arrays["models"].shape == (40 * 3 * MODELS,)
    assert run.weights().shape == (1_000_000,)
    assert run.bytes_per_column == 48
    few = Learner("mixture,limit=40", "logistic", n_features=40)
    assert (few.bytes_per_column, few.bytes_per_new_column) == (216, 48)


def test_estimators_leave_the_columns_to_it(tmp_path):
    X, y, _ = stream(2)
    model = OnlineClassifier(solver="mixture", random_state=0).fit(X, y)
    assert model.learner_.scaler.kind == "dense"
    assert not model.learner_.averaged
    model.save(tmp_path / "final", final=True)
    final = load(tmp_path / "final")
    np.testing.assert_array_equal(final.predict(X), model.predict(X))
    np.testing.assert_array_equal(final.coef_, model.coef_)
    with pytest.raises(ValueError, match="mixture divides the columns by scales of its own"):
        OnlineClassifier(solver="mixture", scale="rms").fit(X, y)
    three = OnlineClassifier(solver="mixture", shuffle=False).fit(X, np.arange(X.shape[0]) % 3)
    first = OnlineClassifier(solver="mixture", shuffle=False).fit(X, np.arange(X.shape[0]) % 3 == 0)
    np.testing.assert_array_equal(three.coef_[0], first.coef_[0])


def test_columns_may_be_centred_before():
    rng = np.random.default_rng(4)
    X = rng.normal([0.0, 100.0, -1e4, 3.0], size=(200, 4))
    y = np.sign((X - X.mean(axis=0)) @ [1.0, -1.0, 2.0, 0.5])
    whole, single = (Learner("mixture", "logistic", scale="dense", fit_intercept=True) for _ in range(2))
    whole.learn(X, y)
    for x, target in zip(X, y, strict=True):
        single.learn(x[None], [target])  # by the kernel of blocks; that of single rows with a scale is tested for others
    same_bits(single, whole)
    plain = Learner("mixture", "logistic", fit_intercept=True).learn(X, y)
    assert whole.progressive_loss < 0.6 * plain.progressive_loss
    assert np.mean(np.sign(whole.predict(X)) == y) > 0.97


def test_numbers_have_units_and_a_clip():
    X, _, _ = stream(2)
    y = 1000.0 + 50.0 * (X @ np.arange(D)) + np.random.default_rng(0).normal(size=X.shape[0])
    one = OnlineRegressor(solver="mixture", clip=True, shuffle=False).fit(X, y)
    assert one.learner_.units.clip is not None
    assert one.predict(100.0 * X).max() <= y.max()
    assert one.score(X, y) > 0.9
    other = OnlineRegressor(solver="mixture", clip=True, shuffle=False).fit(X, 4.0 * y)
    close(other.predict(X), 4.0 * one.predict(X))


@pytest.mark.parametrize("eta", [1e-4, 1.0, 1e5])
def test_no_step_size_is_much_worse_than_the_mean_of_the_targets(eta):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((600, 5))
    y = X @ rng.standard_normal(5) + 100.0
    y[0] = 0.0  # the zero of the targets, which all others are far from
    run = OnlineRegressor(solver=f"mixture,eta={eta}", clip=True).partial_fit(X[:50], y[:50])
    losses = []
    for first in range(50, 600, 50):
        part = slice(first, first + 50)
        losses.append(np.mean((run.predict(X[part]) - y[part]) ** 2))
        run.partial_fit(X[part], y[part])
    assert np.mean(losses) < 1.5 * np.var(y[50:])


def test_the_constant_is_the_mean_of_the_targets_for_numbers_and_an_intercept():
    X, y, s = stream(4)
    for loss, intercept, wanted in (("squared", True, s @ y / s.sum()), ("squared", False, 0.0), ("logistic", True, 0.0)):
        run = Learner("mixture", loss, fit_intercept=intercept, n_features=D).learn(X, y, s)
        table = run.states[0].kept["table"]
        assert table[LEVEL] == pytest.approx(wanted, abs=1e-12)
        assert table[FOLLOWS] == (wanted != 0.0)


def test_a_file_from_before_the_constant_and_what_is_held_back_goes_on():
    X, y, s = stream(5)
    header, arrays = Learner("mixture", "squared", fit_intercept=True).learn(X[:80], y[:80], s[:80]).freeze()
    before = arrays | {"0.kept.table": arrays["0.kept.table"][:PLAIN]}
    old, same = Learner.thaw(header, before), Learner.thaw(header, before)
    table = old.states[0].kept["table"]
    assert len(table) == len(arrays["0.kept.table"])
    assert not table[PLAIN:].any()
    whole, cut = old.learn(X[80:], y[80:], s[80:]), Learner.thaw(*same.learn(X[80:90], y[80:90], s[80:90]).freeze())
    same_bits(cut.learn(X[90:], y[90:], s[90:]), whole)
    assert not whole.states[0].kept["table"][PLAIN:].any()


def test_refusals():
    for penalty, words in (("l1=0.1", "takes no l1"), ("total-variation,tv=1", "takes the penalties")):
        with pytest.raises(ValueError, match=words):
            Learner("mixture", "logistic", penalty)
    with pytest.raises(ValueError, match="mixes averages of its own models"):
        Learner("mixture", "logistic", average="uniform")
    with pytest.raises(ValueError, match="start= is not possible"):
        Learner("mixture", "logistic", start=[1.0, 0.0])
    with pytest.raises(ValueError, match="has no form for softmax"):
        Learner("mixture", "softmax", n_outputs=3)
    assert Learner(Mixture(2.0), "logistic").engine.solver.rate == 1.0
    assert Learner("mixture", "squared").engine.solver.rate == 0.0


def test_rows_without_entries_or_weight():
    run = Learner("mixture", "squared", n_features=3).learn(np.zeros((70, 3)), np.ones(70))
    assert not run.weights().any()
    assert run.progressive_loss == 0.5
    nothing = Learner("mixture", "logistic", n_features=3).learn(np.eye(3), np.ones(3), np.zeros(3))
    assert not nothing.weights().any()


@pytest.mark.parametrize(
    ("place", "value"),
    [(ETA, -1.0), (KEPT, 3.0), (ROWS, -1.0), (SIDE, 0.5), (LAST, np.nan), (HELD, -1.0), (FOLLOWS, 0.5), (GONE, 7.0)],
)
def test_files_of_no_run_are_refused(place, value):
    X, y, s = stream(0)
    header, arrays = Learner("mixture", "logistic").learn(X, y, s).freeze()
    table = arrays["0.kept.table"].copy()
    table[place] = value
    with pytest.raises(ModelFileError):
        Learner.thaw(header, arrays | {"0.kept.table": table})
