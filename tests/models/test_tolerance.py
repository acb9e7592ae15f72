"""``tol=``: fit ends at a certified gap, says how far it came, and refuses what cannot be certified before the first row."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import onlinear
from onlinear import OnlineClassifier, OnlineRegressor, PenaltyPath

N, D = 300, 8
RNG = np.random.default_rng(4)
X = RNG.normal(size=(N, D)) * (1.0 + np.arange(D)) * (RNG.random((N, D)) < 0.6)
SCORES = X @ RNG.normal(size=D) + RNG.normal(size=N)
Y = np.where(SCORES > 0.5, "yes", "no")
WEIGHTS = RNG.choice([0.5, 1.0, 3.0], N)


@pytest.mark.parametrize("loss", ["logistic", "squared-hinge", "hinge"])
@pytest.mark.parametrize("penalty", ["l1=1e-2", "l2=1e-2", "elastic-net,l1=1e-3,l2=1e-3"])
def test_fit_ends_at_the_gap(loss, penalty):
    tol = 1e-3 if loss == "hinge" else 1e-6
    model = OnlineClassifier(loss, penalty=penalty, tol=tol, max_passes=1000, class_weight="balanced").fit(X, Y, WEIGHTS)
    assert model.converged_
    assert model.dual_gap_ <= tol
    assert model.dual_bound_ <= model.objective_
    assert 1 <= model.n_iter_ <= model.n_passes_ <= 1000
    if loss != "hinge":
        assert model.duality_gap(X, Y, WEIGHTS) == pytest.approx(model.dual_gap_, rel=1e-3, abs=1e-12)
    assert model.score(X, Y) > 0.8


@pytest.mark.parametrize("scale", ["none", "rms", "max-abs", "standard"])
def test_scales_are_those_of_all_rows_and_offsets_are_nothing(scale):
    model = OnlineRegressor(penalty="l2=0.1", tol=1e-9, scale=scale).fit(X, SCORES)
    moved = OnlineRegressor(penalty="l2=0.1", tol=1e-9, scale=scale).fit(X, SCORES + 1e4)
    np.testing.assert_allclose(moved.predict(X) - 1e4, model.predict(X), atol=1e-3)
    if scale == "max-abs":
        by_hand = X / np.abs(X).max(axis=0)
        other = OnlineRegressor(penalty="l2=0.1", tol=1e-9, scale="none").fit(by_hand, SCORES)
        np.testing.assert_allclose(model.predict(X), other.predict(by_hand), atol=1e-3)


def test_classes_and_targets_are_each_certified():
    places = np.digitize(SCORES, [-1.0, 1.0])
    model = OnlineClassifier("logistic", penalty="l1=1e-2", tol=1e-5).fit(X, places)
    alone = [OnlineClassifier(penalty="l1=1e-2", tol=1e-5).fit(X, places == k) for k in range(3)]
    np.testing.assert_allclose(model.coef_, np.vstack([one.coef_ for one in alone]))
    assert model.dual_gap_ == max(one.dual_gap_ for one in alone)
    assert model.objective_ == pytest.approx(sum(one.objective_ for one in alone))


def test_classes_that_took_different_passes_are_saved_and_copied(tmp_path):
    places = np.digitize(SCORES, [-1.0, 1.0])
    model = OnlineClassifier("logistic", penalty="l1=1e-2", tol=1e-5).fit(X, places)
    assert len({OnlineClassifier(penalty="l1=1e-2", tol=1e-5).fit(X, places == k).n_passes_ for k in range(3)}) > 1
    model.save(tmp_path / "model")
    for same in (onlinear.load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(same.decision_function(X), model.decision_function(X))
        assert (same.n_passes_, same.dual_gap_) == (model.n_passes_, model.dual_gap_)


def test_it_says_how_far_it_came():
    with pytest.warns(ConvergenceWarning, match=r"tol=1e-10 was not reached: after 4 passes .* above the optimum") as said:
        model = OnlineClassifier(penalty="l2=1e-3", tol=1e-10, max_passes=4).fit(X, Y)
    assert said[0].filename == __file__
    assert not model.converged_
    assert model.n_passes_ == 4


def test_warm_start_and_a_solver_for_the_first_pass(tmp_path):
    model = OnlineClassifier(penalty="l1=1e-3", tol=1e-5, warm_start=True).fit(X, Y)
    first = model.n_passes_
    assert model.fit(X, Y).n_passes_ == 1 < first
    online = OnlineClassifier(penalty="l1=1e-3", tol=1e-5, solver="fiol", passes=3, random_state=0).fit(X, Y)
    assert online.t_ == online.n_passes_ * N
    online.save(tmp_path / "final", final=True)
    assert onlinear.load(tmp_path / "final").n_passes_ == online.n_passes_ > online.n_iter_
    assert online.converged_
    assert online.n_passes_ == online.n_iter_ + 3
    with pytest.raises(ValueError, match="max_passes=3 leaves no pass after the 3 of 'fiol'"):
        OnlineClassifier(penalty="l1=1e-3", tol=1e-5, solver="fiol", passes=3, max_passes=3).fit(X, Y)


@pytest.mark.parametrize("solver", ["comid", "drs", "prox-newton", None])
def test_tol_decides_where_passes_are_auto(solver):
    few = X[:60], Y[:60]
    auto, one = (OnlineClassifier(penalty="l2=1e-2", tol=1e-3, solver=solver, passes=p, random_state=0) for p in ("auto", 1))
    np.testing.assert_array_equal(auto.fit(*few).coef_, one.fit(*few).coef_)
    assert auto.n_passes_ == one.n_passes_
    if solver != "drs":
        streamed = OnlineClassifier(penalty="l2=1e-2", tol=1e-3, solver=solver, passes="auto").fit([few], classes=["no", "yes"])
        assert streamed.converged_


@pytest.mark.parametrize("solver", ["prox-newton", "sdca", "prox-newton,tol=1e-7"])
def test_solvers_by_name_imply_a_tolerance(solver):
    model = OnlineClassifier(penalty="l2=1e-2", solver=solver).fit(X, Y)
    assert model.converged_
    assert model.dual_gap_ <= 1e-4
    with pytest.raises(ValueError, match="needs all rows at once"):
        model.partial_fit(X, Y)
    stream = [(sp.csr_array(X), 1.0 * (Y == "yes"))]
    if solver == "sdca":
        with pytest.raises(ValueError, match="keeps a number for each row"):
            model.fit(stream, classes=[0, 1])
    else:
        assert model.fit(stream, classes=[0, 1]).converged_
        assert model.n_passes_ == model.n_iter_ + 1


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "without a penalty a duality gap says nothing"),
        ({"penalty": "tv=0.1"}, "needs the conjugate of the penalty"),
        ({"penalty": "none,lower=0"}, "without a penalty a duality gap says nothing"),
        ({"penalty": "l1=0.1", "tol": 0.0}, "tol"),
        ({"penalty": "l1=0.1", "tol": -1.0}, "tol"),
        ({"penalty": "l1=0.1", "max_passes": 0}, "max_passes must be"),
        ({"penalty": "l1=0.1", "eta": 0.5}, "eta=0.5 is a setting of online passes"),
        ({"penalty": "l1=0.1", "average": "uniform", "solver": "sdca"}, "average='uniform' is a setting of online passes"),
    ],
)
def test_refusals_leave_the_model_as_it_was(settings, says):
    model = OnlineClassifier(random_state=0).fit(X, Y)
    before = model.coef_
    model.set_params(**{"tol": 1e-4} | settings)
    with pytest.raises(ValueError, match=says):
        model.fit(X, Y)
    np.testing.assert_array_equal(model.coef_, before)


def test_a_clip_and_a_certificate_exclude_each_other():
    with pytest.raises(ValueError, match="clip=True and tol= exclude each other"):
        OnlineRegressor(penalty="l2=0.1", tol=1e-4, clip=True).fit(X, SCORES)


@pytest.mark.parametrize("scale", ["none", "rms", "max-abs", "centred"])
def test_a_stream_ends_at_the_optimum_of_its_rows(scale):
    Z = np.column_stack([np.arange(N) % 17 + 100.0, X])
    stream = [(sp.csr_array(Z[part]), SCORES[part]) for part in (slice(0, 7), slice(7, 200), slice(200, N))]
    mine = OnlineRegressor(penalty="elastic-net,l1=1e-2,l2=1e-2", tol=1e-7, scale=scale).fit(stream)
    whole = OnlineRegressor(penalty="elastic-net,l1=1e-2,l2=1e-2", tol=1e-7, scale=scale).fit(Z, SCORES)
    np.testing.assert_allclose(mine.predict(Z), whole.predict(Z), atol=1e-2)
    assert mine.objective_ == pytest.approx(whole.objective_, rel=2e-7)
    again = OnlineRegressor(penalty="elastic-net,l1=1e-2,l2=1e-2", tol=1e-7, scale=scale)
    np.testing.assert_array_equal(again.fit([(Z, SCORES)]).coef_, mine.coef_)


def test_rows_that_come_once_are_refused_before_the_first():
    model = OnlineClassifier(penalty="l1=0.1", tol=1e-4)
    with pytest.raises(ValueError, match="cannot be read twice"):
        model.fit(iter([(X, 1.0 * (Y == "yes"))]), classes=[0, 1])
    assert not hasattr(model, "learner_")
    with pytest.raises(ValueError, match="warm_start=True and tol= need the rows as arrays"):
        model.set_params(warm_start=True).fit([(X, 1.0 * (Y == "yes"))], classes=[0, 1])


def test_a_path_certifies_each_penalty_from_the_one_before(tmp_path):
    penalties = [1e-4, "l1=0.05", "elastic-net,l1=1e-3,l2=1e-3"]
    path = PenaltyPath(OnlineClassifier(class_weight="balanced"), penalties, tol=1e-7).fit(X, Y, WEIGHTS)
    assert path.converged_.all()
    assert (path.dual_gaps_ <= 1e-7).all()
    for penalty, coef in zip(path.penalties_, path.coefs_, strict=True):
        alone = OnlineClassifier(penalty=penalty, tol=1e-7, class_weight="balanced").fit(X, Y, WEIGHTS)
        np.testing.assert_allclose(coef, alone.coef_[0], atol=1e-3)
    assert path.nonzeros_[1] < path.nonzeros_[0]
    assert path.predict_all(X).shape == (3, N)
    with pytest.raises(AttributeError, match="no progressive losses"):
        path.predict(X)
    with pytest.raises(ValueError, match="does not continue row by row"):
        path.partial_fit(X, Y)
    path.save(tmp_path / "path")
    again = PenaltyPath.load(tmp_path / "path")
    np.testing.assert_array_equal(again.coefs_, path.coefs_)
    np.testing.assert_array_equal(again.fit(X, Y, WEIGHTS).coefs_, path.coefs_)
    assert path.estimator_at(1).converged_


@pytest.mark.parametrize("scale", [None, "none", "max-abs", "standard", "centred"])
@pytest.mark.parametrize(
    ("estimator", "y"),
    [
        (OnlineClassifier("logistic"), Y),
        (OnlineClassifier("hinge"), Y),
        (OnlineClassifier("softmax"), np.digitize(SCORES, [-1.0, 1.0])),
        (OnlineClassifier(solver="comid", passes=2, random_state=0), Y),
        (OnlineRegressor(), np.stack([SCORES, -SCORES, X[:, 0]], axis=1)),
    ],
    ids=["logistic", "hinge", "softmax", "online passes first", "targets"],
)
def test_a_path_reads_rows_for_all_its_penalties_and_ends_where_fits_by_themselves_end(monkeypatch, estimator, y, scale):
    penalties, tol, read = ["elastic-net,l1=0.01,l2=0.01", "elastic-net,l1=0.1,l2=0.01", "l2=0.01"], 1e-5, []
    estimator = clone(estimator).set_params(scale=scale, max_passes=1000)
    whole = onlinear.Learner.whole
    monkeypatch.setattr(onlinear.Learner, "whole", lambda self, *rows: read.append(self) or whole(self, *rows))
    path = PenaltyPath(estimator, penalties, tol=tol).fit(X, y, WEIGHTS)
    assert len(read) == (1 if estimator.solver is None else 2), "once, and once more where an online solver passes first"
    for k, penalty in enumerate(penalties):
        found, alone = path.estimator_at(k), clone(estimator).set_params(penalty=penalty, tol=tol).fit(X, y, WEIGHTS)
        assert found.converged_
        assert found.objective_ == pytest.approx(alone.objective_, rel=2 * tol)
        np.testing.assert_allclose(found.coef_, alone.coef_, atol=0.02 * np.abs(alone.coef_).max())
        np.testing.assert_array_equal(
            found.learner_.scaler is None or found.learner_.scaler.scales(),
            alone.learner_.scaler is None or alone.learner_.scaler.scales(),
        )


@pytest.mark.parametrize(
    ("settings", "rows", "y", "weights", "told"),
    [
        ({}, X, np.repeat("yes", N), None, r"there is one class only"),
        ({}, X, SCORES.astype(object) * np.nan, None, r"Input contains NaN"),
        ({}, X, Y, np.zeros(N), r"every sample weight is zero"),
        ({}, X, Y, -WEIGHTS, r"sample_weight must not be negative"),
        ({}, X[:0], Y[:0], None, r"Found array with 0 sample"),
        ({"passes": 0}, X, Y, None, r"passes must be an integer"),
        ({"max_passes": 0}, X, Y, None, r"max_passes must be"),
        ({"tol": 2.0}, X, Y, None, r"^tol must be"),
        ({"eta": 2.0}, X, Y, None, r"eta=2.0 is a setting of online passes"),
    ],
)
def test_a_path_blames_no_penalty_for_other_things(settings, rows, y, weights, told):
    path = PenaltyPath(OnlineClassifier(**{"tol": 1e-4} | settings), ["l1=0.1", "l1=0.01"])
    with pytest.raises(ValueError, match=f"^{told}"):
        path.fit(rows, y, weights)
    assert not hasattr(path, "_models")


@pytest.mark.parametrize("frame", [False, True])
def test_a_path_names_the_value_that_is_not_finite(frame):
    bad = X.copy()
    bad[200, 3] = np.nan
    column, given = (r"'d'", pd.DataFrame(bad, columns=list("abcdefgh"))) if frame else ("3", bad)
    path = PenaltyPath(OnlineClassifier(), ["l1=0.1", "l1=0.01"], tol=1e-4)
    with pytest.raises(ValueError, match=rf"^X contains NaN at row 200, column {column}; every value must be finite"):
        path.fit(given, Y)
    assert not hasattr(path, "_models")


def test_a_path_says_what_it_did_not_reach_and_refuses_what_cannot_be_certified():
    with pytest.warns(ConvergenceWarning, match=r"penalty 'l2=1e-3': tol=1e-10 was not reached") as said:
        PenaltyPath(OnlineClassifier(tol=1e-10, max_passes=3), ["l2=1e-3"]).fit(X, Y)
    assert said[0].filename == __file__
    path = PenaltyPath(OnlineClassifier(), ["l1=0.1", "none"], tol=1e-4)
    with pytest.raises(ValueError, match=r"penalties\[1\]: without a penalty a duality gap says nothing"):
        path.fit(X, Y)
    assert not hasattr(path, "_models")


def test_partial_fit_does_not_use_it():
    plain = OnlineClassifier(penalty="l1=1e-3").partial_fit(X, Y, classes=["no", "yes"])
    model = OnlineClassifier(penalty="l1=1e-3", tol=1e-4).partial_fit(X, Y, classes=["no", "yes"])
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    with pytest.raises(AttributeError, match="there is no certificate"):
        plain.dual_gap_  # noqa: B018


def test_files_and_clones_keep_it(tmp_path):
    model = OnlineClassifier(penalty="l1=1e-3", tol=1e-5).fit(X, Y)
    model.save(tmp_path / "model")
    loaded = onlinear.load(tmp_path / "model")
    assert (loaded.tol, loaded.dual_gap_, loaded.n_passes_) == (1e-5, model.dual_gap_, model.n_passes_)
    np.testing.assert_array_equal(loaded.coef_, model.coef_)
    assert clone(loaded).tol == 1e-5
    final = tmp_path / "final"
    model.save(final, final=True)
    with pytest.raises(AttributeError, match="only predicts"):
        onlinear.load(final).dual_gap_  # noqa: B018


def test_each_certified_pass_is_shown(capsys):
    OnlineClassifier(penalty="l1=1e-3", tol=1e-5, verbose=True).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["pass", "objective", "certified", "gap", "non-zeros", "columns"]
    assert float(lines[-1].split()[2]) <= 1e-5


@pytest.mark.parametrize("penalty", ["l1=1e-3", "l2=1e-3"])
def test_the_optimum_of_counts_is_that_of_scaled_columns_without_means(penalty):
    counts = np.floor(np.abs(SCORES))
    rows = X + 5.0
    found = OnlineRegressor("poisson", penalty=penalty, tol=1e-4).fit(rows, counts)
    assert found.learner_.scaler.kind == "rms"
    streamed = OnlineRegressor("poisson", penalty=penalty, tol=1e-4).fit([(rows, counts)])
    assert streamed.learner_.scaler.kind == "rms"
    assert streamed.objective_ == pytest.approx(found.objective_, rel=2e-4)


@pytest.mark.filterwarnings("error")
def test_rows_of_weight_0_say_nothing_where_all_others_are_of_one_class():
    """The intercept goes far down, where the slope of a row that does not count is infinite: NumPy warned of 0 times it."""
    labels, counts = np.array([0, 1, 0, 1]), np.array([1.0, 0.0, 1.0, 0.0])
    model = OnlineClassifier("exponential", penalty="l1=0.01", tol=1e-2).fit(np.zeros((4, 2)), labels, counts)
    assert model.converged_


def test_many_rows_whose_weights_are_of_one_class_are_told_so():
    rows, labels = np.eye(4)[np.arange(1_200) % 4], np.arange(1_200) % 2
    model = OnlineClassifier(penalty="l1=0.01", tol=0.5, max_passes=2)
    for made in (model, PenaltyPath(model, ["l1=0.01"])):
        with pytest.warns(onlinear.QualityWarning, match="All rows of a weight above 0 are of class 1: there is nothing"):
            made.fit(rows, labels, labels)
