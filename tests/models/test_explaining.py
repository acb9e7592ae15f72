"""``explain``: the terms of a row's score by name, as the command shows them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from typer.testing import CliRunner

from onlinear import OnlineClassifier, OnlineRegressor, load, streams
from onlinear.cli import app

DRAW = np.random.default_rng(0)
FRAME = pd.DataFrame({
    "price": np.where(DRAW.random(80) < 0.2, np.nan, DRAW.normal(size=80).round(3)),
    "site": np.where(DRAW.random(80) < 0.2, None, DRAW.choice(["a", "b"], 80)),
    "code": DRAW.integers(0, 3, 80),
    "text": DRAW.choice(["good old", "bad", ""], 80),
    "day": pd.date_range("2020-01-01", periods=80),
})  # fmt: skip
Y = np.where(FRAME.price > 0.7, "r", np.where(FRAME.code == 1, "g", "b"))
CROSSED = {"interactions": [("site", "price"), ("code", "day")], "ngrams": {"text": 2}, "hash_bits": 5}


@pytest.mark.parametrize("options", [CROSSED, {"categories": "one-hot"}], ids=["hashed", "one-hot"])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_row_is_explained_as_the_command_explains_it(options, classes, tmp_path):
    labelled = FRAME.assign(y=Y if classes == 3 else Y == "r")
    stream = streams.open(labelled, target="y", text=["code"], missing="indicator", dates="days", **options)
    model = OnlineClassifier().fit(stream, classes="scan")
    model.save(tmp_path / "model")
    FRAME.to_parquet(tmp_path / "rows.parquet")
    files = [str(tmp_path / name) for name in ("model", "rows.parquet")]
    shown = CliRunner().invoke(app, ["explain", *files, "--json", "--rows", "80"])
    for line, row in zip(shown.stdout.splitlines(), FRAME.to_dict("records"), strict=True):
        found, wanted = model.explain(row), json.loads(line)
        assert [term._asdict() for term in found.terms] == wanted.pop("terms")
        del wanted["row"]
        assert {name: value for name, value in found._asdict().items() if name != "terms"} == wanted
        assert found.predicted == model.predict_one(row)


def test_rows_of_every_form_are_explained(tmp_path):
    numbers = FRAME[["code"]].assign(size=np.arange(80.0))
    of_frame = OnlineRegressor().fit(numbers, 3.0 * numbers["code"] + numbers["size"])
    found = of_frame.explain({"size": 2.0, "code": 1, "other": 5.0})
    assert sorted(term.name for term in found.terms) == ["code", "size"]
    assert found.predicted == of_frame.predict_one({"size": 2.0, "code": 1})
    assert found.score == pytest.approx(found.intercept + sum(term.contribution for term in found.terms))
    assert of_frame.explain(([1, 0], [2.0, 1.0])) == found
    of_frame.save(tmp_path / "final", final=True)
    assert load(tmp_path / "final").explain(([0, 1], [1.0, 2.0])).terms == found.terms
    of_array = OnlineRegressor().fit(numbers.to_numpy(), numbers["size"])
    assert [term.name for term in of_array.explain(([1, 1], [2.0, 1.0])).terms] == ["column 1"]
    of_dicts = OnlineClassifier().learn_one({"a": 1.0, "b": "x"}, True).learn_one({"a": -1.0, "b": "y"}, False)
    assert {term.name: term.value for term in of_dicts.explain({"a": 2, "b": "x", "c": "new"}).terms} == {"a": 2.0, "b=x": 1.0}
    assert of_dicts.n_features_in_ == 3


def test_what_predict_one_refuses_is_refused():
    model = OnlineClassifier().fit([{"a": 1.0, "b": "x"}, {"a": 0.0, "b": "y"}] * 10, [0, 1] * 10)
    for row in ({"a": 1.0}, {"a": "x", "b": "x"}, ([0], [1.0, 2.0]), [1.0, 2.0], pd.Series({"a": 1.0})):
        with pytest.raises((ValueError, TypeError)) as wanted:
            model.predict_one(row)
        with pytest.raises(type(wanted.value)) as caught:
            model.explain(row)
        assert str(caught.value) == str(wanted.value)
    with pytest.raises(TypeError, match=r"expected a dict .*, or a pair .*, got Series\. Give row\.to_dict\(\)"):
        OnlineRegressor().fit([[1.0]], [2.0]).predict_one(pd.Series({"a": 1.0}))
    with pytest.raises(NotFittedError):
        OnlineClassifier().explain({"a": 1.0})
