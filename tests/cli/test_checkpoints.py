"""Checkpoints: a run that goes on from one ends as if it had never stopped, and nothing that goes wrong costs rows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command import lines as all_lines
from command import run
from seldom import often

from onlinear import Learner, load, streams
from onlinear.cli import checkpoints, runs
from onlinear.cli.command import Reading
from onlinear.cli.settings import READING, Settings
from onlinear.cli.settings import SETTINGS as SETTING_RULES
from onlinear.errors import ModelFileError
from onlinear.files import model_file, writing
from onlinear.streams import StreamError, shuffle
from onlinear.training.events import Interrupted, Written
from onlinear.training.saved import RunState

OPEN = streams.open
LABELS = {
    "two": lambda z: np.where(z > 0.0, 1, -1),
    "three": lambda z: np.digitize(z, [-0.5, 0.5]),
    "numbers": lambda z: np.round(z, 2),
    "counts": lambda z: np.floor(np.exp(z / 2.0)).astype(int),
}


def text(kind, rows=700, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 12)) * (rng.random((rows, 12)) < 0.4)
    y = LABELS[kind](X @ np.linspace(-1, 1, 12))
    return "".join(
        f"{label}" + "".join(f" {j + 1}:{x:.3f}" for j, x in enumerate(row) if x) + "\n"
        for label, row in zip(y, X, strict=True)
    )


def lines(*arguments):
    """What a run says to machines, without what depends on the clock."""
    return [line for line in all_lines(*arguments) if line["kind"] in ("report", "holdout")]


class Kept(checkpoints.Checkpoints):
    """Keeps every checkpoint that is written."""

    def write(self, training):
        written = super().write(training)
        shutil.copy(self.path, f"{self.path}.{training.rows}")
        return written


SETTINGS = {
    "default": ("two", {}),
    "l1, passes, shuffle": (
        "two",
        {"penalty": "l1,l1=1e-3", "solver": "comid,eta=0.5", "passes": 2, "shuffle_rows": 90, "seed": 4, "scale": "max-abs"},
    ),
    "held out": ("two", {"solver": "comid,eta=0.5", "average": "uniform", "holdout": "0.3", "shuffle_rows": 64, "passes": 2}),
    "early stop": ("two", {"solver": "sgd,schedule=constant,eta=2", "holdout": "0.25", "passes": 5, "early_stop": 1}),
    "three classes": ("three", {"classes": ("0", "1", "2"), "solver": "comid,eta=0.5", "shuffle_rows": 50}),
    "scanned": ("three", {"scan": True, "solver": "comid,eta=0.5"}),
    "numbers": ("numbers", {"solver": "comid,eta=0.1,schedule=inverse-sqrt", "loss": "squared", "task": "regress"}),
    "averaged": ("two", {"solver": "fiol,eta=5", "average": "weighted-t1", "scale": "rms", "passes": 2, "holdout": "0.2"}),
    "averaged, mostly held out": ("two", {"solver": "comid,eta=0.5", "average": "uniform", "holdout": "0.9", "passes": 2}),
    "clipped numbers": ("numbers", {"task": "regress", "passes": 2, "shuffle_rows": 64}),
    "averaged numbers": ("numbers", {"loss": "absolute", "average": "uniform", "solver": "fiol,eta=1", "task": "regress"}),
    "class weights": ("two", {"solver": "comid,eta=0.5", "class_weight": "-1=1,1=20", "holdout": "0.1", "passes": 2}),
    "balanced": ("three", {"scan": True, "class_weight": "balanced", "average": "uniform", "shuffle_rows": 50}),
    "counts": ("counts", {"loss": "poisson", "task": "regress", "solver": "comid,eta=0.01", "holdout": "0.1"}),
}
SELDOM = {"averaged", "balanced", "l1, passes, shuffle", "three classes", "averaged numbers", "numbers"}


@pytest.mark.parametrize("name", often(SETTINGS, SETTINGS.keys() - SELDOM))
def test_a_run_goes_on_from_any_checkpoint_to_the_same_bytes_and_lines(name, tmp_path, monkeypatch):
    kind, options = SETTINGS[name]
    (tmp_path / "rows.svm").write_text(text(kind))
    settings = Settings((str(tmp_path / "rows.svm"),), {}, **options)
    plain = runs.start(settings, None)
    wanted = list(plain)
    plain.model.save(tmp_path / "plain")
    keeper = Kept(str(tmp_path / "c"), 150, None, {})
    monkeypatch.setattr(streams, "open", lambda paths, **o: OPEN(paths, **o, block_bytes=3000))
    whole = runs.start(settings, keeper)
    told = [event for event in whole if not isinstance(event, Written)]
    whole.model.save(tmp_path / "whole")
    assert repr(told) == repr(wanted)
    assert (tmp_path / "whole").read_bytes() == (tmp_path / "plain").read_bytes(), "checkpoints change nothing"
    found = sorted(tmp_path.glob("c.*"), key=lambda path: int(path.suffix[1:]))
    assert [int(path.suffix[1:]) for path in found] == list(range(150, plain.rows + 1, 150))
    for path in found:
        resumed = runs.resume(checkpoints.read(str(path)), None)
        rest = [event for event in resumed if not isinstance(event, Written)]
        resumed.model.save(tmp_path / "resumed")
        assert repr(rest) == repr(wanted[len(wanted) - len(rest) :])
        assert (tmp_path / "resumed").read_bytes() == (tmp_path / "plain").read_bytes(), path.name


@pytest.mark.parametrize(
    "options", [{}, {"shuffle_rows": 90, "seed": 4, "holdout": "0.2", "passes": 2}], ids=["plain", "shuffled"]
)
def test_names_of_hashed_columns_go_on_from_any_checkpoint(options, tmp_path, monkeypatch):
    lines = [f"{'a' if k % 3 else 'b'}{k * k % 97},{k * 7 % 411},{k % 5 % 2}" for k in range(600)]
    (tmp_path / "rows.csv").write_text("site,ad,y\n" + "\n".join(lines) + "\n")
    reading = {"target": "y", "text": ("ad",), "interactions": ("site:ad",)}
    settings = Settings((str(tmp_path / "rows.csv"),), reading, solver="comid,eta=0.5", **options)
    monkeypatch.setattr(streams, "open", lambda paths, **o: OPEN(paths, **o, block_bytes=3000))
    whole = runs.start(settings, Kept(str(tmp_path / "c"), 150, None, {}))
    list(whole)
    whole.model.save(tmp_path / "whole")
    assert len(whole.model.encoding_["seen"]["names"]) > 800
    for path in tmp_path.glob("c.*"):
        resumed = runs.resume(checkpoints.read(str(path)), None)
        list(resumed)
        resumed.model.save(tmp_path / "resumed")
        assert (tmp_path / "resumed").read_bytes() == (tmp_path / "whole").read_bytes(), path.name


@pytest.mark.parametrize("name", ["averaged", "averaged numbers", "balanced"])
def test_a_resumed_run_ends_with_the_same_judgement(name, tmp_path):
    kind, options = SETTINGS[name]
    (tmp_path / "rows.svm").write_text(text(kind, 1300))
    settings = Settings((str(tmp_path / "rows.svm"),), {}, **options)
    whole = runs.start(settings, Kept(str(tmp_path / "c"), 1100, None, {}))
    list(whole)
    resumed = runs.resume(checkpoints.read(str(tmp_path / "c.1100")), None)
    list(resumed)
    assert resumed.constant == whole.constant
    assert resumed.doubts(command=True) == whole.doubts(command=True)
    for name, array in whole.state().arrays.items():
        np.testing.assert_array_equal(resumed.state().arrays[name], array, err_msg=name)


def test_checkpoints_of_0_1_go_on(tmp_path):
    (tmp_path / "rows.svm").write_text(text("two"))
    settings = Settings((str(tmp_path / "rows.svm"),), {}, average="uniform", solver="comid,eta=0.5")
    whole = runs.start(settings, Kept(str(tmp_path / "c"), 512, None, {}))
    list(whole)
    saved = checkpoints.read(str(tmp_path / "c.512"))
    newer = ("scored", "averaged then", "quality", "class weights")
    run_of_then = {name: value for name, value in saved.state.run.items() if name not in newer}
    run_of_then["then"] = run_of_then["then"][:3]
    arrays = {name: array for name, array in saved.state.arrays.items() if not name.startswith("quality.")}
    resumed = runs.resume(saved._replace(state=RunState(run_of_then, arrays)), None)
    list(resumed)
    np.testing.assert_array_equal(resumed.learner.weights(), whole.learner.weights())
    assert resumed.model.history_[-1]["loss_last"] == whole.model.history_[-1]["loss_last"]


def test_a_run_that_leaves_its_pipe_within_a_window_goes_on(tmp_path, monkeypatch):
    rows, whole = tmp_path / "rows.svm", text("two")
    settings = Settings((str(rows),), {}, solver="comid,eta=0.5", shuffle_rows=90)
    keeper = checkpoints.Checkpoints(str(tmp_path / "c"), None, None, {})
    with monkeypatch.context() as patched:
        patched.setattr(shuffle, "are_left", lambda: True)
        for kept, learned in ((None, 250), (keeper, 180)):
            rows.write_text("".join(whole.splitlines(keepends=True)[:250]))
            left = runs.start(settings, kept)
            left.ending = True
            with pytest.raises(Interrupted):
                list(left)
            assert left.rows == learned
        left.checkpoint()
    rows.write_text(whole)
    resumed, plain = runs.resume(checkpoints.read(keeper.path), None), runs.start(settings, None)
    assert list(resumed)[-1] == list(plain)[-1]
    np.testing.assert_array_equal(resumed.learner.weights(), plain.learner.weights())


def test_a_checkpoint_is_a_model_of_the_rows_so_far(tmp_path):
    (tmp_path / "rows.svm").write_text(text("two"))
    settings = Settings((str(tmp_path / "rows.svm"),), {}, solver="comid,eta=0.5", penalty="l1,l1=1e-3", scale="none")
    for _ in runs.start(settings, Kept(str(tmp_path / "c"), 250, None, {})):
        pass
    (block,) = OPEN(tmp_path / "rows.svm")
    learner = Learner("comid,eta=0.5", "logistic", "l1,l1=1e-3", fit_intercept=True).learn(block.X[:500], block.y[:500])
    np.testing.assert_array_equal(load(tmp_path / "c.500").decision_function(block.X), learner.predict(block.X))


@pytest.mark.parametrize("every", ["1e-9s", "0.001s", "100"])
def test_when_checkpoints_are_written_changes_nothing(every, tmp_path):
    (tmp_path / "rows.svm").write_text(text("two"))
    if every == "1e-9s":
        every = "0.000000001s"
    run("train", tmp_path / "rows.svm", "--model", tmp_path / "a")
    run("train", tmp_path / "rows.svm", "--model", tmp_path / "b", "--checkpoint", tmp_path / "c", "--checkpoint-every", every)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.fixture
def stopped(tmp_path):
    """A run that met a wrong line after its checkpoint, with what was asked of it."""
    rows = text("two").splitlines(keepends=True)
    path = tmp_path / "rows.svm"
    path.write_text("".join([*rows[:500], "oops\n", *rows[500:]]))
    options = ("--penalty", "l1,l1=1e-3", "--model", tmp_path / "m", "--shuffle-rows", "60", "--holdout", "0.1")
    error = run("train", path, *options, "--checkpoint", tmp_path / "c", "--checkpoint-every", "200", code=1)
    return path, options, error


def test_a_wrong_line_costs_no_rows(stopped, tmp_path):
    path, options, error = stopped
    assert "rows.svm:501: expected a label (a number), got 'oops'. " in error
    assert re.search(r"'oops'. [0-9]+ rows were learned before it\. The checkpoint", error)
    assert "rows; to continue:\n  onlinear train --resume " in error
    rows = [line for line in path.read_text().splitlines(keepends=True) if line != "oops\n"]
    (tmp_path / "repaired.svm").write_text("".join(rows))
    run("train", tmp_path / "repaired.svm", *options[:-6], *options[-4:], "--model", tmp_path / "whole")
    shutil.copy(tmp_path / "c", tmp_path / "again")
    run("train", "--resume", tmp_path / "c", "--max-errors", "1")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()
    path.write_text("".join(rows))
    run("train", "--resume", tmp_path / "again", "--model", tmp_path / "other")
    assert (tmp_path / "other").read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_run_that_ends_before_its_own_checkpoint_names_the_one_it_continues_from(stopped, tmp_path):
    error = run("train", "--resume", tmp_path / "c", "--checkpoint", tmp_path / "d", code=1)
    assert error.endswith(f"onlinear train --resume {tmp_path / 'c'}\n")
    assert not (tmp_path / "d").exists()
    error = run("train", "--resume", tmp_path / "c", "--model", tmp_path / "other", code=1)
    assert error.endswith(f"onlinear train --resume {tmp_path / 'c'} --model {tmp_path / 'other'}\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--penalty", "l1,l1=1e-4"), "--penalty l1,l1=1e-4: the run of the checkpoint {c} has --penalty l1,l1=1e-3."),
        (("--passes", "2"), "--passes 2: the run of the checkpoint {c} has --passes 1."),
        (("--no-intercept",), "--no-intercept: the run of the checkpoint {c} has --intercept."),
        (("--sort",), "--sort: the run of the checkpoint {c} has no --sort."),
        (("--loss", "hinge"), "--loss hinge: the run of the checkpoint {c} has no --loss."),
        (("--holdout", "0.2"), "--holdout 0.2: the run of the checkpoint {c} has --holdout 0.1."),
        (("other.svm",), "the source other.svm: the run of the checkpoint {c} has the source {rows}."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_other_settings_than_the_checkpoints_are_refused(stopped, tmp_path, options, message):
    path, _, _ = stopped
    error = run("train", "--resume", tmp_path / "c", *options, code=2)
    assert message.format(c=tmp_path / "c", rows=path) in error


def test_the_same_settings_again_are_no_contradiction(stopped, tmp_path):
    path, options, _ = stopped
    run("train", path, *options, "--resume", tmp_path / "c", "--max-errors", "1", "--intercept", "--passes", "1")
    assert (tmp_path / "m").exists()


def test_other_rows_than_the_checkpoints_are_refused(stopped, tmp_path):
    path, _, _ = stopped
    rows = path.read_text().splitlines(keepends=True)
    path.write_text("".join(["-" + rows[0] if rows[0][0] == "1" else rows[0][1:], *rows[1:]]))
    shutil.copy(tmp_path / "c", tmp_path / "before")
    assert "rows are not those that the run had read" in run("train", "--resume", tmp_path / "c", code=1)
    path.write_text("".join(rows[:50]))
    assert "has 50 rows, and the run had read" in run("train", "--resume", tmp_path / "c", code=1)
    assert (tmp_path / "c").read_bytes() == (tmp_path / "before").read_bytes(), "a checkpoint is not lost by a failed try"


@pytest.mark.parametrize("heads", ["y,b,a,s", "y,a,c,s", "y,a,b,t"])
def test_a_table_whose_columns_change_their_places_or_names_is_refused(heads, tmp_path):
    path, rows = tmp_path / "t.csv", "".join(f"{i % 2},{i % 5},{i % 7}.5,{'uvw'[i % 3]}\n" for i in range(200))
    path.write_text(f"y,a,b,s\n{rows}")
    settings = Settings((str(path),), {"target": "y"}, solver="comid,eta=0.5")
    list(runs.start(settings, checkpoints.Checkpoints(str(tmp_path / "c"), 150, None, {})))
    path.write_text(f"{heads}\n{rows}")
    with pytest.raises(StreamError, match=r"t\.csv: the columns are not those that the run had read, or in another order"):
        runs.resume(checkpoints.read(str(tmp_path / "c")), None)


def test_a_file_that_changes_behind_a_checkpoint_of_a_later_pass_is_refused(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text(text("two", 300))
    rows = path.read_text().splitlines(keepends=True)
    settings = Settings((str(path),), {}, passes=3)
    training = runs.start(settings, Kept(str(tmp_path / "c"), 100, None, {"model": str(tmp_path / "m")}))
    assert sum(isinstance(event, Written) for event in training) == 9
    last = [*rows[:-1], "-" + rows[-1] if rows[-1][0] == "1" else rows[-1][1:]]
    for changed, found in ((rows + rows[:9], "309 or more"), (rows[:-9], "291"), (last, "as many with other labels")):
        path.write_text("".join(changed))
        for rows_then in (400, 700):
            shutil.copy(tmp_path / f"c.{rows_then}", tmp_path / "c")
            said = run("train", "--resume", tmp_path / "c", code=1)
            assert f"expected the 300 rows of the first pass again, got {found}" in said
    path.write_text("".join(rows))
    run("train", "--resume", tmp_path / "c.400", "--model", tmp_path / "m")
    training.model.save(tmp_path / "whole")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()
    header, arrays = model_file.read(tmp_path / "c.700")
    for wrong in ({str(path): [300, 1, 1, 1]}, {str(path): [-1, 1, 1, 1, 1]}, [1, 2], {str(path): "12345"}):
        model_file.write(tmp_path / "c", {**header, "run": {**header["run"], "first pass": wrong}}, arrays)
        assert "the checkpoint's header is damaged: it says first pass=" in run("train", "--resume", tmp_path / "c", code=1)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no checkpoint at"),
        (b"short", "not an onlinear model file"),
        ("model", "a model, not a checkpoint"),
        ("damaged", "damaged"),
    ],
)
def test_what_is_no_checkpoint_is_refused(stopped, tmp_path, content, message):
    target = tmp_path / "x"
    if content == "model":
        run("train", tmp_path / "rows.svm", "--max-errors", "1", "--model", target)
    elif content == "damaged":
        changed = bytearray((tmp_path / "c").read_bytes())
        changed[-5] ^= 1
        target.write_bytes(changed)
    elif content is not None:
        target.write_bytes(content)
    assert message in run("train", "--resume", target, code=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--checkpoint-every", "5"), "needs --checkpoint FILE"),
        (("--checkpoint", "c", "--checkpoint-every", "0"), "must be a number of rows (5000) or of seconds (30s), got '0'"),
        (("--checkpoint", "c", "--checkpoint-every", "5m"), "got '5m'"),
        (("--checkpoint", "c", "--checkpoint-every", ""), "got ''"),
        (("--checkpoint", "c", "--model", "./c"), "--model and --checkpoint are one file"),
        (("--checkpoint", "no/such/c"), "there is no folder"),
        (("--early-stop", "1"), "needs --holdout"),
        *(
            (("--holdout", share), "(--holdout) must be between 0 and 1")
            for share in ("1.5", "0", "1", "-0.1", "nan", "inf", "-inf")
        ),
        (("--quiet", "--json"), "exclude each other"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_options_are_a_usage_error(tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.svm").write_text("1 1:1\n")
    assert message in run("train", "rows.svm", *options, code=2)


def test_the_source_must_be_named():
    assert "give at least one source" in run("train", code=2)


def test_divergence_leaves_the_last_checkpoint(tmp_path):
    rows = [f"{i % 7} 1:{1 + i % 3} 2:0.5\n" for i in range(1200)]
    rows[1000] = rows[1001] = "1 1:1e150 2:1e150\n"
    (tmp_path / "rows.svm").write_text("".join(rows))
    options = ("--solver", "sgd,schedule=constant,eta=0.01", "--loss", "squared", "--task", "regress")
    options += ("--checkpoint", tmp_path / "c", "--checkpoint-every", "300", "--model", tmp_path / "m")
    options += ("--scale", "none")
    error = run("train", tmp_path / "rows.svm", *options, code=1)
    assert "rows.svm:100" in error
    assert "the state stopped being finite" in error
    assert f"The checkpoint {tmp_path / 'c'} holds 900 rows" in error
    assert not (tmp_path / "m").exists()
    assert load(tmp_path / "c").t_ == 900


def test_what_a_killed_writer_left_is_removed(tmp_path):
    (tmp_path / "rows.svm").write_text(text("two", 50))
    left, other = (tmp_path / f"{writing._prefix(name)}abcd1234" for name in ("c", "other"))
    left.write_text("half a checkpoint")
    other.write_text("of another file")
    run("train", tmp_path / "rows.svm", "--checkpoint", tmp_path / "c")
    assert not left.exists()
    assert other.exists()


@contextmanager
def small_disk(folder, size):
    """A file system of its own with little room; skips where it may not be mounted."""
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, text=True, check=False
    )
    if made.returncode:
        pytest.skip(f"a small file system cannot be mounted here: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


linux = pytest.mark.skipif(sys.platform != "linux" or not shutil.which("mount"), reason="needs Linux's mount")


@linux
def test_a_full_disk_stops_the_run_and_leaves_the_old_checkpoint(tmp_path):
    growing = [f"{1 if i % 3 else -1} {1 + i % 5}:1 {10 + 20 * i}:0.5\n" for i in range(3000)]
    (tmp_path / "rows.svm").write_text("".join(growing))
    options = ("--model", tmp_path / "m", "--checkpoint-every", "200")
    with small_disk(tmp_path / "disk", "2m") as disk:
        error = run("train", tmp_path / "rows.svm", *options, "--checkpoint", disk / "c", code=1)
        assert f"the checkpoint {disk / 'c'} cannot be written: No space left on device." in error
        held = load(disk / "c").t_
        assert f"The checkpoint {disk / 'c'} holds {held:,} rows; to continue" in error
        assert 0 < held < 3000
        assert os.listdir(disk) == ["c"]
        assert not (tmp_path / "m").exists()
        assert f"--resume {disk / 'c'} --model {tmp_path / 'm'}" in error
        run("train", "--resume", disk / "c", "--checkpoint", tmp_path / "c", "--model", tmp_path / "m")
    run("train", tmp_path / "rows.svm", "--model", tmp_path / "whole")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()


@linux
def test_a_disk_that_takes_no_writes_any_more_leaves_the_old_checkpoint(tmp_path):
    (tmp_path / "rows.svm").write_text(text("two"))
    with small_disk(tmp_path / "disk", "2m") as disk:
        settings = Settings((str(tmp_path / "rows.svm"),), {})
        training = runs.start(settings, checkpoints.Checkpoints(str(disk / "c"), 200, None, {}))
        events = iter(training)
        assert any(isinstance(event, Written) for event in events)
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
        with pytest.raises(checkpoints.CheckpointError, match="Read-only file system"):
            list(events)
        assert load(disk / "c").t_ == 200
        assert "cannot be written to" in run("train", tmp_path / "rows.svm", "--checkpoint", disk / "d", code=2)


def test_a_checkpoint_that_finds_no_memory_leaves_the_one_before(tmp_path, monkeypatch):
    (tmp_path / "rows.svm").write_text(text("two"))
    write, calls = model_file.write, []

    def refuse(*given):
        calls.append(given)
        if len(calls) > 1:
            raise MemoryError
        write(*given)

    monkeypatch.setattr(model_file, "write", refuse)
    error = run("train", tmp_path / "rows.svm", "--checkpoint", tmp_path / "c", "--checkpoint-every", "200", code=1)
    assert f"{tmp_path / 'c'} cannot be written: no memory. The checkpoint" in error
    assert "holds 200 rows; to continue" in error


def test_a_model_that_cannot_be_written_leaves_the_checkpoint(tmp_path, monkeypatch):
    (tmp_path / "rows.svm").write_text(text("two"))
    original = os.replace

    def refuse(source, target):
        if str(target).endswith("model"):
            raise OSError(28, "No space left on device")
        return original(source, target)

    monkeypatch.setattr(os, "replace", refuse)
    options = ("--checkpoint", tmp_path / "c", "--checkpoint-every", "200", "--model", tmp_path / "model")
    error = run("train", tmp_path / "rows.svm", *options, code=1)
    assert "the model" in error
    assert "cannot be written: No space left on device." in error
    assert "holds 600 rows; to continue" in error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "rows.svm"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_runs_end_with_the_bytes_of_the_uninterrupted_one(tmp_path):
    tool = [
        sys.executable,
        Path(__file__).parent.parent / "tools" / "kill.py",
        "--times",
        "3",
        "--rows",
        "12000",
        "--seed",
        "5",
    ]
    ran = subprocess.run([*tool, "--folder", tmp_path], capture_output=True, text=True, timeout=900, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "3 ended with the very bytes, and the lines of the table, of the uninterrupted run." in ran.stdout


# --- checkpoints that someone else has made --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with rows and a checkpoint of half a run over them."""
    folder = tmp_path_factory.mktemp("written")
    (folder / "rows.svm").write_text(text("two"))
    options = {"solver": "comid,eta=0.5", "holdout": "0.2", "passes": 3, "early_stop": 2, "shuffle_rows": 64}
    settings = Settings((str(folder / "rows.svm"),), {}, **options)
    for event in runs.start(settings, checkpoints.Checkpoints(str(folder / "c"), 900, None, {"model": None})):
        if isinstance(event, Written):
            break
    return folder


def forged(written, tmp_path, change):
    header, arrays = model_file.read(written / "c")
    del header["digest"]
    change(header["run"], arrays)
    model_file.write(tmp_path / "c", header, arrays)
    return tmp_path / "c"


def saying(**changes):
    return lambda said, arrays: said.update(changes)


FORGED = {
    "a pass that never comes": saying(**{"pass": 1e300}),
    "a pass beyond the last": saying(**{"pass": 7}),
    "a pass before the first": saying(**{"pass": -1}),
    "a pass that is true": saying(**{"pass": True}),
    "rows of another run": saying(rows=901),
    "rows that are none": saying(rows=None),
    "a place before the start": saying(consumed=-5),
    "held-out rows before they came": saying(flushed=10**6),
    "a report to come": saying(then=[0.0, 0.0, 10**9]),
    "a report long due": saying(then=[0.0, 0.0, 1]),
    "a report of text": saying(then=["a", "b", "c"]),
    "checksums that are none": saying(trace=[2**70, "x"]),
    "a generator that is none": saying(generator=[1]),
    "no generator": lambda said, arrays: said.pop("generator"),
    "another task": saying(task="regress"),
    "no task": saying(task="x"),
    "one class": saying(classes=[1]),
    "classes of text": saying(classes=["a", "b"]),
    "three classes": saying(classes=[0, 1, 2]),
    "classes that do not ascend": saying(classes=[1, -1]),
    "a best model that is none": saying(best=[1, 0.5, {}]),
    "a best model of lists": saying(best=[[], [], []]),
    "a source that is a number": lambda said, arrays: said["settings"].update(source=[3]),
    "no source": lambda said, arrays: said["settings"].update(source=[]),
    "no passes": lambda said, arrays: said["settings"].update(passes=0),
    "a setting of no name": lambda said, arrays: said["settings"].update(evil=1),
    "a way of reading of no name": lambda said, arrays: said["settings"]["reading"].update(block_bytes=1 << 50),
    "bits of a hash beyond all": lambda said, arrays: said["settings"]["reading"].update(hash_bits=99),
    "an output that is a list": saying(output=["m"]),
    "an output with a zero in it": saying(output={"model": "a\0b"}),
    "bins beyond the last": lambda said, arrays: arrays["run.all.bins"].__setitem__(-1, 10**9),
    "bins before the first": lambda said, arrays: arrays["run.all.bins"].__setitem__(0, -1),
    "bins that are no integers": lambda said, arrays: arrays.update({"run.all.bins": arrays["run.all.bins"].astype(float)}),
    "a tally that is gone": lambda said, arrays: arrays.pop("run.held.tally"),
    "a tally of more rows than there are": lambda said, arrays: arrays["run.all.tally"].__setitem__(0, 1e300),
    "a tally of nan": lambda said, arrays: arrays["run.all.tally"].__setitem__(0, np.nan),
    "counts of another shape": lambda said, arrays: arrays.update({"run.all.counts": np.zeros((2, 1))}),
}


@pytest.mark.parametrize("change", FORGED.values(), ids=FORGED)
def test_a_checkpoint_that_no_run_wrote_is_refused_before_a_row_is_read(change, written, tmp_path):
    path = forged(written, tmp_path, change)
    with pytest.raises(ModelFileError, match="c: "):
        runs.resume(checkpoints.read(str(path)), None)


def test_the_rules_for_checkpoints_cover_what_runs_write(written):
    header, _ = model_file.read(written / "c")
    assert set(SETTING_RULES) == set(Settings._fields)
    assert set(checkpoints.RUNS) == set(header["run"])
    assert set(READING) == set(Reading._fields)
    assert list(runs.resume(checkpoints.read(str(written / "c")), None))


def test_a_checkpoint_chooses_no_place_outside_its_folder(tmp_path):
    (tmp_path / "rows.svm").write_text(text("two"))
    inner = tmp_path / "inner"
    inner.mkdir()
    options = ("--solver", "comid,eta=0.5", "--checkpoint", inner / "c", "--checkpoint-every", "200")
    run("train", tmp_path / "rows.svm", *options, "--model", tmp_path / "m")
    (tmp_path / "m").unlink()
    error = run("train", "--resume", inner / "c", code=2)
    assert "not in the checkpoint's own folder" in error
    assert f"--model {tmp_path / 'm'}" in error
    assert not (tmp_path / "m").exists()
    run("train", "--resume", inner / "c", "--model", tmp_path / "m")
    assert (tmp_path / "m").exists()
    (inner / "link").symlink_to(tmp_path)
    for place in ("../m", inner / "link" / "m", "/etc/x"):
        header, arrays = model_file.read(inner / "c")
        del header["digest"]
        header["run"]["output"]["model"] = str(place)
        model_file.write(inner / "c", header, arrays)
        assert "not in the checkpoint's own folder" in run("train", "--resume", inner / "c", code=2)


def test_a_checkpoint_replaces_a_checkpoint_and_no_other_file(tmp_path):
    (tmp_path / "rows.svm").write_text(text("two"))
    run("train", tmp_path / "rows.svm", "--checkpoint", tmp_path / "c", "--checkpoint-every", 100)
    run("train", tmp_path / "rows.svm", "--model", tmp_path / "m")
    (tmp_path / "notes").write_text("not to be lost")
    for name in ("m", "notes"):
        before = (tmp_path / name).read_bytes()
        for start in ((tmp_path / "rows.svm",), ("--resume", tmp_path / "c")):
            shown = run("train", *start, "--checkpoint", tmp_path / name, code=2)
            assert f"--checkpoint {tmp_path / name}: there is such a file, and it is no checkpoint" in shown
        assert (tmp_path / name).read_bytes() == before
    (tmp_path / "empty").touch()
    for name in ("c", "empty"):
        run("train", tmp_path / "rows.svm", "--checkpoint", tmp_path / name, "--checkpoint-every", 100, "--passes", 2)
        assert checkpoints.read(str(tmp_path / name)).settings.passes == 2


def test_text_labels_that_end_with_a_zero_resume(tmp_path):
    pd.DataFrame({"x": [0.0, 1.0] * 10, "t": ["a", "a\0"] * 10}).to_parquet(tmp_path / "rows.parquet")
    options = ("--target", "t", "--scan", "--passes", 2, "--model", tmp_path / "m", "-q")
    run("train", tmp_path / "rows.parquet", *options, "--checkpoint", tmp_path / "c", "--checkpoint-every", 7)
    whole = (tmp_path / "m").read_bytes()
    run("train", "--resume", tmp_path / "c", "-q")
    assert (tmp_path / "m").read_bytes() == whole
    assert load(tmp_path / "m").classes_.tolist() == ["a", "a\0"]


@pytest.mark.parametrize(
    "options",
    [
        ("--seed", 10**45, "--shuffle-rows", 10),
        ("--shuffle-rows", 10**20),
        ("--max-errors", 10**20),
        ("--max-passes", 10**20, "--tol", 1e-3),
        ("--early-stop", 10**20, "--passes", 2, "--holdout", 0.1),
        ("--workers", 1, "--rounds", 10**20),
    ],
    ids=lambda options: " ".join(map(str, options)),
)
def test_numbers_that_a_checkpoint_cannot_hold_are_refused_before_the_run(tmp_path, options):
    (tmp_path / "rows.svm").write_text("1 1:1\n-1 2:1\n" * 20)
    error = run("train", tmp_path / "rows.svm", "--penalty", "l2=1e-2", *options, "--checkpoint", tmp_path / "c", code=2)
    assert " is beyond what a checkpoint can hold, got " in error
    assert not (tmp_path / "c").exists()
