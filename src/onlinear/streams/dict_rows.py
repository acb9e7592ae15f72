"""Single rows as dicts from names to values, in the columns of an encoding.

A table's encoding keeps its rules: kinds of columns, missing values, hashing (``TableRow``). Where no table came first, columns
are numbered as names appear (``NamedRow``):

    a number, True or False      the column of its name
    text                         1 in the column ``name=text``
    None                         no entry, as for a name that the row lacks

Both give what the rows of a table would, by plain Python where values are plain, else by the way of a table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from onlinear.compiled.calls import EXACT
from onlinear.compiled.objects import Names
from onlinear.rows import LARGEST_VALUE
from onlinear.streams import encoding as enc
from onlinear.streams.bins import Bins
from onlinear.streams.encoding import HASH, INDICATOR, OMIT, Encoding
from onlinear.streams.hashing import crossed_hash, key_hash
from onlinear.streams.held_names import HeldNames
from onlinear.streams.ngrams import Grams, WordGrams
from onlinear.text.form import cropped, quoted

Row = tuple[list[int], list[float]]  # columns, ascending, and the values there
Arrays = tuple[np.ndarray, np.ndarray]
Entry = tuple[str | None, int, float]  # name, column, value
MOST_HELD = 1 << 16  # hashes that are kept
PLAIN = (float, int, bool)


class DictRow(ABC):
    """What reads dicts. Final classes number the columns."""

    _rows: HeldNames

    @abstractmethod
    def row(self, row: Mapping[str, Any], grow: bool) -> Row:
        """The row's columns and values; what is not known gets a column if ``grow``, else no entry."""

    def names_held(self, row: Any, learns: bool) -> Names | None:
        """What takes the numbers of a row; None where no such row came before."""
        return self._rows.find(row, learns)

    @abstractmethod
    def named(self, row: Mapping[str, Any]) -> list[Entry]:
        """The entries of a row of plain values."""

    def plain(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """The row with its values as ``named`` takes them."""
        return row

    def arrays(self, row: Mapping[str, Any], grow: bool) -> Arrays:
        """``row`` as arrays."""
        found = as_arrays(self.row(row, grow))
        self._rows.see(row)
        return found


class NamedRow(DictRow):
    """Columns numbered as names appear; ``names`` grows."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self._place = {name: k for k, name in enumerate(names)}
        self._rows = HeldNames(self.columns_of, inf, self._place, self)

    @cached_property
    def room(self) -> int:
        """Bytes that a model file has left for more names."""
        return enc.MOST_BYTES - sum(map(enc.room_for, self.names))

    def description(self) -> dict[str, Any]:
        """How columns are numbered, for ``encoding_``."""
        return enc.describe_names(self.names)

    @property
    def count(self) -> int:
        """Names known."""
        return len(self.names)

    def columns_of(self, names: Sequence[str]) -> list[int | None] | None:
        """The columns of numbers of these names, None for those that are not known."""
        return [self._place.get(name) for name in names]

    def forget_after(self, count: int) -> None:
        """Drop the names beyond the first ``count``: those of a row that was refused."""
        if count == len(self.names):
            return
        self._rows.clear()
        for name in self.names[count:]:
            self.room += enc.room_for(name)
            del self._place[name]
        del self.names[count:]

    def add(self, row: dict[str, Any]) -> bool:
        """Give the next columns to the new names of a row of numbers; False, and no name is new, where one may have none."""
        place, count = self._place, len(self.names)
        new = [name for name in row if name not in place]
        if count + len(new) > enc.MOST_VALUES or not are_texts(new):
            return False
        size = sum(map(enc.room_for, new))
        if size > self.room:
            return False
        self.room -= size
        for column, name in enumerate(new, count):
            place[name] = column
        self.names += new
        return True

    def note(self, row: dict[str, Any]) -> None:
        """Note the names of a row in their order, by which rows to come may be taken."""
        self._rows.note(tuple(row))

    def row(self, row: Mapping[str, Any], grow: bool) -> Row:
        columns: list[int] = []
        values: list[float] = []
        before, place, ascending = -1, self._place, True
        for name, value in row.items():
            kind = type(value)
            if type(name) is not str and not isinstance(name, str):
                hint = " Columns by their numbers are a pair (indices, values)." if isinstance(name, (int, np.integer)) else ""
                raise TypeError(f"row: expected text as the name of a value, got {quoted(name)}.{hint}")
            if kind is str:
                name, value = f"{name}={value}", 1.0
            elif kind not in PLAIN:
                value = plain_number(name, value)
                if isinstance(value, str):
                    name, value = f"{name}={value}", 1.0
            if type(value) is float:
                check_size(name, value, grow)
            column = place.get(name, -1)
            if column < 0:
                check_writable(name)
                if not grow or value is None:
                    continue
                column = self._new(name)
            if value is None:
                continue
            if column <= before:
                ascending = False
            before = column
            columns.append(column)
            values.append(value)
        return (columns, values) if ascending else tidied(columns, values)

    def named(self, row: Mapping[str, Any]) -> list[Entry]:
        columns, values = as_arrays(self.row(row, False))
        return [(self.names[column], column, value) for column, value in zip(columns.tolist(), values.tolist(), strict=True)]

    def _new(self, name: str) -> int:
        if len(self.names) >= enc.MOST_VALUES:
            raise ValueError(f"row: expected at most {enc.MOST_VALUES:,} names and categories, got one more: {quoted(name)}.")
        size = enc.room_for(name)
        if size > self.room:
            held = f"names and categories of at most {enc.MOST_BYTES:,} bytes in all"
            raise ValueError(f"row: expected {held}, got one more of {len(name):,} characters: {quoted(name)}.")
        self.room -= size
        name = str.__str__(name)  # compiled code looks among text alone
        self._place[name] = column = len(self.names)
        self.names.append(name)
        return column


def are_texts(names: Iterable[Any]) -> bool:
    """Whether the names are text that UTF-8 has."""
    try:
        "".join(names).encode()
    except (TypeError, UnicodeEncodeError):
        return False
    return True


def check_writable(name: str) -> None:
    """Raise ValueError for text that no file holds: half of a surrogate pair."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"row: expected text that UTF-8 has, got {cropped(ascii(name))}.") from None


def check_size(name: str, value: float, learns: bool) -> None:
    """Raise ValueError for a number that is not finite, or too large to be learned."""
    if not abs(value) < inf:
        raise ValueError(f"row: expected a finite number for {quoted(name)}, got {value}.")
    if learns and abs(value) > LARGEST_VALUE:
        raise ValueError(f"row: expected a number of at most {LARGEST_VALUE:g} in size for {quoted(name)}, got {value:g}.")


def plain_number(name: str, value: Any) -> Any:
    """A value as a number of Python, as text, or as None for a missing one; raises TypeError for anything else."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (*PLAIN, str)):
        return str(value) if isinstance(value, str) else value
    raise TypeError(f"row: expected a number, text, True, False or None for {quoted(name)}, got {type(value).__name__}.")


class TableRow(DictRow):
    """The columns of a table's encoding, whose one-hot dictionary grows."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._rows = HeldNames(self.columns_of, EXACT - 1)  # compiled code has 2^53 + 1 as the double below it
        self._numeric = [feature.name for feature in encoding.numeric]
        self._texts = [feature.name for feature in encoding.texts]
        self._kinds = [feature.kind for feature in encoding.numeric]
        self._bins = Bins(encoding.bins)
        self._documents, self._grams = [feature.name for feature in encoding.documents], WordGrams(encoding)
        self._hashed: dict[tuple[int, str | None], tuple[int, float]] = {}
        kinds = dict(encoding.features)
        self._noted: set[int] | None = None
        self._crossed = {name: kinds[name] for pair in encoding.interactions for name in pair}

    @property
    def count(self) -> int:
        """Categories with columns of their own, or hashed ones whose names are kept."""
        return len(self._encoding.seen.names if self._encoding.hashes else self._encoding.values)

    def columns_of(self, names: Sequence[str]) -> list[int | None] | None:
        """The columns of these names, where a row that has them, all numbers, has no other entries; else None."""
        place = {name: k for k, name in enumerate(self._numeric)}
        if self._texts or self._documents or self._crossed or enc.DATE in self._kinds or not set(place) <= set(names):
            return None
        return [place.get(name) for name in names]

    def forget_after(self, count: int) -> None:
        """Drop the categories beyond the first ``count``: those of a row that was refused."""
        if self._encoding.hashes:
            for part in self._encoding.seen:
                del part[count:]
            self._noted = None
        else:
            self._encoding.forget_values(count)

    def description(self) -> dict[str, Any]:
        """How columns are numbered, for ``encoding_``."""
        return self._encoding.description()

    def row(self, row: Mapping[str, Any], grow: bool) -> Row:
        try:
            found = self._by_hand(row, grow)
        except UnicodeEncodeError:  # which the way of a table explains
            found = None
        return self._as_table(row, grow) if found is None else found

    def _by_hand(self, row: Mapping[str, Any], grow: bool) -> Row | None:
        """The row where all its names are text, and all its values plain and as the encoding has them; else None."""
        columns: list[int] = []
        values: list[float] = []
        if not are_texts(row) or not self._take_numbers(row, columns, values):
            return None
        if not self._take_categories(row, grow, columns, values):
            return None
        crosses = self._crosses(row)
        documents = [row.get(name) for name in self._documents]
        may_lack = self._encoding.missing.categories != enc.ERROR
        if not all(type(text) is str or (text is None and may_lack) for text in documents):
            return None
        if any(abs(value) > enc.LARGEST_PRODUCT for _, _, value in crosses):
            return None
        grams = self._find_grams(documents)
        for h, value in [(h, value) for _, h, value in crosses] + [(h, 1.0) for h in grams.hashes.tolist()]:
            column, sign = self._place(h)
            columns.append(column)
            values.append(sign * value)
        if grow and self._encoding.hashes:
            self._note(row, crosses, grams)
        return tidied(columns, values)

    def _take_numbers(self, row: Mapping[str, Any], columns: list[int], values: list[float]) -> bool:
        """Add the entries of columns of numbers, indicators of missing ones last; False where one needs the way of a table."""
        policy = self._encoding.missing.numbers
        missing: list[int] = []
        for k, name in enumerate(self._numeric):
            value: Any = row.get(name)
            if self._kinds[k] != enc.DATE and type(value) in PLAIN and -EXACT <= value <= EXACT:
                columns.append(k)
                values.append(float(value))
            elif value is None and policy == INDICATOR:
                missing.append(len(self._numeric) + k)
            elif not (value is None and policy == OMIT):
                return False
        columns += missing
        values += [1.0] * len(missing)
        return True

    def _take_categories(self, row: Mapping[str, Any], grow: bool, columns: list[int], values: list[float]) -> bool:
        """Add the entries of columns of categories; False where one needs the way of a table."""
        encoding = self._encoding
        policy = encoding.missing.categories
        for k, name in enumerate(self._texts):
            value = row.get(name)
            if name in encoding.bins and value is not None:
                if type(value) not in PLAIN or not -EXACT <= value <= EXACT:
                    return False
                value = self._bins.text(name, value)
            if type(value) is not str and not (value is None and policy != enc.ERROR):
                return False
            if value is None and policy == OMIT:
                continue
            if encoding.categories == HASH:
                column, sign = self._hashed.get((k, value)) or self._hash(k, value)
                columns.append(column)
                values.append(sign)
            elif grow or encoding.has_column(k, value):
                columns.append(encoding.number(k, value))
                values.append(1.0)
        return True

    def _text(self, name: str, value: Any) -> str | None:
        """A value of a category as the text that a table has for it; that of a number in bins is its bin."""
        if name not in self._encoding.bins:
            return as_text(value)
        return None if value is None or value != value else self._bins.text(name, float(value))

    def _find_grams(self, documents: Sequence[str | None]) -> Grams:
        """The n-grams of the row's texts."""
        texts = [np.frombuffer((text or "").encode() or b" ", np.uint8) for text in documents]
        ends = [np.array([0, len(text)], np.int64) for text in texts]
        return self._grams.find_in(texts, ends, [np.array([text is not None]) for text in documents], 1)

    def _note(self, row: Mapping[str, Any], crosses: list[tuple[str, int, float]], grams: Grams) -> None:
        """Keep the names of the row's categories, crosses and n-grams, as reading a table does."""
        encoding = self._encoding
        if self._noted is None:
            self._noted = set(encoding.seen.hashes)
        for name in self._texts:
            value = self._text(name, row.get(name))
            if value is not None or encoding.missing.categories == INDICATOR:
                h = enc.category_hash(name, value)
                self._keep(h, enc.category(name, value), self._noted, enc.MOST_SEEN)
        for name, h, _ in crosses:
            self._keep(h, name, self._noted, enc.MOST_SEEN // 2)
        for place, h in enumerate(grams.hashes.tolist()):
            if h not in self._noted:
                self._keep(h, self._grams.name(grams, place), self._noted, enc.MOST_SEEN // 2)

    def _keep(self, h: int, name: str, known: set[int], most: int) -> None:
        if h not in known and len(known) < most:
            known.add(h)
            self._encoding.seen.hashes.append(h)
            self._encoding.seen.names.append(enc.as_seen(name))

    def _crosses(self, row: Mapping[str, Any]) -> list[tuple[str, int, float]]:
        """The row's entries of crosses: (name, hash, value without sign)."""
        sides = {name: self._side(name, kind, row.get(name)) for name, kind in self._crossed.items()}
        found = []
        for first, second in self._encoding.interactions:
            (one, a, x), (other, b, z) = sides[first], sides[second]
            if x * z != 0.0:
                found.append((f"{one} x {other}", crossed_hash(a, b), x * z))
        return found

    def _side(self, name: str, kind: str, value: Any) -> tuple[str, int, float]:
        """What a column brings to a cross: its name, its hash, its factor."""
        numbers, categories = self._encoding.missing
        if kind == enc.TEXT or name in self._encoding.bins:
            text = self._text(name, value)
            factor = float(text is not None or categories == INDICATOR)
            return enc.category(name, text), enc.category_hash(name, text), factor
        if value is None or value != value:
            label = enc.category(name, None)
            return label, key_hash(label), float(numbers == INDICATOR)
        return name, key_hash(name), float(value) if type(value) in PLAIN else 1.0

    def named(self, row: Mapping[str, Any]) -> list[Entry]:
        """The entries of a row of plain values. Categories that share a column have all their names."""
        columns, values = self.row(row, False)
        names = enc.names_of(enc.without_seen(self.description()), columns)
        if self._encoding.categories == HASH:
            own: dict[int, list[str]] = {}
            for k, feature in enumerate(self._texts):
                text = self._text(feature, row.get(feature))
                own.setdefault(self._hash(k, text)[0], []).append(enc.category(feature, text))
            for name, h, _ in self._crosses(row):
                own.setdefault(self._place(h)[0], []).append(name)
            grams = self._find_grams([as_text(row.get(feature)) for feature in self._documents])
            for place, h in enumerate(grams.hashes.tolist()):
                name, called = self._grams.name(grams, place), own.setdefault(self._place(h)[0], [])
                called += [name] if name not in called else []
            names = [" + ".join(own[column]) if column in own else name for column, name in zip(columns, names, strict=True)]
        return list(zip(names, columns, values, strict=True))

    def _hash(self, k: int, value: str | None) -> tuple[int, float]:
        if len(self._hashed) >= MOST_HELD:
            self._hashed.clear()
        found = self._hashed[k, value] = self._place(enc.category_hash(self._texts[k], value))
        return found

    def _place(self, h: int) -> tuple[int, float]:
        """The column and the sign of a hash."""
        return self._encoding.column_of(h), -1.0 if h >> 31 else 1.0

    def plain(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """The row with its values as a table has them: text of categories, numbers as floats, dates as scalars of pyarrow."""
        ((_, found),) = self._open(row).records()
        return found

    def _open(self, row: Mapping[str, Any]) -> Any:
        """The row as a table."""
        from onlinear import streams

        return streams.open([dict(row)], encoding=self.description(), unlabelled=True)

    def _as_table(self, row: Mapping[str, Any], grow: bool) -> Row:
        """The row, by the way of a table; raises StreamError for values that a table may not have."""
        stream = self._open(row)
        (block,) = stream
        if grow:
            self._encoding.take_values(stream.encoding["values"])
        if grow and self._encoding.hashes:
            ((_, plain),) = stream.records()
            self._note(plain, self._crosses(plain), self._find_grams([plain[name] for name in self._documents]))
        return block.rows.indices.tolist(), block.rows.values.tolist()


def as_text(value: Any) -> str | None:
    """A value of a column of categories as the text that a table has for it."""
    if value is None or isinstance(value, str):
        return value
    import pyarrow as pa

    found: str | None = pa.scalar(value).cast(pa.string()).as_py()
    return found


def as_arrays(row: Row) -> Arrays:
    """Columns and values as arrays; raises ValueError for a whole number that no double holds."""
    try:
        return np.array(row[0], np.int64), np.array(row[1], np.float64)
    except OverflowError:
        raise beyond_doubles(row[1]) from None


def beyond_doubles(values: Sequence[float]) -> ValueError:
    """What to raise for values of which one is a whole number that no double holds."""
    value = max((value for value in values if isinstance(value, int)), key=abs)
    sign, digits = "-" if value < 0 else "", int(value.bit_length() * np.log10(2.0))
    return ValueError(f"row: expected values below 1.8e308 in size, got a whole number of about {sign}1e{digits}.")


def tidied(columns: list[int], values: list[float]) -> Row:
    """Columns ascending, values of repeated ones summed in the order they stand."""
    before = -1
    for column in columns:
        if column <= before:
            break
        before = column
    else:
        return columns, values
    order = sorted(range(len(columns)), key=columns.__getitem__)
    found: dict[int, float] = {}
    for k in order:
        try:
            found[columns[k]] = found.get(columns[k], 0.0) + values[k]
        except OverflowError:
            raise beyond_doubles(values) from None
    return list(found), list(found.values())


def row_reader(description: Mapping[str, Any] | None) -> NamedRow | TableRow:
    """What reads dicts in the columns of a description; None: a new numbering by names.

    Raises ValueError for columns that are numbered in their source, or hashed from Vowpal Wabbit text.
    """
    if description is None:
        return NamedRow([])
    kind = enc.format_of(description)
    if kind == "names":
        return NamedRow(enc.names_in(description))
    if kind == "columns":
        return TableRow(enc.read(description))
    raise ValueError(
        f"row: the model was trained on {kind} text, whose features a dict does not name: give indices and values."
    )
