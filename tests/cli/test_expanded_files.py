"""``--ngrams`` and ``--bins`` in every command: what is made of words and numbers is trained, kept, scored and shown."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
from command import run


def test_every_command_reads_words_and_bins(tmp_path):
    rng = np.random.default_rng(0)
    words = rng.choice(["good", "bad", "not", "so"], (2000, 3))
    age = rng.uniform(0, 90, 2000)
    y = np.where((words == "good").any(axis=1) ^ (age > 40), 1, -1)
    log, model = tmp_path / "log.csv", tmp_path / "m.onlinear"
    pd.DataFrame({"text": [" ".join(row) for row in words], "age": age, "y": y}).to_csv(log, index=False)
    options = ["--target", "y", "--ngrams", "text:2", "--bins", "age:20:40:60", "--hash-bits", "14"]
    run("train", log, *options, "--passes", "3", "--model", model)
    assert "1 of words, 1 in bins, hashed to 2^14 columns" in run("inspect", model)
    assert len(run("predict", model, log).split()) == 2000
    assert json.loads(run("evaluate", model, log, "--json"))["rows"] == 2000
    (explained, *_) = run("explain", model, log, "--json").splitlines()
    terms = {term["name"] for term in json.loads(explained)["terms"]}
    assert {f"text={words[0][0]}", f"text={words[0][0]} {words[0][1]}"} <= terms
    assert any(name.startswith("age=[") or name == "age=(-inf, 20)" for name in terms)
    run("convert", log, *options, "--output", tmp_path / "rows.parquet")
    run("train", tmp_path / "rows.parquet", "--passes", "3", "--model", tmp_path / "b")
    assert run("predict", model, log) == run("predict", tmp_path / "b", log)
