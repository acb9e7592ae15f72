"""Many classes: their targets are made block by block, and the model is that of all targets at once."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from seldom import often
from sklearn.datasets import dump_svmlight_file

from onlinear import OnlineClassifier, PenaltyPath, streams
from onlinear.learner import classes
from onlinear.models.evaluation import evaluate
from onlinear.models.predictions import predictions

RNG = np.random.default_rng(4)
N, CLASSES = 500, 7
X = RNG.standard_normal((N, 5))
Y = RNG.integers(0, CLASSES, N)
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "in order": {"shuffle": False},
    "two passes, drawn": {"passes": 2, "shuffle": "replacement"},
    "targets 1 and 0": {"solver": "adaline", "loss": "squared"},
    "softmax": {"loss": "softmax"},
    "batch": {"solver": "batch-drs", "loss": "squared", "penalty": "l1=1e-3", "passes": 3},
    "certified": {"penalty": "l2=0.1", "tol": 1e-2},
    "certified after a pass": {"penalty": "l2=0.1", "tol": 1e-2, "solver": "fiol"},
}


def frozen(model: OnlineClassifier) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in model.freeze()[1].items()}


@pytest.mark.parametrize("name", often(SETTINGS, SETTINGS.keys() - {"certified after a pass"}))
def test_targets_made_block_by_block_teach_what_they_teach_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, gaps = [], []
    for numbers in (classes.TARGETS, 10 * CLASSES):
        monkeypatch.setattr(classes, "TARGETS", numbers)
        model = OnlineClassifier(random_state=0, **SETTINGS[name]).fit(X, Y)
        if "tol" not in SETTINGS[name] and name != "batch":
            model.partial_fit(X[:100], Y[:100])
        found.append(frozen(model))
        if name == "certified":
            gaps.append(model.duality_gap(X, Y))
    assert found[0] == found[1]
    assert gaps[:1] == gaps[1:]


def test_so_do_those_of_single_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for numbers in (classes.TARGETS, 10):
        monkeypatch.setattr(classes, "TARGETS", numbers)
        model = OnlineClassifier(class_weight={0: 2.0})
        for x, y in zip(X[:20], Y[:20], strict=True):
            model.learn_one(dict(zip("abcde", x, strict=True)), y, classes=range(CLASSES))
        with pytest.raises(ValueError, match="y is the class 9"):
            model.learn_one({"a": 1.0}, 9)
        found.append(frozen(model))
    assert found[0] == found[1]


def test_so_do_those_of_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for numbers in (classes.TARGETS, 10 * CLASSES):
        monkeypatch.setattr(classes, "TARGETS", numbers)
        path = PenaltyPath(OnlineClassifier(random_state=0), ["l1=1e-3", "l2=0.1"]).fit(X, Y).partial_fit(X, Y)
        found.append([frozen(model) for model in path._models])
    assert found[0] == found[1]


def test_so_do_those_of_a_stream(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, found = tmp_path / "rows.svm", []
    dump_svmlight_file(X, Y, str(path), zero_based=False)
    for numbers in (classes.TARGETS, 10 * CLASSES):
        monkeypatch.setattr(classes, "TARGETS", numbers)
        model = OnlineClassifier().fit(streams.open(path), classes=range(CLASSES))
        predicted = np.concatenate(list(predictions(model, streams.open(path), "probabilities")))
        found.append((frozen(model), model.history_, repr(evaluate(model, streams.open(path))), predicted.tobytes()))
    assert found[0] == found[1]


@pytest.mark.filterwarnings("ignore:The model predicts worse")
@pytest.mark.parametrize(
    ("method", "n", "count"),
    [
        ("fit", 20_000, 50),
        ("partial_fit", 20_000, 50),
        ("fit", 6_000, 300),
        ("partial_fit", 6_000, 300),
        ("stream", 6_000, 300),
    ],
)
def test_memory_does_not_hold_rows_times_classes(
    method: str, n: int, count: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classes, "TARGETS", n * count // 25)  # of a block
    rows, labels = RNG.standard_normal((n, 2)), np.arange(n) % count
    given: tuple[Any, ...] = rows, labels
    if method == "stream":
        dump_svmlight_file(rows, labels, str(tmp_path / "rows.svm"), zero_based=False)
        given = (streams.open(tmp_path / "rows.svm"),)
    settings = {} if method == "fit" else {"classes": np.arange(count)}
    OnlineClassifier().partial_fit(rows[:500], labels[:500] % 50, np.arange(count))  # kernels
    tracemalloc.start()
    try:
        getattr(OnlineClassifier(random_state=0), method.replace("stream", "partial_fit"))(*given, **settings)
        assert tracemalloc.get_traced_memory()[1] < n * count * 8
    finally:
        tracemalloc.stop()
