"""CSV files whose numbers have marks such as ``?`` among them, other delimiters, and no rows: what they are told apart by."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from onlinear import OnlineClassifier, QualityWarning, streams
from onlinear.streams import StreamError
from onlinear.streams.marks import has_decimal_comma, remarks


def written(tmp_path, text):
    path = tmp_path / "a.csv"
    path.write_text(text)
    return path


def table(values, labels=None):
    """A CSV file of one column and a target."""
    labels = labels or [k % 2 for k in range(len(values))]
    return "x,y\n" + "".join(f"{x},{y}\n" for x, y in zip(values, labels, strict=True))


MARKED = [
    (["1", "2.5", "-3e2", ".5", "7."] * 3 + ["?"], {}, {"x": ("?",)}),
    (["1", "2", "", "4"] * 5 + ["?", "-", "n/a"], {"missing": "omit"}, {"x": ("?", "-", "n/a")}),
    (["1", "2", "3", "4"] * 5 + ["a", "b", "c", "d"], {}, {}),  # four words are no marks
    (["1"] * 9 + ["x"] * 10, {}, {}),  # mostly text
    (["1"] * 8 + ["?"], {}, {}),  # too few to say
    (["1", "2"] * 10 + ["a name that is rather long"], {}, {}),
    (["1", "2"] * 10 + ["?"], {"text": ["x"]}, {}),  # asked for
    (["1", "2"] * 10, {}, {}),
    (["$1", "2"] * 5 + ["?"], {}, {"x": ("$1",)}),
    (["12%", "3.5 %"] * 5, {}, {"x": ("12%",)}),
    (["1 234", "12\u00a0345.5", "7'000"] * 4, {}, {"x": ("1 234",)}),
    (["(3.50)", "-€2"] * 5, {}, {"x": ("(3.50)",)}),
    (["1.200.300", "7"] * 5, {}, {"x": ("1.200.300",)}),
    (["1.2.3", "1.2.4"] * 5, {}, {}),  # versions
    (["12:30", "10-20"] * 5, {}, {}),
    (["\u22121.5", "2"] * 5, {}, {"x": ("\u22121.5",)}),
    (["₹5", "1\u2009000", "2’500"] * 4, {}, {"x": ("₹5",)}),
    (['"1,10,000"', "7"] * 5, {}, {"x": ("1,10,000",)}),
    (['"1,234"', '"12,5"'] * 5, {}, {"x": ("12,5",)}),
    (["36 months", "60 months"] * 5, {}, {"x": ("36 months",)}),
    (["1st", "2nd"] * 5, {}, {}),  # two words are no unit
    (["%", "-", "1 ", "$"] * 5, {}, {}),  # of which most hold no digit
    (["a1", "b2"] * 5, {}, {}),
]


@pytest.mark.parametrize(("values", "options", "marks"), MARKED)
def test_columns_that_are_text_for_a_few_marks(tmp_path, values, options, marks):
    stream = streams.open(written(tmp_path, table(values)), target="y", **options)
    assert stream.marks == streams.Shuffled(stream, 4).marks == marks
    again = streams.open(written(tmp_path, table(values)), encoding=stream.encoding)  # the model decided
    assert not again.marks


COMMAS = "x;z;y\n" + "".join(f"{k % 4},{k};{k}.5;{k % 2}\n" for k in range(10, 30))


def test_decimal_commas_are_named_and_read(tmp_path):
    path = written(tmp_path, COMMAS)
    stream = streams.open(path, target="y", delimiter=";")
    assert stream.marks == {"x": ("2,10",)}
    with pytest.warns(QualityWarning, match=r"'x' is read as categories: it holds numbers written as '2,10'.*add decimal=','"):
        OnlineClassifier().fit(stream)
    read = streams.open(path, target="y", delimiter=";", decimal=",")
    assert read.marks == {"z": ("10.5",)}
    (block,) = streams.open(path, target="y", delimiter=";", decimal=",", exclude=["z"])
    np.testing.assert_array_equal(block.X.toarray()[:, 0], [k % 4 + k / 100 for k in range(10, 30)])
    with pytest.raises(
        ValueError, match=r"numbers written as '2,10'\): name the classes .* If the comma stands before .* --decimal ,"
    ):
        OnlineClassifier().fit(streams.open(path, target="x", delimiter=";"))


@pytest.mark.parametrize(
    ("label", "remedy"),
    [
        ("${}", "If they are amounts, write them as plain numbers, such as 1234.5"),
        ("?", "If that is a missing label, add --nulls ',?' and --max-errors N, which leaves out up to N such rows"),
    ],
)
def test_labels_that_are_text_for_what_is_among_them_are_told_what_makes_them_numbers(tmp_path, label, remedy):
    path = written(tmp_path, "y,x\n" + "".join(f"{label.format(k) if k % 7 == 3 else k},{k}\n" for k in range(30)))
    with pytest.raises(ValueError, match=re.escape(remedy)):
        OnlineClassifier().fit(streams.open(path, target="y"))


@pytest.mark.parametrize(("decimal", "other", "found"), [(None, ",", "2,10"), (",", ".", "10.5")])
def test_numbers_with_the_other_sign_name_it(tmp_path, decimal, other, found):
    columns = {"numbers": ["x", "z"], "target": "y", "delimiter": ";", "decimal": decimal}
    words = rf"got '{found}' \(if the \w+ stands before decimals, add decimal='\{other}' \(in the command --decimal \{other}\)"
    with pytest.raises(StreamError, match=words):
        list(streams.open(written(tmp_path, COMMAS), **columns))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            "1,234",
            r"if the comma stands between groups of digits, write plain numbers, such as 1234\.5; if the comma stands before",
        ),
        ("\u22122", r"the minus is \u2212 \(U\+2212\), and no hyphen: write numbers with -; text='x' reads"),
        ("5 kg", r"if they are amounts, write them as plain numbers, such as 1234\.5; text='x' reads the column as text"),
    ],
)
def test_a_value_that_is_a_number_but_for_how_it_is_written_is_told_so(tmp_path, value, words):
    text = f"x;y\n1;0\n{value};1\n"
    with pytest.raises(StreamError, match=rf":3: expected a number in column 'x', got '{value}' \({words}"):
        list(streams.open(written(tmp_path, text), target="y", delimiter=";", numbers=["x"]))


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ([1, 2**53 + 1], str(2**53 + 1)),
        ([-(10**18), 5], str(-(10**18))),
        (["10000174058809263569", ""], "10000174058809263569"),
        (["-10000174058809263569", 1], "-10000174058809263569"),
        ([1, 2**53], None),
        (["1234567890123456789.5", 2], None),
        (["12345678901234567890123", 2], None),  # no number of 64 bits
    ],
)
def test_whole_numbers_that_are_rounded_are_named(tmp_path, values, found):
    path = written(tmp_path, table(values))
    stream = streams.open(path, target="y", missing="omit")
    assert stream.marks == ({} if found is None else {"x": (found,)})
    assert not any(streams.open(path, target="y", **{named: ["x"]}).marks for named in ("text", "numbers"))
    if found is not None:
        (words,) = remarks(stream.marks, stream.nulls, command=True)
        assert f"is read as numbers: it holds {found}, and beyond 2^53 several" in words
        assert words.endswith("If they name something, add --text x; if they are amounts, --numbers x.")


def test_digits_in_groups_are_not_taken_for_decimals(tmp_path):
    stream = streams.open(written(tmp_path, table([f'"{k},000"' for k in range(1, 20)])), target="y")
    assert not has_decimal_comma(stream.marks["x"])
    (words,) = remarks(stream.marks, stream.nulls, command=True)
    assert "If the comma stands between groups of digits, write plain numbers, such as 1234.5; if the comma" in words


@pytest.mark.parametrize("decimal", ["", "x", ",,"])
def test_other_signs_before_decimals_are_refused(tmp_path, decimal):
    with pytest.raises(ValueError, match=r"decimal must be '\.' or ',', got"):
        streams.open(written(tmp_path, COMMAS), target="y", delimiter=";", decimal=decimal)


def test_fit_names_the_marks_and_the_remedy_works(tmp_path):
    path = written(tmp_path, table(["1", "2"] * 10 + ["?"]))
    with pytest.warns(QualityWarning, match=r"'x' is read as categories: it holds numbers and '\?'.*add nulls=\['', '\?'\]"):
        OnlineClassifier().fit(streams.open(path, target="y"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = OnlineClassifier().fit(streams.open(path, target="y", nulls=["", "?"], missing="omit"))
        OnlineClassifier().fit(streams.open(path, target="y", text=["x"]))
        model.partial_fit(streams.open(path, encoding=model.encoding_, target="y", nulls=["", "?"]))
    assert model.n_features_in_ == 1


def test_a_mark_after_the_first_rows_is_an_error_with_both_remedies(tmp_path, monkeypatch):
    monkeypatch.setattr("onlinear.streams.csv_table.HEAD", 64)
    path = written(tmp_path, table(["1"] * 40 + ["it's"]))
    message = r"""a\.csv:42: expected a number in column 'x', got 'it's' \(text='x' .*, nulls=\['', "it's"\] takes"""
    with pytest.raises(StreamError, match=message):
        list(streams.open(path, target="y"))
    assert len(list(streams.open(path, target="y", nulls=["", "it's"], missing="omit"))) >= 1


def test_labels_that_are_text_for_a_mark_say_so(tmp_path):
    path = written(tmp_path, table([1] * 20, [0, 1] * 9 + ["oops", 1]))
    with pytest.raises(ValueError, match=r"are text \(numbers and 'oops'\): name the classes .*in Python classes="):
        OnlineClassifier().fit(streams.open(path, target="y"))


def test_a_missing_target_has_no_hint_that_does_not_help(tmp_path):
    path = written(tmp_path, table([1, 2, 3], [0, "", 1]))
    for options in ({}, {"missing": "omit"}):
        with pytest.raises(StreamError, match=r"a\.csv:3: .* got a missing value \(a target or a weight must be given"):
            list(streams.open(path, target="y", **options))
    assert sum(block.n for block in streams.open(path, target="y", max_errors=1)) == 2


@pytest.mark.parametrize("delimiter", [";", "|", "\t"])
def test_another_delimiter_is_suggested(tmp_path, delimiter):
    path = written(tmp_path, "a,b,y\n1,2,0\n3,4,1\n".replace(",", delimiter))
    shown = r"\t" if delimiter == "\t" else delimiter
    with pytest.raises(ValueError, match=r"the column 'y' is not known\. The only column is") as caught:
        streams.open(path, target="y")
    assert str(caught.value).endswith(f"(delimiter={delimiter!r}, in the command --delimiter '{shown}')")
    for given in (delimiter, shown):
        (block,) = streams.open(path, target="y", delimiter=given)
        assert block.X.toarray().tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_blanks_are_suggested_as_the_delimiter(tmp_path):
    path = written(tmp_path, "id x y\n1 2 0\n")
    words = r"The only column is 'id x y': is the delimiter ' '\? \(delimiter=' ', in the command --delimiter ' '\)$"
    with pytest.raises(ValueError, match=words):
        streams.open(path, target="y")
    path = written(tmp_path, "id  x   y\n 1  2   0\n")
    with pytest.raises(ValueError, match=r"--delimiter ' '; several blanks in a row must become one: tr -s ' '\)$"):
        streams.open(path, target="y")
    with pytest.raises(
        StreamError, match=r"each column name once, got '' twice\. Of the delimiter, several blanks in a row must"
    ):
        streams.open(path, target="y", delimiter=" ")


@pytest.mark.parametrize(
    ("line", "options", "end"),
    [
        ("sep=;\n", {}, r", and add delimiter=';' \(in the command --delimiter ';'\)\.$"),
        ("\ufeffSEP=\t\r\n", {}, r", and add delimiter='\\t' \(in the command --delimiter '\\t'\)\.$"),
        ('"sep=;"\n', {"delimiter": ";"}, r"\.$"),
        ("sep=,\n", {}, r"\.$"),
    ],
)
def test_a_line_that_tells_excel_the_delimiter_is_refused(tmp_path, line, options, end):
    words = r"a\.csv:1: expected a line of column names, got '\"?sep=.+, which tells Excel the delimiter: .* \(tail -n \+2\)"
    with pytest.raises(StreamError, match=rf"(?i){words}{end}"):
        streams.open(written(tmp_path, f"{line}x;y\n1;0\n"), target="y", **options)


def test_numbers_and_booleans_stand_for_each_other_as_in_parquet(tmp_path):
    numbers, booleans = tmp_path / "1.csv", tmp_path / "2.csv"
    numbers.write_text("x,y,w\n2.5,0,1\n0.0,1,2\n")
    booleans.write_text("x,y,w\ntrue,1,True\nfalse,0,1\n")
    options = {"target": "y", "weight": "w"}
    found = [[*streams.open(paths, **options)] for paths in ([numbers, booleans], [booleans, numbers])]
    for blocks, places in zip(found, ([0, 1], [1, 0]), strict=True):
        first, second = (blocks[place] for place in places)
        assert [block.X.toarray().ravel().tolist() for block in (first, second)] == [[2.5, 0.0], [1.0, 0.0]]
        assert [block.weights.tolist() for block in (first, second)] == [[1.0, 2.0], [1.0, 1.0]]
    booleans.write_text("x,y,w\ntrue,1,much\n")
    with pytest.raises(
        StreamError, match=r"2\.csv:2: expected a number in column 'w', got 'much' \(weights are numbers of 0 or"
    ):
        list(streams.open(booleans, **options))


def test_another_delimiter_than_the_models_is_suggested(tmp_path):
    trained = streams.open(written(tmp_path, "a,b,y\n1,2,0\n3,4,1\n"), target="y").encoding
    path = written(tmp_path, "a;b;y\n1;2;0\n")
    with pytest.raises(StreamError, match=r"expected a column 'a', got 'a;b;y'\. Is the delimiter ';'\? \(delimiter=';'"):
        list(streams.open(path, encoding=trained))


def test_a_file_without_rows_is_called_so(tmp_path):
    with pytest.raises(StreamError, match=r"a\.csv: expected rows after the line of names, got none"):
        streams.open(written(tmp_path, "x,y\n"), target="y")
    (tmp_path / "b.csv").write_text("x,y\n1,0\n2,1\n")
    (tmp_path / "c.csv").write_text("x,y\n")
    for names in (["b.csv", "c.csv"], ["c.csv", "b.csv"], ["c.csv", "c.csv", "b.csv"]):
        assert [block.n for block in streams.open([tmp_path / name for name in names], target="y")] == [2]


@pytest.mark.parametrize("text", ["x,t,y\n", "y,t,x", "t,x\r\n", "\ufeffx,y,t\n\n"])
@pytest.mark.parametrize("labels", ["0,1", "yes,no"])
def test_a_line_of_names_alone_has_no_rows_for_a_model(tmp_path, text, labels):
    rows = written(tmp_path, "x,t,y\n1,a,{}\n2,b,{}\n".format(*labels.split(",")))
    trained = streams.open(rows, target="y").encoding
    none = tmp_path / "none.csv"
    none.write_text(text)
    assert list(streams.open(none, encoding=trained)) == []
    for target in ("y",) if "y" in text else ():
        assert list(streams.open(none, target=target, encoding=trained)) == []
        (block,) = streams.open([none, rows], target=target, encoding=trained)
        assert block.n == 2
    none.write_text("other,t\n")
    with pytest.raises(StreamError, match=r"none\.csv: expected a column 'x', got 'other', 't'"):
        list(streams.open(none, encoding=trained))


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_files_of_no_rows_and_no_types_are_as_such_text(tmp_path, form):
    write = {"parquet": pq.write_table, "arrow": feather.write_feather}[form]
    write(pa.table({"y": [0, 1], "t": ["a", "b"]}), tmp_path / f"some.{form}")
    write(pa.table({"y": pa.nulls(0), "t": pa.nulls(0)}), tmp_path / f"none.{form}")
    some, none = tmp_path / f"some.{form}", tmp_path / f"none.{form}"
    with pytest.raises(StreamError, match=rf"none\.{form}: expected at least one row, got none"):
        streams.open(none, target="y")
    assert [block.n for block in streams.open([none, some], target="y")] == [2]
    trained = streams.open(some, target="y").encoding
    assert list(streams.open(none, encoding=trained)) == list(streams.open(none, target="y", encoding=trained)) == []


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_the_numbers_of_rows_that_pandas_writes_are_named(tmp_path, form):
    frame = pd.DataFrame({"x": np.arange(20.0), "y": np.arange(20) % 2}, index=np.arange(20)[::-1])
    path = tmp_path / f"a.{form}"
    frame.to_csv(path) if form == "csv" else frame.to_parquet(path)
    name = "" if form == "csv" else "__index_level_0__"
    with pytest.warns(QualityWarning, match=rf"The feature '{name}' is what pandas calls .* Else add exclude=\['{name}'\]\."):
        OnlineClassifier().fit(streams.open(path, target="y"))
    with warnings.catch_warnings():
        warnings.simplefilter("error", QualityWarning)
        OnlineClassifier().fit(streams.open(path, target="y", exclude=[name]))
