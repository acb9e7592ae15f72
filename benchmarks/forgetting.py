"""Forgetting: electricity prices in the order of time, beside River's linear models, and sets that do not change.

    python benchmarks/forgetting.py --data FOLDER [--only TABLES] [--write docs/tutorials/drift.md] [--json FILE]

Time: blocks of 100 rows are predicted by the model as it would be saved, then learned; and row by row. Rows that do not change:
5 random orders, a fifth held out, one pass with and without a half-life of 100,000 rows. Generated rows: 20,000 rows of six
columns whose weights or level change, each row predicted before it is learned, beside River and Vowpal Wabbit; and rows of one
class alone, before the other one comes. Pairs: five draws of these streams, by models of River alone, onlinear's among them.
"""

from __future__ import annotations

import json
import lzma
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_svmlight_file

from onlinear import OnlineClassifier, OnlineRegressor, QualityWarning
from options import parser_of
from pages import fill

BLOCK, ORDERS, DRAWS, LONG = 100, 5, 5, 1e5
GENERATED, COLUMNS, ALONE = 20_000, 6, (100, 1000, 10_000, 100_000)
QUIET = 400_000  # rows before a late change
STILL = ("a9a/a9a", "phishing/phishing", "spambase/spambase", "mushrooms/mushrooms", "covtype/covtype.part")
STILL_NUMBERS = ("cadata/cadata", "cpusmall/cpusmall", "abalone/abalone", "space_ga/space_ga")
OURS: tuple[dict[str, Any], ...] = (
    {},
    {"forget": 1000},
    {"forget": 30},
    {"forget": 10},
    {"forget": 10, "average": "uniform"},
    {"forget": 30, "solver": "ftrl,eta=2", "average": "uniform"},
    {"forget": 1, "average": "none"},
    {"forget": 30, "scale": "rms"},
    {"solver": "mixture"},
)
LATE: tuple[dict[str, Any], ...] = ({}, {"forget": 10_000}, {"forget": 1000}, {"forget": 1000, "eta": 2}, {"solver": "mixture"})
RETURNS: tuple[dict[str, Any], ...] = (
    {},
    {"forget": 1000},
    {"forget": 300},
    {"forget": 30},
    {"forget": 300, "solver": "ftrl,eta=2"},
    {"forget": 300, "solver": "rda"},
    {"forget": 300, "loss": "hinge"},
    {"solver": "mixture"},
)


def label(settings: dict[str, Any]) -> str:
    """The settings as a table names them."""
    return f"`{', '.join(f'{name}={json.dumps(value)}' for name, value in settings.items())}`" if settings else "the default"


def load(folder: Path, name: str) -> tuple[sp.csr_matrix, np.ndarray]:
    with lzma.open(folder / f"{name}.svm.xz") as file:
        return load_svmlight_file(file)


def in_blocks(X: np.ndarray, y: np.ndarray, settings: dict[str, Any]) -> float:
    """The share of wrong predictions of rows in blocks, each block predicted before it is learned."""
    model, classes, wrong = OnlineClassifier(**settings), np.unique(y), 0
    for first in range(0, len(y), BLOCK):
        rows = slice(first, first + BLOCK)
        said = model.predict(X[rows]) if first else classes[0]
        wrong += int(np.sum(said != y[rows]))
        model.partial_fit(X[rows], y[rows], classes=classes)
    return wrong / len(y)


def row_by_row(X: np.ndarray, y: np.ndarray, settings: dict[str, Any]) -> float:
    """The share of wrong predictions of rows, each predicted before it is learned."""
    learner = OnlineClassifier(**settings).partial_fit(X[:1], y[:1], classes=np.unique(y)).learner_
    _, predicted = learner.learn_checked(*learner.check_input(X[1:], y[1:], None))
    return float(np.mean((predicted[0] > 0.0) != (y[1:] > 0.0)))


def rivers() -> dict[str, Callable[[], Any]]:
    """River's linear classifiers with its optimisers, columns standardised; the best step sizes of a search are among these,
    and its trees for streams that change."""
    from river import forest, linear_model, optim, preprocessing, tree

    def scaled(model: Any) -> Any:
        return preprocessing.StandardScaler() | model

    def logistic(optimiser: Any) -> Callable[[], Any]:
        return lambda: scaled(linear_model.LogisticRegression(optimiser.clone()))

    return {
        "River, `LogisticRegression(SGD(0.01))`": logistic(optim.SGD(0.01)),
        "River, `LogisticRegression(SGD(1))`": logistic(optim.SGD(1.0)),
        "River, `LogisticRegression(AdaGrad(0.1))`": logistic(optim.AdaGrad(0.1)),
        "River, `LogisticRegression(Adam(0.01))`": logistic(optim.Adam(0.01)),
        "River, `LogisticRegression(FTRLProximal(0.5))`": logistic(optim.FTRLProximal(0.5)),
        "River, `PAClassifier(C=0.01)`": lambda: scaled(linear_model.PAClassifier(C=0.01, mode=1)),
        "River, `PAClassifier(C=1)`": lambda: scaled(linear_model.PAClassifier(C=1.0, mode=1)),
        "River, `Perceptron()`": lambda: scaled(linear_model.Perceptron()),
        "River, `ALMAClassifier()`": lambda: scaled(linear_model.ALMAClassifier()),
        "River, `HoeffdingAdaptiveTreeClassifier()`": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=0),
        "River, `ARFClassifier()`": lambda: forest.ARFClassifier(seed=0),
    }


def river_errors(make: Callable[[], Any], X: np.ndarray, y: np.ndarray) -> list[float]:
    """The same two shares of a model of River, from one run."""
    model, blocks, single = make(), 0, 0
    names = [str(j) for j in range(X.shape[1])]
    rows, targets = [dict(zip(names, row, strict=True)) for row in X.tolist()], (y > 0.0).tolist()
    for first in range(0, len(y), BLOCK):
        block = range(first, min(first + BLOCK, len(y)))
        blocks += sum(bool(model.predict_one(rows[i])) != targets[i] for i in block)
        for i in block:
            single += bool(model.predict_one(rows[i])) != targets[i]
            model.learn_one(rows[i], targets[i])
    return [blocks / len(y), single / len(y)]


def still(X: sp.csr_matrix, y: np.ndarray, kind: Any, settings: dict[str, Any]) -> tuple[float, float, float]:
    """1 - score on rows held out, without and with the half-life: the mean without, the mean difference, its standard error."""
    found = []
    for seed in range(ORDERS):
        order = np.random.default_rng(seed).permutation(len(y))
        held, learned = order[: len(y) // 5], order[len(y) // 5 :]
        models = [kind(shuffle=False, forget=forget, **settings).fit(X[learned], y[learned]) for forget in (None, LONG)]
        found.append([1.0 - model.score(X[held], y[held]) for model in models])
    without, forgets = np.array(found).T
    difference = forgets - without
    return float(without.mean()), float(difference.mean()), float(difference.std(ddof=1) / np.sqrt(ORDERS))


def changing(draw: int = 0) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rows (n, 6) and scores (n,) of streams that change, by how they do."""
    rng, t = np.random.default_rng(draw), np.arange(GENERATED)
    still = 1.5 * rng.normal(size=COLUMNS)
    walk = still + np.cumsum(0.03 * rng.normal(size=(GENERATED, COLUMNS)), axis=0)
    turns = np.where((t // 2000) % 2 == 0, 1.0, -1.0)
    found = {}
    for name, weights, level in (
        ("turn once", np.outer(np.where(t < GENERATED // 2, 1.0, -1.0), still), 0.0),
        ("turn every 2,000 rows", np.outer(turns, still), 0.0),
        ("walk", walk, 0.0),
        ("season of 2,000 rows", np.tile(still, (GENERATED, 1)), 4.0 * np.sin(2.0 * np.pi * t / 2000)),
        ("level rises by 5", np.tile(still, (GENERATED, 1)), np.where(t < GENERATED // 2, 0.0, 5.0)),
    ):
        X = rng.normal(size=(GENERATED, COLUMNS))
        found[name] = X, (X * weights).sum(axis=1) + level
    return found


def scored_by_us(settings: dict[str, Any]) -> Callable[..., np.ndarray]:
    """Scores of rows, each before it is learned; of targets -1 and 1 where they are ``signs``."""

    def scores(X: np.ndarray, y: np.ndarray, signs: bool) -> np.ndarray:
        model = OnlineClassifier(**settings) if signs else OnlineRegressor(**settings)
        model.partial_fit(X[:1], y[:1], **({"classes": [-1.0, 1.0]} if signs else {}))
        learner = model.learner_
        return np.append(0.0, learner.learn_checked(*learner.check_input(X[1:], y[1:], None))[1][0])

    return scores


def scored_by_model(make: Callable[[bool], Any]) -> Callable[..., np.ndarray]:
    """The same of a model of River, of classes or of numbers."""

    def scores(X: np.ndarray, y: np.ndarray, signs: bool) -> np.ndarray:
        model, found, names = make(signs), [], [str(j) for j in range(X.shape[1])]
        for values, target in zip(X.tolist(), y.tolist(), strict=True):
            row = dict(zip(names, values, strict=True))
            if signs:
                chances = model.predict_proba_one(row)  # a tree knows the classes that came
                chance = min(max(chances.get(True, 0.0) if chances else 0.5, 1e-15), 1.0 - 1e-15)
                found.append(np.log(chance / (1.0 - chance)))
            else:
                found.append(model.predict_one(row))
            model.learn_one(row, target > 0.0 if signs else target)
        return np.array(found)

    return scores


def scored_by_river(optimiser: str, rate: float) -> Callable[..., np.ndarray]:
    """The same of River's linear models, columns standardised; ``rate``: the step size, of the intercept too."""

    def make(signs: bool) -> Any:
        from river import linear_model, optim, preprocessing

        linear = linear_model.LogisticRegression if signs else linear_model.LinearRegression
        return preprocessing.StandardScaler() | linear(getattr(optim, optimiser)(rate), intercept_lr=rate)

    return scored_by_model(make)


def scored_by_tree(signs: bool) -> Any:
    """River's tree that grows anew where it errs more than it did."""
    from river import tree

    return (tree.HoeffdingAdaptiveTreeClassifier if signs else tree.HoeffdingAdaptiveTreeRegressor)(seed=0)


def scored_in_river(settings: dict[str, Any]) -> Callable[..., np.ndarray]:
    """The same of the models of ``onlinear.river``."""

    def make(signs: bool) -> Any:
        from onlinear.river import Classifier, Regressor

        return Classifier(**settings) if signs else Regressor(**settings)

    return scored_by_model(make)


def scored_by_vowpal(options: str) -> Callable[..., np.ndarray]:
    """The same of Vowpal Wabbit."""

    def scores(X: np.ndarray, y: np.ndarray, signs: bool) -> np.ndarray:
        from vowpalwabbit import Workspace

        model, found = Workspace(f"--quiet {options} --loss_function {'logistic' if signs else 'squared'}"), []
        for values, target in zip(X.tolist(), y.tolist(), strict=True):
            row = " ".join(f"{j}:{value:.9g}" for j, value in enumerate(values))
            example = model.parse(f"{target:.9g} | {row}")
            model.learn(example)
            found.append(example.get_partial_prediction() if signs else example.get_simplelabel_prediction())
            model.finish_example(example)
        model.finish()
        return np.array(found)

    return scores


TOOLS: dict[str, Callable[..., np.ndarray]] = {
    **{
        label(settings): scored_by_us(settings)
        for settings in ({}, {"forget": 10_000}, {"forget": 1000}, {"forget": 100}, {"solver": "mixture"})
    },
    **{
        f"River, `{name}({rate})`": scored_by_river(name, rate) for name, rate in (("SGD", 0.01), ("SGD", 0.05), ("Adam", 0.02))
    },
    "Vowpal Wabbit": scored_by_vowpal(""),
    **{
        f"Vowpal Wabbit, `{options}`": scored_by_vowpal(options)
        for options in ("--power_t 0 -l 0.1", "--sgd --power_t 0 -l 0.02")
    },
}
OF_NUMBERS: dict[str, Callable[..., np.ndarray]] = {  # whose own step size is 8
    label(settings): scored_by_us(settings)
    for settings in [{"forget": half_life, "eta": eta} for half_life in (1000, 100) for eta in (2, 1)]
}


IN_RIVER: dict[str, Callable[..., np.ndarray]] = {  # models of onlinear.river; all others are compared with the first
    label(settings).replace("the default", "no half-life"): scored_in_river(settings)
    for settings in ({"forget": 1000}, {"forget": 100}, {})
}
SMALL_STEPS: dict[str, Callable[..., np.ndarray]] = {  # of numbers
    label(settings): scored_in_river(settings)
    for settings in (
        {"forget": 1000, "eta": 1},
        {"forget": 1000, "eta": 1, "average": "adaptive"},
    )
}
OF_RIVER: dict[str, Callable[..., np.ndarray]] = {
    **{name: tool for name, tool in TOOLS.items() if name.startswith("River")},
    "River, `HoeffdingAdaptiveTree`": scored_by_model(scored_by_tree),
}


def losses(tool: Callable[..., np.ndarray], signs: bool, draw: int = 0) -> list[float]:
    """The mean log loss, or squared error, of each stream that changes: noise alone has a squared error of 1."""
    found, rng = [], np.random.default_rng(draw + 1)
    for X, scores in changing(draw).values():
        if signs:
            y = np.where(scores + rng.logistic(size=GENERATED) > 0.0, 1.0, -1.0)
            found.append(float(np.mean(np.logaddexp(0.0, -y * tool(X, y, True)))))
        else:
            y = scores + rng.normal(size=GENERATED)
            found.append(float(np.mean(np.square(y - tool(X, y, False)))))
    return found


def returning(settings: dict[str, Any], alone: int) -> int:
    """After so many rows of one class: how many of the other come before the model expects it."""
    X = np.random.default_rng(0).normal(size=(alone + GENERATED, 2))
    y = np.where(np.arange(len(X)) < alone, -1.0, 1.0)
    right = scored_by_us(settings)(X, y, True)[alone:] > 0.0
    return int(np.argmax(right)) if right.any() else GENERATED


def late(settings: dict[str, Any], signs: bool) -> float:
    """The mean loss of rows whose weights walk, after many rows of weights that stand still."""
    rng = np.random.default_rng(0)
    still = 1.5 * rng.normal(size=COLUMNS)
    steps = 0.03 * rng.normal(size=(GENERATED, COLUMNS))
    X = rng.normal(size=(QUIET + GENERATED, COLUMNS))
    scores = np.append(X[:QUIET] @ still, (X[QUIET:] * (still + np.cumsum(steps, axis=0))).sum(axis=1))
    noise = rng.logistic(size=len(scores)) if signs else rng.normal(size=len(scores))
    y = np.where(scores + noise > 0.0, 1.0, -1.0) if signs else scores + noise
    found = scored_by_us(settings)(X, y, signs)[QUIET:]
    lost = np.logaddexp(0.0, -y[QUIET:] * found) if signs else np.square(y[QUIET:] - found)
    return float(lost.mean())


def generated() -> tuple[str, dict[str, Any]]:
    """The tables of generated rows, and their numbers."""
    found: dict[str, Any] = {}
    names = list(changing())
    lines = []
    for signs, measure in ((True, "classes, log loss"), (False, "numbers, squared error")):
        lines += [f"| {measure} | {' | '.join(names)} |", "|---|" + "---:|" * len(names)]
        for name, tool in (TOOLS if signs else OF_NUMBERS | TOOLS).items():
            found[f"{measure}: {name}"] = values = losses(tool, signs)
            lines.append(f"| {name} | {' | '.join(f'{value:.3f}' for value in values)} |")
        lines.append("")
    lines += ["| a walk after 400,000 rows that stand still | log loss | squared error |", "|---|---:|---:|"]
    for settings in LATE:
        found[f"late: {label(settings)}"] = both = [late(settings, signs) for signs in (True, False)]
        lines.append(f"| {label(settings)} | {both[0]:.3f} | {both[1]:.3f} |")
    lines.append("")
    lines += [f"| rows of one class before | {' | '.join(f'{n:,}' for n in ALONE)} |", "|---|" + "---:|" * len(ALONE)]
    for settings in RETURNS:
        found[f"returning: {label(settings)}"] = rows = [returning(settings, alone) for alone in ALONE]
        lines.append(f"| {label(settings)} | {' | '.join(f'{n:,}' for n in rows)} |")
    return "\n".join(lines), found


def drawn() -> tuple[str, dict[str, Any]]:
    """The tables of models of River on streams that are drawn anew, and their numbers: the mean losses of the first model, and
    how far those of the others are above, with standard errors."""
    found: dict[str, Any] = {}
    lines = []
    for signs, measure in ((True, "classes, log loss"), (False, "numbers, squared error")):
        lines += [f"| {measure}, {DRAWS} draws | {' | '.join(changing())} |", "|---|" + "---:|" * len(changing())]
        first = None
        for name, tool in (IN_RIVER | ({} if signs else SMALL_STEPS) | OF_RIVER).items():
            found[f"drawn, {measure}: {name}"] = values = [losses(tool, signs, draw) for draw in range(DRAWS)]
            if first is None:
                first = np.array(values)
                shown = [f"{mean:.3f}" for mean in first.mean(axis=0)]
            else:
                above = np.array(values) - first
                errors = above.std(axis=0, ddof=1) / np.sqrt(DRAWS)
                shown = [f"{mean:+.3f} ({error:.3f})" for mean, error in zip(above.mean(axis=0), errors, strict=True)]
            lines.append(f"| {name} | {' | '.join(shown)} |")
        lines.append("")
    return "\n".join(lines), found


def real(folder: Path) -> tuple[str, dict[str, Any]]:
    """The tables of data sets, and their numbers."""
    found: dict[str, Any] = {}
    X, y = load(folder, "electricity/electricity")
    X = X.toarray()
    for settings in OURS:
        found[label(settings)] = [in_blocks(X, y, settings), row_by_row(X, y, settings)]
    for name, make in rivers().items():
        found[name] = river_errors(make, X, y)
    lines = ["| electricity, 45,312 rows | error in blocks of 100 | row by row |", "|---|---:|---:|"]
    lines += [f"| {name} | {blocks:.4f} | {row:.4f} |" for name, (blocks, row) in found.items()]
    lines += [
        "",
        "| rows in random order | without | difference with `forget=100_000` | standard error |",
        "|---|---:|---:|---:|",
    ]
    for names, kind, settings in (
        (STILL, OnlineClassifier, {"solver": "implicit-ftrl,eta=2"}),
        (STILL_NUMBERS, OnlineRegressor, {}),
    ):
        for name in names:
            found[name] = list(still(*load(folder, name), kind, settings))
            without, difference, error = found[name]
            lines.append(f"| {name.partition('/')[0]} | {without:.4f} | {difference:+.5f} | {error:.5f} |")
    return "\n".join(lines), found


def main() -> int:
    parser = parser_of(__doc__, page=True)
    parser.add_argument("--data", default=os.environ.get("ONLINEAR_DATA"))
    parser.add_argument("--only", choices=["changing", "drawn", "forgetting"], help="one of the parts")
    args = parser.parse_args()
    if args.only in (None, "forgetting") and args.data is None:
        parser.error("--data is needed.")
    warnings.simplefilter("ignore", QualityWarning)
    found: dict[str, Any] = {}
    measured = {"changing": generated, "drawn": drawn, "forgetting": lambda: real(Path(args.data))}
    for marker in [args.only] if args.only else measured:
        text, numbers = measured[marker]()
        print(text)
        found |= numbers
        if args.write:
            fill(args.write, marker, text)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
