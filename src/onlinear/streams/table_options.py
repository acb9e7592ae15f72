"""The options of tables, as a plan of their columns takes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from onlinear.streams.marks import NULLS


class TableOptions(NamedTuple):
    """The options of ``streams.open`` that concern tables."""

    target: str | None = None
    weight: str | None = None
    features: Iterable[str] | None = None
    exclude: Iterable[str] = ()
    text: Iterable[str] = ()
    numbers: Iterable[str] = ()
    categories: str | None = None
    hash_bits: int | None = None
    interactions: Iterable[Any] = ()
    ngrams: Any = ()
    bins: Any = ()
    missing: str | Mapping[str, str] | None = None
    dates: str | None = None
    classes: Sequence[str] | None = None
    nulls: Sequence[str] = NULLS
    delimiter: str | None = None
    decimal: str | None = None
    unlabelled: bool | None = None
    max_errors: int = 0
