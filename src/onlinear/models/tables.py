"""Tables in memory in front of the estimators: which are read as arrays, which as streams, and their targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from onlinear import streams
from onlinear.models.base import Model
from onlinear.models.stored_model import quote
from onlinear.models.targets import WANTED
from onlinear.rows import column_names
from onlinear.streams import Block, Stream, encoding
from onlinear.streams.blocks import Wrapped
from onlinear.streams.encoding import BOOLEAN, NUMBER, Encoding, Feature
from onlinear.streams.frames import as_arrow, is_frame, is_record, is_table, refuse_repeated, wide_columns
from onlinear.text.form import quoted

__all__ = [
    "Given",
    "as_dicts",
    "as_numbers",
    "columns_known",
    "feature_names",
    "has_other_than_numbers",
    "is_numbered",
    "is_table",
    "names_known",
    "names_target",
    "open_labelled",
    "open_rows",
    "records_with_targets",
    "refuse_other_blocks",
    "refuse_other_columns",
    "refuse_other_names",
    "remark_on_blocks",
    "remark_on_columns",
]


class Given(Wrapped):
    """The rows of a table with targets and weights that come as arrays; row i has ``y[i]`` and ``weights[i]``.

    ``named``: the classes whose places the targets are; None for numbers.
    """

    def __init__(self, stream: Stream, y: np.ndarray, weights: np.ndarray | None, named: np.ndarray | None) -> None:
        super().__init__(stream)
        self._y, self._weights, self.named = y, weights, named

    def __iter__(self) -> Iterator[Block]:
        for block in self._stream:
            rows = block.lines - 1
            yield block._replace(y=self._y[rows], weights=None if self._weights is None else self._weights[rows])

    @property
    def labels(self) -> tuple[str, ...] | None:  # type: ignore[override]
        """None: the targets are numbers, or places of classes."""
        return None


def as_numbers(X: Any) -> Any:
    """A frame of numbers in a form that scikit-learn's checks take, with its names; other rows as they are.

    Raises TypeError for names that repeat, ValueError for rows without columns and for complex numbers.
    """
    if not is_frame(X):
        return X
    X = as_arrow(X) if hasattr(X, "to_struct_array") else X  # an Arrow batch, whose names scikit-learn does not see
    names = column_names(X)
    refuse_repeated(names, "X")
    if not len(names):
        raise ValueError(f"X has no columns: 0 feature(s) (shape=({len(X)}, 0)) while a minimum of 1 is required.")
    types = list(getattr(X, "dtypes", ()))
    for name, held in zip(names, types, strict=False):
        if getattr(held, "kind", "") == "c":  # of some columns, scikit-learn drops the imaginary parts
            raise ValueError(f"Complex data not supported: column {name!r} of X has dtype {held}; expected real numbers.")
    fills = [held.fill_value for held in types if hasattr(held, "fill_value")]
    return X.sparse.to_dense() if len(fills) == len(names) and any(fill != 0 for fill in fills) else X


def names_target(X: Any, y: Any) -> bool:
    """Whether X is a table whose targets are one of its own columns."""
    return is_table(X) and (y is None or isinstance(y, str))


def has_other_than_numbers(X: Any) -> bool:
    """Whether a table has columns that arrays of numbers cannot hold: text, categories, dates, 128 bits; and rows as dicts."""
    if not is_frame(X):
        return True
    numbers = [getattr(dtype, "kind", "O") in "fiubc" for dtype in getattr(X, "dtypes", "O")]
    if all(numbers):
        return False  # a pandas frame of numbers, without a copy
    if hasattr(X, "read_all") and hasattr(X, "read_next_batch"):
        raise TypeError(
            f"expected rows that can be looked at first, got a {type(X).__name__}, which gives them once: give its read_all()."
        )
    if wide_columns(X):
        return True
    from onlinear.streams.column_plan import kind_of

    others = X.loc[:, np.logical_not(numbers)] if hasattr(X, "loc") else X
    return any(kind_of(held) not in (NUMBER, BOOLEAN) for held in as_arrow(others).schema.types)


def open_labelled(X: Any, y: str | None, weight: Any, described: Any, **asked: Any) -> Stream:
    """A table with its own targets: the column ``y``, or that of the encoding ``described``; ``weight`` names a column too.

    ``asked``: what is to be made of its columns.
    """
    if not (weight is None or isinstance(weight, str)):
        raise ValueError("y names a column of the table, so sample_weight must name one too, or be None.")
    return streams.open(X, target=y, weight=weight, encoding=described, unlabelled=False, **asked)


def open_rows(X: Any, columns: dict[str, Any]) -> Stream:
    """A table without targets, in the columns of a model, as ``columns_known`` describes them."""
    return streams.open(X, encoding=columns, unlabelled=True)


def columns_known(described: Any, names: Any) -> dict[str, Any]:
    """How a table's columns are those of a model: by its ``encoding_``, else by the names of its columns of numbers.

    Raises ValueError for a model that knows no names.
    """
    if described is not None and encoding.format_of(described) == "columns":
        return described
    if names is None:
        raise ValueError("X is a table, and the model was trained on rows without names of columns: give rows of numbers.")
    return Encoding(Feature(str(name), NUMBER) for name in names).description()


def names_known(described: Any, names: Any) -> list[str] | None:
    """The names of the columns that rows of a model have, in their order: those of its table, of the dicts that it learned, or
    ``names`` of numbers; None where it knows none."""
    if (own := feature_names(described)) is not None:
        return own.tolist()
    if described is not None and encoding.format_of(described) == "names":
        return encoding.names_in(described)
    return None if names is None else list(names)


def refuse_other_columns(stream: Stream, model: Any) -> None:
    """Raise ValueError for a stream whose columns have other names than those of a model, another order or other numbers; of a
    model that knows no categories, where they are not as many."""
    described = getattr(model, "encoding_", None)
    if (named := feature_names(stream.encoding)) is not None:
        given, learner = named.tolist(), model.learner_ if isinstance(model, Model) else model
        known = names_known(described, model.names_of_numbers() if isinstance(model, Model) else None)
        if known is None:
            refuse_other_names(stream.name, given, getattr(learner, "names", None))
        elif given != known:
            raise _other_columns(stream, given, known, described)
        if described is None:
            _refuse_other_width(stream, given, learner)
    if not (is_numbered(described) or is_numbered(stream.encoding) or _numbers_alike(stream, described)):
        raise ValueError(
            f"the columns of {stream.name} are numbered differently from those of the model: "
            "a table that is opened with encoding=model.encoding_ has the model's."
        )


def _numbers_alike(stream: Stream, described: Any) -> bool:
    """Whether the columns of a stream have the numbers that those of a model have, as far as both have names by column."""
    found = stream.encoding
    assert found is not None
    if encoding.format_of(described) == "names":
        return True
    complete = not stream.grows or len(found["values"]) >= len(described["values"])
    return complete and encoding.number_alike(found, described)


def _other_columns(stream: Stream, given: list[str], known: list[str], described: Any) -> ValueError:
    """The error for columns that are not those that a model learned."""
    hint = "give these columns in this order" if feature_names(described) is None else "open it with encoding=model.encoding_"
    wanted, got = (quote(np.array(part, dtype=object)) for part in (known, given))
    return ValueError(f"{stream.name}: expected the columns that the model learned, {wanted}, got {got}: {hint}.")


def refuse_other_names(of: str, found: Any, known: Mapping[int, str] | None) -> None:
    """Raise ValueError for columns whose names, where they are text, are not those that a model knows at their places."""
    if not known or found is None or not all(isinstance(name, str) for name in found):
        return
    for column, name in known.items():
        if column < len(found) and found[column] != name:
            raise ValueError(
                "The feature names should match those that were passed during fit: "
                f"column {column} of {of} is {quoted(found[column])}, that of the model {quoted(name)}."
            )


def _refuse_other_width(stream: Stream, given: Sequence[str], learner: Any) -> None:
    """Raise ValueError for a table that is read as another number of columns than those of a learner that gets no more."""
    width = encoding.widest(stream.encoding)
    if not learner.growing and width != learner.size:
        raise ValueError(
            f"{stream.name}: {quote(np.array(given, dtype=object))} are read as {width:,} columns, and the model has "
            f"{learner.size:,}: leave out what is no feature (exclude= and target=, in the command --exclude and --target)."
        )


def refuse_other_blocks(given: list[str] | None, model: Model) -> None:
    """Raise ValueError for names of the columns of blocks (X, y) that are not those of a model."""
    known = names_known(model.encoding_, model.names_of_numbers())
    if known is None:
        refuse_other_names("X", given, getattr(model.learner_, "names", None))
    elif given is not None and given != known:
        wanted, got = (quote(np.array(part, dtype=object)) for part in (known, given))
        raise ValueError(
            f"the columns of X must have the names that the model learned, in the same order: expected {wanted}, got {got}."
        )


def remark_on_blocks(place: str, given: list[str] | None, model: Model) -> str | None:
    """``remark_on_columns`` of blocks (X, y), the first of which is at ``place``."""
    named = given is not None
    return None if named == _knows_names(model) else _taken_in_order(place, named=named)


def remark_on_columns(stream: Stream, model: Any) -> str | None:
    """What to say of rows whose columns are taken for the model's by their places, as one of the two has no names."""
    if _knows_names(model):
        return _taken_in_order(stream.name, named=False) if is_numbered(stream.encoding) else None
    return None if is_numbered(stream.encoding) else _taken_in_order(stream.name, named=True)


def _knows_names(model: Any) -> bool:
    """Whether a model knows names of its columns."""
    if not is_numbered(getattr(model, "encoding_", None)):
        return True
    return isinstance(model, Model) and (model.names_of_numbers() is not None or bool(getattr(model.learner_, "names", None)))


def _taken_in_order(name: str, *, named: bool) -> str:
    """The remark on rows of this name, whose columns have names where the model's have none, or the other way round."""
    what = "names its columns, and the model has no names" if named else "numbers its columns"
    return f"{name} {what}; they are taken for the model's columns in order."


def is_numbered(described: Mapping[str, Any] | None) -> bool:
    """Whether columns have numbers alone."""
    return described is None or encoding.format_of(described) == "svmlight"


def as_dicts(X: Any) -> Any:
    """The rows of a table as dicts."""
    if not is_frame(X):
        return [X] if is_record(X) else X
    return as_arrow(X).to_pylist()


def records_with_targets(X: Any, y: Any, weight: Any) -> tuple[list[Any], Any, Any]:
    """The rows of a table as dicts, their targets and weights: arrays as they are, or the columns of these names."""
    if y is None:
        raise ValueError(f"{WANTED}.")
    rows, named = as_dicts(X), [name for name in (y, weight) if isinstance(name, str)]
    for row in rows:
        for name in named:
            if is_record(row) and name not in row:
                raise ValueError(f"X has a row without {name!r}, which y or sample_weight names.")
    y, weight = ([row[part] for row in rows] if isinstance(part, str) else part for part in (y, weight))
    return [{name: row[name] for name in row if name not in named} if named else row for row in rows], y, weight


def feature_names(described: Any) -> np.ndarray | None:
    """The names of a table's columns that are features, by the encoding of a model; None where it has none."""
    if described is None or encoding.format_of(described) != "columns":
        return None
    return np.array([name for name, _ in described["features"]], dtype=object)
