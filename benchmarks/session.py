"""Record what a terminal shows: real runs of the command, written into docs/command.md and README.md, and as pictures.

    python benchmarks/session.py --data FOLDER [--write]

FOLDER is the folder of data sets; ccat is used. Without --write the sessions are printed.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs/command.md", ROOT / "README.md"
WIDTH = 80
FILES = ("rcv1-ccat/ccat.svm.xz", "rcv1-ccat/ccat.t.svm.xz")


def run(line: str, folder: Path, stop_at: str | None = None) -> str:
    """A command line and what it printed; Ctrl-C when a line begins with ``stop_at``."""
    words = [sys.executable, "-m", *shlex.split(line)]
    environment = {**os.environ, "COLUMNS": str(WIDTH)}
    with subprocess.Popen(words, cwd=folder, stdout=-1, stderr=-2, text=True, env=environment) as child:
        assert child.stdout is not None
        said = []
        for text in child.stdout:
            said.append(text)
            if stop_at is not None and text.strip().startswith(stop_at):
                child.send_signal(signal.SIGINT)
                said.append("^C\n")
                stop_at = None
    return f"$ {line}\n{''.join(said)}"


def shortened(text: str, first: int, last: int) -> str:
    """The first and the last lines, with a mark between them."""
    lines = text.splitlines(keepends=True)
    return "".join([*lines[:first], "...\n", *lines[-last:]])


def table(text: str) -> str:
    """A run up to the end of its table."""
    head, rows, _ = text.split("\n\n", 2)
    return f"{head}\n\n{rows}\n"


def sessions(folder: Path) -> dict[str, str]:
    """What each session shows."""
    train = "onlinear train ccat.svm.xz --penalty l1,l1=1e-5 --passes 3 --holdout 0.1 --model ccat.onlinear"
    long = "onlinear train ccat.svm.xz --passes 4 --shuffle-rows 5000 --model long.onlinear --checkpoint long.checkpoint"
    short = "onlinear train ccat.svm.xz --penalty l1,l1=1e-5 --model ccat.onlinear"
    whole = f"{long.replace('long.', 'whole.')} --quiet"
    for line in (short, whole):  # which also compile what the others need
        run(line, folder)
    found = {
        "readme": shortened(table(run(short, folder)), 8, 4),
        "train": run(train, folder),
        "inspect": run("onlinear inspect ccat.onlinear", folder),
        "evaluate": run("onlinear evaluate ccat.onlinear ccat.t.svm.xz", folder),
        "interrupt": shortened(run(long, folder, stop_at="32,768"), 7, 5),
        "resume": run("onlinear train --resume long.checkpoint", folder),
    }
    same = (folder / "long.onlinear").read_bytes() == (folder / "whole.onlinear").read_bytes()
    if not same:
        raise RuntimeError("the resumed run's model is not the uninterrupted one's")
    found["same"] = f"$ {whole}\n$ cmp long.onlinear whole.onlinear && echo the same bytes\nthe same bytes\n"
    found["json"] = shortened(run("onlinear train ccat.svm.xz --json --holdout 0.1 --model ccat.onlinear", folder), 4, 3)
    return found


def write(found: dict[str, str]) -> None:
    """Put the sessions where the page shows them, and the first two into pictures."""
    texts = {page: page.read_text() for page in PAGES}
    for name, session in found.items():
        mark = re.compile(rf"(<!-- session: {name} -->\n```\n).*?(```\n)", re.DOTALL)
        places = [page for page, text in texts.items() if mark.search(text)]
        if len(places) != 1:
            raise RuntimeError(f"the session {name!r} has {len(places)} places, expected 1")
        texts[places[0]] = mark.sub(lambda place, session=session: place[1] + session + place[2], texts[places[0]])
    for page, text in texts.items():
        page.write_text(text)
    for name in ("train", "inspect"):
        console = Console(width=WIDTH, record=True, file=open(os.devnull, "w"))  # noqa: SIM115 (as long as the process)
        console.print(Text(found[name].rstrip()))
        picture = console.export_svg(title=f"onlinear {name}", unique_id=f"onlinear-{name}")
        (ROOT / f"docs/{name}.svg").write_text(without_fonts(picture))


def without_fonts(picture: str) -> str:
    """The picture in the reader's own letters: those that rich names come from another host."""
    return re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for file in FILES:
            (Path(name) / Path(file).name).symlink_to((given.data / file).resolve())
        found = sessions(Path(name))
    if given.write:
        write(found)
    else:
        print("\n".join(found.values()))


if __name__ == "__main__":
    main()
