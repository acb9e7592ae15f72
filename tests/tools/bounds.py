"""Install the project with the lowest, or the newest, versions that pyproject.toml allows, and try it.

    python tests/tools/bounds.py lowest newest                     both; each in a virtual environment that is deleted after
    python tests/tools/bounds.py lowest --suite tests/text ...     part of the tests as well (all of them: --suite tests)
    python tests/tools/bounds.py lowest --folder FOLDER            keep the virtual environment in FOLDER
    python tests/tools/bounds.py newest --package dist/*.whl       a wheel or source package instead of this folder

What is tried: every command's --help at 80 columns; train, predict, evaluate, inspect and convert on a bundled data set; fit,
save, load from Python. The exit code is 0 only if all of it works.
"""

from __future__ import annotations

import argparse
import glob
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
EXTRAS = ("papers", "dask", "test")  # bench and river need the peers, which have bounds of their own
COMMANDS = ("train", "predict", "evaluate", "explain", "inspect", "convert", "parts", "report", "reproduce")
WIDTH = 80

FIT = """
import numpy as np
from onlinear import OnlineClassifier, load
from sklearn.datasets import load_breast_cancer
X, y = load_breast_cancer(return_X_y=True)
model = OnlineClassifier(penalty="l1=1e-3", passes=20, random_state=0).fit(X, y)
assert model.score(X, y) > 0.95
model.save("model.onlinear")
assert np.array_equal(load("model.onlinear").predict(X), model.predict(X))
"""


def requirements(extras: Sequence[str] = EXTRAS) -> list[str]:
    """What pyproject.toml asks for, as it stands there."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = [*project["dependencies"], *(item for extra in extras for item in project["optional-dependencies"][extra])]
    return [item for item in found if not item.startswith("onlinear[")]


def lowest(requirement: str) -> str:
    """The requirement of its lower bound alone; raises ValueError where it has none."""
    found = re.fullmatch(r"([A-Za-z0-9_.-]+)\s*>=\s*([0-9][0-9.]*)(\s*,\s*<\s*[0-9][0-9.]*)?", requirement)
    if found is None:
        raise ValueError(f"{requirement!r} must be written name>=version, or name>=version,<version.")
    return f"{found[1]}=={found[2]}"


def run(*command: str | Path, folder: Path) -> str:
    """Run a command and give its output; a failure ends the program with the output."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment |= {"COLUMNS": str(WIDTH), "ONLINEAR_CACHE_DIR": str(folder / "cache"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}exit code {done.returncode}")
    return done.stdout


def install(which: str, folder: Path, suite: bool, package: str) -> Path:
    """A virtual environment with the project, from its folder or a package; gives its programs' folder."""
    run(sys.executable, "-m", "venv", folder / "venv", folder=folder)
    programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
    pins = [lowest(item) for item in requirements(EXTRAS if suite else ())] if which == "lowest" else []
    python = programs / "python"
    project = f"{package}[test]" if suite else package
    run(python, "-m", "pip", "install", "-q", "--upgrade-strategy", "eager", project, *pins, folder=folder)
    return programs


def smoke(programs: Path, folder: Path) -> None:
    """Every command once, and the estimators."""
    onlinear = programs / "onlinear"
    for command in ((), *((name,) for name in COMMANDS)):
        shown = run(onlinear, *command, "--help", folder=folder)
        wide = [line for line in shown.splitlines() if len(line) > WIDTH]
        if "Usage:" not in shown or wide:
            sys.exit(f"onlinear {' '.join(command)} --help is not as it should be:\n{shown}")
    run(onlinear, "train", "breast-cancer", "--passes", "2", "--model", "m", "--checkpoint", "c", folder=folder)
    run(onlinear, "predict", "m", "breast-cancer", "-o", "out.parquet", folder=folder)
    run(onlinear, "convert", "breast-cancer", "-o", "rows.parquet", folder=folder)
    run(onlinear, "evaluate", "m", "rows.parquet", folder=folder)
    run(onlinear, "inspect", "m", folder=folder)
    run(programs / "python", "-W", "error", "-c", FIT, folder=folder)


def tried(which: str, folder: Path, suite: Sequence[str], package: str) -> None:
    """Install and try one end of the bounds."""
    programs = install(which, folder, bool(suite), package)
    names = [re.split(r"[<>=]", item)[0] for item in requirements(EXTRAS if suite else ())]
    asked = "import sys, importlib.metadata as m; print(' '.join(f'{name} {m.version(name)},' for name in sys.argv[1:]))"
    found = run(programs / "python", "-c", asked, *names, folder=folder).strip().rstrip(",")
    print(f"{which}: Python {sys.version.split()[0]}, {found}", flush=True)
    smoke(programs, folder)
    print(f"{which}: commands and estimators work", flush=True)
    if suite:
        tests = [ROOT / name for name in suite]
        shown = run(
            programs / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ROOT, *tests, folder=folder
        )
        print(f"{which}: {shown.strip().splitlines()[-1]}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", nargs="+", choices=["lowest", "newest"])
    parser.add_argument("--suite", nargs="+", default=[], metavar="PATH", help="tests to run as well")
    parser.add_argument("--folder", type=Path, help="an empty folder for one virtual environment, which is kept")
    parser.add_argument("--package", default=str(ROOT), metavar="FILE", help="a wheel or source package, or a pattern of one")
    asked = parser.parse_args()
    packages = glob.glob(asked.package)
    if len(packages) != 1:
        parser.error(f"--package is to name one file: {asked.package} names {len(packages)}.")
    package = os.path.abspath(packages[0])
    for which in asked.which:
        if asked.folder is not None:
            asked.folder.mkdir(parents=True, exist_ok=True)
            tried(which, asked.folder.resolve(), asked.suite, package)
        else:
            with tempfile.TemporaryDirectory() as folder:
                tried(which, Path(folder), asked.suite, package)


if __name__ == "__main__":
    main()
