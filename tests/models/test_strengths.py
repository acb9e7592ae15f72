"""l1=, l2= and eta= are the texts of parts with these numbers."""

from __future__ import annotations

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV

from onlinear import Learner, OnlineClassifier, OnlineRegressor, PenaltyPath, load
from onlinear.learner.parts import build_solver
from onlinear.penalties import ElasticNet
from onlinear.schedules import Power
from onlinear.solvers.comid import Comid

X, Y = load_breast_cancer(return_X_y=True)
SAME = [
    ({"l1": 1e-3}, {"penalty": "l1=1e-3"}),
    ({"l2": 0.1}, {"penalty": "l2=0.1"}),
    ({"l1": 1e-3, "l2": 1}, {"penalty": "l1=1e-3,l2=1"}),
    ({"l1": 1e-3, "penalty": "l2=0.1,lower=0"}, {"penalty": "l1=1e-3,l2=0.1,lower=0"}),
    ({"l1": 1e-3, "penalty": "l2"}, {"penalty": "l1=1e-3,l2=1e-5"}),
    ({"l1": 1e-3, "penalty": "l1"}, {"penalty": "l1=1e-3"}),
    ({"l1": 1e-3, "penalty": "l1,lower=0"}, {"penalty": "l1=1e-3,lower=0"}),
    ({"l1": 1e-3, "l2": 0.1, "penalty": "elastic-net"}, {"penalty": "l1=1e-3,l2=0.1"}),
    ({"l2": 0.1, "penalty": "elastic-net,l1=1e-4"}, {"penalty": "l1=1e-4,l2=0.1"}),
    ({"l2": 1e-3, "penalty": "tv=0.1", "solver": "comid"}, {"penalty": "tv=0.1,l2=1e-3", "solver": "comid"}),
    ({"l1": 0.0}, {}),
    ({"eta": 0.5, "l1": 1e-3}, {"solver": "implicit-ftrl,eta=0.5", "penalty": "l1=1e-3"}),
    ({"eta": 0.5, "l1": 1e-3, "solver": "comid"}, {"penalty": "l1=1e-3", "solver": "comid,eta=0.5"}),
    ({"eta": 2, "solver": "sgd,schedule=constant"}, {"solver": "sgd,schedule=constant,eta=2"}),
]


@pytest.mark.parametrize(("numbers", "texts"), SAME, ids=str)
@pytest.mark.parametrize("kind", [OnlineClassifier, OnlineRegressor])
def test_numbers_are_the_texts(kind, numbers, texts):
    y = Y if kind is OnlineClassifier else Y.astype(float)
    settings = {"random_state": 0, "loss": "hinge"} if kind is OnlineClassifier else {"random_state": 0, "loss": "absolute"}
    one, other = kind(**settings, **numbers).fit(X[:200], y[:200]), kind(**settings, **texts).fit(X[:200], y[:200])
    assert np.array_equal(one.coef_, other.coef_)
    assert np.array_equal(one.intercept_, other.intercept_)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"l1": 1e-3, "penalty": "l1=1e-4"}, "l1=0.001 and penalty='l1=1e-4' both name l1"),
        ({"l2": 1e-3, "penalty": "elastic-net,l1=1,l2=2"}, "both name l2"),
        ({"l1": -1.0}, r"l1 must be in \[0"),
        ({"l1": "1e-3"}, "l1 must be a number"),
        ({"eta": 1.0, "solver": "comid,eta=2"}, "both name eta"),
        ({"eta": 0.0}, r"eta must be in \(0"),
        ({"eta": 1.0, "solver": "pa"}, "setting 'eta' is not known"),
        ({"eta": 1.0, "solver": Comid()}, "eta=1 and a solver object exclude each other"),
    ],
)
def test_what_contradicts_itself_is_refused(settings, words):
    with pytest.raises((ValueError, TypeError), match=words):
        OnlineClassifier(**settings).fit(X[:50], Y[:50])


def test_searches_take_them_and_files_keep_them(tmp_path):
    search = GridSearchCV(OnlineClassifier(random_state=0), {"l1": [1e-4, 1.0], "eta": [0.1, 1.0]}, cv=2).fit(X, Y)
    assert search.best_params_["l1"] == 1e-4
    model = search.best_estimator_
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert (again.l1, again.l2, again.eta) == (1e-4, None, search.best_params_["eta"])
    again.save(tmp_path / "again")
    assert (tmp_path / "model").read_bytes() == (tmp_path / "again").read_bytes()
    assert b'"l1"' not in bytes_of(OnlineClassifier(random_state=0).fit(X, Y), tmp_path)[:4000]


def test_files_keep_numbers_that_json_has_not_as_doubles(tmp_path):
    given = {"l1": Fraction(1, 1024), "eta": Decimal("0.5"), "l2": np.longdouble(0.1)}
    model = OnlineClassifier(**given, random_state=0).fit(X[:50], Y[:50])
    doubles = OnlineClassifier(**{name: float(value) for name, value in given.items()}, random_state=0).fit(X[:50], Y[:50])
    assert bytes_of(model, tmp_path) == bytes_of(doubles, tmp_path)


def test_numbers_of_part_objects_are_doubles(tmp_path):
    for value in (Fraction(1, 10), Decimal("0.1"), np.longdouble(0.1), np.float32(0.1), np.float16(0.1), np.array(0.1)):
        learner = Learner("comid", "logistic", ElasticNet(l1=value))
        assert learner.penalty == ElasticNet(l1=float(value))
        assert type(learner.penalty.l1) is float  # single precision would pass to what is computed with it
        learner.save(tmp_path / "model")
        assert load(tmp_path / "model").penalty == learner.penalty
    solver, _ = build_solver(Comid(schedule=Power(eta=np.float32(0.1))), ElasticNet())
    assert type(solver.schedule.eta) is float


def bytes_of(model, folder):
    model.save(folder / "plain")
    return (folder / "plain").read_bytes().replace(b'\\"', b'"')


def test_a_path_takes_numbers():
    numbers = PenaltyPath(OnlineClassifier(random_state=0, l1=5.0), [1e-4, np.float64(1e-2), "l2=0.1"]).fit(X, Y)
    texts = PenaltyPath(OnlineClassifier(random_state=0), ["l1=1e-4", "l1=1e-2", "l2=0.1"]).fit(X, Y)
    assert np.array_equal(numbers.coefs_, texts.coefs_)
    assert numbers.penalties_ == ["l1=0.0001", "l1=0.01", "l2=0.1"]
    with pytest.raises(ValueError, match=r"penalties\[1\]: l1 must be in"):
        PenaltyPath(OnlineClassifier(), [1e-4, -1.0]).fit(X, Y)


def test_a_search_goes_on_where_a_solver_is_not_known():
    search = GridSearchCV(OnlineClassifier(random_state=0), {"solver": ["fiol", "nothing"]}, cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, Y)
    assert search.best_params_ == {"solver": "fiol"}
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [False, True]


def test_strengths_may_be_arrays_of_no_dimension(tmp_path):
    OnlineClassifier(l1=np.array(1e-3), random_state=0).fit(X, Y).save(tmp_path / "model")
    assert load(tmp_path / "model").l1 == 1e-3


def test_a_bare_l1_with_a_strength_is_the_l1_that_selection_knows():
    model = OnlineClassifier(penalty="l1", l1=1e-2, random_state=0)
    kept = SelectFromModel(model).fit(X, Y).get_support()
    assert np.array_equal(kept, model.fit(X, Y).coef_[0] != 0.0)
    assert 0 < kept.sum() < X.shape[1]
