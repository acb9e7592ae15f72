"""What a test left in cycles is collected without a search of the millions of objects that are older, which takes seconds."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collected() -> Iterator[None]:
    """Collect at the end what was made since the beginning."""
    gc.freeze()
    try:
        yield
    finally:
        gc.collect()
        gc.unfreeze()
