"""Which format a source has, and which options go with it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from onlinear.streams.encoding import format_of
from onlinear.streams.files import is_pipe
from onlinear.streams.suffixes import CSV, TABLES, form_of, is_uri, strip_packing, suffix_of
from onlinear.text.form import check_flag
from onlinear.text.names import printable

FORMATS = ("auto", "svmlight", "vw", "columns", *TABLES)
# option: the formats it is for, and its default, which means that nothing was asked
ONLY_FOR: dict[str, tuple[tuple[str, ...], Any]] = {
    "base": (("svmlight",), None),
    "sort": (("svmlight",), False),
    **dict.fromkeys(("target", "weight", "features", "dates", "classes"), (TABLES, None)),
    **dict.fromkeys(("exclude", "text", "numbers", "ngrams", "bins"), (TABLES, ())),
    "interactions": ((*TABLES, "vw"), ()),
    "categories": (TABLES, "hash"),
    "missing": (TABLES, "error"),
    **dict.fromkeys(("nulls", "delimiter", "decimal"), ((CSV,), None)),
}


NAMED = "target", "weight"  # options that name one column
LISTED = "features", "exclude", "text", "numbers", "nulls"  # options that are texts
BY_NAME = "interactions", "ngrams", "bins"  # options that say what becomes of columns
FOREIGN = {  # suffixes of files that are no format here: how to read them
    **dict.fromkeys((".json", ".jsonl", ".ndjson"), "pandas.read_json (lines=True where each line is a row)"),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "pandas.read_excel"),
    **dict.fromkeys((".npy", ".npz"), "numpy.load"),
    ".arrows": "pyarrow.ipc.open_stream(path).read_all()",
}


def as_asked(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options in plain Python, so that none is an array where it is compared or an iterator where it is read twice.

    Raises TypeError for names of columns, classes or texts of missing values that are of another kind.
    """
    for name in NAMED:
        if options[name] is not None and not isinstance(options[name], str):
            raise TypeError(f"{name} must be the name of a column, which is text, got {options[name]!r}.")
    check_flag("sort", options["sort"])
    plain = {name: _texts(name, options[name]) for name in LISTED}
    made = {name: _as_plain(options[name]) for name in BY_NAME}
    return {**options, **plain, **made, "classes": _names(options["classes"])}


def _texts(name: str, given: Any) -> Any:
    """One text, or a tuple of several."""
    if given is None or isinstance(given, str):
        return given
    held = tuple(given) if hasattr(given, "__iter__") else (given,)
    other = [value for value in held if not isinstance(value, str)]
    if other:
        raise TypeError(f"{name} must hold texts, as ['a', 'b'], got {other[0]!r}.")
    return held


def _names(given: Any) -> Any:
    """Names of classes, in their order; those of a set, which has none, by the alphabet."""
    if given is None:
        return None
    if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__"):
        raise TypeError(f"classes must be a list of names, as ['a', 'b'], got {given!r}.")
    return tuple(sorted(given, key=str) if isinstance(given, (set, frozenset)) else given)


def _as_plain(given: Any) -> Any:
    """A mapping as a dict, and what else is iterable as a tuple; None is nothing."""
    if given is None:
        return ()
    if hasattr(given, "items"):
        return dict(given.items())
    return given if isinstance(given, (str, bytes)) or not hasattr(given, "__iter__") else tuple(given)


def one_format(paths: Sequence[str], asked: str, encoding: Mapping[str, Any] | None) -> str:
    """The format of all the files. Raises ValueError where they have several, or not the one that was asked for."""
    if asked in ("vw", "svmlight", *TABLES):
        folder = next((path for path in paths if os.path.isdir(path)), None)
        if folder is not None and asked not in TABLES:
            raise IsADirectoryError(
                f"{printable(folder)} is a folder; expected a file. Folders may hold Parquet, Arrow or CSV files."
            )
        uri = next(filter(is_uri, paths), None)
        if uri is not None and asked not in TABLES:
            raise _of_uri(uri)
        return asked
    found = {path: _format(path, encoding) for path in paths}
    first, kind = next(iter(found.items()))
    other = next((path for path, form in found.items() if form != kind), None)
    if other is not None:
        raise ValueError(
            f"source: expected files of one format, got {printable(first)} ({kind}) and {printable(other)} ({found[other]})."
        )
    if asked == "columns" and kind not in TABLES:
        raise ValueError(
            f"{printable(first)}: its name does not tell whether it is parquet, arrow or csv; say that as the format."
        )
    return kind


def _format(path: str, encoding: Mapping[str, Any] | None) -> str:
    """The format by the suffix of a file, or of the files in a folder; else that of the encoding, else svmlight."""
    if os.path.isdir(path) or is_uri(path):
        from onlinear.streams.places import find_places

        forms = {form_of(place.path) for place in find_places(path)}
        if len(forms) > 1 or None in forms:
            if is_uri(path):
                raise _of_uri(path)
            raise IsADirectoryError(
                f"{printable(path)} is a folder; expected a file, or a folder of Parquet, Arrow or CSV files of one kind."
            )
        return str(forms.pop())
    found = form_of(path)
    if found is not None:
        return found
    if strip_packing(path).endswith(".vw"):
        return "vw"
    if (reader := FOREIGN.get(suffix_of(strip_packing(path)))) and not is_pipe(path):
        raise ValueError(
            f"{printable(path)}: a file of this kind is not read; read it with {reader} and give what that returns (if it is "
            "text of another format, say so, as with format='svmlight')."
        )
    if encoding is None or not is_pipe(path):
        return "svmlight"
    found = format_of(encoding)
    return "csv" if found == "columns" else found


def _of_uri(path: str) -> ValueError:
    """The error for a URI of what is no table."""
    return ValueError(
        f"{printable(path)}: expected a URI of Parquet, Arrow or CSV files of one kind, which their suffix or format= "
        "(--format) names; other text is read from files of this machine."
    )


def must_fit(kind: str, options: Mapping[str, Any], hash_bits: int | None, encoding: Mapping[str, Any] | None) -> None:
    """Raise ValueError for an option that the format does not have."""
    for name, value in options.items():
        formats, nothing = ONLY_FOR[name]
        if kind not in formats and value is not None and value != nothing:
            raise ValueError(
                f"{name} is for the format {' or '.join(formats)}, and the input is {kind}; if not, say so, as with "
                f"format={formats[-1]!r} (in the command: --format {formats[-1]})."
            )
    if hash_bits is not None and kind == "svmlight":
        raise ValueError("hash_bits is for columns and vw, whose features have names; svmlight's have numbers.")
    described = "svmlight" if encoding is None else format_of(encoding)
    if described == "names":
        raise ValueError(
            "encoding: the columns are those of dicts, row by row; give a list of dicts or a data frame to predict."
        )
    if kind == "vw" and described not in ("svmlight", "vw"):
        raise ValueError(f"encoding: expected one of vw input, got one of {described}.")


def must_have_named_columns(kind: str, encoding: Mapping[str, Any] | None) -> None:
    """Raise ValueError for an encoding of Vowpal Wabbit text and a table of named columns: converted rows alone may have it."""
    if encoding is not None and format_of(encoding) == "vw":
        raise ValueError(f"encoding: expected one of {kind} input, got one of vw.")


def hold_converted_rows(places: Sequence[Any], kind: str, options: Mapping[str, Any], hash_bits: int | None) -> bool:
    """Whether the files hold sparse rows, as ``onlinear convert`` writes them, and not columns with names.

    Raises ValueError where only some do, and for options that such rows do not have.
    """
    from onlinear.streams.converted import is_converted

    if kind == CSV:
        return False
    found = [place for place in places if place.filesystem is None and is_converted(place.path)]
    if not found:
        return False
    other = next((place for place in places if place not in found), None)
    if other is not None:
        raise ValueError(f"source: expected files of one kind, got {found[0].name} (converted rows) and {other.name}.")
    why = f"is for columns with names; {found[0].name} holds converted rows, which have none."
    refuse_options(options, hash_bits, why)
    return True


def refuse_options(options: Mapping[str, Any], hash_bits: int | None, why: str) -> None:
    """Raise ValueError for an option that was given; ``why``: the words behind its name."""
    for name, value in options.items():
        if value is not None and value != ONLY_FOR[name][1]:
            raise ValueError(f"{name} {why}")
    if hash_bits is not None:
        raise ValueError(f"hash_bits {why}")
