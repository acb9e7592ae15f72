"""What ``train`` says that a table needs: the command that it names trains."""

from __future__ import annotations

import shlex

import numpy as np
import pandas as pd
import pytest
from test_command import run

RNG = np.random.default_rng(0)
N = 60
TABLE = pd.DataFrame(
    {
        "id": np.arange(N),
        "day": [f"2024-01-{k % 28 + 1:02d}" for k in range(N)],
        "plan": RNG.choice(["basic", "pro"], N),
        "age": [None if k % 7 == 3 else float(k % 50) for k in range(N)],
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


def test_other_errors_stand_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("customers.csv", index=False)
    (tmp_path / "rows.svm").write_text("1 1:x\n")
    for arguments, code in ((("customers.csv", "--target", "churnd"), 2), (("rows.svm",), 1), (("none.csv",), 1)):
        assert "Try:" not in run("train", *arguments, code=code)
