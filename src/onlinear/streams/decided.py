"""What the encoding of a model decides: options of ``streams.open`` that ask for something else are refused.

Without an encoding these options make one. With one they could only be ignored, so they may be left out, or say the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from onlinear.streams import encoding as enc
from onlinear.streams.encoding import BOOLEAN, DATE, NUMBER, TEXT, Encoding, columns_that_fit, match_columns
from onlinear.streams.expansions import bins_of_columns, words_of_columns
from onlinear.streams.interactions import pairs_of_columns, pairs_of_namespaces
from onlinear.streams.table_options import TableOptions
from onlinear.text.form import unknown
from onlinear.text.names import option_of

DECIDED = (
    *("base", "features", "exclude", "text", "numbers", "categories", "hash_bits"),
    *("interactions", "ngrams", "bins", "missing", "dates"),
)  # options; a ``base`` that differs is refused by ``encoding.base_of``
_IN_WORDS = {NUMBER: "numbers", BOOLEAN: "true and false", DATE: "dates", TEXT: "categories"}
_MOST_SHOWN = 20


def must_hold_table(given: Encoding, options: TableOptions, columns: Sequence[str]) -> None:
    """Raise ValueError for an option that contradicts the encoding of a table with these columns."""
    others = [name for name in (given.target, options.target, options.weight) if name is not None]
    known = list(dict.fromkeys([*columns, *(feature.name for feature in given.features), *others]))
    if options.features is not None:
        _must_hold_features(given, options, known, others)
    for name in (feature.name for feature in given.features):
        if any(name in columns_that_fit(known, pattern) for pattern in _as_list(options.exclude)):
            raise _differs("exclude", f"columns that are no features {_OF}", repr(name))
    _must_have_kind(given, "text", options.text, (TEXT,), known)
    _must_have_kind(given, "numbers", options.numbers, (NUMBER, BOOLEAN), known)
    if options.categories not in (None, given.categories):
        enc.check_options(options.categories, None, None)
        raise _differs("categories", f"{given.categories!r} {_AS}", repr(options.categories))
    must_have_bits(given.hash_bits, options.hash_bits)
    if options.missing is not None and (missing := enc.read_policies(options.missing)) != given.missing:
        raise _differs("missing", f"{_policies(given.missing)} {_AS}", _policies(missing))
    if options.dates not in (None, given.dates):
        enc.check_options(given.categories, None, options.dates)
        raise _differs("dates", f"{'nothing' if given.dates is None else repr(given.dates)} {_AS}", repr(options.dates))
    _must_hold_made_columns(given, options)


def must_hold_namespaces(pairs: Iterable[tuple[str, str]], asked: Any) -> None:
    """Raise ValueError where other pairs of namespaces are asked for than the encoding crosses."""
    _must_be_pairs(pairs, pairs_of_namespaces(asked) if _is_asked(asked) else None)


def must_have_bits(held: int, asked: int | None) -> None:
    """Raise ValueError where other hash bits are asked for than the encoding has."""
    if asked is not None and enc.bits_of({"hash_bits": asked}) != held:
        raise _differs("hash_bits", f"{held} {_AS}", str(asked))


_AS = "as the model's encoding has it"
_OF = "of the model's encoding"


def _differs(name: str, expected: str, got: str) -> ValueError:
    """The error for an option that contradicts the encoding."""
    return ValueError(f"{name}: expected {expected}, got {got}; leave {name} out (in the command: {option_of(name)}).")


def _must_hold_features(given: Encoding, options: TableOptions, known: Sequence[str], others: Sequence[str]) -> None:
    """Every feature of the encoding must be named or fitted, and no other column be named."""
    learned = [feature.name for feature in given.features]
    named = _as_list(options.features)
    taken = match_columns(known, named, "features")
    left = next((name for name in learned if name not in taken), None)
    if left is not None:
        raise _differs("features", f"all features {_OF}", f"none that is {left!r}")
    without = {name for pattern in _as_list(options.exclude) for name in columns_that_fit(known, pattern)}
    more = next((name for name in named if name in known and name not in {*learned, *others, *without}), None)
    if more is not None:
        raise _differs("features", f"features {_OF}", repr(more))


def _must_have_kind(given: Encoding, option: str, asked: Any, kinds: Sequence[str], known: Sequence[str]) -> None:
    """Columns that are to be read as some kind must be of it, as far as they are features."""
    held = dict(given.features)
    for name in _as_list(asked):
        if name not in known:
            raise unknown(f"{option}: the column", name, known)
        if held.get(name, kinds[0]) not in kinds:
            raise _differs(
                option, f"columns that are {_IN_WORDS[kinds[0]]} in the model's encoding", f"{name!r}, {_IN_WORDS[held[name]]}"
            )


def _must_hold_made_columns(given: Encoding, options: TableOptions) -> None:
    """Crosses, n-grams and bins must be those of the encoding."""
    features, asked = given.features, options
    if _is_asked(asked.interactions):
        pairs = pairs_of_columns(features, asked.interactions, given.categories, given.ngrams, given.bins)
        _must_be_pairs(given.interactions, pairs)
    words = words_of_columns(features, asked.ngrams, given.categories) if _is_asked(asked.ngrams) else given.ngrams
    if words != given.ngrams:
        raise _differs("ngrams", f"{_list(_ngrams(given.ngrams))} {_AS}", _list(_ngrams(words)))
    if _is_asked(asked.bins) and not _are_bins(bins := bins_of_columns(features, asked.bins), given.bins):
        raise _differs("bins", f"{_list(_bins(given.bins))} {_AS}", _list(_bins(bins)))


def _must_be_pairs(held: Iterable[tuple[str, str]], asked: Iterable[tuple[str, str]] | None) -> None:
    wanted = list(held)
    if asked is not None and {frozenset(pair) for pair in asked} != {frozenset(pair) for pair in wanted}:
        raise _differs("interactions", f"{_list(map(':'.join, wanted))} {_AS}", _list(map(":".join, asked)))


def _are_bins(asked: Mapping[str, int | list[float]], held: Mapping[str, list[float]]) -> bool:
    """Whether these may be the bins that were asked for. Of a number of bins there may be fewer: values may be equal."""
    return asked.keys() == held.keys() and all(
        len(held[name]) < bins if isinstance(bins, int) else held[name] == bins for name, bins in asked.items()
    )


def _is_asked(asked: Any) -> bool:
    """Whether an option that lists things was given."""
    return asked is not None and not (hasattr(asked, "__len__") and len(asked) == 0)


def _policies(missing: enc.Missing) -> str:
    """Policies as the option takes them."""
    if missing.numbers == missing.categories:
        return repr(missing.numbers)
    return repr(",".join([f"{kind}={policy}" for kind, policy in missing._asdict().items()]))


def _ngrams(held: Mapping[str, int]) -> list[str]:
    return [f"{name}:{words}" for name, words in held.items()]


def _bins(held: Mapping[str, int | list[float]]) -> list[str]:
    return [
        ":".join([name, *(f"{n:g}" for n in ([given] if isinstance(given, int) else given))]) for name, given in held.items()
    ]


def _list(items: Iterable[str]) -> str:
    """The first twenty, quoted as one text; ``none`` where there are none."""
    shown = list(items)
    more = ", ..." if len(shown) > _MOST_SHOWN else ""
    return repr(",".join(shown[:_MOST_SHOWN])) + more if shown else "none"


def _as_list(names: Iterable[str] | None) -> list[str]:
    return [] if names is None else [names] if isinstance(names, str) else list(names)
