"""What pyarrow reads from files: believed once it is checked, and its errors in words.

pyarrow trusts a file's offsets and the places in its dictionaries until it is asked to look at them: what a file claims could
lead anywhere in memory. Every batch passes through ``valid`` before anything else reads it.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

# What pyarrow raises for a file that is damaged or hostile; names that are no UTF-8 are found by Python.
ERRORS = (pa.ArrowException, OSError, UnicodeError)
LARGEST_BATCH = 1 << 31  # bytes of a record batch or row group


def valid(batch: Any) -> Any:
    """The batch, whose every offset, text and place in a dictionary has been checked; raises ArrowInvalid."""
    batch.validate(full=True)
    return batch


def named(schema: Any) -> Any:
    """The schema, whose columns have names that can be read; raises UnicodeError."""
    _ = schema.names
    return schema


def first_line(error: BaseException) -> str:
    """What an error says, as one sentence."""
    text = str(error).strip().split("\n")[0] or type(error).__name__
    return text if text.endswith(".") else text + "."
