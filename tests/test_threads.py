"""Threads that share a model: every row is learned once, readers see whole calls, copies and forks have locks of their own; and
what is done where the system has no thread to give."""

import copy
import io
import itertools
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from garbage import collected
from seldom import seldom
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_info, threadpool_limits

import onlinear
from onlinear import Learner, OnlineClassifier, OnlineRegressor, PenaltyPath, load
from onlinear.compiled.methods import once
from onlinear.files import model_file
from onlinear.papers import reproduce
from onlinear.papers.data import Where
from onlinear.papers.store import Store
from onlinear.shards import Local, runners
from onlinear.solvers.packs import team
from onlinear.streams.ahead import Ahead
from onlinear.streams.svmlight import Svmlight
from onlinear.threads import Pool, begin_worker, begun_deaf, one_blas_thread
from onlinear.training.training import Training

HOME = Path(onlinear.__file__).parent.parent
N, D = 240, 12
rng = np.random.default_rng(0)
X = sp.random(N, D, 0.3, "csr", random_state=np.random.RandomState(0))
Y = np.where(rng.random((N, 4)) < 0.5, -1.0, 1.0)
y = Y[:, 0].copy()


@pytest.fixture(autouse=True)
def restless():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(*tasks, seconds=120.0):
    """Run the tasks in threads that start together; raise what they raise. A task that hangs is an error."""
    ready, errors = threading.Barrier(len(tasks)), []

    def run(task):
        ready.wait()
        try:
            task()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(task,), daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    if errors:
        raise errors[0]


def frozen(learner):
    return {name: array.tobytes() for name, array in learner.freeze()[1].items()}


def classifier(**settings):
    return OnlineClassifier(loss="hinge", penalty="l1,l1=1e-3", **settings)


def entries(row):
    part = slice(X.indptr[row], X.indptr[row + 1])
    return X.indices[part], X.data[part]


# --- learning --------------------------------------------------------------------------------------------------------

MODELS = {
    "comid": ("comid", "hinge", "l1,l1=1e-3", "uniform", {}),
    "rda": ("rda", "logistic", "l1,l1=1e-3", None, {"n_features": D}),
    "implicit": ("implicit-sgd", "squared", "l2,l2=1e-2", "weighted-t1", {"scale": "rms", "fit_intercept": True}),
    "odrs": ("odrs", "hinge", "l1,l1=1e-3", None, {}),
    "outputs": ("comid", "hinge", "l1,l1=1e-3", None, {"n_outputs": 4}),
}


def learner_of(name):
    *parts, settings = MODELS[name]
    return Learner(*parts, **settings)


@pytest.mark.parametrize("name", MODELS)
def test_the_same_rows_from_several_threads_give_the_bits_of_one(name):
    threads, calls, targets = 4, 8, Y if name == "outputs" else y
    found, alone = learner_of(name), learner_of(name)
    at_once(*[lambda: [found.learn(X, targets) for _ in range(calls)]] * threads)
    for _ in range(threads * calls):
        alone.learn(X, targets)
    assert found.t == threads * calls * N
    assert frozen(found) == frozen(alone)


@pytest.mark.parametrize("name", ["comid", "odrs"])
def test_single_rows_and_blocks_from_several_threads_give_the_bits_of_one(name):
    row = next(k for k in range(N) if X.indptr[k + 1] - X.indptr[k] > 2)
    block, labels = X[[row] * 7], y[[row] * 7]
    found, alone = learner_of(name), learner_of(name)
    at_once(
        lambda: [found.learn(block, labels) for _ in range(100)],
        lambda: [found.learn_one(*entries(row), y[row]) for _ in range(700)],
        lambda: [found.learn_one(*entries(row), y[row]) for _ in range(700)],
    )
    for _ in range(3):
        alone.learn(X[[row] * 700], y[[row] * 700])
    assert found.t == 2100
    assert frozen(found) == frozen(alone)


def learn_all(learner, pieces):
    for piece in pieces:
        learner.learn(*piece)


def test_calls_of_several_threads_follow_each_other_in_some_order():
    """New columns with each call: the state grows while others wait."""
    pieces = [(X[first:last], y[first:last]) for first, last in ((0, 50), (50, 120), (120, 170), (170, N))]
    pieces = [(sp.csr_matrix((rows.data, rows.indices * (k + 1), rows.indptr), (rows.shape[0], 99)), targets)
              for k, (rows, targets) in enumerate(pieces)]  # fmt: skip
    orders = []
    for order in itertools.permutations(range(4)):
        if order.index(0) < order.index(1) and order.index(2) < order.index(3):
            alone = learner_of("comid")
            for place in order:
                alone.learn(*pieces[place])
            orders.append(frozen(alone))
    for _ in range(25):
        found = learner_of("comid")
        at_once(partial(learn_all, found, pieces[:2]), partial(learn_all, found, pieces[2:]))
        assert frozen(found) in orders


def test_two_learners_in_two_threads_know_nothing_of_each_other():
    learners = [Learner("fiol,inner=newton", "logistic", "l1,l1=1e-3", scale="rms") for _ in range(3)]
    at_once(*[lambda one=one: [one.learn(X, y) for _ in range(12)] for one in learners[:2]])
    for _ in range(12):
        learners[2].learn(X, y)
    assert frozen(learners[0]) == frozen(learners[1]) == frozen(learners[2])


# --- reading while another thread learns -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["comid", "implicit", "outputs"])
def test_readers_see_whole_calls(name):
    calls, targets = 16, Y if name == "outputs" else y
    alone, few, many_rows = learner_of(name), X[:1], X
    known = {"few": set(), "many": set(), "weights": set(), "state": set(), "loss": set()}

    def look(learner, seen):
        seen["few"].add(learner.predict(few).tobytes())
        seen["many"].add(learner.predict(many_rows).tobytes())
        seen["weights"].add(learner.weights(average=True).tobytes())
        seen["loss"].add(learner.progressive_loss)
        seen["state"].add(tuple(frozen(pickle.loads(pickle.dumps(learner))).values()))

    alone.learn(X[:1], targets[:1])
    look(alone, known)
    for _ in range(calls):
        look(alone.learn(X, targets), known)
    found, seen, ended = learner_of(name).learn(X[:1], targets[:1]), {name: set() for name in known}, threading.Event()

    def learn():
        for _ in range(calls):
            found.learn(X, targets)
        ended.set()

    def read():
        while not ended.is_set():
            look(found, seen)
        look(found, seen)

    at_once(learn, read)
    for what, values in seen.items():
        assert values <= known[what], what


def test_a_model_file_written_while_another_thread_learns_is_one_moment(tmp_path):
    model, moments, ended = classifier().partial_fit(X, y, classes=[-1, 1]), set(), threading.Event()
    alone = clone(model)
    for _ in range(13):
        moments.add(tuple(frozen(alone.partial_fit(X, y, classes=[-1, 1]).learner_).values()))

    def learn():
        for _ in range(12):
            model.partial_fit(X, y)
        ended.set()

    def save():
        while not ended.is_set():
            model.save(tmp_path / "m")
            assert tuple(frozen(load(tmp_path / "m").learner_).values()) in moments

    at_once(learn, save)


def test_a_model_that_is_saved_while_another_thread_begins_anew_is_one_moment(tmp_path, monkeypatch):
    model, reading, begun = classifier(random_state=0).fit(X, y), Learner.reading, []

    @contextmanager
    def late(learner):
        with reading(learner):
            if not begun:
                begun.append(model.fit(X, y))
            yield

    def write(path, header, arrays):
        trains = threading.Thread(target=model.partial_fit, args=(X, y))
        trains.start()
        trains.join(0.5)
        wrote(path, header, arrays)
        waiting.append(trains)

    waiting, wrote = [], model_file.write
    monkeypatch.setattr(Learner, "reading", late)
    monkeypatch.setattr(model_file, "write", write)
    model.save(tmp_path / "m")
    waiting[0].join()
    assert load(tmp_path / "m").t_ == N
    assert model.t_ == 2 * N


# --- estimators ------------------------------------------------------------------------------------------------------


def test_the_first_calls_of_an_estimator_come_one_after_the_other():
    for _ in range(8):
        model, alone = classifier(), classifier()
        at_once(*[lambda m=model: m.partial_fit(X, y, classes=[-1, 1])] * 4)
        for _ in range(4):
            alone.partial_fit(X, y, classes=[-1, 1])
        assert model.t_ == 4 * N
        assert frozen(model.learner_) == frozen(alone.learner_)


def test_wrong_input_in_one_thread_takes_nothing_from_another():
    model = OnlineRegressor()

    def wrong():
        for _ in range(40):
            with pytest.raises(ValueError, match="NaN"):
                model.partial_fit(X, np.where(y > 0.0, np.nan, y))

    at_once(lambda: [model.partial_fit(X, y) for _ in range(20)], wrong, wrong)
    assert model.t_ == 20 * N


def test_first_rows_of_a_stream_show_no_model_before_one_is_learned(monkeypatch):
    seen = []

    class Watched(Training):
        def __iter__(self):
            seen.append(model.is_fitted)
            return super().__iter__()

    monkeypatch.setattr("onlinear.models.online.Training", Watched)

    def tell(progress):
        seen.append((model.is_fitted, model.encoding_["format"], model.classes_.tolist()))

    model = OnlineClassifier(callbacks=[tell])
    with pytest.raises(ValueError, match="missing value"):
        model.partial_fit([{"a": None}, {"a": 1.0}], [1, 0], classes=[0, 1])
    assert vars(model).keys() <= vars(clone(model)).keys() | {"_turn_" + str(os.getpid())}
    model.partial_fit([{"a": 2.0}, {"a": 1.0}], [1, 0], classes=[0, 1])
    assert model.t_ == 2
    assert seen == [False, (True, "columns", [0, 1])]


def test_a_fit_to_a_stream_shows_the_model_before_until_rows_are_learned(tmp_path):
    seen, model = [], OnlineClassifier(random_state=0).fit([{"a": 1.0, "b": "x"}, {"a": 2.0, "b": "y"}] * 5, ["no", "yes"] * 5)

    def see(*_):
        model.save(tmp_path / "m")
        seen.append((model.t_, model.classes_.tolist(), len(model.get_feature_names_out()), model.n_features_in_))

    def blocks(*found):
        see()
        yield from found

    see()
    with pytest.raises(ValueError, match="text"):
        model.fit(blocks((X[:2], ["no", "other"])))
    model.set_params(callbacks=[see]).fit(blocks((X, y), (X, y)), classes=[-1, 1])
    assert seen[0] == seen[1] == seen[2]
    assert seen[3:] == [(N, [-1, 1], D, D), (2 * N, [-1, 1], D, D)]
    assert not hasattr(model, "feature_names_in_")


def test_a_fit_to_rows_shows_the_model_before_until_all_is_checked():
    class Watched(OnlineClassifier):
        def new_learner(self, *given, **settings):
            if hasattr(self, "learner_"):
                seen.append((model.classes_.tolist(), model.n_features_in_, model.predict(X[:1]).tolist()))
            return super().new_learner(*given, **settings)

    seen, model = [], Watched(random_state=0).fit(X, y)
    before = [-1.0, 1.0], D, model.predict(X[:1]).tolist()
    model.fit(X[:, :3], ["a", "b"] * (N // 2))
    assert seen[0] == seen[-1] == before
    assert (model.classes_.tolist(), model.n_features_in_) == (["a", "b"], 3)


class Meanwhile:
    """Rows that are read after another thread has done something."""

    def __init__(self, rows, do):
        self._rows, self._do = rows, do

    def __array__(self, dtype=None, copy=None):
        at_once(self._do)
        return self._rows


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_a_prediction_is_of_one_model_where_another_thread_fits_it_anew(method):
    rows, few, many = X.toarray(), np.arange(N) % 2, np.array(list("abcd"))[np.arange(N) % 4]
    model = OnlineClassifier("logistic", random_state=0).fit(rows, few)
    wanted = getattr(model, method)(rows)
    found = getattr(model, method)(Meanwhile(rows, lambda: model.fit(rows, many)))
    np.testing.assert_array_equal(found, wanted)
    assert model.predict(rows)[0] in "abcd"


def test_a_path_of_penalties_learns_every_row_once_and_is_read_meanwhile(tmp_path):
    def path():
        return PenaltyPath(classifier(), ["l1,l1=1e-4", "l1,l1=1e-3", "l1,l1=1e-2", "l2,l2=1e-2"], grow=True)

    found, alone = path(), path()
    first = {"classes": [-1, 1]}
    at_once(*[lambda: [found.partial_fit(X, y, **first) for _ in range(4)]] * 2)
    for _ in range(8):
        alone.partial_fit(X, y, **first)
    np.testing.assert_array_equal(found.coefs_, alone.coefs_)
    np.testing.assert_array_equal(found.losses_, alone.losses_)
    after, seen = copy.deepcopy(alone).partial_fit(X, y), []
    at_once(lambda: found.partial_fit(X, y), lambda: seen.extend(found.predict_all(X)), lambda: found.save(tmp_path / "p"))
    moments = zip(alone.predict_all(X), after.predict_all(X), strict=True)
    for predicted, (before, then) in zip(seen, moments, strict=True):
        assert predicted.tobytes() in (before.tobytes(), then.tobytes())
    assert PenaltyPath.load(tmp_path / "p").t_ in (8 * N, 9 * N)


def test_callbacks_may_read_save_and_wait_for_readers(tmp_path):
    told = []

    def callback(progress):
        progress.estimator.save(tmp_path / "m")
        told.append(progress.estimator.predict(X[:3]))
        at_once(lambda: told.append(progress.estimator.predict(X[:3])), seconds=20.0)
        pickle.dumps(progress.estimator.learner_)

    at_once(lambda: classifier(callbacks=[callback]).fit(X, y), seconds=60.0)
    assert len(told) == 2
    np.testing.assert_array_equal(*told)


# --- copies, forks ---------------------------------------------------------------------------------------------------


def by_joblib(model):
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


COPIES = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "joblib": by_joblib,
}


@pytest.mark.parametrize("way", COPIES)
def test_copies_have_locks_of_their_own(way):
    learner = COPIES[way](original := learner_of("comid").learn(X, y))
    with original.lock:
        at_once(lambda: learner.learn(X, y), seconds=60.0)
    assert (learner.t, original.t) == (2 * N, N)
    path = PenaltyPath(classifier(), ["l1,l1=1e-4", "l1,l1=1e-3"])
    for model in (classifier(), path):
        copied = COPIES[way](model.fit(X, y))
        assert any(name.startswith("_turn") for name in vars(model))
        assert not any(name.startswith("_turn") for name in vars(copied))
        at_once(partial(copied.partial_fit, X, y), seconds=60.0)
        assert vars(clone(model)).keys() == model.get_params(deep=False).keys()


def in_child(code, **environment):
    clean = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_CACHE")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=300,
        env=clean | {"PYTHONPATH": str(HOME), "PYTHONWARNINGS": "ignore"} | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX's")
def test_a_fork_frees_the_locks_and_refuses_what_another_thread_was_changing():
    code = """
        import os, threading, numpy as np
        from onlinear import Learner, OnlineRegressor
        X, y = np.eye(3), np.ones(3)
        free, busy, read = (Learner("comid", "squared").learn(X, y) for _ in range(3))
        free.learn_one(np.array([1]), np.array([1.0]), 1.0)
        model = OnlineRegressor().fit(X, y)
        held, done = threading.Barrier(2), threading.Event()

        class Waits:
            def __array__(self, *args, **kwargs):
                held.wait(); done.wait(); return X

        def reads():
            with read.lock:
                read.reads_only = True
                held.wait(); done.wait()

        def fits():
            with OnlineRegressor._train_passes.__wrapped__ and vars(model)[f"_turn_{os.getpid()}"]:
                held.wait(); done.wait()

        for task in (lambda: busy.learn(Waits(), y), reads, fits):
            threading.Thread(target=task, daemon=True).start()
            held.wait()
        child = os.fork()
        if not child:
            try:
                free.learn(X, y), free.predict(X), read.learn(X, y), model.partial_fit(X, y)
                for use in (lambda: busy.learn(X, y), lambda: busy.predict(X), lambda: busy.save("x"),
                            lambda: busy.learn_one(np.array([1]), np.array([1.0]), 1.0)):
                    try:
                        use()
                        os._exit(2)
                    except RuntimeError as error:
                        assert "when the process was forked" in str(error)
                os._exit(0)
            except BaseException as error:
                print(repr(error), flush=True)
                os._exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        done.set()
    """
    assert in_child(code).split() == ["0"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX's")
@pytest.mark.parametrize("after", [0.4, *(seldom(after) for after in (0.0, 0.1))])
def test_a_fork_waits_for_code_that_is_being_made(after, tmp_path):
    """The child, whose one thread finds no compiler half-way, makes the same code."""
    code = f"""
        import os, signal, threading, time, numpy as np
        from onlinear import Learner

        def fit():
            return Learner("pa", "hinge", n_features=4).learn(np.eye(4), np.ones(4)).weights().tolist()

        found = []
        thread = threading.Thread(target=lambda: found.append(fit()))
        thread.start()
        time.sleep({after})
        child = os.fork()
        if not child:
            signal.alarm(100)
            print(fit(), flush=True)
            os._exit(0)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        thread.join()
        print(found[0])
        print(ended)
    """
    own, other, ended = in_child(code, ONLINEAR_CACHE_DIR=str(tmp_path / "cache")).splitlines()
    assert (own, ended) == (other, "0")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX's")
def test_a_fork_frees_all_locks_while_a_thread_makes_a_learner():
    """The one that another thread has begun to make is no child's; others are."""
    code = """
        import os, threading, numpy as np
        from onlinear import Learner
        X, y = np.eye(3), np.ones(3)
        learners = [Learner("comid", "squared").learn(X, y) for _ in range(20)]
        held, done = threading.Barrier(2), threading.Event()

        class Waits:
            def __array__(self, *args, **kwargs):
                held.wait(); done.wait(); return np.zeros(3)

        def reads():
            for learner in learners:
                learner.lock.acquire()
                learner.reads_only = True
            Learner("comid", "squared", n_features=3, start=Waits())

        threading.Thread(target=reads, daemon=True).start()
        held.wait()
        child = os.fork()
        if not child:
            try:
                for learner in learners:
                    assert learner.lock.acquire(timeout=5.0)
                os._exit(0)
            except BaseException as error:
                print(repr(error), flush=True)
                os._exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        done.set()
    """
    assert in_child(code).split() == ["0"]


def test_the_first_fits_of_two_threads_compile_at_once(tmp_path):
    """Nothing is compiled yet, and both threads name the same parts, one of them a user's."""
    (tmp_path / "mine.py").write_text(
        textwrap.dedent("""
        from typing import NamedTuple

        class Mine(NamedTuple):
            a: float = 1.0
            def value(self, s, y): return self.a * (s - y) ** 2
            def slope(self, s, y): return 2.0 * self.a * (s - y)
            def extra(self, s): return s
        """)
    )
    code = """
        import sys, threading, numpy as np
        sys.setswitchinterval(1e-6)
        from onlinear import Learner
        from mine import Mine
        X, y = np.eye(4), np.ones(4)
        ready, found = threading.Barrier(3), []

        def fit():
            ready.wait()
            found.append(Learner("comid,eta=0.1", Mine(0.5), n_features=4).learn(X, y).weights().tolist())

        threads = [threading.Thread(target=fit) for _ in range(3)]
        [thread.start() for thread in threads], [thread.join() for thread in threads]
        print(len(found), len({tuple(one) for one in found}))
    """
    places = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{HOME}", "ONLINEAR_CACHE_DIR": str(tmp_path / "cache")}
    assert in_child(code, **places).split() == ["3", "1"]


# --- first rows ------------------------------------------------------------------------------------------------------

DICTS = [{f"x{j}": float(value) for j, value in enumerate(row)} for row in rng.normal(size=(6, 4))]


def estimator(kind, **settings):
    return kind("hinge" if kind is OnlineClassifier else "squared", solver="comid", average="none", scale="none", **settings)


def quietly(use, *args):
    """Use a model that may have no row yet."""
    with suppress(NotFittedError):
        use(*args)


@pytest.mark.parametrize("kind", [OnlineClassifier, OnlineRegressor])
def test_first_rows_of_several_threads_are_all_learned_by_one_model(kind):
    for _ in range(6):
        model = estimator(kind)
        learns = [lambda model=model, row=row: model.learn_one(row, row["x0"] > 0.0) for row in DICTS]
        reads = [lambda model=model, row=row: quietly(model.predict_one, row) for row in DICTS[:3]]
        at_once(*learns, *reads)
        assert model.t_ == len(DICTS)
        assert sorted(model.get_feature_names_out()) == ["x0", "x1", "x2", "x3"]


def test_a_first_row_that_is_refused_is_never_a_model():
    for _ in range(6):
        model = estimator(OnlineClassifier)

        def refuse(model=model):
            with pytest.raises(ValueError, match="finite"):
                model.learn_one({"x0": np.nan}, True)

        at_once(*[refuse] * 3, *[lambda model=model: quietly(model.predict_one, DICTS[0])] * 3)
        assert not hasattr(model, "learner_")


def test_code_that_several_threads_ask_for_is_made_once():
    made, found = [], []

    @once
    def make(text):
        made.append(text)
        time.sleep(0.05)
        return object()

    at_once(*[lambda: found.append(make("text"))] * 4)
    assert made == ["text"]
    assert len(set(found)) == 1


@pytest.mark.parametrize("row", [(DICTS[0],), (np.arange(2), np.ones(2))], ids=["dict", "columns"])
@pytest.mark.parametrize("kind", [OnlineClassifier, OnlineRegressor])
def test_a_model_without_rows_says_so(kind, row):
    with pytest.raises(NotFittedError):
        kind().predict_one(*row)


def test_the_names_of_first_dicts_of_a_copy_are_kept_once():
    for _ in range(6):
        model = copy.deepcopy(estimator(OnlineRegressor).learn_one({"x0": 1.0}, 1.0))
        at_once(*[lambda model=model, name=name: model.learn_one({name: 1.0}, 1.0) for name in "abcdef"])
        assert sorted(model.get_feature_names_out()) == [*"abcdef", "x0"]


@pytest.mark.parametrize("way", ["pickle", "deepcopy", "joblib"])
@pytest.mark.parametrize("kind", [OnlineClassifier, OnlineRegressor])
def test_copies_made_while_names_come_are_of_one_moment(kind, way):
    """A copy has a name for each column of its weights, and learns on."""
    model, ended = estimator(kind).learn_one({"a": 1.0}, False), threading.Event()
    if kind is OnlineClassifier:
        model.learn_one({"a": 1.0}, True)

    def learn():
        for k in range(300):
            model.learn_one({f"x{k}": 1.0, "a": 2.0}, k % 2 == 0)
            if k % 10 == 0:
                model.partial_fit([{f"y{k}": 1.0}, {"a": 3.0}], [True, False])
        ended.set()

    def take():
        while not ended.is_set():
            copied = COPIES[way](model)
            names = list(copied.get_feature_names_out())
            assert len(names) == copied.learner_.size == copied.n_features_in_
            copied.learn_one({"a": 1.0, "new": 1.0}, True)
            assert list(copied.get_feature_names_out()) == [*names, "new"]

    at_once(learn, take)


@pytest.mark.parametrize("way", ["pickle", "deepcopy"])
def test_copies_of_a_path_that_is_learning_are_of_one_moment(way):
    path = PenaltyPath(classifier(), ["l1,l1=1e-4", "l1,l1=1e-3", "l1,l1=1e-2"]).partial_fit(X, y, classes=[-1, 1])
    ended = threading.Event()

    def learn():
        for _ in range(12):
            path.partial_fit(X, y)
        ended.set()

    def take():
        while not ended.is_set():
            copied = COPIES[way](path)
            assert len({model.t_ for model in copied._models}) == 1
            assert copied.t_ == copied._models[0].t_

    at_once(learn, take)


# --- no thread to be had ---------------------------------------------------------------------------------------------


@pytest.fixture
def no_thread(monkeypatch):
    def refuse(self):
        raise RuntimeError("can't start new thread")

    def forbid(after=0):
        kept, count = threading.Thread.start, itertools.count()
        monkeypatch.setattr(threading.Thread, "start", lambda self: kept(self) if next(count) < after else refuse(self))

    return forbid


@pytest.mark.parametrize("after", [0, 1])
def test_outputs_are_learnt_without_the_threads_that_there_are_not(after, no_thread, monkeypatch):
    monkeypatch.setattr(team, "WORTH_A_THREAD", 0)
    alone = learner_of("outputs").learn(X, Y)
    no_thread(after)
    assert frozen(Learner(*MODELS["outputs"][:4], n_outputs=4, n_jobs=3).learn(X, Y)) == frozen(alone)


@pytest.mark.parametrize("after", [0, 1, 2])
def test_a_stream_is_read_without_the_threads_that_there_are_not(after, no_thread, tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text("".join(f"{i % 2} {1 + i % 7}:{i}\n" for i in range(500)) + "junk\n")
    no_thread(after)
    for _ in range(2):
        stream = Ahead(Svmlight((str(path),), block_bytes=300, threads=2, max_errors=1))
        found = [label for block in stream for label in block.y.tolist()]
        assert found == [i % 2 for i in range(500)]
        assert len(stream.errors) == 1
        assert stream.done == path.stat().st_size
    closed = iter(Ahead(Svmlight((str(path),), block_bytes=300, threads=2)))
    next(closed)
    closed.close()


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_pool_keeps_the_order_and_raises_what_its_work_raised(after, no_thread):
    before = threading.enumerate()
    no_thread(after)
    with collected(), Pool(3) as pool:
        assert pool.map(lambda k: k * k, range(50)) == [k * k for k in range(50)]
        with pytest.raises(ZeroDivisionError):
            pool.map(lambda k: 1 // (k - 3), range(9))
    others = [thread for thread in threading.enumerate() if thread not in before]
    assert not [thread for thread in others if "_work" in str(getattr(thread, "_target", ""))]


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


def test_blas_has_its_threads_again_once_all_that_took_them_are_done():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        first, second = ExitStack(), ExitStack()
        first.enter_context(one_blas_thread)
        second.enter_context(one_blas_thread)
        first.close()
        assert blas_threads() == {1}
        second.close()
        assert blas_threads() == before
        with pytest.raises(KeyError), one_blas_thread:
            raise KeyError
        assert blas_threads() == before


def test_blas_keeps_to_one_thread_whichever_thread_comes_first_and_goes_last():
    X = np.random.default_rng(0).normal(size=(4000, 100))
    y, seen, fits = X[:, 0] + X[:, 1] > 0.3, [], []

    def fit():
        fits.append(OnlineClassifier(penalty="l2=1e-3", tol=1e-6).fit(X, y).coef_.tobytes())

    def within(stack):
        stack.enter_context(one_blas_thread)
        seen.append(blas_threads())

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        first, second = ExitStack(), ExitStack()
        in_a_thread(within, first)
        within(second)
        first.close()
        seen.append(blas_threads())
        in_a_thread(second.close)
        assert seen == [{1}, {1}, {1}]
        assert blas_threads() == before
        fit()
        in_a_thread(fit)
        assert blas_threads() == before
    assert fits[0] == fits[1]


def in_a_thread(call, *given):
    thread = threading.Thread(target=call, args=given)
    thread.start()
    thread.join()


def test_blas_of_scipy_keeps_to_one_thread_in_a_fresh_process_too():
    code = """if True:
        from threadpoolctl import threadpool_info
        from onlinear.threads import one_blas_thread
        with one_blas_thread:
            from scipy.linalg.lapack import dposv
            found = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
        print(set(found))
    """
    told = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    assert subprocess.run([sys.executable, "-c", code], env=told, capture_output=True, text=True, check=True).stdout == "{1}\n"


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows has no such signals")
def test_a_process_that_begins_deaf_meets_an_interrupt_once_it_hears():
    code = """
        import os, signal
        os.kill(os.getpid(), signal.SIGINT)
        print("imported", flush=True)
        from onlinear.threads import begin_worker
        begin_worker(signal.SIG_DFL)
        print("heard nothing")
    """
    with begun_deaf():
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "imported\n", "")


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="Windows has no such signals")
def test_processes_of_pools_begin_deaf_and_whole_and_end_with_their_parent(tmp_path, monkeypatch):
    deaf, begin, heard = [], [], []

    class Here(ThreadPoolExecutor):
        def submit(self, *_):
            deaf.append(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))
            signal.raise_signal(signal.SIGUSR1)
            assert len(heard) == len(deaf) - 1
            return super().submit(bytes)

    before = signal.signal(signal.SIGUSR1, lambda *_: heard.append(True))

    for module in (runners, reproduce):
        monkeypatch.setattr(module, "ProcessPoolExecutor", lambda *given: begin.append(given[2]) or Here(1))
    try:
        with Local(1, processes=True) as local:
            assert list(local.map(len, ["shard"])) == local.rotate(len, ["shard"], [b"it"]) == [b""]
        team = reproduce.Workers(2, Where(), Store(tmp_path))
        with team.pool:
            assert list(team._perform({"key": SimpleNamespace(shares=frozenset())})) == [("key", b"")]
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert (deaf, begin, heard) == ([True] * 3, [begin_worker] * 2, [True] * 3)
