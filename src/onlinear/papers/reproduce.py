"""Reproduce experiments: work in parallel, kept by digest; verdicts; the report. Prints nothing."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from onlinear.compiled.uninterrupted import uninterrupted
from onlinear.papers import experiments
from onlinear.papers.claims import NOT_RUN, Judged, judge
from onlinear.papers.data import Where
from onlinear.papers.experiments import Experiment
from onlinear.papers.outcome import Outcome
from onlinear.papers.runs import Task, perform
from onlinear.papers.store import Store
from onlinear.papers.study import conduct, missing_requirements
from onlinear.threads import begin_worker, begun_deaf


class Workers:
    """Performs tasks in processes, or in this one where jobs = 1. The results do not depend on it."""

    def __init__(self, jobs: int, where: Where, store: Store) -> None:
        self.where, self.store = where, store
        self.made: set[Hashable] = set()  # what tasks share and finished ones have put on disk
        self.pool = None
        if jobs > 1:  # Ctrl-C, which reaches every process of a terminal, is left to this one
            self.pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), begin_worker, (signal.SIG_IGN,))

    def do(self, tasks: list[Task], step: Callable[[int, int], None]) -> list[dict[str, Any]]:
        """The results in the order of the tasks, read where they are kept; equal tasks are done once."""
        if not tasks:
            return []
        keys = [task.key(self.where) for task in tasks]
        found = {key: result for key in dict.fromkeys(keys) if (result := self.store.get(key)) is not None}
        open_tasks = {key: task for key, task in zip(keys, tasks, strict=True) if key not in found}
        step(len(found), len(set(keys)))
        for key, result in self._perform(open_tasks):
            self.store.put(key, result)
            found[key] = result
            step(len(found), len(set(keys)))
        return [found[key] for key in keys]

    def _perform(self, tasks: dict[str, Task]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Results as they come. What several tasks need, kernels and an optimum, the first makes while the others wait."""
        folder = str(self.store.folder)
        if self.pool is None:
            for key, task in tasks.items():
                yield key, perform(task, self.where, folder)
            return
        held, making = tasks, set[Hashable]()
        waiting: dict[Future[dict[str, Any]], str] = {}
        try:
            while held or waiting:
                left = {}
                for key, task in held.items():
                    if making & task.shares:
                        left[key] = task
                    else:
                        making |= task.shares - self.made
                        with uninterrupted(), begun_deaf():  # a process that is half begun would say so
                            waiting[self.pool.submit(perform, task, self.where, folder)] = key
                held = left
                for done in wait(waiting, return_when=FIRST_COMPLETED).done:
                    key = waiting.pop(done)
                    yield key, done.result()
                    self.made |= tasks[key].shares
                    making -= self.made
        except BrokenExecutor:
            raise ValueError(
                "a process ended early (memory?); start again with fewer --jobs: finished runs are kept."
            ) from None
        except BaseException:
            for future in waiting:
                future.cancel()
            raise

    def close(self, at_once: bool = False) -> None:
        """End the processes, in the middle of their runs where ``at_once`` is asked for."""
        if self.pool is None:
            return
        if at_once:
            for process in multiprocessing.active_children():
                process.terminate()
        self.pool.shutdown(cancel_futures=True)


@contextmanager
def workers(jobs: int, where: Where, store: Store) -> Iterator[Workers]:
    """Workers, ended however the block ends."""
    found = Workers(jobs, where, store)
    try:
        yield found
    except KeyboardInterrupt:
        found.close(at_once=True)
        raise
    finally:
        found.close()


def one(name: str, quick: bool, where: Where, team: Workers, step: Callable[[int, int], None]) -> Outcome:
    """Run and judge one experiment."""
    experiment = experiments.load(name, quick)
    outcome = Outcome(experiment)
    outcome.needs = missing_requirements(experiment, where)
    if outcome.needs:
        outcome.claims = not_run(experiment, "needs " + "; ".join(outcome.needs))
        return outcome

    def do(tasks: list[Task]) -> list[dict[str, Any]]:
        results = team.do(tasks, step)
        outcome.wall += sum(result.get("wall", 0.0) for result in results)
        outcome.cpu += sum(result.get("cpu", 0.0) for result in results)
        return results

    outcome.study = conduct(experiment, do)
    outcome.claims = [judge(outcome.study, claim) for claim in experiment.claim]
    return outcome


def not_run(experiment: Experiment, why: str) -> list[Judged]:
    """The experiment's claims without a verdict."""
    return [Judged(claim, NOT_RUN, (), (), why) for claim in experiment.claim]


def reproduce(
    wanted: list[str],
    out: Path,
    where: Where,
    quick: bool = False,
    jobs: int = 1,
    listen: Callable[[str, int, int], None] = lambda name, done, of: None,
) -> list[Outcome]:
    """Run the experiments and write the report into ``out``. One that fails does not stop the others."""
    from onlinear.papers.report import write

    started = time.perf_counter()
    store = Store(out / "runs")
    outcomes = []
    # Runs that diverge are infinite: arithmetic on them is meant.
    with workers(jobs, where, store) as team, np.errstate(all="ignore"):
        for name in wanted:
            try:
                outcomes.append(one(name, quick, where, team, lambda done, of, name=name: listen(name, done, of)))  # type: ignore[misc]
            except (ValueError, ArithmeticError, MemoryError) as error:
                experiment = experiments.load(name, quick)
                failed = str(error) or type(error).__name__
                outcomes.append(Outcome(experiment, claims=not_run(experiment, "the experiment failed"), failed=failed))
        write(outcomes, out, quick, jobs, time.perf_counter() - started)
    return outcomes
