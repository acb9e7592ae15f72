"""``train --passes auto``: the run of the command is that of the estimator on the same rows."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command import run
from typer.testing import CliRunner

from onlinear import OnlineClassifier, load, streams
from onlinear.cli import app
from onlinear.training import few_rows


@pytest.fixture
def rows(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 4))
    y = np.where(X[:, 0] + rng.standard_normal(150) > 0.0, 1, -1)
    lines = (f"{label} " + " ".join(f"{j + 1}:{x:.6f}" for j, x in enumerate(row)) for label, row in zip(y, X, strict=True))
    (tmp_path / "rows.svm").write_text("\n".join(lines) + "\n")
    return tmp_path / "rows.svm"


@pytest.mark.parametrize("penalty", ["none", "l1=1e-2"])
def test_the_command_and_fit_choose_alike(rows, tmp_path, penalty):
    shown = run("train", rows, "--penalty", penalty, "--passes", "auto", "--model", tmp_path / "m")
    wanted = OnlineClassifier(penalty=penalty, passes="auto").fit(streams.open(rows))
    found = load(tmp_path / "m")
    assert f"passes: {wanted.n_iter_} (auto)" in shown
    assert (found.n_iter_, found.t_) == (wanted.n_iter_, wanted.t_)
    assert found.learner_.calibration_slope == wanted.learner_.calibration_slope
    np.testing.assert_array_equal(found.coef_, wanted.coef_)


def test_the_last_loss_of_held_out_rows_is_of_the_model_that_is_written(rows, tmp_path):
    lines = run("train", rows, "--passes", "auto", "--holdout", rows, "--json", "--model", tmp_path / "m").splitlines()
    held = [line for line in map(json.loads, lines) if line["kind"] == "holdout"]
    assert load(tmp_path / "m").learner_.calibration_slope != 1.0
    assert json.loads(run("evaluate", tmp_path / "m", rows, "--json"))["loss"] == pytest.approx(held[-1]["loss"], rel=1e-12)


def test_a_run_that_is_resumed_has_the_passes_and_the_slope_of_the_whole(rows, tmp_path):
    run("train", rows, "--passes", "auto", "--model", tmp_path / "whole", "-q")
    again = "--model", tmp_path / "m", "--checkpoint", tmp_path / "c", "--checkpoint-every", 100
    run("train", rows, "--passes", "auto", *again, "-q")
    run("train", "--resume", tmp_path / "c", "-q")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()
    passes = load(tmp_path / "whole").n_iter_
    run("train", "--resume", tmp_path / "c", "--passes", passes, "-q")
    assert f"has --passes {passes}" in run("train", "--resume", tmp_path / "c", "--passes", passes + 1, code=2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--tol", "1e-3", "--penalty", "l2=1e-2"), "--passes auto and --tol exclude each other"),
        (("--holdout", "0.2", "--early-stop", "2"), "--passes auto and --early-stop exclude each other"),
        (("--from", "m"), "--passes auto and --from exclude each other"),
        (("--workers", "2"), "--passes has no form over shards"),
    ],
)
def test_options_that_leave_no_room_are_refused(rows, options, said):
    assert said in run("train", rows, "--passes", "auto", *options, code=2)


def test_a_pipe_takes_one_pass(rows):
    result = CliRunner().invoke(app, ["train", "-", "--passes", "auto"], input=rows.read_bytes())
    assert result.exit_code == 0
    assert "150 rows in" in result.stdout
    assert "passes" not in result.stdout


def test_rows_that_are_too_long_to_be_held_take_one_pass(rows, monkeypatch):
    for most, passes in ((599, False), (600, True)):  # 150 rows of 4 entries
        monkeypatch.setattr(few_rows, "MOST_ENTRIES", most)
        assert (OnlineClassifier(passes="auto").fit(streams.open(rows)).n_iter_ > 1) is passes


def test_held_out_rows_are_not_asked(rows, tmp_path):
    run("train", rows, "--passes", "auto", "--holdout", 0.2, "--model", tmp_path / "m", "-q")
    found = load(tmp_path / "m")
    assert found.t_ == 120 * found.n_iter_
