"""How large a state may grow, and the errors for rows that would make it larger."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

LIMIT = "ONLINEAR_STATE_LIMIT"  # the environment variable that says how large a state may become, in bytes or as 20GB
UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
COLUMNS_NEEDED = "n_features (--n-features) must be given."


class WideRowError(ValueError):
    """A row has a column that would make the state grow beyond its limit."""

    def __init__(self, row: int, rule: str) -> None:
        super().__init__(f"row {row} of X: {rule}")
        self.row, self.rule = row, rule


class ColumnsNeeded(ValueError):  # noqa: N818 (nothing is wrong, only unknown)
    """The number of columns must be known before the first row."""


def state_limit() -> int:
    """The bytes that a state may grow to.

    The environment says how many; else it is 4 GiB, or half of the machine's memory where that is less. 4 GiB hold 100 million
    columns of the estimators' defaults; the largest public data sets have 55 million.
    """
    asked = os.environ.get(LIMIT)
    if asked is None:
        memory = machine_memory()
        return min(4 << 30, memory // 2) if memory > 0 else 4 << 30
    found = re.fullmatch(r"([0-9]{1,15}) *([KMGT]?B)?", asked.strip(), re.IGNORECASE)
    if found is None:
        raise ValueError(f"the environment variable {LIMIT} must be a number of bytes, such as 20GB, got {asked!r}.")
    return int(found[1]) * UNITS[(found[2] or "B").upper()]


def machine_memory() -> int:
    """The bytes of the machine's memory; 0 where the system does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows; a system without these names
        return 0


@contextmanager
def room_for(columns: int, outputs: int, each: int = 0) -> Iterator[None]:
    """Where a state of so many columns and outputs finds no memory, the MemoryError says so; ``each``: the bytes of a column,
    where they are known."""
    try:
        yield
    except MemoryError as error:
        several = "" if outputs == 1 else f" for {outputs:,} outputs"
        needed = f", {columns * each / 1e9:.3g} GB" if each else ""
        raise MemoryError(
            f"no memory for a state of {columns:,} columns{several}{needed} ({error}): fewer columns need less, as names "
            "hashed to fewer (hash_bits, --hash-bits)."
        ) from None


def growth_error(column: int, each: int) -> str | None:
    """Why a state of ``each`` bytes per column may not grow to hold a column; None where it may."""
    limit = state_limit()
    if (column + 1) * each <= limit:
        return None
    return (
        f"expected columns up to {limit // each - 1:,} (a state of {limit / 1e9:.3g} GB), got column {column:,}, for which the "
        f"state would grow to {(column + 1) * each / 1e9:.3g} GB. If the column is right, set the environment variable {LIMIT} "
        "to more, such as 20GB, or give the number of columns (--n-features, n_features=)."
    )
