"""Writes golden model files and pickles, and the scores that they must give for ever: ``python tests/models/write.py NAME...``.

Each is written once, when a version of the format has something new, and never again: it stands for those that users have.
"""

from __future__ import annotations

import json
import pickle
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from onlinear import Learner, OnlineClassifier, OnlineRegressor, PenaltyPath, streams
from onlinear.averages import CALIBRATED, Average
from onlinear.losses import Hinge, Huber, Logistic, Squared
from onlinear.penalties import Box, ElasticNet, FusedLasso
from onlinear.schedules import Power, TwoPhase
from onlinear.solvers import SOLVERS
from onlinear.solvers.comid import Comid
from onlinear.solvers.csgd import Csgd
from onlinear.solvers.fiol import Fiol, Partition

HERE = Path(__file__).parent
N, D = 80, 9
_I, _J = np.arange(N)[:, None], np.arange(D)
# Numbers that are the same on every machine: no generator of any version stands behind them.
ROWS = np.where((_I + 2 * _J) % 3 == 0, 0.0, ((_I * 7 + _J * 13 + _I * _J) % 11 - 5) / 4.0)
NUMBERS = ROWS @ ((_J % 5) - 2.0)
SIGNS = np.where(NUMBERS > 0.0, 1.0, -1.0)
TEXTS = np.array(["a", "b, c", "ü"])[np.digitize(NUMBERS, [-1.5, 1.5])]

L1, NET = "l1,l1=0.01", "elastic-net,l1=0.01,l2=0.05"
LEARNERS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "adagrad-comid": (("adagrad-comid", "logistic", NET), {"fit_intercept": True}),
    "adagrad-rda": (("adagrad-rda", "logistic", NET, "weighted-t1,masked=true"), {"fit_intercept": True}),
    "adaline": (("adaline", "squared"), {}),
    "adaptive": (("fiol,eta=3", "logistic", "l2,l2=0.01", "adaptive"), {"fit_intercept": True, "weights": "relative"}),
    "calibrated": (("implicit-ftrl", "logistic", "none", CALIBRATED), {"fit_intercept": True}),
    "calibrated-numbers": (
        ("implicit-ftrl,eta=8", "squared", "none", CALIBRATED),
        {"fit_intercept": True, "targets": "relative", "clip": True},
    ),
    "comid-l1": (("comid,eta=0.5", "hinge", L1), {}),
    "comid-net-average": (("comid,eta=0.5", "logistic", NET, "weighted-t1"), {"fit_intercept": True}),
    "comid-box": (("comid,eta=0.5", "squared", "elastic-net,l1=0.01,lower=0"), {}),
    "csgd": (("csgd,m=40", "squared"), {"fit_intercept": True}),
    "epoch-gd": (("epoch-gd", "hinge", "l2,l2=0.1"), {}),
    "fiol": (("fiol,eta=2", "logistic", L1, "uniform"), {"fit_intercept": True}),
    "ftrl": (("ftrl,eta=0.5", "logistic", NET), {"fit_intercept": True}),
    "ftrl-average": (("ftrl,eta=0.5,fixed=true", "squared", NET, "weighted-t1"), {"fit_intercept": True}),
    "implicit-ftrl": (("implicit-ftrl", "logistic", NET), {"fit_intercept": True}),
    "implicit-ftrl-average": (("implicit-ftrl,eta=0.5", "hinge", L1, "uniform"), {"scale": "rms"}),
    "forget-implicit-ftrl": (("implicit-ftrl", "logistic", NET), {"fit_intercept": True, "forget": 25.0}),
    "forget-ftrl": (("ftrl,eta=0.5", "logistic", "none", "adaptive"), {"fit_intercept": True, "forget": 25.0}),
    "forget-rda": (("rda", "hinge", NET), {"fit_intercept": True, "forget": 25.0}),
    "forget-adagrad-rda": (("adagrad-rda", "logistic", L1), {"forget": 25.0, "scale": "rms"}),
    "uncertain": (("fiol", "squared"), {"fit_intercept": True, "targets": "relative", "uncertainty": "targets"}),
    "fused-lasso": (("comid,eta=0.5", "squared", "fused-lasso,tv=0.05,l1=0.01"), {"n_features": D}),
    "hrmd-w": (("hrmd-w", "squared", "l2,l2=0.1"), {}),
    "iodrs": (("iodrs,lam=0.7", "logistic", L1), {"fit_intercept": True}),
    "implicit-sgd": (("implicit-sgd,eta=3", "squared", "l2,l2=0.01"), {"scale": "max-abs"}),
    "counts": (("fiol", "poisson", "l2,l2=0.01"), {"fit_intercept": True, "targets": "relative", "weights": "relative"}),
    "mixture": (("mixture", "logistic", "l2,l2=0.01"), {"fit_intercept": True}),
    "mixture-of-means": (("mixture", "squared"), {"fit_intercept": True, "targets": "relative"}),
    "tempered": (("implicit-ftrl", "logistic"), {"fit_intercept": True, "scale": "tempered"}),
    "oadm": (("oadm,bregman=1", "hinge", L1), {}),
    "odrs": (("odrs,lam=0.7", "logistic", L1), {"fit_intercept": True}),
    "odrs-relaxed": (("odrs,lam=0.7,relaxation=1.4", "squared", L1, "uniform"), {}),
    "pa": (("pa-1,C=0.5", "hinge"), {}),
    "pegasos": (("pegasos", "hinge", "l2,l2=0.1"), {}),
    "relative": (("comid,eta=0.3", "absolute", NET, "weighted-t1"), {"fit_intercept": True, "targets": "relative"}),
    "relative-two": (
        ("implicit-sgd", "huber", "none", "adaptive"),
        {"n_outputs": 2, "targets": "relative", "weights": "relative"},
    ),
    "parts-box": ((Comid(Power(0.5, 0.0, 1.0)), Logistic(2.0), Box(0.01, 0.0, -1.0, 1.0)), {}),
    "parts-comid": (
        (Comid(Power(0.5, 3.0)), Huber(1.0, 2.0), ElasticNet(0.01, 0.05), Average(1.0, 1.0)),
        {"fit_intercept": True},
    ),
    "parts-csgd": ((Csgd(TwoPhase(0.05, 40.0)), Squared()), {"fit_intercept": True}),
    "parts-fiol": ((Fiol(Power(2.0, 0.0, 0.5), Partition()), Hinge(), ElasticNet(0.01)), {}),
    "parts-fused": ((Comid(Power(0.5)), Squared(), FusedLasso(0.05, 0.01)), {"n_features": D}),
    "rda": (("rda,gamma=2", "logistic", L1, "weighted-t"), {"fit_intercept": True}),
    "rls": (("rls", "squared"), {"n_features": D, "n_outputs": 2}),
    "sadmm": (("sadmm,rho=0.5", "hinge", L1), {"fit_intercept": True}),
    "sgd-ball": (("sgd,radius=2", "squared"), {}),
    "suffix": (("sgd", "hinge", "l2,l2=0.1", "suffix,alpha=0.5,total=80"), {}),
}


def learner(name: str) -> Learner:
    """One method, over the first part of the rows."""
    args, options = LEARNERS[name]
    made = Learner(*args, **options)
    return made.learn(ROWS[:70], _targets(made)[:70])


def _targets(model: Any) -> np.ndarray:
    if getattr(model.loss, "labels", "") == "counts":
        return 2.0 + 2.0 * SIGNS
    return np.column_stack([SIGNS, -SIGNS]) if model.n_outputs > 1 else SIGNS


def table(**options: Any) -> OnlineClassifier:
    """A classifier of a table with names, numbers and text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        lines = [
            f"{x:g},{y:g},{'red' if x > 0 else 'blue' if y > 0 else ''},{label}"
            for x, y, label in zip(*ROWS.T[:2], SIGNS > 0, strict=True)
        ]
        path.write_text("x,y,colour,label\n" + "\n".join(lines) + "\n")
        stream = streams.open(path, target="label", missing="indicator", **options)
        return OnlineClassifier(penalty=L1).fit(stream, classes="scan")


def text(base: int) -> OnlineClassifier:
    """A classifier of svmlight text whose indices begin at ``base``."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.svm"
        lines = (" ".join(f"{j + base}:{x:g}" for j, x in enumerate(row) if x) for row in ROWS.tolist())
        path.write_text("".join(f"{label:g} {line}\n" for label, line in zip(SIGNS.tolist(), lines, strict=True)))
        return OnlineClassifier(penalty=L1).fit(streams.open(path, base=base))


def spaces() -> OnlineClassifier:
    """A classifier of Vowpal Wabbit text whose namespaces are crossed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.vw"
        lines = (f"|one x:{x:g} |two y:{y:g} z" for x, y in ROWS[:, :2].tolist())
        path.write_text("".join(f"{label:g} {line}\n" for label, line in zip(SIGNS.tolist(), lines, strict=True)))
        return OnlineClassifier(penalty=L1).fit(streams.open(path, hash_bits=6, interactions=[("one", "*"), ("two", "two")]))


ALL_AT_ONCE = ("batch-drs", "prox-newton", "sdca")


def batch(name: str) -> Learner:
    """A method that takes all rows at once."""
    return Learner(name, "squared", L1, fit_intercept=True, n_features=D).solve(ROWS, SIGNS, 5)


ESTIMATORS: dict[str, Callable[[], Any]] = {
    **{name: partial(batch, name) for name in ALL_AT_ONCE},
    "classifier": lambda: OnlineClassifier(random_state=0).fit(ROWS, SIGNS),
    "classes": lambda: OnlineClassifier(penalty=NET, class_weight={"a": 2.0}, random_state=0, passes=2).fit(ROWS, TEXTS),
    "regressor": lambda: OnlineRegressor(random_state=0).fit(ROWS, NUMBERS),
    "targets": lambda: OnlineRegressor(penalty=L1, random_state=0).fit(ROWS, np.column_stack([NUMBERS, SIGNS])),
    "centred": lambda: OnlineRegressor(random_state=0).fit(ROWS + 10.0 * (_J < 3), NUMBERS),
    "unsure": lambda: OnlineClassifier(random_state=0, uncertainty=True).fit(ROWS, SIGNS),
    "quantile": lambda: OnlineRegressor("quantile,q=0.9", random_state=0).fit(ROWS, 1000.0 * NUMBERS),
    "standard": lambda: OnlineRegressor(scale="standard", random_state=0).fit(ROWS, NUMBERS),
    "poisson": lambda: OnlineRegressor(loss="poisson", random_state=0).fit(ROWS, np.floor(np.abs(NUMBERS))),
    "softmax": lambda: OnlineClassifier("softmax", random_state=0).fit(ROWS, TEXTS),
    "softmax-l1": lambda: OnlineClassifier("softmax", penalty=NET, solver="fiol,eta=9.6", random_state=0).fit(ROWS, TEXTS),
    "softmax-net": lambda: OnlineClassifier(penalty=NET, random_state=0).fit(ROWS, TEXTS),
    "softmax-forget": lambda: OnlineClassifier(forget=40.0, random_state=0).fit(ROWS, TEXTS),
    "softmax-l2": lambda: OnlineClassifier(penalty="l2=0.05", random_state=0).fit(ROWS, TEXTS),
    "stream": lambda: OnlineClassifier(penalty=L1).fit([(ROWS[:30], SIGNS[:30]), (ROWS[30:], SIGNS[30:])]),
    "one-hot": lambda: table(categories="one-hot"),
    "hashed": lambda: table(categories="hash", hash_bits=6),
    "crossed": lambda: table(hash_bits=6, interactions=[("*", "*"), ("x", "x")]),
    "crossed-text": spaces,
    "expanded": lambda: table(hash_bits=6, ngrams={"colour": 2}, bins={"x": 3}, interactions=[("x", "y")]),
    "base-0": lambda: text(0),
}
FINAL = ("classifier", "classes", "regressor", "one-hot", "softmax", "unsure")


def scores(model: Any) -> np.ndarray:
    """What a model makes of the rows."""
    learned = getattr(model, "learner_", model)
    return np.ravel(learned.predict(ROWS[:12, : min(D, max(1, learned.size))]))


def hexed(values: np.ndarray) -> list[str]:
    """All bits of doubles, as text."""
    return [float(value).hex() for value in values]


def _more(name: str) -> Callable[[Any], Any]:
    if name in LEARNERS:
        return lambda model: model.learn(ROWS[70:], _targets(model)[70:])
    if name in ALL_AT_ONCE:
        return lambda model: model.solve(ROWS, SIGNS, 5)
    targets = {
        "classes": TEXTS,
        "softmax": TEXTS,
        "softmax-l1": TEXTS,
        "softmax-net": TEXTS,
        "softmax-forget": TEXTS,
        "softmax-l2": TEXTS,
        "targets": np.column_stack([NUMBERS, SIGNS]),
        "poisson": np.floor(np.abs(NUMBERS)),
    }
    y = targets.get(name, NUMBERS if name in ("regressor", "standard", "quantile") else SIGNS)
    return lambda model: model.partial_fit(ROWS[:10], y[:10])


NAMED = ("one-hot", "hashed", "crossed", "crossed-text", "expanded")
# What each live model learns after it was loaded; those of tables learn no rows without names.
MORE = {name: _more(name) for name in (*LEARNERS, *ESTIMATORS) if name not in NAMED}


def _solver(model: Any) -> str:
    spec = getattr(model, "learner_", model).spec["solver"]
    return SOLVERS[spec.partition(",")[0]].solver.__name__ if isinstance(spec, str) else type(spec).__name__


# Models as pickles of the first release's modules hold them.
PICKLED: dict[str, Callable[[], Any]] = {
    "learner": lambda: learner("comid-net-average"),
    "parts": lambda: learner("parts-comid"),
    "classifier": ESTIMATORS["classes"],
    "regressor": ESTIMATORS["regressor"],
    "path": lambda: PenaltyPath(OnlineClassifier(random_state=0), [L1, NET]).fit(ROWS, SIGNS),
}


def predicted(model: Any) -> list[Any]:
    """What a model that was pickled makes of the rows."""
    return np.asarray(model.predict(ROWS[:12])).ravel().tolist()


def main(names: list[str]) -> None:
    """Write the files of these names (``pickle:NAME`` for pickles) and what they must give."""
    file = HERE / "scores.json"
    found: dict[str, Any] = json.loads(file.read_text())
    for name in names:
        if name.startswith("pickle:"):
            model = PICKLED[name.removeprefix("pickle:")]()
            (HERE / f"{name.removeprefix('pickle:')}.pickle").write_bytes(pickle.dumps(model, protocol=4))
            found[name] = predicted(model)
            continue
        model = learner(name) if name in LEARNERS else ESTIMATORS[name]()
        model.save(HERE / f"{name}.onlinear")
        found[name] = {"solver": _solver(model), "scores": hexed(scores(model))}
        if name in FINAL:
            model.save(HERE / f"{name}-final.onlinear", final=True)
            found[f"{name}-final"] = {"solver": _solver(model), "scores": hexed(scores(model))}
        if name in MORE:
            MORE[name](model)
            found[name]["then"] = hexed(scores(model))
    file.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
