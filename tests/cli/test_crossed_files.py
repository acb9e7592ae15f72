"""``--interactions`` in every command: what is crossed is trained, kept, scored and shown."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from command import run

DRAW = np.random.default_rng(0)
SITE, AD = DRAW.integers(0, 4, (2, 2000))
CLICK = DRAW.random(2000) < np.where((SITE + AD) % 2 == 0, 0.9, 0.1)


@pytest.fixture(params=["csv", "vw"])
def log(request, tmp_path):
    """Clicks that depend on whether site and ad fit each other, and on neither alone."""
    path = tmp_path / f"clicks.{request.param}"
    if request.param == "csv":
        pd.DataFrame({"site": SITE, "ad": AD, "click": 2 * CLICK - 1}).to_csv(path, index=False)
    else:
        path.write_text("".join(f"{2 * y - 1} |site {s} |ad {a}\n" for s, a, y in zip(SITE, AD, CLICK, strict=True)))
    return path


def test_every_command_crosses(log, tmp_path):
    model, columns = tmp_path / "m.onlinear", [] if log.suffix == ".vw" else ["--target", "click", "--text", "site,ad"]
    run("train", log, *columns, "--interactions", "site:ad", "--model", model)
    assert "1, hashed to the same columns: site:ad" in run("inspect", model)
    assert json.loads(run("inspect", model, "--json"))["crosses"] == [["site", "ad"]]
    assert json.loads(run("evaluate", model, log, "--json"))["error"] < 0.15
    assert np.mean(np.array(run("predict", model, log).split(), float) == 2 * CLICK - 1) > 0.85
    (explained,) = run("explain", model, log, "--json").splitlines()
    terms = {term["name"] for term in json.loads(explained)["terms"]}
    assert len(terms) == 3
    assert log.suffix == ".vw" or f"site={SITE[0]} x ad={AD[0]}" in terms


def test_rows_that_are_converted_keep_their_crosses(log, tmp_path):
    columns = [] if log.suffix == ".vw" else ["--target", "click", "--text", "site,ad"]
    run("convert", log, *columns, "--interactions", "site:ad", "--output", tmp_path / "rows.parquet")
    options = [*columns, "--interactions", "site:ad"]
    for rows, model, chosen in ((log, "a", options), (tmp_path / "rows.parquet", "b", [])):
        run("train", rows, *chosen, "--model", tmp_path / model)
    assert run("predict", tmp_path / "a", log) == run("predict", tmp_path / "b", log)
