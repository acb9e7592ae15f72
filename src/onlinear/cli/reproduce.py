"""``onlinear reproduce``: run the five papers' experiments and write the report."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onlinear.cli.command import FAILURE, UsageError, app, fail, given_in, guarded, needs_output, usage
from onlinear.cli.interrupts import INTERRUPTED
from onlinear.cli.lines import wrap_words
from onlinear.cli.report import require_libraries
from onlinear.text.names import option_of, printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from onlinear.papers.data import Where
    from onlinear.papers.outcome import Outcome


OF_RUNS = ("quick", "out", "data_dir", "download", "jobs")  # options that a list has no use for


@app.command()
@guarded
def reproduce(
    ctx: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(help="Papers (p5) or experiments (p5/fig3). Default: all.", show_default=False)
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the experiments and stop.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions and smaller problems (minutes).")] = False,
    out: Annotated[str, typer.Option("--out", help="Folder of the report; it also keeps finished runs.")] = "report",
    data_dir: Annotated[
        str | None, typer.Option("--data-dir", envvar="ONLINEAR_DATA", help="The folder of real data sets.")
    ] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Download missing sets with scikit-learn (needs a network).")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", help="Number of processes. Default: the number of cores.", min=1)
    ] = None,
) -> None:
    """Run the experiments of the five papers and judge every claim."""
    from onlinear.papers import experiments

    for name in OF_RUNS if listing else ():
        if given_in(ctx, name):
            raise UsageError(f"{option_of(name)} is for runs, and --list runs nothing.")
    with usage():
        chosen = experiments.choose(names or [])
        if data_dir is not None and not os.path.isdir(data_dir):
            raise UsageError(f"--data-dir must be a folder, got {data_dir!r}.")
        if not out or (os.path.exists(out) and not os.path.isdir(out)):
            raise UsageError(f"--out must be a folder, got {out!r}.")
    if listing:
        needs_output()
        for name in chosen:
            found = experiments.load(name)
            for line in wrap_words(f"{name:<24} {found.place}: {found.title}", more=25):
                typer.echo(line)
        return
    require_libraries("the report", "papers")
    from onlinear.files.paths import same
    from onlinear.papers.data import Where

    if data_dir is not None and same(out, data_dir):
        raise UsageError(f"--out {printable(out)}: is also --data-dir; the report needs a folder of its own.")
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    where = Where(str(Path(data_dir).resolve()) if data_dir is not None else None, download)
    _print_summary(_run(chosen, folder, where, quick, jobs), folder)


def _run(chosen: list[str], out: Path, where: Where, quick: bool, jobs: int | None) -> list[Outcome]:
    """Run the experiments, with a progress bar for each on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from onlinear.papers.reproduce import reproduce as run
    from onlinear.streams.ahead import cores

    columns = (TextColumn("{task.description:<24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bars = _Bars(progress, console.is_terminal, len(chosen))
        try:
            outcomes = run(chosen, out, where, quick, jobs or cores(), bars.update)
        except KeyboardInterrupt:
            fail(
                f"interrupted: finished runs are kept in {printable(str(out))}; the same command continues from there.",
                INTERRUPTED,
            )
        bars.finish()
    return outcomes


class _Bars:
    """One progress bar for all experiments, and one for the experiment that runs; a log gets a line for each experiment."""

    def __init__(self, progress: Progress, terminal: bool, count: int) -> None:
        self._progress, self._terminal, self._count = progress, terminal, count
        self._every = progress.add_task("experiments", total=count)
        self._bars: dict[str, TaskID] = {}

    def update(self, name: str, done: int, of: int) -> None:
        """``done`` of the ``of`` runs of an experiment have ended."""
        if name not in self._bars:
            self._begin(name)
        self._progress.update(self._bars[name], completed=done, total=of)

    def finish(self) -> None:
        """All experiments have ended."""
        self._progress.update(self._every, completed=self._count)

    def _begin(self, name: str) -> None:
        if not self._terminal:
            typer.echo(f"{time.strftime('%H:%M:%S')} {name}", err=True)
        for bar in self._bars.values():
            self._progress.update(bar, visible=False)
        self._bars[name] = self._progress.add_task(name)
        self._progress.update(self._every, completed=len(self._bars) - 1)


def _print_summary(outcomes: list[Outcome], out: Path) -> None:
    from onlinear.papers.claims import VERDICTS

    verdicts = [judged.verdict for outcome in outcomes for judged in outcome.claims]
    typer.echo(", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS) + f" ({len(verdicts)} claims)")
    for outcome in outcomes:
        if outcome.needs:
            typer.echo(f"not run: {outcome.experiment.name}, needs {'; '.join(outcome.needs)}", err=True)
        if outcome.failed:
            typer.echo(f"failed: {outcome.experiment.name}: {outcome.failed}", err=True)
    typer.echo(f"report: {printable(str(out / 'index.html'))}")
    if any(outcome.failed for outcome in outcomes):
        raise typer.Exit(FAILURE)
