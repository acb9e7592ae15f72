"""Tables of named columns as rows of numbers: Parquet, Feather (Arrow IPC), CSV.

What becomes of each kind of column, and of missing values, is in docs/streams.md; where the columns go, in ``encoding``.
NaN is a missing value, infinity is refused. All work is done on whole columns of a batch, nothing row by row.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import cache, partial
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onlinear.compiled import kernel
from onlinear.rows import Rows, plain
from onlinear.streams import encoding as enc
from onlinear.streams import tables
from onlinear.streams.arrow import ERRORS, first_line
from onlinear.streams.blocks import Block, Reader, StreamError
from onlinear.streams.encoding import (
    BOOLEAN,
    DATE,
    ERROR,
    HASH,
    INDICATOR,
    MOST_VALUES,
    NUMBER,
    OMIT,
    TEXT,
    Encoding,
    Feature,
)
from onlinear.streams.files import is_pipe
from onlinear.streams.hashing import hash_texts, key_hash, tidy
from onlinear.streams.suffixes import CSV
from onlinear.streams.tables import NULLS, Place, Reading, Table
from onlinear.text.form import unknown

EXACT = 2**53
MOST_ROWS = 1 << 16  # of a block
MOST_COUNTED = 1000  # files whose rows are counted in advance
_HINT = " (missing: omit or indicator accept it)"
_READ_AS = {NUMBER: pa.float64(), BOOLEAN: pa.bool_(), TEXT: pa.string()}
_WANTED = {NUMBER: "a number", BOOLEAN: "true or false", DATE: "a date or time", TEXT: "text"}
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class Options(NamedTuple):
    """What decides how a table becomes rows; see ``streams.open``."""

    target: str | None = None
    weight: str | None = None
    features: Iterable[str] | None = None
    exclude: Iterable[str] = ()
    text: Iterable[str] = ()
    numbers: Iterable[str] = ()
    categories: str = HASH
    hash_bits: int | None = None
    missing: str | Mapping[str, str] = ERROR
    dates: str | None = None
    classes: Sequence[str] | None = None
    nulls: Sequence[str] = NULLS
    delimiter: str | None = None
    unlabelled: bool | None = None
    max_errors: int = 0


class Columns(Reader):
    """The rows of one or several files with named columns, in blocks of about ``2 block_bytes`` of numbers.

    The first file decides the kinds of the columns, unless an ``encoding`` does; the others must agree.
    """

    def __init__(
        self,
        places: Sequence[Place],
        form: str,
        options: Options,
        encoding: Mapping[str, Any] | None = None,
        block_bytes: int = 1 << 20,
    ) -> None:
        if block_bytes < 1 or options.max_errors < 0:
            raise ValueError("block_bytes must be at least 1 and max_errors at least 0.")
        self.places, self.form, self.options = tuple(places), form, options
        self.name = places[0].name if len(places) == 1 else f"{len(places)} files"
        self.rereadable = not any(place.filesystem is None and is_pipe(place.path) for place in places)
        self.block_bytes, self.done, self.text_bytes = block_bytes, 0, 0
        self.errors = self._errors = list[str]()
        self._stated = dict.fromkeys(_listed(options.text), TEXT) | dict.fromkeys(_listed(options.numbers), NUMBER)
        if len(self._stated) < len([*_listed(options.text), *_listed(options.numbers)]):
            raise ValueError("text and numbers must name each column once.")
        given = None if encoding is None else enc.read(encoding)
        if given is not None:
            self._stated |= dict(given.features)
        if options.weight is not None:
            self._stated[options.weight] = NUMBER
        self._labels = {label: place for place, label in enumerate(map(str, options.classes or ()))}
        if len(self._labels) != len(options.classes or ()):
            raise ValueError("classes must not repeat a name.")
        self._names: tuple[str, ...] = ()
        self._layout: Layout | None = None  # of the last batch
        self._told: dict[tuple[str, bytes], Any] = {}
        self._agreed: Any = None  # the columns' types that have been found to be as they must
        with ExitStack() as opened:
            first = opened.enter_context(closing(self._open(self.places[0])))
            self._plan(first, given)
            self._spare = None if self.rereadable else first
            if self._spare is not None:
                opened.pop_all()

    def _plan(self, first: Table, given: Encoding | None) -> None:
        """Decide from the first file, the options and the given encoding what is read as what."""
        options = self.options
        self._must_be_single(first)
        if options.weight is not None and options.weight not in first.schema.names:
            raise unknown("weight: the column", options.weight, first.schema.names)
        self.unlabelled = given is not None and options.target is None if options.unlabelled is None else options.unlabelled
        self.target = self._target(first, None if given is None else given.target)
        self._encoding = self._planned(first) if given is None else given
        self._keys = Keys.of(self._encoding)
        self._stated |= dict(self._encoding.features)
        self._all = frozenset(first.schema.names) if given is None and options.features is None else None
        text = self.target is not None and self._stated[self.target] == TEXT
        self.task = "classify" if text else None
        self.classes = np.arange(len(self._labels), dtype=np.float64) if text and self._labels else None
        self.rows, self.total = self._sizes(first)

    # --- what the stream says of itself

    @property
    def labels(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """The classes' names as far as they have appeared, or as they were given; None where the target is no text."""
        if self.task == "classify" and len(self._names) < len(self._labels):
            self._names = tuple(self._labels)
        return self._names if self.task == "classify" else None

    @property
    def encoding(self) -> dict[str, Any]:  # type: ignore[override]
        """How columns became features, for ``open(encoding=)`` and ``encoding.names``."""
        return self._encoding.description()

    def _pass(self) -> Generator[Block, None, None]:
        self.errors = self._errors = list[str]()
        # Of many columns a few rows take as long as one.
        step = min(MOST_ROWS, max(1, self.block_bytes // (4 * len(self._encoding.features)), self.block_bytes >> 16))
        for place in self.places:
            began, spare, self._spare = perf_counter(), self._spare, None
            with closing(spare or self._open(place)) as table:
                self._must_agree(table)
                before, text = self.done, self.text_bytes
                for first, batch in table.batches(self._wanted(), step):
                    for block in self._converted(batch, np.arange(first, first + batch.num_rows), place.name):
                        self._move(table, before, text, block.n)
                        self.timing.read += perf_counter() - began
                        yield block
                        began = perf_counter()
                self._move(table, before, text, 0)
            self.timing.read += perf_counter() - began

    def _move(self, table: Table, before: int, text: int, rows: int) -> None:
        self.text_bytes = text + table.text_bytes
        self.done = self.done + rows if self.rows is not None else before + table.position

    def _count(self, error: str) -> None:
        if len(self._errors) >= self.options.max_errors:
            raise StreamError(error)
        self._errors.append(error)

    # --- what the columns are

    def _open(self, place: Place) -> Table:
        options = self.options
        types = {name: _READ_AS[kind] for name, kind in self._stated.items() if kind in _READ_AS}
        return tables.opened(place, self.form, Reading(types, options.nulls, options.delimiter, self._count, self._told))

    def _must_be_single(self, table: Table) -> None:
        names = table.schema.names
        repeated = sorted(name for name, count in Counter(names).items() if count > 1)
        if repeated:
            raise StreamError(f"{table.place.name}: expected each column name once, got {repeated[0]!r} twice.")

    def _target(self, table: Table, known: str | None) -> str | None:
        """The target's name, None where there is none; ``known``: the one of the given encoding."""
        names, name = table.schema.names, known if self.options.target is None else self.options.target
        if name is None and not self.unlabelled:
            raise ValueError(f"target must name the column to predict, one of {_some(names)}.")
        if name is None or (name not in names and self.unlabelled):
            return None
        if name not in names:
            raise unknown("target: the column", name, names)
        kind = self._kind(table, name)
        if kind == DATE:
            raise StreamError(
                f"{table.place.name}: expected numbers, booleans or text in the target column {name!r}, got dates."
            )
        self._stated[name] = kind
        return name

    def _planned(self, table: Table) -> Encoding:
        """The encoding that the first file and the options give."""
        options, names = self.options, table.schema.names
        there = set(names)
        for name in self._stated:
            if name not in there:
                raise unknown("text and numbers: the column", name, names)
        others = [name for name in enc.chosen(names, options.features, options.exclude) if name != self.target]
        features = [name for name in others if name != options.weight]
        if not features:
            raise ValueError(f"{table.place.name}: no column is left as a feature.")
        return Encoding(
            [Feature(name, self._kind(table, name)) for name in features],
            **enc.checked(options.categories, options.hash_bits, options.dates),
            missing=enc.policies(options.missing),
            target=self.target,
        )

    def _kind(self, table: Table, name: str) -> str:
        """What a column holds, as stated or as its type tells; raises StreamError for what is no feature."""
        held = table.types[name]
        stated, found = self._stated.get(name), _kind_of(held)
        where = f"{table.place.name}: column {name!r}"
        if stated is not None:
            fits = found == stated or pa.types.is_null(held) or {found, stated} == {NUMBER, BOOLEAN}
            if fits or (stated == TEXT and _is_textual(held)) or (found == TEXT and name in _listed(self.options.numbers)):
                return stated
            raise StreamError(f"{where}: expected {_WANTED[stated]}, as asked or as in the first file, got {held}.")
        if pa.types.is_null(held):
            raise StreamError(f"{where} has no value that tells its type: exclude it, or name it in text or numbers.")
        if found is None:
            raise StreamError(f"{where} holds {held}, which is no feature: exclude it, or turn it into plain columns first.")
        if found == DATE and self.options.dates is None:
            choice = "read it as a number (dates='seconds' or 'days' since 1970), or as a category (text)"
            raise StreamError(f"{where} holds dates or times ({held}): exclude it, {choice}.")
        return found

    def _must_agree(self, table: Table) -> None:
        """Raise StreamError where a file lacks a column, holds something else in it, or has one more."""
        if self._agreed is not None and table.schema.equals(self._agreed):
            return
        self._must_be_single(table)
        names = table.schema.names
        there = set(names)
        for name in self._wanted():
            if name not in there:
                raise StreamError(f"{table.place.name}: expected a column {name!r}, got {_some(names)}.")
            self._kind(table, name)
        more = sorted(there - self._all) if self._all is not None else []
        if more:
            hint = "name the features, or exclude it from all files"
            raise StreamError(f"{table.place.name}: the column {more[0]!r} is not in {self.places[0].name}; {hint}.")
        self._agreed = table.schema

    def _wanted(self) -> list[str]:
        others = [name for name in (self.target, self.options.weight) if name is not None]
        return [*(feature.name for feature in self._encoding.features), *others]

    def _sizes(self, first: Table) -> tuple[int | None, int | None]:
        """Rows in a pass, and the pass's size in rows or bytes."""
        if self.form == CSV:
            local = self.rereadable and all(place.filesystem is None for place in self.places)
            return None, sum(os.path.getsize(place.path) for place in self.places) if local else None
        if len(self.places) > MOST_COUNTED or self.options.max_errors:
            return None, None
        rows = first.count() or 0
        for place in self.places[1:]:
            with closing(self._open(place)) as table:
                rows += table.count() or 0
        return rows, rows

    # --- rows

    def _converted(self, batch: Any, rows: np.ndarray, name: str) -> Iterator[Block]:
        """The batch's rows; what pyarrow cannot convert is told with their numbers."""
        try:
            yield from self._blocks(batch, rows, name)
        except ERRORS as error:
            where = f"{name}:{rows[0]}: expected columns that can be read, in this row and up to row {rows[-1]}"
            raise StreamError(f"{where}, got {first_line(error)}") from None

    def _blocks(self, batch: Any, rows: np.ndarray, name: str) -> Iterator[Block]:
        """The batch's rows before its first wrong one that is not to be skipped; then that one's StreamError."""
        problems = Problems()
        parts = self._parts(batch, problems)
        kept = np.ones(batch.num_rows, bool)
        for row in sorted(problems):
            try:
                self._count(f"{name}:{rows[row]}: {problems[row].words()}.")
            except StreamError:
                if kept[:row].any():
                    yield from self._blocks(batch.slice(0, row).filter(pa.array(kept[:row])), rows[:row][kept[:row]], name)
                raise
            kept[row] = False
        if not kept.any():
            return
        if not kept.all():
            parts, rows = self._parts(batch.filter(pa.array(kept)), Problems()), rows[kept]
        yield self._block(parts, rows, name)

    def _parts(self, batch: Any, problems: Problems) -> Parts:
        """The batch's columns as arrays, and what is wrong with its rows."""
        encoding, n = self._encoding, batch.num_rows
        numbers, held = np.zeros((encoding.offset, n)), batch.columns
        if self._layout is None or not self._layout.schema.equals(batch.schema):
            self._layout = self._laid_out(batch.schema)
        for kind, group in self._layout.numeric:
            found = np.empty((len(group.ranks), n))
            array = _joined([held[place] for place in group.places])
            missing = _numbers(array, kind, group, encoding.dates, encoding.missing.numbers, problems, found.reshape(-1))
            numbers[group.ranks] = found
            if missing is not None and encoding.missing.numbers == INDICATOR:
                numbers[len(encoding.numeric) + group.ranks] = missing.reshape(found.shape)
        texts = None
        if encoding.texts:
            texts = _text_of([held[place] for place in self._layout.texts.places])
            _must_be_there(texts, self._layout.texts, encoding.missing.categories, problems)
        y, labels, weights = np.full(n, np.nan), None, None
        if self.target is not None:
            target, policy = self._layout.others[self.target], OMIT if self.unlabelled else ERROR
            array = held[target.places[0]]
            if self._stated[self.target] == TEXT:
                labels = _text(array)
                _must_be_there(labels, target, policy, problems)
                self._must_be_known(labels, target, problems)
            else:
                missing = _numbers(array, NUMBER, target, None, policy, problems, y)
                if missing is not None:
                    y[missing] = np.nan
        if self.options.weight is not None:
            weights, column = np.empty(n), self._layout.others[self.options.weight]
            _numbers(held[column.places[0]], NUMBER, column, None, ERROR, problems, weights)
            problems.note(
                column,
                weights < 0.0,
                lambda name, at: f"expected a weight of 0 or more in column {name!r}, got {weights[at]:g}",
            )
        return Parts(numbers, texts, labels, y, weights)

    def _laid_out(self, schema: Any) -> Layout:
        """Where batches of this schema have what is wanted. Of many columns each costs more than its rows: numbers of one kind
        and type are converted together."""
        place = {name: k for k, name in enumerate(schema.names)}
        alike = dict[Any, list[tuple[int, int, str]]]()
        types = schema.types
        for rank, feature in enumerate(self._encoding.numeric):
            held = types[place[feature.name]]
            group = alike.setdefault((feature.kind, held if pa.types.is_primitive(held) else rank), [])
            group.append((rank, place[feature.name], feature.name))
        first = len(self._encoding.numeric)
        texts = [(first + k, place[feature.name], feature.name) for k, feature in enumerate(self._encoding.texts)]
        others = [name for name in (self.target, self.options.weight) if name is not None]
        return Layout(
            schema,
            [(kind, Group.of(members)) for (kind, _), members in alike.items()],
            Group.of(texts),
            {name: Group.of([(first + len(texts) + k, place[name], name)]) for k, name in enumerate(others)},
        )

    def _must_be_known(self, labels: Any, target: Group, problems: Problems) -> None:
        if self.classes is None:
            return
        known = pc.is_in(labels, pa.array(list(self._labels), pa.large_string()))
        strange = ~known.to_numpy(zero_copy_only=False) & labels.is_valid().to_numpy(zero_copy_only=False)
        problems.note(
            target, strange, lambda name, at: f"expected a class of {_some(self._labels)}, got {labels[at].as_py()!r}"
        )

    def _block(self, parts: Parts, rows: np.ndarray, name: str) -> Block:
        encoding, n, texts = self._encoding, len(rows), len(self._encoding.texts)
        columns, values = np.empty((texts, n), np.uint32), np.empty((texts, n))
        if texts and encoding.categories == HASH:
            _hash(encoding, self._keys, parts.texts, columns, values)
        elif texts:
            _enumerate(encoding, [parts.texts.slice(k * n, n) for k in range(texts)], columns, values, name)
        room = n * (len(parts.numbers) + texts)
        found = Rows(np.zeros(n + 1, np.uint64), np.empty(room, np.uint32), np.empty(room))
        nnz = _pack(parts.numbers, columns, values, *found)
        found = Rows(found.indptr, found.indices[:nnz], found.values[:nnz])
        found = tidy(found) if texts else found
        size = int(found.indices.max()) + 1 if len(found.indices) else 0
        largest = float(max(found.values.max(), -found.values.min())) if size else 0.0
        y = parts.y if parts.labels is None else self._places(parts.labels)
        return Block(found, y, rows.astype(np.int64), (name,), size, largest, None, parts.weights)

    def _places(self, labels: Any) -> np.ndarray:
        """The labels as places among the classes' names; one never met gets the next place."""
        coded = labels.dictionary_encode()
        for label in coded.dictionary.to_pylist():
            if label not in self._labels:
                if len(self._labels) >= MOST_VALUES:
                    raise StreamError(f"{self.name}: expected at most {MOST_VALUES} classes in the target, got one more.")
                self._labels[label] = len(self._labels)
        places = np.array([self._labels[label] for label in coded.dictionary.to_pylist()] + [np.nan])
        return places[pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)]


class Parts(NamedTuple):
    """The columns of some rows as arrays."""

    numbers: np.ndarray  # a row for each column that numeric features have: the values, 0 where missing
    texts: Any  # the text features, one after the other, as a large_string array, null where missing
    labels: Any  # the same of a target that is text
    y: np.ndarray
    weights: np.ndarray | None


class Group(NamedTuple):
    """Columns that are read together: their order among all that are wanted, their places in a batch, their names."""

    ranks: np.ndarray
    places: list[int]
    names: list[str]

    @classmethod
    def of(cls, members: Sequence[tuple[int, int, str]]) -> Group:
        """The group of these (rank, place, name)."""
        ranks, places, names = (list(found) for found in zip(*members, strict=True)) if members else ([], [], [])
        return cls(np.array(ranks, np.int64), places, names)


class Layout(NamedTuple):
    """Where the batches of a file have the columns that are wanted."""

    schema: Any
    numeric: list[tuple[str, Group]]  # with what they hold
    texts: Group
    others: dict[str, Group]  # target and weight


class Problem(NamedTuple):
    """What is wrong with a row: in the column of this rank, in words when they are asked for."""

    rank: int
    words: Callable[[], str]


class Problems(dict[int, Problem]):
    """What is wrong with rows: of each the first thing found in the first of its columns."""

    def note(self, group: Group, wrong: np.ndarray, words: Callable[[str, int], str]) -> None:
        """Every place, counted through the group's columns, where ``wrong`` is True; ``words`` takes the name and the place."""
        rows = len(wrong) // len(group.names)
        for at in np.flatnonzero(wrong).tolist():
            column, row = divmod(at, rows)
            rank = int(group.ranks[column])
            if row not in self or rank < self[row].rank:
                self[row] = Problem(rank, partial(words, group.names[column], at))


# --- columns as arrays -----------------------------------------------------------------------------------------------


@cache
def _kind_of(held: Any) -> str | None:
    """What a column of this type holds; None: nothing that is a feature."""
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


def _is_textual(held: Any) -> bool:
    """Whether a column of this type can be read as text, each value in one way only."""
    kinds = pa.types
    if kinds.is_dictionary(held):
        return _is_textual(held.value_type)
    string = kinds.is_string(held) or kinds.is_large_string(held) or kinds.is_string_view(held)
    dated = kinds.is_temporal(held) and not kinds.is_interval(held)
    return string or kinds.is_integer(held) or kinds.is_boolean(held) or dated


def _joined(arrays: Sequence[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else pa.concat_arrays(arrays)


def _numbers(
    array: Any, kind: str, group: Group, dates: str | None, policy: str, problems: Problems, out: np.ndarray
) -> np.ndarray | None:
    """Write the columns that ``array`` holds one after the other to ``out`` as float64, 0 where they are missing; where that
    is, None if nowhere."""
    if pa.types.is_null(array.type):
        array = array.cast(pa.date32() if kind == DATE else pa.float64())
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    if kind == DATE:
        out[:] = _since_1970(array, dates or "seconds")
    elif _kind_of(array.type) == TEXT:
        out[:] = _parsed(array, group, problems)
    else:
        if pa.types.is_decimal(array.type):
            array = array.cast(pa.string()).cast(pa.float64())  # the direct cast does not round to the nearest double
        values = _filled(array)
        if values.dtype in (np.int64, np.uint64) and len(values) and (values.max() > EXACT or values.min() < -EXACT):
            far = (values > EXACT) | ((values < -EXACT) if values.dtype == np.int64 else False)
            hint = "text reads the column as categories"
            words = "expected a number within 2^53 in column"
            problems.note(group, far, lambda name, at: f"{words} {name!r}, got {array[at]} ({hint})")
        out[:] = values
    if not np.isfinite(out).all():
        missing = np.isnan(out) if missing is None else missing | np.isnan(out)
        infinite = np.isinf(out)
        problems.note(group, infinite, lambda name, at: f"expected a finite number in column {name!r}, got {out[at]}")
    if missing is not None:
        out[missing] = 0.0
        if policy == ERROR:
            wanted = _WANTED[kind]
            problems.note(group, missing, lambda name, at: f"expected {wanted} in column {name!r}, got a missing value{_HINT}")
    return missing


def _filled(array: Any) -> np.ndarray:
    """The values of an array, 0 where it is null."""
    if array.null_count:
        array = pc.fill_null(array, False if pa.types.is_boolean(array.type) else 0)
    return array.to_numpy(zero_copy_only=False)


def _parsed(array: Any, group: Group, problems: Problems) -> np.ndarray:
    """Text as numbers."""
    try:
        return _filled(array.cast(pa.float64()))
    except pa.ArrowInvalid:
        values = np.zeros(len(array))
        wrong = np.zeros(len(array), bool)
        for row, text in enumerate(array.to_pylist()):
            try:
                values[row] = 0.0 if text is None else pa.scalar(text).cast(pa.float64()).as_py()
            except pa.ArrowInvalid:
                wrong[row] = True
        problems.note(group, wrong, lambda name, at: f"expected a number in column {name!r}, got {array[at].as_py()!r}")
        return values


def _since_1970(array: Any, unit: str) -> np.ndarray:
    """Dates and times in seconds or days; times of day since midnight, durations as they are."""
    held, kinds = array.type, pa.types
    if kinds.is_date32(held):
        whole = _filled(array.cast(pa.int32())).astype(np.int64)
        return whole * (1 if unit == "days" else 86400)
    size = 10**3 if kinds.is_date64(held) else _PER_SECOND[held.unit]
    narrow = pa.int32() if kinds.is_time32(held) else pa.int64()
    ticks = _filled(array.cast(narrow)).astype(np.int64)
    whole, rest = np.divmod(ticks, size * (86400 if unit == "days" else 1))
    return whole + rest / (size * (86400 if unit == "days" else 1))


def _text(array: Any) -> Any:
    """A column as a large_string array."""
    return (array.dictionary_decode() if pa.types.is_dictionary(array.type) else array).cast(pa.large_string())


def _text_of(arrays: Sequence[Any]) -> Any:
    """Columns, one after the other, as a large_string array; those that are plain text are converted in one call."""
    quick = [pa.types.is_string(array.type) for array in arrays]
    chosen = [array for array, is_quick in zip(arrays, quick, strict=True) if is_quick]
    done = iter(pa.chunked_array(chosen, pa.string()).cast(pa.large_string()).chunks)
    return _joined([next(done) if is_quick else _text(array) for array, is_quick in zip(arrays, quick, strict=True)])


def _must_be_there(text: Any, group: Group, policy: str, problems: Problems) -> None:
    if policy == ERROR and text.null_count:
        missing = text.is_null().to_numpy(zero_copy_only=False)
        problems.note(group, missing, lambda name, at: f"expected text in column {name!r}, got a missing value{_HINT}")


# --- text as entries -------------------------------------------------------------------------------------------------


class Keys(NamedTuple):
    """What stands before the value in the keys of each text feature: ``text[starts[k] : starts[k + 1]]``."""

    text: np.ndarray
    starts: np.ndarray

    @classmethod
    def of(cls, encoding: Encoding) -> Keys:
        """Those of an encoding."""
        parts = [f"{feature.name}=".encode() for feature in encoding.texts]
        return cls(plain(np.frombuffer(b"".join(parts), np.uint8)), np.cumsum([0, *map(len, parts)]))


def _hash(encoding: Encoding, keys: Keys, array: Any, columns: np.ndarray, values: np.ndarray) -> None:
    """The entries of all text features, hashed."""
    _, ends, text = array.buffers()
    offsets = np.frombuffer(ends, np.int64)[array.offset : array.offset + len(array) + 1]
    content = np.frombuffer(text, np.uint8) if text is not None and text.size else np.zeros(1, np.uint8)
    present, mask = array.is_valid().to_numpy(zero_copy_only=False), (1 << encoding.hash_bits) - 1
    with np.errstate(over="ignore"):
        hash_texts(*keys, plain(content), plain(offsets), plain(present), encoding.offset, mask, columns, values)
    if encoding.missing.categories == INDICATOR and array.null_count:
        missing = ~present.reshape(columns.shape)
        for k in np.flatnonzero(missing.any(axis=1)):
            h = key_hash(encoding.texts[k].name)
            columns[k, missing[k]] = encoding.offset + (h & mask)
            values[k, missing[k]] = -1.0 if h >> 31 else 1.0


def _enumerate(encoding: Encoding, arrays: Sequence[Any], columns: np.ndarray, values: np.ndarray, source: str) -> None:
    """The entries of all text features by the dictionary; new values get their numbers row by row."""
    n, indicator = columns.shape[1], encoding.missing.categories == INDICATOR
    coded = []
    new: list[tuple[int, int, str | None]] = []
    for place, array in enumerate(arrays):
        dictionary = array.dictionary_encode()
        known: list[str | None] = dictionary.dictionary.to_pylist()
        codes = pc.fill_null(dictionary.indices, len(known)).to_numpy(zero_copy_only=False)
        firsts = np.full(len(known) + 1, n)
        firsts[codes[::-1]] = np.arange(n)[::-1]  # of repeated places the last assignment holds: the first row
        known.append(None)
        there = [k for k in range(len(known)) if firsts[k] < n and (indicator or k < len(known) - 1)]
        new += [(int(firsts[k]), place, known[k]) for k in there if not encoding.known(place, known[k])]
        coded.append((codes, known, there))
    for _, place, value in sorted(new, key=lambda item: item[:2]):
        try:
            encoding.number(place, value)
        except ValueError as error:
            raise StreamError(f"{source}: {error}.") from None
    for place, (codes, known, there) in enumerate(coded):
        numbers = np.zeros(len(known), np.uint32)
        for k in there:
            numbers[k] = encoding.number(place, known[k])
        columns[place] = numbers[codes]
        values[place] = 1.0 if indicator else codes < len(known) - 1


@kernel
def _pack(numbers, columns, entries, indptr, indices, values):  # type: ignore[no-untyped-def]
    """The entries of each row that are not 0: numbers first, then texts."""
    to = 0
    for i in range(indptr.shape[0] - 1):
        for j in range(numbers.shape[0]):
            x = numbers[j, i]
            if x != 0.0:
                indices[to] = j
                values[to] = x
                to += 1
        for j in range(columns.shape[0]):
            x = entries[j, i]
            if x != 0.0:
                indices[to] = columns[j, i]
                values[to] = x
                to += 1
        indptr[i + 1] = to
    return to


def _listed(names: Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _some(names: Iterable[str]) -> str:
    """The first twenty names."""
    shown = list(names)
    return ", ".join(map(repr, shown[:20])) + (", ..." if len(shown) > 20 else "")
