"""One page about a model: how the loss fell, what it weighs, and how it does on rows that it is given."""

from __future__ import annotations

from typing import Any

from onlinear.models.evaluation import MEASURES
from onlinear.pages import templates
from onlinear.report.figures import calibration_figure, curve_figures, history_figures, stretch_figure
from onlinear.text.form import in_passes, percent, rows_by_weight

MOST_CLASSES = 20  # that are listed


def page(
    model: dict[str, Any],
    result: Any = None,
    *,
    command: str,
    source: str | None = None,
    constant: Any = None,
    seconds: list[tuple[int, float]] | None = None,
    began: str = "the first row",
    history: list[dict[str, Any]] | None = None,
) -> str:
    """The page as HTML that needs nothing else.

    Parameters
    ----------
    model : dict
        What ``onlinear inspect --json`` shows.
    result : Result, default=None
        What ``evaluate`` found on the rows of ``source``.
    command : str
        The command that makes the page again.
    source : str, default=None
        The rows that ``result`` is of.
    constant : Constant, default=None
        What the best constant achieves on the rows trained on.
    seconds : list of (rows, seconds), default=None
        When so many rows were trained on, in seconds.
    began : str, default="the first row"
        Since when the seconds count.
    history : list of dict, default=None
        The reports of a run that continued the model, whose own history is of the run that began it.

    Returns
    -------
    str
        The page.
    """
    from onlinear import __version__

    weights = model["weights"]
    longest = max(map(_size, weights), default=0.0)
    reports = model["history"] if history is None else history
    reported = bool(reports) and (history is not None or reports[-1]["rows"] == model["rows"])
    return str(
        templates("onlinear.report", number=number, weight=rows_by_weight)
        .get_template("page.html")
        .render(
            model=model,
            passes=in_passes(model["passes"]),
            loss=reports[-1]["loss"] if reported else model["loss"],
            measured="loss" if reported else "weight x loss",  # of which the model knows no more
            facts=facts(model),
            history=history_figures(reports, constant, seconds, began),
            continued=history is not None,
            weights=[(weight, 100.0 * _size(weight) / longest if longest > 0.0 else 0.0) for weight in weights],
            several=any(weight["label"] is not None for weight in weights),
            scaled=any(weight["scaled"] is not None for weight in weights),
            constant=constant,
            result=result,
            source=source,
            measures={} if result is None else {MEASURES[name]: value for name, value in result.measures.items()},
            figures=[] if result is None else figures_of(result),
            command=command,
            release=__version__,
        )
    )


def facts(model: dict[str, Any]) -> list[tuple[str, str]]:
    """The model in words, as (what, which)."""
    total = model["features"] * model["outputs"]
    found = [(name.replace("_", " "), str(value)) for name, value in model["settings"].items()]
    if model["classes"] is not None:
        more = " ..." if len(model["classes"]) > MOST_CLASSES else ""
        found.append(("classes", ", ".join(map(str, model["classes"][:MOST_CLASSES])) + more))
    if model["columns"] is not None:
        found.append(("columns", model["columns"]))
    share = f" of {total:,} ({percent(model['nonzeros'] / total)})" if total else ""
    return [
        *found,
        ("features", f"{model['features']:,}"),
        ("rows trained on", f"{model['rows']:,}{in_passes(model['passes'])}"),
        ("weights that are not 0", f"{model['nonzeros']:,}{share}"),
        ("file", f"{model['file']} ({model['bytes']:,} bytes, version {model['version']})"),
    ]


def number(value: float | None) -> str:
    """A number as the page shows it."""
    if value is None or value != value:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1e3 and value % 1.0 == 0.0 else f"{value:.4g}"


def figures_of(result: Any) -> list[Any]:
    """The figures of an evaluation."""
    calibration = [] if result.calibration is None else [calibration_figure(result)]
    return [stretch_figure(result), *calibration, *curve_figures(result)]


def _size(weight: dict[str, Any]) -> float:
    return abs(weight["weight"] if weight["scaled"] is None else weight["scaled"])
