"""Checks of what pyarrow reads from files, and its errors in words.

pyarrow trusts a file's offsets and the places in its dictionaries until it is asked to check them: a wrong offset could lead
anywhere in memory. Every batch passes through ``check_batch`` before anything else reads it.
"""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
from pyarrow import fs

# The errors that pyarrow raises for a damaged or hostile file; Python raises UnicodeError for names that are not UTF-8.
ERRORS = (pa.ArrowException, OSError, UnicodeError)
LARGEST_BATCH = 1 << 31  # bytes of a record batch or row group


def opened(path: str) -> Any:
    """A file of this machine, whatever the bytes of its name: as text, pyarrow takes names in UTF-8 only."""
    return fs.LocalFileSystem().open_input_file(os.fsencode(path))


def check_batch(batch: Any) -> Any:
    """The batch, once its every offset, text and place in a dictionary is checked. Raises ArrowInvalid."""
    batch.validate(full=True)
    return batch


def check_names(schema: Any) -> Any:
    """The schema, once the names of its columns are read. Raises UnicodeError."""
    _ = schema.names
    return schema


def first_line(error: BaseException) -> str:
    """The first line of an error's message, as a sentence."""
    text = str(error).strip().split("\n")[0] or type(error).__name__
    return text if text.endswith(".") else text + "."
