"""Every benchmark, one after the other, in processes of their own; the tables go where the documents show them.

    python benchmarks/run.py --data FOLDER [--only throughput,peers] [--write .] [--json FOLDER]

Prints what each prints. With --write ROOT, a benchmark's output replaces what stands between its markers
(<!-- name: begin --> and <!-- name: end -->, or <!-- name 1, 3-5: begin --> for some of its tables) in docs/benchmarks.md and
docs/benchmarks-method.md below ROOT, headed by the machine it ran on, or goes to the page of its own subject; plots go to
docs/plots. With --json FOLDER, each leaves its figures there as NAME.json. Those that take long (10 GB of rows) or need a
folder of their own (rsets) run only where --only names them. session.py and claims.py stay apart: one records
what a terminal shows, one composes pages from reports.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from pages import machine, place

HOME = Path(__file__).parent
DATA = ("--data", "{data}")
JSON = ("--json", "{json}/{name}.json")
# name: its options; one that needs a folder that was not given is left out, except --data, which is asked for
BENCHMARKS: dict[str, list[tuple[str, str]]] = {
    "throughput": [("--write", "{root}"), JSON],
    "profile_kernels": [JSON],
    "kinds": [JSON],
    "cliffs": [JSON],
    "batches": [JSON],
    "dense": [DATA, JSON],
    "classes": [DATA, JSON],
    "predictions": [JSON],
    "short_rows": [JSON],
    "extension": [JSON],
    "latency": [JSON],
    "one_row": [JSON],
    "one_by_one": [("--write", "{root}/docs/one-by-one.md"), JSON],
    "parser": [JSON],
    "files": [JSON],
    "packed": [JSON],
    "many": [("--wall", ""), ("--write", "{root}/docs/path.md"), JSON],
    "pieces": [JSON],
    "growth": [("--plots", "{root}/docs/plots"), JSON],
    "crossover": [DATA, ("--plot", "{root}/docs/plots/crossover.svg"), JSON],
    "steps": [DATA, JSON],
    "peers": [DATA, JSON],
    "quality": [DATA, JSON],
    "layouts": [("--page", "{root}/docs/streams.md"), JSON],
    "race": [DATA, ("--plot", "{root}/docs/plots/race.svg"), ("--write", "{root}/docs/index.md"), JSON],
    "certified": [DATA, ("--write", "{root}/docs/certified.md"), JSON],
    "certified_classes": [DATA, ("--write", "{root}/docs/certified.md"), JSON],
    "certified_dense": [("--write", "{root}/docs/certified.md"), JSON],
    "certified_paths": [("--write", "{root}/docs/path.md"), JSON],
    "penalty_path": [DATA, ("--write", "{root}/docs/path.md"), JSON],
    "forgetting": [DATA, ("--write", "{root}/docs/tutorials/drift.md"), JSON],
    "counts": [DATA, ("--write", "{root}/docs/tutorials/counts.md"), JSON],
    "unseen": [("--write", "{root}/docs/benchmarks-method.md"), JSON],
    "rsets": [DATA, ("--write", "{root}/docs/benchmarks-method.md"), JSON],
    "crosses": [DATA, ("--write", "{root}/docs/tutorials/crosses.md"), JSON],
    "expansions": [DATA, ("--write", "{root}/docs/tutorials/words-and-bins.md"), JSON],
    "rounds": [DATA, ("--write", "{root}/docs/many-machines.md"), JSON],
    "shards": [("--write", "{root}/docs/many-machines.md"), JSON],
    "large": [("--write", "{root}"), JSON],
    "defaults": [DATA, ("--write", "{root}/docs/defaults.md"), JSON],
    "orders": [DATA, ("--write", "{root}/docs/defaults.md"), JSON],
    "off_path": [DATA, ("--write", "{root}/docs/defaults.md"), JSON],
}
OWN_PAGE = (
    "throughput",
    "many",
    "layouts",
    "one_by_one",
    "race",
    "certified",
    "certified_classes",
    "certified_dense",
    "certified_paths",
    "penalty_path",
    "forgetting",
    "counts",
    "unseen",
    "rsets",
    "crosses",
    "expansions",
    "rounds",
    "shards",
    "large",
    "defaults",
    "orders",
    "off_path",
)  # they write where their tables stand
IF_NAMED = ("rsets", "large")
PAGES = ("docs/benchmarks.md", "docs/benchmarks-method.md")  # results, and how they were reached with all their tables


def measure(name: str, options: list[str]) -> str:
    """Run one benchmark; what it printed."""
    started = time.perf_counter()
    done = subprocess.run([sys.executable, str(HOME / f"{name}.py"), *options], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} failed with exit code {done.returncode}.")
    print(done.stdout, flush=True)
    print(f"({name}: {time.perf_counter() - started:.0f} s)\n", file=sys.stderr, flush=True)
    return done.stdout


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("ONLINEAR_DATA"))
    parser.add_argument("--only", default=",".join(name for name in BENCHMARKS if name not in IF_NAMED))
    parser.add_argument("--write", metavar="ROOT")
    parser.add_argument("--json", metavar="FOLDER")
    args = parser.parse_args()
    root = Path(args.write) if args.write else None
    given = {"data": args.data, "root": args.write, "json": args.json}
    for folder in (root / "docs" / "plots" if root else None, Path(args.json) if args.json else None):
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
    print(f"{machine()}\n", flush=True)
    for name in args.only.split(","):
        if name not in BENCHMARKS:
            raise SystemExit(f"no benchmark {name!r}; there are {', '.join(BENCHMARKS)}.")
        options: list[str] = []
        for option, value in BENCHMARKS[name]:
            if option == "--data" and args.data is None:
                raise SystemExit(f"{name} needs --data FOLDER (or ONLINEAR_DATA).")
            if not any(f"{{{key}}}" in value and given[key] is None for key in given):
                options += [option, value.format(**given, name=name)] if value else [option]
        text = measure(name, options)
        if root and name not in OWN_PAGE:
            place([root / page for page in PAGES], name, f"{machine()}.\n\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
