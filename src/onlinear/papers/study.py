"""All runs of an experiment: facts, grids, repetitions; and their results as series that formulas name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from onlinear.papers.data import Where, missing
from onlinear.papers.data_spec import DataSpec
from onlinear.papers.experiments import Experiment, ExperimentError, Method, as_list
from onlinear.papers.expressions import ExpressionError, NotThereError, Series, evaluate, fill
from onlinear.papers.measures import MEASURES
from onlinear.papers.problems import FACTS
from onlinear.papers.runs import FactSpec, MapSpec, RunSpec, Task, checkpoints_of

FRESH = 1000  # repetitions of a fresh selection are numbered from here
Do = Callable[[list[Task]], list[dict[str, Any]]]


def identifier(name: str) -> str:
    """A measure's name in formulas: 'test error' -> 'test_error', 'theorem 3.2 share' -> 'theorem_3_2_share'."""
    return re.sub(r"\W", "_", name)


@dataclass
class Curve:
    """A method on a problem: its runs and their results."""

    method: Method
    spec: RunSpec  # of the first repetition
    point: dict[str, Any]
    results: list[dict[str, Any]]
    grid: list[tuple[dict[str, Any], list[dict[str, Any]]]] = field(default_factory=list)
    derived: dict[str, Series] = field(default_factory=dict)
    read: dict[str, Series] = field(default_factory=dict)

    def series(self, name: str) -> Series:
        """A measure, or a series of the file, at the checkpoints that all repetitions have."""
        if name in self.derived:
            return self.derived[name]
        if name not in self.read:
            self.read[name] = self._from_results(name)
        return self.read[name]

    def _from_results(self, name: str) -> Series:
        found = [result for result in self.results if result["t"]]
        if not found or name not in found[0]["series"]:
            raise NotThereError(f"the method {self.method.name!r} has no measure {name!r} here.")
        common = set.intersection(*(set(result["t"]) for result in found))
        t = sorted(common)
        values = [[result["series"][name][k] for k, at in enumerate(result["t"]) if at in common] for result in found]
        if all(result["out_of_time"] for result in found):
            end = float(np.mean([result["t"][-1] for result in found]))
            if not t or end > t[-1]:  # where the time ended, a step of each run's own
                t.append(end)
                for one, result in zip(values, found, strict=True):
                    one.append(result["series"][name][-1])
        return Series(np.array(t, dtype=float), np.array(values, dtype=float))

    @property
    def names(self) -> list[str]:
        """The measures and series there are."""
        return [*(self.results[0]["series"] if self.results else ()), *self.derived]


@dataclass
class StudyProblem:
    """A data set with a case: facts, constants and curves."""

    data: DataSpec
    case: dict[str, Any]
    facts: dict[str, float]
    constants: dict[str, Any]
    curves: dict[str, Curve] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The data's name and the case."""
        parts = [f"{key} = {value:g}" if _number(value) else f"{key} = {value}" for key, value in self.case.items()]
        return ", ".join([self.data.name, *(part.replace("_", " ") for part in parts)])

    def matches(self, data: Iterable[str] | None, only: Mapping[str, Any]) -> bool:
        """Whether the data is among the names and the case's values among those wanted."""
        return (data is None or self.data.name in data) and all(self.case[key] in as_list(only[key]) for key in only)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@dataclass
class Study:
    """An experiment with its results."""

    experiment: Experiment
    problems: list[StudyProblem]
    maps: dict[str, list[list[float]]] = field(default_factory=dict)


class Names(Mapping[str, Any]):
    """The names that a formula on a problem may use: case values, facts, constants, the optimum, measures by method.

    ``left_out``: a repetition that series do without.
    """

    def __init__(
        self, study: Study, problem: StudyProblem, extra: Mapping[str, Any] | None = None, left_out: int | None = None
    ) -> None:
        self.study, self.problem, self.left_out = study, problem, left_out
        self.plain: dict[str, Any] = {"data": problem.data.name, **problem.case, **problem.facts, **problem.constants}
        for curve in problem.curves.values():
            for result in curve.results:
                self.plain = {**result["facts"], **self.plain}
        self.plain |= extra or {}
        self.measures = {identifier(name): name for curve in problem.curves.values() for name in curve.names}

    def __getitem__(self, name: str) -> Any:
        if name in self.plain:
            return self.plain[name]
        if name in self.measures:
            return ByMethod(self.study, self.problem, self.measures[name], self.left_out)
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        return name in self.plain or name in self.measures

    def __iter__(self) -> Iterator[str]:
        yield from self.plain
        yield from self.measures

    def __len__(self) -> int:
        return len(self.plain) + len(self.measures)


class ByMethod:
    """``gap["CSGD"]``: a measure of a method; ``gap["CSGD", "other data"]`` or ``gap["CSGD", 10]``: on another problem."""

    def __init__(self, study: Study, problem: StudyProblem, name: str, left_out: int | None) -> None:
        self.study, self.problem, self.name, self.left_out = study, problem, name, left_out

    def __getitem__(self, key: Any) -> Series:
        whole = self.curve(key).series(self.name)
        if self.left_out is None or len(whole.values) < 2:
            return whole
        return Series(whole.t, np.delete(whole.values, self.left_out, axis=0))

    def curve(self, key: Any) -> Curve:
        """The curve that a subscript names."""
        method, *places = key if isinstance(key, tuple) else (key,)
        problem = self.problem if not places else self._other(places)
        if method not in problem.curves:
            raise NotThereError(f"there is no method {method!r} on {problem.title}; there is {', '.join(problem.curves)}.")
        return problem.curves[method]

    def _other(self, places: list[Any]) -> StudyProblem:
        for problem in self.study.problems:
            tags = [problem.data.name, *problem.case.values()]
            if all(place in tags for place in places) and (
                any(isinstance(place, str) and place == problem.data.name for place in places)
                or problem.data.name == self.problem.data.name
            ):
                return problem
        raise NotThereError(f"there is no problem {places!r}.")


def grid_functions() -> dict[str, Callable[..., Any]]:
    """Functions of formulas that look at a method's grid or run."""

    def points(measure: ByMethod, method: Any) -> np.ndarray:
        """The final value at every grid point, in the grid's order (mean over the selection's repetitions)."""
        return np.array([_final(results, measure.name) for _, results in measure.curve(method).grid])

    def decades(measure: ByMethod, method: Any, within: float) -> float:
        """The width of the grid, in decades of its first setting, on which the value is within a share of the best."""
        curve = measure.curve(method)
        values = points(measure, method)
        settings = np.array([float(next(iter(point.values()))) for point, _ in curve.grid])
        good = settings[values <= np.min(values) * (1.0 + within)]
        return float(np.log10(good.max() / good.min())) if len(good) else 0.0

    def setting(measure: ByMethod, method: Any, name: str) -> float:
        """The value that the grid's best point, or the method's ``values``, give a setting."""
        point = measure.curve(method).point
        if name not in point:
            raise NotThereError(f"there is no setting {name!r} of {method!r}.")
        return point[name]

    def steps(measure: ByMethod, method: Any) -> float:
        """The last checkpoint of a method."""
        return float(measure.curve(method).series(measure.name).t[-1])

    return {"points": points, "decades": decades, "setting": setting, "steps": steps, "t": _times}


def _times(x: Series) -> Series:
    return Series(x.t, np.broadcast_to(x.t, x.values.shape))


def _final(results: list[dict[str, Any]], name: str) -> float:
    return float(np.mean([result["series"][name][-1] if result["t"] else np.inf for result in results]))


GRID_FUNCTIONS = grid_functions()


def value_of(text: str, names: Mapping[str, Any]) -> Any:
    """The value of a formula on results."""
    return evaluate(text, names, GRID_FUNCTIONS)


# --- planning --------------------------------------------------------------------------------------------------------


def missing_requirements(experiment: Experiment, where: Where) -> list[str]:
    """The requirements of an experiment that are missing."""
    return list(dict.fromkeys(text for spec in experiment.data if (text := missing(spec, where)) is not None))


def facts_named(experiment: Experiment) -> tuple[str, ...]:
    """The facts that the experiment's formulas name."""
    words = set(re.findall(r"\w+", repr(experiment)))
    return tuple(name for name in FACTS if name in words)


def conduct(experiment: Experiment, do: Do) -> Study:
    """Run everything: facts, then grids, then repetitions. ``do`` performs tasks (in parallel) and keeps their results."""
    facts = facts_named(experiment)
    found = do([FactSpec(spec, experiment.seed, facts) for spec in experiment.data])
    study = Study(experiment, [])
    for spec, result in zip(experiment.data, found, strict=True):
        for case in experiment.case_values():
            names: dict[str, Any] = {**case, **result["facts"]}
            constants: dict[str, Any] = {}
            for key, value in experiment.constants.items():
                constants[key] = evaluate(value, {**names, **constants}) if isinstance(value, str) else value
            study.problems.append(StudyProblem(spec, case, result["facts"], constants))
    wanted = [(problem, method) for problem in study.problems for method in experiment.method
              if method.data is None or problem.data.name in method.data]  # fmt: skip
    chosen = shared(wanted, select(experiment, wanted, do))
    specs = [
        run_spec(experiment, problem, method, point, repetition)
        for (problem, method), (point, _) in zip(wanted, chosen, strict=True)
        for repetition in range(experiment.repetitions)
    ]
    results = iter(do(list(specs)))
    first = iter(specs[:: experiment.repetitions])
    for (problem, method), (point, grid) in zip(wanted, chosen, strict=True):
        runs = [next(results) for _ in range(experiment.repetitions)]
        own = method_values(problem, method, point)
        problem.curves[method.name] = Curve(method, next(first), own, runs, grid)
    for problem in study.problems:
        derive(study, problem)
    draw_maps(study, do)
    return study


def grid_points(method: Method, problem: StudyProblem) -> list[dict[str, Any]]:
    """Every combination of a method's grid; values may be formulas."""
    names = {**problem.case, **problem.facts, **problem.constants}
    values = []
    for value in method.grid.values():
        if isinstance(value, Mapping):
            factor = value["times"]
            factor = evaluate(factor, names) if isinstance(factor, str) else factor
            values.append([factor * x for x in as_list(value["of"])])
        else:
            values.append([evaluate(x, names) if isinstance(x, str) else x for x in as_list(value)])
    return [dict(zip(method.grid, point, strict=True)) for point in product(*values)]


def select(
    experiment: Experiment, wanted: list[tuple[StudyProblem, Method]], do: Do
) -> list[tuple[dict[str, Any], list[tuple[dict[str, Any], list[dict[str, Any]]]]]]:
    """The best grid point of each method on each problem, and all points with their runs."""
    rule = experiment.select
    first = FRESH if rule.fresh else 0
    repetitions = range(first, first + rule.repetitions)
    grids = [grid_points(method, problem) if method.grid else [] for problem, method in wanted]
    specs = [
        run_spec(experiment, problem, method, point, repetition, selecting=True)
        for (problem, method), grid in zip(wanted, grids, strict=True)
        for point in grid
        for repetition in repetitions
    ]
    results = iter(do(list(specs)))
    chosen: list[Any] = []
    for (_, method), grid in zip(wanted, grids, strict=True):
        tried = [(point, [next(results) for _ in repetitions]) for point in grid]
        if not tried:
            chosen.append(({}, []))
            continue
        values = [_final(runs, rule.measure) for _, runs in tried]
        values = [value if np.isfinite(value) else np.inf for value in values]
        if not np.isfinite(min(values)):
            raise ExperimentError(f"{experiment.name}: every grid point of {method.name!r} diverged.")
        chosen.append((tried[int(np.argmin(values))][0], tried))
    return chosen


def shared(wanted: list[tuple[StudyProblem, Method]], chosen: list[Any]) -> list[Any]:
    """The chosen points, those of a method with ``settings_of`` taken from the method that it names, on the same problem."""
    found = {(id(problem), method.name): point for (problem, method), (point, _) in zip(wanted, chosen, strict=True)}
    return [
        (found[id(problem), method.settings_of], []) if method.settings_of else (point, grid)
        for (problem, method), (point, grid) in zip(wanted, chosen, strict=True)
    ]


def method_values(problem: StudyProblem, method: Method, point: dict[str, Any]) -> dict[str, Any]:
    """A method's ``values`` and its grid point; a value may name the values before it, and the point."""
    names = {**problem.case, **problem.facts, **problem.constants, **point}
    found = dict(point)
    for key, value in method.values.items():
        found[key] = evaluate(value, {**names, **found}) if isinstance(value, str) else value
    return found


def steps_of(value: Any, names: Mapping[str, Any]) -> int:
    """A number of steps from a number or a formula."""
    found = evaluate(value, names) if isinstance(value, str) else value
    if found is None or found < 1:
        raise ExperimentError(f"steps must be a number or a formula of at least 1, got {value!r}.")
    return round(found)


def run_spec(
    experiment: Experiment,
    problem: StudyProblem,
    method: Method,
    point: dict[str, Any],
    repetition: int,
    selecting: bool = False,
) -> RunSpec:
    """The specification of one run."""
    names = {**problem.case, **problem.facts, **problem.constants, **method_values(problem, method, point)}
    whole = steps_of(method.steps if experiment.steps is None else experiment.steps, names)
    steps = steps_of(method.steps, names) if method.steps is not None else whole
    names["steps"] = float(steps)
    checkpoints = (*(t for t in checkpoints_of(experiment.checkpoints, whole) if t < steps), steps)
    measures = experiment.measures
    if selecting:
        checkpoints = (min(steps, experiment.select.at or steps),)
        plain = [name for name in measures if MEASURES[name].tracker is None and not name.startswith("wrong ")]
        measures = tuple(dict.fromkeys([experiment.select.measure, *([] if experiment.select.alone else plain)]))
    return RunSpec(
        data=problem.data,
        data_seed=experiment.seed + (repetition if problem.data.redraw else 0),
        solver=fill(method.solver, names),
        loss=fill(method.loss, names),
        penalty=fill(method.penalty, names),
        average=fill(method.average, names) if method.average is not None else None,
        scale=method.scale,
        intercept=method.intercept,
        order=method.order or experiment.order,
        seed=(experiment.seed, repetition, 1),
        checkpoints=checkpoints,
        measures=measures,
        seconds=evaluate(method.seconds, names) if isinstance(method.seconds, str) else method.seconds,
    )


def derive(study: Study, problem: StudyProblem) -> None:
    """The file's own series, method by method; a formula that a method has no measures for leaves none."""
    for key, text in study.experiment.series.items():
        for curve in problem.curves.values():
            own = {identifier(name): curve.series(name) for name in curve.names}
            facts = {name: value for result in curve.results for name, value in result["facts"].items()}
            plain = {**problem.case, **problem.facts, **problem.constants, **facts, **curve.point}
            names = {**Names(study, problem, plain).plain, **own, "method": curve.method.name}
            if own:
                some = next(iter(own.values()))
                names["t"] = _times(some)
            try:
                value = evaluate(text, names, {**GRID_FUNCTIONS, "every": _every(problem)})
            except ExpressionError as error:
                if "is not known" in str(error) and any(identifier(m) in text for m in study.experiment.measures):
                    continue
                raise ExperimentError(f"{study.experiment.name}.toml: series {key!r}: {error}") from None
            if not isinstance(value, Series):
                value = some.combine(value, lambda a, b: np.zeros_like(a) + b)
            curve.derived[key] = value


def _every(problem: StudyProblem) -> Callable[..., Any]:
    def every(name: str) -> float:
        """The least finite value of a measure over all methods of the problem."""
        found = [curve.series(name).values for curve in problem.curves.values() if name in curve.names]
        return float(min(np.min(values[np.isfinite(values)]) for values in found))

    return every


def draw_maps(study: Study, do: Do) -> None:
    """Maps of the test rows for the panels that show one."""
    panels = [panel for figure in study.experiment.figure for panel in figure.panel if panel.kind == "map"]
    wanted = {problem.data.name: problem.data for panel in panels for problem in study.problems
              if problem.matches(panel.data, panel.only)}  # fmt: skip
    rows = study.experiment.constants.get("map_rows")
    specs: list[Task] = [MapSpec(spec, study.experiment.seed, int(rows) if rows else None) for spec in wanted.values()]
    for name, found in zip(wanted, do(specs), strict=True):
        study.maps[name] = found["map"]
