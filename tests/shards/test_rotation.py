"""Models that go from shard to shard have the bytes of one machine that reads the rows in order."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from deadly import Deadly
from seldom import seldom
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from onlinear import DivergenceError, OnlineClassifier, OnlineRegressor, PenaltyPath, streams
from onlinear.files import model_file
from onlinear.learner import Learner
from onlinear.shards import Blocks, Local, evaluate, open_shards, rotate
from onlinear.streams import StreamError

X, Y = load_breast_cancer(return_X_y=True)
PENALTIES = ["l1=1e-5", "l1=1e-3", "l2=1e-2", "elastic-net,l1=1e-3,l2=1e-3", "none"]


def cut(X, y, size, weights=None):
    ends = [*range(0, len(y), size), len(y)]
    more = [() if weights is None else (weights[a:b],) for a, b in pairwise(ends)]
    return [Blocks(f"rows {a}", ((X[a:b], y[a:b], *w),)) for (a, b), w in zip(pairwise(ends), more, strict=True)]


def bytes_of(model, folder):
    model.save(folder / "m")
    return (folder / "m").read_bytes()


def same_state(found, expected, folder):
    bytes_of(found, folder)
    _, arrays = model_file.read(folder / "m")
    bytes_of(expected, folder)
    _, others = model_file.read(folder / "m")
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, others[name])
    assert found.encoding_ == expected.encoding_


@pytest.mark.parametrize("group", [2, 8])
def test_a_path_in_groups_is_the_path(tmp_path, group):
    weights = np.random.default_rng(0).integers(0, 3, len(Y)).astype(float)
    path = PenaltyPath(OnlineClassifier(), PENALTIES)
    alone = PenaltyPath(OnlineClassifier(), PENALTIES).partial_fit(X, Y, classes=[0, 1], sample_weight=weights)
    for workers in (1, 3):
        (found,) = rotate([path], cut(X, Y.astype(float), 200, weights), Local(workers), group=group)
        np.testing.assert_array_equal(found.losses_, alone.losses_)
        np.testing.assert_array_equal(found.errors_, alone.errors_)
        found.partial_fit(X[:9], Y[:9])  # it continues
        assert found.t_ == alone.t_ + 9
    (found,) = rotate([path], cut(X, Y, 150, weights), Local(), group=group)
    assert bytes_of(found, tmp_path) == bytes_of(alone, tmp_path)
    assert not hasattr(path, "penalties_")


@pytest.mark.parametrize(
    "settings",
    [
        {"solver": "comid", "penalty": "l1=1e-4", "average": "none", "class_weight": {"d3": 2.0}},
        seldom({"solver": "ftrl", "average": "weighted-t1", "scale": "rms"}),
        {"solver": "odrs", "penalty": "l1=1e-4", "average": "none"},
        {"loss": "softmax"},  # goes whole, as the next
        {},
    ],
    ids=str,
)
def test_classes_in_groups_are_the_classifier(tmp_path, settings):
    rows, digits = load_digits(return_X_y=True)
    rows, names = sp.csr_array(rows[:400]), np.array([f"d{k}" for k in digits[:400]])
    alone = OnlineClassifier(**settings).partial_fit(rows, names, classes=np.unique(names))
    (found,) = rotate([OnlineClassifier(**settings)], cut(rows, names, 130), Local(2), group=3)
    assert bytes_of(found, tmp_path) == bytes_of(alone, tmp_path)
    assert (found.predict(rows) == alone.predict(rows)).all()
    assert bytes_of(found.partial_fit(rows[:30], names[:30]), tmp_path) == bytes_of(
        alone.partial_fit(rows[:30], names[:30]), tmp_path
    )


def test_several_models_of_files(tmp_path):
    rows, targets = load_diabetes(return_X_y=True)
    lines = [
        f"{y} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row.tolist())) for row, y in zip(rows, targets, strict=True)
    ]
    for k, (a, b) in enumerate(pairwise([0, 100, 101, 442])):
        (tmp_path / f"{k}.svm").write_text("\n".join(lines[a:b]) + "\n")
    models = [OnlineRegressor(), OnlineRegressor("huber", solver="sgd,eta=0.1"), PenaltyPath(OnlineRegressor(), ["l1=1e-2"])]
    found = rotate(models, open_shards(str(tmp_path / "*.svm")), Local(2))
    for model, own in zip(models[:2], found, strict=False):
        same_state(own, model.partial_fit(streams.open(str(tmp_path / "*.svm"))), tmp_path)
    np.testing.assert_array_equal(found[2].coefs_, models[2].partial_fit(rows, targets).coefs_)
    (tmp_path / "1.svm").write_text("1.5 1:x\n")
    with pytest.raises(StreamError, match=r"1\.svm.*1"):
        rotate(models[:1], open_shards(str(tmp_path / "*.svm")), Local(2))


def test_models_of_tables_know_their_columns(tmp_path):
    table = pd.DataFrame({"size": X[:, 0], "colour": np.where(X[:, 1] > X[:, 1].mean(), "red", "blue"), "bought": Y})
    for k, (a, b) in enumerate(pairwise([0, 300, len(Y)])):
        table[a:b].to_parquet(tmp_path / f"{k}.parquet", index=False)
    shards = open_shards(str(tmp_path / "*.parquet"), target="bought")
    model, path = rotate([OnlineClassifier(), PenaltyPath(OnlineClassifier(), ["none", "l1=1e-2"])], shards, Local())
    stream = streams.open(str(tmp_path / "*.parquet"), target="bought")
    alone = OnlineClassifier().partial_fit(stream)
    for found in (model, path.estimator_at(0)):
        assert (
            found.get_feature_names_out()[:2].tolist()
            == alone.get_feature_names_out()[:2].tolist()
            == ["size", "colour (hashed)"]
        )
        assert evaluate(found, shards, Local()).measures == evaluate(alone, shards, Local()).measures
        np.testing.assert_array_equal(found.predict(table[["colour", "size"]]), alone.predict(table))
    same_state(model.partial_fit(stream), alone.partial_fit(stream), tmp_path)


def test_models_of_data_frames_know_their_columns():
    frame = pd.DataFrame(X[:, :2], columns=["size", "weight"])
    shards = [Blocks(f"rows {a}", ((frame[a:b], Y[a:b]),)) for a, b in pairwise([0, 300, len(Y)])]
    for model in rotate([OnlineClassifier(), PenaltyPath(OnlineClassifier(), ["l1=1e-2"])], shards, Local()):
        assert model.feature_names_in_.tolist() == ["size", "weight"]
        with pytest.raises(ValueError, match="feature names"):
            model.predict(frame[["weight", "size"]])


@pytest.mark.parametrize(
    ("models", "error", "message"),
    [
        ([OnlineClassifier(), OnlineRegressor()], ValueError, "one kind"),
        ([PenaltyPath(OnlineClassifier(tol=1e-3), ["l1=1e-2"])], ValueError, "all rows at once"),
        ([PenaltyPath(OnlineClassifier(), [])], ValueError, "at least one penalty"),
        ([OnlineClassifier(scale="standard")], ValueError, "standard"),
        ([OnlineClassifier(class_weight="balanced")], ValueError, "balanced"),
        ([OnlineClassifier("squared", solver="sgd,eta=1e9", scale="none")], DivergenceError, "step"),
    ],
    ids=lambda value: "",
)
def test_what_is_refused(models, error, message):
    with pytest.raises(error, match=message):
        rotate(models, cut(X, Y, 300), Local())


def test_no_shards_no_rows_and_no_group():
    for shards in ([], [Blocks("empty", ((X[:0], Y[:0]),))]):
        with pytest.raises(StreamError, match="at least one"):
            rotate([OnlineClassifier()], shards, Local())
    with pytest.raises(ValueError, match="group must be an integer of at least 1"):
        rotate([OnlineClassifier()], cut(X, Y, 300), Local(), group=0)


def test_outputs_that_learn_from_one_another_are_not_put_together():
    one = Learner("ftrl", "logistic", average="adaptive", n_outputs=3, n_features=2)
    with pytest.raises(ValueError, match="learn from one another"):
        Learner.together([one, one])


@pytest.mark.exhaustive
def test_a_worker_killed_on_the_way_changes_no_byte(tmp_path):
    shards = cut(X, Y, 150)
    shards[2] = Deadly(*shards[2], tmp_path / "log", 3)
    path = PenaltyPath(OnlineClassifier(), PENALTIES)
    (alone,) = rotate([path], cut(X, Y, 150), Local(), group=2)
    with Local(2, processes=True) as runner, pytest.warns(RuntimeWarning, match="a worker process died"):
        (found,) = rotate([path], shards, runner, group=2)
    assert bytes_of(found, tmp_path) == bytes_of(alone, tmp_path)
