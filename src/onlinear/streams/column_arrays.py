"""Turns a batch of a table into arrays: numbers, texts, labels and weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from onlinear.streams.bins import Bins
from onlinear.streams.column_plan import Plan
from onlinear.streams.column_values import (
    join_arrays,
    note_long_text,
    note_missing_text,
    text_array,
    text_arrays,
    write_numbers,
)
from onlinear.streams.crosses import note_large_products
from onlinear.streams.encoding import ERROR, INDICATOR, NUMBER, OMIT
from onlinear.streams.row_errors import OF_OTHERS, ColumnGroup, RowErrors
from onlinear.streams.text_sizes import sizes
from onlinear.text.form import quote_names, quoted


class Parts(NamedTuple):
    """The columns of some rows as arrays."""

    numbers: np.ndarray  # a row for each column that numeric features have: the values, 0 where missing
    texts: Any  # the text features, one after the other, as a large_string array, null where missing
    labels: Any  # a target that is text, as a large_string array; else None
    y: np.ndarray
    weights: np.ndarray | None
    documents: list[Any]  # the texts that are read as words, as large_string arrays


class Layout(NamedTuple):
    """Where the batches of a file have the columns of a plan."""

    schema: Any
    numeric: list[tuple[str, ColumnGroup]]  # with their kind
    texts: ColumnGroup
    bins: dict[int, tuple[str, ColumnGroup]]  # of the texts that are numbers in bins, by their places there, with their kind
    documents: ColumnGroup
    others: dict[str, ColumnGroup]  # target and weight
    void: list[int]  # places of columns that another type holds, as they have no value


class ArrayReader:
    """Reads batches as arrays by a plan. ``classes``: the names that labels may have; None: any."""

    def __init__(self, plan: Plan, classes: Sequence[str] | None) -> None:
        self._plan, self._classes = plan, classes
        self._layout: Layout | None = None  # of the last batch
        self._bins = Bins(plan.encoding.bins)

    def read(self, batch: Any, errors: RowErrors) -> Parts:
        """The batch's columns as arrays; ``errors`` gets the errors of its rows."""
        layout, encoding, held = self._layout_of(batch), self._plan.encoding, self.columns(batch)
        numbers = self._read_numbers(layout, held, batch.num_rows, errors)
        note_large_products(encoding, numbers, errors)
        texts = None
        if encoding.texts:
            arrays = [held[place] for place in layout.texts.places]
            for place, (kind, group) in layout.bins.items():
                arrays[place] = self._read_bins(arrays[place], kind, group, errors)
            texts = text_arrays(arrays)
            note_missing_text(texts, layout.texts, encoding.missing.categories, errors)
        documents = [text_array(held[place]) for place in layout.documents.places]
        if documents:
            note_missing_text(join_arrays(documents), layout.documents, encoding.missing.categories, errors)
            note_long_text(np.concatenate([sizes(array) for array in documents]), layout.documents, errors)
        y, labels = self._read_target(layout, held, batch.num_rows, errors)
        return Parts(numbers, texts, labels, y, self._read_weights(layout, held, batch.num_rows, errors), documents)

    def columns(self, batch: Any) -> list[Any]:
        """The columns of a batch, those that have no value as Arrow's nulls."""
        held: list[Any] = batch.columns
        for place in self._layout_of(batch).void:
            held[place] = pa.nulls(batch.num_rows)
        return held

    def _read_bins(self, array: Any, kind: str, group: ColumnGroup, errors: RowErrors) -> Any:
        """A column of numbers as text: the bins they fall into."""
        encoding, values = self._plan.encoding, np.empty(len(array))
        missing = write_numbers(array, kind, group, encoding.dates, encoding.missing.categories, errors, values)
        return self._bins.texts(group.names[0], values, missing)

    def _read_numbers(self, layout: Layout, held: Sequence[Any], n: int, errors: RowErrors) -> np.ndarray:
        encoding = self._plan.encoding
        numbers = np.zeros((encoding.offset, n))
        for kind, group in layout.numeric:
            found = np.empty((len(group.ranks), n))
            array = join_arrays([held[place] for place in group.places])
            missing = write_numbers(array, kind, group, encoding.dates, encoding.missing.numbers, errors, found.reshape(-1))
            numbers[group.ranks] = found
            if missing is not None and encoding.missing.numbers == INDICATOR:
                numbers[len(encoding.numeric) + group.ranks] = missing.reshape(found.shape)
        return numbers

    def _read_target(self, layout: Layout, held: Sequence[Any], n: int, errors: RowErrors) -> tuple[np.ndarray, Any]:
        """The target as numbers, nan where missing, and as text where it is text."""
        plan, y = self._plan, np.full(n, np.nan)
        if plan.target is None:
            return y, None
        target, policy = layout.others[plan.target], OMIT if plan.unlabelled else ERROR
        array = held[target.places[0]]
        if plan.text_target:
            labels = text_array(array)
            note_missing_text(labels, target, policy, errors)
            self._note_unknown_classes(labels, target, errors)
            return y, labels
        missing = write_numbers(array, NUMBER, target, None, policy, errors, y)
        if missing is not None:
            y[missing] = np.nan
        return y, None

    def _read_weights(self, layout: Layout, held: Sequence[Any], n: int, errors: RowErrors) -> np.ndarray | None:
        if self._plan.options.weight is None:
            return None
        weights, column = np.empty(n), layout.others[self._plan.options.weight]
        write_numbers(held[column.places[0]], NUMBER, column, None, ERROR, errors, weights)
        errors.note(
            column,
            weights < 0.0,
            lambda name, at: f"expected a weight of 0 or more in column {quoted(name)}, got {weights[at]:g}",
        )
        return weights

    def _note_unknown_classes(self, labels: Any, target: ColumnGroup, errors: RowErrors) -> None:
        classes = self._classes
        if classes is None:
            return
        known = pc.is_in(labels, pa.array(list(classes), pa.large_string()))
        strange = ~known.to_numpy(zero_copy_only=False) & labels.is_valid().to_numpy(zero_copy_only=False)
        errors.note(
            target, strange, lambda name, at: f"expected a class of {quote_names(classes)}, got {quoted(labels[at].as_py())}"
        )

    def _layout_of(self, batch: Any) -> Layout:
        if self._layout is None or not self._layout.schema.equals(batch.schema):
            self._layout = self._lay_out(batch.schema)
        return self._layout

    def _lay_out(self, schema: Any) -> Layout:
        """Where batches of this schema have the columns of the plan. Numbers of one kind and type are converted together:
        of many columns each call costs more than its rows."""
        encoding, hint = self._plan.encoding, self._plan.of_missing
        place = {name: k for k, name in enumerate(schema.names)}
        alike = dict[Any, list[tuple[int, int, str]]]()
        types = schema.types
        void = [place[name] for name in self._plan.columns() if not self._plan.takes(name, types[place[name]])]
        for rank, feature in enumerate(encoding.numeric):
            held = types[place[feature.name]] if place[feature.name] not in void else pa.null()
            group = alike.setdefault((feature.kind, held if pa.types.is_primitive(held) else rank), [])
            group.append((rank, place[feature.name], feature.name))
        first = len(encoding.numeric)
        texts = [(first + k, place[feature.name], feature.name) for k, feature in enumerate(encoding.texts)]
        bins = {k: (f.kind, ColumnGroup.of([texts[k]], hint)) for k, f in enumerate(encoding.texts) if f.name in encoding.bins}
        first += len(texts)
        documents = [(first + k, place[feature.name], feature.name) for k, feature in enumerate(encoding.documents)]
        others = [name for name in (self._plan.target, self._plan.options.weight) if name is not None]
        last = first + len(documents)
        return Layout(
            schema,
            [(kind, ColumnGroup.of(members, hint)) for (kind, _), members in alike.items()],
            ColumnGroup.of(texts, hint),
            bins,
            ColumnGroup.of(documents, hint),
            {name: ColumnGroup.of([(last + k, place[name], name)], OF_OTHERS) for k, name in enumerate(others)},
            void,
        )
