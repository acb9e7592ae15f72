"""The built-in functions of estimators for dicts do what the methods do, whatever they are given, and never crash."""

import copy
import gc
import inspect
import os
import pickle
import signal
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from seldom import seldom
from sklearn.base import clone

from onlinear import OnlineClassifier, OnlineRegressor, load
from onlinear.compiled.calls import TAKES_CALLS
from onlinear.models.dict_calls import NAMES

pytestmark = pytest.mark.skipif(not TAKES_CALLS, reason="this interpreter takes no built-in functions")

DRAW = np.random.default_rng(8).normal(size=(80, 4))
ROWS = [{f"x{j}": float(value) for j, value in enumerate(row)} for row in DRAW]
Y = [row["x0"] > 0.1 for row in ROWS]
MODELS = [
    OnlineClassifier(),
    OnlineClassifier(solver="ftrl", average="none"),
    OnlineClassifier("hinge", penalty="l1=1e-3", solver="comid"),
    OnlineClassifier("exponential", solver="ftrl", forget=50.0),
    OnlineRegressor(),
    OnlineRegressor("poisson", solver="comid"),
    OnlineRegressor(solver="odrs", penalty="l1=1e-3", average="uniform"),
]
# Kernels of a model take seconds: these stand near others here, and test_row_calls.py has the second.
LONG = (MODELS[1], MODELS[2], MODELS[3], MODELS[6])
EACH = [seldom(model) if model in LONG else model for model in MODELS]


def target(model, row):
    return row["x0"] > 0.1 if isinstance(model, OnlineClassifier) else abs(row["x0"])


def trained(settings, count=6):
    model = clone(settings)
    for row in ROWS[:count]:
        model.learn_one(row, target(model, row))
        model.predict_one(row)
    return model


def built_in(model):
    return {name for name in NAMES if inspect.isbuiltin(getattr(model, name, None))}


def bits(model):
    return {name: array.tobytes() for name, array in model.learner_.freeze()[1].items()}


def outcome(call, *args, **named):
    """What a call gives, or its error; of a model its name."""
    try:
        return repr(call(*args, **named))
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("settings", EACH, ids=lambda model: f"{model.loss} {model.solver}")
def test_the_same_predictions_and_states_as_the_methods(settings):
    quick, slow = trained(settings), trained(settings)
    kind = type(quick)
    assert "learn_one" in built_in(quick)
    assert ("predict_one" in built_in(quick)) == (quick.loss != "poisson")
    for row in ROWS:
        assert quick.predict_one(row) == kind.predict_one(slow, row)
        if hasattr(quick, "predict_proba_one"):
            chances = quick.predict_proba_one(row)
            assert chances == kind.__dict__["predict_proba_one"].__get__(slow)(row)
            assert list(chances) == [False, True]
        assert quick.learn_one(row, target(quick, row)) is quick
        kind.learn_one(slow, row, target(slow, row))
    assert bits(quick) == bits(slow)
    for row in ROWS:  # until all weights are listed
        assert quick.predict_one(row) == quick.predict([row])[0]


@pytest.mark.parametrize("settings", EACH, ids=lambda model: f"{model.loss} {model.solver}")
def test_final_models_predict_by_built_in_functions_too(settings, tmp_path):
    model = trained(settings, 30)
    model.save(tmp_path / "final", final=True)
    final = load(tmp_path / "final")
    for row in ROWS:
        assert final.predict_one(row) == final.predict([row])[0]
        if hasattr(final, "predict_proba_one"):
            assert final.predict_proba_one(row) == model.predict_proba_one(row)
    assert built_in(final) == built_in(model) - {"learn_one"}
    columns, score = np.arange(4), final.learner_.predict_one
    for values in (DRAW[0], DRAW[1].astype(np.float32), DRAW[2].tolist(), DRAW[0, ::-1]):
        for call in (final.learner_.predict_one, score):
            assert call(columns, values) == final.learner_.predict([np.asarray(values)])[0]
    assert inspect.isbuiltin(final.learner_.predict_one)
    for other in (copy.copy(final), copy.deepcopy(final), pickle.loads(pickle.dumps(final))):
        assert not built_in(other)
        assert other.predict_one(ROWS[0]) == final.predict_one(ROWS[0])
    for row in ({}, {"x0": np.nan}, {"x0": "a"}, None, 3):
        assert outcome(final.predict_one, row) == outcome(type(final).predict_one, final, row)
    assert outcome(final.learn_one, ROWS[0], target(final, ROWS[0])) == outcome(final.learner_.learn)


def test_chances_of_other_losses_are_theirs(tmp_path):
    model = OnlineClassifier("exponential", solver="fiol", average="none", scale="none").fit(ROWS, Y)
    model.save(tmp_path / "final", final=True)
    final = load(tmp_path / "final")
    for row in ROWS:
        assert list(final.predict_proba_one(row).values()) == final.predict_proba([row])[0].tolist()
    assert built_in(final) == {"predict_one"}


@pytest.mark.parametrize(
    "row", [{}, None, 3, [("x0", 1.0)], {"x0": np.nan}, {"x0": "a"}, {1: 2.0}, dict.fromkeys(ROWS[0])], ids=repr
)
@pytest.mark.parametrize("settings", [MODELS[0], MODELS[4]], ids=["classes", "numbers"])
def test_rows_of_any_kind(settings, row):
    quick, slow = trained(settings), trained(settings)
    y = target(quick, ROWS[0])
    assert outcome(quick.predict_one, row) == outcome(type(slow).predict_one, slow, row)
    assert outcome(quick.learn_one, row, y) == outcome(type(slow).learn_one, slow, row, y)
    for given in ((), (row,), (row, y, 1.0, None, None)):
        found = outcome(quick.learn_one, *given)
        assert found == outcome(type(slow).learn_one, slow, *given)
        assert isinstance(found, tuple)
    assert bits(quick) == bits(slow)


@pytest.mark.parametrize("y", [1, 0, 1.0, np.True_, np.int64(1), "True", None, [], 2, np.nan, np.array(True), 2**70], ids=repr)
@pytest.mark.parametrize("settings", [MODELS[0], MODELS[4]], ids=["classes", "numbers"])
def test_targets_of_any_kind(settings, y):
    quick, slow = trained(settings), trained(settings)
    assert outcome(quick.learn_one, ROWS[9], y) == outcome(type(slow).learn_one, slow, ROWS[9], y)
    assert bits(quick) == bits(slow)


@pytest.mark.parametrize("settings", [MODELS[0], MODELS[4]], ids=["classes", "numbers"])
def test_weights_and_names(settings):
    quick, slow = trained(settings), trained(settings)
    y = target(quick, ROWS[9])
    for given, named in [
        ((ROWS[9], y, 1.0), {}),
        ((ROWS[9], y, 2.5), {}),
        ((ROWS[9],), {"y": y}),
        ((ROWS[9], y), {"weight": 0.5}),
    ]:
        quick.learn_one(*given, **named)
        type(slow).learn_one(slow, *given, **named)
    assert outcome(quick.learn_one, ROWS[9], y, -1.0) == outcome(type(slow).learn_one, slow, ROWS[9], y, -1.0)
    for row in (dict(reversed(ROWS[9].items())), ROWS[9] | {"more": 1.0}, ROWS[9], {"x0": 1.0}):
        for _ in range(3):
            assert quick.predict_one(row) == type(slow).predict_one(slow, row)
            quick.learn_one(row, y)
            type(slow).learn_one(slow, row, y)
    columns, values = np.arange(3), np.ones(3)
    assert quick.predict_one(columns, values) == type(slow).predict_one(slow, columns, values)
    assert bits(quick) == bits(slow)
    for name in built_in(quick):
        found, method = getattr(quick, name), getattr(type(quick), name)
        assert list(inspect.signature(found).parameters) == list(inspect.signature(method).parameters)[1:]
        assert inspect.getdoc(found) == inspect.getdoc(method)


@pytest.mark.parametrize("settings", MODELS[:1] + MODELS[4:5])
def test_a_method_is_pickled_with_its_model_as_methods_of_python_are(settings):
    model = trained(settings)
    for name in built_in(model) - {"learn_one"}:
        call = pickle.loads(pickle.dumps(getattr(model, name)))
        assert call.__self__ is not model
        assert call(ROWS[1]) == getattr(model, name)(ROWS[1])


def test_copies_have_their_own_and_a_model_that_is_trained_anew_too():
    model = trained(MODELS[0])
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model)), clone(model)):
        assert not built_in(other)
    other = copy.deepcopy(model)
    before = bits(model)
    other.learn_one(ROWS[9], True)
    assert bits(model) == before
    assert other.t_ == 7
    old = model.learn_one
    model.partial_fit(ROWS, Y)
    model.learn_one(ROWS[9], True)
    assert model.t_ == 6 + len(ROWS) + 1
    model.fit(DRAW, np.where(Y, "yes", "no"))
    for learn in (old, model.learn_one):
        with pytest.raises(ValueError, match="names"):
            learn(ROWS[0], "yes")
    assert model.predict_one(np.arange(4), DRAW[0]) in ("yes", "no")
    model.fit(ROWS, [str(y) for y in Y])
    assert outcome(old, ROWS[0], True)[0] is ValueError
    for row, y in zip(ROWS, Y, strict=True):
        model.learn_one(row, str(y))
    assert model.predict_one(ROWS[0]) == model.predict(ROWS[:1])[0]


def test_a_class_of_its_own_keeps_its_methods():
    class Counting(OnlineClassifier):
        def learn_one(self, *row):
            self.calls_ = getattr(self, "calls_", 0) + 1
            return super().learn_one(*row)

    model = Counting()
    for row, y in zip(ROWS, Y, strict=True):
        model.learn_one(row, y)
    assert model.calls_ == len(ROWS)
    assert not built_in(model)


@pytest.mark.usefixtures("no_collection")
def test_no_reference_is_lost_or_kept():
    model, row = trained(MODELS[0], 20), dict(ROWS[3])
    watched = model, model.learner_, row, True, False, None, *row.values()
    for call, given in ((model.learn_one, (row, True)), (model.predict_one, (row,)), (model.predict_proba_one, (row,))):
        changes = []
        for _ in range(5):  # a thread that another test has left may count None meanwhile
            before = [sys.getrefcount(one) for one in watched]
            for _ in range(500):
                call(*given)
            changes.append(max(abs(sys.getrefcount(one) - was) for one, was in zip(watched, before, strict=True)))
        assert min(changes) < 100
    assert all(sys.getrefcount(chance) <= 4 for chance in model.predict_proba_one(row).values())


def test_a_model_that_nobody_has_is_freed():
    model = trained(MODELS[0], 20)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_threads_lose_no_row():
    model, n, errors = trained(MODELS[0]), 300, []

    def learn():
        try:
            for k in range(n):
                model.learn_one(ROWS[k % 80], Y[k % 80])
                model.predict_proba_one(ROWS[k % 80])
        except BaseException as error:
            errors.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=learn) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(30):
            model.partial_fit(ROWS[:2], Y[:2])
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not errors
    assert model.t_ == 6 + 3 * n + 60


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_the_child_of_a_fork_waits_for_no_thread_of_its_parent():
    model = trained(MODELS[0], 20)
    begun, go = threading.Event(), threading.Event()

    def hold():
        with model.learner_.reading():
            begun.set()
            go.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        for row, y in zip(ROWS[:5], Y, strict=False):
            model.learn_one(row, y)
            model.predict_one(row)
        os._exit(0 if model.t_ == 25 else 3)
    go.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


HAMMER = """
import threading, time
from contextlib import suppress
from onlinear import OnlineClassifier

rows = [{f"x{j}": float((k * 7 + j * 3) % 11) - 5.0 for j in range(10)} for k in range(50)]
odd = [{"x0": "no number"}, {"x0": float("nan")}, {"x1": 1.0}, {"new": 1e200}]
model = OnlineClassifier()
for k in range(60):
    model.learn_one(rows[k % 50], k % 2)
    model.predict_one(rows[k % 50])
end = time.monotonic() + 1.0

def use(k):
    while time.monotonic() < end:
        k += 1
        with suppress(ValueError):
            if k % 11 == 0:
                model._row_quick._reader._rows.clear()  # as many names do
            elif k % 5 == 0:
                model.predict_one(odd[k % 4])
            elif k % 7 == 0:
                model.learn_one(odd[k % 4], 1)
            elif k % 3:
                model.predict_one(rows[k % 50])
                model.predict_proba_one(rows[k % 50])
            else:
                model.learn_one(rows[k % 50], k % 2)

threads = [threading.Thread(target=use, args=(1000 * k,)) for k in range(6)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_names_that_other_threads_let_go_are_not_used():
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", HAMMER], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
