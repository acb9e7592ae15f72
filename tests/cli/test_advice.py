"""What ``train`` says that a table needs: the command that it names trains."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pandas as pd
import pytest
from command import run

RNG = np.random.default_rng(0)
N = 60
TABLE = pd.DataFrame(
    {
        "id": np.arange(N),
        "day": [f"2024-01-{k % 28 + 1:02d}" for k in range(N)],
        "plan": RNG.choice(["basic", "pro"], N),
        "age": [None if k % 7 == 3 else float(1 + k % 50) for k in range(N)],
        "empty": [None] * N,
        "churned": RNG.choice(["yes", "no"], N),
    }
)


def advised(*arguments, code=2):
    """The command that stands below an error."""
    first, *rest = run("train", *arguments, code=code).splitlines()
    assert first.startswith("onlinear: ")
    assert rest[-2] == "Try:"
    command = shlex.split(rest[-1])
    assert command[:2] == ["onlinear", "train"]
    return first, rest, command[2:]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ((), 2),
        (("--target", "churned"), 1),
        (("--target", "churned", "--dates", "days", "--exclude", "empty", "--missing", "omit", "--no-intercept"), 2),
        (("--target", "churned", "--dates", "days", "--exclude", "empty", "--scan"), 1),
    ],
)
def test_the_first_error_names_a_command_that_trains(given, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("customers.csv", index=False)
    _, _, command = advised("customers.csv", *given, code=code)
    assert "--no-intercept" in command or "--no-intercept" not in given
    run("train", *command)
    inspected = run("inspect", "customers.onlinear")
    assert "classes        no, yes" in inspected
    assert f"rows           {N}" in inspected


def test_each_need_has_its_reason(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.to_parquet("customers.parquet")
    TABLE.drop(columns=["day", "empty"]).assign(many=np.arange(N) // 2).to_csv("numbers.csv", index=False)
    _, rest, _ = advised("customers.parquet", "--text", "day", "--model", "m")
    text = "\n".join(rest)
    assert "  --target churned     the column to predict: a guess" in text
    assert "  --missing indicator  age: missing values" in text
    assert "empty: empty, or no plain values; id: another value in every row" in text
    assert "--dates" not in text
    assert "--model m" in text
    _, rest, command = advised("numbers.csv", "--target", "many", "--missing", "omit", "--task", "auto")
    assert "many: many whole numbers, amounts perhaps" in "\n".join(rest)
    run("train", *command)


def test_row_numbers_without_a_name_are_shown_as_they_are_typed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE[["churned", "age"]].to_csv("-customers.csv")
    _, rest, command = advised("--target", "churned", "--", "-customers.csv")
    assert any(line.startswith("  --exclude ''") and line.endswith("  '': another value in every row") for line in rest)
    run("train", *command)


def test_what_stops_a_run_after_some_rows_is_advised_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE[["age"]].assign(bought=np.arange(N) % 2).to_csv("customers.csv", index=False)
    told = run("train", "customers.csv", "--target", "bought", "--quiet", "--model", "m", code=1)
    first, *_, last = told.splitlines()
    assert "3 rows were learned before it. A model of them is in m.partial" in first
    assert "  --missing indicator  age: missing values" in told
    run("train", *shlex.split(last)[2:])


def test_a_loss_of_counts_says_what_the_target_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE[["day", "plan"]].assign(goals=np.arange(N) % 5).to_csv("games.csv", index=False)
    _, _, command = advised("games.csv", "--target", "goals", "--loss", "poisson", code=1)
    assert "--scan" not in command
    run("train", *command)


@pytest.mark.parametrize("delimiter", [";", "\t"])
def test_a_delimiter_is_advised_with_what_its_columns_need(delimiter, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("customers.csv", index=False, sep=delimiter)
    _, rest, command = advised("customers.csv")
    shown = r"\t" if delimiter == "\t" else delimiter
    assert rest[1].startswith(f"  --delimiter {shown} ")
    run("train", *command)
    assert "classes        no, yes" in run("inspect", "customers.onlinear")


def test_a_decimal_comma_is_advised(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"x": np.arange(40) / 8, "y": np.arange(40) % 2}).to_csv("commas.csv", index=False, sep=";", decimal=",")
    _, rest, command = advised("commas.csv")
    assert rest[1:3] == [
        "  --delimiter ;  the names 'x;y' are no single one",
        "  --decimal ,    x: decimal commas, such as 0,0",
    ]
    assert "read as categories" not in run("train", *command)
    assert "hash" not in run("inspect", "commas.onlinear")
    assert "decimal must be '.' or ','" in run("train", "commas.csv", "--target", "y", "--decimal", "x", code=2)


def test_train_names_marks_among_numbers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    values = [*range(20), "?"]
    pd.DataFrame({"x": values, "y": np.arange(21) % 2}).to_csv("marked.csv", index=False)
    said = " ".join(run("train", "marked.csv", "--target", "y").split())
    assert "The column 'x' is read as categories: it holds numbers and '?'." in said
    assert "If that is a missing value, add --nulls ',?'" in said
    end = json.loads(run("train", "marked.csv", "--target", "y", "--json").splitlines()[-1])
    assert len(end["doubts"]) == 1
    assert "read as categories" not in run("train", "marked.csv", "--target", "y", "--nulls", ",?", "--missing", "omit")


def test_amounts_as_labels_are_not_advised_as_classes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"x": range(30), "y": [f"${k},000" for k in range(30)]}).to_csv("money.csv", index=False)
    (said,) = run("train", "money.csv", "--target", "y", code=2).splitlines()
    assert "If they are amounts, write them as plain numbers" in said


def test_other_errors_stand_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("customers.csv", index=False)
    (tmp_path / "rows.svm").write_text("1 1:x\n")
    (tmp_path / "empty.csv").write_text("a,b\n")
    (tmp_path / "twice.csv").write_text("a,a\n1,2\n")
    pd.DataFrame().to_parquet("bare.parquet")
    for name in ("empty.csv", "bare.parquet", "twice.csv"):
        assert "Try:" not in run("train", name, code=1 if name == "twice.csv" else 2)
    (tmp_path / "three.svm").write_text("1 1:1\n2 1:2\n3 1:1\n")
    run("convert", "three.svm", "-o", "three.parquet")
    others = (("rows.svm",), 1), (("none.csv",), 1), (("three.parquet",), 2)
    for arguments, code in ((("customers.csv", "--target", "churnd"), 2), *others):
        assert "Try:" not in run("train", *arguments, code=code)


def test_a_model_of_named_columns_needs_no_advice_on_columns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE[["age", "churned"]].dropna().to_csv("old.csv", index=False)
    run("train", "old.csv", "--target", "churned", "--scan", "--quiet", "--model", "old.onlinear")
    assert len(run("train", "--from", "old.onlinear", "old.csv", "--penalty", "l1=1", code=2).splitlines()) == 1
    TABLE[["age", "churned"]].to_csv("new.csv", index=False)
    assert "Try:" not in run("train", "--from", "old.onlinear", "new.csv", "--quiet", code=1)
    TABLE[["age", "churned"]].dropna().to_csv("semi.csv", index=False, sep=";")
    _, _, command = advised("semi.csv", "--from", "old.onlinear")
    assert "--target" not in command
    run("train", *command)
