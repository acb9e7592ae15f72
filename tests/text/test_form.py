"""Text forms: what parses, what does not, and errors that help."""

import re
from inspect import signature
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinear import Learner, OnlineClassifier, OnlineRegressor, PenaltyPath, losses, schedules
from onlinear.learner import parts
from onlinear.solvers import SOLVERS
from onlinear.text import hints
from onlinear.text.form import check_number, choose, kebab, parse, parts_of, percent, rows_by_weight, unknown, unparse


def test_a_small_share_is_not_shown_as_none():
    assert [percent(share) for share in (0.0, 5 / 61_975, 1e-3, 1.0)] == ["0.0%", "less than 0.1%", "0.1%", "100.0%"]
    assert [percent(share, 2) for share in (0.0, 9 / 251_302, 0.2402)] == ["0.00%", "less than 0.01%", "24.02%"]


def test_weights_of_rows_are_shown_as_their_number_where_they_are_one():
    shown = [rows_by_weight(weight) for weight in (0.0, 12_345.0, 12_345.5, 0.005, 1e15)]
    assert shown == ["0", "12,345", "12,345.50", "0.005", "1e+15"]


def test_parse():
    assert parse("hinge", "loss") == ("hinge", {})
    assert parse(" comid , schedule = inverse,eta=5e-1,project=True ", "solver") == (
        "comid",
        {"schedule": "inverse", "eta": 0.5, "project": True},
    )
    assert parse("x,a=inf,b=-3", "solver") == ("x", {"a": inf, "b": -3.0})


@pytest.mark.parametrize("text", ["", ",eta=1", "comid,", "comid,eta", "comid,eta=", "comid,=1", "comid,,eta=1"])
def test_what_is_no_text_form(text):
    with pytest.raises(ValueError, match=r"solver .*expected (name,key=value|key=value)"):
        parse(text, "solver")


def test_a_setting_given_twice():
    with pytest.raises(ValueError, match="eta is given twice"):
        parse("comid,eta=1,eta=2", "solver")


names = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True).filter(
    lambda text: text not in ("true", "false", "inf", "nan", "infinity")
)
values = st.one_of(st.booleans(), st.floats(allow_nan=False), names)


@given(names, st.dictionaries(names, values, max_size=5))
def test_unparse_is_the_inverse(name, settings):
    assert parse(unparse(name, settings), "solver") == (name, settings)


def test_kebab_and_the_parts_of_a_module():
    assert [kebab(name) for name in ("Hinge", "SquaredHinge", "EpsilonInsensitive")] == [
        "hinge",
        "squared-hinge",
        "epsilon-insensitive",
    ]
    found = list(parts_of(vars(losses)))
    assert found[:5] == ["squared", "absolute", "hinge", "squared-hinge", "logistic"]
    assert found[5:] == ["exponential", "huber", "epsilon-insensitive", "quantile", "poisson", "modified-huber"]


def test_unknown_says_where_there_is_no_name():
    assert str(unknown("bins: the numeric column", "*", [])) == "bins: the numeric column '*' is not known. There is none."


def test_unknown_lists_and_suggests():
    near = str(unknown("loss", "hing", ["squared", "hinge"]))
    assert near == "loss 'hing' is not known. Did you mean 'hinge'? Known: hinge, squared."
    assert str(unknown("loss", "zzzz", ["squared", "hinge"])) == "loss 'zzzz' is not known. Known: hinge, squared."


def test_number():
    assert check_number("role", "q", 0.5, 0, 1) == 0.5
    assert check_number("role", "q", 1, 0, 1) == 1.0
    for value in (-0.1, 1.1, inf, -inf, nan):
        with pytest.raises(ValueError, match=r"role: q must be in \[0, 1\], got"):
            check_number("role", "q", value, 0, 1)
    for value in (0.0, 1.0):
        with pytest.raises(ValueError, match=r"role: q must be in \(0, 1\), got"):
            check_number("role", "q", value, 0, 1, open_low=True, open_high=True)
    for value in ("0.5", True, None, [1], 1j):
        with pytest.raises(TypeError, match=r"role: q must be a number in \[0, 1\], got"):
            check_number("role", "q", value, 0, 1)


REGISTRIES = {
    "solver": SOLVERS,
    "loss": parts.ALL_LOSSES,
    "penalty": parts.PENALTIES,
    "average": parts.AVERAGES,
    "scale": parts.SCALES,
    "schedule": schedules.NAMED,
}


@pytest.mark.parametrize("kind", REGISTRIES)
def test_case_and_hyphens_do_not_matter_and_no_two_names_differ_by_them_alone(kind):
    for name in REGISTRIES[kind]:
        for spelled in (name, name.upper(), name.replace("-", "_"), name.replace("-", ""), name.replace("-", " ").title()):
            assert choose(kind, spelled, REGISTRIES[kind]) == name


@pytest.mark.parametrize("kind", REGISTRIES)
def test_names_of_other_libraries_get_a_true_answer(kind):
    """No such name is one of ours, the answer stands in the error instead of a similar name, and what it advises is known."""
    for name, answer in hints._PARTS[kind].items():
        message = str(unknown(kind, name, REGISTRIES[kind]))
        assert answer in message
        assert "Did you mean" not in message
        with pytest.raises(ValueError, match="is not known"):
            choose(kind, name, REGISTRIES[kind])
        for advised in re.findall(r"'([^']+)'", answer):
            role = re.search(rf"(\w+)='{re.escape(advised)}'", answer)
            known = REGISTRIES[role[1] if role else kind]
            first = advised.partition(",")[0]
            assert first in known or first.partition("=")[0] in parts.BOUNDS, (name, advised)


@pytest.mark.parametrize("name", ["ftrl-proximal", "adagrad", "saga", "sag", "adam", "lbfgs", "liblinear", "xgboost", "s"])
def test_no_solver_is_suggested_that_is_only_spelled_a_little_alike(name):
    assert "Did you mean" not in str(unknown("solver", name, SOLVERS))


@pytest.mark.parametrize(
    ("name", "meant"),
    [("sdg", "sgd"), ("cosmid", "comid"), ("pegasus", "pegasos"), ("implicit", "implicit-sgd"), ("fobo", None)],
)
def test_slips_of_the_pen(name, meant):
    message = str(unknown("solver", name, SOLVERS))
    assert (f"'{meant}'" in message) if meant else ("Did you mean" not in message)


def test_settings_of_other_libraries():
    assert "It is eta= here." in str(unknown("solver 'comid': setting", "learning_rate", ["eta", "t0"]))
    assert "It is" not in str(unknown("solver 'rls': setting", "learning_rate", ["delta"]))
    assert "It is l1= or l2= here." in str(unknown("penalty 'x': setting", "alpha", ["l1", "l2", "tv"]))


def test_a_long_list_of_names_is_cut():
    message = str(unknown("target: the column", "zip", [f"c{k}" for k in range(100)]))
    assert message.endswith(" and 60 others.")
    assert str(unknown("target: the column", "zip", [f"c{k}" for k in range(41)])).endswith(" and 1 other.")
    assert len(message) < 400


@pytest.mark.parametrize("estimator", [OnlineClassifier, OnlineRegressor])
def test_arguments_of_other_estimators(estimator):
    class Mine(estimator):
        """A class of a user's."""

    for name in ("alpha", "eta0", "max_iter", "C", "l1_ratio", "learning_rate", "n_iter", "epochs", "unheard_of"):
        assert name not in signature(estimator).parameters
        for cls in (estimator, Mine):
            with pytest.raises(TypeError, match=f"^{cls.__name__} has no argument '{name}'. ") as error:
                cls(**{name: 1})
            assert name == "unheard_of" or hints.advise_on_argument(name) in str(error.value)
        with pytest.raises(ValueError, match=name) as error:  # as a search over it does
            estimator().set_params(**{name: 1})
        assert name == "unheard_of" or hints.advise_on_argument(name) in str(error.value)
    assert not set(hints._ARGUMENTS) & set(signature(estimator).parameters)
    assert list(estimator().get_params()) == sorted(signature(estimator).parameters)


def test_calls_that_fit_no_signature_name_the_class():
    with pytest.raises(
        TypeError, match=r"^OnlineClassifier takes loss by place and all else by name, as penalty=; got 2 by place"
    ):
        OnlineClassifier("hinge", "l1=0.1")
    with pytest.raises(TypeError, match=r"^OnlineRegressor is given loss twice"):
        OnlineRegressor("huber", loss="huber")
    with pytest.raises(TypeError, match=r"^Learner needs the argument loss"):
        Learner("fiol")
    with pytest.raises(TypeError, match=r"^Learner has no argument 'l1'. Arguments: average, clip"):
        Learner("fiol", "hinge", l1=0.1)
    with pytest.raises(TypeError, match=r"^PenaltyPath has no argument 'passes'. Arguments: estimator, grow"):
        PenaltyPath(OnlineClassifier(), [0.1], passes=2)


@pytest.mark.parametrize("name", hints._ARGUMENTS)
def test_what_is_advised_for_an_argument_can_be_written(name):
    for keyword, text in re.findall(r"(\w+)='([^']+)'", hints.advise_on_argument(name)):
        parts = {"solver": "comid", "loss": "hinge"} | {keyword: text.replace("...", "1e-4")}
        Learner(**parts, n_features=2)
