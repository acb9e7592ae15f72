"""Single rows, as dicts or as columns and values: what the estimators do with one row at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp

from onlinear.compiled.uninterrupted import uninterrupted
from onlinear.learner.arguments import AS_PAIR, one_row, row_arrays
from onlinear.models import dict_calls
from onlinear.models.predictor import Final
from onlinear.models.quick_rows import QuickRows
from onlinear.models.tables import columns_known
from onlinear.models.turns import in_turn, lock_of, twin_of
from onlinear.streams.dict_rows import Entry, NamedRow, TableRow, as_arrays, row_reader
from onlinear.streams.frames import is_record

SingleRow = Mapping[str, Any] | tuple[Any, Any]  # names to values; or columns and values
OF_ROW = "row: "  # begins the errors of a row by itself
READER, QUICK, LOCK = "_row_reader", "_row_quick", "_row_lock"  # copies have no attributes that begin with _row_


class OneByOne:
    """Methods of estimators for rows as dicts. ``encoding_`` keeps the names."""

    learner_: Any
    encoding_: dict[str, Any] | None
    n_features_in_: int | None
    refuse_other_settings: Callable[..., None]
    feature_names: Callable[[np.ndarray], list[str | None]]
    _row_quick: QuickRows | None = None  # made by the first row
    _row_settings: bool = False  # whether they may have changed since the last row

    def follow_settings(self) -> None:
        """Have the next row ask whether the settings are still those of the learner."""
        self._row_quick, self._row_settings = None, True
        dict_calls.take_out(self)

    def _reader(self) -> NamedRow | TableRow:
        """What reads rows in the columns of the model; raises ValueError where its columns have no names."""
        found = self._reader_held()
        if found is None:
            with lock_of(self, LOCK):  # the names that rows bring are kept by one alone
                found = self._reader_held() or self._new_reader()
        return found

    def _reader_held(self) -> NamedRow | TableRow | None:
        held = vars(self).get(READER)
        return held[1] if held is not None and held[0] is self._numbering() else None

    def _numbering(self) -> Any:
        """What says which columns there are: ``encoding_``, else the names of a data frame of numbers."""
        described = vars(self).get("encoding_")
        return vars(self).get("feature_names_in_") if described is None else described

    def _new_reader(self) -> NamedRow | TableRow:
        described, names = vars(self).get("encoding_"), vars(self).get("feature_names_in_")
        if described is None and names is not None:
            reader = row_reader(columns_known(None, names))
            vars(self)[READER] = names, reader
            return reader
        if described is None and hasattr(self, "learner_"):
            self.refuse_names_of_final("indices and values")
            raise ValueError("row: the model was trained on rows without names: give indices and values instead of a dict.")
        reader = row_reader(described)
        held = vars(self)[READER] = reader.description(), reader
        self.encoding_ = held[0]
        return reader

    def take(self, learner: Any) -> Any:
        """``Model.take``, and forget what was held of the learner before: its loss may have no probabilities, or others."""
        dict_calls.take_out(self)
        return super().take(learner)  # type: ignore[misc]

    def refuse_names_of_final(self, instead: str) -> None:
        """Raise ValueError for a model that only predicts, and of its columns of numbers knows the names of some."""
        if isinstance(self.learner_, Final) and self.learner_.names is not None:
            raise ValueError(
                "the model was saved with final=True, and its file has the names of columns with a weight alone: give "
                f"{instead} of all columns in their order."
            )

    def _is_quick(self) -> bool:
        """Whether what takes single dicts is of the model as it is now."""
        return self._row_quick is not None and self._row_quick.serves(self)

    def quick_targets(self) -> Mapping[Any, Any]:
        """What rows of a class are learned as; of classes without a weight of their own."""
        return {}

    def follow_columns(self) -> None:
        """Know as many columns as the learner."""
        if self.n_features_in_ != self.learner_.size:
            self.n_features_in_ = self.learner_.size or 1

    def begin_rows(self, *given: Any) -> None:
        """Make the learner for the first row, without learning it."""
        raise NotImplementedError

    def learn_known(self, *given: Any) -> None:
        """Learn a row where there is a learner."""
        raise NotImplementedError

    @in_turn
    def learn_first(self, *given: Any) -> None:
        """Learn a row where there was no learner. A twin begins, whose attributes are taken over together: other threads find a
        model of no row, or of one."""
        if hasattr(self, "learner_"):
            self.learn_known(*given)
        else:
            twin = twin_of(self)
            twin.begin_rows(*given)
            twin.learn_known(*given)
            begun = vars(twin)
            vars(self).update(without_rows(begun) | {name: begun[name] for name in begun if name == READER})
            if self.encoding_ is not None:
                with self.learner_.lock:
                    self._hold(self._reader())

    def learn_row(self, row: SingleRow, target: Any, weight: float) -> None:
        """Learn a row whose target is that of the outputs."""
        check_row(row)
        if isinstance(self.learner_, Final):
            self.learner_.learn()  # which refuses
        if self._row_settings:
            self.refuse_other_settings()
            self._row_settings = False
        if is_pair(row):
            indices, values = row
            self._learn_pair(indices, values, target, weight)
        else:
            self._learn_dict(row, target, weight)  # type: ignore[arg-type]

    def _learn_pair(self, indices: Any, values: Any, target: Any, weight: float) -> None:
        """Learn columns and values."""
        learner, (indices, values) = self.learner_, row_arrays(indices, values)
        with learner.lock:
            if self.encoding_ is not None and indices.size and indices.max() >= learner.size:
                raise ValueError(
                    f"indices: column {indices.max()} has no name: the model knows {learner.size} columns by names. Give a "
                    "dict, which may bring more."
                )
            self._learn_entries(indices, values, target, weight)
            self.follow_columns()

    def _learn_entries(self, columns: Any, values: Any, target: Any, weight: float) -> None:
        learner = self.learner_
        if weight == 1.0:
            learner.learn_one(columns, values, target)
        else:
            X = one_row(columns, values)
            X.resize((1, max(X.shape[1], learner.size)))
            learner.learn(X, np.reshape(target, (1, -1)) if learner.n_outputs > 1 else [target], [weight])

    def _learn_dict(self, row: Mapping[str, Any], target: Any, weight: float) -> None:
        """Learn a dict."""
        learner, reader = self.learner_, self._reader()
        with learner.lock, uninterrupted():
            known = reader.count
            try:
                self._learn_entries(*reader.arrays(row, True), target, weight)
                self.follow_columns()
            except Exception:
                reader.forget_after(known)
                raise
            if not self._is_quick():
                self._hold(reader)
            elif reader.count != known:
                self._row_quick.forget_scored()  # type: ignore[union-attr]

    def _hold(self, reader: NamedRow | TableRow) -> None:
        """Hold what takes single dicts of the model as it is now."""
        self._row_quick = QuickRows(self, reader, self.quick_targets())
        dict_calls.build_in(self, self._row_quick)

    def score_dict(self, row: Mapping[str, Any]) -> Any:
        """The score of a row, a float or (K,)."""
        learner, reader = self.learner_, self._reader()
        if isinstance(learner, Final):
            found = learner.predict_one(*reader.arrays(row, False))
        else:
            with learner.lock:
                found = learner.predict_one(*reader.arrays(row, False))
        if not self._is_quick():
            self._hold(reader)
        return found

    def named_entries(self, row: SingleRow) -> list[Entry]:
        """The entries of a row, with the names of their columns."""
        if not is_pair(row):
            reader = self._reader()
            return reader.named(reader.plain(row))  # type: ignore[arg-type]
        X = one_row(*row)
        X.sum_duplicates()
        names = self.feature_names(X.indices)
        return list(zip(names, X.indices.tolist(), X.data.tolist(), strict=True))

    def dicts_as_rows(self, rows: Any, grow: bool = False) -> Any:
        """Dicts as a CSR matrix in the columns of the model; other names get columns if ``grow``, else no entry."""
        reader, indptr, columns, values = self._reader(), [0], [], []
        size = max(1, self.learner_.size)
        for place, row in enumerate(rows):
            if not is_record(row):
                raise TypeError(f"X: expected a dict for each row, got {type(row).__name__} at row {place}.")
            try:
                found, entries = reader.row(row, grow=grow)
            except (TypeError, ValueError) as error:
                raise named_by_place(error, place) from None
            kept = [k for k, column in enumerate(found) if grow or column < size]
            columns += [found[k] for k in kept]
            values += [entries[k] for k in kept]
            indptr.append(len(columns))
        columns_of_all, values_of_all = as_arrays((columns, values))
        width = max(size, reader.count) if grow else size
        return sp.csr_matrix((values_of_all, columns_of_all, indptr), shape=(len(rows), width))

    @contextmanager
    def named_rows(self, rows: Any) -> Iterator[Any]:
        """Dicts as a CSR matrix, whose new names have columns; where the block raises they have none."""
        reader = self._reader()
        known = reader.count
        try:
            yield self.dicts_as_rows(rows, grow=True)
        except BaseException:
            reader.forget_after(known)
            raise

    def follow_names(self) -> None:
        """Know as many columns as the learner, and look names up that have columns now."""
        self.follow_columns()
        if self._is_quick():
            self._row_quick.forget_scored()  # type: ignore[union-attr]


def named_by_place(error: Exception, place: int) -> Exception:
    """The error of a row by itself as that of one row of X; others as they are."""
    text = str(error)
    return type(error)(f"X at row {place}: {text.removeprefix(OF_ROW)}") if text.startswith(OF_ROW) else error


def is_pair(row: Any) -> bool:
    """Whether a row is a pair of columns and values."""
    return isinstance(row, tuple) and len(row) == 2


def pair_of(row: Any, values: Any) -> tuple[Any, Any]:
    """Columns and values, given as such or as a pair; raises TypeError for a row that is none."""
    if values is not None:
        return row, values
    check_row(row)
    return row


def check_row(row: Any) -> None:
    """Raise TypeError for a row that is neither a dict nor a pair of columns and values."""
    if not (is_record(row) or is_pair(row)):
        hint = " Give row.to_dict()." if hasattr(row, "to_dict") else f" {AS_PAIR}" if hasattr(row, "shape") else ""
        raise TypeError(
            "row: expected a dict from names to values, or a pair (indices, values) of columns, got "
            f"{type(row).__name__}.{hint}"
        )


def without_rows(state: dict[str, Any]) -> dict[str, Any]:
    """The attributes that a copy has."""
    return {name: value for name, value in state.items() if not name.startswith("_row_") and name not in dict_calls.NAMES}
