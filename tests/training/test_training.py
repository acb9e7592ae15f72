"""Runs of the command: held-out rows, early ends, weights, lines for machines, every data set."""

from __future__ import annotations

import math

import numpy as np
import pytest
from command import lines, run
from sklearn.datasets import load_diabetes

from conftest import folder
from onlinear import Learner, OnlineClassifier, OnlineRegressor, load, streams
from onlinear.cli import runs
from onlinear.cli.settings import Settings
from onlinear.streams.holdout import Marked
from onlinear.training import options
from onlinear.training.events import Held, Report
from onlinear.training.place import Place

OPEN = streams.open
BARE = ("--average", "none", "--scale", "none")  # as Learner is
PARTS = ("--solver", "comid,eta=0.5", "--penalty", "l1,l1=1e-3", *BARE)


@pytest.fixture
def rows(tmp_path):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((500, 8)) * (rng.random((500, 8)) < 0.5)
    y = np.where(X @ np.linspace(-1, 1, 8) + 0.3 * rng.standard_normal(500) > 0, 1, -1)
    path = tmp_path / "rows.svm"
    path.write_text(
        "".join(
            f"{label}" + "".join(f" {j + 1}:{x:.3f}" for j, x in enumerate(row) if x) + "\n"
            for label, row in zip(y, X, strict=True)
        )
    )
    return path


@pytest.mark.parametrize(
    ("share", "first"), [("0.1", [10, 20, 30]), ("0.25", [4, 8, 12]), ("0.3", [4, 7, 10]), ("0.9", [2, 3, 4])]
)
def test_the_same_rows_are_held_out_for_any_blocks(rows, share, first):
    found = [
        np.concatenate([block.held for block in Marked(OPEN(rows, block_bytes=size), float(share))])
        for size in (100, 1000, 10**6)
    ]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
    assert (np.flatnonzero(found[0])[:3] + 1).tolist() == first
    assert found[0].sum() == int(500 * float(share) + 1e-9)


def test_held_out_rows_are_scored_and_never_learnt(rows, tmp_path, monkeypatch):
    text = rows.read_text().splitlines(keepends=True)
    (tmp_path / "learned.svm").write_text("".join(line for i, line in enumerate(text, 1) if i % 5))
    (tmp_path / "held.svm").write_text("".join(line for i, line in enumerate(text, 1) if i % 5 == 0))
    for number, size in enumerate((100, 1 << 20)):
        monkeypatch.setattr(streams, "open", lambda paths, size=size, **o: OPEN(paths, **o, block_bytes=size))
        told = lines(rows, *PARTS, "--holdout", "0.2", "--model", tmp_path / f"m{number}")
    run("train", tmp_path / "learned.svm", *PARTS, "--model", tmp_path / "without", "-q")
    held, plain = load(tmp_path / "m0"), load(tmp_path / "without")
    assert (tmp_path / "m0").read_bytes() == (tmp_path / "m1").read_bytes() == (tmp_path / "without").read_bytes()
    assert held.t_ == plain.t_ == 400
    # Scored when the row count has doubled and at the end of the pass, by the model of that moment.
    (learned,), (others,) = OPEN(tmp_path / "learned.svm"), OPEN(tmp_path / "held.svm")
    learner, total, done = Learner("comid,eta=0.5", "logistic", "l1,l1=1e-3", fit_intercept=True), 0.0, 0
    for last in [1, 2, 4, 8, 16, 32, 64, 128, 256, 400]:
        learner.learn(learned.X[learner.t : last], learned.y[learner.t : last])
        now = 100 if last == 400 else (last - 1) // 4
        margins = others.y[done:now] * learner.predict(others.X[done:now])
        total, done = total + np.log1p(np.exp(-margins)).sum(), now
    (found,) = [line for line in told if line["kind"] == "holdout"]
    assert found["rows"] == 100
    assert found["loss"] == pytest.approx(total / 100, rel=1e-12)
    reports = [line for line in told if line["kind"] == "report"]
    assert reports[-1]["holdout"] == found["loss"]
    assert reports[1]["holdout"] is None


def test_a_holdout_file_is_scored_after_each_pass(rows, tmp_path):
    told = lines(rows, *PARTS, "--passes", "2", "--holdout", rows)
    held = [line for line in told if line["kind"] == "holdout"]
    assert [line["pass"] for line in held] == [1, 2]
    run("train", rows, *PARTS, "--passes", "2", "--model", tmp_path / "m")
    (block,) = OPEN(rows)
    margins = block.y * load(tmp_path / "m").decision_function(block.X)
    assert held[1]["loss"] == pytest.approx(np.log1p(np.exp(-margins)).mean(), rel=1e-12)
    assert held[1]["error"] == np.mean(margins <= 0)
    assert "no file at" in run("train", rows, "--holdout", "gone.svm", code=1)


def test_an_early_end_keeps_the_model_of_the_best_pass(rows, tmp_path):
    options = ("--solver", "sgd,schedule=constant,eta=3", "--scale", "none", "--holdout", "0.2")
    told = lines(rows, *options, "--passes", "20", "--early-stop", "2", "--model", tmp_path / "m")
    held, end = [line for line in told if line["kind"] == "holdout"], told[-1]
    best = int(np.argmin([line["loss"] for line in held])) + 1
    assert end["passes"] == len(held) == best + 2 < 20
    assert [line["stop"] for line in held] == [False] * (best + 1) + [True]
    assert [line["best"] for line in held][-1] == best == end["best_pass"]
    run("train", rows, *options, "--passes", best, "--model", tmp_path / "b")
    found, wanted = load(tmp_path / "m"), load(tmp_path / "b")
    np.testing.assert_array_equal(found.coef_, wanted.coef_)
    assert found.t_ == wanted.t_ == 400 * best
    assert found.n_iter_ == best
    assert all(entry["rows"] <= found.t_ for entry in found.history_)
    shown = run("train", rows, *options, "--passes", "20", "--early-stop", "2")
    assert "no improvement: training stops here" in shown
    assert f"kept: the model after pass {best}, with the smallest loss of the held-out rows" in shown


def test_held_out_rows_without_weight_judge_no_pass(tmp_path):
    """Every loss of theirs is nan, so that the first pass would be the best, and a run would end early."""
    rows, held = tmp_path / "rows.vw", tmp_path / "held.vw"
    rows.write_text("1 1 | a\n-1 0 | b\n" * 9)
    held.write_text("1 0 | a\n")
    options = ("--passes", "5", "--early-stop", "2", "--holdout")
    assert "rows.vw: each of 9 held-out rows has the weight 0" in run("train", rows, *PARTS, *options, "0.5", code=1)
    assert "held.vw: every row has the weight 0" in run("train", rows, *PARTS, *options, held, code=1)


def test_rows_count_by_their_weights(tmp_path):
    rng = np.random.default_rng(0)
    X, s = rng.standard_normal((300, 3)), rng.integers(0, 4, 300) / 2
    y = np.where(X[:, 0] + rng.standard_normal(300) > 0, 1, -1)
    head = "y,a,b,c,importance\n"
    table = "".join(
        f"{label},{','.join(map(repr, row))},{weight}\n" for label, row, weight in zip(y, X.tolist(), s, strict=True)
    )
    (tmp_path / "rows.csv").write_text(head + table)
    options = ("--target", "y", "--weight", "importance", "--solver", "comid,eta=0.5", "--task", "classify", *BARE)
    *_, report, end = lines(tmp_path / "rows.csv", *options, "--model", tmp_path / "m")
    learner = Learner("comid,eta=0.5", "logistic", fit_intercept=True, weights="relative")
    before = []
    for i in range(300):
        before.append(learner.predict(X[i : i + 1])[0])
        learner.learn(X[i : i + 1], y[i : i + 1], s[i : i + 1])
    scores = np.array(before)
    np.testing.assert_array_equal(load(tmp_path / "m").coef_[0], learner.weights())
    assert report["kind"] == "report"
    assert report["loss"] == pytest.approx((s * np.log1p(np.exp(-y * scores))).sum() / s.sum(), rel=1e-12)
    assert report["error"] == pytest.approx((s * (np.where(scores > 0, 1, -1) != y)).sum() / s.sum(), rel=1e-12)
    assert end["kind"] == "end"


def test_lines_for_machines_are_json_and_nothing_else(rows, tmp_path):
    options = ("--passes", "2", "--holdout", "0.1", "--checkpoint", tmp_path / "c", "--checkpoint-every", "300")
    told = lines(rows, *options, "--model", tmp_path / "m")
    kinds = [line["kind"] for line in told]
    assert (kinds[0], kinds[-1]) == ("start", "end")
    assert set(kinds) == {"start", "report", "checkpoint", "holdout", "end"}
    assert told[0]["measures"] == ["error", "auc"]
    assert told[0]["task"] == "classify"
    assert {"read", "parse", "learn", "wait", "seconds", "rows"} <= set(told[-1])
    assert told[-1]["bytes"] == (tmp_path / "m").stat().st_size
    assert [line["rows"] for line in told if line["kind"] == "checkpoint"] == [300, 600, 900]
    first = next(line for line in told if line["kind"] == "report")
    assert first["auc"] is None
    for name in ("loss", "since", "error"):
        assert math.isfinite(first[name])


def test_the_table_of_a_regression_has_its_measures(rows):
    shown = run("train", rows, "--task", "regress")
    assert "MAE" in shown
    assert "R2" in shown
    last = next(line for line in shown.splitlines() if line.strip().startswith("500 ")).split()
    assert 0.0 < float(last[4]) < 1.0


def test_the_summary_says_where_the_time_went_and_how_large_the_state_is(tmp_path):
    (tmp_path / "wide.svm").write_text("1 1:1 90000:1\n-1 2:1\n")
    shown = run("train", tmp_path / "wide.svm", "--n-features", "100000")
    assert "state: " in shown
    assert "MB for 100,000 columns" in shown
    assert all(f"{word} 0." in shown for word in ("read", "parse", "learn", "wait"))
    assert "wide.svm:1: expected 50 columns at most (n_features), got column 90000." in run(
        "train", tmp_path / "wide.svm", "--n-features", "50", code=1
    )


def test_text_that_was_read_before_the_clock_started_gives_no_rate(rows):
    assert "MB/s" not in run("train", rows), "one block, which decides the task"
    assert " MB/s of text)" in run("train", rows, "--passes", "2")


def test_the_final_model_is_small_and_predicts_the_same(rows, tmp_path):
    run("train", rows, *PARTS, "--model", tmp_path / "whole")
    run("train", rows, *PARTS, "--model", tmp_path / "final", "--final")
    assert (tmp_path / "final").stat().st_size < (tmp_path / "whole").stat().st_size
    assert run("predict", tmp_path / "final", rows) == run("predict", tmp_path / "whole", rows)


def test_the_history_is_kept_in_the_model(rows, tmp_path):
    told = lines(rows, "--model", tmp_path / "m")
    reports = [{k: v for k, v in line.items() if k not in ("kind", "holdout")} for line in told if line["kind"] == "report"]
    assert load(tmp_path / "m").history_ == reports


def test_events_of_a_run_are_what_the_command_shows(rows):
    training = runs.start(Settings((str(rows),), {}, holdout="0.5"), None)
    events = list(training)
    assert [type(event) for event in events[-2:]] == [Report, Held]
    assert events[-2].rows == training.rows == 250


DATA = folder("ONLINEAR_DATA")
FILES = sorted(path.relative_to(DATA).as_posix() for path in DATA.glob("*/*.*") if path.is_file()) if DATA else []
REGRESSIONS = ("cadata", "cpusmall", "abalone", "space_ga")
CRITEO = ("--target", "Label", "--exclude", "Id", "--missing", "indicator", "--text", ",".join(f"C{k}" for k in range(1, 27)))


@pytest.mark.parametrize("name", FILES)
def test_every_data_set_trains_from_the_command_line(data, name, tmp_path):
    if name.endswith("-ubyte.gz"):
        pytest.skip("idx files of images, which are neither text nor columns")
    options = CRITEO if name.endswith(".csv.xz") else ("--task", "regress") if name.startswith(REGRESSIONS) else ()
    *_, report, end = lines(data / name, *options, "--model", tmp_path / "m")
    assert report["rows"] == end["rows"] > 100
    assert math.isfinite(report["loss"])
    assert load(tmp_path / "m").t_ == end["rows"]
    if options == CRITEO:
        assert report["auc"] > 0.6


def test_a_loss_of_counts_makes_it_a_regression(tmp_path):
    (tmp_path / "counts").write_text("0 1:1\n1 2:1\n0 1:2\n1 1:1 2:3\n")
    assert '"task": "regress"' in run("train", tmp_path / "counts", "--loss", "poisson", "--json")


def test_standard_scale_from_the_command_line_is_that_of_fit(tmp_path):
    run("train", "diabetes", "--scale", "standard", "--shuffle-rows", "0", "--model", tmp_path / "m")
    X, y = load_diabetes(return_X_y=True)
    fitted = OnlineRegressor(scale="standard", shuffle=False).fit(X, y)
    assert np.array_equal(load(tmp_path / "m").coef_, fitted.coef_)


@pytest.mark.parametrize("size", [1, 200, 1 << 20])
def test_few_rows_of_many_entries_decide_the_task_whatever_the_blocks(size, tmp_path, monkeypatch):
    monkeypatch.setattr(options, "PEEK_ENTRIES", 12)
    (tmp_path / "rows.svm").write_text("".join(f"{y} 1:1 2:1 3:1\n" for y in (0, 1, 0, 1, 2.5, *[1] * 100)))
    stream = streams.open(tmp_path / "rows.svm", block_bytes=size)
    place = Place(stream, None)
    place.begin_pass()
    head = place.peek()
    assert options.choose_task(options.Options(), stream, head) == "classify"
    assert len(head) == (4 if size == 1 else 1)
    monkeypatch.setattr(options, "PEEK_ENTRIES", 13)
    place.restart()
    assert options.choose_task(options.Options(), stream, place.peek()) == "regress"


@pytest.mark.parametrize("streamed", [False, True])
def test_a_run_that_is_stopped_says_the_passes_that_it_has_begun(streamed):
    X = np.random.default_rng(0).standard_normal((100, 3))
    y = (X[:, 0] > 0.0).astype(int)
    left = iter([False, False, True])  # blocks, one of which is a pass

    def stop(_):
        if next(left, False):
            raise KeyboardInterrupt

    model = OnlineClassifier(passes=5, callbacks=[stop], random_state=0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(*([[(X, y)], None, None, [0, 1]] if streamed else [X, y]))
    assert (model.n_iter_, model.t_) == (3, 300)


def test_a_checkpoint_says_the_passes_that_it_has_begun(rows, tmp_path):
    again = "--checkpoint", tmp_path / "c", "--checkpoint-every", 900, "--model", tmp_path / "m"
    run("train", rows, *PARTS, "--passes", 3, *again, "-q")
    assert "900 in 2 passes" in run("inspect", tmp_path / "c")
    assert "1,500 in 3 passes" in run("inspect", tmp_path / "m")
