"""Ctrl-C, or a signal that raises, leaves a model of whole rows at any moment: its outputs, sums and scales have learned the
same ones."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from seldom import often, seldom
from single_rows import CLASSIFIER

from onlinear import Learner, OnlineClassifier, OnlineRegressor, PenaltyPath, load, streams

RNG = np.random.default_rng(3)
N, D = 40, 6
X = RNG.standard_normal((N, D))
Y = np.sign(RNG.standard_normal((N, 9)))
CLASSES = np.arange(N) % 3
COLUMNS = np.arange(D)


@pytest.fixture(autouse=True)
def raises() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, and SIGTERM too, whatever the process that runs the tests has set."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def stopped_at(moment: int, run: Callable[[], Any], number: int = signal.SIGINT) -> bool:
    """Whether a signal has stopped ``run``, at the moment of so many calls and returns of functions."""
    left = moment
    passed = sys.getprofile()

    def count(frame: Any, event: str, arg: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), number)

    try:
        sys.setprofile(count)
        run()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(passed)
    return False


def stopped_models(
    make: Callable[[], Any], learn: Callable[[Any], Any], most: int = 60, number: int = signal.SIGINT
) -> Iterator[Any]:
    """Models that learned until a signal came, at each moment of the call or at ``most`` of them."""
    total = 0

    def count(*_: Any) -> None:
        nonlocal total
        total += 1

    call, passed = partial(learn, make()), sys.getprofile()
    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(passed)
    for moment in range(1, total, 1 + total // most):  # the last one is that of ``setprofile``
        model = make()
        assert stopped_at(moment, partial(learn, model), number)
        yield model


def kept(model: Any, path: Any) -> bytes:
    model.save(path)
    load(path)
    return path.read_bytes()


def outputs(solver: str, loss: str, **settings: Any) -> Callable[[], Learner]:
    return lambda: Learner(solver, loss, n_outputs=3, fit_intercept=True, n_features=D, **settings)


LEARNERS = {
    "one": lambda: Learner("comid,eta=0.5", "squared", "l1=1e-4", average="weighted-t1", scale="rms", fit_intercept=True),
    "several": lambda: Learner("fiol", "squared", "l1=1e-4", n_outputs=9, fit_intercept=True),
    "packs": lambda: Learner(**CLASSIFIER, n_outputs=9, fit_intercept=True),
}


@pytest.mark.parametrize(
    ("name", "number"),
    [("one", signal.SIGINT), seldom("several", signal.SIGINT), ("packs", signal.SIGINT), ("one", signal.SIGTERM)],
)
def test_a_block_is_learned_whole_or_not_at_all(name: str, number: int, tmp_path: Any) -> None:
    make = LEARNERS[name]
    y = Y[:, 0] if name == "one" else Y

    before, after = (kept(make().learn(X[:n], y[:n]), tmp_path / "other") for n in (10, N))
    found = set()
    begun = lambda: make().learn(X[:10], y[:10])  # noqa: E731
    for model in stopped_models(begun, lambda model: model.learn(X[10:], y[10:]), number=number):
        assert model.lock.acquire(blocking=False)
        model.lock.release()
        found.add(kept(model, tmp_path / "model"))
    assert found == {before, after}


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(LEARNERS["several"], id="several"),
        seldom(LEARNERS["packs"], id="packs"),
        pytest.param(outputs("ftrl", "softmax", scale="rms"), id="softmax"),
    ],
)
def test_a_single_row_is_learned_by_all_outputs_or_by_none(make: Callable[[], Learner], tmp_path: Any) -> None:
    def target(row: int, learner: Learner) -> Any:
        return Y[row] if learner.n_outputs == 9 else np.where(np.arange(3) == CLASSES[row], 1.0, -1.0)

    def learned(rows: int) -> Learner:
        learner = make()
        for row in range(rows):
            learner.learn_one(COLUMNS, X[row], target(row, learner))
        return learner

    before, after = (kept(learned(rows), tmp_path / "other") for rows in (N - 1, N))
    found = set()
    for model in stopped_models(lambda: learned(N - 1), lambda model: model.learn_one(COLUMNS, X[-1], target(-1, model))):
        assert model.lock.acquire(blocking=False)
        model.lock.release()
        found.add(kept(model, tmp_path / "model"))
    assert found == {before, after}


def named(row: int) -> dict[str, float]:
    """A dict that brings a new name."""
    return {f"new {row}": 1.0, "x": float(X[row, 0]), "y": float(X[row, 1])}


LAST = 12  # of the rows of estimators, each of which is saved and loaded at every moment
ESTIMATORS = {
    "numbers": (OnlineRegressor, lambda model, row: model.learn_one(named(row), float(row < LAST - 1))),
    "two classes": (OnlineClassifier, lambda model, row: model.learn_one(named(row), bool(row % 2))),
    "classes": (OnlineClassifier, lambda model, row: model.learn_one(named(row), int(row % 3), classes=[0, 1, 2])),
    "rows of arrays": (OnlineClassifier, lambda model, row: model.partial_fit(X[[row]], CLASSES[[row]], [0, 1, 2])),
}


@pytest.mark.parametrize("name", often(ESTIMATORS, {"numbers", "rows of arrays"}))
def test_rows_of_estimators_are_learned_or_not_and_their_names_known_or_not(name: str, tmp_path: Any) -> None:
    make, learn = ESTIMATORS[name]

    def learned(rows: int) -> Any:
        model = make()
        for row in range(rows):
            learn(model, row)
        return model

    states = [kept(learned(rows), tmp_path / "other") for rows in (LAST - 1, LAST)]
    for model in stopped_models(lambda: learned(LAST - 1), lambda model: learn(model, LAST - 1)):
        assert kept(model, tmp_path / "model") in states
        if model.t_ < LAST:
            learn(model, LAST - 1)
        assert kept(model, tmp_path / "model") == states[1]


@pytest.mark.parametrize("categories", ["hash", "one-hot"])
def test_names_of_the_rows_of_a_stream_are_known_once_they_are_learned(categories, tmp_path, monkeypatch):
    def table(letters: str, **known: Any) -> streams.Stream:
        rows = {"s": list(letters), "x": [1.0, 2.0] * 3, "y": [0, 1] * 3}
        return streams.open(pd.DataFrame(rows), target="y", **known or {"categories": categories})

    def learned(stop: bool) -> Any:
        model = OnlineClassifier(random_state=0).partial_fit(table("abcabc"), classes=[0, 1])
        with monkeypatch.context() as patched:
            if stop:
                patched.setattr(Learner, "learn_checked", stopped_after(Learner.learn_checked))
            with pytest.raises(KeyboardInterrupt) if stop else nullcontext():
                model.partial_fit(table("abdede", encoding=model.encoding_, unlabelled=False))
        return model.partial_fit(table("fedcba", encoding=model.encoding_, unlabelled=False))

    assert kept(learned(True), tmp_path / "one") == kept(learned(False), tmp_path / "other")


def stopped_after(learn: Callable[..., Any]) -> Callable[..., Any]:
    """What Ctrl-C stops once the rows are learned."""

    def learned(*given: Any) -> None:
        learn(*given)
        raise KeyboardInterrupt

    return learned


def test_a_fit_that_was_stopped_before_its_first_row_leaves_the_model_as_it_was(tmp_path: Any) -> None:
    model = OnlineClassifier(random_state=0).fit(X, CLASSES)
    before = kept(model, tmp_path / "before")
    wide = np.hstack([X, X])
    for moment in range(1, 250, 7):
        assert stopped_at(moment, lambda: model.fit(wide, CLASSES % 2))
        if model.n_features_in_ == 2 * D:
            break
        assert kept(model, tmp_path / "model") == before
    else:
        moment = 250
    assert moment > 100


def test_models_of_a_path_have_learned_the_same_rows() -> None:
    def begun() -> PenaltyPath:
        path = PenaltyPath(OnlineClassifier(random_state=0), ["l1=1e-3", "l1=1e-2", "l2=0.1"])
        return path.partial_fit(X, CLASSES, [0, 1, 2])

    for path in stopped_models(begun, lambda path: path.partial_fit(X, CLASSES)):
        assert len({model.learner_.t for model in path._models}) == 1
