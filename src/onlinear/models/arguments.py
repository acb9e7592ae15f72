"""Arguments of the estimators' methods, checked, and scales that need all rows first."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse as sp

from onlinear.learner import Learner
from onlinear.rows import NotFinite, checks, learnable, read
from onlinear.rows.scaling import ColumnMoments
from onlinear.streams import Block, Stream
from onlinear.streams.files import is_open_file
from onlinear.training.few_rows import AUTO, most_passes

TEXT_HINT = (
    "give a data frame, whose text is read as categories, or as words with ngrams=1; or encode it as numbers first, e.g. with "
    "sklearn's FeatureHasher"
)
SHOWN = 10  # columns that a message lists


def is_stream(X: Any, y: Any) -> bool:
    """Whether X gives blocks of rows: a stream, or an iterable that is no array, frame or nested list."""
    if isinstance(X, Stream):
        return True
    arrays = "shape", "__array__", "__dataframe__"
    if (
        y is not None
        or isinstance(X, (str, bytes, dict))
        or any(hasattr(X, name) for name in arrays)
        or not hasattr(X, "__iter__")
    ):
        return False
    return not isinstance(X, Sequence) or all(isinstance(block, (tuple, Block)) for block in islice(X, 1))


def is_blocks(X: Any) -> bool:
    """Whether X, which may be rows without targets, gives blocks (X, y); a list of tuples of numbers is rows."""
    if isinstance(X, Stream) or not is_stream(X, None):
        return False
    return not isinstance(X, Sequence) or any(isinstance(block, Block) or _is_rows(block[0]) for block in islice(X, 1) if block)


def _is_rows(X: Any) -> bool:
    return len(getattr(X, "shape", ())) == 2


def refuse_unseen(X: Any, columns: np.ndarray | None = None) -> None:
    """Raise for what scikit-learn's own checks would drop (masks), take for numbers (dates) or name in other words (text).
    ``columns``: those of the table that the model was trained on."""
    if isinstance(X, (str, bytes, os.PathLike)):
        path = os.fsdecode(X)
        raise TypeError(f"X must hold rows, got the text or path {path!r}: for a file, pass streams.open({path!r}).")
    if is_open_file(X):
        raise TypeError(f"X must hold rows, got an open file ({type(X).__name__}): pass streams.open of its name.")
    if X is None or (hasattr(X, "__next__") and not hasattr(X, "__array__")):
        got = "None" if X is None else f"a {type(X).__name__}"
        raise TypeError(
            f"X must hold rows, got {got}: give a list of rows, an array or a table; blocks (X, y) are given without y, "
            "and tables of an iterator to partial_fit, one after another."
        )
    if isinstance(X, Set):
        raise TypeError(f"X must hold rows, got a {type(X).__name__}, which has no order: give a list of rows.")
    checks.refuse_missing(X, "X")
    if sp.issparse(X) or not hasattr(X, "__len__") or getattr(X, "shape", None) == () or not len(X):
        return
    if isinstance(X, (list, tuple)) and _is_rows(X[0]):
        raise ValueError("X must be 2-D, got a list of 2-D arrays: join them (numpy.vstack), or give blocks (X, y) without y.")
    if isinstance(X, (list, tuple)) and isinstance(X[0], (list, tuple)) and X[0] and _is_rows(X[0][0]):
        raise ValueError("X must hold rows, got blocks: a list of them holds tuples (X, y), and no y is given beside.")
    probe = np.asarray(_first_of(X))
    if probe.dtype.kind == "V" and probe.dtype.names:
        names = ", ".join(map(repr, probe.dtype.names[:SHOWN]))
        raise TypeError(f"X must hold numbers, got records with the fields {names}: give pandas.DataFrame(X).")
    found = probe.dtype.kind in "USV" or (probe.dtype.kind == "O" and any(isinstance(x, (str, bytes)) for x in probe.flat))
    if found:
        hint = _as_table(columns) if columns is not None else TEXT_HINT
        raise TypeError(f"X must hold numbers, got text: {hint}.")
    if probe.dtype.kind in "mM":
        raise TypeError(f"X must hold numbers, got dtype {probe.dtype}: X.astype(float) counts its unit.")


def _first_of(X: Any) -> Any:
    """All of an array, else the first row."""
    if isinstance(X, (np.ndarray, memoryview)):
        return X
    return [X[0]] if isinstance(X, Sequence) else X[:1]


@contextmanager
def named_objects(X: Any) -> Iterator[None]:
    """Errors about objects that are no numbers name the first, and where it stands."""
    try:
        yield
    except (TypeError, OverflowError, ValueError) as error:
        found = None if sp.issparse(X) or isinstance(error, NotFinite) else _strange_object(X)
        if found is None:
            raise
        raise (TypeError if isinstance(error, TypeError) else ValueError)(found) from None


def _strange_object(X: Any) -> str | None:
    """Which object of rows is no number, in words; None where there is none, and for all but rows of objects."""
    if isinstance(X, np.ndarray) and X.dtype.kind != "O":
        return None
    names = None
    if hasattr(X, "columns"):
        if not hasattr(X, "loc"):
            return None
        X = X.loc[:, [held == np.dtype(object) for held in X.dtypes]]
        names = list(X.columns)
    array = np.asarray(X, object)
    if array.ndim != 2:
        return None
    for (row, place), value in np.ndenumerate(array):
        column = place if names is None else repr(names[place])
        try:
            float(value)
        except OverflowError:
            return f"X holds a number that no double holds, {checks.shown(value)}, at row {row}, column {column}."
        except (TypeError, ValueError):
            what = f"X must hold numbers, got {checks.shown(value)} at row {row}, column {column}"
            return f"{what} (argument must be a string or a number)."  # as scikit-learn says it
    return None


def refuse_other_width(X: Any, size: int, columns: np.ndarray | None) -> None:
    """Raise ValueError for checked rows of another number of columns than a model's; ``columns``: those of its table."""
    if X.shape[1] != size:
        hint = f": {_as_table(columns)}" if columns is not None else ""
        raise ValueError(f"X has {X.shape[1]} features, but the model is expecting {size} features as input{hint}.")


def _as_table(columns: np.ndarray) -> str:
    """What to give to a model that was trained on a table."""
    named = ", ".join(map(repr, columns[:SHOWN].tolist())) + (", ..." if len(columns) > SHOWN else "")
    return f"the model was trained on a table; give rows as a data frame or a list of dicts with its columns {named}"


def refuse_targets_of_stream(y: Any, sample_weight: Any) -> None:
    """Raise ValueError for targets or weights beside a stream."""
    if y is not None or sample_weight is not None:
        raise ValueError("a stream's targets and weights come with its rows: y and sample_weight must be None.")


def refuse_no_weight(weights: np.ndarray) -> None:
    """Raise ValueError where no row has a weight."""
    if not np.any(weights):
        raise ValueError("every sample weight is zero; fit needs a row with a weight above zero.")


def weights_to_score(y: Any, sample_weight: Any) -> np.ndarray | None:
    """The weights of rows as ``fit`` takes them; None where there are none."""
    return None if sample_weight is None else checks.weights(sample_weight, np.shape(y)[0])


def is_auto(passes: Any) -> bool:
    """Whether the rows are to say how many passes they are worth."""
    return isinstance(passes, str) and passes == AUTO


def check_passes(passes: Any, rows: int | None) -> int:
    """An integer of at least 1; for "auto" the most that so many rows may be worth; 1 where their number is not known, or a
    certified gap decides instead (None)."""
    if is_auto(passes):
        return 1 if rows is None else most_passes(rows)
    if isinstance(passes, (bool, np.bool_)) or not isinstance(passes, (int, np.integer)) or passes < 1:
        raise ValueError(f"passes must be an integer of at least 1, or {AUTO!r}, got {passes!r}.")
    return int(passes)


def make_generator(random_state: Any) -> np.random.Generator:
    """The generator of the orders of the rows, from a seed or as it is."""
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise type(error)(f"random_state must be None, an integer or a numpy.random.Generator: {error}") from None


def fix_scales(learners: Sequence[Learner], X: Any, weights: np.ndarray) -> None:
    """Set the scales of ``scale="standard"`` of all learners of the rows: means and deviations of the columns over the rows of
    a weight above 0."""
    source, survey = learnable(read(X), "X"), ColumnMoments()
    for which, rows in source.blocks():
        survey.add(rows, source.width, weights[which])
    moments = survey.result(source.width)
    for learner in learners:
        learner.scaler.fix(*moments)  # type: ignore[union-attr]
