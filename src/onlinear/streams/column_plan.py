"""Decides how each column of a table is read: as a feature of some kind, as target, as weight, or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from onlinear.streams import encoding as enc
from onlinear.streams.bins import edges_between
from onlinear.streams.blocks import StreamError
from onlinear.streams.decided import must_hold_table
from onlinear.streams.delimiters import BLANK, MANY_BLANKS, delimiter_within, typed
from onlinear.streams.encoding import BOOLEAN, DATE, NUMBER, TEXT, Encoding, Feature
from onlinear.streams.expansions import bins_of_columns, words_of_columns
from onlinear.streams.interactions import pairs_of_columns
from onlinear.streams.marks import is_plain_number
from onlinear.streams.row_errors import OF_FEATURES, OF_MODELS
from onlinear.streams.table import Table
from onlinear.streams.table_options import TableOptions
from onlinear.text.form import quote_names, quoted, unknown
from onlinear.text.hints import MISSING_IN_TABLE

WANTED = {NUMBER: "a number", BOOLEAN: "true or false", DATE: "a date or time", TEXT: "text"}  # words for each kind
SPANS = "pandas.interval", "pandas.period"  # types of pandas whose values are best read as text
_TYPES = {NUMBER: pa.float64(), BOOLEAN: pa.bool_(), TEXT: pa.string()}


# takes features, and gives the values that each has in the first rows
FirstValues = Callable[[Sequence[Feature]], Mapping[str, np.ndarray]]


class Plan:
    """How each column is read. The options and the first file decide, or a given encoding; other files must agree.

    ``kinds`` has the kind of each column that the options, the encoding or the first file state; ``encoding``, ``target`` and
    ``unlabelled`` are set by ``decide``.
    """

    encoding: Encoding
    target: str | None
    unlabelled: bool

    def __init__(self, options: TableOptions, encoding: Mapping[str, Any] | None) -> None:
        self.options = options
        texts, numbers = _as_list(options.text), _as_list(options.numbers)
        self.kinds = dict.fromkeys(texts, TEXT) | dict.fromkeys(numbers, NUMBER)
        twice = [name for name, times in Counter([*texts, *numbers]).items() if times > 1]
        if twice:
            raise ValueError(f"text and numbers must name each column once, got {quoted(twice[0])} twice.")
        predicts = options.unlabelled and encoding is not None  # which needs no names of hashed columns
        self._given = None if encoding is None else enc.read(enc.without_seen(encoding) if predicts else encoding)
        self.keeps_names = not predicts
        if self._given is not None:
            self.kinds |= dict(self._given.features)
        if options.weight is not None:
            self.kinds[options.weight] = NUMBER
        self._first, self._in_memory = "", False  # the first file's name, and whether it is a table in memory
        self._all: frozenset[str] | None = None  # its columns, where no other file may have one more
        self._agreed: Any = None  # the schema that was last found to agree

    def decide(self, first: Table, first_values: FirstValues) -> None:
        """Decide by the first file; ``first_values`` gives the values of some of its columns in its first rows."""
        options, given = self.options, self._given
        _refuse_repeated(first, options.delimiter)
        if options.weight is not None and options.weight not in first.schema.names:
            raise _no_column("weight", options.weight, first.schema.names)
        if given is not None:
            must_hold_table(given, options, first.schema.names)
        self.unlabelled = given is not None and options.target is None if options.unlabelled is None else options.unlabelled
        self.target = self._choose_target(first, None if given is None else given.target)
        if options.weight is not None and options.weight == self.target:
            raise ValueError(f"weight must name another column than the target, got {options.weight!r} for both.")
        self.encoding = self._plan_features(first, first_values) if given is None else given
        self.kinds |= dict(self.encoding.features)
        self._first, self._in_memory = first.place.name, first.place.table is not None
        self._all = frozenset(first.schema.names) if given is None and options.features is None else None

    @property
    def of_missing(self) -> str:
        """What to do about missing values, in words: by a model whose encoding was given, or by where the rows are."""
        return OF_MODELS if self._given is not None else MISSING_IN_TABLE if self._in_memory else OF_FEATURES

    @property
    def text_target(self) -> bool:
        """Whether the target is text: classes with names."""
        return self.target is not None and self.kinds[self.target] == TEXT

    def doubtful(self, first: Table) -> dict[str, tuple[str, ...]]:
        """Of the columns that are text for a few marks, or numbers that are rounded, the features that the first file decided
        on."""
        if self._given is not None:
            return {}
        asked = {*_as_list(self.options.text), *_as_list(self.options.numbers)}
        found = [(self.encoding.texts, first.marks), (self.encoding.numeric, first.rounded)]
        return {
            feature.name: marks[feature.name]
            for features, marks in found
            for feature in features
            if feature.name in marks and feature.name not in asked
        }

    def types(self) -> dict[str, Any]:
        """The type that each column with a known kind is to be read as, where a file does not state types."""
        return {name: _TYPES[kind] for name, kind in self.kinds.items() if kind in _TYPES}

    def columns(self) -> list[str]:
        """The columns to read: features, then target, then weight."""
        others = [name for name in (self.target, self.options.weight) if name is not None]
        return [*(feature.name for feature in self.encoding.features), *others]

    def must_agree(self, table: Table) -> None:
        """Raise StreamError where a file lacks a column, holds something else in it, or has one more."""
        if self._agreed is not None and table.schema.equals(self._agreed):
            return
        _refuse_repeated(table, self.options.delimiter)
        names = table.schema.names
        there = set(names)
        for name in self.columns():
            if name not in there:
                hint = _delimiter_hint(names)
                asked = f" Is {hint}" if hint else ""
                raise StreamError(f"{table.place.name}: expected a column {quoted(name)}, got {quote_names(names)}.{asked}")
            self._kind(table, name)
        more = sorted(there - self._all) if self._all is not None else []
        excluded = _as_list(self.options.exclude)
        more = [name for name in more if not any(enc.columns_that_fit([name], pattern) for pattern in excluded)]
        if more:
            hint = "name the features (features=, in the command --features)"
            raise StreamError(f"{table.place.name}: the column {quoted(more[0])} is not in {self._first}; {hint}.")
        by_type = all(self.takes(name, table.types[name]) for name in self.columns())
        self._agreed = table.schema if by_type else None  # of a column without values another file may have some

    def takes(self, name: str, held: Any) -> bool:
        """Whether values of this type are read as the kind that is stated for a column."""
        stated = self.kinds[name]
        if pa.types.is_dictionary(held) and stated != TEXT and not pa.types.is_null(held.value_type):
            held = held.value_type
        found = kind_of(held)
        fits = found == stated or pa.types.is_null(held) or {found, stated} == {NUMBER, BOOLEAN}
        return fits or (stated == TEXT and _is_textual(held)) or (found == TEXT and name in _as_list(self.options.numbers))

    def _choose_target(self, table: Table, given: str | None) -> str | None:
        """The target's name, None where there is none; ``given``: the target of the given encoding."""
        names, name = table.schema.names, given if self.options.target is None else self.options.target
        if name is None and not self.unlabelled:
            hint = _delimiter_hint(names)
            asked = f" Is {hint}" if hint else ""
            raise ValueError(
                f"target must name the column to predict, one of {quote_names(names)} (in the command: --target); rows for "
                f"a trained model are read with encoding=model.encoding_.{asked or _values_hint(names)}"
            )
        if name is None or (name not in names and self.unlabelled):
            return None
        if name not in names:
            raise _no_column("target", name, names)
        held = table.types[name]
        values = held.value_type if pa.types.is_dictionary(held) else held
        if (kind := kind_of(values)) in (NUMBER, BOOLEAN):
            self.kinds.setdefault(name, str(kind))  # classes that are numbers, whatever holds them
        if name not in self.kinds and pa.types.is_null(held) and not table.bare:
            if self.unlabelled and self._given is not None:
                return None  # no row has one
            found = f"got no value in the column {quoted(name)}: is this a file of rows to predict?"
            raise StreamError(f"{table.place.name}: expected a target in every row, {found}")
        if name not in self.kinds and kind_of(held) in (DATE, None) and not pa.types.is_null(held):
            plain = "turn them into numbers first, such as seconds since 1970" if kind_of(held) == DATE else _plainer(held)
            raise StreamError(
                f"{table.place.name}: expected numbers, booleans or text in the target column {quoted(name)}, got "
                f"{in_words(held)}: {plain}."
            )
        self.kinds[name] = self._kind(table, name)
        return name

    def _plan_features(self, table: Table, first_values: FirstValues) -> Encoding:
        """The encoding that the first file and the options give."""
        options, names = self.options, table.schema.names
        there = set(names)
        for name in self.kinds:
            if name not in there:
                raise _no_column("text and numbers", name, names)
        others = [name for name in enc.choose_columns(names, options.features, options.exclude) if name != self.target]
        features = [name for name in others if name != options.weight]
        if not features:
            raise ValueError(f"{table.place.name}: no column is left as a feature.")
        found = [Feature(name, self._kind(table, name)) for name in features]
        categories = enc.HASH if options.categories is None else options.categories
        if options.hash_bits is not None and categories == enc.ONE_HOT:
            raise ValueError("hash_bits is for categories='hash', got categories='one-hot', which hashes nothing.")
        words, bins = words_of_columns(found, options.ngrams, categories), bins_of_columns(found, options.bins)
        planned = Encoding(
            found,
            **enc.check_options(categories, options.hash_bits, options.dates),
            missing=enc.read_policies(enc.ERROR if options.missing is None else options.missing),
            target=self.target,
            interactions=pairs_of_columns(found, options.interactions, categories, words, bins),
            ngrams=words,
            bins=_edges(bins, [feature for feature in found if isinstance(bins.get(feature.name), int)], first_values),
        )
        if planned.room < 0:
            most, held = enc.MOST_BYTES, enc.MOST_BYTES - planned.room
            raise StreamError(
                f"{table.place.name}: expected features whose names take at most {most:,} bytes in a model file, got {held:,}: "
                "name fewer in features, or give them shorter names."
            )
        return planned

    def _kind(self, table: Table, name: str) -> str:
        """The kind of a column, as stated or by its type. Raises StreamError for a column that cannot be a feature."""
        held = table.types[name]
        stated, found = self.kinds.get(name), kind_of(held)
        where = f"{table.place.name}: column {quoted(name)}"
        if stated is not None:
            if self.takes(name, held) or table.is_void(name):
                return stated
            wanted = f"{WANTED[stated]}, {'as asked or as in the first file' if self._given is None else 'as the model has it'}"
            raise StreamError(f"{where}: expected {wanted}, got {in_words(held)}{_of_floats(stated, held)}.")
        if pa.types.is_null(held):
            if table.bare and self._given is not None:
                return NUMBER  # a target, which no row has
            raise StreamError(
                table.bare
                or f"{where} has no value that tells its type: exclude it, or name it in text or numbers{_by(table)}."
            )
        if found is None:
            raise StreamError(f"{where} holds {in_words(held)}, which is no feature: exclude it, or {_plainer(held)} first.")
        if found == DATE and self.options.dates is None:
            choice = "read it as a number (dates='seconds' or 'days' since 1970), or as a category (text)"
            raise StreamError(f"{where} holds dates or times ({held}): exclude it, {choice}{_by(table)}.")
        return found


def _edges(
    bins: Mapping[str, int | list[float]], counted: Sequence[Feature], first_values: FirstValues
) -> dict[str, list[float]]:
    """The edges of bins; those of the features ``counted`` follow from the first rows."""
    values = first_values(counted) if counted else {}
    found = {name: given if isinstance(given, list) else edges_between(values[name], given) for name, given in bins.items()}
    alike = next((name for name, edges in found.items() if not edges), None)
    if alike is not None:
        raise ValueError(
            f"bins: column {quoted(alike)} has no two values in the first rows that differ: give edges, as '{alike}:0.5'."
        )
    return found


def _by(table: Table) -> str:
    """Where the options of a table in memory are given: estimators have none of them."""
    return "" if table.place.table is None else "; these are options of streams.open(table, target=...)"


def _no_column(role: str, name: str, names: Sequence[str]) -> ValueError:
    """The error for a column that is not there; where all names are one, they may have another delimiter."""
    hint = _delimiter_hint(names)
    if hint:
        return ValueError(f"{role}: the column {quoted(name)} is not known. The only column is {quoted(names[0])}: is {hint}")
    return ValueError(f"{unknown(f'{role}: the column', name, names)}{_values_hint(names)}")


def _delimiter_hint(names: Sequence[str]) -> str:
    """What may be the delimiter, where all names are one; else nothing."""
    other = delimiter_within(names)
    if other is None:
        return ""
    many = f"; {MANY_BLANKS}" if 2 * BLANK in names[0] and other == BLANK else ""
    return f"the delimiter {other!r}? (delimiter={other!r}, in the command --delimiter '{typed(other)}'{many})"


def _refuse_repeated(table: Table, delimiter: str | None) -> None:
    names = table.schema.names
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        hint = _values_hint([*names, f"+{repeated[0]}"])  # a number that repeats is a value, whole numbers too
        if delimiter == BLANK and not repeated[0]:
            hint = f" Of the delimiter, {MANY_BLANKS}."
        raise StreamError(f"{table.place.name}: expected each column name once, got {quoted(repeated[0])} twice.{hint}")


def _values_hint(names: Sequence[str]) -> str:
    """What to say where names are numbers, other than places such as ``0`` and ``12``; else nothing."""
    if any(is_plain_number(name) and not name.isdigit() for name in names):
        return " Are these values of a row? A CSV file needs a line of names before its rows."
    return ""


@cache
def kind_of(held: Any) -> str | None:
    """The kind of a column of this type; None: it cannot be a feature."""
    kinds = pa.types
    if kinds.is_dictionary(held):
        return TEXT if _is_textual(held) else None
    if kinds.is_boolean(held):
        return BOOLEAN
    if kinds.is_integer(held) or kinds.is_floating(held) or kinds.is_decimal(held):
        return NUMBER
    if kinds.is_temporal(held) and not kinds.is_interval(held):
        return DATE
    return TEXT if _is_textual(held) and not kinds.is_integer(held) else None


def in_words(held: Any) -> str:
    """What a column of this type holds; Arrow's own name stands behind what has no plain one."""
    kinds = pa.types
    if kinds.is_dictionary(held):
        return f"categories ({in_words(held.value_type)})"
    if isinstance(held, pa.BaseExtensionType):
        return f"values of the type {held.extension_name}"
    kind = kind_of(held)
    if kind in (NUMBER, BOOLEAN, TEXT):
        return {NUMBER: "numbers", BOOLEAN: "true and false", TEXT: "text"}[kind]
    found = "dates or times" if kind == DATE else "bytes" if _is_bytes(held) else None
    found = "records" if kinds.is_struct(held) else "lists" if _is_list(held) else found
    return str(held) if found is None else f"{found} ({held})"


def _of_floats(stated: str, held: Any) -> str:
    """What to do with floats in place of text: pandas makes them of whole numbers among which one is missing."""
    as_whole = stated == TEXT and pa.types.is_floating(held)
    return ", each of which has several texts (whole numbers with gaps: astype('Int64') in pandas)" if as_whole else ""


def _plainer(held: Any) -> str:
    """How a column of this type, which is no feature, becomes one."""
    if pa.types.is_dictionary(held):
        return _plainer(held.value_type)
    if _is_bytes(held):
        return "decode it to text"
    if isinstance(held, pa.BaseExtensionType) and held.extension_name in SPANS:
        return "make it text (astype(str))"
    return "turn it into plain columns"


def _is_bytes(held: Any) -> bool:
    kinds = pa.types
    return any(
        fits(held) for fits in (kinds.is_binary, kinds.is_large_binary, kinds.is_binary_view, kinds.is_fixed_size_binary)
    )


def _is_list(held: Any) -> bool:
    kinds = pa.types
    plain = kinds.is_list(held) or kinds.is_large_list(held) or kinds.is_fixed_size_list(held)
    return plain or kinds.is_list_view(held) or kinds.is_large_list_view(held)


def _is_textual(held: Any) -> bool:
    """Whether a column of this type can be read as text, each value in one way only."""
    kinds = pa.types
    if kinds.is_dictionary(held):
        return _is_textual(held.value_type)
    string = kinds.is_string(held) or kinds.is_large_string(held) or kinds.is_string_view(held)
    dated = kinds.is_temporal(held) and not kinds.is_interval(held)
    return string or kinds.is_integer(held) or kinds.is_boolean(held) or dated


def _as_list(names: Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)
