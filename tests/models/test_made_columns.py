"""``interactions``, ``ngrams``, ``bins``, ``text`` and ``missing`` of the estimators: how ``fit`` reads columns of tables."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from onlinear import OnlineClassifier, OnlineRegressor, PenaltyPath, load, streams
from onlinear.shards import fit as fit_shards

RNG = np.random.default_rng(0)
SITE, AGE = RNG.integers(0, 4, 600), RNG.uniform(0, 90, 600)
TEXT = [" ".join(words) for words in RNG.choice(["good", "bad", "not"], (600, 3))]
Y = ((SITE % 2 == 0) ^ (AGE > 45)).astype(int)
FRAME = pd.DataFrame({"site": SITE, "age": np.where(AGE < 5, np.nan, AGE), "text": TEXT})
ASKED = {
    "interactions": [("site", "age")],
    "ngrams": {"text": 2},
    "bins": {"age": np.array([30.0, 45.0])},
    "text": ("site",),
    "missing": {"categories": "indicator"},
}


def test_they_are_what_a_stream_of_the_table_makes(tmp_path):
    labelled = FRAME.assign(y=Y)
    model = OnlineClassifier(shuffle=False, **ASKED).fit(FRAME, Y)
    same = OnlineClassifier().fit(streams.open(labelled, target="y", **ASKED), classes=[0, 1])
    by_name = OnlineClassifier(shuffle=False, **ASKED).fit(labelled, "y")
    pieces = OnlineClassifier(**ASKED)
    for first in range(0, 600, 250):
        pieces.partial_fit(FRAME[first : first + 250].to_dict("records"), Y[first : first + 250], classes=[0, 1])
    scores = model.decision_function(FRAME)
    assert np.mean((scores > 0) == Y) > 0.9
    for other in (same, by_name, pieces, pickle.loads(pickle.dumps(model))):
        assert np.array_equal(other.decision_function(FRAME), scores)
    model.save(tmp_path / "m.onlinear")
    again = load(tmp_path / "m.onlinear")
    assert np.array_equal(again.decision_function(FRAME.to_dict("records")), scores)
    assert again.get_params()["bins"] == {"age": [30.0, 45.0]}
    assert np.array_equal(clone(again).fit(FRAME, Y).decision_function(FRAME), scores)
    assert again.learn_one(FRAME.iloc[0].to_dict(), 1).t_ == 601
    again.save(tmp_path / "again.onlinear")
    assert load(tmp_path / "again.onlinear").predict_one(FRAME.iloc[1].to_dict()) in (0, 1)


def test_a_frame_of_numbers_may_be_given_too():
    frame = FRAME[["site"]].assign(age=AGE)
    price = np.select([AGE < 30, AGE < 60], [1.0, 3.0], 0.0)
    model = OnlineRegressor(bins={"age": 9}, passes=5, random_state=0).fit(frame, price)
    assert (
        model.score(frame, price) > 0.9 > 0.3 > OnlineRegressor(passes=5, random_state=0).fit(frame, price).score(frame, price)
    )
    assert len(model.encoding_["bins"]["age"]) == 8
    odd = SITE % 2
    of_text, plain = (OnlineRegressor(text=text, passes=5, random_state=0).fit(frame, odd) for text in (["site"], None))
    assert of_text.score(frame, odd) > 0.9 > 0.3 > plain.score(frame, odd)


def test_none_of_them_is_a_setting_of_older_models():
    old = OnlineClassifier().fit(np.eye(2), [0, 1])
    for name in ASKED:
        del vars(old)[name]
    assert pickle.loads(pickle.dumps(old)).get_params()["bins"] is None
    assert not set(ASKED) & set(old.freeze()[0]["estimator"]["params"])


@pytest.mark.parametrize("other", [{"missing": "indicator"}, {"text": None}, {"bins": {"age": [1.0]}}])
def test_further_rows_are_refused_once_other_columns_are_asked_for(other, tmp_path):
    model = OnlineClassifier(**ASKED).fit(FRAME, Y)
    model.save(tmp_path / "m")
    for each in (model, load(tmp_path / "m")):
        with pytest.raises(ValueError, match=f"begun with {next(iter(other))}="):
            each.set_params(**other).partial_fit(FRAME, Y)
        each.set_params(**(dict.fromkeys(other) | ASKED)).partial_fit(FRAME, Y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m.fit(np.eye(2), [0, 1]), "interactions= is for tables, and the columns of X have no names"),
        (lambda m: m.partial_fit(np.eye(2), [0, 1], classes=[0, 1]), "give a data frame or a list of dicts"),
        (lambda m: m.fit(streams.open("breast-cancer")), "X is a stream that is open already: give it to streams.open"),
        (lambda m: m.partial_fit([(np.eye(2), [0, 1])], classes=[0, 1]), "give it to streams.open"),
        (
            lambda m: m.learn_one({"site": "1", "age": 3.0}, True),
            "one row does not say which columns there are: train on a list",
        ),
        (lambda m: PenaltyPath(m, ["l1=1e-4"]).fit(np.eye(2), [0, 1]), "a path learns rows as they come"),
        (lambda m: fit_shards(m, [], None), "shards are opened with options of their own: give it to open_shards"),
        (lambda m: m.set_params(bins={"age": 5}).partial_fit(FRAME, Y, [0, 1]), "give partial_fit edges, or use fit"),
        (
            lambda _: OnlineClassifier(missing="omit").fit(np.eye(2), [0, 1]),
            "missing= is for tables, and the columns of X",
        ),
        (lambda _: OnlineClassifier(missing="zero").fit(FRAME, Y), "missing 'zero' is not known"),
        (lambda _: OnlineClassifier(text="sites").fit(FRAME, Y), "text and numbers: the column 'sites' is not known"),
    ],
)
def test_they_are_refused_where_rows_come_in_another_way(call, message):
    with pytest.raises(ValueError, match=message):
        call(OnlineClassifier(**ASKED))
