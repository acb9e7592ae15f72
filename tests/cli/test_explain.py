"""``onlinear explain``: the terms of a score, by name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from command import run
from pyarrow import feather
from typer.testing import CliRunner

from onlinear import Learner, OnlineClassifier, OnlineRegressor, load, streams
from onlinear.cli import app

ROOT = Path(__file__).parent.parent.parent
DRAW = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {"price": DRAW.normal(size=200).round(3), "site": DRAW.choice(["a", "b", "c"], 200), "code": DRAW.integers(0, 5, 200)}
)
TABLE["click"] = (TABLE.price + (TABLE.site == "a") > 0.3).astype(int)
TABLE["spent"] = 2.0 * TABLE.price + 3.0
TABLE["colour"] = np.where(TABLE.price > 0.7, "r", np.where(TABLE.price > -0.3, "g", "b"))
FEATURES = ["price", "site", "code"]


def explained(model, source, tmp_path, *options):
    model.save(tmp_path / "model")
    return [json.loads(line) for line in run("explain", tmp_path / "model", source, "--json", *options).splitlines()]


@pytest.mark.parametrize("categories", ["hash", "one-hot"])
@pytest.mark.parametrize(
    ("kind", "target"), [(OnlineClassifier, "click"), (OnlineRegressor, "spent"), (OnlineClassifier, "colour")]
)
def test_the_terms_and_the_intercept_sum_to_the_score(kind, target, categories, tmp_path):
    stream = streams.open(TABLE, target=target, features=FEATURES, text=["code"], categories=categories)
    model = kind().fit(stream, **({"classes": "scan"} if kind is OnlineClassifier else {}))
    TABLE[FEATURES].to_csv(tmp_path / "rows.csv", index=False)
    found = explained(model, tmp_path / "rows.csv", tmp_path, "--rows", 20)
    assert len(found) == 20
    predicted = model.predict(TABLE[:20]).tolist()
    linear = streams.open(TABLE[:20], encoding=model.encoding_, unlabelled=True)
    scores = np.concatenate([model.learner_.linear_scores(block.within(model.learner_.size)) for block in linear])
    for k, row in enumerate(found):
        assert row["row"].endswith(f"rows.csv:{k + 2}")
        assert row["predicted"] == pytest.approx(predicted[k]) if kind is OnlineRegressor else row["predicted"] == predicted[k]
        wanted = scores[k] if np.ndim(scores[k]) == 0 else max(scores[k])
        total = row["intercept"] + sum(term["contribution"] for term in row["terms"])
        assert row["score"] == pytest.approx(wanted) == pytest.approx(total)
        sizes = [abs(term["contribution"]) for term in row["terms"]]
        assert sizes == sorted(sizes, reverse=True)
        names = {term["name"] for term in row["terms"]}
        assert names <= {"price", f"site={TABLE.site[k]}", f"code={TABLE.code[k]}"}


@pytest.mark.parametrize("options", [["--text", "when"], ["--dates", "days"], ["--dates", "days", "--interactions", "when:*"]])
@pytest.mark.parametrize("held", ["timestamp[s]", "timestamp[ns]", "time32[s]", "time64[ns]", "date32", "far", "uint64"])
def test_scores_of_values_that_python_has_otherwise_or_not_at_all_are_those_predicted(held, options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if held == "uint64" and "--dates" in options:
        pytest.skip("numbers beyond 2^53 are categories alone")
    ticks = pa.array([-(2**62) + k for k in range(8)] if held == "far" else range(8))
    types = {"far": pa.timestamp("s"), "uint64": pa.uint64(), "time32[s]": pa.time32("s"), "time64[ns]": pa.time64("ns")}
    when = ticks.cast(pa.int32()) if held in ("time32[s]", "date32") else ticks
    when = pa.array([2**63 + k for k in range(8)], pa.uint64()) if held == "uint64" else when.cast(types.get(held, held))
    feather.write_feather(pa.table({"when": when, "site": list("abababab"), "click": [0, 1, 1, 0, 1, 0, 0, 1]}), "rows.arrow")
    run("train", "rows.arrow", "--target", "click", "--average", "none", "-m", "model", "-q", *options)
    scores = [float(line) for line in run("predict", "model", "rows.arrow", "--as", "scores").split()]
    found = [json.loads(line)["score"] for line in run("explain", "model", "rows.arrow", "--json", "--rows", 8).splitlines()]
    assert found == pytest.approx(scores, rel=1e-12)


def test_wrong_rows_are_named_by_their_file_and_left_out_where_asked(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("click,price,site\n1,2,a\n0,3,b\n")
    run("train", "rows.csv", "--target", "click", "-m", "model", "-q")
    Path("new.csv").write_text("price,site\n2,a\n,b\n5,b\n")
    assert "new.csv:3: expected a number in column 'price', got a missing value" in run(
        "explain", "model", "new.csv", "--rows", 9, code=1
    )
    shown = CliRunner().invoke(app, ["explain", "model", "new.csv", "--rows", "9", "--json", "--max-errors", "1"])
    assert [json.loads(line)["row"] for line in shown.stdout.splitlines()] == ["new.csv:2", "new.csv:4"]
    assert "1 wrong line skipped, the first:\n  new.csv:3: " in shown.stderr


def test_a_feature_that_is_named_as_target_or_weight_is_explained_too(tmp_path):
    TABLE[FEATURES].to_csv(tmp_path / "rows.csv", index=False)
    model = OnlineClassifier().fit(streams.open(TABLE, target="click", features=FEATURES))
    plain = explained(model, tmp_path / "rows.csv", tmp_path)
    for option in ("--target", "--weight"):
        assert explained(model, tmp_path / "rows.csv", tmp_path, option, "code") == plain


def test_lines_for_people(tmp_path):
    model = OnlineClassifier().fit(streams.open(TABLE, target="click", features=FEATURES))
    model.save(tmp_path / "model")
    TABLE.to_parquet(tmp_path / "rows.parquet")
    shown = run("explain", tmp_path / "model", tmp_path / "rows.parquet", "--top", 1)
    assert "rows.parquet:1: " in shown
    assert "score of 1: " in shown
    assert f"site={TABLE.site[0]}" in shown
    assert "  1 other\n" in shown
    assert "  feature\n" in shown
    assert max(map(len, shown.splitlines()[1:])) <= 80
    assert shown.rstrip().endswith("intercept")


def test_features_of_one_name_are_told_apart_by_their_columns(tmp_path):
    table = TABLE[["site", "price", "click"]].rename(columns={"price": f"site={TABLE.site[0]}"})
    OnlineClassifier().fit(streams.open(table, target="click")).save(tmp_path / "model")
    table.to_csv(tmp_path / "rows.csv", index=False)
    shown = run("explain", tmp_path / "model", tmp_path / "rows.csv")
    columns = re.findall(rf"  site={TABLE.site[0]} \(column (\d+)\)\n", shown)
    assert len(set(columns)) == 2
    assert "0" in columns
    assert "  feature (columns count from 0)\n" in shown


def test_rows_of_numbers_have_columns_for_names(tmp_path):
    (tmp_path / "rows.svm").write_text("1 1:2 3:1\n0 2:1\n" * 20)
    run("train", tmp_path / "rows.svm", "-m", tmp_path / "model", "-q")
    found = explained(load(tmp_path / "model"), tmp_path / "rows.svm", tmp_path)
    assert {term["name"] for term in found[0]["terms"]} == {"column 0", "column 2"}
    assert "  feature (columns count from 0)\n" in run("explain", tmp_path / "model", tmp_path / "rows.svm")
    Learner("sgd", "logistic").learn([[1.0]], [1.0]).save(tmp_path / "bare")
    assert "holds a bare learner" in run("explain", tmp_path / "bare", tmp_path / "rows.svm", code=2)


def test_numbered_rows_have_the_names_that_the_model_knows(tmp_path):
    TABLE.to_parquet(tmp_path / "rows.parquet")
    run(
        "convert",
        tmp_path / "rows.parquet",
        "--target",
        "click",
        "--exclude",
        "spent,colour",
        "-o",
        tmp_path / "numbered.arrow",
    )
    model = OnlineClassifier().fit(streams.open(str(tmp_path / "numbered.arrow")))
    by_name, by_number = (explained(model, tmp_path / name, tmp_path) for name in ("rows.parquet", "numbered.arrow"))
    assert by_number[0]["terms"] == by_name[0]["terms"]
    assert {"price", f"site={TABLE.site[0]}"} <= {term["name"] for term in by_name[0]["terms"]}


def test_features_of_vowpal_wabbit_text_have_their_names(tmp_path):
    (tmp_path / "rows.vw").write_text("1 |animal cat:2 |color white\n-1 |animal dog |color brown\n" * 20)
    model = OnlineClassifier().fit(streams.open(str(tmp_path / "rows.vw"), interactions=["animal:color"]))
    first, second = explained(model, tmp_path / "rows.vw", tmp_path, "--rows", 2)
    assert {term["name"] for term in first["terms"]} == {"animal^cat", "color^white", "animal^cat x color^white"}
    assert {term["name"] for term in second["terms"]} == {"animal^dog", "color^brown", "animal^dog x color^brown"}
    for row in first, second:
        assert row["score"] == pytest.approx(row["intercept"] + sum(term["contribution"] for term in row["terms"]))


def test_categories_that_share_a_column_have_all_their_names(tmp_path):
    stream = streams.open(TABLE, target="click", features=["site", "code"], text=["code"], hash_bits=1)
    model = OnlineClassifier().fit(stream)
    TABLE.to_csv(tmp_path / "rows.csv", index=False)
    names = [term["name"] for row in explained(model, tmp_path / "rows.csv", tmp_path, "--rows", 50) for term in row["terms"]]
    assert any(" + " in name for name in names)


def test_the_page_shows_what_the_command_prints(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/tables.md").read_text()
    names = {}
    for block in re.findall(r"^```python\n(.*?)^```", page.partition("## Why a row")[0], re.DOTALL | re.MULTILINE)[:3]:
        exec(block, names)
    shown = run("explain", "tumours.onlinear", "new.csv").rstrip()
    wanted = page.partition("    new.csv:2: ")[2].partition("\n## ")[0].rstrip()
    assert shown == "new.csv:2: " + "\n".join(line.removeprefix("    ") for line in wanted.splitlines())
