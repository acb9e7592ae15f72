"""``predict_one`` gives what ``predict`` gives for the row, bit for bit, whenever it is called."""

import copy
import pickle
import threading

import numpy as np
import pytest
from seldom import seldom

from onlinear import DivergenceError, Learner, OnlineClassifier, OnlineRegressor, load

N, D = 120, 12
RNG = np.random.default_rng(3)
X = np.round(RNG.standard_normal((N, D)), 2) * (RNG.random((N, D)) < 0.5)
Y = np.where(RNG.random(N) < 0.5, -1.0, 1.0)
SETTINGS = {
    "comid": {"solver": "comid", "loss": "hinge", "penalty": "l1=0.01"},
    "averaged": {"solver": "fiol,eta=5", "loss": "logistic", "average": "adaptive", "scale": "rms", "fit_intercept": True},
    "rls": {"solver": "rls", "loss": "squared", "n_features": D},
    "targets": {"solver": "fiol,eta=5", "loss": "squared", "targets": "relative", "fit_intercept": True},
}


def entries(row, columns=np.int64, numbers=np.float64):
    found = np.flatnonzero(row)
    return found.astype(columns), row[found].astype(numbers)


@pytest.mark.parametrize(
    ("name", "outputs"),
    [*((name, 1) for name in SETTINGS), *(seldom(name, 3) if name == "averaged" else (name, 3) for name in SETTINGS)],
)
def test_it_gives_the_bits_of_predict_between_rows_that_are_learned(name, outputs):
    learner = Learner(**SETTINGS[name], n_outputs=outputs)
    targets = Y if outputs == 1 else np.stack([Y, -Y, np.ones(N)], axis=1)
    for first in (0, 1, 2, 60):
        learner.learn(X[first : first + 1 if first < 60 else N], targets[first : first + 1 if first < 60 else N])
        before = learner.freeze()[1]["losses"].tobytes()
        for _ in range(3):
            for row in X[:5]:
                found = learner.predict_one(*entries(row))
                assert np.asarray(found).tobytes() == learner.predict(row[None])[0].tobytes()
                assert isinstance(found, float) == (outputs == 1)
        assert learner.freeze()[1]["losses"].tobytes() == before


def test_single_rows_may_be_learned_and_scored_in_turn():
    learner, twin = Learner("comid", "hinge", "l1=0.01"), Learner("comid", "hinge", "l1=0.01")
    for row, y in zip(X, Y, strict=True):
        scores = [learner.predict_one(*entries(row)) for _ in range(3)]
        assert set(scores) == {twin.predict(row[None])[0]}
        assert learner.learn_one(*entries(row), y) == twin.learn_one(*entries(row), y) == pytest.approx(scores[0])


def test_any_types_and_rows_that_are_not_plain():
    learner = Learner("comid", "hinge").learn(X, Y)
    wanted = learner.predict(X[7:8])[0]
    columns, values = entries(X[7])
    for _ in range(3):
        for same in (
            (columns.astype(np.uint32), values),
            (columns.tolist(), values.tolist()),
            (columns[::-1], values[::-1]),
            (np.repeat(columns, 2)[::2], values),
            (np.append(columns, 10**6), np.append(values, 4.0)),  # a column that no row has had
            (np.repeat(columns, 2), np.repeat(values / 2.0, 2)),
        ):
            assert learner.predict_one(*same) == wanted
    assert learner.predict_one(np.array([], int), np.array([])) == 0.0


@pytest.mark.parametrize("fixed", [True, False])
def test_wrong_rows_are_refused_each_time(fixed):
    learner = Learner("comid", "hinge", n_features=D if fixed else None).learn(X, Y)
    columns, values = np.arange(3), np.ones(3)
    for _ in range(3):
        learner.predict_one(columns, values)
        for wrong in ((columns, values[:2]), (columns - 1, values), (columns, values * np.nan), (columns[None], values[None])):
            with pytest.raises(ValueError, match=r"1-D|negative|NaN"):
                learner.predict_one(*wrong)
        with pytest.raises(TypeError, match="integers"):
            learner.predict_one(columns + 0.5, values)
        if fixed:
            with pytest.raises(ValueError, match="features"):
                learner.predict_one(columns + D, values)


def test_what_has_diverged_is_refused():
    learner = Learner("comid,eta=1e300", "squared", n_features=D)
    for _ in range(3):
        learner.predict_one(np.array([1]), np.array([1.0]))
    with pytest.raises(DivergenceError):
        learner.learn(X * 1e9, Y)
    with pytest.raises(DivergenceError):
        learner.predict_one(np.array([1]), np.array([1.0]))


def test_estimators_and_their_files(tmp_path):
    labels = np.array(["a", "b", "c"])[RNG.integers(3, size=N)]
    models = [
        OnlineClassifier().fit(X, Y),
        OnlineClassifier().fit(X, labels),
        OnlineRegressor(loss="poisson").fit(X, np.abs(X[:, 0])),
    ]
    models.append(OnlineRegressor().fit(X, np.stack([Y, X[:, 1]], axis=1)))
    for number, model in enumerate(models):
        model.save(tmp_path / "whole")
        model.save(tmp_path / "final", final=True)
        for same in (model, load(tmp_path / "whole"), load(tmp_path / "final")):
            for row in (*X[:4], *X[:4]):
                assert np.all(same.predict_one(*entries(row)) == model.predict(row[None])[0])
                if number < 2:
                    chances = same.predict_proba_one(*entries(row))
                    assert list(chances) == model.classes_.tolist()
                    assert list(chances.values()) == model.predict_proba(row[None])[0].tolist()
    with pytest.raises(AttributeError, match="predict_proba_one"):
        _ = OnlineClassifier("hinge").fit(X, Y).predict_proba_one


@pytest.mark.parametrize("again", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("final", [False, True])
def test_copies_score_rows_by_their_own_weights(again, final, tmp_path):
    OnlineClassifier().fit(X, RNG.integers(3, size=N)).save(tmp_path / "model", final=final)
    model = load(tmp_path / "model")
    row = entries(X[1])
    wanted = [model.predict_proba_one(*row) for _ in range(3)][-1]
    twin = again(model)
    assert not {"_one", "_score"} & set(vars(twin.learner_))
    del model
    assert [twin.predict_proba_one(*row) for _ in range(3)] == [wanted] * 3


def test_threads_share_a_final_model(tmp_path):
    OnlineClassifier().fit(X, RNG.integers(3, size=N)).save(tmp_path / "model", final=True)
    model, wrong = load(tmp_path / "model"), []
    wanted = [model.predict_proba_one(*entries(row)) for row in X[:2]]

    def look(which):
        wrong.extend(1 for _ in range(2000) if model.predict_proba_one(*entries(X[which])) != wanted[which])

    threads = [threading.Thread(target=look, args=(which,)) for which in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_threads_see_whole_steps():
    learner = Learner("comid", "hinge", "l1=0.01", n_outputs=2).learn(X, np.stack([Y, Y], axis=1))
    wrong = []

    def look():
        for _ in range(2000):
            a, b = learner.predict_one(*entries(X[3]))
            if a != b:
                wrong.append((a, b))

    threads = [threading.Thread(target=look) for _ in range(2)]
    for thread in threads:
        thread.start()
    for k in range(200):
        learner.learn(X[k % N : k % N + 1], [[Y[k % N]] * 2])
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_dense_row_is_told_how_it_is_given():
    model = OnlineClassifier(random_state=0).fit(X, Y)
    for read in (model.predict_one, model.predict_proba_one):
        with pytest.raises(TypeError, match=r"For a dense row give np\.flatnonzero\(row\) and row\[row != 0\]"):
            read(X[0])
    assert model.predict_one(np.flatnonzero(X[0]), X[0][X[0] != 0]) == model.predict(X[:1])[0]
