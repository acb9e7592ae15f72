"""The built-in functions for single rows do what the methods do, whatever they are given, and never crash."""

import copy
import gc
import inspect
import os
import pickle
import signal
import sys
import threading
import weakref

import numpy as np
import pytest
from seldom import often
from single_rows import CLASSIFIER

from onlinear import DivergenceError, Learner
from onlinear.compiled.calls import TAKES_CALLS
from onlinear.compiled.objects import AnyObject
from onlinear.learner import row_calls

pytestmark = pytest.mark.skipif(not TAKES_CALLS, reason="this interpreter takes no built-in functions")

RNG = np.random.default_rng(5)
D, N = 12, 60
ROWS = [np.flatnonzero(RNG.random(D) < 0.5) for _ in range(N)]
VALUES = [RNG.standard_normal(len(row)) for row in ROWS]
Y = np.where(RNG.random(N) < 0.5, -1.0, 1.0).tolist()
SETTINGS = [
    {"solver": "comid", "penalty": "l1,l1=0.01"},
    {"solver": "odrs", "penalty": "l1,l1=0.01", "average": "uniform"},
    CLASSIFIER | {"fit_intercept": True},
    {"solver": "ftrl", "penalty": "l1,l1=0.01", "scale": "dense", "fit_intercept": True},  # as in test_learn_one.py
    {"solver": "ftrl", "penalty": "l1,l1=0.01", "scale": "rms", "forget": 50.0},
]


def made(n_features=D, **settings):
    learner = Learner(**({"solver": "comid", "loss": "hinge", "n_features": n_features} | settings))
    learner.learn_one(ROWS[0], VALUES[0], Y[0])
    learner.predict_one(ROWS[0], VALUES[0])
    return learner


def bits(learner):
    return {name: array.tobytes() for name, array in learner.freeze()[1].items()}


def is_built_in(learner):
    return all(inspect.isbuiltin(getattr(learner, name)) for name in ("learn_one", "predict_one"))


@pytest.mark.parametrize("settings", often(SETTINGS, SETTINGS[:-1]), ids=lambda settings: settings["solver"])
def test_the_same_scores_and_states_as_the_methods(settings):
    quick, slow = made(**settings), made(**settings)
    assert is_built_in(quick)
    for row, values, y in zip(ROWS[1:], VALUES[1:], Y[1:], strict=True):
        assert quick.predict_one(row, values) == Learner.predict_one(slow, row, values)
        assert quick.learn_one(row, values, y) == Learner.learn_one(slow, row, values, y)
    assert quick.words[row_calls.LEARNING] == quick.words[row_calls.MOVES]  # compiled rows were learned
    assert bits(quick) == bits(slow)
    for _ in range(40):  # until the weights are listed
        assert quick.predict_one(ROWS[0], VALUES[0]) == quick.predict(dense(0))[0]
    assert quick.words[row_calls.LISTED] == quick.words[row_calls.MOVES]


def dense(k):
    row = np.zeros((1, D))
    row[0, ROWS[k]] = VALUES[k]
    return row


class Real(float):
    """A number with a type of its own."""


class Whole(int):
    """A whole number with a type of its own."""


TARGETS = [1, -1, True, np.float64(1.0), np.float32(1.0), np.int64(1), Real(1.0), Whole(1), np.array(1.0), 2**60, -(2**2000)]


@pytest.mark.parametrize("target", TARGETS, ids=range(len(TARGETS)))
def test_targets_of_any_type(target):
    quick, slow = made(loss="huber"), made(loss="huber")
    row = ROWS[1], VALUES[1], target
    assert outcome(quick.learn_one, *row) == outcome(Learner.learn_one, slow, *row)
    assert bits(quick) == bits(slow)


def outcome(call, *args):
    """What a call gives, or its error."""
    try:
        return repr(call(*args))
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize(
    "wrong",
    [
        (),
        (ROWS[1],),
        (ROWS[1], VALUES[1]),
        (ROWS[1], VALUES[1], 1.0, 2.0),
        (ROWS[1], VALUES[1], None),
        (ROWS[1], VALUES[1], "1"),
        (ROWS[1], VALUES[1], float("nan")),
        (ROWS[1], VALUES[1][:1], 1.0),
        (None, None, 1.0),
        ({}, {}, 1.0),
        ({"a": 1.0}, np.zeros(6, np.int64), 1.0),
        (object(), type, 1.0),
        (ROWS[1] + D, VALUES[1], 1.0),
        (ROWS[1], VALUES[1] * np.inf, 1.0),
        (ROWS[1].astype("M8[s]"), VALUES[1], 1.0),
        (ROWS[1].astype(object), VALUES[1].astype(object), 1.0),
    ],
    ids=range(16),
)
def test_what_is_wrong_is_refused_as_by_the_methods(wrong):
    learner = made()
    before, seen = bits(learner), []
    for call, given in ((learner.learn_one, wrong), (learner.predict_one, wrong[:2] if len(wrong) != 2 else wrong[:1])):
        method = getattr(Learner, call.__name__)
        seen += [outcome(call, *given), outcome(method, learner, *given)]
    assert seen[0] == seen[1]
    assert seen[2] == seen[3]
    assert isinstance(seen[0], tuple)  # nothing of it is learned
    assert bits(learner) == before


def test_arguments_by_name():
    quick, slow = made(), made()
    for k in range(1, 5):
        found = quick.learn_one(y=Y[k], indices=ROWS[k], values=VALUES[k])
        assert found == slow.learn_one(ROWS[k], VALUES[k], Y[k])
        assert quick.predict_one(ROWS[k], values=VALUES[k]) == slow.predict_one(ROWS[k], VALUES[k])
    for wrong in ({"x": 1}, {"indices": 1}):
        with pytest.raises(TypeError, match=r"unexpected keyword|multiple values"):
            quick.learn_one(ROWS[1], VALUES[1], 1.0, **wrong)
    assert bits(quick) == bits(slow)


def test_they_say_what_the_methods_say():
    learner = made()
    for name in ("learn_one", "predict_one"):
        found, method = getattr(learner, name), getattr(Learner, name)
        assert found.__name__ == name
        assert inspect.getdoc(found) == inspect.getdoc(method)
        assert list(inspect.signature(found).parameters) == list(inspect.signature(method).parameters)[1:]


def test_a_class_of_its_own_keeps_its_methods():
    class Counting(Learner):
        calls = 0

        def learn_one(self, *row):
            self.calls += 1
            return super().learn_one(*row)

    learner = Counting("comid", "hinge", n_features=D)
    for k in range(5):
        learner.learn_one(ROWS[k], VALUES[k], Y[k])
    assert learner.calls == 5
    assert not is_built_in(learner)


def test_copies_have_their_own():
    learner = made()
    for other in (copy.copy(learner), copy.deepcopy(learner), pickle.loads(pickle.dumps(learner))):
        before = bits(learner)
        assert "learn_one" not in vars(other)
        other.learn_one(ROWS[1], VALUES[1], Y[1])
        assert other.t == 2
        assert bits(learner) == before


def test_a_method_is_pickled_with_its_learner_as_methods_of_python_are():
    learner = made()
    call = pickle.loads(pickle.dumps(learner.predict_one))
    assert call.__self__ is not learner
    assert call(ROWS[1], VALUES[1]) == learner.predict_one(ROWS[1], VALUES[1])


def test_a_learner_that_nobody_has_is_freed_and_a_function_keeps_its_own():
    learner = made()
    for k in range(5):
        learner.learn_one(ROWS[k], VALUES[k], Y[k])
    gone, call = weakref.ref(learner), learner.learn_one
    del learner
    gc.collect()
    for k in range(5):
        assert np.isfinite(call(ROWS[k], VALUES[k], Y[k]))
    assert gone().t == 11
    del call
    gc.collect()
    assert gone() is None


@pytest.mark.usefixtures("no_collection")
def test_no_reference_is_lost_or_kept():
    learner = made()
    row, values, y = ROWS[1].copy(), VALUES[1].copy(), 1.0 - float(N) / N + 1.0
    names = (learner.learn_one.__self__, learner.lock, None, True, y, row, values)
    calls = [lambda: learner.learn_one(row, values, y), lambda: learner.predict_one(row, values)]
    calls += [lambda: learner.learn_one(row, values=values, y=y), lambda: learner.learn_one(row[::-1], values[::-1], y)]
    for call in calls:
        for _ in range(500):  # the first decide what is centred, and some are compiled for, which keeps references to None
            call()
        before = [sys.getrefcount(name) for name in names]
        for _ in range(500):
            call()
        after = [sys.getrefcount(name) for name in names]
        assert max(abs(a - b) for a, b in zip(before, after, strict=True)) < 100
    with pytest.raises(TypeError):
        learner.learn_one(row)
    found = [learner.learn_one(row, values, y) for _ in range(10)]
    assert all(type(score) is float and sys.getrefcount(score) <= 5 for score in found)


def test_divergence_is_told_and_the_lock_is_free_again():
    learner = made(solver="sgd,eta=1e60", loss="squared")
    found = [outcome(learner.learn_one, *row) for row in zip(ROWS[1:9], VALUES[1:9], Y[1:9], strict=True)]
    assert isinstance(found[1], str)  # built in
    assert found[-1][0] is DivergenceError
    with pytest.raises(DivergenceError, match="learns no more"):
        learner.learn_one(ROWS[0], VALUES[0], Y[0])
    assert free(learner.lock)


def free(lock):
    """Whether another thread may take it."""
    found = []

    def look():
        found.append(lock.acquire(blocking=False))
        if found[0]:
            lock.release()

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    return found[0]


def failing(here, first, second, y):
    return 1.0 / (y - y)


def test_an_error_in_compiled_code_is_divergence():
    learner = made()
    learner.learn_one(ROWS[1], VALUES[1], Y[1])
    held, others = learner._one._learn.held, (AnyObject(), AnyObject(), 1.0)
    held.compile(failing, {}, *others)
    learner.words[row_calls.LEARNING + row_calls.CODE] = held.address(failing, {}, *others)
    with pytest.raises(DivergenceError, match="step 3"):
        learner.learn_one(ROWS[2], VALUES[2], Y[2])
    assert free(learner.lock)


def test_threads_that_learn_predict_and_save_lose_no_row():
    learner, n, errors = made(average="uniform"), 400, []

    def learn():
        try:
            for k in range(n):
                learner.learn_one(ROWS[k % N], VALUES[k % N], Y[k % N])
                learner.predict_one(ROWS[k % N], VALUES[k % N])
        except BaseException as error:
            errors.append(error)

    def blocks():
        try:
            for k in range(20):
                learner.learn(dense(k), [Y[k]])
                learner.freeze()
        except BaseException as error:
            errors.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=learn) for _ in range(3)] + [threading.Thread(target=blocks)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not errors
    assert learner.t == 1 + 3 * n + 20


def test_a_row_waits_for_a_thread_that_has_the_learner():
    learner = made()
    learner.learn_one(ROWS[1], VALUES[1], Y[1])
    learner.lock.acquire()
    thread = threading.Thread(target=lambda: learner.learn_one(ROWS[2], VALUES[2], Y[2]))
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()
    assert learner.t == 2
    learner.learn_one(ROWS[3], VALUES[3], Y[3])  # whoever has it may go on
    learner.moved()
    learner.lock.release()
    thread.join()
    assert learner.t == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.parametrize("reads", [True, False])
def test_the_child_of_a_fork_waits_for_no_thread_of_its_parent(reads):
    learner = made()
    learner.learn_one(ROWS[1], VALUES[1], Y[1])
    begun, go = threading.Event(), threading.Event()

    def hold():
        with learner.reading() if reads else learner.lock:
            begun.set()
            go.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            for k in range(4):
                learner.learn_one(ROWS[k], VALUES[k], Y[k])
                learner.predict_one(ROWS[k], VALUES[k])
            os._exit(0 if is_built_in(learner) and learner.t == 6 else 3)
        except RuntimeError as error:
            os._exit(2 if "fork" in str(error) else 4)
        finally:
            os._exit(5)
    go.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (0 if reads else 2)


def test_an_interrupt_leaves_the_lock_free(monkeypatch):
    learner = made()
    learner.learn_one(ROWS[1], VALUES[1], Y[1])

    def stop(*row):
        raise KeyboardInterrupt

    monkeypatch.setattr(learner._one, "end", stop)
    with pytest.raises(KeyboardInterrupt):
        learner.learn_one(ROWS[2][::-1].astype(np.int16), VALUES[2], Y[2])  # which compiled code does not take
    assert free(learner.lock)
    assert learner.t == 2
