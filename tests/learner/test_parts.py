"""Parts from text: every name builds, every setting is checked, what has no meaning is refused with what is missing."""

import re
from decimal import ROUND_CEILING, Decimal
from math import inf

import numpy as np
import pytest
from sklearn.base import clone
from typer.testing import CliRunner

from onlinear import Learner, OnlineClassifier, load
from onlinear.averages import Average
from onlinear.cli import app
from onlinear.learner import parts
from onlinear.learner.parts import build_average, build_loss, build_penalty, build_solver
from onlinear.losses import Hinge, Huber
from onlinear.penalties import Box, ElasticNet, FusedLasso
from onlinear.schedules import Power, TwoPhase
from onlinear.solvers import SOLVERS


@pytest.mark.parametrize("name", parts.LOSSES)
def test_every_loss_by_its_name(name):
    loss = build_loss(name)
    assert loss == type(loss)()
    assert build_loss(f"{name},factor=2").factor == 2.0
    assert build_loss(loss) is loss


def test_a_learner_shows_its_parts_and_how_much_it_has_learned(monkeypatch):
    learner = Learner("comid,eta=0.5", Huber(delta=2.0), "l1=0.01", "uniform", scale="rms", n_outputs=2)
    parts = f"solver comid,eta=0.5 | loss {Huber(delta=2.0)} | penalty l1=0.01 | average uniform | scale rms"
    assert repr(learner) == f"<Learner: {parts} | 0 rows | 0 columns | 2 outputs>"
    learner.learn([[1.0, 2.0, 3.0]], [[1.0, 2.0]])
    one = Learner("sgd", "squared")
    one.learn_one([1_999], [1.0], 1.0)
    monkeypatch.setattr(Learner, "weights", None)
    monkeypatch.setattr(Learner, "states", None)  # of all columns
    assert repr(learner) == f"<Learner: {parts} | 1 row | 3 columns | 2 outputs>"
    assert repr(one) == "<Learner: solver sgd | loss squared | penalty none | 1 row | 2,000 columns | 1 output>"


def test_settings_of_losses():
    assert build_loss("hinge,margin=0.5") == Hinge(margin=0.5)
    assert build_loss("huber,delta=3,factor=0.5") == Huber(0.5, 3.0)
    for text, error, message in (
        ("hinge,delta=1", ValueError, "loss 'hinge': setting 'delta' is not known.*Known: factor, margin"),
        ("hinge,margn=1", ValueError, "Did you mean 'margin'"),
        ("quantile,q=1", ValueError, r"loss 'quantile': q must be in \(0, 1\), got 1.0"),
        ("huber,delta=0", ValueError, r"delta must be in \(0, inf\), got 0.0"),
        ("hinge,factor=nan", ValueError, r"factor must be in \(0, inf\), got nan"),
        ("hinge,margin=true", TypeError, r"margin must be a number in \[0, inf\), got True"),
        ("hinge,margin=wide", TypeError, "got 'wide'"),
        ("hinge,margin=1,margin=1", ValueError, "margin is given twice"),
        (3, TypeError, "loss must be text such as 'hinge', or a NamedTuple with value and slope, got 3"),
        (None, TypeError, "loss must be text such as 'hinge'"),
    ):
        with pytest.raises(error, match=message):
            build_loss(text)


def test_every_penalty_by_its_name():
    assert build_penalty("none") == ElasticNet()
    assert build_penalty("l1,l1=0.5") == ElasticNet(l1=0.5)
    assert build_penalty("l2,l2=0.5") == ElasticNet(l2=0.5)
    assert build_penalty("elastic-net,l1=0.5,l2=2") == ElasticNet(0.5, 2.0)
    assert build_penalty("elastic-net,l2=2") == ElasticNet(0.0, 2.0)
    assert build_penalty("total-variation,tv=1") == FusedLasso(tv=1.0)
    assert build_penalty("fused-lasso,tv=1,l1=0.1,l2=3,lower=-1") == FusedLasso(1.0, 0.1, 3.0, -1.0)
    assert build_penalty("none,lower=0") == Box(lower=0.0)
    assert build_penalty("l1,l1=1,upper=inf") == Box(l1=1.0, upper=inf)
    assert build_penalty(Box()) == Box()


@pytest.mark.parametrize(
    ("short", "full"),
    [
        (None, "none"),
        ("l1", "l1,l1=1e-5"),
        ("l2", "l2,l2=1e-5"),
        ("elastic-net", "elastic-net,l1=1e-5,l2=1e-5"),
        ("l1=1e-4", "l1,l1=1e-4"),
        ("l2 = 1e-4", "l2,l2=1e-4"),
        ("l1=1e-5,l2=1e-6", "elastic-net,l1=1e-5,l2=1e-6"),
        ("tv=0.1", "total-variation,tv=0.1"),
        ("tv=0.1,l1=0.2", "fused-lasso,tv=0.1,l1=0.2"),
        ("l1=1e-5,lower=0", "l1,l1=1e-5,lower=0"),
        ("lower=-1,l2=1e-5,upper=1", "l2,l2=1e-5,lower=-1,upper=1"),
        ("l1,lower=0", "l1,l1=1e-5,lower=0"),
        ("lower=0", "none,lower=0"),
        ("elastic-net,l2=2", "elastic-net,l1=0,l2=2"),
    ],
)
def test_short_forms_of_penalties(short, full):
    assert build_penalty(short) == build_penalty(full)
    model = OnlineClassifier(penalty=short)
    assert clone(model).get_params()["penalty"] == short  # what the user wrote
    assert Learner("comid", "hinge", short, n_features=2).spec["penalty"] == short


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("total-variation", ValueError, "'total-variation' has no default strength; write 'total-variation,tv=0.01'"),
        ("fused-lasso,lower=0", ValueError, "'fused-lasso' has no default strength; write 'fused-lasso,tv=0.01'"),
        ("l1=1,l1=2", ValueError, "l1 is given twice"),
        ("l1=1,eta=2", ValueError, "penalty 'l1=1,eta=2': setting 'eta' is not known.*Known: l1, l2, lower, tv, upper"),
        ("alpha=1e-4", ValueError, "penalty 'alpha=1e-4': setting 'alpha' is not known. It is l1= or l2= here"),
        ("l1,l2=1", ValueError, "penalty 'l1': setting 'l2' is not known"),
        ("none,l1=1", ValueError, "penalty 'none': setting 'l1' is not known.*Known: lower, upper"),
        ("l1,l1=-1", ValueError, r"l1 must be in \[0, inf\), got -1.0"),
        ("l1,l1=inf", ValueError, r"l1 must be in \[0, inf\), got inf"),
        ("l1,l1=1,lower=0.5", ValueError, r"lower must be in \[-inf, 0\], got 0.5"),
        ("l1,l1=1,upper=-1", ValueError, r"upper must be in \[0, inf\], got -1.0"),
        (
            "lasso,l1=1",
            ValueError,
            "penalty 'lasso' is not known.*Known: elastic-net, fused-lasso, l1, l2, none, total-variation",
        ),
        (1.0, TypeError, "penalty must be text such as 'l1=1e-5', or a NamedTuple with value and prox, got 1.0"),
    ],
)
def test_wrong_penalties(text, error, message):
    with pytest.raises(error, match=message):
        build_penalty(text)


def test_a_model_without_a_penalty_is_saved_and_inspected(tmp_path):
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    for penalty in (None, "l1"):
        model = OnlineClassifier(penalty=penalty).fit(X, y)
        model.save(tmp_path / "model")
        again = load(tmp_path / "model")
        assert again.penalty == penalty
        assert np.array_equal(again.coef_, model.coef_)
        told = CliRunner().invoke(app, ["inspect", str(tmp_path / "model")]).stdout
        assert re.search(rf"^penalty +{penalty or 'none'}$", told, re.MULTILINE)


def test_averages():
    assert build_average(None) is None
    assert build_average("none") is None
    assert build_average("weighted-t1") == Average(1.0, 1.0)
    assert build_average(Average(2.0)) == Average(2.0)
    # T - ceil(alpha T) + 1, exactly
    for alpha, T in ((0.5, 10), (0.5, 11), (0.55, 100), (0.1, 1000), (1.0, 7), (0.3, 10), (1e-9, 10), (0.7, 10)):
        wanted = T - int((Decimal(str(alpha)) * T).to_integral_value(ROUND_CEILING)) + 1
        assert build_average(f"suffix,alpha={alpha},total={T}").first == wanted
        assert build_average(f"suffix,alpha={alpha}", total=T).first == wanted


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("suffix,alpha=0.5", ValueError, "average 'suffix' needs total=T"),
        ("suffix,alpha=0,total=10", ValueError, r"alpha must be in \(0, 1\], got 0.0"),
        ("suffix,alpha=1.5,total=10", ValueError, r"alpha must be in \(0, 1\]"),
        ("suffix,alpha=0.5,total=10.5", ValueError, "total must be a whole number, got 10.5"),
        ("uniform,alpha=0.5", ValueError, "average 'uniform': setting 'alpha' is not known. Known: masked."),
        ("unifrom", ValueError, "Did you mean 'uniform'"),
        (7, TypeError, "average must be text such as 'none' or a part object, got 7"),
        (True, TypeError, "got True. It is 'uniform' here"),
    ],
)
def test_wrong_averages(spec, error, message):
    with pytest.raises(error, match=message):
        build_average(spec)


def solver(text, penalty="l2,l2=0.5", total=None):
    return build_solver(text, build_penalty(penalty), total)[0]


@pytest.mark.parametrize("name", SOLVERS)
def test_every_solver_by_its_name(name):
    found, preset = build_solver(name, build_penalty("l2,l2=0.5"), 100)
    assert isinstance(found, preset.solver)
    if preset.tied is not None:
        assert found.schedule == Power(preset.tied[0] / 0.5, preset.tied[1], 1.0)
        with pytest.raises(ValueError, match=f"solver '{name}' takes its step from the penalty's l2"):
            build_solver(name, ElasticNet(l1=1.0))
        with pytest.raises(ValueError, match=r"setting 'eta' is not known|takes no settings, got 'eta'"):
            build_solver(f"{name},eta=1", ElasticNet(l2=1.0))


def test_schedules_beside_the_solver():
    assert solver("comid").schedule == Power()
    assert solver("comid,eta=2").schedule == Power(2.0)
    assert solver("comid,schedule=constant,eta=2").schedule == Power(2.0, 0.0, 0.0)
    assert solver("comid,schedule=inverse-shifted").schedule == Power(1.0, 1.0, 1.0)
    assert solver("comid,schedule=power,power=0.75,t0=10").schedule == Power(1.0, 10.0, 0.75)
    assert solver("comid,schedule=two-phase,m=50").schedule == TwoPhase(1.0, 50.0)
    assert solver("comid,schedule=two-phase", total=101).schedule == TwoPhase(1.0, 51.0)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("comid,schedule=two-phase", ValueError, "the two-phase schedule needs m"),
        ("comid,schedule=two-phase,m=0.5", ValueError, r"m must be in \[1, inf\), got 0.5"),
        ("comid,schedule=two-phase,t0=1", ValueError, "setting 't0' is not known.*Known: eta, m"),
        ("comid,schedule=inverse,power=0.5", ValueError, "schedule 'inverse' fixes power; use schedule=power"),
        ("comid,schedule=sqrt", ValueError, "solver 'comid': schedule 'sqrt' is not known.*Known: constant, inverse"),
        ("comid,schedule=2", ValueError, "schedule '2.0' is not known"),
        ("odrs,schedule=sqrt", ValueError, "growing-rho. It may be a number from 0 to 1, too"),
        ("comid,m=5", ValueError, "setting 'm' is not known"),
        ("comid,eta=0", ValueError, r"eta must be in \(0, inf\), got 0.0"),
        ("comid,power=1.5,schedule=power", ValueError, r"power must be in \[0, 1\], got 1.5"),
        ("comid,rho=1", ValueError, "solver 'comid': setting 'rho' is not known"),
        ("comid,tied=true", ValueError, "setting 'tied' is not known"),
        ("hrmd-w,schedule=inverse", ValueError, "setting 'schedule' is not known|takes no settings"),
        ("eta=5", ValueError, "solver 'eta=5' must begin with a name: name,key=value"),
        ("cosmid", ValueError, "solver 'cosmid' is not known. Did you mean 'comid'"),
        (4, TypeError, "solver must be text such as 'fiol,eta=20', or a NamedTuple with engine, got 4"),
    ],
)
def test_wrong_solvers(text, error, message):
    with pytest.raises(error, match=message):
        solver(text)


def test_every_setting_of_every_solver_has_a_range_or_choices():
    for name, preset in SOLVERS.items():
        for key in preset.solver._fields:
            default = preset.solver._field_defaults.get(key)
            known = key in parts.RANGES or isinstance(default, bool) or key in getattr(preset.solver, "choices", {})
            assert known or key == "schedule" or key not in parts.RANGES, (name, key)


def test_numbers_of_a_part_object_may_be_of_any_kind():
    assert build_loss(Hinge(1.0, np.float64(2.0))).margin == 2.0
