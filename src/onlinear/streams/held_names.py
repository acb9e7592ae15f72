"""The names of rows that came before, which compiled code only compares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onlinear.compiled.objects import REAL, Book, Names, names_in, names_of
from onlinear.streams.encoding import MOST_VALUES

MOST_NAMES = 1 << 17  # of rows that are held


class HeldNames:
    """The names of rows of numbers that came before, in their order, by which compiled code takes such rows.

    ``columns_of`` gives the columns of names; ``most`` is the largest value that is taken by them. ``places``: the columns of
    names one by one, to which new names come by the ``book``; it takes rows of numbers whose names did not come in their order.
    """

    def __init__(
        self,
        columns_of: Callable[[Sequence[str]], Sequence[int | None] | None],
        most: float,
        places: dict[str, int] | None = None,
        book: Book | None = None,
    ) -> None:
        self._columns_of, self._most, self._places = columns_of, most, places
        self._others: tuple[Names, Names] | None = None  # to score, to learn
        if places is not None:
            self._others = names_in(places), names_in(places, book, MOST_VALUES)
        self._all: dict[tuple[str, ...], Names] = {}  # where each name has a column, or never will
        self._some: dict[tuple[str, ...], Names] = {}  # where one has none, while so many have one
        self._known = 0
        self._once: set[int] = set()  # of what came before
        self._held = 0  # names

    def find(self, row: Any, learns: bool) -> Names | None:
        """What takes a row, None where nothing does. A row that is learned has a column for each name, or gets one."""
        if type(row) is not dict:
            return None
        names = tuple(row)
        found = self._find(names, learns)
        if found is None and self._others is not None:
            if hash(names) in self._once:
                self.see(row)
                found = self._find(names, learns)
            if found is None:
                found = self._others[learns]
        return found

    def _find(self, names: tuple[str, ...], learns: bool) -> Names | None:
        """What is held for names in this order."""
        found = self._all.get(names)
        return found if found is not None or learns else self._some_held().get(names)

    def _some_held(self) -> dict[tuple[str, ...], Names]:
        """What is held of names of which one has no column. It is dropped once a name gets a column, which compiled code may
        give."""
        if self._places is not None and len(self._places) != self._known:
            self._known = len(self._places)
            self._some.clear()
        return self._some

    def see(self, row: Mapping[str, Any]) -> None:
        """Hold the names of a row, if that is a dict of numbers that is here again."""
        names = tuple(row)
        if self.note(names) or type(row) is not dict or names in self._all:
            return
        if all(type(value) in REAL for value in row.values()):
            self._hold(names)

    def note(self, names: tuple[str, ...]) -> bool:
        """Note names in their order; whether they are here for the first time."""
        key = hash(names)
        if key in self._once:
            return False
        if len(self._once) >= MOST_NAMES:
            self._once.clear()
        self._once.add(key)
        return True

    def _hold(self, names: tuple[str, ...]) -> None:
        some = self._some_held()  # before another thread may bring names
        columns = self._columns_of(names)
        if columns is None or len(names) > MOST_NAMES or not all(type(name) is str for name in names):
            return
        if self._held + len(names) > MOST_NAMES:
            self.clear()
        self._held += len(names)
        which = some if self._places is not None and None in columns else self._all
        which[names] = names_of(names, list(columns), self._most)

    def clear(self) -> None:
        """Forget all names that are held."""
        self._all.clear()
        self._some.clear()
        self._held = 0
