"""Finished work kept as files by digest of its settings and of the code, so that an interrupted reproduction continues."""

from __future__ import annotations

import hashlib
import io
import json
from functools import cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from onlinear.files import writing

# What decides a run's numbers; the report's modules do not.
CODE = (
    "compiled",
    "losses.py",
    "penalties.py",
    "schedules.py",
    "averages.py",
    "rows",
    "learner",
    "solvers",
    "papers/data.py",
    "papers/generators.py",
    "papers/optimum.py",
    "papers/problems.py",
    "papers/measures.py",
    "papers/measuring.py",
    "papers/theorems.py",
    "papers/runs.py",
)


@cache
def code_digest() -> str:
    """The digest of the modules that decide a run's numbers."""
    home = Path(__file__).parent.parent
    total = hashlib.sha256()
    for name in CODE:
        path = home / name
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            total.update(f"{file.name}\n".encode() + file.read_bytes())
    return total.hexdigest()


def digest(settings: Any) -> str:
    """The name of a piece of work."""
    text = json.dumps(settings, sort_keys=True, default=repr)
    return hashlib.sha256(f"{code_digest()}\n{text}".encode()).hexdigest()[:32]


class Store:
    """A folder of finished work: a JSON file for each run, an .npz file for each optimum."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)

    def get(self, name: str) -> dict[str, Any] | None:
        """Finished work, or None; a damaged file counts as not there."""
        try:
            return json.loads((self.folder / f"{name}.json").read_text())
        except (FileNotFoundError, ValueError):
            return None

    def put(self, name: str, result: dict[str, Any]) -> None:
        """Keep finished work."""
        writing.write(self.folder / f"{name}.json", json.dumps(result).encode())

    def arrays(self, name: str) -> dict[str, np.ndarray] | None:
        """Kept arrays, or None; a damaged file counts as not there."""
        try:
            with np.load(io.BytesIO((self.folder / f"{name}.npz").read_bytes())) as found:
                return {key: found[key] for key in found.files}
        except (FileNotFoundError, ValueError, EOFError, BadZipFile):
            return None

    def put_arrays(self, name: str, arrays: dict[str, np.ndarray]) -> None:
        """Keep arrays."""
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)  # type: ignore[arg-type]
        writing.write(self.folder / f"{name}.npz", buffer.getvalue())
