"""``onlinear evaluate``: how well a model predicts rows whose labels are known."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated, Any

import typer

from onlinear.cli.command import Dask, Reading, Workers, app, guarded, needs_output, over_shards, reads
from onlinear.cli.lines import WIDTH, class_name, json_text, keep_end, keep_ends, rows_in_words, say_errors

if TYPE_CHECKING:
    from collections.abc import Iterator

    from onlinear.models.confusion import Confusion
    from onlinear.models.evaluation import Bin, Result

PROBABILITY, CAME_TRUE = "calibration: the probability ", ", and how often it came true"
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
    needs_output()
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
        for piece in json_pieces(found, len(stream.errors)):
            typer.echo(piece, nl=False)
        typer.echo()
    else:
        rows = f": {rows_in_words(found.rows)}"
        for line in [keep_end(stream.name, WIDTH - len(rows)) + rows, *describe_result(found)]:
            typer.echo(line)
    say_errors(stream)


def json_pieces(found: Result, skipped: int) -> Iterator[str]:
    """A result as one JSON object, in pieces: the matrix of many classes is text of hundreds of MB."""
    opening = "{"
    for name, value in as_json(found, skipped).items():
        yield f"{opening}{json_text(name)}: "
        yield from [json_text(value)] if found.confusion is None or name != "confusion" else json_rows(found.confusion)
        opening = ", "
    yield "}"


def json_rows(matrix: Confusion) -> Iterator[str]:
    """The matrix as a JSON list of lists, a row in a piece."""
    opening = "["
    for row in matrix:
        yield f"{opening}{json_text(row)}"
        opening = ", "
    yield "]"


def as_json(found: Result, skipped: int) -> dict[str, Any]:
    """A result by the names of its JSON object."""
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
    from onlinear.training.doubts import is_worse

    out = [""]
    for name, value in {"loss": found.loss, **{MEASURES[name]: value for name, value in found.measures.items()}}.items():
        out.append(f"{name:<12}{'-' if value is None else f'{value:.6g}':>12}")
    if (constant := found.constant) is not None:
        out += ["", f"best constant: loss {constant.loss:.6g}, {MEASURES[_error(found)]} {constant.error:.6g}"]
        if is_worse(found.loss, constant.loss):
            out.append("The model predicts worse than a constant on these rows.")
    if found.gap is not None:
        out += ["", *textwrap.wrap(describe_gap(found.gap, found.gap_is_loose), WIDTH)]
    if found.confusion is not None and found.classes is not None:
        out += ["", *confusion([class_name(shown(name)) for name in found.classes], found.confusion)]
    if found.calibration is not None:
        whose = (
            "of the predicted class"
            if len(found.classes or ()) > 2
            else f"of class {keep_ends(shown((found.classes or [0])[-1]), WIDTH - len(PROBABILITY) - len(CAME_TRUE) - 9)}"
        )
        out += ["", f"{PROBABILITY}{whose}{CAME_TRUE}", *calibration(found.calibration)]
    return out


def describe_gap(gap: float, loose: str | None) -> str:
    """A duality gap as a sentence."""
    from onlinear.certified import above

    if gap >= 1.0:
        said = "duality gap: nothing is certified of the distance to the optimum of these rows."
    else:
        said = f"duality gap {gap:.3g}: the objective is {above(gap, 3)} of these rows."
    return said if loose is None else f"{said} But {loose}"


def _error(found: Result) -> str:
    """The measure that a constant has too."""
    return "error" if found.classes is not None else "mae"


def confusion(names: list[str], matrix: Confusion) -> list[str]:
    """The matrix, a line per true class; of many classes the pairs that are most often confused."""
    from onlinear.text.form import rows_by_weight

    pairs = matrix.pairs()
    wide = max(8, 2 + max(map(len, names)), 2 + max(len(rows_by_weight(weight)) for weight in pairs.weights.tolist()))
    if wide * (len(names) + 1) <= WIDTH:
        cells = [[rows_by_weight(value) for value in row] for row in matrix]
        head = f"{'true':<{wide}}" + "".join(f"{name:>{wide}}" for name in names)
        rows = [f"{name:<{wide}}" + "".join(f"{cell:>{wide}}" for cell in row) for name, row in zip(names, cells, strict=True)]
        return ["confusion: true classes down, predicted ones across", head, *rows]
    true, predicted, weights = (part[(pairs.true != pairs.predicted) & (pairs.weights > 0.0)] for part in pairs)
    if not len(true):
        return ["confusion: no class was taken for another"]
    shown = [
        f"{rows_by_weight(weights[pair]):>10}  {keep_ends(names[true[pair]], 24)} taken for "
        f"{keep_ends(names[predicted[pair]], 24)}"
        for pair in (-weights).argsort(kind="stable")[:MOST_PAIRS].tolist()
    ]
    return [f"confusion: the {len(shown)} most frequent of {len(true)} kinds of errors (all with --json)", *shown]


def calibration(bins: list[Bin]) -> list[str]:
    """The table of probabilities."""
    from onlinear.text.form import rows_by_weight

    head = f"{'probability':>13}{'rows':>12}{'mean':>10}{'came true':>12}"
    return [
        head,
        *(
            f"{f'{low:.1f} - {high:.1f}':>13}{rows_by_weight(weight):>12}{predicted:>10.4f}{true:>12.4f}"
            for low, high, weight, predicted, true in bins
        ),
    ]
