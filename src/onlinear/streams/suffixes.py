"""The format of a source, by its name."""

from __future__ import annotations

import os
import re

PARQUET, ARROW, CSV = "parquet", "arrow", "csv"
SUFFIXES = {PARQUET: (".parquet", ".pq"), ARROW: (".arrow", ".feather", ".ipc"), CSV: (".csv", ".tsv")}
PACKED = (".gz", ".bz2", ".xz", ".zst")
TABLES = (PARQUET, ARROW, CSV)


def is_uri(name: str) -> bool:
    """Whether the name is a filesystem URI such as s3://bucket/key."""
    return re.match(r"[a-z][a-z0-9+.-]+://", name) is not None


def suffix_of(path: str | os.PathLike[str]) -> str:
    """The last suffix of a path, in lower case."""
    return os.path.splitext(os.fspath(path))[1].lower()


def strip_packing(path: str) -> str:
    """The path in lower case, without the suffix of a compressed file."""
    name = path.lower()
    return name.removesuffix(next((suffix for suffix in PACKED if name.endswith(suffix)), ""))


def form_of(path: str) -> str | None:
    """The format of the table that a file's suffix names, None where it names none."""
    for form, suffixes in SUFFIXES.items():
        if (strip_packing(path) if form == CSV else path.lower()).endswith(suffixes):
            return form
    return None
