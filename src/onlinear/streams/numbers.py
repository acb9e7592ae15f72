"""Decimal numbers in text, read by compiled code: each becomes exactly the double that Python's ``float`` gives.

m 10^k with m <= 2^53, |k| <= 22   one product or quotient of exact doubles                     (Clinger, PLDI 1990)
up to 19 digits, -250 <= k <= 280  double-double product with a tabulated power; accepted where the result cannot be on
the other side of a tie                                       (Dekker, 1971)
all others                         ``float`` of the token, after the block
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np

from onlinear.compiled import function

ZERO, ONE, TEN = np.uint64(0), np.uint64(1), np.uint64(10)
DIGIT0, LOW_BITS, EXACT = np.uint64(48), np.uint64(2047), np.uint64(2**53)
PLUS, MINUS, POINT, LOWER_E = (ord(c) for c in "+-.e")
LOWEST_POWER, HIGHEST_POWER = -250, 280
SPLIT = 134217729.0  # 2^27 + 1
FAR = np.int64(1 << 40)
FINE, LATE, BAD = 0, 1, 2


@cache
def powers() -> np.ndarray:
    """10^k as an unevaluated sum of two doubles, in column k - LOWEST_POWER; 10^0 .. 10^22 are doubles themselves."""
    exponents = range(LOWEST_POWER, HIGHEST_POWER + 1)
    exact = [Fraction(10) ** k for k in exponents]
    high = [float(x) for x in exact]
    low = [float(x - Fraction(h)) for x, h in zip(exact, high, strict=True)]
    return np.array([high, low])


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
def _exponent(text, i):  # type: ignore[no-untyped-def]
    """The exponent at ``i``, where it ends, and whether its digits are missing."""
    down = text[i] == MINUS
    if down or text[i] == PLUS:
        i += ONE
    start = i
    exponent = np.int64(0)
    digit = np.uint64(text[i]) - DIGIT0
    while digit < TEN:
        exponent = min(exponent * 10 + np.int64(digit), FAR)
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
            return np.float64(mantissa) / tens[0, -power - LOWEST_POWER]
        if 0 < power <= 22:
            return np.float64(mantissa) * tens[0, power - LOWEST_POWER]
        a, b = np.float64(mantissa), 0.0
    else:
        a, b = np.float64(mantissa - (mantissa & LOW_BITS)), np.float64(mantissa & LOW_BITS)
    if power < LOWEST_POWER or power > HIGHEST_POWER:
        return np.nan
    p, q = tens[0, power - LOWEST_POWER], tens[1, power - LOWEST_POWER]
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
