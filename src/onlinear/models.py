"""Model files: one safetensors file of float64 arrays, with a JSON header. No pickle, no clock, host or path in it.

Written to a temporary name in the same folder, fsynced, renamed: a reader sees the old file or the new one, whole.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

FORMAT = "onlinear-model"
VERSION = 1


class ModelFileError(ValueError):
    """A file that is no model file of a version this release reads."""


def write(path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a model file; the same header and arrays give the same bytes."""
    text = json.dumps({"version": VERSION, **header}, sort_keys=True, separators=(",", ":"))
    content = save(
        {name: np.ascontiguousarray(array) for name, array in sorted(arrays.items())},
        metadata={FORMAT: text},  # one entry: the order of several is not fixed, and the bytes must be
    )
    write_atomic(path, content)


def write_atomic(path: str | os.PathLike[str], content: bytes) -> None:
    """Write bytes to a temporary name beside ``path``, fsync, rename."""
    target = Path(path)
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent or Path("."))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a model file.

    Raises FileNotFoundError, or ModelFileError for a file that is truncated, corrupted, foreign or of a newer version.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"no model file at {os.fspath(path)!r}.")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if FORMAT not in metadata:
                raise ModelFileError(f"{os.fspath(path)}: not an onlinear model file (a safetensors file of another kind).")
            header = json.loads(metadata[FORMAT])
            if header["version"] > VERSION:
                found = f"{os.fspath(path)}: model file version {header['version']}"
                raise ModelFileError(f"{found}; this release reads up to {VERSION}. Upgrade onlinear.")
            return header, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, KeyError, TypeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise ModelFileError(f"{os.fspath(path)}: not a readable onlinear model file ({error}).") from None
