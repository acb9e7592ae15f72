"""scikit-learn's callbacks: which tasks they are told of, what they may do, and that they change no bit of a model."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from onlinear import OnlineClassifier, OnlineRegressor, PenaltyPath, load
from onlinear.models import tasks
from onlinear.models.feed import ROWS

callback = pytest.importorskip("sklearn.callback", reason="this scikit-learn has no callbacks: it is older than 1.9")


class Recorder:
    """Notes what it is told; asks to stop after so many tasks, and fails at a hook where that is wanted."""

    def __init__(self, stop_after=None, fails_at=None):
        self.told, self.models, self.stop_after, self.fails_at = [], [], stop_after, fails_at

    def _note(self, hook, context):
        inner = context.parent is not None
        self.told.append((hook, context.task_name, context.task_id if inner else None, context.max_subtasks))
        if hook == self.fails_at and (inner or hook in ("setup", "teardown")):
            raise RuntimeError(hook)

    def setup(self, estimator, context):
        self._note("setup", context)

    def teardown(self, estimator, context):
        self._note("teardown", context)

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self._note("begin", context)

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None, fitted_estimator=None):
        self._note("end", context)
        self.models.append((fitted_estimator, X, y, metadata))
        return self.stop_after is not None and context.task_id + 1 == self.stop_after

    @property
    def tasks(self):
        """The tasks within the root, in order, each begun and ended."""
        found = [entry[:3] for entry in self.told if entry[2] is not None]
        assert [entry[0] for entry in found] == ["begin", "end"] * (len(found) // 2)
        assert [entry[2] for entry in found[::2]] == list(range(len(found) // 2))
        return [name for _, name, _ in found[::2]]

    @property
    def most(self):
        """The tasks that the root said there would be, after its setup, begin, end and teardown in that order."""
        root = [entry for entry in self.told if entry[2] is None]
        assert [entry[0] for entry in root] == ["setup", "begin", "end", "teardown"]
        return root[0][3]


class Propagated(Recorder):
    max_propagation_depth = None


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 4))
    return X, np.where(X @ [1.0, -1.0, 0.5, 0.0] + rng.standard_normal(300) > 0.0, "yes", "no")


def blocks(X, y, size=100):
    return [(X[first : first + size], y[first : first + size]) for first in range(0, len(y), size)]


def bits(model):
    return {name: array.tobytes() for name, array in model.learner_.freeze()[1].items()}


TOL = {"penalty": "l2=1e-2", "tol": 1e-6}
FITS = {
    "passes": ({"passes": 3}, False, ["pass"] * 3, 3),
    "one pass": ({}, False, ["block"], 1),
    "passes of a stream": ({"passes": 2}, True, ["pass"] * 2, 2),
    "one pass of a stream": ({}, True, ["block"] * 3, None),
    "an average in pieces": ({"average": "uniform", "solver": "fiol,eta=5"}, True, ["block"] * 3, None),
    "all rows at once": ({"solver": "batch-drs", "penalty": "l2=1e-2", "passes": 5}, False, [], 0),
    "to a gap": (TOL, False, "reading", None),
    "to a gap, after passes": ({**TOL, "solver": "fiol", "passes": 2}, False, "reading", None),
    "to a gap, by a stream": (TOL, True, "reading", None),
}


@pytest.mark.parametrize("name", FITS)
def test_the_tasks_of_a_fit(name, rows):
    params, streamed, wanted, most = FITS[name]
    X, y = rows
    given = (blocks(X, y),) if streamed else (X, y)
    more = {"classes": ["no", "yes"]} if streamed else {}
    told = Recorder()
    plain = OnlineClassifier(random_state=0, **params).fit(*given, **more)
    model = OnlineClassifier(random_state=0, **params).set_callbacks(told).fit(*given, **more)
    assert bits(model) == bits(plain)
    assert (model.n_iter_, model.history_) == (plain.n_iter_, plain.history_)
    assert told.most == most
    assert told.tasks == (wanted if isinstance(wanted, list) else [wanted] * len(told.tasks))
    assert len(told.tasks) > 1 or most is not None
    assert not {"_callback_fit_ctx", "_skl_callbacks_to_teardown"} & set(vars(model))
    *copies, last = told.models
    assert bits(last[0]) == bits(model)
    for copy, data, target, metadata in copies:
        assert (data is None) == (target is None) == streamed
        assert metadata == {}
        if copy is None:
            assert wanted == "reading"
            assert not streamed
        else:
            assert copy.predict(X).shape == (300,)


def test_blocks_of_rows_and_their_copies_stay_as_they_were():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2 * ROWS + 5, 2))
    y, told = X @ [1.0, 2.0], Recorder()
    model = OnlineRegressor(shuffle=False).set_callbacks(told).fit(X, y, np.ones(len(y)))
    assert told.tasks == ["block"] * 3
    assert told.most == 3
    for rows, (copy, _, _, metadata) in zip((ROWS, 2 * ROWS, len(y)), told.models, strict=False):
        assert copy.t_ == rows
        np.testing.assert_array_equal(copy.coef_, OnlineRegressor(shuffle=False).partial_fit(X[:rows], y[:rows]).coef_)
        assert len(metadata["sample_weight"]) == len(y)
    stopped = OnlineRegressor(shuffle=False).set_callbacks(Recorder(stop_after=2)).fit(X, y)
    assert (stopped.t_, stopped.n_iter_, model.t_) == (2 * ROWS, 1, len(y))


@pytest.mark.parametrize("streamed", [False, True])
def test_a_callback_may_end_the_fit(streamed, rows):
    X, y = rows
    given = (blocks(X, y), None, None, ["no", "yes"]) if streamed else (X, y)
    shuffle = None if streamed else False
    told = Recorder(stop_after=2)
    model = OnlineClassifier(passes=9, shuffle=shuffle).set_callbacks(told).fit(*given)
    assert told.tasks == ["pass", "pass"]
    assert model.n_iter_ == 2
    assert bits(model) == bits(OnlineClassifier(passes=2, shuffle=shuffle).fit(*given))
    gap = OnlineClassifier(**TOL).set_callbacks(Recorder(stop_after=2))
    with pytest.warns(ConvergenceWarning) as said:
        gap.fit(*given)
    assert said[0].filename == __file__
    assert not gap.converged_
    assert gap.n_passes_ <= 3
    if streamed:
        one = OnlineClassifier(average="uniform", solver="fiol,eta=5").set_callbacks(Recorder(stop_after=2)).fit(*given)
        assert one.t_ == 200


def test_the_tools_of_scikit_learn(rows, capsys):
    X, y = rows
    monitor = callback.ScoringMonitor(scoring=["accuracy", "neg_log_loss"])
    model = OnlineClassifier(passes=3, random_state=0).set_callbacks(monitor, callback.ProgressBar()).fit(X, y)
    found = monitor.get_logs().data
    assert [row["task_name"] for row in found] == ["fit", "pass", "pass", "pass"]
    assert found[0]["accuracy"] == found[-1]["accuracy"] == model.score(X, y)
    assert len({row["neg_log_loss"] for row in found[1:]}) == 3
    assert "OnlineClassifier - fit" in capsys.readouterr().out


@pytest.mark.parametrize("streamed", [False, True])
def test_after_the_last_of_passes_that_rows_chose_a_model_is_what_fit_leaves(streamed, rows):
    X, y = rows[0][:60], rows[1][:60]
    given = (blocks(X, y), None, None, ["no", "yes"]) if streamed else (X, y)
    told = Recorder()
    model = OnlineClassifier(passes="auto", random_state=0).set_callbacks(told).fit(*given)
    assert model.learner_.calibration_slope != 1.0
    assert bits(told.models[-2][0]) == bits(model)


def test_tables_with_text(rows):
    frame = pd.DataFrame({"a": rows[0][:, 0], "b": np.where(rows[0][:, 1] > 0.0, "x", "z")})
    monitor = callback.ScoringMonitor(scoring="accuracy")
    model = OnlineClassifier(passes=2, random_state=0).set_callbacks(monitor).fit(frame, rows[1])
    assert monitor.get_logs().data[-1]["accuracy"] == model.score(frame, rows[1])


def test_a_path_of_penalties(rows):
    X, y = rows
    penalties, told = ["l2=1e-3", "l2=1e-1"], Recorder(stop_after=2)
    path = PenaltyPath(OnlineClassifier(passes=4, shuffle=False), penalties).set_callbacks(told).fit(X, y)
    two = PenaltyPath(OnlineClassifier(passes=2, shuffle=False), penalties).fit(X, y)
    assert told.tasks == ["pass", "pass"]
    np.testing.assert_array_equal(path.coefs_, two.coefs_)
    np.testing.assert_array_equal(path.losses_, two.losses_)
    first, *_ = told.models[0]
    assert (first.t_, first.best_index_, path.estimator_at(0).n_iter_) == (300, path.best_index_, 2)
    within = Propagated()
    PenaltyPath(OnlineClassifier(), penalties, tol=1e-4).set_callbacks(within).fit(X, y)
    names = [name for hook, name, _, _ in within.told if hook == "end"]
    assert names.count("fit") == 3, "of the path, and of the two models"
    assert names.count("reading") > 2
    clone(path).fit(X, y)


def test_within_other_estimators(rows):
    X, y = rows
    told = Propagated()
    make_pipeline(StandardScaler(), OnlineClassifier(passes=2)).set_callbacks(told).fit(X, y)
    assert [name for hook, name, *_ in told.told if hook == "end"].count("pass") == 2
    search = GridSearchCV(OnlineClassifier(passes=2), {"eta": [0.5, 1.0]}, cv=2)
    bar = callback.ProgressBar(max_propagation_depth=2)
    assert search.set_callbacks(bar).fit(X, y).best_estimator_.t_ == 600


def test_copies_and_files(rows, tmp_path):
    X, y = rows
    told = Recorder()
    model = OnlineClassifier().set_callbacks(told).fit(X, y)
    assert bits(pickle.loads(pickle.dumps(model))) == bits(model)
    before = len(told.told)
    clone(model).fit(X, y)
    assert len(told.told) == 2 * before
    model.partial_fit(X, y)
    model.set_callbacks().fit(X, y)
    assert len(told.told) == 2 * before
    model.set_callbacks(told).save(tmp_path / "m")
    load(tmp_path / "m").fit(X, y)
    assert len(told.told) == 2 * before
    with pytest.raises(TypeError, match="FitCallback"):
        model.set_callbacks(print)


@pytest.mark.parametrize("hook", ["setup", "begin", "end", "teardown"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_callback_that_fails(hook, streamed, rows):
    X, y = rows
    given = (blocks(X, y), None, None, ["no", "yes"]) if streamed else (X, y)
    told, model = Recorder(fails_at=hook), OnlineClassifier(random_state=0).fit(X, y)
    before = bits(model)
    with pytest.raises(RuntimeError, match=hook):
        model.set_callbacks(told).fit(*given)
    assert told.told[-1][0] == "teardown"
    assert not {"_callback_fit_ctx", "_skl_callbacks_to_teardown"} & set(vars(model))
    if hook == "setup" or (hook == "begin" and streamed):
        assert bits(model) == before
    with pytest.raises(ValueError, match="0 feature"):
        model.set_callbacks(Recorder()).fit(X[:, :0], y)
    model.set_callbacks().fit(X, y)


def test_an_older_scikit_learn_has_no_such_method(monkeypatch, rows):
    monkeypatch.setattr(tasks, "find_spec", lambda name: None)
    assert not hasattr(OnlineClassifier(), "set_callbacks")
    with pytest.raises(AttributeError, match="set_callbacks") as raised:
        _ = PenaltyPath(OnlineClassifier(), ["none"]).set_callbacks
    assert "needs scikit-learn 1.9 or later" in str(raised.value.__cause__)
    OnlineClassifier().fit(*rows)


@pytest.mark.parametrize("call", ["fit", "partial_fit"])
def test_what_callbacks_give_an_estimator_that_learns_a_stream_stays(call):
    def tell(progress):
        progress.estimator.told_ = progress.rows
        progress.estimator.set_params(verbose=0, callbacks=None)

    blocks = [(np.eye(2), [0, 1])] * 3
    model = OnlineClassifier(callbacks=[tell], verbose=False)
    getattr(model, call)(blocks)
    assert model.told_ == 6
    assert model.callbacks is None
    assert not hasattr(model.set_params(callbacks=[]).fit(blocks), "told_")
