"""``loss="softmax"`` of the estimators and the command: probabilities, two classes, files, streams, weights, quality."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import log_softmax, softmax
from seldom import seldom
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from onlinear import OnlineClassifier, OnlineRegressor, PenaltyPath, load
from onlinear.cli import app

RNG = np.random.default_rng(3)
X = RNG.normal(size=(600, 6)) * [1.0, 10.0, 0.1, 1.0, 1.0, 1.0]
SCORES = X @ (RNG.normal(size=(6, 4)) / np.array([1.0, 10.0, 0.1, 1.0, 1.0, 1.0])[:, None]) * 2.0
Y = np.array(["ant", "bee", "cat", "dog"])[(SCORES + RNG.gumbel(size=SCORES.shape)).argmax(axis=1)]
PLACES = np.searchsorted(np.unique(Y), Y)


def test_probabilities_are_the_softmax_of_the_scores():
    model = OnlineClassifier("softmax", random_state=0).fit(X, Y)
    scores, p = model.decision_function(X), model.predict_proba(X)
    np.testing.assert_allclose(p, softmax(scores, axis=1), atol=1e-15)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-14)
    np.testing.assert_allclose(model.predict_log_proba(X), log_softmax(scores, axis=1), atol=1e-9)
    far = 1e5 * X
    np.testing.assert_allclose(model.predict_log_proba(far), log_softmax(model.decision_function(far), axis=1), atol=1e-9)
    assert np.array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
    assert np.mean(model.predict(X) == Y) > 0.7
    some = np.arange(6)
    assert model.predict_one(some, X[0]) == model.predict(X[:1])[0]
    assert list(model.predict_proba_one(some, X[0]).values()) == pytest.approx(p[0].tolist(), abs=1e-15)


@pytest.mark.parametrize("penalty", ["none", "l1=1e-3", "elastic-net,l1=1e-4,l2=1e-3"])
def test_two_classes_are_the_logistic_loss(penalty):
    y = Y < "c"
    one, other = (OnlineClassifier(loss, penalty=penalty, random_state=0).fit(X, y) for loss in ("softmax", "logistic"))
    assert one.coef_.shape == (1, 6)
    assert np.array_equal(one.coef_, other.coef_)
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))
    assert one.learner_.spec["loss"] == "logistic", "which is what is shown"


def test_two_classes_have_the_certificate_of_the_logistic_loss():
    y = Y < "c"
    one, other = (OnlineClassifier(loss, penalty="l1=1e-2", tol=1e-6).fit(X, y) for loss in ("softmax", "logistic"))
    assert one.dual_gap_ == other.dual_gap_ <= 1e-6
    assert np.array_equal(one.coef_, other.coef_)


@pytest.mark.parametrize("penalty", ["l1=1e-2", seldom("l2=1e-2,lower=-1")])
def test_several_classes_end_at_one_certified_optimum(penalty):
    model = OnlineClassifier("softmax", penalty=penalty, tol=1e-6).fit(X, Y)
    assert model.converged_
    assert model.dual_gap_ == pytest.approx(model.duality_gap(X, Y), rel=1e-6, abs=1e-12)
    assert model.dual_bound_ <= model.objective_ <= model.dual_bound_ + 1e-6 * model.objective_
    assert model.objective_ == pytest.approx(model.learner_.objective(X, PLACES), rel=1e-12)
    longer = OnlineClassifier("softmax", penalty=penalty, passes=30, scale="rms", average="none", random_state=0).fit(X, Y)
    assert model.objective_ < longer.learner_.objective(X, PLACES)
    after = OnlineClassifier("softmax", penalty=penalty, solver="comid", tol=1e-6).fit(sp.csr_array(X), Y)
    assert after.objective_ == pytest.approx(model.objective_, rel=2e-6)
    again = OnlineClassifier("softmax", penalty=penalty, tol=1e-6, warm_start=True).fit(X, Y).fit(X, Y)
    assert again.n_iter_ < model.n_iter_
    back = pickle.loads(pickle.dumps(model))
    assert back.dual_gap_ == model.dual_gap_
    assert np.array_equal(back.predict_proba(X), model.predict_proba(X))


def test_an_optimum_of_several_classes_is_kept_in_files_and_found_along_a_path(tmp_path):
    model = OnlineClassifier("softmax", penalty="l1=1e-2", tol=1e-6).fit(X, Y)
    model.save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert (back.dual_gap_, back.objective_) == (model.dual_gap_, model.objective_)
    path = PenaltyPath(OnlineClassifier("softmax"), ["l1=0.1", "l1=1e-2"], tol=1e-6).fit(X, Y)
    assert path.converged_.all()
    np.testing.assert_allclose(path.coefs_[1], model.coef_, atol=1e-3)


@pytest.mark.parametrize("penalty", ["l1=1e-2", "l2=1e-2"])
def test_an_optimum_of_several_classes_is_found_in_sums_over_rows(penalty):
    alone = OnlineClassifier(penalty=penalty, tol=1e-6).fit(X, Y)
    model = OnlineClassifier(penalty=penalty, tol=1e-6).fit([(X[:90], Y[:90]), (X[90:], Y[90:])], classes=np.unique(Y))
    assert model.converged_
    assert model.objective_ == pytest.approx(alone.objective_, rel=2e-6)
    assert model.duality_gap(X, Y) <= 1.001e-6
    np.testing.assert_allclose(model.predict_proba(X), alone.predict_proba(X), atol=1e-2)


def test_an_optimum_of_several_classes_needs_a_penalty_and_curvatures():
    with pytest.raises(ValueError, match="sdca has no form for softmax with these parts: use 'prox-newton'"):
        OnlineClassifier("softmax", solver="sdca", penalty="l2=1e-2").fit(X, Y)
    with pytest.raises(ValueError, match="without a penalty a duality gap says nothing"):
        OnlineClassifier("softmax", tol=1e-6).fit(X, Y)


LOSSES = ("Logistic", "Softmax")  # of two classes, and of more


class Made(Exception):
    """The learner was made: its loss is known. What it learns would take a kernel for each case."""


@pytest.fixture
def losses_of(monkeypatch):
    """The losses of two classes and of four, where none is named."""

    def found(**settings):
        def take(model, learner):
            losses.append(type(learner.loss).__name__)
            raise Made

        losses = []
        monkeypatch.setattr(OnlineClassifier, "take", take)
        for y in (Y < "c", Y):
            with pytest.raises(Made):
                OnlineClassifier(random_state=0, **settings).fit(X, y)
        return tuple(losses)

    return found


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"passes": "auto"},
        {"average": "uniform"},
        {"scale": "none"},
        {"eta": 1.0},
        {"forget": 1000},
        {"penalty": "l1=1e-3"},
        {"l2": 0.1, "penalty": "l2"},
        {"penalty": "elastic-net,l1=1e-3,l2=1e-2", "average": "weighted-t1,masked=true"},
        {"penalty": "l2=1e-2", "tol": 1e-2},
        {"penalty": "l1=1e-2", "solver": "prox-newton,tol=0.1"},
    ],
)
def test_it_is_the_default_of_several_classes(settings, losses_of):
    assert losses_of(**settings) == LOSSES


@pytest.mark.parametrize(
    "settings",
    [
        {"penalty": "l1=1e-3,lower=0"},
        {"penalty": "tv=1e-3"},
        {"solver": "comid"},
        {"uncertainty": True},
        {"penalty": "l2=1e-2", "solver": "sdca"},
    ],
)
def test_what_has_no_measured_form_with_it_takes_one_against_the_rest(settings, losses_of):
    assert losses_of(**settings) == ("Logistic", "Logistic")


def test_the_default_is_the_named_loss_bit_for_bit():
    for y, loss in ((Y < "c", "logistic"), (Y, "softmax")):
        default, named = (OnlineClassifier(each, random_state=0).fit(X, y) for each in (None, loss))
        assert np.array_equal(default.coef_, named.coef_)
        assert default.loss is None


def test_a_default_continues_after_a_file(tmp_path):
    model = OnlineClassifier().partial_fit(X[:300], Y[:300], classes=np.unique(Y))
    model.save(tmp_path / "m")
    back = load(tmp_path / "m")
    assert back.loss is None
    for each in (back, model):
        each.partial_fit(X[300:], Y[300:])
    assert np.array_equal(back.coef_, model.coef_)
    assert np.array_equal(model.coef_, OnlineClassifier(shuffle=False).fit(X, Y).coef_)
    with pytest.raises(ValueError, match="begun with loss=None"):
        back.set_params(loss="softmax").partial_fit(X, Y)


def test_its_steps_grow_like_the_root_of_the_classes():
    for classes in (3, 8, 50):
        y = np.arange(len(X)) % classes
        solver = OnlineClassifier().fit(X, y).learner_.spec["solver"]
        assert solver == f"implicit-ftrl,eta={np.sqrt(2 * classes):g},intercept=0.3"


@pytest.mark.parametrize("final", [False, True])
@pytest.mark.parametrize("penalty", ["none", "l1=1e-3"])
def test_files_keep_it(tmp_path, penalty, final):
    model = OnlineClassifier("softmax", penalty=penalty, random_state=0).fit(X, Y)
    model.save(tmp_path / "m", final=final)
    back = load(tmp_path / "m")
    assert np.array_equal(back.predict_proba(X), model.predict_proba(X))
    assert back.loss == "softmax"
    if not final:
        copy = pickle.loads(pickle.dumps(model))
        for one in (back, copy, model):
            one.partial_fit(X[:50], Y[:50])
        assert np.array_equal(back.coef_, model.coef_)
        assert np.array_equal(copy.coef_, model.coef_)


def test_measures_are_those_of_its_own_loss():
    weights = RNG.uniform(0.5, 2.0, len(Y))
    model = OnlineClassifier("softmax", random_state=0).fit(X, Y, weights)
    chosen = log_softmax(model.decision_function(X), axis=1)[np.arange(len(Y)), PLACES]
    signs = np.where(PLACES[:, None] == np.arange(4), 1.0, -1.0)
    assert model.learner_.objective(X, signs, weights) == pytest.approx(-np.mean(weights * chosen), rel=1e-12)


def svmlight(path, classes):
    lines = (f"{k} " + " ".join(f"{j + 1}:{v:.6g}" for j, v in enumerate(x)) for k, x in zip(classes, X, strict=True))
    path.write_text("\n".join(lines) + "\n")
    return path


def test_the_command_trains_and_evaluates_it(tmp_path):
    rows = svmlight(tmp_path / "rows.svm", PLACES)
    options = ["--loss", "softmax", "--classes", "0,1,2,3", "--model", str(tmp_path / "m")]
    run = CliRunner().invoke(app, ["train", str(rows), *options])
    assert run.exit_code == 0, run.output
    model = load(tmp_path / "m")
    shares = np.bincount(PLACES) / len(PLACES)
    shown = CliRunner().invoke(app, ["evaluate", str(tmp_path / "m"), str(rows)]).output
    assert f"{-np.sum(shares * np.log(shares)):.4g}"[:5] in shown
    direct = OnlineClassifier("softmax").partial_fit(
        np.array([[float(f"{v:.6g}") for v in x] for x in X]), PLACES, classes=[0, 1, 2, 3]
    )
    np.testing.assert_allclose(model.coef_, direct.coef_, rtol=1e-9)
    assert model.learner_.progressive_loss < -np.sum(shares * np.log(shares))


def test_a_path_and_weights_of_classes():
    path = PenaltyPath(OnlineClassifier("softmax"), ["l1=1e-4", "l1=1e-2", "l1=1"]).partial_fit(X, Y, classes=np.unique(Y))
    for place, penalty in enumerate(("l1=1e-4", "l1=1e-2", "l1=1")):
        alone = OnlineClassifier("softmax", penalty=penalty).partial_fit(X, Y, classes=np.unique(Y))
        assert np.array_equal(path.coefs_[place], alone.coef_)
    heavy = OnlineClassifier("softmax", class_weight={"ant": 20.0}, random_state=0).fit(X, Y)
    assert np.sum(heavy.predict(X) == "ant") > np.sum(OnlineClassifier("softmax", random_state=0).fit(X, Y).predict(X) == "ant")


def test_numbers_are_refused():
    with pytest.raises(ValueError, match="is for classes"):
        OnlineRegressor("softmax").fit(X, X[:, 0])


def test_it_says_better_how_likely_digits_are_than_one_against_the_rest():
    D, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    D, y = D[order], y[order]
    found = {}
    for name, model in {
        "softmax": OnlineClassifier("softmax"),
        "logistic": OnlineClassifier("logistic", average="adaptive"),
        "calibrated": OnlineClassifier("logistic"),
    }.items():
        model.partial_fit(D[:50], y[:50], classes=np.arange(10))
        total = 0.0
        for first in range(50, len(y), 100):
            part = slice(first, first + 100)
            p = model.predict_proba(D[part])
            total -= np.log(np.maximum(p[np.arange(len(p)), y[part]], 1e-12)).sum()
            model.partial_fit(D[part], y[part])
        found[name] = total / (len(y) - 50)
    assert found["softmax"] < 0.9 * found["logistic"]
    assert found["softmax"] < found["calibrated"] < found["logistic"]
