"""What is shown is what is written; the best constant beside it; plain words where a model is of no use."""

from __future__ import annotations

import json
import os
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from command import lines, run
from sklearn.datasets import load_digits
from typer.testing import CliRunner

from onlinear import Learner, OnlineClassifier, OnlineRegressor, QualityWarning, load, losses, streams
from onlinear.cli import app, checkpoints, runs
from onlinear.cli import lines as shown_lines
from onlinear.cli.settings import Settings
from onlinear.models import base
from onlinear.training import quality
from onlinear.training.doubts import Advice, falling, out_of_reach, sorted_rows, sorted_targets
from onlinear.training.events import Report

OPEN = streams.open
ADVICE = Advice(True, "fiol,eta=5", False, ("-1", "1"), 5000, False)


def write(path, X, y):
    rows = ("".join(f" {j + 1}:{x:.4g}" for j, x in enumerate(row) if x) for row in X)
    path.write_text("".join(f"{label:g}{row}\n" for label, row in zip(y, rows, strict=True)))
    return path


def drifting(n=1500):
    """Rows of one class, then of the other: the last iterate is right and the average of all steps is not."""
    X = np.ones((n, 2))
    X[:, 1] = np.random.default_rng(1).standard_normal(n)
    return X, np.where(np.arange(n) < 0.6 * n, -1, 1)


# --- what is shown is what is written ---------------------------------------------------------------------------------


def by_hand(X, y, solver, loss, average):
    """The progressive losses of the average and of the last iterate, row by row, from the rule of the pieces."""
    learner, own, last = Learner(solver, loss, average=average, fit_intercept=True), [], []
    value = np.vectorize(lambda s, t: learner.loss.value(float(s), float(t)))
    t = 0
    while t < len(y):
        size = 1
        while 2 * size <= t // 8:
            size *= 2
        end = min(len(y), (t // size + 1) * size)
        own.append(value(learner.predict(X[t:end]), y[t:end]))
        for i in range(t, end):
            scores = X[i] @ learner.weights() + learner.intercept() if learner.t else 0.0
            last.append(value(scores, y[i]))
            learner.learn(X[i : i + 1], y[i : i + 1])
        t = end
    return np.concatenate(own), np.array(last), learner


def test_rows_are_scored_by_the_average_that_is_written(tmp_path, monkeypatch):
    X, y = drifting(300)
    path = write(tmp_path / "rows.svm", X, y)
    (block,) = OPEN(path)
    own, last, learner = by_hand(block.X.toarray(), y.astype(float), "comid,eta=0.5", "logistic", "uniform")
    options = ("--solver", "comid,eta=0.5", "--average", "uniform", "--scale", "none")
    found = []
    for size in (100, 1000, 10**6):
        monkeypatch.setattr(streams, "open", lambda paths, size=size, **o: OPEN(paths, **o, block_bytes=size))
        *_, report, _ = told = lines(path, *options, "--model", tmp_path / "m")
        found.append([line for line in told if line["kind"] == "report"])
        assert report["loss"] == pytest.approx(own.mean(), rel=1e-12)
        assert report["loss_last"] == pytest.approx(last.mean(), rel=1e-12)
        np.testing.assert_array_equal(load(tmp_path / "m").coef_[0], learner.weights(average=True))
    assert found[0] == found[1] == found[2]


def test_what_follows_one_huge_loss_is_told_to_its_last_digit(tmp_path):
    X, y = np.ones((300, 2)), np.random.default_rng(0).choice([-1, 1], 300)
    X[:, 1], X[[0, 2], 1], y[[0, 2]] = 0.0, [1.0, 1e20], [1, -1]
    path = write(tmp_path / "rows.svm", X, y)
    own, last, _ = by_hand(X, y.astype(float), "comid,eta=0.5", "logistic", "uniform")
    options = {"solver": "comid,eta=0.5", "average": "uniform", "scale": "none"}
    keeper = checkpoints.Checkpoints(str(tmp_path / "c"), 200, None, {})
    whole = runs.start(Settings((str(path),), {}, **options), keeper)
    reports = [event for event in whole if isinstance(event, Report)]
    ends = [report.rows for report in reports]
    for report, before, end in zip(reports[3:], ends[2:], ends[3:], strict=False):
        assert report.since == pytest.approx(own[before:end].mean(), rel=1e-12)
        assert report.last.since == pytest.approx(last[before:end].mean(), rel=1e-12)
    assert reports[-1].loss > 1e15
    resumed = runs.resume(checkpoints.read(keeper.path), None)
    assert list(resumed)[-1] == reports[-1]
    assert resumed.model.history_ == whole.model.history_


def test_the_table_has_the_error_that_evaluate_finds(tmp_path):
    X, y = drifting(4096)
    path, last = write(tmp_path / "rows.svm", X, y), write(tmp_path / "last.svm", X[-100:], y[-100:])
    *_, report, _ = lines(path, "--average", "uniform", "--solver", "fiol,eta=5", "--model", tmp_path / "m")
    assert report["loss"] > 2.0 * report["loss_last"], "0.1 showed the last iterate's loss only"
    found = json.loads(run("evaluate", tmp_path / "m", last, "--json"))
    assert found["error"] == 1.0
    assert report["error"] == pytest.approx(0.4, abs=0.01), "of the average; the last iterate is wrong but a few times"
    shown = run("train", path, "--average", "uniform", "--solver", "fiol,eta=5")
    assert "measures of the average, which is written; last: loss of the last iterate" in shown
    assert "The model predicts worse than a constant (loss " in shown
    assert "Try a model without an average (--average none)." in " ".join(shown.split())


def test_without_an_average_there_is_no_second_column(tmp_path):
    X, y = drifting(200)
    path = write(tmp_path / "rows.svm", X, y)
    *_, report, _ = lines(path, "--average", "none", "--model", tmp_path / "m")
    assert not any(name.endswith("_last") for name in report)
    model = load(tmp_path / "m")
    assert report["loss"] == model.learner_.progressive_loss
    assert set(model.history_[0]) == {"rows", "loss", "since", "error", "auc", "nonzeros"}


def test_a_wrong_row_leaves_the_rows_before_it_trained_on():
    X, y = np.random.default_rng(2).standard_normal((50, 3)), np.where(np.arange(50) % 2, 1.0, 0.0)
    wrong = y.copy()
    wrong[40] = 7.0
    model = OnlineClassifier(average="uniform", solver="comid,eta=0.5")
    with pytest.raises(ValueError, match=r"block 2:16: expected one of .* \(Rows learned before: 40\.\)"):
        model.fit([(X[:25], y[:25]), (X[25:], wrong[25:])])
    assert model.t_ == 40
    with pytest.raises(ValueError, match=r"Rows learned before: 45\."):
        model.fit(block for block in [(X[:25], y[:25]), (X[25:45], y[25:45]), "no block"])
    assert model.t_ == 45, "also the rows that waited for their piece"


# --- the best constant beside it -------------------------------------------------------------------------------------


def test_the_constant_is_shown_by_train_and_evaluate(tmp_path):
    X, y = np.random.default_rng(3).standard_normal((400, 3)), np.where(np.arange(400) % 4, -1, 1)
    path = write(tmp_path / "rows.svm", X, y)
    shown = run("train", path, "--model", tmp_path / "m")
    assert "best constant: loss 0.5623, error 0.25\n" in shown
    assert "best constant: loss 0.562335, error 0.25\n" in run("evaluate", tmp_path / "m", path)
    end = lines(path)[-1]
    found = json.loads(run("evaluate", tmp_path / "m", path, "--json"))
    assert end["best_constant"] == pytest.approx({"loss": 0.5623351446188083, "error": 0.25})
    assert found["best_constant"] == pytest.approx(end["best_constant"])
    numbers = lines(path, "--task", "regress", "--loss", "absolute")[-1]["best_constant"]
    assert numbers == pytest.approx({"loss": 0.5, "mae": 0.5})


# --- plain words ------------------------------------------------------------------------------------------------------


def doubts_of(estimator, X, y, **options):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        estimator.fit(X, y, **options)
    assert all(warning.category is QualityWarning for warning in found)
    return [str(warning.message) for warning in found]


def rows_of(n=3000, noise=1.0, d=4):
    X = np.random.default_rng(4).standard_normal((n, d))
    return X, np.where(X[:, 0] + noise * np.random.default_rng(5).standard_normal(n) > 0.0, 1, -1)


@pytest.mark.parametrize("solver", ["ftrl", "adagrad-rda", "adagrad-comid,eta=0.3"])
def test_steps_that_do_not_follow_targets_get_the_solver_whose_steps_do(solver):
    X = np.random.default_rng(0).standard_normal((1500, 3))
    prices = 1e5 * X[:, 0] + 3e5
    (found,) = doubts_of(OnlineRegressor(solver=solver, random_state=0), X, prices)
    assert 'Try a solver whose steps follow the targets (solver="implicit-ftrl"), or targets near 0' in found
    for settings, y in (({"solver": "implicit-ftrl"}, prices), ({"solver": solver}, X[:, 0])):
        assert OnlineRegressor(**settings, passes=5, random_state=0).fit(X, y).score(X, y) > 0.9


def test_the_remedy_is_one_for_the_loss_and_the_solver(tmp_path):
    X, _ = rows_of()
    (found,) = doubts_of(OnlineRegressor(solver="rls,limit=8"), X, X[:, 0] + 1e8)
    assert found.endswith('Try a smaller ridge (solver="rls,delta=1e-06,limit=8"), or a target and columns near 0.')
    assert not any("worse" in text for text in doubts_of(OnlineRegressor(solver="rls,delta=1e-06"), X, X[:, 0] + 1e8))
    rng = np.random.default_rng(6)
    rare = np.where(rng.random(len(X)) < 0.05, 1000.0 * rng.gamma(2.0, size=len(X)), 0.0) * np.exp(X[:, 0])
    (found,) = doubts_of(OnlineRegressor("poisson", solver="fiol,eta=1000", average="none"), X, rare)
    assert found.endswith('Try the optimum (penalty="l2=1e-4", tol=1e-3).')
    for settings in ({"penalty": "l2=1e-4", "tol": 1e-3}, {}):
        assert doubts_of(OnlineRegressor("poisson", **settings), X, rare) == []


def test_a_model_worse_than_a_constant_is_named(tmp_path):
    X, y = np.random.default_rng(6).standard_normal((3000, 20)), np.where(np.random.default_rng(7).random(3000) < 0.05, 1, -1)
    bad = {"solver": "fiol,eta=100", "average": "none"}
    (found,) = doubts_of(OnlineClassifier(**bad), X, y)
    assert found.startswith("The model predicts worse than a constant (loss ")
    assert found.endswith('Try smaller steps (solver="fiol,eta=10").')
    (found,) = doubts_of(OnlineClassifier(**bad), [(X, y)], None)
    assert "worse than a constant" in found
    path = write(tmp_path / "rows.svm", X, y)
    shown = run("train", path, "--solver", "fiol,eta=100", "--average", "none", "--model", tmp_path / "m")
    assert "Try smaller steps" in shown.replace("\n  ", " ")
    assert "(--solver fiol,eta=10)." in shown
    assert "The model predicts worse than a constant on these rows." in run("evaluate", tmp_path / "m", path)
    assert lines(path, "--solver", "fiol,eta=100", "--average", "none")[-1]["doubts"] == [
        line for line in lines(path, "--solver", "fiol,eta=100", "--average", "none")[-1]["doubts"] if "worse" in line
    ]


def test_a_rare_class_or_target_that_the_rows_scored_lack_is_no_doubt():
    X, y = np.random.default_rng(6).standard_normal((6000, 20)), np.zeros(6000, int)
    scored = np.linspace(0, 5999, quality.SAMPLE).astype(int)
    y[np.setdiff1d(np.arange(6000), scored)[5:1800:90]] = 1
    X[y == 1, 0] += 4.0
    for settings in ({}, {"class_weight": "balanced"}):
        assert not any("worse" in text for text in doubts_of(OnlineClassifier(random_state=0, **settings), X, y))
    (found,) = doubts_of(OnlineClassifier(solver="fiol,eta=1e-4", average="none", random_state=0), X, y)
    assert "worse than a constant (loss 0.689" in found
    assert "constant 0.02234)" in found  # of all rows
    for loss in ("squared", "poisson"):
        assert not any("worse" in text for text in doubts_of(OnlineRegressor(loss, random_state=0), X, y))
    many = np.arange(20_000) // 2
    assert not quality._with_all_classes(many, np.ones(20_000), np.arange(0, 20_000, 5), 10_000)[2]  # too many to say anything


def test_a_model_of_classes_that_hardly_moved_is_told_to_take_larger_steps(tmp_path):
    X, y = rows_of()
    y = np.where(X[:, 0] > 1.0, 1, -1)  # few are positive: the best constant is far from scores of 0
    still = {"solver": "fiol,eta=1e-4", "average": "none"}
    for found in (doubts_of(OnlineClassifier(**still), X, y), doubts_of(OnlineClassifier(**still), [(X, y)], None)):
        assert found[0].startswith("The model predicts worse than a constant (loss 0.69")
        assert found[0].endswith('Try larger steps (solver="fiol,eta=0.01").')
    shown = run("train", write(tmp_path / "rows.svm", X, y), "--solver", "fiol,eta=1e-4", "--average", "none")
    assert "Try larger steps (--solver fiol,eta=0.01)." in " ".join(shown.split())
    three = np.where(X[:, 0] > 1.0, 2, np.where(X[:, 1] > 1.5, 1, 0))
    (found,) = doubts_of(OnlineClassifier(**still), X, three)
    assert found.endswith('Try larger steps (solver="fiol,eta=0.01").')


def test_a_good_model_and_few_rows_say_nothing():
    X, y = rows_of()
    good = {"solver": "fiol,eta=1", "average": "none"}
    assert doubts_of(OnlineClassifier(**good), X, y) == []
    assert doubts_of(OnlineClassifier(**good), [(X, y)], None) == []
    noise = np.where(np.random.default_rng(8).random(900) < 0.5, 1, -1)
    assert doubts_of(OnlineClassifier(solver="fiol,eta=100", average="none"), X[:900], noise) == []
    assert doubts_of(OnlineClassifier(**good), [(X[:900], noise)], None) == []


def test_a_sorted_file_is_named(tmp_path):
    X, y = rows_of()
    order = np.argsort(-y, kind="stable")
    first = int(np.sum(y == 1))
    wanted = f"The first {first:,} rows are all of class 1: is the file sorted? Shuffle it: "
    path = write(tmp_path / "rows.svm", X[order], y[order])
    assert f"{wanted}--shuffle-rows 3000." in " ".join(run("train", path).split())
    assert "is the file sorted" not in run("train", path, "--shuffle-rows", "3000")
    model = OnlineClassifier(shuffle=False, random_state=0)
    for found in (doubts_of(model, X[order], y[order]), doubts_of(model, [(X[order], y[order])], None)):
        assert found[0].startswith(wanted)
    assert not any("sorted" in text for text in doubts_of(OnlineClassifier(random_state=0), X[order], y[order]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OnlineClassifier().partial_fit(X[order], y[order], classes=[-1, 1])
        OnlineClassifier().partial_fit([(X[order], y[order])])


def test_a_file_sorted_by_its_numbers_is_named(tmp_path):
    X, _ = rows_of()
    y = X[:, 0] + np.random.default_rng(3).standard_normal(len(X))
    for order, how in ((np.argsort(y), "rise"), (np.argsort(-y), "fall")):
        wanted = f"The first 1,000 targets only {how}: is the file sorted by them? Shuffle it: "
        path = write(tmp_path / "rows.svm", X[order], y[order])
        assert f"{wanted}--shuffle-rows 3000." in " ".join(run("train", path).split())
        assert "is the file sorted" not in run("train", path, "--shuffle-rows", "3000")
        model = OnlineRegressor(shuffle=False, random_state=0)
        for found in (doubts_of(model, X[order], y[order]), doubts_of(model, [(X[order], y[order])], None)):
            assert found[0].startswith(wanted)
        assert not any("sorted" in text for text in doubts_of(OnlineRegressor(random_state=0), X[order], y[order]))
    for few in (np.sort(y)[:999], np.zeros(3000), np.repeat(np.arange(30.0), 100), np.roll(np.sort(y), 1)[:1000]):
        assert sorted_targets(few, ADVICE) == ""


def test_a_rare_class_is_no_sorted_file():
    assert sorted_rows(1800, 0.9999, 0, ADVICE) == ""
    assert sorted_rows(999, 0.5, 0, ADVICE) == ""
    assert "rows are all of class -1" in sorted_rows(1800, 0.99, 0, ADVICE)


def test_a_stream_of_one_class_is_named(tmp_path):
    path = write(tmp_path / "rows.svm", np.ones((50, 1)), np.ones(50))
    for options in ((), ("--penalty", "l2=0.1", "--tol", "0.1")):
        assert "All 50 rows are of class 1: there is nothing to tell apart." in run("train", path, *options)
    X, y = rows_of(1000)
    for rows in ((X, y), ([(X, y)], None)):
        (said,) = doubts_of(OnlineClassifier(class_weight={-1: 0.0}), *rows)
        assert said == "All rows of a weight above 0 are of class 1: there is nothing to tell apart."
    rows = [(np.eye(2)[np.arange(1000) % 2], np.ones(1000))]
    assert len(doubts_of(OnlineClassifier(), rows, None)) == 1, "the best constant of one class has no loss"
    (said,) = doubts_of(OnlineClassifier(penalty="l2=0.1", tol=0.1), rows, None)
    assert "All 1,000 rows are of class 1" in said


@pytest.mark.parametrize("loss", ["absolute", "quantile,q=0.9", "huber", "epsilon-insensitive"])
def test_targets_out_of_reach_are_named(loss, tmp_path, monkeypatch):
    monkeypatch.setattr(base.Model, "_follows", lambda *parts: False)  # as for solvers whose steps cannot follow the targets
    X, _ = rows_of()
    y = 1e5 + X[:, 0]
    regressor = OnlineRegressor(loss, solver="fiol,eta=1", scale="none")
    for found in (doubts_of(regressor, X, y), doubts_of(regressor, [(X, y)], None)):
        assert found[0].startswith("The targets are out of reach: 100.0% of them are above the predictions. Try larger steps")
        assert 'solver="fiol,eta=100"' in found[0]
    path = write(tmp_path / "rows.svm", X, y)
    shown = run("train", path, "--loss", loss, "--task", "regress", "--solver", "fiol,eta=1", "--scale", "none")
    assert "The targets are out of reach" in shown
    near = doubts_of(regressor, X, X[:, 0] + 0.1 * np.random.default_rng(9).standard_normal(3000))
    assert not any("reach" in text for text in near)


def test_an_extreme_quantile_is_no_target_out_of_reach():
    loss = losses.Quantile(q=0.995)
    assert out_of_reach(loss, 0.995, 0.005, 10_000, ADVICE) == ""
    assert out_of_reach(loss, 1.0, 0.0, 100, ADVICE) == "", "too few rows to expect one on the other side"
    assert "below the predictions" in out_of_reach(loss, 1.0, 0.0, 10_000, ADVICE)
    assert out_of_reach(losses.Squared(), 1.0, 0.0, 10_000, ADVICE) == ""


def test_a_loss_that_still_falls_asks_for_more_passes(tmp_path):
    assert falling(2000, 1, 0.5, 0.3, ADVICE) == "The loss was still falling: more passes may help (--passes auto)."
    for rows, passes, earlier, later in ((2000, 2, 0.5, 0.3), (20_000, 1, 0.5, 0.3), (99, 1, 0.5, 0.3), (2000, 1, 0.5, 0.45)):
        assert falling(rows, passes, earlier, later, ADVICE) == ""
    assert falling(2000, 1, -0.5, -0.9, ADVICE) == "", "a loss without a zero says nothing by its ratio"
    assert "(--passes auto)" in run("train", "digits")
    assert "(--passes auto)" not in run("train", "digits", "--passes", "2")
    X, y = load_digits(return_X_y=True)
    (found,) = doubts_of(OnlineClassifier(solver="fiol,eta=5", scale="rms", random_state=0), X, y)
    assert found == 'The loss was still falling: more passes may help (passes="auto").'


def test_more_passes_are_advised_where_they_can_be_made(tmp_path):
    digits = tmp_path / "digits.svm"
    X, y = load_digits(return_X_y=True)
    write(digits, X[:1100], y[:1100])
    options = ("--classes", ",".join(map(str, range(10))))
    assert "(--passes auto)" in run("train", digits, *options)
    os.mkfifo(pipe := tmp_path / "pipe.svm")
    for passes in (("--passes", "auto"), ()):
        writer = threading.Thread(target=lambda: pipe.write_bytes(digits.read_bytes()))
        writer.start()
        assert "more passes" not in run("train", pipe, *options, *passes), "a pipe gives its rows once"
        writer.join()
    few = tmp_path / "few.svm"
    few.write_text("".join(digits.read_text().splitlines(keepends=True)[:50]))
    run("train", few, *options, "--model", tmp_path / "m")
    assert "(--passes 2)" in run("train", "--from", tmp_path / "m", digits), "--from refuses --passes auto"
    X, y = load_digits(return_X_y=True)
    sure = ("--solver", "fiol,eta=5", "--loss", "logistic", "--uncertainty", *options)
    assert "more passes" not in run("train", digits, *sure), "--uncertainty refuses several passes"
    model = OnlineClassifier("logistic", solver="fiol,eta=5", scale="rms", random_state=0)
    assert doubts_of(model, X, y)
    assert not doubts_of(model.set_params(uncertainty=True), X, y)


def test_rows_without_weight_say_nothing():
    X, y = rows_of(2000)
    s = np.where(np.arange(2000) < 5, 1.0, 0.0)
    doubts_of(OnlineClassifier(shuffle=False), X, y, sample_weight=s)
    doubts_of(OnlineRegressor("absolute", shuffle=False), X, y, sample_weight=s)


@pytest.mark.parametrize("settings", [{}, {"penalty": "l2=0.1", "tol": 1e-2}], ids=["online", "certified"])
def test_a_stream_of_which_no_row_has_a_weight_is_told_so(tmp_path, settings):
    X, y = rows_of(40)
    pairs, said = [(X, y, np.zeros(40))], "Every row has the weight 0, so nothing is learned."
    assert said in doubts_of(OnlineClassifier(**settings), pairs, None)
    assert not doubts_of(OnlineClassifier(**settings), [(X, y, np.arange(40) > 19)], None)
    path = tmp_path / "rows.vw"
    path.write_text("1 0 | a\n-1 0 | b\n")
    options = [f"--{name}={value}" for name, value in settings.items()]
    assert lines(path, *options)[-1]["doubts"] == [said]


# --- weights of classes -----------------------------------------------------------------------------------------------


def test_class_weights_are_weights_of_rows(tmp_path, monkeypatch):
    X, y = rows_of(500)
    path = write(tmp_path / "rows.svm", X, y)
    (block,) = OPEN(path)
    s = np.where(y == 1, 20.0, 0.5)
    options = ("--solver", "comid,eta=0.5", "--average", "none", "--scale", "none")
    weighted = lines(path, *options, "--class-weight", "-1=0.5,1=20", "--model", tmp_path / "m")
    model = load(tmp_path / "m")
    learner = Learner("comid,eta=0.5", "logistic", fit_intercept=True, weights="relative").learn(block.X, y, s)
    np.testing.assert_array_equal(model.coef_[0], learner.weights())
    assert model.class_weight == {-1: 0.5, 1: 20.0}
    assert weighted[0]["class_weight"] == {"-1": 0.5, "1": 20.0}
    assert weighted[-2]["loss"] == pytest.approx(learner.progressive_loss * 500 / s.sum(), rel=1e-12)
    share = s[y == -1].sum() / s.sum()
    assert weighted[-1]["best_constant"]["error"] == pytest.approx(min(share, 1.0 - share))
    assert "class_weight   -1=0.5,1=20" in run("inspect", tmp_path / "m")
    assert "class weights -1=0.5, 1=20" in run("train", path, *options, "--class-weight", "-1=0.5,1=20")
    monkeypatch.setattr(shown_lines, "MOST_CLASSES", 1)
    assert "class weights -1=0.5, ...\n" in run("train", path, *options, "--class-weight", "-1=0.5,1=20")
    same = OnlineClassifier(solver="comid,eta=0.5", average="none", scale="none", class_weight={-1: 0.5, 1: 20.0}).fit(
        [(block.X, y)]
    )
    np.testing.assert_array_equal(model.coef_, same.coef_)


def test_balanced_counts_the_rows_that_are_trained_on(tmp_path):
    X, y = rows_of(500)
    y = np.where((y == 1) & (np.arange(500) % 4 > 0), -1, y)
    path, importance = tmp_path / "rows.csv", np.where(np.arange(500) % 2, 1.0, 3.0)
    rows = zip(y, X[:, 0].tolist(), importance, strict=True)
    path.write_text("y,a,w\n" + "".join(f"{label},{a:.4f},{w}\n" for label, a, w in rows))
    options = ("--target", "y", "--weight", "w", "--task", "classify", "--holdout", "0.2", "--average", "none")
    start = lines(path, *options, "--class-weight", "balanced", "--model", tmp_path / "m")[0]
    learned = np.arange(1, 501) % 5 > 0
    totals = [importance[learned & (y == label)].sum() for label in (-1, 1)]
    assert start["class_weight"] == pytest.approx(
        {str(k): sum(totals) / (2 * total) for k, total in zip((-1, 1), totals, strict=True)}
    )
    assert load(tmp_path / "m").class_weight == "balanced"
    text = tmp_path / "text.csv"
    text.write_text(
        "y,a\n" + "".join(f"{'yes' if label == 1 else 'no'},{a:.4f}\n" for label, a in zip(y, X[:, 0], strict=True))
    )
    found = lines(text, "--target", "y", "--scan", "--class-weight", "balanced")[0]
    assert set(found["class_weight"]) == {"no", "yes"}
    assert found["classes"] == ["no", "yes"]


@pytest.mark.parametrize(
    ("options", "message", "code"),
    [
        (("--class-weight", "1=2,7=3"), "a weight for 7, which is none of the classes -1, 1", 2),
        (("--class-weight", "spam=2"), "a weight for 'spam', which is none of the classes -1, 1", 2),
        (("--class-weight", "1=2,1=3"), "gives the class 1 two weights", 2),
        (
            ("--class-weight", "even"),
            "--class-weight must be balanced or weights of at least 0 such as 0=1,1=20, got 'even'",
            2,
        ),
        (("--class-weight", "1=-2"), "must be balanced or weights of at least 0", 2),
        (("--class-weight", "1=inf"), "must be balanced or weights of at least 0", 2),
        (("--class-weight", "1=2", "--task", "regress"), "--class-weight weighs classes; the task is to regress", 2),
    ],
)
def test_wrong_class_weights_are_refused(tmp_path, options, message, code):
    X, y = rows_of(30)
    path = write(tmp_path / "rows.svm", X, y)
    assert message in run("train", path, *options, code=code)


def test_balanced_needs_rows_that_can_be_read_twice():
    result = CliRunner().invoke(app, ["train", "-", "--class-weight", "balanced"], input="1 1:1\n-1 2:1\n")
    assert result.exit_code in (1, 2)
    assert "cannot be read twice" in result.stderr
    assert "--class-weight 0=1,1=20" in result.stderr


# --- few rows ---------------------------------------------------------------------------------------------------------

RAN_AWAY = {
    "averaged": {"solver": "pegasos", "penalty": "l2=0.01", "average": "uniform,masked=true", "scale": "standard"},
    "constant steps": {"solver": "sgd,schedule=constant,eta=0.3", "scale": "none", "average": "none"},
}


@pytest.mark.parametrize("name", RAN_AWAY)
def test_few_rows_whose_model_ran_away_are_named(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 20))
    y = X @ rng.normal(size=20)
    with pytest.warns(QualityWarning, match=r"worse than a constant \(loss (inf|.*e\+)"):
        OnlineRegressor(**RAN_AWAY[name]).fit(X, y)
    frame = pd.DataFrame(X).add_prefix("x").assign(kind=np.where(X[:, 0] > 0.0, "a", "b"))
    settings = RAN_AWAY[name] | ({"scale": "rms"} if RAN_AWAY[name].get("scale") == "standard" else {})
    for rows in (([(X, y)],), (frame, y)):
        with pytest.warns(QualityWarning, match=r"worse than a constant \(loss (inf|.*e\+)"):
            OnlineRegressor(**settings).fit(*rows)


def test_few_rows_of_a_file_whose_model_ran_away_are_named(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 20))
    path = write(tmp_path / "rows.svm", X, X @ rng.normal(size=20))
    options = ("--task", "regress", "--scale", "none", "--average", "none")
    assert "worse than a constant" in run("train", path, *options, "--solver", "sgd,schedule=constant,eta=0.3")
    assert "worse than a constant" not in run("train", path, *options)


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber", "quantile", "epsilon-insensitive", "poisson"])
@pytest.mark.parametrize("solver", [None, "sgd,eta=0.1", "rda"])
def test_few_rows_whose_model_did_not_run_away_are_not(loss, solver):
    X = np.random.default_rng(0).normal(size=(60, 3))
    for y in (np.zeros(60), np.full(60, 1e-12), 1e-9 * np.arange(60.0), 1e6 + np.arange(60.0)):
        if loss == "poisson" and y[0] > 1.0 and solver is not None:
            continue  # steps of this size diverge at counts of a million
        with warnings.catch_warnings():
            warnings.simplefilter("error", QualityWarning)
            OnlineRegressor(loss=loss, solver=solver).fit(X, y)
            OnlineRegressor(loss=loss, solver=solver).fit([(X, y)])


def test_python_says_no_more_of_few_rows_of_a_stream():
    X = np.random.default_rng(0).normal(size=(200, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("error", QualityWarning)
        OnlineClassifier().fit([(X, np.ones(200))], classes=[0, 1])
        OnlineClassifier().fit([(X, X[:, 0] > 0.0)], classes=[False, True])


# --- 80 columns -------------------------------------------------------------------------------------------------------

TABLES = {
    "plain": (),
    "averaged": ("--average", "uniform", "--solver", "fiol,eta=5"),
    "averaged, held out, passes": ("--average", "weighted-t1", "--solver", "fiol,eta=20", "--holdout", "0.1", "--passes", "3"),
    "held out": ("--average", "none", "--holdout", "0.1", "--early-stop", "1", "--passes", "4"),
    "regression": ("--task", "regress", "--loss", "quantile,q=0.995", "--average", "uniform", "--solver", "fiol,eta=1e-7"),
    "long parts": ("--penalty", "elastic-net,l1=1.2345e-7,l2=1.2345e-7", "--solver", "comid,schedule=inverse-sqrt,eta=0.0125"),
    "weights": ("--class-weight", "balanced"),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_line_fits_80_columns(name, tmp_path, monkeypatch):
    X, y = drifting(2500)
    folder = tmp_path / "a-folder-with-a-long-name" / "another-folder"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    scale = 1e7 if name == "regression" else 1
    path = write(folder / f"{'long-name-' * 6}.svm", X, y * scale)
    shown = run("train", path.name, *TABLES[name], "--model", "model-of-the-rows.onlinear")
    shown += run("evaluate", "model-of-the-rows.onlinear", path.name)
    shown += run("inspect", "model-of-the-rows.onlinear")
    long = [line for line in shown.splitlines() if len(line) > 80]
    assert long == []


def test_cells_hold_any_number():
    from onlinear.cli.lines import cell
    from onlinear.cli.show import NARROW

    values = [0, 1, 12, 999_999_999, 10**12, 0.1, -1.23456789e-30, 1.23456789e30, 123456.789, np.nan, None, np.inf, -0.5]
    for width in NARROW:
        for value in values:
            text = cell(value, width)
            assert len(text) == width
            assert text[0] == " "
