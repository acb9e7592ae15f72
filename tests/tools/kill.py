"""Pull the plug: kill -9 at random moments of a training run, go on from its checkpoint, compare the models byte for byte.

    python tests/tools/kill.py --times 50 [--seed 0] [--rows 200000] [--folder FOLDER]

Two runs are killed in turn. One has a small state and is killed at a random moment. The other has a large state, and is killed
at the first moment after a random one at which a checkpoint is being written: its temporary file is there, and is left behind.
Every second resumed run is killed once more, likewise, before it may end. Each run is a process of its own, forked from one
that has imported the package: to start Python each time would take longer than to learn.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

TRAIN = ["train", "--json"]
SMALL = ("--passes", "2", "--shuffle-rows", "3000", "--seed", "7", "--holdout", "0.05", "--checkpoint-every", "4000")
SMALL += ("--solver", "comid,eta=0.5", "--penalty", "l1,l1=1e-6", "--average", "uniform", "--scale", "rms")
LARGE = ("--solver", "comid,eta=0.5", "--penalty", "l1,l1=1e-6", "--average", "uniform", "--n-features", "2000000")
LARGE += ("--checkpoint-every", "1000")


class Outcome(NamedTuple):
    """What one killed run came to."""

    rows: int  # that its checkpoint held; 0: there was none
    writing: bool  # whether it was killed while a checkpoint was being written
    same: bool  # whether the resumed run's model is that of the uninterrupted one
    early: bool  # whether it was killed before its end


def generate(path: Path, rows: int, features: int = 20_000, entries: int = 15) -> None:
    """Write svmlight text of rows with a sparse truth behind their labels."""
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(features) * (rng.random(features) < 0.1)
    with open(path, "w") as file:
        for _ in range(rows):
            columns = np.unique((features * rng.random(entries) ** 3).astype(int))
            values = np.round(rng.standard_normal(len(columns)), 3)
            label = "1" if values @ truth[columns] + 0.3 * rng.standard_normal() > 0.0 else "-1"
            file.write(label + "".join(f" {j + 1}:{v}" for j, v in zip(columns.tolist(), values.tolist(), strict=True)) + "\n")


class Forked:
    """The command in a fork of this process, with what is needed of ``subprocess.Popen``."""

    def __init__(self, arguments: list[str]) -> None:
        self.returncode: int | None = None
        self._error = tempfile.TemporaryFile("w+")  # noqa: SIM115 (open as long as the process is)
        ends = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self._run(arguments, ends)
        os.close(ends[1])
        self.stdout = os.fdopen(ends[0])

    def _run(self, arguments: list[str], ends: tuple[int, int]) -> None:
        from onlinear.cli import app

        os.dup2(ends[1], 1)
        os.dup2(self._error.fileno(), 2)
        code = 1
        try:
            app([*TRAIN, *arguments])
        except SystemExit as ended:
            code = int(ended.code or 0)
        finally:
            sys.stdout.flush()
            os._exit(code)

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def communicate(self) -> tuple[str, str]:
        with self.stdout:
            rest = self.stdout.read()
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self._error.seek(0)
        return rest, self._error.read()


def events(arguments: list[str], kill_after: float | None = None, writing: Path | None = None) -> tuple[list[dict], float]:
    """Run the command; what it reported, and the seconds from its first line to its end.

    Kill it so long after that line; with ``writing``, at the next moment when a temporary file of that checkpoint is there.
    """
    child = Forked(arguments)
    first = child.stdout.readline()
    began = time.monotonic()
    if kill_after is not None:
        time.sleep(kill_after)
        while writing is not None and child.poll() is None and not left(writing):
            time.sleep(0.0005)
        child.kill()
    rest, error = child.communicate()
    seconds = time.monotonic() - began
    if child.returncode not in (0, -9):
        raise RuntimeError(f"{' '.join(arguments)} ended with {child.returncode}:\n{error}")
    lines = [line for line in (first + rest).splitlines() if line.endswith("}")]
    return [json.loads(line) for line in lines], seconds


def left(checkpoint: Path) -> bool:
    """Whether a temporary file of a checkpoint is there."""
    from onlinear.files.writing import _prefix

    return any(path.name.startswith(_prefix(str(checkpoint))) for path in checkpoint.parent.iterdir())


class Victim:
    """One run, whole, and as often as wanted killed and resumed."""

    def __init__(self, folder: Path, data: Path, options: tuple[str, ...], *, writing: bool) -> None:
        self.folder = folder
        folder.mkdir()
        self.model, self.checkpoint = folder / "model", folder / "checkpoint"
        self.writing = self.checkpoint if writing else None
        self.arguments = [str(data), "--model", str(self.model), "--checkpoint", str(self.checkpoint), *options]
        lines, self.seconds = events(self.arguments)
        self.table = [line for line in lines if line["kind"] in ("report", "holdout")]
        self.whole = self.model.read_bytes()

    def kill(self, rng: np.random.Generator, *, again: bool) -> Outcome:
        """Kill a run at a random moment, once more if so asked while it goes on, then let it end."""
        for path in self.folder.iterdir():
            path.unlink()
        events(self.arguments, self.seconds * rng.random(), self.writing)
        early, writing, rows = not self.model.exists(), left(self.checkpoint), self._rows()
        if again and self.checkpoint.exists():
            events(self._rest(), self.seconds * rng.random() / 2.0, self.writing)
            writing |= left(self.checkpoint)
        lines, _ = events(self._rest())
        table = [line for line in lines if line["kind"] in ("report", "holdout")]
        same = self.model.read_bytes() == self.whole and table == self.table[len(self.table) - len(table) :]
        return Outcome(rows, writing, same and not left(self.checkpoint), early)

    def _rest(self) -> list[str]:
        return ["--resume", str(self.checkpoint)] if self.checkpoint.exists() else self.arguments

    def _rows(self) -> int:
        from onlinear.cli import checkpoints

        return checkpoints.read(str(self.checkpoint)).state.run["rows"] if self.checkpoint.exists() else 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--folder", type=Path, default=None, help="where to work; default: a temporary folder")
    given = parser.parse_args()
    from onlinear.cli import checkpoints  # noqa: F401 (what the forks are to have)

    rng = np.random.default_rng(given.seed)
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        generate(folder / "rows.svm", given.rows)
        few = (folder / "rows.svm").read_text().splitlines(keepends=True)[: given.rows // 10]
        (folder / "few.svm").write_text("".join(few))
        victims = (
            Victim(folder / "small", folder / "rows.svm", SMALL, writing=False),
            Victim(folder / "large", folder / "few.svm", LARGE, writing=True),
        )
        found = []
        for k in range(given.times):
            outcome = victims[k % 2].kill(rng, again=k % 4 >= 2)
            print(k + 1, outcome, flush=True)
            found.append(outcome)
    same, early, writing = (sum(getattr(one, name) for one in found) for name in ("same", "early", "writing"))
    resumed = sum(one.rows > 0 for one in found)
    print(f"{given.times} runs killed (seed {given.seed}): {early} before their end, {writing} while a checkpoint was written;")
    print(f"{resumed} went on from a checkpoint, {given.times - resumed} began anew;")
    print(f"{same} ended with the very bytes, and the lines of the table, of the uninterrupted run.")
    sys.exit(same != given.times)


if __name__ == "__main__":
    main()
