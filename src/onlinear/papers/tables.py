"""The tables of an experiment: our values beside the paper's, and why they differ where they do."""

from __future__ import annotations

from typing import Any

from onlinear.papers.claims import number
from onlinear.papers.experiments import Column, TableSpec
from onlinear.papers.expressions import NoValueError
from onlinear.papers.study import Names, Study, StudyProblem, value_of

EXPLAINED_BEYOND = 2.0  # standard deviations from the paper's value beyond which the report says why


def rows_of(study: Study, spec: TableSpec) -> list[tuple[StudyProblem, str]]:
    """The problem and method of each row; a table by problems has no method."""
    covered = [problem for problem in study.problems if problem.matches(spec.data, spec.only)]
    if spec.rows != "methods":
        return [(problem, "") for problem in covered]
    return [(problem, name) for problem in covered for name in problem.curves if spec.methods is None or name in spec.methods]


def table(study: Study, spec: TableSpec) -> tuple[list[str], list[list[str]]]:
    """A table's header and rows: our value, its deviation, the paper's value, the difference in deviations."""
    by_method = spec.rows == "methods"
    covered = rows_of(study, spec)
    several = len({problem.title for problem, _ in covered}) > 1 or not by_method
    header = [*(["data"] if several else []), *(["method"] if by_method else [])]
    for column in spec.column:
        header += [column.title, *(["±"] if column.spread else []), *(["paper"] if column.paper else [])]
        header += ["difference in sd"] if column.compared else []
    rows = []
    for problem, method in covered:
        row = [*([problem.title] if several else []), *([method] if by_method else [])]
        for column in spec.column:
            row.append(cell(study, problem, method, column.value, column.format))
            if column.spread:
                row.append(cell(study, problem, method, column.spread, column.format))
            if column.paper:
                theirs = entry(column.paper, problem, method)
                row.append("–" if theirs is None else str(theirs))
            if column.compared:
                away = difference(study, column, problem, method)
                row.append("–" if away is None else f"{away:+.1f}")
        rows.append(row)
    return header, rows


def reasons(study: Study, spec: TableSpec) -> list[str]:
    """Why values are further from the paper's than EXPLAINED_BEYOND standard deviations, each reason once with its rows."""
    found: dict[str, list[str]] = {}
    for column in spec.column:
        for problem, method in rows_of(study, spec):
            away = difference(study, column, problem, method) if column.compared else None
            if away is not None and abs(away) > EXPLAINED_BEYOND:
                why = str(entry(column.reason, problem, method) or "not known.")
                found.setdefault(why, []).append(
                    f"{column.title}, {problem.title}{', ' + method if method else ''} ({away:+.1f})"
                )
    return [f"{'; '.join(where)}: {why}" for why, where in found.items()]


def difference(study: Study, column: Column, problem: StudyProblem, method: str) -> float | None:
    """(our value - the paper's) / our standard deviation over repetitions; None where one of them is not there, or 0."""
    theirs = entry(column.paper, problem, method)
    if not isinstance(theirs, (int, float)) or column.spread is None:
        return None
    names = Names(study, problem, {"method": method})
    try:
        ours, sd = value_of(column.value, names), value_of(column.spread, names)
    except NoValueError:
        return None
    return (ours - theirs) / sd if sd else None


def cell(study: Study, problem: StudyProblem, method: str, text: str, form: str) -> str:
    """A formula's value as text; a dash where it has none."""
    try:
        value = value_of(text, Names(study, problem, {"method": method}))
    except NoValueError:
        return "–"
    return form.format(value) if form and isinstance(value, float) and abs(value) != float("inf") else number(value)


def entry(known: tuple[tuple[Any, ...], ...], problem: StudyProblem, method: str) -> Any:
    """The entry of a file for a row (a number or a reason): of [data, method, it], [method, it], [data, it] or [it]."""
    tags = {problem.data.name, method, problem.title}
    return next((it for *which, it in known if set(which) <= tags), None)
