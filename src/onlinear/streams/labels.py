"""The labels of a stream as classes: numbers or text, as the source has them or as the user named them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from onlinear.compiled.calls import EXACT
from onlinear.streams.blocks import Block, Stream, StreamError
from onlinear.streams.encoding import MOST_VALUES
from onlinear.streams.marks import COMMA, POINT, among, as_nulls, of_number
from onlinear.text.form import quoted, visible

MOST_SCANNED = 10_000  # labels of which each may have a row of its own
MOST_PADDED = 1 << 28  # bytes of labels as NumPy's text, in which each takes what the longest takes


class Labels:
    """The classes of a stream, and each label's place among them.

    ``classes``: all there are; None: those the stream knows, else -1 and 1 or 0 and 1, where the first label that is not 1
    decides. Text for a stream whose labels are text, otherwise numbers, which may be written as text. ``known``: whether they
    are those of a model, which keep their type and order: of a stream whose labels are of the other type too.

    Raises ValueError for fewer than two classes, for text that is no number, and where text labels are not named.
    """

    def __init__(self, stream: Stream, classes: Iterable[Any] | None = None, *, known: bool = False) -> None:
        self._stream = stream
        self.named = classes is not None or stream.classes is not None
        self.classes: np.ndarray | None = None
        self.as_labels: list[Any] = [-1.0, 1.0]  # the classes as the stream has its labels
        self._table = np.zeros(0, np.intp)  # the place of each of the stream's text labels, -1 for none
        if known and classes is not None:
            self.know(classes)
        elif classes is not None:
            self._take(as_classes(_as_labels(stream, classes)))
        elif stream.classes is not None:
            self._take(as_classes(_as_labels(stream, [label_in(stream, y) for y in stream.classes.tolist()])))
        elif stream.labels is not None:
            raise ValueError(_unnamed(stream))
        if self.classes is not None and len(self.classes) < 2:
            only = [quoted(label) if isinstance(label, str) else shown(label) for label in self.classes.tolist()]
            raise ValueError(f"a classifier needs at least two classes, got {f'only {only[0]}' if only else 'none'}.")

    def know(self, classes: Iterable[Any]) -> None:
        """Have the classes of a model. Raises ValueError where two of them are one label of the stream."""
        held = label_array(classes)
        found = _as_labels(self._stream, held.tolist())
        if len(as_classes(found)) < len(held):
            raise ValueError(
                f"the labels of {self._stream.name} are numbers, of which several of the classes {list_classes(held)} are one: "
                "read them as text (of a table, text=, in the command --text)."
            )
        self._take(held, found)

    def _take(self, classes: np.ndarray, as_labels: list[Any] | None = None) -> None:
        self.classes, self.as_labels = classes, classes.tolist() if as_labels is None else as_labels
        self._table = np.zeros(0, np.intp)
        numbers = np.array(self.as_labels if self._stream.labels is None else (), np.float64)
        self._order = np.argsort(numbers)  # where the numbers, ascending, stand among the classes
        self._numbers = numbers[self._order]

    @property
    def count(self) -> int:
        """Number of classes."""
        return len(self.names)

    @property
    def names(self) -> np.ndarray:
        """The classes, ascending: text, integers where all are whole, else floats."""
        return np.array([-1, 1]) if self.classes is None else self.classes

    def places(self, block: Block) -> np.ndarray:
        """Each row's class, as its place in ``names``. Raises StreamError for a label that is no class."""
        if self.classes is None:
            self._decide(block)
        if self._stream.labels is not None:
            places = self._places_of_text(self._stream.labels)[block.y.astype(np.intp)]
            strange = places < 0
        elif self.count == 2:
            places = (block.y == self.as_labels[1]).astype(np.intp)
            strange = (block.y != self.as_labels[0]) & (places == 0)
        else:
            found = np.minimum(np.searchsorted(self._numbers, block.y), self.count - 1)
            places, strange = self._order[found], self._numbers[found] != block.y
        if strange.any():
            raise self._unknown(block, int(np.argmax(strange)))
        return places

    def _places_of_text(self, labels: tuple[str, ...]) -> np.ndarray:
        if len(labels) != len(self._table):
            place = {name: k for k, name in enumerate(self.as_labels)}
            self._table = np.array([place.get(label, -1) for label in labels], np.intp)
        return self._table

    def _decide(self, block: Block) -> None:
        low = np.flatnonzero(block.y != 1.0)
        if not len(low):
            return
        label = block.y[low[0]]
        if label not in (-1.0, 0.0):
            raise self._unknown(block, int(low[0]))
        self._take(np.array([int(label), 1]))

    def _unknown(self, block: Block, row: int) -> StreamError:
        wanted = "a label of -1, 1 or of 0, 1"
        if self.classes is not None:
            wanted = f"one of the classes {list_classes(self.classes)}"
        hint = (
            "" if self.named else " (other classes: --classes a,b,... or --scan, in Python classes=; numbers: --task regress)"
        )
        return StreamError(f"{block.where(row)}: expected {wanted}, got {label_of(self._stream, block.y[row])}{hint}.")


def refuse_no_classes(stream: Stream, block: Block, found: np.ndarray) -> None:
    """Raise StreamError for labels of a block that nobody named and that are no classes: numbers with a fraction, and whole
    numbers from 2^53 on, which are not told apart. ``found``: its labels, each once, ascending."""
    if stream.labels is not None:
        return
    if np.any(found != np.floor(found)):
        raise StreamError(_measured(block))
    beyond = found[np.abs(found) >= EXACT]
    if len(beyond):
        raise StreamError(_merged(stream, shown(float(beyond[0]))))


def scan(stream: Stream) -> tuple[Any, ...]:
    """All labels of a stream, ascending; reads it once. Raises StreamError for one that is no class by itself, and for so many
    that they name rows instead of classes."""
    if not stream.rereadable:
        raise StreamError(f"{stream.name} cannot be read twice: name the classes instead of scanning for them.")
    found: set[float] = set()
    rows = 0
    for block in stream:
        labels = np.unique(block.y)
        refuse_no_classes(stream, block, labels)
        found.update(labels.tolist())
        rows += len(block.y)
        if len(found) > MOST_VALUES:
            raise StreamError(f"{stream.name}: expected at most {MOST_VALUES} classes in the target, got one more.")
    refuse_names_of_rows(stream, len(found), rows)
    return tuple(sorted(label_in(stream, y) for y in found))


def refuse_names_of_rows(stream: Stream, labels: int, rows: int) -> None:
    """Raise StreamError for so many different labels of so many rows that they name the rows."""
    if labels > MOST_SCANNED and 2 * labels > rows:
        raise StreamError(
            f"{stream.name}: expected classes that have two rows each or more on average, got {labels:,} different labels in "
            f"{rows:,} rows: is this the column to predict? Numbers are for --task regress (in Python OnlineRegressor); so "
            "many classes must be named (--classes, classes=)."
        )


def label_in(stream: Stream, y: float) -> Any:
    """A label as the source has it: text, or a number."""
    return y if stream.labels is None else stream.labels[int(y)]


def label_of(stream: Stream, y: float) -> str:
    """A row's label, for messages."""
    return shown(y) if stream.labels is None else quoted(stream.labels[int(y)])


def list_classes(classes: np.ndarray | Sequence[Any]) -> str:
    """The classes in words, the first twenty of them."""
    first = classes[:20].tolist() if isinstance(classes, np.ndarray) else classes[:20]
    return ", ".join([visible(shown(label)) for label in first]) + (", ..." if len(classes) > 20 else "")


def shown(value: Any) -> str:
    """A number as text that reads back the same, whole ones without a point; text as it is."""
    if isinstance(value, str):
        return value
    whole = isinstance(value, (int, np.integer)) or (abs(value) < 1e16 and value == int(value))
    return str(int(value)) if whole else repr(float(value))


def _measured(block: Block) -> str:
    """What is wrong with a label that has a fraction."""
    row = int(np.argmax(block.y != np.floor(block.y)))
    return (
        f"{block.where(row)}: expected a class, text or a whole number, got {shown(block.y[row])}: numbers with a fraction are "
        "for OnlineRegressor (in the command --task regress, without --scan); as classes they must be named (classes=, in the "
        "command --classes)."
    )


def _merged(stream: Stream, label: str) -> str:
    """What is wrong with a label that doubles do not tell from its neighbours."""
    return (
        f"{stream.name}: expected classes within 2^53, beyond which several are read as one, got {label}: number "
        "the classes anew, or read them as text (of a table, text=, in the command --text)."
    )


def _unnamed(stream: Stream) -> str:
    """What is wrong with labels that are text and not named."""
    marks = stream.label_marks
    held, hint = (f" ({among(marks)})", f" {_of_marks(marks, stream.nulls)}") if marks else ("", "")
    return (
        f"the labels of {stream.name} are text{held}: name the classes (--classes a,b,c, or --scan; in Python "
        f"classes=['a', 'b', 'c'] or classes='scan').{hint}"
    )


def _of_marks(marks: Sequence[str], nulls: Sequence[str]) -> str:
    """What makes labels numbers that are text for what was found among them."""
    if of_first := of_number(marks[0], POINT, f"--decimal {COMMA} (in Python decimal={COMMA!r})"):
        return f"{of_first[0].upper()}{of_first[1:]}."
    return (
        f"If that is a missing label, add {as_nulls(marks, nulls, command=True)} and --max-errors N, which leaves out up to N "
        f"such rows (in Python {as_nulls(marks, nulls, command=False)} and max_errors=N)."
    )


def _as_labels(stream: Stream, classes: Iterable[Any]) -> list[Any]:
    """Classes as a stream has its labels: text or numbers. Raises ValueError for what they cannot be."""
    classes = list(classes)
    strange = [label for label in classes if not isinstance(label, (str, Real, np.bool_))]
    if strange:
        raise ValueError(f"classes must be text or numbers, got {strange[0]!r}.")
    if stream.labels is not None:
        return [shown(value) for value in classes]
    try:
        numbers = [_double(value) for value in classes]
    except ValueError:
        named = list_classes(list(map(str, classes)))
        true = " (true is 1, false 0)" if {str(label).lower() for label in classes} == {"true", "false"} else ""
        raise ValueError(f"classes must be numbers, as the labels of {stream.name} are{true}, got {named}.") from None
    for label, number in zip(classes, numbers, strict=True):
        if EXACT <= abs(number) < np.inf:
            raise StreamError(_merged(stream, str(label)))
    return numbers


def label_array(labels: Any) -> np.ndarray:
    """Labels as an array. A list with text that ends with a zero character becomes objects: text of NumPy loses such ends. So
    does one of which NumPy's text would take too much memory. NumPy's strings of any length are taken as such a list. A list
    of whole numbers some of which need 64 bits without a sign becomes an array of such, of which NumPy makes doubles."""
    if isinstance(labels, (list, tuple)) and labels and isinstance(labels[0], str):
        longest = max(len(label) for label in labels if isinstance(label, str))
        if is_large(len(labels), 4 * longest):
            return np.array(labels, dtype=object)
    found = np.asarray(labels)
    if found.dtype.kind == "T":
        return label_array(found.tolist())
    if found.dtype.kind == "f" and isinstance(labels, (list, tuple)) and np.max(found, initial=0.0) >= 1 << 63:
        whole = all(isinstance(label, (int, np.integer)) and label >= 0 for label in labels)
        return np.array(labels, np.uint64) if whole else found
    if found.dtype.kind != "U" or not isinstance(labels, (list, tuple)):
        return found
    held = np.array(labels, dtype=object)
    ends = any(isinstance(label, str) and label.endswith("\0") for label in held.ravel().tolist())
    return held if ends else found


def is_large(count: int, size: int) -> bool:
    """Whether so many labels of so many bytes each are too large as NumPy's text."""
    return count * size > MOST_PADDED


def _double(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # of a whole number that no double holds
        return float("inf")


def as_classes(labels: Sequence[Any]) -> np.ndarray:
    """Labels as classes, ascending: text, integers where all are whole, else floats. Raises ValueError for NaN and infinity."""
    if any(isinstance(label, str) for label in labels):
        return np.unique(label_array(labels))
    numbers = np.unique(np.array(labels, np.float64))
    if not np.all(np.isfinite(numbers)):
        raise ValueError(f"classes must be finite numbers, got {list_classes(list(labels))}.")
    whole = np.all(numbers == np.rint(numbers)) and np.all(np.abs(numbers) <= EXACT)
    return numbers.astype(np.int64) if whole else numbers
