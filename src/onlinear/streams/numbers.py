"""Decimal numbers in text, read by compiled code: each becomes exactly the double that Python's ``float`` gives.

m 10^k with m <= 2^53, |k| <= 22   one product or quotient of exact doubles                     (Clinger, PLDI 1990)
up to 19 digits, -250 <= k <= 280  double-double product with a tabulated power; accepted where the result cannot be on
the other side of a tie                                       (Dekker, 1971)
all others                         ``float`` of the token, after the block

Digits whose place is known are read eight at a time, as one number, those of an entry side by side. The text and the powers
come as rooms (compiled/lanes.py), so that functions pass them on for nothing.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np

from onlinear.compiled import ZEROS, first_mark, function, spelled_words, word_at

ZERO, ONE, TEN = np.uint64(0), np.uint64(1), np.uint64(10)
DIGIT0, LOW_BITS, EXACT = np.uint64(48), np.uint64(2047), np.uint64(2**53)
PLUS, MINUS, POINT, LOWER_E = (ord(c) for c in "+-.e")
LOWEST_POWER, HIGHEST_POWER = -250, 280
SPLIT = 134217729.0  # 2^27 + 1
MOST_EXPONENT = np.int64(1 << 40)
FINE, LATE, BAD = 0, 1, 2
EIGHT, SIXTEEN, MOST_DIGITS = np.uint64(8), np.uint64(16), np.uint64(19)  # digits of one word and of two; of a mantissa
DIGITS = np.uint64(ZEROS)
OVER_9, HIGH_BITS = np.uint64(0x7676767676767676), np.uint64(0x8080808080808080)
PAIRS, FOURS, EIGHTS = np.uint64(0x00FF00FF00FF00FF), np.uint64(0x0000FFFF0000FFFF), np.uint64(0xFFFFFFFF)
WHOLE_TENS = 10 ** np.arange(20, dtype=np.uint64)
# The mask of a word's last n - 8 bytes, none or all eight beyond these.
KEPT = np.array([2**64 - 2 ** (64 - 8 * min(max(n - 8, 0), 8)) for n in range(28)], np.uint64)


@cache
def powers() -> np.ndarray:
    """10^k as an unevaluated sum of two doubles, from place 2 (k - LOWEST_POWER) on; 10^0 .. 10^22 are doubles themselves."""
    exact = [Fraction(10) ** k for k in range(LOWEST_POWER, HIGHEST_POWER + 1)]
    return np.array([part for x in exact for part in (float(x), float(x - Fraction(float(x))))])


@function
def number(text, i, tens):  # type: ignore[no-untyped-def]
    """The number that starts at ``i``: its value, where it ends, and FINE, LATE (left to ``float``) or BAD."""
    negative = text[i] == MINUS
    if negative or text[i] == PLUS:
        i += ONE
    first = i
    mantissa, i = digits(text, i, ZERO)
    count, power = np.int64(i - first), np.int64(0)
    if text[i] == POINT:
        point = i + ONE
        mantissa, i = digits(text, point, mantissa)
        power = -np.int64(i - point)
        count -= power
    if count == 0:
        return 0.0, first, BAD
    if text[i] | 32 == LOWER_E:
        exponent, i, missing = _exponent(text, i + ONE)
        if missing:
            return 0.0, first, BAD
        power += exponent
    if count > 19 and significant(text, first, count) > 19:
        return np.nan, i, LATE
    value = scale(mantissa, power, tens)
    return -value if negative else value, i, FINE if value == value else LATE


@function
def digits(text, i, value):  # type: ignore[no-untyped-def]
    """``value`` followed by the digits at ``i``, and where they end."""
    digit = np.uint64(text[i]) - DIGIT0
    while digit < TEN:
        value = value * TEN + digit
        i += ONE
        digit = np.uint64(text[i]) - DIGIT0
    return value, i


@function
def spelled(word):  # type: ignore[no-untyped-def]
    """The number that a word of digits spells, by pairs, fours and eights."""
    pairs = (word * TEN + (word >> EIGHT)) & PAIRS
    fours = (pairs * np.uint64(100) + (pairs >> SIXTEEN)) & FOURS
    return (fours * np.uint64(10000) + (fours >> np.uint64(32))) & EIGHTS


@function
def other_bytes(word):  # type: ignore[no-untyped-def]
    """Not 0 where a byte of a word of digits is none. A byte that carries has been marked before it does."""
    return ((word + OVER_9) | word) & HIGH_BITS


@function
def plain_numbers(text, last, count, first, end, points, tens):  # type: ignore[no-untyped-def]
    """The ``count`` digits before ``last``, at most eight, as a number, and the number between two places that is digits, with
    a point or without. The second is nan where either is something else; then ``number`` reads it.

    ``points``: the marks of points from ``first`` on. There are 16 bytes before all of it.
    """
    negative = text[first] == MINUS
    begin = first + np.uint64(negative)
    point = min(first + first_mark(points), end)
    before, after = point - begin, end - point - np.uint64(point < end)
    if before > EIGHT or after > MOST_DIGITS or before + after - ONE >= MOST_DIGITS:
        return ZERO, np.nan
    index, whole, high, low, others = spelled_words(
        word_at(text, last - EIGHT), word_at(text, point - EIGHT), word_at(text, end - SIXTEEN), word_at(text, end - EIGHT),
        KEPT[EIGHT + count], KEPT[EIGHT + before], KEPT[after], KEPT[EIGHT + after],
    )  # fmt: skip
    mantissa = whole * WHOLE_TENS[after] + high * WHOLE_TENS[8] + low
    if after > SIXTEEN:
        word = (word_at(text, end - SIXTEEN - EIGHT) ^ DIGITS) & KEPT[after - EIGHT]
        mantissa, others = mantissa + spelled(word) * WHOLE_TENS[16], others | other_bytes(word)
    if others != ZERO:
        return ZERO, np.nan
    if mantissa <= EXACT:
        value = np.float64(np.int64(mantissa)) / tens[2 * (np.int64(after) - LOWEST_POWER)]
    else:
        value = scale(mantissa, -np.int64(after), tens)
    return index, -value if negative else value


@function
def _exponent(text, i):  # type: ignore[no-untyped-def]
    """The exponent at ``i``, where it ends, and whether its digits are missing."""
    down = text[i] == MINUS
    if down or text[i] == PLUS:
        i += ONE
    start = i
    exponent = np.int64(0)
    digit = np.uint64(text[i]) - DIGIT0
    while digit < TEN:
        exponent = min(exponent * 10 + np.int64(digit), MOST_EXPONENT)
        i += ONE
        digit = np.uint64(text[i]) - DIGIT0
    return -exponent if down else exponent, i, i == start


@function
def significant(text, i, count):  # type: ignore[no-untyped-def]
    """``count`` less the zeros in front, of the digits that start at ``i``."""
    while count > 0 and (text[i] == DIGIT0 or text[i] == POINT):
        if text[i] == DIGIT0:
            count -= 1
        i += ONE
    return count


@function
def scale(mantissa, power, tens):  # type: ignore[no-untyped-def]
    """The double nearest to ``mantissa 10^power``; nan where this arithmetic cannot tell."""
    if mantissa <= EXACT:
        if power == 0 or mantissa == ZERO:
            return np.float64(mantissa)
        if -22 <= power < 0:
            return np.float64(mantissa) / tens[2 * (-power - LOWEST_POWER)]
        if 0 < power <= 22:
            return np.float64(mantissa) * tens[2 * (power - LOWEST_POWER)]
        a, b = np.float64(mantissa), 0.0
    else:
        a, b = np.float64(mantissa - (mantissa & LOW_BITS)), np.float64(mantissa & LOW_BITS)
    if power < LOWEST_POWER or power > HIGHEST_POWER:
        return np.nan
    p, q = tens[2 * (power - LOWEST_POWER)], tens[2 * (power - LOWEST_POWER) + 1]
    high = a * p
    wide = SPLIT * a
    a1 = wide - (wide - a)
    wide = SPLIT * p
    p1 = wide - (wide - p)
    a2, p2 = a - a1, p - p1
    low = ((a1 * p1 - high) + a1 * p2 + a2 * p1) + a2 * p2
    low += b * p + a * q
    # Rounding has moved high + low by less than 2^-94 of it.
    doubt = high * 2.0**-90
    value = high + (low - doubt)
    return value if value == high + (low + doubt) else np.nan
