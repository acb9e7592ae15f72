"""Rows by name: from a local folder, else (if asked) by scikit-learn's fetchers, which need a network; or generated.

The folder holds one subfolder for each set, with svmlight text (``.svm.xz``) or MNIST's four idx files. If the exact set of a
paper is not available, an experiment names a substitute, and the report marks it.
"""

from __future__ import annotations

import gzip
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from onlinear.papers.data_spec import DataSpec
from onlinear.papers.generators import GENERATORS
from onlinear.text.form import unknown

Pair = tuple[Any, np.ndarray]


class MissingDataError(ValueError):
    """A data set that is not here."""


class RealSet(NamedTuple):
    """A real set: its files in the folder, its width, and scikit-learn's way to it."""

    train: str
    test: str | None
    features: int
    fetch: Callable[[Path], Pair] | None = None
    fetched: str = ""


@dataclass(frozen=True)
class Where:
    """Where data may be found."""

    folder: str | None = None
    download: bool = False


@dataclass(frozen=True)
class Split:
    """Training and test rows; ``y`` holds classes (numbers) or targets."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


# --- scikit-learn's fetchers -----------------------------------------------------------------------------------------


def openml(name: str) -> Callable[[Path], Pair]:
    """A fetcher of an OpenML set."""

    def fetch(cache: Path) -> Pair:
        from sklearn.datasets import fetch_openml

        found = fetch_openml(name, version=1, as_frame=False, data_home=str(cache), parser="liac-arff")
        return found.data, np.asarray(found.target, np.float64)

    return fetch


def covtype(cache: Path) -> Pair:
    """The full forest cover types, scaled to [0, 1]; class 2 against the rest."""
    from sklearn.datasets import fetch_covtype

    found = fetch_covtype(data_home=str(cache))
    low, high = found.data.min(axis=0), found.data.max(axis=0)
    return sp.csr_matrix((found.data - low) / (high - low)), np.where(found.target == 2, 1.0, -1.0)


def ccat(cache: Path) -> Pair:
    """RCV1-v2, topic CCAT against the rest, all 804,414 documents."""
    from sklearn.datasets import fetch_rcv1

    found = fetch_rcv1(data_home=str(cache), subset="all")
    topic = list(found.target_names).index("CCAT")
    return found.data.tocsr(), np.where(found.target[:, [topic]].toarray().ravel() > 0, 1.0, -1.0)


SETS: dict[str, RealSet] = {
    "a9a": RealSet("a9a/a9a.svm.xz", "a9a/a9a.t.svm.xz", 123, openml("a9a"), "fetch_openml('a9a')"),
    "ccat": RealSet("rcv1-ccat/ccat.svm.xz", "rcv1-ccat/ccat.t.svm.xz", 47236, ccat, "fetch_rcv1"),
    "covtype": RealSet("covtype/covtype.part.svm.xz", None, 54, covtype, "fetch_covtype"),
    "mnist": RealSet("mnist/train", "mnist/t10k", 784, openml("mnist_784"), "fetch_openml('mnist_784')"),
    "gisette": RealSet(
        "gisette/gisette.svm.xz", "gisette/gisette.t.svm.xz", 5000, openml("gisette"), "fetch_openml('gisette')"
    ),
    "astro-physic": RealSet("astro-physic/astro-physic.svm.xz", None, 99757),
    "arcene": RealSet("arcene/arcene.svm.xz", None, 10000),
    "basehock": RealSet("basehock/basehock.svm.xz", None, 4862),
    "relathe": RealSet("relathe/relathe.svm.xz", None, 4322),
    "mushrooms": RealSet("mushrooms/mushrooms.svm.xz", None, 112),
    "phishing": RealSet("phishing/phishing.svm.xz", None, 68),
    "spambase": RealSet("spambase/spambase.svm.xz", None, 57),
    "electricity": RealSet("electricity/electricity.svm.xz", None, 6),
    "cadata": RealSet("cadata/cadata.svm.xz", None, 8),
    "cpusmall": RealSet("cpusmall/cpusmall.svm.xz", None, 12),
    "abalone": RealSet("abalone/abalone.svm.xz", None, 8),
    "space_ga": RealSet("space_ga/space_ga.svm.xz", None, 6),
}


def missing(spec: DataSpec, where: Where) -> str | None:
    """The requirement that these rows lack, or None where they are available."""
    if spec.generator is not None:
        if spec.generator not in GENERATORS:
            raise unknown("generator", spec.generator, GENERATORS)
        allowed = list(signature(GENERATORS[spec.generator]).parameters)[1:]
        for key in spec.settings:
            if key not in allowed:
                raise unknown(f"generator {spec.generator!r}: setting", key, allowed)
        return None
    if spec.set not in SETS:
        raise unknown("data set", str(spec.set), SETS)
    real = SETS[str(spec.set)]
    if _in_folder(real, where) or (where.download and real.fetch is not None):
        return None
    if real.fetch is None:
        return f"the set {spec.set!r} in a data folder (--data-dir or ONLINEAR_DATA)"
    return f"the set {spec.set!r} in a data folder (--data-dir or ONLINEAR_DATA), or --download ({real.fetched}, a network)"


def _in_folder(real: RealSet, where: Where) -> bool:
    if where.folder is None:
        return False
    return any(Path(where.folder, real.train + tail).exists() for tail in ("", "-images-idx3-ubyte.gz"))


@lru_cache(maxsize=4)
def load(name: str, where: Where) -> tuple[Pair, Pair | None]:
    """All rows of a real set, as (training, test or None). Raises MissingDataError."""
    real = SETS[name]
    if not _in_folder(real, where):
        if not where.download or real.fetch is None:
            raise MissingDataError(f"the data set {name!r} is not here.")
        return real.fetch(Path(where.folder or "~/.cache/onlinear").expanduser() / "scikit-learn"), None
    assert where.folder is not None
    home = Path(where.folder)
    if name == "mnist":
        return _mnist(home, real.train), _mnist(home, str(real.test))
    test = home / real.test if real.test else None
    return _svmlight(home / real.train, real.features), (
        _svmlight(test, real.features) if test is not None and test.exists() else None
    )


def _svmlight(path: Path, features: int) -> Pair:
    from onlinear import streams

    blocks = list(streams.open(str(path)))
    X = sp.vstack([block.csr(features) for block in blocks], format="csr")
    return X, np.concatenate([block.y for block in blocks])


def _mnist(home: Path, part: str) -> Pair:
    def read(path: Path, header: int) -> np.ndarray:
        with gzip.open(path) as file:
            content = file.read()
        sizes = struct.unpack(f">{header}i", content[4 : 4 + 4 * header])
        return np.frombuffer(content, np.uint8, offset=4 + 4 * header).reshape(sizes[0], -1)

    images = read(home / f"{part}-images-idx3-ubyte.gz", 3)
    labels = read(home / f"{part}-labels-idx1-ubyte.gz", 1).ravel()
    return sp.csr_matrix(images / 255.0), labels.astype(np.float64)


# --- splits and transformations --------------------------------------------------------------------------------------


def split(spec: DataSpec, where: Where, seed: int) -> Split:
    """The rows of an experiment's data set: generated or loaded, split, transformed."""
    rng = np.random.default_rng([seed, 0])
    if spec.generator is not None:
        train, test = GENERATORS[spec.generator](rng, **spec.settings), None
    else:
        train, test = load(str(spec.set), where)
        if spec.part is not None:
            test = None
    if spec.test is not None or (test is None and spec.train is not None):
        if test is not None and spec.test is not None and _pooled(spec, train, test):
            train, test = _join_pairs(train, test), None
        train, test = _cut(train, test, spec, rng)
    elif spec.train is not None:
        train = _take_rows(train, rng.permutation(len(train[1]))[: spec.train])
    if spec.positive is not None:
        train, test = _binary(train, spec.positive), _binary(test, spec.positive) if test is not None else None
    X, X_test = train[0], test[0] if test is not None else train[0][:0]
    for name in spec.transforms:
        if name not in TRANSFORMS:
            raise unknown("transformation", name, TRANSFORMS)
        X, X_test = TRANSFORMS[name](X, X_test)
    return Split(X, train[1], X_test, test[1] if test is not None else train[1][:0])


def _pooled(spec: DataSpec, train: Pair, test: Pair) -> bool:
    """Whether the sizes asked for need both halves together."""
    return (spec.train or len(train[1])) > len(train[1]) or (spec.test or 0) > len(test[1])


def _cut(train: Pair, test: Pair | None, spec: DataSpec, rng: np.random.Generator) -> tuple[Pair, Pair | None]:
    n = len(train[1])
    order = rng.permutation(n)
    if test is not None:
        kept = rng.permutation(len(test[1]))[: spec.test]
        return _take_rows(train, order[: spec.train]) if spec.train else train, _take_rows(test, np.sort(kept))
    wanted = spec.test or 0
    if (spec.train or 1) + wanted > n:
        raise ValueError(f"data {spec.name!r}: {spec.train} training and {wanted} test rows are asked of {n}.")
    first = spec.train if spec.train is not None else n - wanted
    return _take_rows(train, order[:first]), _take_rows(train, order[first : first + wanted])


def _join_pairs(a: Pair, b: Pair) -> Pair:
    stack = sp.vstack([a[0], b[0]], format="csr") if sp.issparse(a[0]) else np.concatenate([a[0], b[0]])
    return stack, np.concatenate([a[1], b[1]])


def _take_rows(pair: Pair, which: np.ndarray) -> Pair:
    return pair[0][which], pair[1][which]


def _binary(pair: Pair, positive: tuple[float, ...]) -> Pair:
    return pair[0], np.where(np.isin(pair[1], positive), 1.0, -1.0)


def _centre(X: Any, X_test: Any) -> tuple[Any, Any]:
    X, X_test = _dense(X), _dense(X_test)
    mean = X.mean(axis=0)
    return X - mean, X_test - mean


def _standard(X: Any, X_test: Any) -> tuple[Any, Any]:
    X, X_test = _centre(X, X_test)
    sd = X.std(axis=0)
    sd[sd == 0.0] = 1.0
    return X / sd, X_test / sd


def _max_abs(X: Any, X_test: Any) -> tuple[Any, Any]:
    top = np.asarray(abs(X).max(axis=0).todense()).ravel() if sp.issparse(X) else np.abs(X).max(axis=0)
    top = np.where(top == 0.0, 1.0, top)
    return _times_columns(X, 1.0 / top), _times_columns(X_test, 1.0 / top)


def _unit_rows(X: Any, X_test: Any) -> tuple[Any, Any]:
    def unit(A: Any) -> Any:
        norms = np.sqrt(np.asarray(A.multiply(A).sum(axis=1)).ravel() if sp.issparse(A) else np.sum(A * A, axis=1))
        norms[norms == 0.0] = 1.0
        return sp.csr_matrix(sp.diags_array(1.0 / norms) @ A) if sp.issparse(A) else A / norms[:, None]

    return unit(X), unit(X_test)


def _constant(X: Any, X_test: Any) -> tuple[Any, Any]:
    def add(A: Any) -> Any:
        ones = np.ones((A.shape[0], 1))
        return sp.hstack([sp.csr_matrix(ones), A], format="csr") if sp.issparse(A) else np.hstack([ones, A])

    return add(X), add(X_test)


def _times_columns(X: Any, c: np.ndarray) -> Any:
    return sp.csr_matrix(X @ sp.diags_array(c)) if sp.issparse(X) else X * c


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else np.asarray(X)


TRANSFORMS: dict[str, Callable[[Any, Any], tuple[Any, Any]]] = {
    "centre": _centre,
    "standard": _standard,
    "max-abs": _max_abs,
    "unit-rows": _unit_rows,
    "constant": _constant,
    "dense": lambda X, X_test: (_dense(X), _dense(X_test)),
}
