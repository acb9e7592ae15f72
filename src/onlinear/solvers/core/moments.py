"""The moments at which a run may visit all coordinates.

They follow from the rows learned so far alone (contract 6). Such a moment is before the row that comes after 2^6, 2^7, .. 2^18
rows and then every 2^18 rows, and when the decay since the last visit passes a limit. A visit reads and writes all of the
state, which of a wide model is most of a short run. So what can do with fewer visits has fewer: sums of averages restart at
powers of 8, potentials alone are visited every 2^18 rows (``visits.py``).
"""

from __future__ import annotations

from collections.abc import Callable

from onlinear.compiled import function

FIRST_VISIT, LONGEST_BLOCK = 64, 1 << 18
POWERS_OF_8 = 0o1111111
DECAY_LIMIT, DECAY_LIMIT_AVERAGED = 2.0**500, 2.0**10


@function
def due(t: int) -> bool:
    """Whether a run may visit all coordinates after t rows."""
    if t < FIRST_VISIT:
        return False
    return t & (t - 1) == 0 if t <= LONGEST_BLOCK else t & (LONGEST_BLOCK - 1) == 0


@function
def sums_due(t: int) -> bool:
    """Whether the sums of an average restart after t rows: at powers of 8 up to 2^18, then as ``due`` says."""
    return due(t) and (t > LONGEST_BLOCK or t & POWERS_OF_8 != 0)


def next_visit(t: int, is_due: Callable[[int], bool]) -> int:
    """The first row count above t at which a run visits all coordinates, where ``is_due`` says so of powers of two up to 2^18
    and of multiples of that."""
    powers = (1 << k for k in range(LONGEST_BLOCK.bit_length()))
    return next((power for power in powers if power > t and is_due(power)), (t // LONGEST_BLOCK + 1) * LONGEST_BLOCK)
