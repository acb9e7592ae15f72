"""``train --from``: a run that continues from a model."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command import run

from onlinear import Learner, OnlineClassifier, OnlineRegressor, load, streams
from onlinear.losses import Logistic


@pytest.fixture
def files(tmp_path):
    draw = np.random.default_rng(0)
    for name in ("old", "new"):
        price, site = draw.normal(size=300), draw.choice(["a", "b"], 300)
        lines = [f"{int(p + (s == 'a') > 0)},{p:.3f},{s}" for p, s in zip(price, site, strict=True)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["click,price,site", *lines]) + "\n")
    run("train", tmp_path / "old.csv", "--target", "click", "--model", tmp_path / "old.onlinear", "--quiet")
    return tmp_path


@pytest.mark.parametrize("passes", [1, 3])
def test_it_is_partial_fit_byte_for_byte(files, passes):
    run("train", "--from", files / "old.onlinear", files / "new.csv", "--passes", passes, "-m", files / "m", "--quiet")
    model = load(files / "old.onlinear")
    for _ in range(passes):
        model.partial_fit(streams.open(files / "new.csv", encoding=model.encoding_, unlabelled=False))
        if passes > 1:
            model.learner_.end_first_pass()
    model.save(files / "wanted")
    assert (files / "m").read_bytes() == (files / "wanted").read_bytes()
    assert load(files / "m").t_ == 300 * (1 + passes)


def test_more_passes_of_a_finished_run_are_the_passes_of_one_run(files):
    run("train", "--from", files / "old.onlinear", files / "old.csv", "-m", files / "old.onlinear", "--quiet")
    run("train", files / "old.csv", "--target", "click", "--passes", 2, "-m", files / "two", "--quiet")
    once, twice = load(files / "old.onlinear"), load(files / "two")
    assert np.array_equal(once.coef_, twice.coef_)
    assert np.array_equal(once.intercept_, twice.intercept_)


@pytest.mark.parametrize("average", ["none", "uniform", "adaptive"])
def test_what_is_shown_is_of_the_rows_of_this_run(files, average):
    run("train", files / "old.csv", "--target", "click", "--average", average, "-m", files / "m", "--quiet")
    shown = run("train", "--from", files / "m", files / "new.csv", "--json").splitlines()
    model = load(files / "m")
    stream = streams.open(files / "new.csv", encoding=model.encoding_, unlabelled=False)
    (block,) = stream
    first = model.learner_.predict(block.cut(0, 1).source)[0]
    report = next(line for line in map(json.loads, shown) if line.get("rows") == 1)
    # The row moves the scales of its columns before it is scored.
    assert report["loss"] == pytest.approx(np.log1p(np.exp(-first if block.y[0] else first)), rel=0.05)


def test_weights_of_classes_continue(files):
    old, new = files / "old.csv", files / "new.csv"
    run("train", old, "--target", "click", "--class-weight", "0=1,1=3", "-m", files / "m", "-q")
    run("train", "--from", files / "m", new, "-m", files / "m2", "-q")
    model = load(files / "m")
    model.partial_fit(streams.open(new, encoding=model.encoding_, unlabelled=False)).save(files / "wanted")
    assert (files / "m2").read_bytes() == (files / "wanted").read_bytes()
    run("train", old, "--target", "click", "--class-weight", "balanced", "-m", files / "m", "-q")
    assert "say --class-weight balanced" in run("train", "--from", files / "m", new, code=2)
    run("train", "--from", files / "m", new, "--class-weight", "balanced", "-q")


def test_numbers_and_svmlight(tmp_path):
    (tmp_path / "rows.svm").write_text("".join(f"{i % 5}.5 0:{i % 5} 2:1\n" for i in range(50)))
    run("train", tmp_path / "rows.svm", "--base", 0, "-m", tmp_path / "m", "-q")
    run("train", "--from", tmp_path / "m", tmp_path / "rows.svm", "-m", tmp_path / "m2", "-q")
    model = load(tmp_path / "m")
    assert isinstance(model, OnlineRegressor)
    model.partial_fit(streams.open(tmp_path / "rows.svm", base=0)).save(tmp_path / "wanted")
    assert (tmp_path / "m2").read_bytes() == (tmp_path / "wanted").read_bytes()


def test_parts_that_are_objects_are_shown_as_text(tmp_path):
    OnlineClassifier(Logistic()).fit([[0.0], [1.0]], [0, 1]).save(tmp_path / "m")
    (tmp_path / "rows.svm").write_text("0\n1 1:1\n")
    shown = run("train", "--from", tmp_path / "m", tmp_path / "rows.svm", "--json").splitlines()
    assert json.loads(shown[0])["loss"] == "Logistic(factor=1.0)", "it was [1.0]"


def test_what_cannot_continue_says_why(files):
    new = files / "new.csv"
    load(files / "old.onlinear").save(files / "final", final=True)
    assert "is a final model" in run("train", "--from", files / "final", new, code=2)
    OnlineClassifier(penalty="l1=1e-2", tol=1e-6).fit([[0.0], [1.0]], [0, 1]).save(files / "optimum")
    assert "needs all rows at once: train anew" in run("train", "--from", files / "optimum", new, code=2)
    Learner("sgd", "logistic").learn([[1.0]], [1.0]).save(files / "bare")
    assert "holds a bare learner" in run("train", "--from", files / "bare", new, code=2)
    assert "--loss is a setting of the model" in run("train", "--from", files / "old.onlinear", new, "--loss", "hinge", code=2)
    assert "--intercept is a setting" in run("train", "--from", files / "old.onlinear", new, "--intercept", code=2)
    assert "--from excludes --checkpoint" in run(
        "train", "--from", files / "old.onlinear", new, "--checkpoint", files / "c", code=2
    )
    assert "no model file" in run("train", "--from", files / "nothing", new, code=1).lower()
    (files / "other.csv").write_text("click,price\n1,2\n")
    assert "expected a column 'site'" in run("train", "--from", files / "old.onlinear", files / "other.csv", code=1)
    assert isinstance(load(files / "old.onlinear"), OnlineClassifier)


@pytest.fixture
def categories(tmp_path):
    """A model of eight categories in one-hot columns, rows of them, and rows of the first three: as a table, and converted."""
    draw = np.random.default_rng(0)
    for name, known in (("all", "abcdefgh"), ("three", "abc")):
        texts, price = np.resize(list(known), 200), draw.normal(size=200)
        clicks = np.isin(texts, list("aceg")) ^ (draw.random(200) < 0.2)
        lines = [f"{int(y)},{p:.3f},{text}" for y, p, text in zip(clicks, price, texts, strict=True)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["click,price,site", *lines]) + "\n")
        columns = ("--target", "click", "--categories", "one-hot")
        run("train", tmp_path / f"{name}.csv", *columns, "--model", tmp_path / f"{name}.onlinear", "--quiet")
        run("convert", tmp_path / f"{name}.csv", *columns, "-o", tmp_path / f"{name}.parquet")
    return tmp_path


def test_converted_rows_of_fewer_categories_leave_the_model_its_own(categories):
    before = load(categories / "all.onlinear")
    run("train", "--from", categories / "all.onlinear", categories / "three.parquet", "-m", categories / "m", "-q")
    model = load(categories / "m")
    assert model.encoding_ == before.encoding_
    table = streams.open(categories / "three.csv", encoding=before.encoding_, unlabelled=False)
    assert np.array_equal(model.coef_, before.partial_fit(table).coef_)
    assert np.array_equal(
        model.predict(streams.open(categories / "all.csv", encoding=model.encoding_)),
        before.predict(streams.open(categories / "all.parquet")),
    )
    run("train", "--from", categories / "three.onlinear", categories / "all.parquet", "-m", categories / "m", "-q")
    assert load(categories / "m").encoding_["values"] == model.encoding_["values"]


@pytest.mark.parametrize("name", ["rows.svm", "rows.parquet"])
def test_numbered_rows_leave_a_model_the_names_of_its_columns(categories, name):
    (categories / "rows.svm").write_text("1 0:0.5 1:1\n0 2:1\n")
    run("convert", categories / "rows.svm", "--base", 0, "-o", categories / "rows.parquet")
    before = load(categories / "all.onlinear")
    base = ("--base", 0) if name == "rows.svm" else ()
    run("train", "--from", categories / "all.onlinear", categories / name, *base, "-m", categories / "m", "-q")
    assert load(categories / "m").encoding_ == before.encoding_
    (categories / "one.svm").write_text("1 1:0.5 2:1\n0 3:1\n")
    run("train", categories / "one.svm", "-m", categories / "one", "-q")
    run("train", "--from", categories / "one", categories / "rows.parquet", "-m", categories / "one", "-q")
    assert load(categories / "one").encoding_ == {"format": "svmlight", "base": 1, "version": 1}
