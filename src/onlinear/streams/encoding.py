"""How the features of a source become numbered columns, as a description that a model file keeps. Those of a table:

    numbers, booleans (0, 1), dates    feature i of the p numeric ones, in the order of the table: column i
    missing numbers, if so asked       column p + i: 1 where feature i is missing
    text, hashed                       column q + h mod 2^hash_bits, an entry of +1 or -1 (``hashing``)
    text, one-hot                      column q + k for the k-th new pair of column and value, counted row by row
    two columns, crossed               column q + h mod 2^hash_bits, the product of their entries with a sign (``crosses``)
    text, as words                     column q + h mod 2^hash_bits for each n-gram, an entry of +1 or -1 (``ngrams``)
    numbers, in bins                   as text: the bin is the category (``bins``)

with q the number of columns of numeric features. Nothing depends on how the rows are cut into blocks. The features of Vowpal
Wabbit text are hashed, those of svmlight text are numbered from a base, 1 or 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple

from onlinear.files.model_file import size_in_header
from onlinear.streams.hashing import BITS, MOST_BITS, SEED, key_hash
from onlinear.text.form import unknown

VERSION = 1
CROSSED = 2  # the version of a description with crosses, which a reader of version 1 would leave out
EXPANDED = 3  # the version of a description with n-grams or bins, which a reader of version 2 would leave out
NUMBER, BOOLEAN, DATE, TEXT = "number", "boolean", "date", "text"
FEATURE_TYPES = (NUMBER, BOOLEAN, DATE, TEXT)
HASH, ONE_HOT = "hash", "one-hot"
ERROR, OMIT, INDICATOR = "error", "omit", "indicator"
POLICIES = (ERROR, OMIT, INDICATOR)
DATES = ("seconds", "days")
MOST_VALUES = 1 << 20  # of a one-hot dictionary, and of the labels of a target
MOST_BYTES = 1 << 26  # of a model file, for the names of columns and the values of a dictionary; as many for labels
BESIDE = 24  # bytes of it beside the text of a name or value
MOST_SEEN = 1 << 17  # names of hashed columns that are kept: of crosses while there are fewer than half as many
LONGEST_SEEN = 200  # bytes of such a name in a model file: of a longer one the beginning is kept
MOST_CROSSES = 1 << 12
MOST_WORDS = 8  # of an n-gram
MOST_EDGES = 1 << 12  # of the bins of a column
LARGEST_PRODUCT = 1e300  # of two numbers that are crossed: sums of that many are finite


class Feature(NamedTuple):
    """A column of the table, and its kind."""

    name: str
    kind: str


class Missing(NamedTuple):
    """The treatment of missing values: ``error``; ``omit``, no entry; ``indicator``, an entry in a column of its own."""

    numbers: str = ERROR
    categories: str = ERROR


def room_for(text: str | None) -> int:
    """Bytes that a name or a value takes in a model file."""
    return BESIDE + size_in_header(text or "")


def as_seen(name: str) -> str:
    """The name of a hashed column as it is kept: its beginning, where it is long."""
    kept = name[: LONGEST_SEEN + 1]
    if size_in_header(kept) <= LONGEST_SEEN:
        return kept
    while size_in_header(kept) > LONGEST_SEEN - 3:
        kept = kept[:-1]
    return kept + "..."


class Seen(NamedTuple):
    """Hashes of categories and crosses, as they appeared, and what they are called."""

    hashes: list[int]
    names: list[str]


class Encoding:
    """The features of a table and the columns they get; the dictionary of a one-hot encoding grows as rows are read."""

    def __init__(
        self,
        features: Iterable[Feature],
        *,
        categories: str = HASH,
        hash_bits: int = BITS,
        missing: Missing = Missing(),  # noqa: B008 (a tuple)
        dates: str | None = None,
        target: str | None = None,
        values: Iterable[tuple[int, str | None]] = (),
        interactions: Iterable[tuple[str, str]] = (),
        ngrams: Mapping[str, int] | None = None,
        bins: Mapping[str, Sequence[float]] | None = None,
        seen: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        self.features = tuple(features)
        self.categories, self.hash_bits, self.missing, self.dates, self.target = categories, hash_bits, missing, dates, target
        self._listed = [list(feature) for feature in self.features]
        self.ngrams, self.bins = dict(ngrams or {}), {name: list(edges) for name, edges in (bins or {}).items()}
        in_columns = [feature for feature in self.features if feature.name not in self.ngrams]
        self.documents = tuple(feature for feature in self.features if feature.name in self.ngrams)
        self.numeric = tuple(feature for feature in in_columns if feature.kind != TEXT and feature.name not in self.bins)
        self.texts = tuple(feature for feature in in_columns if feature.kind == TEXT or feature.name in self.bins)
        self.offset = len(self.numeric) * (2 if missing.numbers == INDICATOR else 1)
        self.interactions = tuple(interactions)
        self.values: list[list[Any]] = [[text, value] for text, value in values]
        self._numbers = {(text, value): self.offset + k for k, (text, value) in enumerate(self.values)}
        self.seen = Seen([], []) if seen is None else Seen(list(seen["hashes"]), list(seen["names"]))

    def number(self, text: int, value: str | None) -> int:
        """The column of a value of the text feature ``texts[text]``; a new value gets the next column."""
        found = self._numbers.get((text, value))
        if found is None:
            if len(self.values) >= MOST_VALUES:
                raise ValueError(f"expected at most {MOST_VALUES} values in all one-hot columns, got one more; hash them")
            size = room_for(value)
            if size > self.room:
                raise ValueError(f"expected one-hot values of at most {MOST_BYTES:,} bytes in all, got more; hash them")
            self.room -= size
            found = self._numbers[text, value] = self.offset + len(self.values)
            self.values.append([text, value])
        return found

    @cached_property
    def room(self) -> int:
        """Bytes that a model file has left for more values; below 0 where the names of the columns are too long for it."""
        texts = [feature.name for feature in self.features] + [value for _, value in self.values]
        return MOST_BYTES - sum(map(room_for, texts))

    def take_values(self, values: Iterable[Any]) -> None:
        """Number the values of another dictionary that continues this one."""
        for text, value in values:
            self.number(text, value)

    def forget_values(self, count: int) -> None:
        """Drop the values beyond the first ``count``."""
        for text, value in self.values[count:]:
            self.room += room_for(value)
            del self._numbers[text, value]
        del self.values[count:]

    @property
    def hashes(self) -> bool:
        """Whether it has hashed columns."""
        return self.categories == HASH and bool(self.texts or self.documents or self.interactions)

    def column_of(self, h: int) -> int:
        """The column of a hash."""
        return self.offset + (h & ((1 << self.hash_bits) - 1))

    def has_column(self, text: int, value: str | None) -> bool:
        """Whether a value of ``texts[text]`` has its column."""
        return (text, value) in self._numbers

    def description(self) -> dict[str, Any]:
        """How columns are numbered, for JSON; ``values`` is the dictionary itself, which grows (see ``upto``)."""
        crossed = {"interactions": [list(pair) for pair in self.interactions]} if self.interactions else {}
        expanded = {name: held for name, held in (("ngrams", self.ngrams), ("bins", self.bins)) if held}
        return {
            "version": EXPANDED if expanded else CROSSED if crossed else VERSION,
            "format": "columns",
            "features": self._listed,
            "categories": self.categories,
            "hash_bits": self.hash_bits,
            "seed": SEED,
            "missing": self.missing._asdict(),
            "dates": self.dates,
            "target": self.target,
            "values": self.values,
            **crossed,
            **expanded,
            **({"seen": self.seen._asdict()} if self.hashes else {}),
        }


def read(description: Mapping[str, Any]) -> Encoding:
    """The encoding of a description. Raises ValueError where it is none."""
    try:
        _must(description["format"] == "columns" and description["seed"] == SEED)
        interactions = _read_interactions(description)
        features = [Feature(name, kind) for name, kind in description["features"]]
        _must(
            all(isinstance(f.name, str) and f.kind in FEATURE_TYPES for f in features) and len(set(features)) == len(features)
        )
        ngrams, bins = _read_expansions(description, features)
        texts = sum((feature.kind == TEXT) != (feature.name in ngrams or feature.name in bins) for feature in features)
        values = [(place, value) for place, value in description["values"]]
        _must(len(values) <= MOST_VALUES and len(set(values)) == len(values))
        _must(all(type(k) is int and 0 <= k < texts and (v is None or isinstance(v, str)) for k, v in values))
        target = description["target"]
        _must(target is None or isinstance(target, str))
        _must(not (interactions or ngrams) or description["categories"] == HASH)
        known = {name for name, _ in features if name not in ngrams}
        _must(all(name in known for pair in interactions for name in pair))
        return Encoding(
            features,
            **check_options(description["categories"], description["hash_bits"], description["dates"]),
            missing=read_policies(description["missing"]),
            target=target,
            values=values,
            interactions=interactions,
            ngrams=ngrams,
            bins=bins,
            seen=description.get("seen"),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"encoding: expected a description of columns as this version writes it ({error!r}).") from None


def _read_interactions(description: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The pairs of a description, each once; its version says whether there are any."""
    found = [(first, second) for first, second in description.get("interactions", [])]
    expanded = "ngrams" in description or "bins" in description
    _must(description["version"] == (EXPANDED if expanded else CROSSED if found else VERSION))
    _must(len(set(found)) == len(found) <= MOST_CROSSES)
    return found


def _read_expansions(
    description: Mapping[str, Any], features: Sequence[Feature]
) -> tuple[dict[str, int], dict[str, list[float]]]:
    """The most words of the n-grams of each text column that has some, and the edges of each numeric column in bins."""
    ngrams, bins = dict(description.get("ngrams", {})), dict(description.get("bins", {}))
    kinds = dict(features)
    _must(all(kinds.get(name) == TEXT and type(most) is int and 1 <= most <= MOST_WORDS for name, most in ngrams.items()))
    _must(all(kinds.get(name) == NUMBER and is_ascending(edges) for name, edges in bins.items()))
    return ngrams, bins


def is_ascending(edges: Any) -> bool:
    """Whether these are edges of bins: finite and ascending."""
    if not isinstance(edges, list) or not 1 <= len(edges) <= MOST_EDGES or not all(type(edge) is float for edge in edges):
        return False
    return all(map(isfinite, edges)) and all(edge < following for edge, following in pairwise(edges))


def _is_seen(hashes: Any, names: Any) -> bool:
    """Whether these are hashes and as many names."""
    if not isinstance(hashes, list) or not isinstance(names, list) or not len(hashes) == len(names) <= MOST_SEEN:
        return False
    return all(type(h) is int and 0 <= h < 1 << 32 for h in hashes) and all(isinstance(name, str) for name in names)


def _must(true: bool) -> None:
    if not true:
        raise ValueError("a part of it is out of range")


def describe_hashing(hash_bits: int, interactions: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    """The description of hashed Vowpal Wabbit features, and of the pairs of namespaces that are crossed."""
    described = {"version": VERSION, "format": "vw", "hash_bits": hash_bits, "seed": SEED}
    return described | ({"version": CROSSED, "interactions": [list(pair) for pair in interactions]} if interactions else {})


def describe_numbering(base: int) -> dict[str, Any]:
    """The description of features that svmlight text numbers from ``base``."""
    return {"version": VERSION, "format": "svmlight", "base": base}


def describe_names(names: list[str]) -> dict[str, Any]:
    """The description of columns that are numbered as names appear; ``names`` is the list itself, which grows."""
    return {"version": VERSION, "format": "names", "names": names}


def names_in(description: Mapping[str, Any]) -> list[str]:
    """The names of a description of named columns, copied; raises ValueError where it has none."""
    names = description.get("names")
    if not isinstance(names, list) or len(names) > MOST_VALUES or not all(isinstance(name, str) for name in names):
        raise ValueError("encoding: expected a list of names.")
    if len(set(names)) != len(names):
        raise ValueError("encoding: expected each name once.")
    return list(names)


def base_of(description: Mapping[str, Any] | None, asked: int | None = None) -> int:
    """The first index of svmlight text: that of a description, else as asked, else 1; raises ValueError where they differ."""
    if description is None or format_of(description) != "svmlight":
        return 1 if asked is None else asked
    known = description.get("base")
    if type(known) is not int or known not in (0, 1):
        raise ValueError(f"encoding: expected the base 0 or 1, got {known!r}.")
    if asked not in (None, known):
        raise ValueError(
            f"base {asked} contradicts the model, which learned rows whose indices start at {known}; leave base out, or "
            f"renumber the file: onlinear convert --base {asked} --output-base {known}."
        )
    return known


def must_be_known(description: Mapping[str, Any]) -> None:
    """Raise ValueError for a mapping that describes no features."""
    checks: dict[str, Callable[[Mapping[str, Any]], Any]] = {
        "columns": _check_columns,
        "vw": crosses_of,
        "svmlight": base_of,
        "names": names_in,
    }
    checks[format_of(description)](description)


def _check_columns(description: Mapping[str, Any]) -> None:
    """Raise ValueError for a mapping that describes no columns, or names that hashes cannot have."""
    read(description)
    if "seen" in description and not _is_seen(**description["seen"]):
        raise ValueError("encoding: expected names of hashed columns as this version writes them.")


def format_of(description: Mapping[str, Any]) -> str:
    """``columns``, ``vw``, ``svmlight`` or ``names``."""
    found = description.get("format") if isinstance(description, Mapping) else None
    versions = {"columns": (VERSION, CROSSED, EXPANDED), "vw": (VERSION, CROSSED)}.get(str(found), (VERSION,))
    if found not in ("columns", "vw", "svmlight", "names") or description.get("version") not in versions:
        raise ValueError(f"encoding: expected a description that a stream of this version gave, got {str(description)[:80]!r}.")
    return str(found)


def bits_of(description: Mapping[str, Any]) -> int:
    """The hash bits of a description; raises ValueError where it has none."""
    return int(check_options(HASH, description.get("hash_bits"), None)["hash_bits"])


def crosses_of(description: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The pairs of namespaces that a description of Vowpal Wabbit features crosses; raises ValueError where it is none."""
    bits_of(description)
    try:
        found = _read_interactions(description)
        _must(all(isinstance(name, str) for pair in found for name in pair))
        return found
    except (KeyError, TypeError, ValueError):
        raise ValueError("encoding: expected pairs of namespaces as this version writes them.") from None


def widest(description: Mapping[str, Any] | None) -> int:
    """The largest number of columns that named features can have; 0 for features that are numbered in the source."""
    if description is None or description.get("format") not in ("columns", "vw"):
        return 0
    if description["format"] == "vw":
        return 1 << bits_of(description)
    encoding = read(description)
    if not encoding.texts and not encoding.documents and not encoding.interactions:
        return encoding.offset
    return encoding.offset + (1 << encoding.hash_bits if encoding.categories == HASH else MOST_VALUES)


def check_options(categories: Any, hash_bits: Any, dates: Any) -> dict[str, Any]:
    """Options as ``Encoding`` takes them."""
    if categories not in (HASH, ONE_HOT):
        raise unknown("categories", str(categories), (HASH, ONE_HOT))
    bits = BITS if hash_bits is None else hash_bits
    if type(bits) is not int or not 1 <= bits <= MOST_BITS:
        raise ValueError(f"hash_bits must be a whole number from 1 to {MOST_BITS}, got {bits!r}.")
    if dates is not None and dates not in DATES:
        raise unknown("dates", str(dates), DATES)
    return {"categories": categories, "hash_bits": bits, "dates": dates}


def read_policies(given: str | Mapping[str, str]) -> Missing:
    """'omit' for every kind, or 'numbers=indicator,categories=omit', or a mapping of that."""
    if isinstance(given, str):
        if "=" not in given:
            return Missing(_policy(given), _policy(given))
        pieces = (piece.partition("=") for piece in given.split(","))
        given = {kind.strip(): policy.strip() for kind, _, policy in pieces}
    if not isinstance(given, Mapping):
        raise TypeError(f"missing must be text, as 'omit', or a mapping, as {{'numbers': 'omit'}}, got {given!r}.")
    for kind in given:
        if kind not in Missing._fields:
            raise unknown("missing: the kind", str(kind), Missing._fields)
    return Missing(**{kind: _policy(policy) for kind, policy in given.items()})


def _policy(name: Any) -> str:
    if name not in POLICIES:
        raise unknown("missing", str(name), POLICIES)
    return str(name)


def count_seen(description: Mapping[str, Any] | None) -> int:
    """How many names of hashed columns a description has."""
    return 0 if description is None or "seen" not in description else len(description["seen"]["names"])


def without_seen(description: Mapping[str, Any]) -> dict[str, Any]:
    """The description without the names of hashed columns."""
    return {name: value for name, value in description.items() if name != "seen"}


def upto(description: Mapping[str, Any], size: int, seen: int | None = None) -> dict[str, Any]:
    """The description as it was when only columns below ``size``, and ``seen`` names, had been given: a reader may be ahead."""
    if description.get("format") == "names":
        return {**description, "names": list(description["names"][:size])}
    if description.get("format") != "columns":
        return dict(description)
    features = (Feature(*pair) for pair in description["features"])
    offset = Encoding(features, missing=Missing(**description["missing"]), bins=description.get("bins")).offset
    kept = {"seen": {part: held[:seen] for part, held in description["seen"].items()}} if "seen" in description else {}
    return {**description, "values": list(description["values"][: max(0, size - offset)]), **kept}


def continued(known: Mapping[str, Any], found: Mapping[str, Any] | None) -> Mapping[str, Any]:
    """The description of a model that ``known`` describes, after rows that ``found`` describes: it stays of its own kind, and
    its dictionary and its names of hashed columns become no fewer."""
    if found is None or format_of(known) != format_of(found) or format_of(known) == "svmlight":
        return known
    longer = {"values": known["values"]} if len(known.get("values", ())) > len(found.get("values", ())) else {}
    more = {"seen": known["seen"]} if count_seen(known) > count_seen(found) else {}
    return {**found, **longer, **more}


def number_alike(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether two descriptions give features the same columns, as far as the dictionaries of both go. Where the features of one
    have no names, they do."""
    if "svmlight" in (found.get("format"), wanted.get("format")):
        return True
    if found.get("format") != "columns" or wanted.get("format") != "columns":
        return dict(found) == dict(wanted)
    pairs = zip(found["values"], wanted["values"], strict=False)
    return _numbering(found) == _numbering(wanted) and all(list(a) == list(b) for a, b in pairs)


def _numbering(description: Mapping[str, Any]) -> list[Any]:
    """What decides which columns features get, and what dates become, but for the dictionary."""
    features = [(name, NUMBER if kind == BOOLEAN else kind) for name, kind in description["features"]]
    kinds = {kind for _, kind in features}
    made = [description.get(name) for name in ("interactions", "ngrams", "bins")]
    has_names = TEXT in kinds or any(made)
    hashing = (description["categories"], description["categories"] == HASH and description["hash_bits"]) if has_names else None
    dates = description["dates"] if DATE in kinds else None
    return [features, made, hashing, dates, description["missing"]["numbers"] == INDICATOR]


def names(description: Mapping[str, Any] | None, size: int) -> list[str | None]:
    """The names of columns 0 .. size-1; None for a column that has none, or shares it."""
    return names_of(description, range(size))


def names_of(description: Mapping[str, Any] | None, columns: Iterable[int]) -> list[str | None]:
    """The names of some columns, in memory for these alone: a description may have 2^30.

    A column that several names share has all of them.
    """
    columns = list(columns)
    if description is not None and description.get("format") == "names":
        given = description["names"]
        return [given[column] if column < len(given) else None for column in columns]
    if description is None or description.get("format") != "columns":
        return [None for _ in columns]
    encoding = read(description)
    own = [feature.name for feature in encoding.numeric]
    if encoding.missing.numbers == INDICATOR:
        own += [f"{feature.name} is missing" for feature in encoding.numeric]
    texts = encoding.texts
    hashed, shared, found = 0, None, dict[int, list[str]]()
    if encoding.categories == ONE_HOT:
        own += [category(texts[place].name, value) for place, value in encoding.values]
    elif encoding.hashes:
        hashed = encoding.offset + (1 << encoding.hash_bits)
        found = _seen_in(encoding, set(columns))
        hashed_texts = [*texts, *encoding.documents]
        shared = f"{hashed_texts[0].name} (hashed)" if len(hashed_texts) == 1 and not encoding.interactions else "(hashed)"
    names = {column: " + ".join(several) for column, several in found.items()}
    return [own[k] if k < len(own) else names.get(k, shared) if k < hashed else None for k in columns]


def _seen_in(encoding: Encoding, columns: set[int]) -> dict[int, list[str]]:
    """The names that were seen in some hashed columns, by column."""
    found: dict[int, list[str]] = {}
    for h, name in zip(encoding.seen.hashes, encoding.seen.names, strict=True):
        column = encoding.column_of(h)
        if column in columns:
            found.setdefault(column, []).append(name)
    return found


def category_hash(name: str, value: str | None) -> int:
    """The hash of a category: of its column and its text, of a missing one of the column alone."""
    return key_hash(name if value is None else f"{name}={value}")


def category(name: str, value: str | None) -> str:
    """What a category is called: its column and its text."""
    return f"{name} is missing" if value is None else f"{name}={value}"


def choose_columns(columns: Sequence[str], features: Iterable[str] | None, exclude: Iterable[str]) -> list[str]:
    """The columns that the names or patterns ``features`` take (None: all), less those of ``exclude``, in the table's order.

    Raises ValueError for a name or pattern that no column has.
    """
    kept = set(columns) if features is None else match_columns(columns, features, "features")
    kept -= match_columns(columns, exclude, "exclude")
    return [name for name in columns if name in kept]


def match_columns(columns: Sequence[str], patterns: Iterable[str], argument: str, what: str = "column") -> set[str]:
    """The columns that names or patterns fit; raises ValueError for one that fits none."""
    found: set[str] = set()
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        matched = columns_that_fit(columns, pattern)
        if not matched:
            raise unknown(f"{argument}: the {what}", pattern, columns)
        found.update(matched)
    return found


def columns_that_fit(columns: Sequence[str], pattern: str) -> list[str]:
    """The column of this name; where there is none, those that it fits as a pattern."""
    return [name for name in columns if name == pattern] or [name for name in columns if fnmatchcase(name, pattern)]
