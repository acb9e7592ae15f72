"""The real data sets that come with scikit-learn, by name: no network needed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from onlinear import rows
from onlinear.streams.blocks import Block, Stream
from onlinear.streams.encoding import NUMBER, Encoding, Feature

# name: (scikit-learn's loader, whether the target is a class)
BUNDLED = {
    "breast-cancer": ("load_breast_cancer", True),
    "digits": ("load_digits", True),
    "iris": ("load_iris", True),
    "wine": ("load_wine", True),
    "diabetes": ("load_diabetes", False),
}


class Bundled(Stream):
    """One bundled data set as a stream. Some are sorted by class: shuffle them."""

    errors = ()
    rereadable = True
    text_bytes = 0

    def __init__(self, name: str) -> None:
        from sklearn import datasets

        loader, classify = BUNDLED[name]
        found = getattr(datasets, loader)()
        self.name = name
        self._source = rows.read(np.asarray(found.data, np.float64), name).stored()
        self._y = np.asarray(found.target, np.float64)
        self.task = "classify" if classify else "regress"
        self.classes = np.unique(self._y) if classify else None
        self.encoding = Encoding(Feature(str(name), NUMBER) for name in found.feature_names).description()
        self.rows = self.total = self._source.n
        self.done = 0

    def __iter__(self) -> Iterator[Block]:
        self.done = self._source.n
        lines = np.arange(1, self._source.n + 1)
        yield Block(self._source.data, self._y, lines, (self.name,), self._source.size, self._source.largest)
