"""``onlinear reproduce``: run the five papers' experiments and write the report."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from onlinear.cli.command import FAILURE, INTERRUPTED, UsageError, app, fail, guarded, usage

if TYPE_CHECKING:
    from rich.progress import TaskID

    from onlinear.papers.outcome import Outcome


@app.command()
@guarded
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help="Papers (p5) or experiments (p5/fig3). Default: all.", show_default=False)
    ] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the experiments and stop.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions and smaller problems (minutes).")] = False,
    out: Annotated[Path, typer.Option("--out", help="Folder of the report; it also keeps finished runs.")] = Path("report"),
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", envvar="ONLINEAR_DATA", help="The folder of real data sets.")
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

    with usage():
        chosen = experiments.chosen(names or [])
        if data_dir is not None and not data_dir.is_dir():
            raise UsageError(f"--data-dir must be a folder, got {str(data_dir)!r}.")
    if listing:
        for name in chosen:
            found = experiments.load(name)
            typer.echo(f"{name:<24} {found.place}: {found.title}")
        return
    _extras()
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from onlinear.files.writing import same
    from onlinear.papers.data import Where
    from onlinear.papers.reproduce import reproduce as run
    from onlinear.streams.ahead import cores

    if data_dir is not None and same(out, data_dir):
        raise UsageError(f"--out {out}: is also --data-dir; the report needs a folder of its own.")
    out.mkdir(parents=True, exist_ok=True)
    where = Where(str(data_dir.resolve()) if data_dir is not None else None, download)
    columns = (TextColumn("{task.description:<24}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(file=sys.stderr)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        every = progress.add_task("experiments", total=len(chosen))
        bars: dict[str, TaskID] = {}

        def listen(name: str, done: int, of: int) -> None:
            if name not in bars and not console.is_terminal:  # a log gets a line for each experiment
                typer.echo(f"{time.strftime('%H:%M:%S')} {name}", err=True)
            if name not in bars:
                for bar in bars.values():
                    progress.update(bar, visible=False)
                bars[name] = progress.add_task(name)
                progress.update(every, completed=len(bars) - 1)
            progress.update(bars[name], completed=done, total=of)

        try:
            outcomes = run(chosen, out, where, quick, jobs or cores(), listen)
        except KeyboardInterrupt:
            fail(f"interrupted: finished runs are kept in {out}; the same command continues from there.", INTERRUPTED)
        progress.update(every, completed=len(chosen))
    _summary(outcomes, out)


def _extras() -> None:
    """Raise where the report's libraries are not installed."""
    from importlib.util import find_spec

    missing = [name for name in ("matplotlib", "jinja2") if find_spec(name) is None]
    if missing:
        raise UsageError(f"the report needs {' and '.join(missing)}: pip install 'onlinear[papers]'.")


def _summary(outcomes: list[Outcome], out: Path) -> None:
    from onlinear.papers.claims import VERDICTS

    verdicts = [judged.verdict for outcome in outcomes for judged in outcome.claims]
    typer.echo(", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in VERDICTS) + f" ({len(verdicts)} claims)")
    for outcome in outcomes:
        if outcome.needs:
            typer.echo(f"not run: {outcome.experiment.name}, needs {'; '.join(outcome.needs)}", err=True)
        if outcome.failed:
            typer.echo(f"failed: {outcome.experiment.name}: {outcome.failed}", err=True)
    typer.echo(f"report: {out / 'index.html'}")
    if any(outcome.failed for outcome in outcomes):
        raise typer.Exit(FAILURE)
