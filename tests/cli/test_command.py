"""The command, as a user meets it: what it prints, what it writes, how it fails."""

from __future__ import annotations

import errno
import lzma
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import textwrap
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import ready
import typer
from command import run
from sklearn.linear_model import SGDClassifier
from typer.testing import CliRunner

from onlinear import Learner, OnlineClassifier, load, streams
from onlinear.cli import app
from onlinear.cli.as_typed import as_typed
from onlinear.cli.command import words
from onlinear.cli.interrupts import Interrupts
from onlinear.cli.show import JsonDisplay, beside_bar
from onlinear.text import hints
from onlinear.training.events import Interrupted

PYTHON = [sys.executable, "-c", "from onlinear.cli import main; main()"]
ROWS = "".join(f"{1 if i % 3 else -1} {1 + i % 3}:1 {4 + i % 5}:0.5\n" for i in range(1, 400))


def process(*arguments, **options):
    command = [*ready.command(), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.svm"
    path.write_text(ROWS)
    return path


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Rows, a model and a checkpoint, which tests copy."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "a.svm").write_text(ROWS)
    run("train", folder / "a.svm", "--model", folder / "m")
    run("train", folder / "a.svm", "--checkpoint", folder / "c", "--checkpoint-every", 200)
    return list(folder.iterdir())


def table(text):
    """The table's lines as numbers."""
    lines = [line.replace(",", "").split() for line in text.splitlines()]
    cells = [line for line in lines if len(line) in (6, 7) and all(re.fullmatch(r"[0-9.e+-]+", cell) for cell in line)]
    return [[math.nan if cell == "-" else float(cell) for cell in line] for line in cells]


def test_a_held_out_file_that_cannot_be_scored_is_named_before_the_run(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    empty = tmp_path / "empty.svm"
    empty.touch()
    assert run("train", rows, "--holdout", empty, code=1) == f"onlinear: {empty}: expected at least one row, got none.\n"
    for name, text in {
        "a": "y,x,z\n1,2,3\n0,1,2\n",
        "names": "y,x,z\n",
        "less": "y,x\n1,2\n",
        "unlabelled": "x,z\n1,2\n",
    }.items():
        Path(f"{name}.csv").write_text(text)
    for name, code, says in [
        ("names.csv", 1, "names.csv: expected at least one row, got none."),
        ("less.csv", 1, "less.csv: expected a column 'z', got 'y', 'x'."),
        ("unlabelled.csv", 2, "--holdout unlabelled.csv: target: the column 'y' is not known. Known: x, z."),
        ("empty.svm", 2, "--holdout empty.svm: target is for the format parquet or arrow or csv"),
    ]:
        found = CliRunner().invoke(app, ["train", "a.csv", "--target", "y", "--model", "m", "--holdout", name])
        assert (found.exit_code, found.stdout) == (code, "")
        assert found.stderr.startswith(f"onlinear: {says}")


def test_the_table_grows_at_doubling_row_counts(rows):
    shown = run("train", rows, "--average", "none")
    assert re.search(r"rows +loss +since last +error +AUC +non-zeros", shown)
    counts, loss, since, error, area, nonzeros = map(np.array, zip(*table(shown), strict=True))
    assert counts.tolist() == [1, 2, 4, 8, 16, 32, 64, 128, 256, 399]
    np.testing.assert_allclose(np.diff(loss * counts), since[1:] * np.diff(counts), rtol=1e-4)
    assert error[-1] < 0.2
    assert area[-1] > 0.9
    assert np.isnan(area[0])
    assert nonzeros[-1] == 8
    assert "399 rows in " in shown
    assert "no model written" in shown


@pytest.mark.parametrize(("width", "said"), [(20, ""), (40, ""), (50, "9,446,522 rows"), (60, "9,446,522 rows, 9,474 rows/s")])
def test_what_stands_beside_the_bar_leaves_room_for_it(width, said):
    assert beside_bar(["9,446,522 rows", ", 9,474 rows/s", ", 59 MB/s"], width) == said


def test_the_model_is_the_learners_and_predicts_what_the_command_predicts(rows, tmp_path):
    options = ("--loss", "hinge", "--solver", "comid,eta=0.5", "--penalty", "l1,l1=1e-3", "--no-intercept")
    options += ("--average", "none", "--scale", "none")
    shown = run("train", rows, "--model", tmp_path / "m", *options)
    model = load(tmp_path / "m")
    assert isinstance(model, OnlineClassifier)
    (block,) = streams.open(rows)
    learner = Learner("comid,eta=0.5", "hinge", "l1,l1=1e-3").learn(block.X, block.y)
    np.testing.assert_array_equal(model.coef_[0], learner.weights())
    assert table(shown)[-1][1] == pytest.approx(learner.progressive_loss, rel=1e-5)
    assert model.classes_.tolist() == [-1, 1]
    assert run("predict", tmp_path / "m", rows).split() == list(map(str, model.predict(block.X)))
    scores = list(map(float, run("predict", tmp_path / "m", rows, "--as", "scores").split()))
    np.testing.assert_array_equal(scores, learner.predict(block.X))


@pytest.mark.parametrize(
    "options", [(), ("--passes", "3", "--shuffle-rows", "100", "--seed", "4"), ("--solver", "rda", "--scale", "max-abs")]
)
def test_identical_training_gives_identical_model_files_for_any_block_size(rows, tmp_path, monkeypatch, options):
    run("train", rows, "--model", tmp_path / "a", *options)
    run("train", rows, "--model", tmp_path / "b", *options)
    monkeypatch.setattr(streams, "open", lambda paths, **o: OPEN(paths, **o, block_bytes=100))
    run("train", rows, "--model", tmp_path / "c", *options)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()


OPEN = streams.open


def test_bundled_sets_train_and_predict(tmp_path):
    shown = run("train", "breast-cancer", "--passes", 5, "--model", tmp_path / "m")
    assert "breast-cancer: classify (2 classes)" in shown
    assert table(shown)[-1][3] < 0.08
    predicted = run("predict", tmp_path / "m", "breast-cancer").split()
    truth = np.concatenate([block.y for block in streams.open("breast-cancer")])
    assert np.mean(np.array(predicted, float) == truth) > 0.94
    assert "digits: classify (10 classes)" in run("train", "digits", "--model", tmp_path / "d")
    assert set(run("predict", tmp_path / "d", "digits").split()) == set("0123456789")
    assert len(run("predict", tmp_path / "d", "digits", "--as", "probabilities").splitlines()[0].split()) == 10
    regressed = run("train", "diabetes", "--model", tmp_path / "r")
    assert "diabetes: regress" in regressed
    assert "MAE" in regressed
    assert len(run("predict", tmp_path / "r", "diabetes", "-o", tmp_path / "out")) == 0
    assert len((tmp_path / "out").read_text().splitlines()) == 442


@pytest.mark.parametrize(
    ("labels", "options", "classes"),
    [
        ("0 1 0 1", (), [0, 1]),
        ("1 1 -1 1", (), [-1, 1]),
        ("1 1 1 1", (), [-1, 1]),
        ("3 7 3 7", ("--classes", "3,7"), [3, 7]),
        ("2 3 7 2", ("--scan",), [2, 3, 7]),
        ("0.5 1.5 0.5", ("--classes", "0.5,1.5"), [0.5, 1.5]),
    ],
)
def test_classes(tmp_path, labels, options, classes):
    (tmp_path / "a.svm").write_text("".join(f"{label} 1:1\n" for label in labels.split()))
    run("train", tmp_path / "a.svm", "--model", tmp_path / "m", *options)
    assert load(tmp_path / "m").classes_.tolist() == classes


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ("1 1 3", ("--task", "classify"), "a.svm:3: expected a label of -1, 1 or of 0, 1, got 3 (other classes: --classes"),
        ("1 -1 3", ("--task", "classify"), "a.svm:3: expected one of the classes -1, 1, got 3 (other classes: --classes"),
        ("1 -1 0", (), "a.svm:3: expected one of the classes -1, 1, got 0 (other classes"),
        ("3 7 5", ("--classes", "3,7"), "a.svm:3: expected one of the classes 3, 7, got 5."),
        ("1 -2", ("--task", "regress", "--loss", "poisson"), "a.svm:2: expected a count of 0 or more for this loss, got -2."),
        ("", (), "a.svm: expected at least one row, got none."),
        ("1 x", (), "a.svm:2: expected a label (a number), got 'x'."),
    ],
)
def test_wrong_labels_name_their_line(tmp_path, labels, options, message):
    (tmp_path / "a.svm").write_text("".join(f"{label} 1:1\n" for label in labels.split()))
    error = run("train", tmp_path / "a.svm", "--model", tmp_path / "m", *options, code=1)
    assert message in error
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--loss", "hing"), "loss 'hing' is not known. Did you mean 'hinge'?"),
        (("--solver", "comid,eta=-1"), "eta must be in"),
        (("--penalty", "fused-lasso"), "has no default strength"),
        (("--task", "guess"), "--task must be one of auto, classify, regress, got 'guess'"),
        (("--classes", "a,b"), "classes must be numbers, as the labels of"),
        (("--classes", "1"), "at least two classes"),
        (("--classes", "1,2", "--scan"), "exclude each other"),
        (("--classes", "1,2", "--task", "regress"), "--classes and --scan are for classes"),
        (("--scan", "--task", "regress"), "--classes and --scan are for classes"),
        (("--final",), "--final needs --model FILE"),
        (("--max-passes", "5"), "--max-passes is for --tol"),
        (("--passes", "0"), "Invalid value for '--passes'"),
        (("--tol", "small"), "'small'"),
        (("--early-stop", "2"), "--early-stop needs --holdout (it monitors the held-out loss)"),
        (("--early-stop", "2", "--holdout", "0.1"), "--early-stop is for several passes, and there is one"),
        (("--seed", "3"), "--seed is of the shuffle, and these rows are learned in their order: give --shuffle-rows N."),
        (("--seed", "3", "--shuffle-rows", "0"), "--seed is of the shuffle"),
        (("--seed", "3", "--workers", "1", "--rounds", "2"), "--seed has no form over shards: each file is read in its order"),
        (("--no-clip",), "--no-clip is for predictions of numbers; the task is to classify"),
        (("--clip", "--workers", "1", "--rounds", "2"), "--clip is for predictions of numbers; the task is to classify"),
        (("--class-weight", "0=1", "--task", "regress", "--workers", "1", "--rounds", "2"), "--class-weight weighs classes"),
        (("--holdout", "0.1", "--holdout", "a.svm"), "--holdout is given 2 times; expected it once"),
        (("-m", "a", "--model", "b"), "--model is given 2 times; expected it once"),
        (("--seed", "1", "--seed=2", "--seed", "3"), "--seed is given 3 times; expected it once"),
        (("--intercept", "--no-intercept"), "--intercept/--no-intercept is given 2 times; expected it once"),
        (("--loss", "hinge", "--task", "regress"), "is for classes"),
        (("--solver", "batch-drs"), "needs all rows at once"),
        (("--average", "suffix"), "needs total="),
        (("--model", "no/such/folder/m"), "there is no folder"),
        (("--unheard-of",), "--unheard-of"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_wrong_options_are_a_usage_error(rows, options, message):
    error = re.sub(r"[│╭╮╰╯─\s]+", " ", run("train", rows, *options, code=2))
    assert message in error


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--solver", "pegasos"), "must be above 0; e.g. --penalty 'l2=1e-4'."),
        (
            ("--solver", "odrs", "--forget", "100"),
            "use --solver 'implicit-ftrl', 'ftrl', 'rda' or 'adagrad-rda' with --forget.",
        ),
        (("--solver", "epoch-gd", "--penalty", "l2=1", "--average", "uniform"), "complete epoch; --average must be none."),
        (("--tol", "1e-3", "--penalty", "l2=1", "--uncertainty"), "--uncertainty and --tol exclude each other"),
        (("--scale", "centred", "--no-intercept"), "--scale 'centred' needs --intercept"),
        (("--solver", "sdca", "--penalty", "l2=1", "--passes", "3", "--max-passes", "3"), "--max-passes 3 leaves no pass"),
        (("--workers", "1", "--rounds", "2", "--average", "uniform"), "--average 'uniform' has no form in rounds"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_refusals_name_options_as_they_are_typed(rows, options, message):
    assert message in run("train", rows, *options, code=2)


@pytest.mark.parametrize(
    "text",
    [
        "the solver 'prox-newton,tol=0.1' has no such setting: it is eta= here.",
        "expected a number, got 'loss=3'.",
        "--class-weight 0=1,1=20, in Python class_weight={0: 1, 1: 20}",
        "open it with streams.open(name, scale='none', tol=1)",
        "give the number of columns (--n-features, n_features=)",
    ],
)
def test_settings_calls_and_quoted_text_stay(text):
    assert as_typed(text) == text


def test_switches_and_negative_numbers_are_options_too():
    text = "clip=True or clip=False, fit_intercept=False (passes= counts), max_passes=-1 and tol=."
    assert as_typed(text) == "--clip or --no-clip, --no-intercept (--passes counts), --max-passes -1 and --tol."


def test_lists_and_switches_may_be_given_again(tmp_path):
    (tmp_path / "a.csv").write_text("y,a,b,c\n1,1,2,3\n0,2,1,1\n")
    lists = ("--exclude", "a", "--exclude", "b")
    shown = run(
        "train", tmp_path / "a.csv", "--target", "y", *lists, "-q", "--quiet", "-m", tmp_path / "m", "--final", "--final"
    )
    assert shown == ""
    assert load(tmp_path / "m").encoding_["features"] == [["c", "number"]]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("explain", "m", "a.svm", "--json", "--top", "10"), "--top is for lines; --json shows all terms"),
        (("convert", "a.svm", "-o", "b.svm", "--json", "-q"), "--quiet and --json exclude each other"),
        (("convert", "a.svm", "-o", "-", "--json"), "--json needs a file as --output, got -"),
        (("convert", "a.svm", "-o", "/dev/null", "--json"), "--json needs a file as --output, got /dev/null"),
        (("report", "m", "--max-errors", "3"), "--max-errors says how rows are read, and no rows are given"),
        (("predict", "m", "a.svm", "--as", "scores", "--as", "labels"), "--as is given 2 times; expected it once"),
        (("train", "a.svm", "--rounds", "2"), "--rounds are made over shards: give --workers N or --dask ADDRESS too."),
        (("train", "--resume", "c", "--final"), "--final needs --model FILE"),
        (("train", "a.svm", "-m", "-q"), "--model -q: expected the name of a file; one that begins so is ./-q"),
        (("train", "a.svm", "--checkpoint", "-"), "--checkpoint -: expected the name of a file"),
        (("train", "a.svm", "-m", "m", "--report", "-"), "--report -: expected the name of a file"),
        (("report", "m", "-o", "-"), "--output -: expected the name of a file"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_options_that_cannot_act_are_refused(trained, tmp_path, monkeypatch, command, message):
    for path in trained:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    assert run(*command, code=2).startswith(f"onlinear: {message}")
    assert sorted(os.listdir()) == ["a.svm", "c", "m"]


def test_predictions_go_to_standard_output_by_its_sign(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run("train", rows, "--model", "m")
    assert run("predict", "m", rows, "-o", "-") == run("predict", "m", rows)
    assert not os.path.exists("-")
    run("predict", "m", rows, "-o", "./-")
    assert os.path.exists("-")
    assert run("explain", "m", rows, "--rows", 10**30, "--top", 10**30).count("intercept") == 399


def test_the_task_must_be_said_where_the_labels_do_not_tell(tmp_path):
    (tmp_path / "a.svm").write_text("3 1:1\n14 1:2\n")
    assert "classes or numbers? Say --task regress, or name the classes" in run("train", tmp_path / "a.svm", code=2)
    (tmp_path / "a.svm").write_text("3 1:1\n14.5 1:2\n")
    assert "a.svm: regress" in run("train", tmp_path / "a.svm")


@pytest.mark.parametrize("loss", ["quantile,q=0.9", "absolute", "huber,delta=1000", "epsilon-insensitive", "poisson"])
def test_losses_for_numbers_regress(tmp_path, loss):
    (tmp_path / "prices.svm").write_text("452600 1:1\n358500 1:2\n")
    assert "prices.svm: regress" in run("train", tmp_path / "prices.svm", "--loss", loss)
    (tmp_path / "signs.svm").write_text("1 1:1\n0 1:2\n")
    assert f"signs.svm: {'regress' if loss == 'poisson' else 'classify'}" in run(
        "train", tmp_path / "signs.svm", "--loss", loss
    )


def test_an_error_of_memory_is_a_sentence():
    assert words(MemoryError("Unable to allocate 7 GiB")) == "Unable to allocate 7 GiB."
    assert words(MemoryError("no memory for a state.")) == "no memory for a state."
    assert words(MemoryError()) == "no memory."


def test_what_an_error_says_of_the_rows_before_it(rows, tmp_path):
    def error(lines, *options):
        (tmp_path / "wrong.svm").write_text(lines)
        return run("train", tmp_path / "wrong.svm", "--quiet", *options, code=1)

    none = error("oops\n", "--classes", "0,1")
    assert none.endswith("wrong.svm:1: expected a label (a number), got 'oops'.\n")
    some = error(ROWS * 200 + "oops\n", "--classes", "-1,1")
    assert re.search(
        r"'oops'\. [\d,]+ rows were learned before it\. They are lost; --checkpoint FILE would keep them\.\n$", some
    )
    kept = error(ROWS * 200 + "oops\n", "--classes", "-1,1", "--model", tmp_path / "m")
    assert re.search(r"rows were learned before it\. A model of them is in .*m\.partial; with --checkpoint FILE", kept)


def test_intervals_are_those_of_the_model(rows, tmp_path):
    run("train", rows, "--uncertainty", "--model", tmp_path / "m", "--checkpoint", tmp_path / "c", "--checkpoint-every", 50)
    model = load(tmp_path / "m")
    (block,) = streams.open(rows)
    wanted = np.column_stack([model.decision_function(block.X), model.predict_interval(block.X, 0.5)])
    for source in ("m", "final"):
        text = run("predict", tmp_path / source, rows, "--as", "intervals,coverage=0.5", "--header").splitlines()
        assert text[0] == "score lower upper"
        np.testing.assert_array_equal([list(map(float, line.split())) for line in text[1:]], wanted)
        model.save(tmp_path / "final", final=True)
    run("train", rows, "--model", tmp_path / "plain")
    assert "trained without uncertainty" in run("predict", tmp_path / "plain", rows, "--as", "intervals", code=1)
    for kind in ("intervals,coverage=2", "intervals,share=0.5", "scores,coverage=0.5"):
        assert "coverage" in run("predict", tmp_path / "m", rows, "--as", kind, code=2)
    assert "passes must be 1, got 2" in run("train", rows, "--uncertainty", "--passes", 2, code=2)


@pytest.mark.parametrize("source", ["csv", "parquet"])
@pytest.mark.parametrize("form", ["csv", "parquet", "arrow"])
@pytest.mark.parametrize(
    ("kind", "names"), [("labels", ["label"]), ("scores", ["score"]), ("intervals", ["score", "lower", "upper"])]
)
def test_files_without_rows_are_predicted_beside_others(tmp_path, source, form, kind, names):
    table = pd.DataFrame({"a": [1.0, 2.0] * 9, "t": ["yes", "no"] * 9})
    for name, rows in (("some", 18), ("none", 0)):
        getattr(table[:rows], f"to_{source}")(tmp_path / f"{name}.{source}", index=False)
    run("train", tmp_path / f"some.{source}", "--target", "t", "--scan", "--uncertainty", "--model", tmp_path / "m")
    for files, rows in ((["none"], 0), (["none", "some", "none"], 18)):
        run(
            "predict",
            tmp_path / "m",
            *(tmp_path / f"{name}.{source}" for name in files),
            "--as",
            kind,
            "-o",
            tmp_path / f"p.{form}",
        )
        found = getattr(pd, f"read_{'feather' if form == 'arrow' else form}")(tmp_path / f"p.{form}")
        assert list(found.columns) == names
        assert len(found) == rows
    none = tmp_path / f"none.{source}"
    for command in ("evaluate", "explain"):
        assert f"none.{source}: expected at least one row, got none." in run(command, tmp_path / "m", none, code=1)
    assert f"none.{source}: expected " in run("train", none, "--target", "t", code=1)


def test_failures_are_one_line(rows, tmp_path):
    assert run("train", tmp_path / "gone.svm", code=1) == f"onlinear: no file at '{tmp_path}/gone.svm'.\n"
    assert run("predict", tmp_path / "gone", rows, code=1) == f"onlinear: no model file at '{tmp_path}/gone'.\n"
    assert "not an onlinear model file" in run("predict", rows, rows, code=1)
    run("train", rows, "--loss", "hinge", "--model", tmp_path / "m")
    assert "gives scores, not probabilities; train with --loss logistic" in run(
        "predict", tmp_path / "m", rows, "--as", "probabilities", code=1
    )
    assert "--as must be" in run("predict", tmp_path / "m", rows, "--as", "words", code=2)
    error = run("train", rows, "--solver", "sgd,schedule=constant,eta=1e9", "--loss", "squared", "--task", "regress", code=1)
    assert re.match(r"onlinear: .*rows\.svm:\d+: the state stopped being finite", error)


def test_wrong_lines_are_skipped_and_reported(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\noops\n-1 1:2\n-1 1:\n")
    result = CliRunner().invoke(app, ["train", str(tmp_path / "a.svm"), "--max-errors", "2"])
    assert result.exit_code == 0
    assert "2 wrong lines skipped" in result.stderr
    assert "a.svm:2: expected a label (a number), got 'oops'." in result.stderr


def test_features_the_model_has_never_seen_have_weight_zero(rows, tmp_path):
    run("train", rows, "--model", tmp_path / "m")
    (tmp_path / "wide.svm").write_text("1 1:1\n1 1:1 900:5\n1\n")
    first, second, third = map(float, run("predict", tmp_path / "m", tmp_path / "wide.svm", "--as", "scores").split())
    assert first == second
    assert third == load(tmp_path / "m").intercept_[0]


def test_a_solver_of_fixed_width_is_told_it_or_the_columns_are_counted(rows, tmp_path):
    options = ("--solver", "rls", "--loss", "squared", "--task", "classify")
    run("train", rows, *options, "--n-features", 8, "--model", tmp_path / "m")
    assert load(tmp_path / "m").coef_.shape == (1, 8)
    run("train", rows, *options, "--model", tmp_path / "counted")
    assert np.array_equal(load(tmp_path / "counted").coef_, load(tmp_path / "m").coef_)
    unread = process("train", "-", *options, input=ROWS)
    assert unread.returncode == 2
    assert "n_features (--n-features) must be given: - cannot be read twice" in unread.stderr


def test_quiet_says_nothing(rows, tmp_path):
    assert run("train", rows, "--quiet", "--model", tmp_path / "m") == ""
    assert (tmp_path / "m").exists()


@pytest.mark.skipif(os.name == "nt", reason="signals are sent to a process")
@pytest.mark.parametrize("when", ["while it is imported", "while its line is read"])
def test_ctrl_c_before_a_command_has_begun_is_told_in_its_words(rows, when):
    imported = """class Asked:
        def find_spec(self, name, *_):
            if name == "typer":
                os.kill(os.getpid(), signal.SIGINT)
    sys.meta_path.insert(0, Asked())
    """
    read = """from onlinear.cli import app, command
    command._refuse_repeated = lambda _: os.kill(os.getpid(), signal.SIGINT)
    """
    code = "import os, signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += (
        textwrap.dedent("    " + (imported if when == "while it is imported" else read))
        + "from onlinear.cli import main; main()"
    )
    ended = subprocess.run([sys.executable, "-c", code, "train", rows], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "onlinear: interrupted.\n")


@pytest.mark.skipif(os.name == "nt", reason="no /dev/stdout")
def test_what_is_written_to_standard_output_stands_alone(rows, tmp_path):
    run("train", rows, "--quiet", "--model", tmp_path / "m")
    with open(tmp_path / "out", "wb") as out:
        for options in (("--model", "/dev/stdout"), ("--model", tmp_path / "n", "--report", "/dev/stdout")):
            for shown in ((), ("--json",)):
                mixed = subprocess.run(
                    [*ready.command(), "train", rows, *options, *shown], stdout=out, stderr=subprocess.PIPE, check=False
                )
                assert mixed.returncode == 2
                assert b"/dev/stdout would stand among the lines of the run: add --quiet." in mixed.stderr
        subprocess.run([*ready.command(), "train", rows, "--model", "/dev/stdout", "--quiet"], stdout=out, check=True)
    assert (tmp_path / "out").read_bytes() == (tmp_path / "m").read_bytes()
    page = subprocess.run([*ready.command(), "report", tmp_path / "m", "-o", "/dev/stdout"], capture_output=True, check=True)
    assert page.stdout.rstrip().endswith(b"</html>")
    assert page.stderr.startswith(b"report written to /dev/stdout")


@pytest.mark.skipif(os.name == "nt", reason="no named pipes")
def test_a_model_that_a_pipe_has_taken_has_no_size(rows, tmp_path):
    os.mkfifo(pipe := tmp_path / "pipe")
    for options, word in ((("--json",), '"bytes": null'), ((), "/pipe\n")):
        reader = threading.Thread(target=pipe.read_bytes)
        reader.start()
        assert word in run("train", rows, *options, "--model", pipe)
        reader.join()


def test_help_and_version_are_quick_and_import_nothing_heavy():
    shown = process_of(*PYTHON, "--help")
    assert shown.returncode == 0
    assert "train" in shown.stdout
    heavy = "import sys, onlinear.cli; sys.exit(any(name in sys.modules for name in ('numba', 'numpy', 'sklearn', 'scipy')))"
    assert subprocess.run([sys.executable, "-c", heavy], check=False).returncode == 0
    assert process("--version").stdout.startswith("onlinear ")


@pytest.mark.parametrize("command", [command.name or command.callback.__name__ for command in app.registered_commands])
def test_help_is_shown_whole_in_80_columns(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = run(command, "--help")
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert "…" not in shown, "a word is too long for its column"
    if command == "report":
        assert "pip install 'onlinear[report]'" in " ".join(shown.split()), "brackets are words, not markup"


@pytest.mark.parametrize("command", ["train", "report"])
def test_help_on_a_narrow_screen_keeps_names_whole(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "50")
    shown = run(command, "--help")
    assert "…" not in shown
    assert "--class-weight" in shown or "pip install 'onlinear[report]'" in " ".join(shown.split())


def test_a_terminal_without_a_size_shows_errors():
    shown = subprocess.run(
        [*ready.command(), "train", "--lemon"], env={**os.environ, "COLUMNS": "0"}, capture_output=True, text=True, check=False
    )
    assert (shown.returncode, "--lemon" in shown.stderr) == (2, True)


def test_a_process_trains_from_standard_input_and_predicts_into_a_closed_pipe(tmp_path):
    trained = process("train", "-", "--model", tmp_path / "m", input=ROWS)
    assert trained.returncode == 0, trained.stderr
    assert "\x1b" not in trained.stdout, "no terminal, no escape codes"
    assert "cannot be read twice" in process("train", "-", "--passes", "2", input=ROWS).stderr
    (tmp_path / "long.svm").write_text(ROWS * 200)
    with subprocess.Popen(
        [*ready.command(), "predict", tmp_path / "m", tmp_path / "long.svm"], stdout=-1, stderr=-1, text=True
    ) as pipe:
        assert pipe.stdout.readline().strip() in ("-1", "1")
        pipe.stdout.close()
        assert pipe.stderr.read() == ""


ENDLESS = b"".join(b"%d %d:1 %d:0.5\n" % (1 if i % 3 else -1, 1 + i % 3, 4 + i % 5) for i in range(1 << 20))


@contextmanager
def started(*arguments):
    """A run in a process of its own that waits for more rows on its standard input."""
    with subprocess.Popen([*PYTHON, "train", "-", *map(str, arguments)], stdin=-1, stdout=-1, stderr=-1) as child:
        try:
            child.stdin.write(ENDLESS)
            child.stdin.flush()
            assert any(line.strip().startswith(b"16") for line in child.stdout)  # some rows are learned
            yield child
        finally:
            child.kill()


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_interrupted_runs_end_with_130_and_leave_the_old_model_and_theirs(tmp_path):
    (tmp_path / "m").write_text("the old model")
    for signum, code in ((signal.SIGINT, 130), (signal.SIGHUP, 130), (signal.SIGKILL, -9)):  # SIGTERM: the next test
        with started("--model", tmp_path / "m") as child:
            child.send_signal(signum)
            _, error = child.communicate(timeout=120)
        assert child.returncode == code
        assert b"Traceback" not in error
        left = [path.name for path in tmp_path.iterdir() if path.name != "m"]
        if signum == signal.SIGKILL:
            assert left == []
        else:
            rows = re.match(rb"onlinear: interrupted after ([0-9,]+) rows\. A model of them is in", error).group(1)
            assert left == ["m.partial"]
            assert load(tmp_path / "m.partial").t_ == int(rows.replace(b",", b""))
            (tmp_path / "m.partial").unlink()
    assert (tmp_path / "m").read_text() == "the old model"


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_an_interrupted_run_keeps_its_rows_and_says_how_to_go_on(tmp_path):
    options = ("--model", tmp_path / "m", "--checkpoint", tmp_path / "a checkpoint")
    with started(*options) as child:
        child.send_signal(signal.SIGTERM)
        _, error = child.communicate(timeout=120)
    assert child.returncode == 130
    hint = error.decode().splitlines()
    assert re.match(r"onlinear: interrupted after ([0-9,]+) rows\. The checkpoint .* holds \1 rows; to continue, give", hint[0])
    command = shlex.split(hint[1])
    assert command == ["onlinear", "train", "--resume", str(tmp_path / "a checkpoint")]
    went_on = subprocess.run([*ready.command(), *command[1:]], input=ENDLESS, capture_output=True, timeout=300, check=False)
    assert went_on.returncode == 0, went_on.stderr
    whole = subprocess.run([*ready.command(), "train", "-", "-qm", tmp_path / "w"], input=ENDLESS, timeout=300, check=False)
    assert whole.returncode == 0
    assert (tmp_path / "m").read_bytes() == (tmp_path / "w").read_bytes()


@pytest.mark.parametrize(
    ("name", "test", "options", "limit"),
    [
        ("a9a/a9a.svm.xz", "a9a/a9a.t.svm.xz", (), 0.16),
        ("a9a/a9a.svm.xz", "a9a/a9a.t.svm.xz", ("--penalty", "l1,l1=1e-4"), 0.17),
        ("rcv1-ccat/ccat.svm.xz", "rcv1-ccat/ccat.t.svm.xz", ("--passes", "2"), 0.085),
        (
            "rcv1-ccat/ccat.svm.xz",
            "rcv1-ccat/ccat.t.svm.xz",
            ("--loss", "hinge", "--solver", "sadmm,rho=0.1", "--penalty", "l1,l1=1e-5", "--scale", "none"),
            0.1,
        ),
    ],
)
def test_real_files_through_the_command(data, tmp_path, name, test, options, limit):
    trained = process("train", data / name, "--model", tmp_path / "m", *options)
    assert trained.returncode == 0, trained.stderr
    predicted = process("predict", tmp_path / "m", data / test)
    assert predicted.returncode == 0, predicted.stderr
    truth = np.concatenate([block.y for block in streams.open(data / test)])
    assert np.mean(np.array(predicted.stdout.split(), float) != truth) < limit


@pytest.mark.parametrize("name", ["cadata", "abalone", "cpusmall", "space_ga"])
def test_real_regressions_beat_the_mean(data, name, tmp_path):
    path = data / name / f"{name}.svm.xz"
    run("train", path, "--task", "regress", "--passes", "3", "--shuffle-rows", "100000", "--model", tmp_path / "m")
    predicted = np.array(run("predict", tmp_path / "m", path).split(), float)
    truth = np.concatenate([block.y for block in streams.open(path)])
    assert np.mean((predicted - truth) ** 2) < 0.75 * np.var(truth)


def test_it_is_as_good_as_scikit_learn_on_spam(data, tmp_path):
    path = data / "spambase" / "spambase.svm.xz"
    rows = lzma.decompress(path.read_bytes()).decode().splitlines()
    order = np.random.default_rng(0).permutation(len(rows))
    for part, which in (("train", order[:3500]), ("test", order[3500:])):
        (tmp_path / part).write_text("\n".join(rows[i] for i in which))
    run("train", tmp_path / "train", "--passes", "3", "--model", tmp_path / "m")
    (train,), (test,) = streams.open(tmp_path / "train"), streams.open(tmp_path / "test")
    theirs = SGDClassifier(loss="log_loss", random_state=0).fit(train.csr(57), train.y).score(test.csr(57), test.y)
    ours = np.mean(np.array(run("predict", tmp_path / "m", tmp_path / "test").split(), float) == test.y)
    assert ours > max(theirs, 0.9)


def test_the_first_signal_asks_and_the_second_ends_at_once():
    before = signal.getsignal(signal.SIGINT)
    training = SimpleNamespace(stopping=False, waiting=False)
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt) as raised:
            signal.raise_signal(signal.SIGTERM)  # no run yet
        assert raised.type is not KeyboardInterrupt  # by which Python may end as if killed, and not with 130
        interrupts.follow(training)
        signal.raise_signal(signal.SIGINT)
        assert training.stopping
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with Interrupts() as interrupts:
        interrupts.follow(SimpleNamespace(stopping=False, waiting=True))
        with pytest.raises(Interrupted):
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_a_terminal_that_hangs_up_says_so_once_or_twice():
    training = SimpleNamespace(stopping=False, waiting=False)
    with Interrupts() as interrupts:
        interrupts.follow(training)
        signal.raise_signal(signal.SIGHUP)
        assert training.stopping
        signal.raise_signal(signal.SIGHUP)  # of the shell


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_signals_that_the_process_is_told_to_ignore_are_ignored(rows):
    code = """import os, signal
    numbers = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)
    from onlinear import streams
    found = streams.open
    def opened(*given, **options):
        for number in numbers:
            os.kill(os.getpid(), number)
        return found(*given, **options)
    streams.open = opened
    from onlinear.cli import main
    main()"""
    code = textwrap.dedent("    " + code)
    ended = subprocess.run([sys.executable, "-c", code, "train", rows, "-q"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_signal_finds_modules_that_are_half_imported(monkeypatch):
    monkeypatch.setitem(sys.modules, "onlinear.training.events", ModuleType("half"))
    with pytest.raises(KeyboardInterrupt), Interrupts():
        signal.raise_signal(signal.SIGTERM)


def test_a_signal_that_numpy_makes_an_error_of_its_import_is_a_signal():
    def imported():
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        raise ImportError("numpy._core.multiarray failed to import")

    with pytest.raises(KeyboardInterrupt), Interrupts():
        imported()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_an_error_has_its_code_where_nobody_can_be_told(rows):
    for options, code in (((rows, "--task", "none"), 2), (("nothing.svm",), 1)):
        for unbuffered in ("", "1"):
            command, environment = [*ready.command(), "train", *options], os.environ | {"PYTHONUNBUFFERED": unbuffered}
            with open("/dev/full", "w") as full:
                assert subprocess.run(command, stderr=full, env=environment, check=False).returncode == code


def test_a_run_whose_lines_find_no_room_says_where_its_rows_are(rows, tmp_path, monkeypatch):
    def report(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "standard output")

    monkeypatch.setattr(JsonDisplay, "_say", lambda display, kind, **_: None if kind == "start" else report())
    said = run("train", rows, "--json", "--checkpoint", tmp_path / "c", "--model", tmp_path / "m", code=1)
    assert re.match(
        r"onlinear: standard output: No space left on device\. 1 row was learned before it\. The checkpoint .* holds 1 row;",
        said,
    )


@pytest.mark.parametrize("command", ["predict m", "evaluate m", "explain m", "report m", "convert -o rows.arrow", "train"])
def test_a_signal_ends_a_command_that_opens_its_rows(trained, command, tmp_path, monkeypatch):
    def opening(*_, **__):
        signal.raise_signal(signal.SIGTERM)

    for path in trained:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(streams, "open", opening)
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(99))
    try:
        assert run(*command.split(), "a.svm", code=130) == "onlinear: interrupted.\n"
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_wrong_line_counts_once_in_all_passes(tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\noops\n-1 1:2\n")
    result = CliRunner().invoke(app, ["train", str(tmp_path / "a.svm"), "--max-errors", "1", "--passes", "3"])
    assert result.exit_code == 0, result.stderr
    assert "1 wrong line skipped" in result.stderr


def test_a_target_of_text_is_not_regressed(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,red\n2,blue\n")
    shown = run("train", tmp_path / "t.csv", "--target", "y", "--task", "regress", code=2)
    assert "is text ('red', 'blue'), which names classes, and a regression needs numbers" in shown


def test_a_warning_is_a_plain_line_of_the_command(tmp_path):
    (tmp_path / "wide.svm").write_text("1 1:1\n0 9:1\n" * 20)
    done = process("train", "wide.svm", "--solver", "mixture,limit=5", cwd=tmp_path)
    assert done.returncode == 0
    said = [line for line in done.stderr.splitlines() if "limit=" in line]
    assert len(said) == 1
    assert said[0].startswith("onlinear: mixture: a row has a column")


def test_options_of_other_programs_are_answered_with_those_of_train():
    train = typer.main.get_command(app).commands["train"]
    known = {option for parameter in train.params for option in (*parameter.opts, *parameter.secondary_opts)}
    assert not known & set(hints._OPTIONS)
    assert "--hash-bits" in hints._OPTIONS["--hash"]  # which others mean who begin so
    for name, advice in hints._OPTIONS.items():
        assert set(re.findall(r"(?<![\w-])--[a-z-]+", advice)) <= known
        found = re.search(r"--solver (\S+?)\.?( |$)|--loss (\S+)\.$|--penalty (\S+)\.$", advice)
        if found:
            solver, _, loss, penalty = found.groups()
            Learner(solver or "fiol", loss or "squared", penalty or "none")
        shown = " ".join(run("train", "x.svm", name, code=2).replace("│", " ").split())
        assert f"No such option: {name}. {advice}" in shown
    assert "Possible options" in run("train", "x.svm", "--modle", "x", code=2)
    assert "Possible options" in run("predict", "m", "x.svm", "--output-file", "x", code=2)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("fit", "Write: onlinear train."),
        ("test", "Write: onlinear evaluate."),
        ("a.svm", "Write: onlinear train a.svm."),
        ("x", ""),
    ],
)
def test_commands_of_other_programs_are_answered_with_those_here(name, advice):
    shown = " ".join(run(name, "x.svm", code=2).replace("│", " ").split())
    assert f"No such command {name!r}. {advice}".strip() in shown
    assert set(hints._COMMANDS.values()) <= set(typer.main.get_command(app).commands)


@pytest.mark.parametrize(("pair", "crosses"), [("ab", "a*:b*"), ("a:", "a*:*"), ("::", "*:*")])
def test_pairs_of_namespaces_behind_vowpal_wabbits_option_are_answered(rows, pair, crosses):
    advice = f"no file at '{pair}'. -q is --quiet here; for Vowpal Wabbit's -q {pair} write --interactions '{crosses}'."
    assert advice in run("train", rows, "-q", pair, code=2)
    assert advice in run("train", "-q", pair, rows, "--workers", 1, "--rounds", 2, code=2)
    assert "--interactions" not in run("train", rows, pair, code=1)


def test_a_file_of_two_letters_is_a_source(rows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("ab").write_bytes(Path(rows).read_bytes())
    run("train", rows, "-q", "ab")


def test_every_option_on_the_page_of_other_tools_is_answered():
    page = (Path(__file__).parents[2] / "docs" / "other-tools.md").read_text()
    commands = page[page.index("## From Vowpal") : page.index("## From River")] + page[page.index("## From LIBLINEAR") :]
    rows = [line.split("|")[1] for line in commands.splitlines() if line.startswith("| `-")]
    options = {option for row in rows for option in re.findall(r"(?<![\w-])--?[a-zA-Z]\w*", row)}
    assert {"-q", "--holdout_off", "-s", "-w1"} <= options
    train = typer.main.get_command(app).commands["train"]
    known = {option for parameter in train.params for option in parameter.opts}
    names = {option if option.startswith("--") else option[:2] for option in options}
    assert {name for name in names - known if hints.advise_on_option(name) is None} == set()


@pytest.mark.parametrize(("passes", "got"), [("a", "got 'a'"), ("1.5", "got '1.5'"), ("0", "got '0'")])
def test_an_error_of_a_number_shows_the_value(passes, got):
    shown = " ".join(run("train", "x.svm", "--passes", passes, code=2).replace("│", " ").split())
    assert got in shown
    assert "got" not in run("predict", "model", code=2)  # a missing source


def test_numbered_rows_for_a_model_of_names_are_said_to_be_so(tmp_path):
    (tmp_path / "rows.csv").write_text("age,city,y\n3,a,1\n4,b,0\n")
    (tmp_path / "rows.svm").write_text("1 1:3\n0 1:4\n")
    for rows, target in (("rows.csv", ("--target", "y")), ("rows.svm", ())):
        CliRunner().invoke(app, ["train", str(tmp_path / rows), *target, "--model", str(tmp_path / f"{rows}.model")])
    for model, rows, said in (("csv", "svm", True), ("csv", "csv", False), ("svm", "svm", False)):
        found = CliRunner().invoke(app, ["predict", str(tmp_path / f"rows.{model}.model"), str(tmp_path / f"rows.{rows}")])
        assert found.exit_code == 0
        assert ("numbers its columns" in found.stderr) == said


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
@pytest.mark.parametrize("arguments", [["--help"], ["train", "--help"]])
def test_help_that_cannot_be_written_is_told_in_one_line(arguments):
    with open("/dev/full", "w") as full:
        done = subprocess.run([*ready.command(), *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == "onlinear: standard output: No space left on device.\n"


@pytest.mark.skipif(os.name == "nt", reason="a shell closes the streams")
def test_closed_standard_streams(rows, tmp_path):
    def without(stream, *arguments):
        return process_of("sh", "-c", f'"$@" {stream}', "sh", *PYTHON, *map(str, arguments))

    run("train", rows, "--quiet", "--model", tmp_path / "wanted")
    for stream in (">&-", "2>&-", "<&-"):
        done = without(stream, "train", rows, "--model", tmp_path / "m")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "m").read_bytes() == (tmp_path / "wanted").read_bytes()
    for arguments in (["predict", tmp_path / "m", rows], ["convert", rows, "--output", "-"]):
        done = without(">&-", *arguments)
        assert (done.returncode, done.stderr) == (1, "onlinear: standard output: is closed.\n")
    for name, said in (("-", "standard input"), ("/dev/stdin", "/dev/stdin")):
        done = without("<&-", "train", name)
        assert (done.returncode, done.stderr) == (1, f"onlinear: {said}: is closed.\n")


@pytest.mark.skipif(os.name == "nt", reason="a shell closes the streams")
def test_what_is_only_shown_needs_a_standard_output(trained):
    model, rows = (str(trained[0].with_name(name)) for name in ("m", "a.svm"))
    shown = [["inspect", model], ["evaluate", model, rows], ["explain", model, rows], ["parts"]]
    shown += [["train", rows], ["--version"], ["train", "--help"]]
    code = """
        import sys
        from onlinear.cli import main
        for arguments in eval(sys.argv[1]):
            sys.argv[1:] = arguments
            try:
                main()
            except SystemExit as end:
                print(end.code, file=sys.stderr)
    """
    done = process_of("sh", "-c", '"$@" >&-', "sh", sys.executable, "-c", textwrap.dedent(code), str(shown))
    told = "onlinear: standard output: is closed."
    assert done.stderr == f"{told}\n1\n" * 5 + f"{told}\n" * 2


def process_of(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.skipif(os.name == "nt", reason="pipes without a reader are an error of another kind")
@pytest.mark.parametrize(("option", "kept"), [("--model", "m.partial"), ("--checkpoint", "m"), ("--no-intercept", None)])
def test_rows_are_kept_where_the_reader_of_the_table_goes(tmp_path, option, kept):
    (tmp_path / "rows.svm").write_text(ROWS * 500)
    command = [*ready.command(), "train", tmp_path / "rows.svm", "--passes", "40", option, *([tmp_path / "m"] if kept else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as going:
        while b"1,024" not in (line := going.stdout.readline()):
            assert line  # which an ended run gives no more of
        going.stdout.close()
        said = going.stderr.read().decode()
        assert going.wait() == 1
    if kept:
        found = re.match(r"onlinear: standard output has no reader any more, after ([\d,]+) rows\. ", said)
        assert load(tmp_path / kept).t_ == int(found[1].replace(",", ""))
    else:
        assert said == ""


@pytest.mark.parametrize(
    ("command", "option"), [("train", "--model"), ("train", "--checkpoint"), ("convert", "--output"), ("predict", "--output")]
)
def test_an_output_without_a_name_is_refused(rows, tmp_path, command, option):
    trained = []
    if command == "predict":
        run("train", rows, "--model", tmp_path / "m")
        trained = [tmp_path / "m"]
    assert run(command, *trained, rows, option, "", code=2) == f"onlinear: {option} is empty; expected the name of a file.\n"


def test_names_of_files_are_one_line(tmp_path):
    rows, model, checkpoint = (tmp_path / f"{name}\nSECOND\u2028SECOND" for name in ("rows", "model", "checkpoint"))
    rows.write_text("".join(f"{i % 2} 1:{i}\n" for i in range(40)))
    wrong, table = tmp_path / "wrong\nSECOND", tmp_path / "a\nSECOND.csv"
    wrong.write_text("1 1:x\n")
    table.write_text("a,y\n1,2\n1,2,3\n")
    given = [
        ["train", rows, "--model", model, "--checkpoint", checkpoint],
        ["train", "--resume", model],
        ["train", wrong],
        ["train", table, "--target", "y", "--task", "regress"],
        ["evaluate", model, rows],
        ["inspect", model],
        ["inspect", rows],
        ["explain", model, rows],
        ["predict", model, wrong],
        ["predict", model, rows, "--output", rows],
        ["convert", rows, "--output", tmp_path / "con\nSECOND.parquet"],
    ]
    for arguments in given:
        found = CliRunner().invoke(app, list(map(str, arguments)))
        shown = found.stdout + found.stderr
        assert not any(line.startswith("SECOND") for line in shown.splitlines()), shown
        assert "\u2028" not in shown
