"""``onlinear evaluate``: how well a model predicts rows whose labels are known."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onlinear.cli.command import Dask, Reading, Workers, app, guarded, over_shards, reads
from onlinear.cli.show import WIDTH, json_text, keep_end, keep_start, rows_in_words, say_errors
from onlinear.text.names import printable

if TYPE_CHECKING:
    from onlinear.models.evaluation import Bin, Result

MOST_PAIRS = 10  # of classes that are taken for each other, where the whole matrix is too wide


@app.command()
@reads
@guarded
def evaluate(
    model: Annotated[str, typer.Argument(help="A model file.", show_default=False)],
    source: Annotated[list[str], typer.Argument(help="Rows with labels, in any format that train reads.", show_default=False)],
    gap: Annotated[bool, typer.Option("--gap", help="How far the objective is from the optimum, at most.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of tables.")] = False,
    workers: Workers = None,
    dask: Dask = None,
    *,
    reading: Reading,
) -> None:
    """Compare predictions with labels: loss, error, AUC, log loss, confusion, calibration; or MAE, RMSE, R2.

    AUC is exact, so the scores of all rows are kept: 20 bytes for each row, and up to 16 more where rows have weights.
    """
    from onlinear.cli.reading import Watched, open_rows
    from onlinear.models.evaluation import evaluate as evaluated
    from onlinear.models.loading import load

    learned = load(model)
    stream = open_rows(source, reading, learned, with_target=True)
    if over_shards(workers, dask):
        from onlinear.cli.sharded import evaluate as over_files

        found = over_files(learned, source, reading, gap, workers, dask)
    else:
        found = evaluated(learned, Watched(stream, not json), gap)
    if json:
        typer.echo(json_text(as_json(found, len(stream.errors))))
    else:
        rows = f": {rows_in_words(found.rows)}"
        for line in [keep_end(stream.name, WIDTH - len(rows)) + rows, *describe_result(found)]:
            typer.echo(line)
    say_errors(stream)


def as_json(found: Result, skipped: int) -> dict[str, Any]:
    """A result as one JSON object."""
    measures = {name.replace(" ", "_"): value for name, value in found.measures.items()}
    calibration = None if found.calibration is None else [part._asdict() for part in found.calibration]
    own: dict[str, Any] = (
        {"classes": found.classes, "confusion": found.confusion, "calibration": calibration} if found.classes else {}
    )
    constant = None if found.constant is None else {"loss": found.constant.loss, _error(found): found.constant.error}
    own = {"best_constant": constant, **own}
    if found.gap is not None:
        own = {"duality_gap": found.gap, "gap_is_loose": found.gap_is_loose, **own}
    return {"rows": found.rows, "weight": found.weight, "loss": found.loss, **measures, **own, "skipped": skipped}


def describe_result(found: Result) -> list[str]:
    """A result as lines of at most 80 characters."""
    from onlinear.models.evaluation import MEASURES
    from onlinear.streams.labels import shown
    from onlinear.training.quality import WORSE

    out = [""]
    for name, value in {"loss": found.loss, **{MEASURES[name]: value for name, value in found.measures.items()}}.items():
        out.append(f"{name:<12}{'-' if value is None else f'{value:.6g}':>12}")
    if (constant := found.constant) is not None:
        out += ["", f"best constant: loss {constant.loss:.6g}, {MEASURES[_error(found)]} {constant.error:.6g}"]
        if found.loss > constant.loss + WORSE * abs(constant.loss):
            out.append("The model predicts worse than a constant on these rows.")
    if found.gap is not None:
        out += ["", *textwrap.wrap(describe_gap(found.gap, found.gap_is_loose), WIDTH)]
    if found.confusion is not None and found.classes is not None:
        out += ["", *confusion([printable(shown(name)) for name in found.classes], found.confusion)]
    if found.calibration is not None:
        whose = (
            "of the predicted class"
            if len(found.classes or ()) > 2
            else f"of class {printable(shown((found.classes or [0])[-1]))}"
        )
        out += ["", f"calibration: the probability {whose}, and how often it came true", *calibration(found.calibration)]
    return out


def describe_gap(gap: float, loose: str | None) -> str:
    """A duality gap as a sentence."""
    if gap >= 1.0:
        said = "duality gap: nothing is certified of the distance to the optimum of these rows."
    else:
        above = 100.0 * gap / (1.0 - gap)
        said = f"duality gap {gap:.3g}: the objective is at most {above:.3g} % above the optimum of these rows."
    return said if loose is None else f"{said} But {loose}"


def _error(found: Result) -> str:
    """The measure that a constant has too."""
    return "error" if found.classes is not None else "mae"


def confusion(names: list[str], matrix: list[list[float]]) -> list[str]:
    """The matrix, a line per true class; of many classes the pairs that are most often confused."""
    cells = [[_count(value) for value in row] for row in matrix]
    wide = max(8, 2 + max(len(text) for text in [*names, *(cell for row in cells for cell in row)]))
    if wide * (len(names) + 1) <= WIDTH:
        head = f"{'true':<{wide}}" + "".join(f"{name:>{wide}}" for name in names)
        rows = [f"{name:<{wide}}" + "".join(f"{cell:>{wide}}" for cell in row) for name, row in zip(names, cells, strict=True)]
        return ["confusion: true classes down, predicted ones across", head, *rows]
    places = range(len(names))
    pairs = sorted(
        ((matrix[i][j], i, j) for i in places for j in places if i != j and matrix[i][j] > 0.0), key=lambda p: (-p[0], p[1:])
    )
    shown = [
        f"{_count(value):>10}  {keep_start(names[i], 24)} taken for {keep_start(names[j], 24)}"
        for value, i, j in pairs[:MOST_PAIRS]
    ]
    return [f"confusion: the {len(shown)} most frequent of {len(pairs)} kinds of errors (all with --json)", *shown]


def calibration(bins: list[Bin]) -> list[str]:
    """The table of probabilities."""
    head = f"{'probability':>13}{'rows':>12}{'mean':>10}{'came true':>12}"
    return [
        head,
        *(
            f"{f'{part.low:.1f} - {part.high:.1f}':>13}{_count(part.weight):>12}{part.predicted:>10.4f}{part.true:>12.4f}"
            for part in bins
        ),
    ]


def _count(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"
