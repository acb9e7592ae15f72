"""Rows as Python has them are what compiled code takes them for: interpreted and compiled alike, whatever they are."""

import json
import sys
from collections import OrderedDict
from fractions import Fraction

import numpy as np
import pytest

from onlinear.compiled import Held, kept_function, opened
from onlinear.compiled.objects import (
    LONG_DOUBLE,
    LONG_SINGLE,
    LONGEST,
    NAMED,
    NEWLY,
    OTHER,
    READABLE,
    SHORT_DOUBLE,
    SHORT_SINGLE,
    AnyObject,
    Names,
    columns_named,
    doubles,
    kinds_of_rows,
    longs,
    name_new,
    names_in,
    names_of,
    shorts,
    singles,
    values_named,
    way_of,
)

D = 30


class Book:
    """Numbers names."""

    def __init__(self, columns):
        self.columns, self.names = columns, list(columns)

    def add(self, row):
        new = [name for name in row if name not in self.columns]
        self.columns.update(zip(new, range(len(self.names), D), strict=False))
        self.names += new
        return True


def _taken(here, first, second):
    kinds, out = opened(here)
    way = way_of(first, second, kinds)
    if way == LONG_DOUBLE:
        _put(out, longs(first), doubles(second))
    if way == LONG_SINGLE:
        _put(out, longs(first), singles(second))
    if way == SHORT_DOUBLE:
        _put(out, shorts(first), doubles(second))
    if way == SHORT_SINGLE:
        _put(out, shorts(first), singles(second))
    if way in (NAMED, NEWLY):
        _put(out, columns_named(second), values_named(second))
    return way


@kept_function
def _put(out, columns, values):
    for k in range(len(columns)):
        out[columns[k]] = values[k]


@pytest.fixture(scope="module")
def taken():
    out = np.zeros(D)
    held = Held(kinds_of_rows(), out)
    run = held.compile(_taken, {"_put": _put}, AnyObject(), AnyObject())

    def call(first, second):
        out[:] = 0.0
        return run(held.here, first, second), out.copy()

    call.held = held
    return call


def interpreted(first, second):
    """The row by the texts themselves, which Python runs."""
    out, way = np.zeros(D), way_of(first, second, kinds_of_rows())
    if way in (NAMED, NEWLY):
        out[columns_named(second)] = values_named(second)
    elif way != OTHER:
        out[first] = second
    return way, out


def test_objects_lie_where_compiled_code_looks_for_them():
    assert READABLE, "compiled/objects.py: another interpreter, or another NumPy; single rows take the way of blocks"


COLUMNS, VALUES = np.array([1, 4, 7, 11]), np.array([0.5, -2.0, 3.0, 1e-3])
UNALIGNED = np.frombuffer(b"\0" + VALUES.tobytes(), np.uint8)[1:].view(np.float64)


@pytest.mark.parametrize(
    ("first", "second", "way"),
    [
        (COLUMNS, VALUES, LONG_DOUBLE),
        (COLUMNS.astype(np.int32), VALUES, SHORT_DOUBLE),
        (COLUMNS, VALUES.astype(np.float32), LONG_SINGLE),
        (COLUMNS.astype(np.int32), VALUES.astype(np.float32), SHORT_SINGLE),
        (np.repeat(COLUMNS, 3)[::3], VALUES[::-1], LONG_DOUBLE),
        (COLUMNS[:0], VALUES[:0], LONG_DOUBLE),
        (COLUMNS.astype(np.uint32), VALUES, OTHER),
        (COLUMNS.astype(">i8"), VALUES, OTHER),
        (COLUMNS, VALUES.astype(">f8"), OTHER),
        (COLUMNS, COLUMNS, OTHER),
        (COLUMNS[None], VALUES, OTHER),
        (COLUMNS, VALUES[:, None], OTHER),
        (COLUMNS, UNALIGNED, OTHER),
        (COLUMNS, np.ma.array(VALUES), OTHER),
        (COLUMNS, np.float64(1.0), OTHER),
        (COLUMNS.tolist(), VALUES.tolist(), OTHER),
        (None, None, OTHER),
        ({"a": 1.0}, VALUES, OTHER),
        ({"a": 1.0}, 140_000_000_000_000, OTHER),
        (COLUMNS, names_of(("a",), [0]), OTHER),
    ],
)
def test_pairs(taken, first, second, way):
    found, wanted = taken(first, second), interpreted(first, second)
    assert found[0] == wanted[0] == way
    np.testing.assert_array_equal(found[1], wanted[1])


NAMES, PLACES = ("x", "yy", "ü", "unknown"), [9, 2, 5, None]
ROW = {"x": 1.5, "yy": -2, "ü": True, "unknown": 7}


def test_a_dict_of_these_names(taken):
    names = names_of(NAMES, PLACES)
    assert (type(names), names.names) == (Names, NAMES)
    for row in (ROW, json.loads(json.dumps(ROW)), {k: np.float64(v) for k, v in ROW.items()}, dict.fromkeys(NAMES, 2**53 + 1)):
        way, out = taken(row, names)
        assert way == NAMED
        wanted = np.zeros(D)
        for name, column in zip(NAMES, PLACES, strict=True):
            if column is not None:
                wanted[column] = float(row[name])
        np.testing.assert_array_equal(out, wanted)
        assert names.row[0].tolist() == [2, 5, 9]
    assert interpreted(ROW, names)[0] == NAMED


@pytest.mark.parametrize(
    "row",
    [
        {},
        {"x": 1.0, "yy": 2.0, "ü": 3.0},
        {**ROW, "more": 1.0},
        dict(reversed(ROW.items())),
        {"x": 1.0, "yy": 2.0, "u": 3.0, "unknown": 4.0},
        {"x": 1.0, "yy": 2.0, 3: 3.0, "unknown": 4.0},
        {**ROW, "x": "1"},
        {**ROW, "x": None},
        {**ROW, "x": float("nan")},
        {**ROW, "unknown": float("nan")},
        {**ROW, "yy": 10**400},
        {**ROW, "yy": -(10**400)},
        {**ROW, "ü": np.float32(1.0)},
        {**ROW, "ü": Fraction(1, 2)},
        OrderedDict(ROW),
        type("Mapping", (dict,), {})(ROW),
    ],
)
def test_other_dicts(taken, row):
    names = names_of(NAMES, PLACES)
    assert taken(row, names)[0] == interpreted(row, names)[0] == OTHER
    assert not sys.exc_info()[0]
    assert taken(ROW, names)[0] == NAMED


def test_values_beyond_the_most(taken):
    names = names_of(("a",), [3], most=2.0**53)
    for value, way in ((2**53, NAMED), (-(2.0**53), NAMED), (2**53 + 2, OTHER), (float("inf"), OTHER)):
        assert taken({"a": value}, names)[0] == interpreted({"a": value}, names)[0] == way
    assert taken({"a": float("inf")}, names_of(("a",), [3]))[0] == NAMED


def test_names_are_looked_up_one_by_one(taken):
    columns = {f"n{k}": int(column) for k, column in enumerate(np.random.default_rng(2).permutation(D))}
    names, all_of = names_in(columns), names_in(columns, Book(columns))
    rng = np.random.default_rng(3)
    for size in (0, 1, 2, 5, D):
        row = {f"n{k}": value for k, value in zip(rng.permutation(D)[:size], rng.normal(size=size).tolist(), strict=True)}
        wanted = np.zeros(D)
        wanted[[columns[name] for name in row]] = list(row.values())
        for which, known in ((names, row), (names, row | {"other": 2.0}), (all_of, row)):
            for found in (taken(known, which), interpreted(known, which)):
                assert found[0] == NAMED
                np.testing.assert_array_equal(found[1], wanted)
            assert which.row[0].tolist() == sorted(columns[name] for name in row)
    columns["new"] = 3  # is known from now on
    assert taken({"new": 2**60}, all_of)[0] == interpreted({"new": True}, all_of)[0] == NAMED


def test_names_without_a_column_are_taken_as_the_next_ones(taken):
    columns = {"x": 0, "y": 1, "z": 2}
    names = names_in(columns, Book(columns))
    for row, wanted in (
        ({"new": 5.0, "y": 1.0, "more": 6.0, "x": 2.0}, [2.0, 1.0, 0.0, 5.0, 6.0]),
        ({"new": 5.0}, [0.0, 0.0, 0.0, 5.0]),
        ({str(k): float(k) for k in range(20)}, [0.0, 0.0, 0.0, *range(20)]),
    ):
        for found in (taken(row, names), interpreted(row, names)):
            assert found[0] == NEWLY
            np.testing.assert_array_equal(found[1], np.append(wanted, np.zeros(D - len(wanted))))
    for odd in ({"new": None}, {"new": 1.0, "x": float("nan")}, {"new": 1.0, 3: 1.0}):
        assert taken(odd, names)[0] == interpreted(odd, names)[0] == OTHER
    assert columns == {"x": 0, "y": 1, "z": 2}
    assert taken({"new": 1.0, "\ud800": 1.0}, names)[0] == OTHER  # which no file holds


def _named(here, first, second):
    (kinds,) = opened(here)
    return name_new(first, second) if way_of(first, second, kinds) == NEWLY else -1


@pytest.mark.parametrize("compiled", [True, False])
def test_new_names_get_the_columns_that_they_were_taken_with(compiled):
    held, columns = Held(kinds_of_rows()), {"x": 0}
    run = held.compile(_named, {}, AnyObject(), AnyObject()) if compiled else _named
    here = held.here if compiled else (kinds_of_rows(),)
    book = Book(columns)
    names = names_in(columns, book, 6)
    assert run(here, {"a": 1.0, "x": 2.0, "\u00e9": 3.0}, names) == 2
    assert run(here, {"a": 1.0, "x": 2.0}, names) == -1
    assert run(here, {"b" * 3: 1}, names) == 1
    assert columns == {"x": 0, "a": 1, "\u00e9": 2, "bbb": 3}
    assert book.names == list(columns)
    if compiled:
        row = {str(k): 1.0 for k in range(3)}
        assert run(here, row, names) == 0  # there is room for two
        assert (len(columns), len(book.names), sys.getrefcount(next(iter(row)))) == (4, 4, 2)
        name = "".join(["k", "ept"])
        before = sys.getrefcount(name)
        assert run(here, {name: 1.0, "last": 1.0}, names) == 2
        assert sys.getrefcount(name) == before + 2  # by the dict and the list


@pytest.mark.parametrize(
    "row",
    [
        {"x": 1.0, 3: 3.0},
        {"x": "1"},
        {"x": None},
        {"x": float("nan")},
        {"other": float("nan")},
        {"x": -(10**400)},
        {"x": np.float32(1.0)},
        {str(k): 1.0 for k in range(LONGEST + 1)},
        OrderedDict(x=1.0),
        {type("Text", (str,), {})("x"): 1.0},
    ],
)
def test_what_is_not_looked_up(taken, row):
    names = names_in({"x": 3})
    assert taken(row, names)[0] == interpreted(row, names)[0] == OTHER
    assert not sys.exc_info()[0]
    assert taken({"x": 1.0}, names)[0] == NAMED


def test_no_reference_is_kept(taken):
    row = {name: 1000.5 + k for k, name in enumerate(NAMES)}
    columns = {name: 20 + k for k, name in enumerate(NAMES)}
    for names in (names_of(NAMES, PLACES), names_in(columns), names_in({}, Book({}))):
        kept = row, names, columns, *row.values(), *columns.values(), *NAMES
        before = [sys.getrefcount(x) for x in kept]
        for _ in range(1000):
            taken(row, names)
        assert [sys.getrefcount(x) for x in kept] == before
