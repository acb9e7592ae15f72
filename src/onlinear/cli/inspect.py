"""``onlinear inspect``: show the contents of a model file."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, NamedTuple

import typer

from onlinear.cli.command import app, guarded, needs_output
from onlinear.cli.lines import WIDTH, json_text, keep_ends, keep_start, size, weights_text
from onlinear.text.names import printable

BAR = 30  # characters
EIGHTHS = " ▏▎▍▌▋▊▉█"


class Weight(NamedTuple):
    """One weight: in the column's own units, and times the column's scale, as the penalty saw it."""

    column: int
    name: str | None
    label: Any  # the class or target it speaks for; None where there is one output
    weight: float
    scaled: float | None


@app.command()
@guarded
def inspect(
    model: Annotated[str, typer.Argument(help="A model file or a checkpoint.", show_default=False)],
    top: Annotated[int, typer.Option("--top", help="How many of the largest weights to show.", min=0)] = 10,
    json: Annotated[bool, typer.Option("--json", help="One JSON object instead of tables.")] = False,
) -> None:
    """Show a model: settings, rows, history of the loss, non-zeros, largest weights."""
    needs_output()
    found = summary(model, top)
    if json:
        typer.echo(json_text(found))
        return
    for line in describe_model(found):
        typer.echo(line)


def summary(path: str, top: int) -> dict[str, Any]:
    """All that is shown, for JSON."""
    from onlinear.files import model_file
    from onlinear.models.loading import load
    from onlinear.models.predictor import Final
    from onlinear.solvers.core.certified import readings

    header, _ = model_file.read(path)
    model = load(path)
    learner = getattr(model, "learner_", model)
    final, bare = isinstance(learner, Final), learner is model
    run: Any = header.get("run")
    loss, last = _losses(learner, [] if bare else model.history_)
    count, largest = weights(model, learner, top)
    params = {} if bare else model.settings()
    return {
        "file": path,
        "bytes": os.path.getsize(path),
        "version": header["version"],
        "kind": header["kind"],
        "final": final,
        "checkpoint": {"pass": run["pass"] + 1, "rows": run["consumed"]} if _stands(run) else None,
        "settings": _settings(header, learner, params),
        "classes": None if bare or not hasattr(model, "classes_") else model.classes_.tolist(),
        "rows": learner.t,
        "passes": None if bare else readings(learner, model.n_iter_),
        "loss": loss,
        "loss_last": last,
        "features": learner.size,
        "outputs": learner.n_outputs,
        "intercept": _listed(learner.intercept(average=True)),
        "nonzeros": count,
        "columns": None if bare or model.encoding_ is None else _columns(model.encoding_),
        "crosses": None if bare or model.encoding_ is None else model.encoding_.get("interactions"),
        "history": [] if bare else model.history_,
        "weights": [weight._asdict() for weight in largest],
    }


def _losses(learner: Any, reports: list[dict[str, Any]]) -> tuple[float | None, float | None]:
    """The mean loss so far of the model that predicts, and of the last iterate where it is another one; None where unknown, as
    of an average that no run scored to the end, and where no row had a weight. A run's last report knows the weights of the
    rows, a learner their number."""
    units = getattr(learner, "units", None)
    if units is not None and units.heaviest[0] == 0.0:
        return None, None
    if reports and reports[-1]["rows"] == learner.t and (reports[-1].get("loss_last") is not None or not _averaged(learner)):
        return reports[-1]["loss"], reports[-1].get("loss_last")
    last = None if learner.progressive_loss != learner.progressive_loss else learner.progressive_loss
    if last is None or not _averaged(learner):
        return last, None
    race = getattr(learner, "race", None)
    return (None if race is None else race.predicted_loss / learner.t), last


def _averaged(learner: Any) -> bool:
    """Whether what predicts is another model than the last iterate, or may be."""
    found = getattr(learner, "averaged", None)  # a predict-only model does not know
    return bool(found) if found is not None else learner.spec["average"] not in (None, "none")


def _stands(run: Any) -> bool:
    """Whether a file is a checkpoint that says where its run stood."""
    return isinstance(run, dict) and all(type(run.get(name)) is int for name in ("pass", "consumed"))


def _settings(header: dict[str, Any], learner: Any, params: dict[str, Any]) -> dict[str, Any]:
    parts = {role: header["spec"][role] for role in ("loss", "penalty", "solver", "average")}
    spec = {role: part["text"] if isinstance(part, dict) else part for role, part in parts.items()}
    spec["penalty"] = spec["penalty"] or "none"
    if spec["average"] is None:
        live = hasattr(learner, "engine")  # a predict-only model does not have it
        own = live and (learner.average is not None or learner.engine.own_average)
        spec["average"] = "the solver's own" if own else "none" if live else "-"
    rest = {name: params[name] for name in ("shuffle", "random_state", "class_weight") if params.get(name) is not None}
    if isinstance(rest.get("class_weight"), dict):
        rest["class_weight"] = weights_text(rest["class_weight"])
    scale = {"scale": header["scale"], "fit_intercept": header["fit_intercept"]} if "scale" in header else {}
    forget = {"forget": header["forget"]} if "forget" in header else {}
    uncertainty = {"uncertainty": header["uncertainty"]} if "uncertainty" in header else {}
    return {**spec, **scale, **forget, **uncertainty, **rest}


def _columns(encoding: dict[str, Any]) -> str:
    """How a stream's features became columns, in words."""
    if encoding.get("format") == "vw":
        return f"Vowpal Wabbit features, hashed to 2^{encoding.get('hash_bits')} columns"
    if encoding.get("format") == "names":
        return f"{len(encoding['names'])} names and categories of dicts"
    if encoding.get("format") == "svmlight":
        return f"numbered; in svmlight text from {encoding.get('base')}"
    features = [kind for _, kind in encoding["features"]]
    words, binned = len(encoding.get("ngrams", {})), len(encoding.get("bins", {}))
    texts, numeric = features.count("text") - words, len(features) - features.count("text") - binned
    parts = [f"{numeric} numeric"] if numeric else []
    parts += [f"{count} {what}" for count, what in ((texts, "of text"), (words, "of words"), (binned, "in bins")) if count]
    how = f"hashed to 2^{encoding['hash_bits']} columns" if encoding["categories"] == "hash" else "one-hot"
    return ", ".join([*parts, how] if texts or words or binned else parts)


def weights(model: Any, learner: Any, top: int) -> tuple[int, list[Weight]]:
    """The number of weights that are not 0, and the largest ones, in the units that the penalty sees."""
    import numpy as np

    from onlinear.learner.scores import predictors_of
    from onlinear.models.predictor import Final

    found = []
    if isinstance(learner, Final):
        own, scales = list(zip(learner.columns, learner.values, strict=True)), None
    else:
        table, _ = predictors_of(learner)
        own = [(np.flatnonzero(column), column[np.flatnonzero(column)]) for column in table.T]
        scales = None if learner.scaler is None else learner.scaler.scales()
    for k, (columns, values) in enumerate(own):
        sizes = np.abs(values) if scales is None else np.abs(values) * scales[columns]
        for place in np.argsort(-sizes, kind="stable")[:top]:
            found.append((float(sizes[place]), k, int(columns[place]), float(values[place])))
    found = sorted(found, key=lambda item: (-item[0], item[1:3]))[:top]
    names = (
        [None] * len(found) if learner is model else model.feature_names(np.array([column for _, _, column, _ in found], int))
    )
    labels = list(getattr(model, "classes_", range(learner.n_outputs)))
    several = learner.n_outputs > 1
    largest = [
        Weight(
            column,
            name,
            (labels[k].item() if hasattr(labels[k], "item") else labels[k]) if several else None,
            value,
            None if scales is None else value * float(scales[column]),
        )
        for (_, k, column, value), name in zip(found, names, strict=True)
    ]
    return sum(int(np.count_nonzero(values)) for _, values in own), largest


def _listed(intercept: Any) -> list[float]:
    return [float(intercept)] if isinstance(intercept, float) else [float(value) for value in intercept]


# --- as lines --------------------------------------------------------------------------------------------------------


def describe_model(found: dict[str, Any]) -> list[str]:
    """A summary as lines of at most 80 characters."""
    from onlinear.streams.labels import list_classes
    from onlinear.text.form import in_passes, percent

    kind = f"final {found['kind']}" if found["final"] else found["kind"]
    facts = [("file", f"{printable(found['file'])} ({size(found['bytes'])}, version {found['version']})"), ("model", kind)]
    if found["checkpoint"] is not None:
        facts.append(
            ("checkpoint", "pass {pass}, {rows:,} rows of it read; train --resume continues".format(**found["checkpoint"]))
        )
    facts += [(name, str(value)) for name, value in found["settings"].items()]
    if found["classes"] is not None:
        import numpy as np

        facts.append(("classes", list_classes(np.array(found["classes"], object))))
    facts.append(("rows", f"{found['rows']:,}{in_passes(found['passes'])}"))
    facts += _loss(found)
    if found["columns"] is not None:
        facts.append(("columns", found["columns"]))
    if found["crosses"]:
        pairs = ", ".join(":".join(pair) for pair in found["crosses"])
        facts.append(("crosses", f"{len(found['crosses'])}, hashed to the same columns: {pairs}"))
    total = found["features"] * found["outputs"]
    share = f" ({percent(found['nonzeros'] / total, 2)})" if total else ""
    facts.append(("non-zeros", f"{found['nonzeros']:,} of {total:,} weights{share}"))
    if len(found["intercept"]) == 1:
        facts.append(("intercept", f"{found['intercept'][0]:.6g}"))
    width = 2 + max(len(name) for name, _ in facts)
    return [
        *(f"{name:<{width}}{keep_start(value, 78 - width)}" for name, value in facts),
        *history(found["history"]),
        *largest(found),
    ]


def _loss(found: dict[str, Any]) -> list[tuple[str, str]]:
    """The mean loss of the model that is written; with an average, that of the last iterate below it."""
    reported = bool(found["history"]) and found["history"][-1]["rows"] == found["rows"]
    how = "(mean, each row before it was trained on)" if reported else "(mean of weight x loss, rows before they were learned)"
    loss = "-" if found["loss"] is None else f"{found['loss']:.6g} {how}"
    last = [] if found["loss_last"] is None else [("last iterate", f"loss {found['loss_last']:.6g}")]
    return [("loss", loss), *last]


def history(reports: list[dict[str, Any]]) -> list[str]:
    """The loss since the last report, as bars on one scale."""
    reports = [report for report in reports if report.get("since") is not None]
    if not reports:
        return []
    from onlinear.models.evaluation import MEASURES

    measures = [name for name in ("error", "mae") if name in reports[0]]
    highest = max(report["since"] for report in reports)
    head = f"{'rows':>13}{'loss':>11}{'since last':>12}{MEASURES[measures[0]] if measures else '':>10}"
    lines = [
        f"{report['rows']:>13,}{_number(report['loss']):>11}{_number(report['since']):>12}"
        f"{_number(report.get(measures[0])) if measures else '':>10}  {bar(report['since'] / highest if highest > 0 else 0.0)}"
        for report in reports
    ]
    return ["", f"{head}  loss since last", *(line.rstrip() for line in lines)]


def bar(share: float) -> str:
    """A bar of a share of ``BAR`` characters, in eighths where the terminal has them; none for a share that is no number."""
    if share != share:
        return ""
    share = min(share, 1.0)
    if "utf" not in (getattr(sys.stdout, "encoding", None) or "").lower():
        return "#" * round(share * BAR)
    whole, part = divmod(round(max(0.0, share) * BAR * 8), 8)
    return "█" * whole + EIGHTHS[part].strip()


def largest(found: dict[str, Any]) -> list[str]:
    """The largest weights, with the names of their features where there are any."""
    if not found["weights"]:
        return []
    from onlinear.streams.labels import shown

    entries = [Weight(**weight) for weight in found["weights"]]
    scaled, several = entries[0].scaled is not None, entries[0].label is not None
    head = (
        f"{'weight':>14}"
        + (f"{'x scale':>14}" if scaled else "")
        + (f"{'class':>12}" if several else "")
        + "  feature (columns count from 0)"
    )
    out = ["", f"the {len(entries)} largest weights" + (", by weight x scale" if scaled else ""), head]
    for entry in entries:
        label = f"{keep_ends(shown(entry.label), 11):>12}" if several else ""
        start = f"{entry.weight:>14.6g}" + (f"{entry.scaled:>14.6g}" if scaled else "") + label + "  "
        place = f"column {entry.column}"
        room = min(24, WIDTH - len(start) - len(place) - 3)
        out.append(start + (place if entry.name is None else f"{keep_start(entry.name, room)} ({place})"))
    return out


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.5g}"
