"""Figures of a report as SVG, whose lines and letters take the colour of the page: it may be dark or light."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any, NamedTuple

from onlinear.pages import unique

INK = "#010203"  # stands for the colour of the page's text
FIRST, SECOND = "#0a84c6", "#d97706"  # told apart by colour-blind readers, on white and on black
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "onlinear",
    "font.family": "sans-serif",
    "font.size": 11.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.18,
    "grid.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
}


class Drawn(NamedTuple):
    """A figure: what it shows in a sentence, and its SVG."""

    title: str
    svg: str


def draw(name: str, title: str, fill: Callable[[Any], None]) -> Drawn:
    """The figure whose axes ``fill`` draws in."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure, out = Figure(figsize=(5.0, 3.0), layout="constrained"), io.StringIO()
        fill(figure.add_subplot())
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    svg = out.getvalue()
    return Drawn(title, unique(svg[svg.index("<svg") :], name).replace(INK, "currentColor"))


def history_figures(
    reports: list[dict[str, Any]], constant: Any, seconds: list[tuple[int, float]] | None, began: str
) -> list[Drawn]:
    """Loss, error and non-zeros of a run against its rows, and the loss against seconds where they are known; ``began``: since
    when they count."""
    reports = [report for report in reports if report.get("since") is not None]
    if not reports:
        return []
    found = [_against_rows("loss", "The loss of rows before they were trained on", reports, constant and constant.loss)]
    for measure, words in (("error", "The share of rows guessed wrong"), ("mae", "The mean absolute error")):
        if reports[0].get(measure) is not None:
            found.append(_against_rows(measure, words, reports, constant and constant.error))
    found.append(_against_rows("nonzeros", "Weights that are not 0", reports, None))
    at = dict(seconds or ())
    timed = [report for report in reports if report["rows"] in at]
    return [*found, _against_seconds(timed, at, began)] if timed else found


def _against_rows(measure: str, title: str, reports: list[dict[str, Any]], constant: float | None) -> Drawn:
    rows = [report["rows"] for report in reports]

    def fill(axes: Any) -> None:
        axes.plot(rows, [report[measure] for report in reports], color=FIRST, marker="o", ms=3, label="mean so far")
        if measure == "loss":
            axes.plot(rows, [report["since"] for report in reports], color=SECOND, ls="--", label="since the last point")
            if reports[0].get("loss_linear") is not None:
                axes.plot(rows, [report["loss_linear"] for report in reports], color=INK, ls="-.", label="before the clip")
        if constant is not None:
            axes.axhline(constant, color=INK, ls=":", label="best constant")
        axes.set_xscale("log")
        axes.set_xlabel("rows")
        _begin_at_zero(axes)
        if measure != "nonzeros":
            axes.legend()

    return draw(measure, title, fill)


def _against_seconds(timed: list[dict[str, Any]], at: dict[int, float], began: str) -> Drawn:
    def fill(axes: Any) -> None:
        axes.plot([at[one["rows"]] for one in timed], [one["loss"] for one in timed], color=FIRST, marker="o", ms=3)
        axes.set_xlabel(f"seconds since {began}")
        _begin_at_zero(axes)

    return draw("seconds", "The loss against time", fill)


def _begin_at_zero(axes: Any) -> None:
    """Let an axis begin at 0 where nothing is below: losses of counts are."""
    if axes.dataLim.y0 >= 0.0:
        axes.set_ylim(bottom=0.0)


def stretch_figure(result: Any) -> Drawn:
    """The error of rows by their place in the file: what drifts is seen here."""
    starts = [0, *(end for end, _ in result.stretches[:-1])]

    def fill(axes: Any) -> None:
        wide = [end - start for start, (end, _) in zip(starts, result.stretches, strict=True)]
        axes.bar(starts, [error for _, error in result.stretches], wide, align="edge", color=FIRST, alpha=0.85)
        axes.set_xlabel("rows, in the order of the file")

    return draw("stretches", f"The {'error' if result.classes else 'mean absolute error'} by the place of the rows", fill)


def calibration_figure(result: Any) -> Drawn:
    """How often probabilities came true."""

    def fill(axes: Any) -> None:
        axes.plot([0.0, 1.0], [0.0, 1.0], color=INK, ls=":", label="as often as said")
        said, true = [one.predicted for one in result.calibration], [one.true for one in result.calibration]
        axes.plot(said, true, color=FIRST, marker="o", label="model")
        axes.set_xlabel("probability")
        axes.set_ylabel("came true")
        axes.legend()

    return draw("calibration", "How often a probability came true", fill)


def curve_figures(result: Any) -> list[Drawn]:
    """True against false positives, and precision against recall, of two classes."""
    if not result.curve:
        return []

    def rates(axes: Any) -> None:
        axes.plot([0.0, 1.0], [0.0, 1.0], color=INK, ls=":", label="guessing")
        axes.plot([one.false_rate for one in result.curve], [one.true_rate for one in result.curve], color=FIRST, label="model")
        axes.set_xlabel("false positive rate")
        axes.set_ylabel("true positive rate")
        axes.legend()

    def precision(axes: Any) -> None:
        axes.axhline(result.curve[-1].precision, color=INK, ls=":", label="guessing")
        axes.plot([one.true_rate for one in result.curve], [one.precision for one in result.curve], color=FIRST, label="model")
        axes.set_xlabel("recall")
        axes.set_ylabel("precision")
        axes.set_ylim(0.0, 1.02)
        axes.legend()

    return [draw("roc", "True against false positives", rates), draw("precision", "Precision against recall", precision)]
