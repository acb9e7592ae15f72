"""Fits over shards that are stopped, resumed or lose a worker: the same bytes, or one clear error."""

import os
import signal
import threading
import time
from itertools import pairwise

import numpy as np
import pytest
from deadly import Deadly
from sklearn.datasets import load_breast_cancer

from onlinear import ModelFileError, OnlineClassifier, OnlineRegressor, load
from onlinear.shards import Blocks, Local, fit
from onlinear.streams import StreamError

X, Y = load_breast_cancer(return_X_y=True)
ENDS = [0, 100, 101, 250, 400, 569]
SETTINGS = {"penalty": "l1=1e-2", "tol": 1e-4, "class_weight": {0.0: 2.0, 1.0: 1.0}}


def shards(rows=X, labels=Y):
    return [Blocks(f"part {a}", ((rows[a:b], labels[a:b]),)) for a, b in pairwise(ENDS)]


def bytes_of(model, folder):
    model.save(folder / "m")
    return (folder / "m").read_bytes()


def deadly(log, readings):
    parts = shards()
    for place, reading in readings.items():
        parts[place] = Deadly(*parts[place], log.with_suffix(f".{place}"), reading)
    return parts


def wait(path):
    """Work that takes long."""
    path.touch()
    time.sleep(60.0)


def interrupt_once(begun):
    while not all(path.exists() for path in begun):
        time.sleep(0.05)
    os.kill(os.getpid(), signal.SIGINT)


class Stop(Exception):
    pass


@pytest.fixture(scope="module")
def whole():
    return fit(OnlineClassifier(**SETTINGS), shards(), Local())


@pytest.mark.exhaustive
@pytest.mark.parametrize("readings", [{2: 4}, {1: 3, 3: 3}], ids=str)
def test_a_worker_killed_in_the_middle_of_a_round_changes_no_byte(whole, tmp_path, readings):
    with Local(2, processes=True) as runner, pytest.warns(RuntimeWarning, match="a worker process died"):
        model = fit(OnlineClassifier(**SETTINGS), deadly(tmp_path / "log", readings), runner)
    assert bytes_of(model, tmp_path) == bytes_of(whole, tmp_path)
    for place, reading in readings.items():
        readers = (tmp_path / f"log.{place}").read_text().split()
        assert len(readers) > reading
        assert str(os.getpid()) not in readers


@pytest.mark.exhaustive
def test_workers_end_at_once_where_nobody_waits_for_them(tmp_path):
    parts = [tmp_path / "a", tmp_path / "b"]
    threading.Thread(target=interrupt_once, args=[parts]).start()
    with pytest.raises(KeyboardInterrupt), Local(2, processes=True) as local:
        list(local.map(wait, parts))
    began = max(path.stat().st_mtime for path in parts)
    assert time.time() - began < 20.0


@pytest.mark.exhaustive
def test_workers_that_die_each_time_end_the_fit(tmp_path):
    part = Blocks("part", ((X, Y),))
    lost = [Deadly(*part, tmp_path / f"log{k}", 1) for k in range(9)]
    with Local(1, processes=True) as runner, pytest.warns(RuntimeWarning), pytest.raises(RuntimeError, match="died 3 times"):
        fit(OnlineClassifier(**SETTINGS), lost, runner)


@pytest.mark.parametrize("at", [3, 5])
def test_a_fit_resumed_from_a_round_has_the_bytes_of_the_whole(whole, tmp_path, at):
    def stop(found):
        if found.passes == at:
            raise Stop

    with pytest.raises(Stop):
        fit(OnlineClassifier(**SETTINGS), shards(), Local(2), stop, checkpoint=tmp_path / "c")
    assert load(tmp_path / "c").n_passes_ == at
    passes = []
    model = fit(
        OnlineClassifier(**SETTINGS),
        shards(),
        Local(),
        lambda found: passes.append(found.passes),
        checkpoint=tmp_path / "c",
        resume=tmp_path / "c",
    )
    assert passes[0] == at + 1
    assert bytes_of(model, tmp_path) == bytes_of(whole, tmp_path)
    again = fit(OnlineClassifier(**SETTINGS), shards(), Local(), resume=tmp_path / "c")
    assert bytes_of(again, tmp_path) == bytes_of(whole, tmp_path)


def test_a_checkpoint_of_something_else_is_refused(whole, tmp_path):
    path = tmp_path / "c"
    fit(OnlineClassifier(**SETTINGS), shards(), Local(), checkpoint=path)
    with pytest.raises(ValueError, match=r"penalty='l1=1e-2', not 'l1=1e-3'"):
        fit(OnlineClassifier(**SETTINGS | {"penalty": "l1=1e-3"}), shards(), Local(), resume=path)
    with pytest.raises(ValueError, match="of 5 other shards; these are 4"):
        fit(OnlineClassifier(**SETTINGS), shards()[1:], Local(), resume=path)
    with pytest.raises(ValueError, match="of a classifier, not of a regressor"):
        fit(OnlineRegressor(penalty="l1=1e-2", tol=1e-4), shards(), Local(), resume=path)
    whole.save(tmp_path / "m")
    with pytest.raises(ModelFileError, match="no checkpoint of a fit over shards"):
        fit(OnlineClassifier(**SETTINGS), shards(), Local(), resume=tmp_path / "m")


def test_rows_that_have_changed_are_refused(tmp_path):
    def stop(found):
        raise Stop

    with pytest.raises(Stop):
        fit(OnlineClassifier(**SETTINGS), shards(), Local(), stop, checkpoint=tmp_path / "c")
    longer = shards(np.concatenate([X, X[:1]]), np.append(Y, Y[0]))
    longer[-1] = Blocks(longer[-1].name, ((X[:1], Y[:1]), *longer[-1].blocks))
    with pytest.raises(StreamError, match="they have changed"):
        fit(OnlineClassifier(**SETTINGS), longer, Local(), resume=tmp_path / "c")


def test_a_checkpoint_that_cannot_be_written_ends_the_fit(tmp_path):
    with pytest.raises(OSError, match="is a folder"):
        fit(OnlineClassifier(**SETTINGS), shards(), Local(), checkpoint=tmp_path)
