"""Labels as classes: numbers and text, named, known to the stream, or decided by the first label that is not 1."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from onlinear import OnlineClassifier, OnlineRegressor, streams
from onlinear.rows import Rows
from onlinear.streams import Block, Stream, StreamError, labels
from onlinear.streams.labels import Labels, scan, shown
from onlinear.streams.weighted import balanced_weights


class Listed(Stream):
    """A stream of labels without features; text labels are found as they come."""

    name, task, rows, total, done, text_bytes, errors = "listed", None, None, None, 0, 0, ()

    def __init__(self, labels, *, classes=None, rereadable=True, size=2):
        self._found, self._size = labels, size
        self._text = isinstance(labels[0], str)
        self.classes, self.rereadable = classes, rereadable
        self.labels = () if self._text else None

    def __iter__(self):
        for first in range(0, len(self._found), self._size):
            part = self._found[first : first + self._size]
            if self._text:
                self.labels = tuple(dict.fromkeys((*self.labels, *part)))
                part = [self.labels.index(label) for label in part]
            rows = Rows(np.zeros(len(part) + 1, np.uint64), np.zeros(0, np.uint32), np.zeros(0))
            yield Block(rows, np.array(part, float), np.arange(len(part)) + first + 1, (self.name,), 0, 0.0)


def classified(stream, classes=None):
    labels = Labels(stream, classes)
    places = [place for block in stream for place in labels.places(block).tolist()]
    return [labels.names[place] for place in places], labels


@pytest.mark.parametrize(
    ("found", "classes", "names"),
    [
        ([1, 1, 0, 1], None, [0, 1]),
        ([1, 1, 1, -1], None, [-1, 1]),
        ([1, 1], None, [-1, 1]),
        ([7, 3, 3], ("7", "3"), [3, 7]),
        ([0.5, 2], (2, 0.5), [0.5, 2]),
        ([2.0**53 - 1, 1], (1, 2**53 - 1), [1, 2**53 - 1]),
        (["b", "a", "b"], ("a", "b", "c"), ["a", "b", "c"]),
        (["1", "10"], (10, 1), ["1", "10"]),
        ([str(10**17), str(10**17 + 1)], (10**17 + 1, 10**17), [str(10**17), str(10**17 + 1)]),
    ],
)
def test_each_label_is_its_class(found, classes, names):
    stream = Listed(found)
    got, labels = classified(stream, classes)
    assert got == found
    assert labels.names.tolist() == names
    assert labels.names.dtype.kind == ("U" if isinstance(found[0], str) else "f" if 0.5 in names else "i")
    assert labels.named == (classes is not None)


@pytest.mark.parametrize(
    ("found", "classes"),
    [
        ([2, 10, 1, 2], ["1", "10", "2"]),
        (["2", "10", "1", "2"], [1, 2, 10]),
        ([10, 9], ["10", "9"]),
        (["10", "9"], [9.0, 10.0]),
        ([0, 1], [False, True]),
    ],
)
def test_classes_of_a_model_keep_their_order(found, classes):
    known, stream = np.array(classes), Listed(found)
    labels = Labels(stream, known, known=True)
    places = [place for block in stream for place in labels.places(block).tolist()]
    assert labels.names is known
    assert [float(classes[place]) for place in places] == [float(label) for label in found]


def test_classes_of_a_model_that_are_one_number_are_refused():
    with pytest.raises(ValueError, match=r"the labels of listed are numbers, of which several of the classes 01, 1, 2 are one"):
        Labels(Listed([1, 2]), np.array(["01", "1", "2"]), known=True)
    with pytest.raises(ValueError, match="classes must be numbers, as the labels of listed are, got a, b"):
        Labels(Listed([1, 2]), np.array(["a", "b"]), known=True)


def test_a_stream_may_know_its_classes():
    assert classified(Listed([5, 2, 2], classes=np.array([2.0, 5.0])))[1].names.tolist() == [2, 5]
    stream = Listed(["b", "a"])
    stream.labels, stream.classes = ("b", "a"), np.array([0.0, 1.0])
    assert Labels(stream).names.tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("found", "classes", "message"),
    [
        ([1, 1, 3], None, r"listed:3: expected a label of -1, 1 or of 0, 1, got 3 \(other classes: --classes"),
        ([0, 1, -1], None, r"listed:3: expected one of the classes 0, 1, got -1 \(other classes"),
        ([3, 7, 5.5], (3, 7), r"listed:3: expected one of the classes 3, 7, got 5\.5\.$"),
        (["a", "b"], ("a", " b"), r"listed:2: expected one of the classes ' b', a, got 'b'\.$"),
        (["a", "b", "z"], ("a", "b"), r"listed:3: expected one of the classes a, b, got 'z'\.$"),
        ([0] * 3 + [99], range(40), r"classes 0, 1, .*, 19, \.\.\., got 99\.$"),
    ],
)
def test_a_label_that_is_no_class_is_named_with_its_line(found, classes, message):
    with pytest.raises(StreamError, match=message):
        classified(Listed(found), classes)


@pytest.mark.parametrize(
    ("found", "classes", "message"),
    [
        ([1, 2], ("a", "b"), "classes must be numbers, as the labels of listed are, got a, b"),
        ([1, 2], ("1", "", " b"), "classes must be numbers, as the labels of listed are, got 1, '', ' b'"),
        ([1, 0], ("True", "False"), r"the labels of listed are \(true is 1, false 0\), got True, False"),
        ([1, 2], (1,), "at least two classes, got only 1"),
        ([1, 2], ("nan", "1"), "classes must be finite"),
        ([1, 2], (1, 10**400), "classes must be finite"),
        (
            [1, 2],
            (1, 2, 2**53),
            r"listed: expected classes within 2\^53, .* one, got 9007199254740992: number the classes anew",
        ),
        (
            [1, 2],
            ("1", "-9007199254740993"),
            r"2\^53, .* got -9007199254740993: number .* \(of a table, text=, in the command --text\)",
        ),
        (["a", "b"], None, "labels of listed are text: name the classes"),
        (["a", "b"], ("a", "a"), "at least two classes, got only 'a'"),
    ],
)
def test_classes_that_cannot_be(found, classes, message):
    with pytest.raises(ValueError, match=message):
        Labels(Listed(found), classes)


def test_a_scan_finds_all_labels():
    assert scan(Listed([7, 3, 7, -5])) == (-5.0, 3.0, 7.0)
    assert scan(Listed(["b", "a", "b", "c"])) == ("a", "b", "c")
    with pytest.raises(StreamError, match="listed cannot be read twice: name the classes"):
        scan(Listed([1, 2], rereadable=False))


def test_labels_that_name_rows_are_no_classes():
    ids = list(range(10_001))
    with pytest.raises(StreamError, match="listed: expected classes that have two rows each or more"):
        scan(Listed(ids, size=1000))
    with pytest.raises(StreamError, match="got 10,001 different labels in 10,001 rows"):
        balanced_weights(Listed(ids, size=1000), finds=True)
    assert len(balanced_weights(Listed(ids, size=1000))) == 10_001
    assert len(scan(Listed(ids[:10_000], size=1000))) == 10_000
    assert len(scan(Listed(ids + ids, size=1000))) == 10_001


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1"),
        (-3, "-3"),
        (0.1, "0.1"),
        (1e300, "1e+300"),
        ("a b", "a b"),
        (10**17 + 1, "100000000000000001"),
        (np.int64(10**17 + 1), "100000000000000001"),
    ],
)
def test_numbers_are_shown_so_that_they_read_back(value, text):
    assert shown(value) == text


@pytest.mark.parametrize("first", [2**53, 10**18, -(10**18)])
@pytest.mark.parametrize("name", ["a.csv", "a.svm"])
def test_classes_that_doubles_do_not_tell_apart_are_refused(tmp_path, name, first):
    labels = [first, first + 1, 5]
    rows = [f"{label},{k}" if name == "a.csv" else f"{label} 1:{k}" for k in range(1, 9) for label in labels]
    (tmp_path / name).write_text("\n".join((["y,x"] if name == "a.csv" else []) + rows) + "\n")
    options = {"target": "y"} if name == "a.csv" else {}
    with pytest.raises(StreamError, match=r"expected classes within 2\^53, beyond which several are read as one, got -?\d"):
        OnlineClassifier().fit(streams.open(tmp_path / name, **options), classes="scan")
    if name == "a.csv":
        model = OnlineClassifier().fit(streams.open(tmp_path / name, **options, text=["y"]), classes="scan")
        assert sorted(model.classes_) == sorted(map(str, labels))


@pytest.mark.parametrize("name", ["a.csv", "a.svm"])
def test_numbers_with_a_fraction_are_no_classes_unless_named(tmp_path, name):
    labels = [1, 0.5, 1, 0.5] * 5
    rows = [f"{label},{k}" if name == "a.csv" else f"{label} 1:{k}" for k, label in enumerate(labels, 1)]
    (tmp_path / name).write_text("\n".join((["y,x"] if name == "a.csv" else []) + rows) + "\n")
    stream = streams.open(tmp_path / name, **({"target": "y"} if name == "a.csv" else {}))
    place = f"{name}:{3 if name == 'a.csv' else 2}"
    with pytest.raises(StreamError, match=rf"{place}: expected a class, text or a whole number, got 0\.5: .*OnlineRegressor"):
        OnlineClassifier().fit(stream, classes="scan")
    model = OnlineClassifier().fit(stream, classes=[0.5, 1.0])
    assert model.classes_.tolist() == [0.5, 1.0]
    X = np.arange(1.0, 21.0)[:, None]
    assert 0.0 < model.score(X, labels, [1.0, 2.0] * 10) == np.average(model.predict(X) == labels, weights=[1.0, 2.0] * 10)
    assert OnlineRegressor().fit(stream).t_ == 20


def test_a_table_whose_target_is_measured_is_no_task_of_classes():
    table = pd.DataFrame({"x": np.arange(50.0), "price": np.arange(50.0) / 7})
    with pytest.raises(StreamError, match=r"the table:2: expected a class, .* OnlineRegressor"):
        OnlineClassifier(shuffle=False).fit(table, "price")


def test_a_scan_ends_where_there_are_more_labels_than_classes_may_be(monkeypatch):
    monkeypatch.setattr(labels, "MOST_VALUES", 3)
    assert scan(Listed([0, 1, 2, 0])) == (0, 1, 2)
    with pytest.raises(StreamError, match="listed: expected at most 3 classes in the target, got one more"):
        scan(Listed([0, 1, 2, 3, "never read"]))
