"""The commands that read: predict, evaluate, inspect and convert, as a user meets them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.csv as csv
import pyarrow.feather as feather
import pytest
from command import run
from sklearn.metrics import confusion_matrix, log_loss, mean_absolute_error, r2_score, roc_auc_score, root_mean_squared_error
from typer.testing import CliRunner

from onlinear import Learner, OnlineClassifier, OnlineRegressor, load, streams
from onlinear.cli import app
from onlinear.cli.evaluate import calibration, confusion
from onlinear.cli.inspect import history
from onlinear.cli.lines import keep_ends
from onlinear.models.confusion import Confusion
from onlinear.models.evaluation import Bin

RNG = np.random.default_rng(5)
N = 300
X = np.where(RNG.random((N, 6)) < 0.5, 0.0, RNG.standard_normal((N, 6)))
TEXTS = RNG.choice(["red", "green", "blue, light"], N)
SIGNAL = X @ [1.0, -2.0, 0.0, 0.5, 0.0, 3.0] + (TEXTS == "red") + 0.3 * RNG.standard_normal(N)


def svmlight(path, y, rows=X):
    pairs = (" ".join(f"{j + 1}:{x!r}" for j, x in enumerate(row) if x) for row in rows.tolist())
    path.write_text("".join(f"{label!r} {entries}\n" for label, entries in zip(y.tolist(), pairs, strict=True)))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows in every format, and models of them."""
    home = tmp_path_factory.mktemp("reading")
    signs = np.where(SIGNAL > 0.0, 1.0, -1.0)
    svmlight(home / "two.svm", signs)
    svmlight(home / "numbers.svm", SIGNAL)
    svmlight(home / "three.svm", np.digitize(SIGNAL, [-1.0, 1.0]).astype(float))
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(colour=TEXTS, bought=np.where(signs > 0.0, "yes", "no, not"))
    frame.to_csv(home / "shop.csv", index=False)
    frame.to_parquet(home / "shop.parquet")
    run("train", home / "two.svm", "-q", "-m", home / "two", "--penalty", "l1,l1=1e-3")
    run("train", home / "two.svm", "-q", "-m", home / "final", "--penalty", "l1,l1=1e-3", "--final")
    run("train", home / "three.svm", "-q", "-m", home / "three", "--classes", "0,1,2")
    run("train", home / "numbers.svm", "-q", "-m", home / "numbers", "--task", "regress")
    run("train", home / "shop.csv", "--target", "bought", "--classes", "yes", "-q", "-m", home / "shop", code=2)
    run("train", home / "shop.csv", "--target", "bought", "--scan", "--categories", "one-hot", "-q", "-m", home / "shop")
    return home


def scores_of(folder, model, source, *options):
    return np.array(list(map(float, run("predict", folder / model, folder / source, "--as", "scores", *options).split())))


# --- predict ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["labels", "scores", "probabilities"])
@pytest.mark.parametrize("model", ["two", "three", "numbers", "shop"])
def test_every_output_says_the_same(folder, tmp_path, model, kind):
    source = folder / ("shop.csv" if model == "shop" else f"{model}.svm")
    if (model, kind) == ("numbers", "probabilities"):
        assert "not probabilities" in run("predict", folder / model, source, "--as", kind, code=1)
        return
    text = run("predict", folder / model, source, "--as", kind).splitlines()
    assert len(text) == N
    for name in ("o.txt", "o.csv", "o.parquet", "o.arrow"):
        assert run("predict", folder / model, source, "--as", kind, "-o", tmp_path / name) == ""
    frames = [
        csv.read_csv(tmp_path / "o.csv").to_pandas(),
        pd.read_parquet(tmp_path / "o.parquet"),
        feather.read_feather(tmp_path / "o.arrow"),
    ]
    assert (tmp_path / "o.txt").read_text().splitlines() == text
    named = run("predict", folder / model, source, "--as", kind, "--header").splitlines()
    assert named[0].split() == [name.replace(" ", "_") for name in frames[0].columns]
    assert named[1:] == text
    run("predict", folder / model, source, "--as", kind, "--header", "-o", tmp_path / "named.txt")
    assert (tmp_path / "named.txt").read_text().splitlines() == named
    learned = load(folder / model)
    heads = {
        "labels": ["label"],
        "scores": ["score"],
        "probabilities": [f"probability {c}" for c in getattr(learned, "classes_", ())],
    }
    if (model, kind) == ("three", "scores"):
        heads["scores"] = ["score 0", "score 1", "score 2"]
    if (model, kind) == ("numbers", "labels"):
        heads["labels"] = ["prediction"]
    for frame in frames:
        assert list(frame.columns) == heads[kind]
        if (model, kind) == ("shop", "labels"):
            assert frame["label"].tolist() == text
        else:
            expected = np.array([list(map(float, line.split())) for line in text])
            np.testing.assert_array_equal(frame.to_numpy(float), expected)


def test_predictions_are_the_estimators(folder):
    learned = load(folder / "two")
    np.testing.assert_array_equal(scores_of(folder, "two", "two.svm"), learned.decision_function(X))
    assert run("predict", folder / "two", folder / "two.svm").split() == list(map(str, learned.predict(X)))


def test_a_final_model_predicts_the_same_bits_and_learns_no_more(folder):
    np.testing.assert_array_equal(scores_of(folder, "final", "two.svm"), scores_of(folder, "two", "two.svm"))
    with pytest.raises(ValueError, match="which can only predict"):
        load(folder / "final").partial_fit(X, np.where(SIGNAL > 0.0, 1, -1))


def test_every_format_gives_the_same_scores(folder, tmp_path):
    run("convert", folder / "two.svm", "-o", tmp_path / "two.parquet")
    run("convert", folder / "two.svm", "-o", tmp_path / "two.arrow")
    run("convert", folder / "two.svm", "-o", tmp_path / "two.svm.gz")
    wanted = scores_of(folder, "two", "two.svm")
    for name in ("two.parquet", "two.arrow", "two.svm.gz"):
        np.testing.assert_array_equal(scores_of(folder, "two", tmp_path / name), wanted)


def test_the_first_index_is_kept_in_the_model(folder, tmp_path):
    zero, one, again = tmp_path / "zero.svm", folder / "two.svm", tmp_path / "again.svm"
    run("convert", one, "-o", zero, "--output-base", 0)
    run("train", zero, "--base", 0, "-q", "-m", tmp_path / "m", "--penalty", "l1,l1=1e-3")
    run("train", zero, "--base", 0, "-q", "-m", tmp_path / "final", "--penalty", "l1,l1=1e-3", "--final")
    wanted = scores_of(folder, "two", one)
    for model in ("m", "final"):
        np.testing.assert_array_equal(scores_of(tmp_path, model, zero), wanted)
        np.testing.assert_array_equal(scores_of(tmp_path, model, zero, "--base", 0), wanted)
    measures = [json.loads(run("evaluate", *names, "--json")) for names in ((tmp_path / "m", zero), (folder / "two", one))]
    assert measures[0] == measures[1]
    assert "numbered; in svmlight text from 0" in run("inspect", tmp_path / "m")
    error = run("predict", tmp_path / "m", one, "--base", 1, code=2)
    assert error.startswith("onlinear: base 1 contradicts the model, which learned rows whose indices start at 0;")
    assert "start at 1" in run("evaluate", folder / "two", zero, "--base", 0, code=2)
    run("convert", one, "--base", 1, "--output-base", 0, "-o", again)
    np.testing.assert_array_equal(scores_of(tmp_path, "m", again), wanted)
    for name in ("zero.parquet", "zero.arrow"):
        run("convert", zero, "--base", 0, "-o", tmp_path / name)
        run("train", tmp_path / name, "-q", "-m", tmp_path / name[:-1], "--penalty", "l1,l1=1e-3")
        assert load(tmp_path / name[:-1]).encoding_ == load(tmp_path / "m").encoding_
        np.testing.assert_array_equal(scores_of(folder, "two", tmp_path / name), wanted)


def test_a_model_that_knows_no_first_index_takes_either(folder, tmp_path):
    OnlineClassifier().fit(X, np.where(SIGNAL > 0.0, 1, -1)).save(tmp_path / "m")
    run("convert", folder / "two.svm", "-o", tmp_path / "zero.svm", "--output-base", 0)
    wanted = scores_of(tmp_path, "m", folder / "two.svm")
    np.testing.assert_array_equal(scores_of(tmp_path, "m", tmp_path / "zero.svm", "--base", 0), wanted)


def test_named_columns_are_found_in_any_order_and_without_the_target(folder, tmp_path):
    wanted = scores_of(folder, "shop", "shop.csv")
    np.testing.assert_array_equal(scores_of(folder, "shop", "shop.parquet"), wanted)
    frame = csv.read_csv(folder / "shop.csv").to_pandas().drop(columns="bought")
    frame[frame.columns[::-1]].to_csv(tmp_path / "other.csv", index=False)
    np.testing.assert_array_equal(scores_of(folder, "shop", tmp_path / "other.csv"), wanted)
    run("convert", folder / "shop.csv", "--target", "bought", "--categories", "one-hot", "-o", tmp_path / "shop.parquet")
    np.testing.assert_array_equal(scores_of(folder, "shop", tmp_path / "shop.parquet"), wanted)
    run("convert", folder / "shop.csv", "--target", "bought", "--features", "a,b", "-o", tmp_path / "ab.parquet")
    assert "expected the columns that the model learned" in run("predict", folder / "shop", tmp_path / "ab.parquet", code=2)


def test_a_bare_learner_gives_scores(folder, tmp_path):
    Learner("comid", "hinge").learn(X, np.where(SIGNAL > 0.0, 1.0, -1.0)).save(tmp_path / "m")
    assert len(run("predict", tmp_path / "m", folder / "two.svm").splitlines()) == N
    assert "bare learner" in run("predict", tmp_path / "m", folder / "two.svm", "--as", "probabilities", code=1)
    assert "bare learner" in run("evaluate", tmp_path / "m", folder / "two.svm", code=1)


def test_a_failed_prediction_leaves_the_old_file(folder, tmp_path):
    (tmp_path / "out.csv").write_text("old")
    (tmp_path / "bad.svm").write_text("1 1:1\n" * 5 + "1 oops\n")
    assert "bad.svm:6: expected" in run("predict", folder / "two", tmp_path / "bad.svm", "-o", tmp_path / "out.csv", code=1)
    assert (tmp_path / "out.csv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.svm", "out.csv"]
    assert "there is no folder" in run("predict", folder / "two", folder / "two.svm", "-o", tmp_path / "no/out", code=2)


@pytest.mark.parametrize(("name", "why"), [("p.csv.gz", "compressed"), ("p.txt.ZST", "compressed"), ("p.json", "written so")])
def test_predictions_are_not_written_under_the_name_of_another_kind_of_file(folder, tmp_path, name, why):
    shown = run("predict", folder / "two", folder / "two.svm", "-o", tmp_path / name, code=2)
    assert f"predictions are not {why}" in shown
    assert not list(tmp_path.iterdir())


# --- evaluate --------------------------------------------------------------------------------------------------------


def test_two_classes_are_measured_as_scikit_learn_measures_them(folder):
    found = json.loads(run("evaluate", folder / "two", folder / "two.svm", "--json"))
    learned, y = load(folder / "two"), np.where(SIGNAL > 0.0, 1, -1)
    assert found["rows"] == found["weight"] == N
    assert found["error"] == pytest.approx(np.mean(learned.predict(X) != y))
    assert found["auc"] == pytest.approx(roc_auc_score(y, learned.decision_function(X)), abs=1e-15)
    assert found["log_loss"] == pytest.approx(log_loss(y, learned.predict_proba(X)))
    assert found["loss"] == pytest.approx(found["log_loss"])
    assert found["confusion"] == confusion_matrix(y, learned.predict(X)).tolist()
    assert sum(part["weight"] for part in found["calibration"]) == N
    shown = run("evaluate", folder / "two", folder / "two.svm")
    assert max(map(len, shown.splitlines()[1:])) <= 80
    for word in ("AUC", "log loss", "confusion", "calibration", "0.9 - 1.0"):
        assert word in shown


@pytest.mark.parametrize(("weight", "wanted"), [(4321.0, "4,321"), (0.25, "0.25"), (2e-7, "2e-07"), (3e200, "3e+200")])
def test_weights_of_rows_of_any_size_are_shown_in_few_digits(weight, wanted):
    shown = calibration([Bin(0.2, 0.3, weight, 0.25, 0.5)])[1]
    assert shown.split()[3:] == [wanted, "0.2500", "0.5000"]


def test_several_classes(folder):
    found = json.loads(run("evaluate", folder / "three", folder / "three.svm", "--json"))
    learned, y = load(folder / "three"), np.digitize(SIGNAL, [-1.0, 1.0])
    assert found["classes"] == [0, 1, 2]
    assert found["confusion"] == confusion_matrix(y, learned.predict(X)).tolist()
    assert found["log_loss"] == pytest.approx(log_loss(y, learned.predict_proba(X)))
    assert "auc" not in found
    many = json.loads(run("evaluate", folder / "shop", folder / "shop.csv", "--json"))
    assert many["classes"] == ["no, not", "yes"]
    assert many["error"] < 0.2


def test_long_names_of_columns_and_classes_are_shortened_on_the_screen(tmp_path):
    (name, label), source, model = ("n" * 500, "E" * 500), tmp_path / "a.csv", tmp_path / "m"
    source.write_text(f"{name},y\n" + "".join(f"{i % 7},{label if i % 7 > 1 else 'D'}\n" for i in range(40)))
    run("train", source, "--target", "y", "--classes", f"D,{label}", "-q", "-m", model)
    for what in (("inspect", model), ("explain", model, source, "--rows", "3"), ("evaluate", model, source)):
        shown = [line.removeprefix(f"{source}:") for line in run(*what).splitlines()]
        assert "EEE..." in "".join(shown)
        assert max(map(len, shown)) <= 80
    assert label in run("evaluate", model, source, "--json")


def test_many_classes_are_shown_by_what_is_confused(folder, tmp_path):
    run("train", "digits", "-q", "-m", tmp_path / "m")
    shown = run("evaluate", tmp_path / "m", "digits")
    assert "taken for" in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_many_classes_without_an_error_are_told_so():
    matrix, places = Confusion(30), np.arange(30)
    matrix.add(places, places, np.ones(30))
    assert confusion([f"class {place}" for place in places], matrix) == ["confusion: no class was taken for another"]


def test_regressions_are_measured(folder):
    found = json.loads(run("evaluate", folder / "numbers", folder / "numbers.svm", "--json"))
    guessed = load(folder / "numbers").predict(X)
    assert found["mae"] == pytest.approx(mean_absolute_error(SIGNAL, guessed))
    assert found["rmse"] == pytest.approx(root_mean_squared_error(SIGNAL, guessed))
    assert found["r2"] == pytest.approx(r2_score(SIGNAL, guessed))
    assert found["loss"] == pytest.approx(np.mean((SIGNAL - guessed) ** 2) / 2)
    assert "RMSE" in run("evaluate", folder / "numbers", folder / "numbers.svm")


def test_json_has_null_for_what_is_infinite(folder, tmp_path):
    (tmp_path / "far.svm").write_text("1e200 1:1\n1 2:1\n")
    found = json.loads(run("evaluate", folder / "numbers", tmp_path / "far.svm", "--json"), parse_constant=pytest.fail)
    assert (found["loss"], found["rmse"], found["best_constant"]) == (None, None, None)
    assert found["mae"] > 1e199


def test_rows_count_by_their_weights(folder, tmp_path):
    lines = (folder / "two.svm").read_text().splitlines()[:40]
    vw = [
        f"{line.split()[0]} {1 + i % 3}.0 | " + " ".join(p.replace(":", "x:") for p in line.split()[1:])
        for i, line in enumerate(lines)
    ]
    (tmp_path / "weighted.vw").write_text("\n".join(vw) + "\n")
    repeated = [line for i, line in enumerate(vw) for _ in range(1 + i % 3)]
    (tmp_path / "repeated.vw").write_text("\n".join(repeated).replace(" 2.0 |", " |").replace(" 3.0 |", " |") + "\n")
    run("train", tmp_path / "weighted.vw", "-q", "-m", tmp_path / "m")
    first, second = (
        json.loads(run("evaluate", tmp_path / "m", tmp_path / name, "--json")) for name in ("weighted.vw", "repeated.vw")
    )
    assert (first["rows"], second["rows"]) == (40, len(repeated))
    for name in ("weight", "loss", "error", "auc", "log_loss"):
        assert first[name] == pytest.approx(second[name], rel=1e-12)


def test_labels_that_are_no_class_and_rows_without_one(folder, tmp_path):
    (tmp_path / "a.svm").write_text("1 1:1\n5 1:1\n")
    assert "a.svm:2: expected one of the classes -1, 1, got 5." in run("evaluate", folder / "two", tmp_path / "a.svm", code=1)
    (tmp_path / "empty.svm").write_text("")
    assert "expected at least one row" in run("evaluate", folder / "two", tmp_path / "empty.svm", code=1)
    (tmp_path / "one.svm").write_text("1 1:1\n")
    assert json.loads(run("evaluate", folder / "two", tmp_path / "one.svm", "--json"))["auc"] is None
    assert "AUC                    -" in run("evaluate", folder / "two", tmp_path / "one.svm")


# --- inspect ---------------------------------------------------------------------------------------------------------


def test_inspect_shows_settings_history_and_the_largest_weights(folder):
    shown = run("inspect", folder / "shop", "--top", 3)
    assert max(map(len, shown.splitlines()[1:])) <= 80
    for words in (
        "loss           logistic",
        "classes        no, not, yes",
        "rows           300",
        "the 3 largest weights",
        "one-hot",
    ):
        assert words in shown
    assert "f (column 5)" in shown
    assert "█" in shown
    found = json.loads(run("inspect", folder / "shop", "--json"))
    learned = load(folder / "shop")
    assert found["nonzeros"] == np.count_nonzero(learned.coef_)
    assert [report["rows"] for report in found["history"]] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
    assert found["history"][-1]["loss"] == found["loss"]
    sizes = [abs(weight["scaled"]) for weight in found["weights"]]
    assert sizes == sorted(sizes, reverse=True)
    names = {weight["name"]: weight["weight"] for weight in found["weights"]}
    assert names["f"] == learned.coef_[0, 5]
    assert any(name.startswith("colour=") for name in names)


def test_long_names_of_classes_keep_their_ends():
    assert [keep_ends(f"customers of region {k}", 11) for k in (7, 8)] == ["cust...on 7", "cust...on 8"]
    assert keep_ends("elevenchars", 11) == "elevenchars"
    assert [keep_ends(name, 11) for name in ("", " a", "a b", "a\tb")] == ["''", "' a'", "a b", "a\\tb"]


def test_the_history_names_measures_as_train_does():
    assert "MAE" in history([{"rows": 1, "loss": 2.0, "since": 2.0, "mae": 1.0}])[1]


def test_inspect_shows_the_loss_of_the_last_iterate_whole(folder, tmp_path):
    run("train", folder / "two.svm", "-q", "--average", "adaptive", "--model", tmp_path / "m")
    found = json.loads(run("inspect", tmp_path / "m", "--json"))
    shown = run("inspect", tmp_path / "m").splitlines()
    assert f"loss           {found['loss']:.6g} (mean, each row before it was trained on)" in shown
    assert f"last iterate   loss {found['loss_last']:.6g}" in shown


def test_inspect_shows_the_loss_of_the_table_whatever_the_weights(tmp_path):
    (tmp_path / "rows.csv").write_text("a,y,w\n" + "".join(f"{k % 7},{k % 2},{10 * (k % 3)}\n" for k in range(64)))
    run("train", tmp_path / "rows.csv", "--target", "y", "--weight", "w", "-q", "--average", "none", "--model", tmp_path / "m")
    wanted = load(tmp_path / "m").history_[-1]["loss"]
    assert json.loads(run("inspect", tmp_path / "m", "--json"))["loss"] == wanted
    assert f"loss           {wanted:.6g} (mean, each row before it was trained on)" in run("inspect", tmp_path / "m")
    OnlineClassifier(average="none").fit([[0.0], [1.0]], [0, 1], sample_weight=[10.0, 30.0]).save(tmp_path / "m")
    shown = run("inspect", tmp_path / "m")
    assert re.search(r"\nloss +[0-9.]+ \(mean of weight x loss, rows before they were learned\)\n", shown)


def test_inspect_shows_no_loss_of_the_last_iterate_for_that_of_an_average(folder, tmp_path):
    run("train", folder / "two.svm", "-q", "--average", "adaptive", "--model", tmp_path / "m")
    model = load(tmp_path / "m")
    wanted = [model.history_[-1][name] for name in ("loss", "loss_last")]
    del model.history_[1:]  # as an early stop does, which keeps the reports up to its pass
    for final, losses in ((False, wanted), (True, [None, wanted[1]])):
        model.save(tmp_path / "m", final=final)
        found = json.loads(run("inspect", tmp_path / "m", "--json"))
        assert [found["loss"], found["loss_last"]] == losses
    assert re.search(r"\nloss +-\nlast iterate +loss ", run("inspect", tmp_path / "m"))


def test_inspect_takes_every_kind_of_file(folder, tmp_path):
    Learner("comid", "hinge").save(tmp_path / "bare")
    run("train", folder / "two.svm", "-q", "--checkpoint", tmp_path / "checkpoint", "--checkpoint-every", 100)
    for path, words in (
        (folder / "final", "final classifier"),
        (folder / "three", "class"),
        (folder / "numbers", "regressor"),
        (tmp_path / "bare", "learner"),
        (tmp_path / "checkpoint", "train --resume continues"),
    ):
        assert words in run("inspect", path)
    assert (
        json.loads(run("inspect", folder / "final", "--json"))["nonzeros"]
        == json.loads(run("inspect", folder / "two", "--json"))["nonzeros"]
    )
    assert "not an onlinear model file" in run("inspect", folder / "two.svm", code=1)


# --- convert ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_svmlight_comes_back_bit_for_bit(tmp_path, form):
    hard = ["5e-324", "1.7976931348623157e+308", "-0.1", "3", "0.30000000000000004", "1e22", "123456789012345680", "-2.5e-7"]
    lines = [
        f"{label} {i + 1}:{x} 9:1\n" for i, (label, x) in enumerate(zip(["-1", "1", "2.5", "1e-5"] * 2, hard, strict=True))
    ]
    (tmp_path / "a.svm").write_text("".join(lines) + "0\n")
    run("convert", tmp_path / "a.svm", "-o", tmp_path / f"a.{form}")
    run("convert", tmp_path / f"a.{form}", "-o", tmp_path / "b.svm")
    (first,), (second,) = streams.open(tmp_path / "a.svm"), streams.open(tmp_path / "b.svm")
    for a, b in zip((*first.rows, first.y), (*second.rows, second.y), strict=True):
        assert a.tobytes() == b.tobytes()
    run("convert", tmp_path / "b.svm", "-o", tmp_path / "c.svm")
    assert (tmp_path / "b.svm").read_bytes() == (tmp_path / "c.svm").read_bytes()


@pytest.mark.parametrize("suffix", ["gz", "bz2", "xz", "zst"])
def test_text_is_compressed_by_suffix(folder, tmp_path, suffix):
    run("convert", folder / "two.svm", "-o", tmp_path / f"a.svm.{suffix}", "-q")
    run("convert", tmp_path / f"a.svm.{suffix}", "-o", tmp_path / "b.svm", "-q")
    run("convert", folder / "two.svm", "-o", tmp_path / "c.svm", "-q")
    assert (tmp_path / "b.svm").read_bytes() == (tmp_path / "c.svm").read_bytes()


def test_convert_says_what_it_did(folder, tmp_path):
    assert "300 rows written to" in run("convert", folder / "two.svm", "-o", tmp_path / "a.parquet")
    found = json.loads(run("convert", folder / "two.svm", "-o", tmp_path / "b.arrow", "--float32", "--json"))
    assert found["rows"] == N
    assert found["bytes"] == (tmp_path / "b.arrow").stat().st_size
    (block,) = streams.open(tmp_path / "b.arrow")
    np.testing.assert_array_equal(block.csr(6).toarray(), X.astype(np.float32).astype(float))
    (tmp_path / "bad.svm").write_text("1 1:1\noops\n-1 1:2\n")
    result = CliRunner().invoke(app, ["convert", str(tmp_path / "bad.svm"), "-o", "-", "--max-errors", "1"])
    assert result.stdout == "1 1:1\n-1 1:2\n"
    assert "bad.svm:2: expected a label" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("two.svm", "-o", "x.svm", "--float32"), 2, "--float32 is for"),
        (("two.svm", "-o", "x.parquet", "--output-base", 1), 2, "--output-base is for svmlight"),
        (("two.svm", "-o", "two.svm"), 2, "is also a source"),
        (("two.svm", "-o", "x.csv"), 2, "--output x.csv: convert writes no such text, but .parquet"),
        (("two.svm", "-o", "x.vw.gz"), 2, "--output x.vw.gz: convert writes no such text"),
        (("shop.csv", "-o", "x.svm", "--target", "bought"), 1, "labels are text"),
        (("two.svm",), 2, "--output"),
        (("gone.svm", "-o", "x.svm"), 1, "no file at"),
    ],
    ids=str,
)
def test_what_cannot_be_converted(folder, tmp_path, monkeypatch, arguments, code, message):
    monkeypatch.chdir(folder)
    before = sorted(path.name for path in folder.iterdir())
    assert message in run("convert", *arguments, code=code)
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_a_model_of_vowpal_text_takes_the_rows_as_they_were_converted(tmp_path, suffix):
    rows, converted, model = tmp_path / "a.vw", tmp_path / f"a.{suffix}", tmp_path / "m"
    rows.write_text("1 2.0 tag| a:1 b:0.5 |ns c d:2\n-1 |ns c:3\n1 0.5 |x q:-1e-3\n-1 | b\n" * 20)
    run("train", rows, "--model", model)
    run("convert", rows, "-o", converted)
    for command in (("predict", "--as", "scores"), ("evaluate", "--json")):
        assert run(command[0], model, converted, *command[1:]) == run(command[0], model, rows, *command[1:])
    run("train", "--from", model, converted, "--model", tmp_path / "more")
    assert load(tmp_path / "more").t_ == 160


def test_weights_do_not_go_into_svmlight(tmp_path):
    (tmp_path / "a.vw").write_text("1 2.0 | a\n")
    assert "a.vw:1: the row's weight is 2" in run("convert", tmp_path / "a.vw", "-o", tmp_path / "a.svm", code=1)


# --- the same from Python --------------------------------------------------------------------------------------------


def test_fit_of_a_stream_is_the_command(folder, tmp_path):
    for model, kind, options, classes in (
        ("two", OnlineClassifier, {"penalty": "l1,l1=1e-3"}, None),
        ("three", OnlineClassifier, {}, "scan"),
        ("numbers", OnlineRegressor, {}, None),
        ("shop", OnlineClassifier, {}, "scan"),
    ):
        if model == "shop":
            stream = streams.open(folder / "shop.csv", target="bought", categories="one-hot")
        else:
            stream = streams.open(folder / f"{model}.svm")
        options = options | ({} if classes is None else {"classes": classes})
        classes = {"classes": options.pop("classes")} if "classes" in options else {}
        kind(random_state=0, **options).fit(stream, **classes).save(tmp_path / model)
        assert (tmp_path / model).read_bytes() == (folder / model).read_bytes()


def test_importing_the_commands_stays_light():
    code = "import sys, onlinear.cli; sys.exit(any(name in sys.modules for name in ('numba', 'numpy', 'sklearn', 'pyarrow')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_model_of_a_frame_of_numbers_reads_files_by_the_names_of_their_columns(tmp_path):
    frame, y = pd.DataFrame(X[:, [0, 1, 5]], columns=["a", "b", "c"]), (SIGNAL > 0.0).astype(int)
    model = OnlineClassifier(random_state=0).fit(frame, y)
    model.save(tmp_path / "model")
    model.save(tmp_path / "final", final=True)
    frame[["c", "a", "b"]].to_csv(tmp_path / "rows.csv", index=False)
    frame[["c", "a", "b"]].assign(y=y).to_csv(tmp_path / "labelled.csv", index=False)
    assert list(map(int, run("predict", tmp_path / "model", tmp_path / "rows.csv").split())) == model.predict(frame).tolist()
    measured = json.loads(run("evaluate", tmp_path / "model", tmp_path / "labelled.csv", "--target", "y", "--json"))
    assert measured["error"] == pytest.approx(1.0 - model.score(frame, y))
    first = json.loads(run("explain", tmp_path / "model", tmp_path / "rows.csv", "--rows", 1, "--json"))
    assert first["score"] == pytest.approx(model.decision_function(frame[:1])[0])
    more = run("train", "--from", tmp_path / "model", tmp_path / "labelled.csv", "--target", "y", "-q", "-m", tmp_path / "more")
    assert not more
    assert np.array_equal(load(tmp_path / "more").coef_, model.partial_fit(frame, y).coef_)
    for command in ("evaluate", "explain"):
        refused = run(command, tmp_path / "final", tmp_path / "labelled.csv", "--target", "y", code=2)
        assert "labelled.csv is 'c', that of the model 'a'" in refused


def test_rows_of_a_table_are_explained_by_a_model_without_names(tmp_path):
    model = OnlineClassifier(random_state=0).fit(X[:, :3], SIGNAL > 0.0)
    model.save(tmp_path / "model")
    pd.DataFrame(X[:, :3], columns=["a", "b", "c"]).to_csv(tmp_path / "rows.csv", index=False)
    first = json.loads(run("explain", tmp_path / "model", tmp_path / "rows.csv", "--rows", 1, "--json"))
    assert first["score"] == pytest.approx(model.decision_function(X[:1, :3])[0])


@pytest.mark.parametrize("final", [False, True])
def test_a_model_without_names_takes_the_columns_of_a_table_in_order_and_says_so(tmp_path, final):
    y = (SIGNAL > 0.0).astype(int)
    model = OnlineClassifier(random_state=0).fit(X[:, :3], y)
    model.save(tmp_path / "model", final=final)
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.assign(y=y).to_csv(tmp_path / "labelled.csv", index=False)
    said = "names its columns, and the model has no names; they are taken for the model's columns in order."
    for arguments in (
        ["predict", "rows.csv"],
        ["predict", "labelled.csv", "--target", "y"],
        ["predict", "rows.csv", "--workers", "1"],
    ):
        command, rows, *options = arguments
        found = CliRunner().invoke(app, [command, str(tmp_path / "model"), str(tmp_path / rows), *options])
        assert found.exit_code == 0, found.output
        assert said in found.stderr
        assert list(map(int, found.stdout.split())) == model.predict(X[:, :3]).tolist()
    commands = [["evaluate", "model"], ["explain", "model"], *([] if final else [["train", "-q", "--from", "model"]])]
    for *command, name in commands:
        found = CliRunner().invoke(app, [*command, *map(str, (tmp_path / name, tmp_path / "labelled.csv")), "--target", "y"])
        assert found.exit_code == 0, found.output
        assert said in found.stderr
    (tmp_path / "rows.vw").write_text("1 | a b:2\n0 | c\n")
    assert said in CliRunner().invoke(app, ["predict", str(tmp_path / "model"), str(tmp_path / "rows.vw")]).stderr
    for command in ("predict", "explain"):
        refused = run(command, tmp_path / "model", tmp_path / "labelled.csv", code=2)
        assert "'a', 'b', 'c', 'y' are read as 4 columns, and the model has 3: leave out what is no feature" in refused
    assert "'z' is not known" in run("predict", tmp_path / "model", tmp_path / "rows.csv", "--target", "z", code=2)


def test_a_final_model_of_a_frame_of_numbers_predicts_a_table_of_its_features(tmp_path):
    frame, y = pd.DataFrame(X[:, :3], columns=["a", "b", "c"]), (SIGNAL > 0.0).astype(int)
    model = OnlineClassifier(random_state=0).fit(frame, y)
    model.save(tmp_path / "final", final=True)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    assert list(map(int, run("predict", tmp_path / "final", tmp_path / "rows.csv").split())) == model.predict(frame).tolist()


@pytest.mark.parametrize("name", ["o.csv", "o.tsv", "o.parquet", "o.arrow", "o.txt"])
def test_predictions_of_no_rows_are_a_file_with_their_names(folder, tmp_path, name):
    (tmp_path / "none.svm").touch()
    run("predict", folder / "three", tmp_path / "none.svm", "--as", "scores", "--header", "-o", tmp_path / name)
    read = {".csv": pd.read_csv, ".parquet": pd.read_parquet, ".arrow": feather.read_feather}
    found = read.get((tmp_path / name).suffix, pd.read_table)(tmp_path / name)
    assert len(found) == 0
    assert " ".join(found.columns).replace("score_", "score ") == "score 0 score 1 score 2"
    for command in ("explain", "evaluate"):
        assert "none.svm: expected at least one row, got none." in run(command, folder / "three", tmp_path / "none.svm", code=1)


FAILING = [
    ("train", "@none.svm"),
    ("train", "@rows.svm", "@rows.csv"),
    ("train", "@rows.svm", "--format", "columns"),
    ("train", "@wrong.parquet", "--target", "y"),
    ("train", "@wrong.svm", "--max-errors", "0"),
    ("train", "@folder"),
    ("train", "@folder", "--format", "vw"),
    ("train", "@rows.svm", "--holdout", "@pipe"),
    ("train", "@rows.svm", "--model", "@folder"),
    ("train", "--from", "@final", "@rows.svm"),
    ("train", "--from", "@bare", "@rows.svm"),
    ("train", "--from", "@balanced", "@rows.svm"),
    ("train", "--from", "@balanced", "@rows.svm", "--loss", "hinge"),
    ("train", "--resume", "@checkpoint", "@rows.csv"),
    ("train", "--resume", "@checkpoint", "--workers", "1"),
    ("train", "@pipe", "--workers", "1", "--rounds", "2"),
    ("explain", "@bare", "@rows.svm"),
    ("predict", "@final", "@rows.svm", "-o", "@p.csv.gz"),
    ("convert", "@rows.svm", "-o", "@p.csv"),
    ("convert", "@rows.svm", "-o", "@p.svm", "--float32"),
    ("predict", "@final", "@cut.parquet"),
    ("predict", "@final", "@cut.arrow"),
    ("reproduce", "--out", "@folder", "--data-dir", "@folder"),
]


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """A folder whose name has a line end and would colour a terminal."""
    home = tmp_path_factory.mktemp("odd") / "a\n\x1b[31m b"
    (home / "folder").mkdir(parents=True)
    y = np.where(SIGNAL > 0.0, 1.0, -1.0)
    svmlight(home / "rows.svm", y)
    (home / "rows.csv").write_text("y,x\n1,2\n0,1\n")
    (home / "wrong.svm").write_text("1 1:1\n1 x\n")
    (home / "wrong.parquet").write_text("PAR1")
    os.mkfifo(home / "pipe")
    run("train", home / "rows.svm", "-m", home / "final", "--final", "--checkpoint", home / "checkpoint", "--passes", 2)
    run("train", home / "rows.svm", "-m", home / "balanced", "--class-weight", "balanced")
    Learner("comid", "logistic").learn(X, y).save(home / "bare")
    for suffix in ("parquet", "arrow"):
        run("convert", home / "rows.svm", "-o", home / f"cut.{suffix}")
        whole = (home / f"cut.{suffix}").read_bytes()
        (home / f"cut.{suffix}").write_bytes(whole[:300] + bytes(400) + whole[700:])
    run("train", home / "rows.svm", "-q", "-m", home / "m", "--checkpoint", home / "checkpoint", "--checkpoint-every", 100)
    return home


@pytest.mark.parametrize("command", FAILING, ids=" ".join)
def test_errors_name_files_on_one_line(odd, command):
    named = [word.replace("@", f"{odd}/") for word in command]
    result = CliRunner().invoke(app, named)
    assert result.exit_code in (1, 2)
    (line,) = result.stderr.splitlines()
    assert r"a\n\x1b[31m b" in line


def test_reports_of_odd_files_stand_on_their_lines(odd):
    for command in (("train", "rows.svm"), ("evaluate", "m", "rows.svm"), ("inspect", "m"), ("explain", "m", "rows.svm")):
        assert "\x1b" not in run(command[0], *(odd / word for word in command[1:]))
    frame = pd.DataFrame({"x": [0.0, 1.0] * 30, "t": ["a\nb", "c\x1b[31m"] * 30})
    frame.to_parquet(odd / "labels.parquet")
    run("train", odd / "labels.parquet", "--target", "t", "--scan", "--model", odd / "labels", "-q")
    for command in (("evaluate", "labels", "labels.parquet"), ("inspect", "labels"), ("explain", "labels", "labels.parquet")):
        shown = run(command[0], *(odd / word for word in command[1:]))
        assert "\x1b" not in shown
        assert "a\nb" not in shown


@pytest.mark.parametrize("suffix", [".PARQUET", ".Arrow", ".SVM.GZ", ".svm.Zst", ".svm.XZ"])
def test_suffixes_in_capitals_are_the_same(folder, tmp_path, suffix):
    run("convert", folder / "two.svm", "-o", tmp_path / f"rows{suffix}")
    run("convert", folder / "two.svm", "-o", tmp_path / f"rows{suffix.lower()}")
    assert (tmp_path / f"rows{suffix}").read_bytes() == (tmp_path / f"rows{suffix.lower()}").read_bytes()
    assert run("predict", folder / "two", tmp_path / f"rows{suffix}") == run("predict", folder / "two", folder / "two.svm")
    if "." not in suffix[1:]:
        run("predict", folder / "two", folder / "two.svm", "-o", tmp_path / f"p{suffix}")
        run("predict", folder / "two", folder / "two.svm", "-o", tmp_path / f"p{suffix.lower()}")
        assert (tmp_path / f"p{suffix}").read_bytes() == (tmp_path / f"p{suffix.lower()}").read_bytes()
    run("predict", folder / "two", folder / "two.svm", "-o", tmp_path / "p.CSV")
    assert (tmp_path / "p.CSV").read_text().startswith('"label"\n')


def test_a_class_with_a_line_end_is_no_line_of_text(tmp_path):
    frame = pd.DataFrame({"x": [0.0, 1.0] * 30, "t": ["a\nb", "c d"] * 30})
    frame.to_parquet(tmp_path / "rows.parquet")
    run("train", tmp_path / "rows.parquet", "--target", "t", "--scan", "--passes", 5, "--model", tmp_path / "m", "-q")
    for output in ((), ("-o", tmp_path / "p.txt")):
        shown = run("predict", tmp_path / "m", tmp_path / "rows.parquet", *output, code=2)
        assert r"the class 'a\nb' has a line end, and text has one line per row: give --output p.csv" in shown
    run("predict", tmp_path / "m", tmp_path / "rows.parquet", "-o", tmp_path / "p.csv")
    run("predict", tmp_path / "m", tmp_path / "rows.parquet", "-o", tmp_path / "p.tsv")
    assert pd.read_csv(tmp_path / "p.csv")["label"].tolist() == pd.read_table(tmp_path / "p.tsv")["label"].tolist()
    assert pd.read_csv(tmp_path / "p.csv")["label"].tolist() == load(tmp_path / "m").predict(frame).tolist()
    text = run("predict", tmp_path / "m", tmp_path / "rows.parquet", "--as", "probabilities", "--header").splitlines()
    assert (text[0], len(text)) == ("probability_a_b probability_c_d", 61)


def test_classes_that_no_output_can_name_are_refused(tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:1\n")
    given = tmp_path / "m", tmp_path / "rows.svm"
    OnlineClassifier().fit(np.eye(4), ["a b", "a_b"] * 2).save(tmp_path / "m")
    shown = run("predict", *given, "--as", "probabilities", "--header", code=2)
    assert "the names 'probability a b' and 'probability a_b' are one in text" in shown
    run("predict", *given, "--as", "probabilities", "--header", "-o", tmp_path / "p.csv")
    OnlineClassifier().fit(np.eye(4), np.array(["a\udc80", "b"] * 2, object)).save(tmp_path / "m")
    for options in ((), ("-o", tmp_path / "p.csv"), ("--as", "probabilities", "-o", tmp_path / "p.parquet")):
        assert r"a\udc80' holds half a character (a lone surrogate)" in run("predict", *given, *options, code=2)
    assert run("predict", *given, "--as", "probabilities").count(" ") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text elsewhere")
def test_names_that_are_not_utf_8(folder, tmp_path):
    home = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    os.mkdir(home)
    (tmp_path / "two.svm").write_bytes((folder / "two.svm").read_bytes())
    run("train", tmp_path / "two.svm", "-q", "-m", f"{home}/m", "--report", f"{home}/run.html")
    run("report", f"{home}/m", tmp_path / "two.svm", "-o", f"{home}/r.html")
    assert b"\\udcff" in Path(home, "r.html").read_bytes()
    assert r"\udcff: expected the name of a folder in UTF-8" in run("train", home, "--target", "y", code=2)
    frame = pd.DataFrame({"a": np.arange(40.0), "y": np.arange(40) % 2})
    for suffix, write in ((".parquet", frame.to_parquet), (".arrow", frame.to_feather)):
        write(tmp_path / f"rows{suffix}")
        os.rename(tmp_path / f"rows{suffix}", f"{home}/rows{suffix}")
        run("train", f"{home}/rows{suffix}", "--target", "y", "-q", "-m", f"{home}/m")
        run("convert", f"{home}/rows{suffix}", "--target", "y", "-q", "-o", f"{home}/c{suffix}")
        assert streams.open(f"{home}/rows{suffix}", target="y").rows == 40
        run("predict", f"{home}/m", f"{home}/c{suffix}", "-o", tmp_path / "p.txt")
        assert len((tmp_path / "p.txt").read_text().splitlines()) == 40


@pytest.mark.parametrize("command", ["predict", "evaluate", "explain", "train --from"])
def test_options_that_contradict_the_model_are_refused_by_name(folder, command):
    given = [*command.split(), folder / "shop", folder / "shop.csv"]
    wanted = "missing: expected 'error' as the model's encoding has it, got 'omit'; leave missing out (in the"
    assert wanted in run(*given, "--missing", "omit", code=2)
    run(*given, "--categories", "one-hot")


def test_rows_beside_the_training_rows_are_read_with_the_same_options(tmp_path, folder):
    options = [
        "--target",
        "bought",
        "--exclude",
        "a,b",
        "--missing",
        "omit",
        "--hash-bits",
        "9",
        "--bins",
        "c:4",
        "--text",
        "colour",
    ]
    made = ["--interactions", "c:colour", "--numbers", "d", "--scan", "-q", "-m", tmp_path / "m"]
    run("train", folder / "shop.csv", *options, *made, "--holdout", folder / "shop.parquet")


def test_rows_without_weight_have_no_loss(tmp_path):
    OnlineClassifier().partial_fit(np.eye(4), [0, 1, 0, 1], classes=[0, 1], sample_weight=np.zeros(4)).save(tmp_path / "m")
    assert re.search(r"^loss +-$", run("inspect", tmp_path / "m"), re.MULTILINE)
    assert json.loads(run("inspect", tmp_path / "m", "--json"))["loss"] is None
