"""svmlight text by plain Python: what the compiled reader must agree with, line by line."""

from __future__ import annotations

import math
import re

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
LAST_COLUMN = 2**31 - 2


def reference_rows(text: str) -> tuple[list[tuple[int, str, list[int], list[str]]], int | None]:
    """Rows as (line, label, columns, values), numbers in hexadecimal, up to the first wrong line, and that line."""
    rows = []
    for at, line in enumerate(text.split("\n"), 1):
        tokens = re.split(r"[ \t]+", line.removesuffix("\r").partition("#")[0].strip(" \t"))
        if tokens == [""]:
            continue
        row = parsed(tokens)
        if row is None or "\r" in line.removesuffix("\r").partition("#")[0]:
            return rows, at
        rows.append((at, *row))
    return rows, None


def parsed(tokens: list[str]) -> tuple[str, list[int], list[str]] | None:
    label = number(tokens[0])
    if label is None:
        return None
    rest, columns, values, previous = tokens[1:], [], [], 0
    if rest and re.fullmatch(f"qid:{NUMBER}", rest[0]):
        rest = rest[1:]
    for token in rest:
        index, colon, value = token.partition(":")
        x = number(value)
        if not colon or not re.fullmatch(r"[0-9]{1,10}", index) or x is None or not previous < int(index) <= LAST_COLUMN + 1:
            return None
        previous = int(index)
        if x != 0.0:
            columns.append(previous - 1)
            values.append(x.hex())
    return label.hex(), columns, values


def number(token: str) -> float | None:
    if not re.fullmatch(NUMBER, token, re.ASCII) or not math.isfinite(float(token)):
        return None
    return float(token)
