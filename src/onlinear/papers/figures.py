"""Curves as SVG by matplotlib. A method has one colour in all figures, by its family; members differ by line style."""

from __future__ import annotations

import io
import math
import warnings
from typing import Any

import numpy as np

from onlinear.papers.experiments import Experiment, Figure, Panel
from onlinear.papers.measures import MEASURES
from onlinear.papers.study import Curve, Names, Study, StudyProblem, value_of

# Okabe and Ito's colours and their neighbours: told apart by colour-blind readers, and in grey by line style.
COLOURS = {
    "SGD": "#7f7f7f",
    "ASGD": "#a6761d",
    "SGD-W": "#56b4e9",
    "SGD-suffix": "#8c6bb1",
    "Epoch-GD": "#b15928",
    "Pegasos": "#984ea3",
    "COMID": "#e69f00",
    "OPG": "#e69f00",
    "HRCOMID": "#e69f00",
    "HRMD-W": "#d55e00",
    "RDA": "#009e73",
    "CSGD": "#d55e00",
    "NCSGD": "#0072b2",
    "2SGD": "#000000",
    "RLS": "#000000",
    "Adaline": "#7f7f7f",
    "C-Adaline": "#d55e00",
    "FIOL": "#d55e00",
    "Alg. 1": "#d55e00",
    "Alg. 2": "#cc79a7",
    "I-SGD": "#0072b2",
    "PA": "#66a61e",
    "SADMM": "#0072b2",
    "OADM": "#7570b3",
    "oDRs": "#d55e00",
    "sDRs": "#e69f00",
    "ioDRs": "#0072b2",
    "isDRs": "#56b4e9",
    "DRs": "#000000",
}
SPARE = ("#1b9e77", "#e7298a", "#66a61e", "#a6761d", "#17becf", "#bcbd22")
LINES = ("-", "--", ":", "-.")
BOUNDS = tuple((0, dashes) for dashes in ((1, 1.5), (7, 2), (5, 1.5, 1, 1.5), (3, 1), (9, 1.5, 1, 1.5, 1, 1.5), (1, 4)))
LONG_TITLE = 48  # characters that fit a panel's width
AXES = {"samples": "samples", "steps": "steps", "time": "CPU time (s)"}
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "onlinear",
    "font.family": "sans-serif",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.edgecolor": "#888888",
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "figure.dpi": 100,
}


def family(method: Any) -> str:
    """The family that decides a method's colour: its ``family``, or its name up to a bracket or comma."""
    return method.family or method.name.split("(")[0].split(",")[0].split(" rho")[0].split(" lam")[0].strip()


def styles(experiment: Experiment) -> dict[str, tuple[str, str]]:
    """Colour and line style of each method, no two alike.

    A family keeps its colour in all experiments; where two families of one experiment share it, the later takes the next
    line style, and where all are taken, the next spare colour.
    """
    spare = iter(SPARE * 10)
    found: dict[str, tuple[str, str]] = {}
    own: dict[str, str] = {}
    set_by_hand = {(method.colour, method.line) for method in experiment.method if method.colour and method.line}
    for method in experiment.method:
        name = family(method)
        if name not in COLOURS and name not in own:
            own[name] = next(spare)
        colour = method.colour or COLOURS.get(name) or own[name]
        taken = {*found.values(), *(set_by_hand - {(method.colour, method.line)})}
        wanted = ((hue, line) for hue in (colour, *SPARE) for line in ([method.line] if method.line else LINES))
        found[method.name] = next(look for look in wanted if look not in taken)
    return found


def panels_of(study: Study, figure: Figure) -> list[tuple[Panel, StudyProblem]]:
    """Each panel with each problem that it is drawn for."""
    found: list[tuple[Panel, StudyProblem]] = []
    for panel in figure.panel:
        covered = [problem for problem in study.problems if problem.matches(panel.data, panel.only) and problem.curves]
        found += [(panel, problem) for problem in (covered[:1] if panel.kind == "problems" else covered)]
    return found


def columns_of(study: Study, figure: Figure) -> int:
    """The number of panels side by side."""
    return min(figure.columns, max(len(panels_of(study, figure)), 1))


def draw(study: Study, figure: Figure) -> tuple[str, list[list[Any]]]:
    """The figure as SVG text, and all its numbers as rows for a CSV."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    parts = panels_of(study, figure)
    columns = columns_of(study, figure)
    lines = math.ceil(len(parts) / columns)
    rows: list[list[Any]] = []
    with matplotlib.rc_context(STYLE):
        canvas, axes = plt.subplots(lines, columns, figsize=(4.3 * columns, 3.1 * lines), squeeze=False, layout="constrained")
        look = styles(study.experiment)
        handles: dict[str, Any] = {}
        for axis, (panel, problem) in zip(axes.ravel(), parts, strict=False):
            several = len({problem.title for _, problem in parts}) > 1 and panel.kind != "problems"
            title = " · ".join(text for text in (panel.title, problem.title if several else None) if text)
            title = (f"{title} (substitute)" if problem.data.substitute_for else title).strip()
            axis.set_title(title, fontsize=STYLE["axes.titlesize"] * min(1.0, LONG_TITLE / max(len(title), 1)))
            DRAW[panel.kind](axis, study, panel, problem, look, handles, rows)
        for axis in axes.ravel()[len(parts) :]:
            axis.axis("off")
        if handles:
            longest = max(map(len, handles))
            width = max(1, min(len(handles), int(columns * 4.3 / max(1.35, 0.6 + 0.075 * longest))))
            canvas.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=width, markerscale=2.0)
        text = io.StringIO()
        canvas.savefig(text, format="svg", dpi=200, metadata={"Date": None, "Creator": None})
        plt.close(canvas)
    svg = text.getvalue()
    return svg[svg.index("<svg") :], rows


def label(name: str) -> str:
    """An axis label."""
    return AXES.get(name) or (MEASURES[name].label if name in MEASURES else name)


def scales(axis: Any, panel: Panel) -> None:
    """Log axes, ranges, labels."""
    if "x" in panel.log:
        axis.set_xscale("log")
    if "y" in panel.log:
        axis.set_yscale("log")
    if panel.x_range:
        axis.set_xlim(*panel.x_range)
    if panel.y_range and not any(isinstance(end, str) for end in panel.y_range):
        axis.set_ylim(*panel.y_range)
    axis.set_xlabel(panel.x_label or label(panel.x))
    axis.set_ylabel(panel.y_label or label(panel.y))


def curves_of(panel: Panel, problem: StudyProblem) -> list[Curve]:
    """The curves that a panel shows."""
    return [curve for name, curve in problem.curves.items() if panel.methods is None or name in panel.methods]


def curves(
    axis: Any, study: Study, panel: Panel, problem: StudyProblem, look: Any, handles: Any, rows: list[list[Any]]
) -> None:
    """A measure against samples, time or another measure; a band over repetitions; bounds dashed."""
    for place, curve in enumerate(curves_of(panel, problem)):
        if panel.y not in curve.names:
            continue
        series = curve.series(panel.y)
        x = series.t if panel.x == "steps" else curve.series(panel.x).values.mean(axis=0)
        colour, line = look[curve.method.name]
        values = np.where(np.isfinite(series.values), series.values, np.nan)
        if np.isnan(values).all():
            continue
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", category=RuntimeWarning)  # a checkpoint where no repetition has a value
            middle, low, high = band(values, panel.band, "y" in panel.log)
        (drawing,) = axis.plot(x, middle, color=colour, linestyle=line, label=curve.method.name)
        handles.setdefault(curve.method.name, drawing)
        if len(values) > 1 and panel.band != "none":
            axis.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
        rows += [
            [problem.title, curve.method.name, panel.y, repetition, t, at, value]
            for repetition, one in enumerate(series.values)
            for t, at, value in zip(series.t, x, one, strict=True)
        ]
        for nth, name in enumerate(panel.bounds):
            if name not in curve.names or curve.method.name not in (panel.bounded or [curve.method.name]):
                continue
            bound = curve.series(name)
            dashes = BOUNDS[(nth + place * len(panel.bounds)) % len(BOUNDS)]
            (drawing,) = axis.plot(x, bound.values.mean(axis=0), color=colour, linestyle=dashes, linewidth=1.1)
            handles.setdefault(f"{name} ({curve.method.name})", drawing)
            rows += [[problem.title, curve.method.name, name, "", t, at, value]
                     for t, at, value in zip(bound.t, x, bound.values.mean(axis=0), strict=True)]  # fmt: skip
    for name, given in panel.horizontal.items():
        level = level_of(given, study, problem)
        axis.axhline(level, color="#444444", linewidth=0.9, linestyle=(0, (4, 3)))
        axis.annotate(name, (1.0, level), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=7.5)
    scales(axis, panel)
    if panel.y_range:
        axis.set_ylim(*(level_of(end, study, problem) for end in panel.y_range))


def level_of(given: Any, study: Study, problem: StudyProblem) -> float:
    """A number, or the value of a formula on a problem."""
    return float(value_of(given, Names(study, problem)) if isinstance(given, str) else given)


def band(values: np.ndarray, kind: str, log: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Middle, low and high over repetitions: mean and standard deviation, or median and quartiles."""
    if kind == "quantiles":
        low, middle, high = np.nanquantile(values, [0.25, 0.5, 0.75], axis=0)
        return middle, low, high
    middle = values.mean(axis=0)
    sd = values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros_like(middle)
    low = np.maximum(middle - sd, values.min(axis=0)) if log else middle - sd  # a log axis has no room below 0
    return middle, low, middle + sd


def grid(axis: Any, study: Study, panel: Panel, problem: StudyProblem, look: Any, handles: Any, rows: list[list[Any]]) -> None:
    """The final value against the grid's first setting: how much the choice matters."""
    for curve in curves_of(panel, problem):
        tried = [(float(next(iter(point.values()))), results) for point, results in curve.grid]
        if not tried or panel.y not in tried[0][1][0]["series"]:
            continue
        x = np.array([value for value, _ in tried])
        y = np.array([np.mean([result["series"][panel.y][-1] for result in results]) for _, results in tried])
        colour, line = look[curve.method.name]
        shown = np.where(np.isfinite(y), y, np.nan)
        (drawing,) = axis.plot(x, shown, color=colour, linestyle=line, marker="o", markersize=3)
        handles.setdefault(curve.method.name, drawing)
        rows += [[problem.title, curve.method.name, panel.y, "", a, a, b] for a, b in zip(x, y, strict=True)]
    scales(axis, panel)
    if panel.x == "samples":
        axis.set_xlabel(panel.x_label or "step size")


def across(
    axis: Any, study: Study, panel: Panel, problem: StudyProblem, look: Any, handles: Any, rows: list[list[Any]]
) -> None:
    """The final value of each problem against a fact, constant or case of it."""
    covered = [other for other in study.problems if other.matches(panel.data, panel.only)]
    for name in dict.fromkeys(name for other in covered for name in other.curves):
        if panel.methods is not None and name not in panel.methods:
            continue
        places = []
        for other in covered:
            if name in other.curves and panel.y in other.curves[name].names:
                last = other.curves[name].series(panel.y).values[:, -1]
                x = {**other.case, **other.facts, **other.constants}[panel.x]
                places.append((float(x), float(last.mean()), float(last.std(ddof=1)) if len(last) > 1 else 0.0))
        if not places:
            continue
        x, y, sd = map(np.array, zip(*sorted(places), strict=True))
        colour, line = look[name]
        (drawing,) = axis.plot(x, y, color=colour, linestyle=line, marker="o", markersize=3)
        handles.setdefault(name, drawing)
        if panel.band != "none":
            axis.fill_between(x, np.maximum(y - sd, 0.5 * y), y + sd, color=colour, alpha=0.15, linewidth=0)
        rows += [["all", name, panel.y, "", a, a, b] for a, b in zip(x, y, strict=True)]
    scales(axis, panel)


def points(
    axis: Any, study: Study, panel: Panel, problem: StudyProblem, look: Any, handles: Any, rows: list[list[Any]]
) -> None:
    """The test rows on a plane: right, wrong, and (not drawn) wrong at the optimum too."""
    places = np.array(study.maps[problem.data.name])
    curve = curves_of(panel, problem)[0]
    kinds = curve.results[0]["arrays"][panel.y]
    step = str(panel.step) if str(panel.step) in kinds else max(kinds, key=int)
    kind = np.array(list(kinds[step]), dtype=int)[: len(places)]
    for value, name, colour, size in ((0, "right", "#b8c4cc", 1.5), (1, "wrong", "#d55e00", 6.0)):
        drawing = axis.scatter(*places[kind == value].T, s=size, color=colour, linewidths=0, rasterized=True)
        handles.setdefault(name, drawing)
    axis.set_title(f"{curve.method.name}: {int(np.sum(kind == 1)):,} wrong of {len(kind):,} after {int(step):,} samples")
    axis.set_xticks([])
    axis.set_yticks([])
    axis.grid(False)
    rows += [[problem.title, curve.method.name, panel.y, step, x, y, int(k)] for (x, y), k in zip(places, kind, strict=True)]


DRAW = {"curves": curves, "grid": grid, "problems": across, "map": points}
