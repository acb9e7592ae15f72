"""The report: one page that needs nothing else, the figures as SVG files, all numbers as CSV."""

from __future__ import annotations

import csv
import io
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onlinear.files.writing import write as write_file
from onlinear.pages import templates, unique
from onlinear.papers.claims import VERDICTS, Decision, Judged, number
from onlinear.papers.experiments import Figure, TableSpec
from onlinear.papers.figures import columns_of, draw
from onlinear.papers.maths import maths
from onlinear.papers.store import code_digest
from onlinear.papers.study import Curve, Study
from onlinear.papers.tables import reasons, table

if TYPE_CHECKING:
    from onlinear.papers.outcome import Outcome

TITLES = {
    "p1": "Tao, Gao, Chu, Wu: Stochastic learning via optimizing the variational inequalities (SADMM), IEEE TNNLS 25(10), 2014",
    "p2": "Shi, Liu: Online and stochastic Douglas-Rachford splitting method for large scale machine learning, 2013",
    "p3": "Song et al.: Fully implicit online learning (FIOL), 2018",
    "p4": "Shao, Tao, Jiang, Zhou: Stochastic algorithm with optimal convergence rate for strongly convex problems (HRMD-W), "
    "Journal of Software 25(9), 2014",
    "p5": "Mu, Ding, Zhou, Tao: Constrained stochastic gradient descent for large scale least squares (CSGD), KDD 2013",
    "ours": "All solvers on all sets",
}
FEW = 3  # checks whose numbers stand in a table's cell as they are
PACKAGES = ("onlinear", "numpy", "scipy", "scikit-learn", "numba", "matplotlib")


def write(outcomes: list[Outcome], out: Path, quick: bool, jobs: int, elapsed: float) -> None:
    """Write index.html, figures/*.svg, data/*.csv and claims.csv."""
    for folder in ("figures", "data"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    sections = [section_or_failure(outcome, out) for outcome in outcomes]
    claims = [row for part in sections for row in part["claims"]]
    save_csv(
        out / "claims.csv",
        ["experiment", "where", "claim", "kind", "verdict", "rule", "numbers"],
        [[row[key] for key in ("anchor", "where", "text", "kind", "verdict", "rule", "numbers")] for row in claims],
    )
    write_file(out / "claims.md", markdown(claims, quick).encode())
    papers = [
        {"name": paper, "title": title, "sections": [part for part in sections if part["paper"] == paper]}
        for paper, title in TITLES.items()
    ]
    page = templates("onlinear.papers", maths=maths).get_template("report.html").render(
        papers=[paper for paper in papers if paper["sections"]],
        counts=tally(claims, "paper"),
        apart={APART[kind]: tally(claims, kind) for kind in APART},
        total=len(claims),
        quick=quick,
        jobs=jobs,
        elapsed=duration(elapsed),
        wall=duration(sum(outcome.wall for outcome in outcomes)),
        cpu=duration(sum(outcome.cpu for outcome in outcomes)),
        machine=machine(),
        versions=versions(),
        code=code_digest()[:16],
        substitutes=substitutes(sections),
        not_run=[part for part in sections if part["needs"]],
        failed=[part for part in sections if part["failed"]],
    )  # fmt: skip
    write_file(out / "index.html", page.encode())


def substitutes(sections: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every substitute once, with the experiments that use it."""
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for part in sections:
        for one in part["substitutes"]:
            found.setdefault((one["name"], one["for"], one["reason"]), []).append(part)
    return [{"name": name, "for": wanted, "reason": reason, "parts": parts} for (name, wanted, reason), parts in found.items()]


# What is counted apart from the papers' statements, by kind.
APART = {
    "identity": "statements that cannot fail",
    "ours": "statements of our own",
    "repeat": "repeats on synthetic rows",
}
WHAT_A_VERDICT_COUNTS = """A claim has checks. A check is a formula that holds or does not, on each problem that the
claim is about. The verdict is the share of checks that hold:

- **reproduced**: all;
- **mostly**: at least two thirds;
- **partly**: at least a third;
- **not reproduced**: fewer. One check that fails refutes a theorem.

A check compares two numbers, most of them means over repetitions. It is undecided in three cases: the numbers tie,
neither side has a number, or they differ by at most two standard errors of their paired difference. In the last case it
is decided all the same where five repetitions or more all have the same sign. Undecided checks do not count. Where they
are more than half, the claim is **not decided**.

Three kinds of claim are counted apart from what the papers say: *identity*, whose checks cannot fail; *ours*, a
statement of our own; and *repeat*, a paper's claim on synthetic rows.
"""


def tally(claims: list[dict[str, Any]], kind: str) -> dict[str, int]:
    """How many claims of a kind have which verdict."""
    return {verdict: sum(row["verdict"] == verdict and row["kind"] == kind for row in claims) for verdict in VERDICTS}


def told(counts: dict[str, int]) -> str:
    """Counts in words, those of nothing left out."""
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count) or "none"


def markdown(claims: list[dict[str, Any]], quick: bool) -> str:
    """All claims as a Markdown table, for the documentation."""
    kind = "quick" if quick else "full"
    lines = [
        "# Every claim of the five papers\n",
        f"Written by `onlinear reproduce` ({kind} run; {versions()}; {machine()}; code {code_digest()[:16]}).\n",
        f"Statements of the papers: {told(tally(claims, 'paper'))}.",
        *(f"{label[0].upper()}{label[1:]}: {told(tally(claims, one))}." for one, label in APART.items()),
        "",
        WHAT_A_VERDICT_COUNTS,
        "| experiment | claim | where | verdict | checks | numbers | why; what would have made it fail |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in claims:
        cells = [
            row["anchor"].replace("-", "/", 1),
            row["text"],
            row["where"],
            f"**{row['verdict']}**" + (f" ({row['kind']})" if row["kind"] != "paper" else ""),
            row["rule"],
            row["brief"],
            " ".join(text for text in (row["note"], row["fails"]) if text),
        ]
        lines.append("| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def section_or_failure(outcome: Outcome, out: Path) -> dict[str, Any]:
    """A section; where a figure or table cannot be made, the experiment has failed and the page says why."""
    try:
        return section(outcome, out)
    except ValueError as error:
        outcome.failed, outcome.study = str(error), None
        return section(outcome, out)


def section(outcome: Outcome, out: Path) -> dict[str, Any]:
    """One experiment as the template needs it."""
    experiment = outcome.experiment
    anchor = experiment.name.replace("/", "-")
    found: dict[str, Any] = {
        "anchor": anchor,
        "name": experiment.name,
        "paper": experiment.name.split("/")[0],
        "place": experiment.place,
        "title": experiment.title,
        "about": experiment.about,
        "needs": outcome.needs,
        "failed": outcome.failed,
        "wall": duration(outcome.wall),
        "cpu": duration(outcome.cpu),
        "seed": experiment.seed,
        "repetitions": experiment.repetitions,
        "order": experiment.order,
        "substitutes": [
            {"name": data.name, "for": data.substitute_for, "reason": data.reason or ""}
            for data in experiment.data
            if data.substitute_for
        ],
        "figures": [],
        "tables": [],
        "methods": [],
        "diverged": [],
        "claims": [claim_row(judged, anchor, place) for place, judged in enumerate(outcome.claims, 1)],
    }
    if outcome.study is not None:
        study = outcome.study
        found["figures"] = [write_figure(study, figure, f"{anchor}-{k}", out) for k, figure in enumerate(experiment.figure, 1)]
        found["tables"] = [write_table(study, spec, f"{anchor}-table-{k}", out) for k, spec in enumerate(experiment.table, 1)]
        found["methods"] = settings(study)
        found["diverged"] = diverged(study)
    return found


def write_figure(study: Study, figure: Figure, name: str, out: Path) -> dict[str, Any]:
    """Write a figure and its numbers; returns it as the template needs it."""
    svg, rows = draw(study, figure)
    write_file(out / "figures" / f"{name}.svg", svg.encode())
    header = ["problem", "method", "measure", "repetition", "step", "x", "value"]
    save_csv(out / "data" / f"{name}.csv", header, rows)
    return {
        "name": name,
        "title": figure.title,
        "about": figure.about,
        "svg": unique(svg, name),
        "columns": columns_of(study, figure),
    }


def write_table(study: Study, spec: TableSpec, name: str, out: Path) -> dict[str, Any]:
    """Write a table; returns it as the template needs it."""
    header, rows = table(study, spec)
    save_csv(out / "data" / f"{name}.csv", header, rows)
    return {
        "name": name,
        "title": spec.title,
        "about": spec.about,
        "header": header,
        "rows": rows,
        "reasons": reasons(study, spec),
    }


def undecided(one: Decision) -> str:
    """Why a check is undecided, where its numbers do not say it."""
    return "" if one.holds is not None else f" (undecided: {one.why})" if one.why else " (undecided)"


def claim_row(judged: Judged, anchor: str, place: int) -> dict[str, Any]:
    """A claim as a row."""
    run = [one for one in judged.decisions if one.was_run]
    several = len({one.problem for one in judged.decisions}) > 1
    each = [(f"{one.problem}: " if several else "") + one.numbers + undecided(one) for one in run]
    each += [
        f"{problem + ', ' if several else ''}{label}: {value}" for problem, label, value in judged.shown if judged.claim.bound
    ]
    shown: dict[str, list[tuple[str, str]]] = {}
    for problem, label, value in judged.shown:
        shown.setdefault(problem if several else "", []).append((label, value))
    return {
        "anchor": anchor,
        "name": f"{anchor}-claim-{place}",
        "several": several,
        "text": judged.claim.text,
        "where": judged.claim.where,
        "kind": judged.kind,
        "verdict": judged.verdict,
        "rule": judged.rule,
        "note": judged.claim.note,
        "fails": judged.claim.fails,
        "numbers": "; ".join(each),
        "brief": fold_numbers(each) if not judged.needs else judged.needs,
        "decisions": judged.decisions,
        "shown": shown,
    }


def fold_numbers(numbers: list[str]) -> str:
    """The numbers of a claim in a cell of a Markdown table: a few as they are, many behind a line that opens."""
    if len(numbers) <= FEW:
        return "; ".join(numbers)
    return f"<details><summary>{len(numbers)} checks</summary>{'<br>'.join(numbers)}</details>"


def settings(study: Study) -> list[dict[str, str]]:
    """The settings of each method."""
    found = []
    for problem in study.problems:
        for curve in problem.curves.values():
            spec = curve.spec
            found.append(
                {
                    "problem": problem.title,
                    "method": curve.method.name,
                    "solver": spec.solver,
                    "loss": spec.loss,
                    "penalty": spec.penalty,
                    "average": spec.average or "preset",
                    "steps": f"{spec.checkpoints[-1]:,}",
                    "point": ", ".join(f"{key} = {number(value)}" for key, value in curve.point.items())
                    + (", the grid's end" if at_an_end(curve) else ""),
                    "grid": str(len(curve.grid)) if curve.grid else "",
                }
            )
    return found


def at_an_end(curve: Curve) -> bool:
    """Whether the best point of a grid of one setting is its first or last: a wider grid may have a better one."""
    ends = [point for point, _ in (curve.grid[:1] + curve.grid[-1:])]
    return len(curve.grid) > 2 and any(len(end) == 1 and end.items() <= curve.point.items() for end in ends)


def diverged(study: Study) -> list[str]:
    """The runs that ended before their last row; where all methods end by the clock it is no news."""
    by_clock = all(method.seconds is not None for method in study.experiment.method)
    found = []
    for problem in study.problems:
        for curve in problem.curves.values():
            for result in curve.results[:1]:
                if result["diverged"]:
                    found.append(f"{curve.method.name} on {problem.title}: {result['diverged']}")
                if result["out_of_time"] and not by_clock:
                    found.append(
                        f"{curve.method.name} on {problem.title}: stopped at its time limit of {curve.spec.seconds:g} s, "
                        f"after {result['t'][-1] if result['t'] else 0:,} of {curve.spec.checkpoints[-1]:,} steps."
                    )
    return found


def save_csv(path: Path, header: list[str], rows: list[list[Any]]) -> None:
    """Write a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    write_file(path, text.getvalue().encode())


def duration(seconds: float) -> str:
    """A time as a reader wants it."""
    if seconds < 90:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def machine() -> str:
    """The machine, in words."""
    return f"{os.cpu_count()} cores of {platform.machine()}, {platform.system()} {platform.release().split('-')[0]}"


def versions() -> str:
    """The versions that matter."""
    return ", ".join([f"Python {platform.python_version()}", *(f"{name} {metadata.version(name)}" for name in PACKAGES)])
