"""scikit-learn's own checks of an estimator, over both estimators and every solver family."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from onlinear import OnlineClassifier, OnlineRegressor
from onlinear.solvers import SOLVERS

CLASSIFIERS = [
    OnlineClassifier(solver="mixture", passes=5),
    OnlineClassifier(),
    OnlineClassifier(penalty="elastic-net,l1=1e-4,l2=1e-4", passes=2),
    OnlineClassifier("hinge", penalty="l2,l2=1e-3", solver="sgd,eta=0.1", scale="rms"),
    OnlineClassifier("hinge", penalty="l2,l2=0.1", solver="pegasos", scale="rms", passes=20),
    OnlineClassifier("hinge", penalty="l2,l2=0.1", solver="epoch-gd", scale="rms", passes=20),
    OnlineClassifier("modified-huber", penalty="l1,l1=1e-4", solver="comid,eta=0.1", average="uniform", scale="max-abs"),
    OnlineClassifier("logistic", penalty="l1,l1=1e-4", solver="rda", scale="rms"),
    OnlineClassifier("exponential", solver="fiol", scale="rms", passes=5),
    OnlineClassifier("squared-hinge", solver="implicit-sgd,eta=0.1", scale="rms", shuffle="replacement"),
    OnlineClassifier("squared", solver="ncsgd,eta=0.1", scale="rms"),
    OnlineClassifier("squared", solver="adaline,eta=1e-4", scale="rms", passes=10),
    OnlineClassifier("squared", solver="rls"),
    OnlineClassifier("softmax"),
    OnlineClassifier("softmax", penalty="l1,l1=1e-4"),
    OnlineClassifier("hinge", solver="pa"),
    OnlineClassifier("logistic", penalty="l1,l1=1e-4", solver="sadmm", scale="standard"),
    OnlineClassifier("hinge", penalty="l2,l2=1e-4", solver="oadm", scale="rms"),
    OnlineClassifier("logistic", penalty="elastic-net,l1=1e-4,l2=1e-4", solver="sdrs", scale="rms"),
    OnlineClassifier("logistic", penalty="l1,l1=1e-4", solver="iodrs,lam=0.1", scale="rms"),
    OnlineClassifier("logistic", penalty="l2,l2=1e-3", solver="batch-drs", passes=8),
    OnlineClassifier("logistic", penalty="l1=1e-2", tol=1e-4),
    OnlineClassifier("logistic", penalty="l2=1e-2", solver="prox-newton"),
    OnlineClassifier("hinge", penalty="l2=1e-2", solver="sdca,tol=1e-1", max_passes=2000),
]
REGRESSORS = [
    OnlineRegressor(solver="mixture", passes=5),
    OnlineRegressor(),
    OnlineRegressor("huber", penalty="l1,l1=1e-4", passes=2),
    OnlineRegressor(penalty="l2,l2=1e-3", solver="sgd,eta=0.02", scale="rms"),
    OnlineRegressor("absolute", penalty="l2,l2=0.1", solver="epoch-gd", scale="rms", passes=10),
    OnlineRegressor("quantile", penalty="l1,l1=1e-4", solver="comid", average="uniform", scale="rms", passes=10),
    OnlineRegressor("epsilon-insensitive", penalty="l1,l1=1e-4", solver="rda", scale="rms", passes=10),
    OnlineRegressor("absolute", solver="implicit-sgd", average="weighted-t1", shuffle="replacement", passes=5),
    OnlineRegressor("squared", solver="ncsgd,eta=0.1", scale="rms", passes=5),
    OnlineRegressor("squared", solver="adaline,eta=0.01", scale="rms"),
    OnlineRegressor("squared", solver="rls"),
    OnlineRegressor("poisson", solver="fiol", scale="rms"),
    OnlineRegressor("squared", penalty="l1,l1=1e-4", solver="sadmm", scale="standard"),
    OnlineRegressor("huber", penalty="l2,l2=1e-4", solver="oadm", scale="rms"),
    OnlineRegressor("squared", penalty="elastic-net,l1=1e-4,l2=1e-4", solver="sdrs", scale="rms"),
    OnlineRegressor("huber", penalty="l1,l1=1e-4", solver="iodrs,lam=0.1", scale="rms"),
    OnlineRegressor("squared", penalty="l2,l2=1e-3", solver="batch-drs", passes=30),
    OnlineRegressor("huber", penalty="l2=1e-2", solver="prox-newton"),
    OnlineRegressor("absolute", penalty="l2=1e-2", solver="sdca,tol=1e-1", max_passes=2000),
]
ALL_AT_ONCE = ("batch-drs", "prox-newton", "sdca")
SIGNS_ONLY = {SOLVERS[name].solver for name in ("pa", "pegasos")}


def families(estimators: list[Any]) -> set[type]:
    """The solvers of estimators, presets being settings of one."""
    return {SOLVERS[(estimator.solver or "implicit-sgd").partition(",")[0]].solver for estimator in estimators}


def others(estimators: list[Any], left_out: set[type]) -> list[str]:
    """The names of solvers that no estimator in the list has, one for each family."""
    names = {preset.solver: name for name, preset in reversed(SOLVERS.items())}
    return [name for family, name in sorted(names.items(), key=str) if family not in families(estimators) | left_out]


# A new solver is checked as it comes.
CLASSIFIERS += [OnlineClassifier(solver=name, scale="rms", passes=5) for name in others(CLASSIFIERS, set())]
REGRESSORS += [OnlineRegressor(solver=name, scale="rms", passes=5) for name in others(REGRESSORS, SIGNS_ONLY)]

PARTIAL = ("check_n_features_in_after_fitting", "check_estimators_partial_fit_n_features")
WEIGHTS = (
    "a row of weight k is one step on k times its loss, k equal rows are k steps, a row of weight 0 is a step without loss: "
    "only recursive least squares, whose state is a sum over rows, makes them equal (MATH 17)"
)
BATCH_WEIGHTS = (
    "the objective is a mean over the number of rows, weights are not normalised: repeating a row changes l2's share"
)
ALL_ROWS = "needs all rows at once: partial_fit refuses it and names fit"
MEAN = "'standard' centres by the mean of all rows, which a first partial_fit does not have: it refuses and names 'rms'"
EXPLICIT = "with a class weight of 1000 an explicit step on the squared loss has eta s |x|^2 > 2: it overshoots ever further"
ZERO_ONE = "passive-aggressive learning (PA) has no form for weights other than 0 and 1: it refuses and names pa-1 and pa-2"
DENSE = "'standard' centres, so it takes dense rows only: scikit-learn 1.6 gives it sparse ones"
COUNTS = "the check's targets are negative, those of the poisson loss are counts"


def failures(estimator: Any) -> dict[str, str]:
    """The checks that a correct method fails, and why."""
    solver = (estimator.solver or "").partition(",")[0]
    found = {}
    if solver != "rls":
        reason = BATCH_WEIGHTS if solver in ALL_AT_ONCE or estimator.tol is not None else WEIGHTS
        found["check_sample_weight_equivalence_on_dense_data"] = reason
        found["check_sample_weight_equivalence_on_sparse_data"] = reason if estimator.scale != "standard" else DENSE
    if estimator.tol is not None:
        found["check_fit_score_takes_y"] = ALL_ROWS
    if solver in ALL_AT_ONCE:
        found |= dict.fromkeys(("check_fit_score_takes_y", *PARTIAL), ALL_ROWS)
    if estimator.scale == "standard":
        found |= dict.fromkeys(PARTIAL, MEAN)
    if isinstance(estimator, OnlineClassifier) and solver in ("ncsgd", "pa"):
        found["check_class_weight_classifiers"] = ZERO_ONE if solver == "pa" else EXPLICIT
    if solver == "pa":
        found |= dict.fromkeys(("check_sample_weights_list", "check_sample_weights_not_overwritten"), ZERO_ONE)
    if estimator.loss == "poisson":
        found["check_regressor_multioutput"] = COUNTS
    return found


CHECKS = parametrize_with_checks([*CLASSIFIERS, *REGRESSORS], expected_failed_checks=failures)
SLOW = "check_sample_weight_equivalence"  # which most methods fail for the same reason


def is_twin(estimator: Any) -> bool:
    """Whether it is a regressor, not of the solvers that a fit has by itself, whose solver a classifier has."""
    own = estimator.solver is None or estimator.solver.partition(",")[0] in ("mixture", "sdca")
    return isinstance(estimator, OnlineRegressor) and not own and families([estimator]) <= families(CLASSIFIERS)


def cases() -> Iterator[Any]:
    """The checks. Left to exhaustive runs are those of twins, and slow ones that are to fail, but for the first estimator of
    each reason."""
    seen = set[str]()
    for case in CHECKS.args[1]:  # old releases give a generator
        estimator, check = getattr(case, "values", case)
        name = check.func.__name__
        reason = failures(estimator).get(name, "") if name.startswith(SLOW) else ""
        again = is_twin(estimator) or (bool(reason) and name + reason in seen)
        seen.add(name + reason)
        yield pytest.param(estimator, check, marks=[*getattr(case, "marks", ()), *([pytest.mark.exhaustive] if again else ())])


@pytest.mark.parametrize(CHECKS.args[0], list(cases()), ids=cache(CHECKS.kwargs["ids"]))  # an estimator's name takes a while
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("estimators", "left_out"), [(CLASSIFIERS, set()), (REGRESSORS, SIGNS_ONLY)])
def test_every_solver_family_is_checked(estimators, left_out):
    assert families(estimators) | left_out == {preset.solver for preset in SOLVERS.values()}
