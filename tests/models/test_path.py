"""A path of penalties learned in one pass equals the separate fits, bit for bit, and chooses by rows it has not seen."""

import copy
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from seldom import seldom
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError

from onlinear import (
    DivergenceError,
    ModelFileError,
    OnlineClassifier,
    OnlineRegressor,
    PenaltyPath,
    QualityWarning,
    load,
    streams,
)
from onlinear.files import model_file
from onlinear.solvers.packs import team

N, D = 240, 25
PENALTIES = ["none", *(f"l1,l1={l1:g}" for l1 in np.geomspace(1e-3, 0.3, 5)), "l2,l2=0.05"]
COMID = OnlineClassifier("hinge", solver="comid", random_state=3)


def rows(classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random(N, D, 0.3, random_state=seed, format="csr")
    X.data = rng.normal(size=X.nnz)
    scores = X @ (rng.normal(size=(D, classes)) * (rng.random((D, 1)) < 0.4)) + 0.2 * rng.normal(size=(N, classes))
    return X, scores[:, 0] if classes == 1 else np.argmax(scores, axis=1), rng.choice([0.0, 1.0, 2.0], N)


def assert_separate_fits(path, estimator, X, y, s):
    for k, penalty in enumerate(path.penalties):
        alone = clone(estimator).set_params(penalty=penalty).fit(X, y, s)
        (header, arrays), (theirs, others) = alone.freeze(), path.estimator_at(k).freeze()
        assert header == theirs
        assert {name: array.tobytes() for name, array in arrays.items()} == {
            name: array.tobytes() for name, array in others.items()
        }
        assert np.array_equal(np.squeeze(path.coefs_[k]), np.squeeze(alone.coef_))
        assert np.array_equal(np.squeeze(path.intercepts_[k]), np.squeeze(alone.intercept_))
        if estimator.passes == 1:
            assert path.losses_[k] == pytest.approx(alone.learner_.progressive_loss * len(s) / s.sum(), rel=1e-12)


@pytest.mark.parametrize(
    ("estimator", "classes"),
    [
        (COMID, 2),
        (OnlineClassifier("hinge", solver="comid", average="weighted-t1", passes=2, random_state=1), 2),
        (OnlineClassifier(random_state=0), 3),  # scale rms; an average where the penalty has no l1
        (OnlineClassifier(random_state=0, passes=3), 2),  # no number of the first pass is left
        (OnlineRegressor(shuffle=False), 1),
    ],
)
def test_a_path_equals_the_separate_fits(estimator, classes):
    X, y, s = rows(classes)
    path = PenaltyPath(estimator, PENALTIES).fit(X, y, s)
    assert_separate_fits(path, estimator, X, y, s)
    assert path.coefs_.shape == (len(PENALTIES), *((D,) if classes < 3 else (classes, D)))


@pytest.mark.parametrize("estimator", [OnlineClassifier(random_state=0), OnlineClassifier(random_state=0, passes=3)])
def test_a_path_mapped_from_a_file_goes_on(estimator, tmp_path):
    X, y, _ = rows(3)
    path = PenaltyPath(estimator, PENALTIES).fit(X, y)
    joblib.dump(path, tmp_path / "path")
    mapped = joblib.load(tmp_path / "path", mmap_mode="r")
    assert_same(mapped.partial_fit(X, y), path.partial_fit(X, y), tmp_path)
    assert np.array_equal(mapped.errors_, path.errors_)


def test_dense_rows_that_are_standardised():
    X, y, s = rows()
    estimator = OnlineClassifier("hinge", solver="comid", scale="standard", random_state=2)
    assert_separate_fits(PenaltyPath(estimator, PENALTIES).fit(X.toarray(), y, s), estimator, X.toarray(), y, s)
    path = PenaltyPath(OnlineRegressor(scale="standard"), ["l1=1e-3", "l2=1e-3"]).fit(X.toarray(), y)  # by other steps
    moments = [model.learner_.scaler.moments for model in path._models]
    assert moments[0] is not moments[1]
    assert np.array_equal(*moments)
    assert path.nonzeros_[1] == D


@pytest.fixture
def whole():
    X, y, s = rows()
    return PenaltyPath(COMID, PENALTIES).partial_fit(X, y, classes=[0, 1], sample_weight=s)


def assert_same(one, other, tmp_path):
    one.save(tmp_path / "one")
    other.save(tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_cuts_stops_and_columns_that_come_later_change_nothing(whole, tmp_path):
    X, y, s = rows()
    path = PenaltyPath(COMID, PENALTIES)
    growing = PenaltyPath(COMID, PENALTIES, grow=True)
    for first, last in ((0, 1), (1, 60), (60, 61), (61, N)):
        part = X[first:last]
        path.partial_fit(part, y[first:last], classes=[0, 1], sample_weight=s[first:last])
        path.save(tmp_path / "path")
        path = PenaltyPath.load(tmp_path / "path")
        seen = 1 + int(part.indices.max())
        growing.partial_fit(part[:, :seen], y[first:last], classes=[0, 1], sample_weight=s[first:last])
        path.coefs_, path.losses_  # noqa: B018 (reading changes nothing)
    assert_same(path, whole, tmp_path)
    assert np.array_equal(growing.coefs_, whole.coefs_[:, : growing.n_features_in_])
    assert np.array_equal(growing.losses_, whole.losses_)
    assert growing.predict(X[:, : growing.n_features_in_]).tolist() == whole.predict(X).tolist()


def test_copies_pickles_and_threads_go_on_alike(tmp_path, monkeypatch):
    monkeypatch.setattr(team, "WORTH_A_THREAD", 0)
    X, y, s = rows()
    half = N // 2
    path = PenaltyPath(COMID, PENALTIES, n_jobs=2).partial_fit(X[:half], y[:half], classes=[0, 1], sample_weight=s[:half])
    copied, pickled = copy.deepcopy(path), pickle.loads(pickle.dumps(path))
    by_attributes = object.__new__(PenaltyPath)  # as skops copies, which calls no __reduce__
    by_attributes.__setstate__(path.__getstate__())
    assert_same(by_attributes, path, tmp_path)
    alone = path.estimator_at(3)
    for one in (path, copied, pickled):
        one.partial_fit(X[half:], y[half:], sample_weight=s[half:])
    assert_same(copied, path, tmp_path)
    assert_same(pickled, path, tmp_path)
    alone.partial_fit(X[half:], y[half:], sample_weight=s[half:])
    assert np.array_equal(alone.coef_[0], path.coefs_[3])


@pytest.mark.parametrize(
    "other",
    [
        {"estimator__loss": "logistic"},
        {"penalties": PENALTIES[:-1]},
        {"penalties": [0.1, *PENALTIES[1:]]},
        {"penalties": [*PENALTIES, None]},
    ],
)
def test_further_rows_are_refused_once_other_settings_are_asked_for(other, tmp_path):
    X, y, _ = rows()
    path = PenaltyPath(clone(COMID), PENALTIES).fit(X, y)
    path.save(tmp_path / "path")
    for each in (path, PenaltyPath.load(tmp_path / "path")):
        before = each.coefs_
        with pytest.raises(ValueError, match="begun with"):
            each.set_params(**other).partial_fit(X, y)
        assert np.array_equal(each.coefs_, before)
        each.set_params(estimator__loss="hinge", penalties=PENALTIES, estimator__penalty="l2=1").partial_fit(X, y)


@pytest.mark.parametrize("classes", [2, seldom(3)])
def test_losses_and_errors_are_of_rows_not_seen_before(classes):
    X, y, s = rows(classes)
    names = list(range(classes))
    path = PenaltyPath(clone(COMID).set_params(average="none", scale="none"), PENALTIES)
    wrong, losses = np.zeros(len(PENALTIES)), np.zeros(len(PENALTIES))
    path.partial_fit(X[:1], y[:1], classes=names, sample_weight=[0.0])
    for i in range(1, N):
        for k in range(len(PENALTIES)):
            model = path._models[k]
            scores = model.decision_function(X[i])
            signs = np.where(np.arange(classes) == y[i], 1.0, -1.0) if classes > 2 else np.array([2.0 * y[i] - 1.0])
            losses[k] += s[i] * np.maximum(0.0, 1.0 - signs * np.ravel(scores)).sum()
            wrong[k] += s[i] * (model.predict(X[i])[0] != y[i])
        path.partial_fit(X[i], y[i : i + 1], sample_weight=s[i : i + 1])
    assert np.allclose(path.losses_, losses / s[1:].sum(), rtol=1e-12)
    assert np.allclose(path.errors_, wrong / s[1:].sum(), rtol=1e-12)
    at_once = clone(path).partial_fit(X, y, classes=names, sample_weight=np.append(0.0, s[1:]))
    assert np.array_equal(at_once.errors_, path.errors_)
    assert np.array_equal(at_once.losses_, path.losses_)
    at_once._tally.weight = None  # as of files and pickles that are older than it
    assert np.allclose(at_once.losses_, losses / N, rtol=1e-12)


def test_the_smallest_progressive_loss_is_best(whole):
    X, y, _ = rows()
    best = int(np.argmin(whole.losses_))
    assert (whole.best_index_, whole.best_penalty_) == (best, PENALTIES[best])
    assert np.array_equal(whole.best_estimator_.coef_[0], whole.coefs_[best])
    assert np.array_equal(whole.predict(X), whole.predict_all(X)[best])
    assert np.array_equal(whole.decision_function(X), whole.best_estimator_.decision_function(X))
    assert whole.score(X, y) == np.mean(whole.predict(X) == y)
    assert whole.nonzeros_.tolist() == [np.count_nonzero(coef) for coef in whole.coefs_]
    assert not hasattr(whole, "predict_proba")
    assert hasattr(PenaltyPath(OnlineClassifier(), PENALTIES), "predict_proba")


def test_rows_that_are_held_out_say_how_many_passes():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 10)), rng.integers(2, size=60)
    auto = OnlineClassifier(passes="auto", random_state=0)
    path = PenaltyPath(auto, ["none", "l1=1e-3", "l1=1"]).fit(X, y)
    passes = {path.estimator_at(k).n_iter_ for k in range(3)}
    assert len(passes) == 1
    own = [clone(auto).set_params(penalty=penalty).fit(X, y).n_iter_ for penalty in path.penalties]
    assert passes < {*own} | {100}
    assert min(passes) < 100
    for k in (1, 2):
        alone = OnlineClassifier(penalty=path.penalties[k], passes=min(passes), random_state=0).fit(X, y)
        np.testing.assert_array_equal(path.coefs_[k], alone.coef_[0])
    single = PenaltyPath(auto, ["none"]).fit(X, y)
    np.testing.assert_array_equal(single.coefs_[0], clone(auto).fit(X, y).coef_[0])


def test_rows_that_are_held_out_say_which_penalty_is_best_after_many_passes(tmp_path):
    rng = np.random.default_rng(0)
    a, e = rng.standard_normal((2, 200))
    X, y = np.column_stack([a, a + 0.1 * e]), (e > 0.0).astype(int)  # one pass learns nothing of it
    path = PenaltyPath(OnlineClassifier(passes="auto", random_state=0), ["l1=1e-3", "l1=0.3"]).fit(X[:50], y[:50])
    assert path.losses_[0] > path.losses_[1]
    assert path.best_index_ == 0
    assert path.score(X[50:], y[50:]) > 0.75
    path.save(tmp_path / "path.onlinear")
    for copied in (PenaltyPath.load(tmp_path / "path.onlinear"), pickle.loads(pickle.dumps(path)), copy.deepcopy(path)):
        assert copied.best_index_ == 0
        assert copied.partial_fit(X[50:60], y[50:60]).best_index_ == 0
    groups = path.in_groups(1)
    assert path.take([group.fit(X[:50], y[:50]) for group in groups]).best_index_ == 1  # each has its own passes
    once = path.set_params(estimator__passes=1).fit(X[:50], y[:50])
    assert once.best_index_ == int(np.argmin(once.losses_)) == 1


def test_only_the_first_pass_counts():
    X, y, s = rows()
    estimator = OnlineClassifier("hinge", solver="comid", random_state=5)
    once = PenaltyPath(estimator, PENALTIES).fit(X, y, s)
    thrice = PenaltyPath(clone(estimator).set_params(passes=3), PENALTIES).fit(X, y, s)
    assert np.allclose(thrice.losses_, once.losses_, rtol=1e-12)
    assert np.array_equal(thrice.errors_, once.errors_)
    assert thrice.t_ == 3 * N


def test_before_a_row_that_counts():
    X, y, _ = rows()
    path = PenaltyPath(COMID, PENALTIES).partial_fit(X, y, classes=[0, 1], sample_weight=np.zeros(N))
    assert np.isnan(path.errors_).all()
    assert np.isnan(path.losses_).all()
    assert path.best_index_ == 0
    assert path.nonzeros_.tolist() == [0] * len(PENALTIES)


def test_wrong_rows_change_nothing(whole, tmp_path):
    X, y, _ = rows()
    before = copy.deepcopy(whole)
    wide = sp.csr_matrix(([1.0], ([0], [D])), shape=(1, D + 1))
    for wrong, labels, told in ((wide, [0], "features"), (X[:1], [7], "class 7"), (X[:1], [0, 1], "inconsistent")):
        with pytest.raises(ValueError, match=told):
            whole.partial_fit(wrong, labels)
    assert_same(whole, before, tmp_path)
    growing = PenaltyPath(COMID, PENALTIES, grow=True).partial_fit(X, y, classes=[0, 1])
    with pytest.raises(ValueError, match="class 7"):
        growing.partial_fit(wide, [7])
    assert growing.n_features_in_ == 1 + X.indices.max()
    assert growing.partial_fit(wide, [0]).n_features_in_ == D + 1


def test_new_columns_of_data_frames_stand_behind_the_known_ones_in_all_models():
    frame = pd.DataFrame(rows()[0].toarray()[:40, :4], columns=list("abcd"))
    y = np.arange(40) % 2
    path = PenaltyPath(COMID, PENALTIES, grow=True).partial_fit(frame[["a", "b"]], y, classes=[0, 1])
    with pytest.raises(ValueError, match="X has the column 'c' at place 1, and the rows before had 'b' there"):
        path.partial_fit(frame[["a", "c"]], y)
    path.partial_fit(frame.assign(d=0.0), y).partial_fit(frame[["a"]], y)
    assert path.feature_names_in_.tolist() == list("abcd")
    assert path.coefs_.shape == (len(PENALTIES), 4)  # with the column that no row had
    assert path.predict_all(frame).shape == (len(PENALTIES), 40)
    assert not hasattr(path.partial_fit(np.ones((1, 5)), y[:1]), "feature_names_in_")


def test_columns_of_rows_learned_before_ctrl_c_are_known(monkeypatch):
    X, y, _ = rows()
    growing = PenaltyPath(COMID, PENALTIES, grow=True).partial_fit(X, y, classes=[0, 1])

    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("onlinear.models.path.best_class", stopped)
    with pytest.raises(KeyboardInterrupt):
        growing.partial_fit(sp.csr_matrix(([1.0], ([0], [D])), shape=(1, D + 1)), [0])
    assert growing.n_features_in_ == D + 1


def test_a_penalty_that_diverges_is_named():
    X, y, _ = rows()
    estimator = OnlineRegressor(solver="sgd,schedule=constant,eta=0.01", average="none", shuffle=False)
    path = PenaltyPath(estimator, ["none", "l2,l2=0.1", "l2,l2=1e5", "l2,l2=1"])
    with pytest.raises(DivergenceError, match=r"penalty 'l2,l2=1e5': the state stopped being finite"):
        path.fit(sp.vstack([X] * 4), np.tile(y, 4))
    with pytest.raises(DivergenceError, match="learns no more: penalty 'l2,l2=1e5'"):
        path.partial_fit(X, y)
    with pytest.raises(DivergenceError):
        path.predict(X)


def test_what_is_refused():
    X, y, _ = rows()
    with pytest.raises(ValueError, match=r"penalties must be a list of at least one penalty, got 0\.001"):
        PenaltyPath(OnlineClassifier(), 1e-3).fit(X, y)
    for path, kind, told in (
        (PenaltyPath(object(), PENALTIES), TypeError, "estimator must be an OnlineClassifier"),
        (PenaltyPath(COMID, []), ValueError, "at least one penalty"),
        (PenaltyPath(COMID, "l1,l1=0.1"), ValueError, "must be a list"),
        (PenaltyPath(COMID, {"l1=0.1", "l1=1"}), ValueError, "must be a list"),  # in another order in each process
        (PenaltyPath(COMID, {"l1": 0.1}), ValueError, "must be a list"),
        (PenaltyPath(COMID, np.array(0.1)), ValueError, "must be a list"),
        (PenaltyPath(COMID, ["none", "l1,l1=-1"]), ValueError, r"penalties\[1\]: .*l1"),
        (PenaltyPath(COMID, [True]), TypeError, r"penalties\[0\]: "),
        (PenaltyPath(COMID, PENALTIES, n_jobs=0), ValueError, "n_jobs must be"),
        (PenaltyPath(OnlineClassifier("squared", solver="batch-drs"), ["l1,l1=0.1"]), ValueError, "needs all rows at once"),
    ):
        with pytest.raises(kind, match=told):
            path.fit(X, y)
        assert not hasattr(path, "_models")
    with pytest.raises(ValueError, match="every sample weight is zero"):
        PenaltyPath(COMID, PENALTIES).fit(X, y, np.zeros(N))
    with pytest.raises(AttributeError, match="a regressor's path has losses_"):
        PenaltyPath(OnlineRegressor(), PENALTIES).fit(X, y).errors_  # noqa: B018


def test_files_of_other_kinds_and_damaged_ones(whole, tmp_path):
    whole.save(tmp_path / "path")
    whole.estimator_at(0).save(tmp_path / "classifier")
    with pytest.raises(ModelFileError, match="not a path of penalties"):
        PenaltyPath.load(tmp_path / "classifier")
    (tmp_path / "cut").write_bytes((tmp_path / "path").read_bytes()[:-10])
    with pytest.raises(ModelFileError):
        PenaltyPath.load(tmp_path / "cut")
    with pytest.raises(ModelFileError, match=r"path: holds a path of penalties: load it with PenaltyPath\.load\."):
        load(tmp_path / "path")
    header, arrays = model_file.read(tmp_path / "path")
    for wrong in ({"models": []}, {"models": 5}, {"models": ["a"]}, {"models": [{"kind": "learner"}]}, {"grow": "yes"}):
        model_file.write(tmp_path / "wrong", header | wrong, arrays)
        with pytest.raises(ModelFileError, match="wrong: the model file's header has"):
            PenaltyPath.load(tmp_path / "wrong")
    model_file.write(tmp_path / "wrong", header, arrays | {"counts": np.full(2, np.nan)})
    with pytest.raises(ModelFileError, match="wrong: what the model file's header says cannot be"):
        PenaltyPath.load(tmp_path / "wrong")
    older = {name: array for name, array in arrays.items() if name != "weight"}
    model_file.write(tmp_path / "older", header, older)
    assert np.array_equal(PenaltyPath.load(tmp_path / "older").errors_, PenaltyPath.load(tmp_path / "path").errors_)


def test_a_place_that_no_penalty_has_and_a_path_that_is_not_fitted_are_refused(whole, tmp_path):
    assert whole.estimator_at(-1).penalty == whole.penalties_[-1]
    for place in (len(whole.penalties_), 1.0, "l1=0.1", True):
        with pytest.raises(IndexError, match="place must be an integer from 0 to"):
            whole.estimator_at(place)
    with pytest.raises(NotFittedError):
        PenaltyPath(COMID, PENALTIES).save(tmp_path / "path")


def test_scikit_learn_knows_what_it_is():
    path = PenaltyPath(COMID, PENALTIES)
    assert is_classifier(path)
    assert is_regressor(PenaltyPath(OnlineRegressor(), PENALTIES))
    assert clone(path).get_params()["estimator__loss"] == "hinge"
    with pytest.raises(Exception, match="not fitted"):
        path.coefs_  # noqa: B018


def test_classes_shared_by_threads_give_the_same_model_file(tmp_path, monkeypatch):
    monkeypatch.setattr(team, "WORTH_A_THREAD", 0)
    X, y, _ = rows(classes=9)
    estimator = OnlineClassifier("hinge", solver="comid", random_state=0)
    for name, n_jobs in (("one", None), ("two", 2)):
        clone(estimator).set_params(n_jobs=n_jobs).fit(X, y).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    with pytest.raises(ValueError, match="n_jobs must be None, -1"):
        clone(estimator).set_params(n_jobs=0).fit(X, y)
    with pytest.raises(ValueError, match="n_jobs must be None, -1"):
        PenaltyPath.load(tmp_path / "one", n_jobs="a")


def test_a_loss_that_overflows_is_infinite_and_never_the_best():
    far = OnlineClassifier(loss="exponential", solver="implicit-sgd", average="none", scale="none")
    path = PenaltyPath(far, ["l2,l2=1e-4", "l2,l2=1e-3"]).partial_fit(np.eye(4), [0, 1, 0, 1], classes=[0, 1])
    for later in (0.0, np.inf):  # in the first pass, in a later one
        path._models[0].learner_.loss_sums[:] = np.inf, 0.0
        path._tally.later_loss[0] = later
        assert path.losses_[0] == np.inf
        assert path.best_index_ == 1


def test_a_best_model_that_rows_sorted_by_class_leave_is_told_as_by_estimators():
    X, y, _ = rows()
    order = np.argsort(np.tile(y, 5), kind="stable")
    path = PenaltyPath(clone(COMID).set_params(shuffle=False), PENALTIES)
    with pytest.warns(QualityWarning, match="The model predicts worse than a constant"):
        path.fit(sp.vstack([X] * 5).tocsr()[order], np.tile(y, 5)[order])


def test_a_column_that_is_too_small_is_named_as_by_estimators():
    X, y, _ = rows()
    with pytest.warns(QualityWarning, match="so nothing is learned of them: column 3"):
        PenaltyPath(COMID, PENALTIES).fit(X @ sp.diags(np.where(np.arange(D) == 3, 1e-170, 1.0)), y)


def test_softmax_is_not_compared_with_a_loss_for_each_class():
    """Bounds take the logistic loss of each class, whose sum over three classes is larger."""
    X, y, _ = rows(3)
    groups = [PenaltyPath(estimator, ["l1=1e-3"]).fit(X, y) for estimator in (OnlineClassifier(random_state=0), COMID)]
    path = PenaltyPath(COMID, ["l1=1e-3"] * 2).take(groups)
    assert path.losses_.shape == path.errors_.shape == (2,)
    for ask in (lambda: path.best_estimator_, lambda: path.predict(X)):
        with pytest.raises(AttributeError, match="some of these penalties take softmax and others a loss for each class"):
            ask()
    path._tally.held_out = np.array([2.0, 1.0])  # log losses of all classes together, whatever the loss
    assert path.best_index_ == 1


def test_penalties_with_other_solvers_and_steps_by_default_are_saved_and_go_on(tmp_path):
    """With l1 the default of a regressor is another solver than with l2."""
    X, y, s = rows(1)
    path = PenaltyPath(OnlineRegressor(), ["none", "l1=1e-3", "l2=1e-3", "l1=1e-2"])
    path.partial_fit(X[:100], y[:100], sample_weight=s[:100]).save(tmp_path / "half")
    assert {model.learner_.spec["solver"] for model in path._models} == {
        "implicit-ftrl,eta=8",
        "fiol,eta=2.4",
        "implicit-ftrl,eta=2",
    }
    again = PenaltyPath.load(tmp_path / "half")
    for run in (path, again):
        run.partial_fit(X[100:], y[100:], sample_weight=s[100:])
    assert_same(path, again, tmp_path)
    alone = OnlineRegressor(penalty="l1=1e-2").partial_fit(X, y, s)
    assert np.array_equal(path.coefs_[3], alone.coef_)


TABLE = pd.DataFrame({"a": np.arange(20.0) % 7, "b": np.arange(20.0) % 3, "y": np.arange(20) % 2})
READ = {
    "dicts": (TABLE[["a", "b"]].to_dict("records"), TABLE["y"], "dicts"),
    "text": (TABLE[["a"]].assign(s="u"), TABLE["y"], "a table with more than numbers"),
    "a name": (TABLE, "y", "the name of a column, 'y'"),
    "a stream": (streams.open(TABLE, target="y"), None, "a stream or blocks"),
    "blocks": ([(TABLE[["a", "b"]].to_numpy(), TABLE["y"].to_numpy())], None, "a stream or blocks"),
}


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("tol", [None, 0.1])
def test_rows_that_must_be_read_first_are_refused_with_what_to_do(name, tol):
    X, y, got = READ[name]
    path = PenaltyPath(OnlineClassifier(), ["l1=0.01", "l1=0.1"], grow=True, tol=tol)
    for call in (path.fit, path.partial_fit):
        with pytest.raises(TypeError, match=f"a path learns an array or data frame of numbers and an array y, got .*{got}"):
            call(X, y)
    if tol is None:
        for block in streams.open(TABLE, target="y"):
            path.partial_fit(block.X, block.y, classes=[0.0, 1.0])
        assert path.t_ == 20
