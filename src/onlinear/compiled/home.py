"""Where compiled code is kept on disk, and what tells it apart. Nothing here needs Numba, which takes long to import."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from contextlib import suppress
from pathlib import Path

NUMBA_SETTINGS = ".numba_config.yaml"
PACKAGE = __name__.partition(".")[0]
_LOG = logging.getLogger(PACKAGE)


def setting(name: str) -> str:
    """A setting of Numba's, which Numba itself reads where the working folder has a file of them."""
    if os.path.exists(NUMBA_SETTINGS):
        from numba import config

        return str(getattr(config, name) or "")
    return os.environ.get(f"NUMBA_{name}", "")


def _compiled() -> bool:
    """Whether kernels are compiled: not with ``NUMBA_DISABLE_JIT=1``, for a debugger."""
    text = setting("DISABLE_JIT")
    return not (text.isdecimal() and int(text))


def is_ours(module: str) -> bool:
    """Whether a module is one of this package."""
    return module.partition(".")[0] == PACKAGE


def _digest(folder: Path) -> str:
    """What tells the package in a folder, which may be inside a zip file, from all others; empty where nothing can be read."""
    total = hashlib.sha256()
    files = sorted(folder.rglob("*.py")) or sorted(folder.rglob("*.pyc"))  # a package without its sources
    for path in files:
        total.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    archive = next((path for path in folder.parents if path.is_file()), None)
    if archive is not None:
        total.update(archive.read_bytes())
    return total.hexdigest()[:16] if files or archive is not None else ""


def cache_folder() -> Path | None:
    """Where compiled code is kept: the first writable one of ``ONLINEAR_CACHE_DIR``, the user's cache folder and a folder among
    the temporary files; else the first that can be read; None if there is none.

    What is found there is run. So the folder must be private: the user's own or root's, and writable by nobody else. A folder
    that is not is not used; one that does not exist is created with mode 0700.
    """
    named = os.environ.get("ONLINEAR_CACHE_DIR") or setting("CACHE_DIR")
    places = [Path(named).absolute()] if named else []
    home = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")) / PACKAGE
    places += [home] if home.is_absolute() else []
    with suppress(OSError):  # no folder for temporary files can be written
        places.append(Path(tempfile.gettempdir()) / f"{PACKAGE}-{os.getuid() if hasattr(os, 'getuid') else 'cache'}")
    readable = []
    for folder in filter(_exists, places):
        if not _private(folder):
            if named and folder == places[0]:
                _LOG.warning("onlinear: the cache folder %s is not used: other users own it or may write to it.", folder)
        elif _writable(folder):
            return folder
        else:
            readable.append(folder)
    return readable[0] if readable else None


def _exists(folder: Path) -> bool:
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(OSError):
        return folder.is_dir()
    return False


def _private(folder: Path) -> bool:
    """Whether nobody else can have put code there: anyone may create a folder among the temporary files."""
    if not hasattr(os, "getuid"):
        return True
    link, found = folder.lstat(), folder.stat()
    return {link.st_uid, found.st_uid} <= {0, os.getuid()} and not found.st_mode & 0o022


def _writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


COMPILED = _compiled()
DIGEST = _digest(Path(__file__).parent.parent) if COMPILED else ""
CACHE = cache_folder() if DIGEST else None
