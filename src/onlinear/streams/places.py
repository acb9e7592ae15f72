"""Finds the files behind the name of a folder, or behind a filesystem URI that pyarrow opens."""

from __future__ import annotations

import errno
import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, NamedTuple
from urllib.parse import unquote

from pyarrow import fs

from onlinear.streams.arrow import ERRORS, first_line
from onlinear.streams.suffixes import is_uri
from onlinear.text.names import printable

NO_KEY = "__HIVE_DEFAULT_PARTITION__"


class Place(NamedTuple):
    """Where a file is: its ``name`` in messages, and its ``path`` inside ``filesystem`` (None: this machine's).

    A table in memory has no path: it is ``table``, an Arrow table.
    """

    name: str
    path: str
    filesystem: Any = None
    keys: tuple[tuple[str, Any], ...] = ()  # columns that its folders' names ``key=value`` give
    table: Any = None


def find_places(name: str) -> list[Place]:
    """The files of a folder, or of a URI that names a file, a folder or a pattern, in the order of their paths.

    Names that begin with _ or . are left out. Raises FileNotFoundError or IsADirectoryError where there is none.
    """
    filesystem, root = None, name
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{printable(name)}: expected the name of a folder in UTF-8, as pyarrow reads no other.") from None
    if is_uri(name):
        pattern = any(c in name for c in "*?[")
        base = name[: re.search(r"[*?\[]", name).start()].rpartition("/")[0] if pattern else name  # type: ignore[union-attr]
        try:
            filesystem, root = fs.FileSystem.from_uri(base)
            if pattern:
                return _find_matching(filesystem, root, base, name)
            if filesystem.get_file_info(root).type == fs.FileType.File:
                return [Place(name, root, filesystem)]
        except (*ERRORS, ValueError) as error:
            raise FileNotFoundError(f"{printable(name)}: cannot be opened: {first_line(error)}") from None
    found = sorted(_files_here(root) if filesystem is None else _files_below(filesystem, root))
    if not found:
        if filesystem is None:
            raise IsADirectoryError(f"{printable(name)} is a folder with no file in it; expected Parquet, Arrow or CSV files.")
        raise FileNotFoundError(f"{printable(name)}: there is no file of that name, and no folder with files.")
    shown = name.rstrip("/") or "/"
    inner = [path.removeprefix(root.rstrip("/")).lstrip("/") for path in found]
    keys = _folder_keys(inner)
    return [
        Place(posixpath.join(shown, part), path, filesystem, key) for part, path, key in zip(inner, found, keys, strict=True)
    ]


def _files_here(root: str) -> Iterator[str]:
    """Paths of the files in a folder of this machine and its folders. Raises OSError for a link to a folder that it is in."""
    waiting: list[tuple[str, tuple[tuple[int, int], ...]]] = [(root.rstrip("/"), (_identity(root),))]
    while waiting:
        folder, above = waiting.pop()
        with os.scandir(folder or "/") as entries:
            for entry in entries:
                path = f"{folder}/{entry.name}"
                if entry.name.startswith(("_", ".")):
                    continue
                if entry.is_file():
                    yield path
                elif entry.is_dir():
                    own = _identity(path)
                    if own in above:
                        raise OSError(errno.ELOOP, "is a link to a folder that it is in", path)
                    waiting.append((path, (*above, own)))


def _identity(folder: str) -> tuple[int, int]:
    """What tells a folder from all others, whatever its path."""
    found = os.stat(folder)
    return found.st_dev, found.st_ino


def _files_below(filesystem: Any, root: str) -> Iterator[str]:
    """Paths of the files in a folder and its folders."""
    for info in filesystem.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True)):
        parts = info.path.removeprefix(root.rstrip("/")).strip("/").split("/")
        if info.type == fs.FileType.File and not any(part.startswith(("_", ".")) for part in parts):
            yield info.path


def _find_matching(filesystem: Any, root: str, base: str, name: str) -> list[Place]:
    pattern = name.removeprefix(base).lstrip("/")
    inner = ((path, path.removeprefix(root.rstrip("/")).lstrip("/")) for path in sorted(_files_below(filesystem, root)))
    found = [(path, part) for path, part in inner if part.count("/") == pattern.count("/") and fnmatchcase(part, pattern)]
    if not found:
        raise FileNotFoundError(f"no file matches {name!r}.")
    return [Place(f"{base.rstrip('/')}/{part}", path, filesystem) for path, part in found]


def _folder_keys(paths: Iterable[str]) -> list[tuple[tuple[str, Any], ...]]:
    """The columns that folders named ``key=value`` give each path; numbers where all values of a key are whole."""
    raw = [[part.split("=", 1) for part in path.split("/")[:-1] if "=" in part] for path in paths]
    pairs = [[(unquote(key), None if value == NO_KEY else unquote(value)) for key, value in each] for each in raw]
    text = {key for each in pairs for key, value in each if value is not None and not re.fullmatch(r"-?\d{1,15}", value)}
    return [tuple((key, value if value is None or key in text else int(value)) for key, value in each) for each in pairs]
