"""Odd but common text, in every text format: one clear error, or the right rows."""

from __future__ import annotations

import gzip
import io

import memory
import numpy as np
import pytest
from seldom import often
from typer.testing import CliRunner

from onlinear import streams
from onlinear.cli import app
from onlinear.streams import StreamError
from onlinear.streams.hashing import key_hash

FORMATS = {
    "svm": ("1 1:2\n0 2:3\n", {}),
    "vw": ("1 | a:2\n0 | b:3\n", {}),
    "csv": ("y,a,b\n1,2,0\n0,0,3\n", {"target": "y"}),
}
ROWS = [(1.0, [2.0]), (0.0, [3.0])]


def read(tmp_path, form, content, **options):
    path = tmp_path / f"a.{form}"
    path.write_bytes(content)
    found = []
    for block in streams.open(path, **FORMATS[form][1], **options):
        starts = block.rows.indptr.astype(int)
        found += [(y, sorted(abs(block.rows.values[a:b]))) for y, a, b in zip(block.y, starts, starts[1:], strict=False)]
    return found


@pytest.mark.parametrize("form", FORMATS)
def test_line_ends(tmp_path, form):
    text = FORMATS[form][0]
    for changed in (
        text,
        text.replace("\n", "\r\n"),
        text.rstrip("\n"),
        text.replace("\n", "\r\n").rstrip("\r\n"),
        text + "\n\n",
    ):
        assert read(tmp_path, form, changed.encode()) == ROWS, changed
    assert read(tmp_path, form, text.encode().splitlines(keepends=True)[0] + text.encode().splitlines()[1]) or form == "csv"


@pytest.mark.parametrize("form", FORMATS)
def test_nothing_at_all_and_one_row(tmp_path, form):
    text = FORMATS[form][0]
    if form == "csv":
        with pytest.raises(StreamError, match=r"a\.csv:1: expected a line of column names, got an empty file"):
            read(tmp_path, form, b"")
        assert read(tmp_path, form, b"y,a,b\n1,2,0\n") == ROWS[:1]
        return
    assert read(tmp_path, form, b"") == []
    assert read(tmp_path, form, text.encode().splitlines()[0]) == ROWS[:1]


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_without_rows_is_an_error_of_the_command(tmp_path, form):
    path = tmp_path / f"a.{form}"
    path.write_text("y,a,b\n" if form == "csv" else "\n\n")
    target = ["--target", "y", "--numbers", "y,a,b"] if form == "csv" else []
    done = CliRunner().invoke(app, ["train", str(path), *target])
    assert done.exit_code == 1
    assert "expected at least one row, got none" in done.stderr


@pytest.mark.parametrize("form", FORMATS)
def test_a_byte_order_mark_is_refused_or_skipped_and_never_part_of_a_name(tmp_path, form):
    content = b"\xef\xbb\xbf" + FORMATS[form][0].encode()
    if form == "csv":
        assert read(tmp_path, form, content) == ROWS
        return
    with pytest.raises(StreamError, match=rf"a\.{form}:1: expected a label \(a number\), got '.ufeff1'; a byte order mark"):
        read(tmp_path, form, content)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16"])
def test_utf_16_is_refused(tmp_path, form, encoding):
    with pytest.raises((StreamError, ValueError), match=r"UTF-16|binary data|UTF-8|column"):
        read(tmp_path, form, FORMATS[form][0].encode(encoding))


@pytest.mark.parametrize("form", FORMATS)
def test_lines_that_end_with_cr_alone(tmp_path, form):
    content = FORMATS[form][0].replace("\n", "\r").encode()
    if form == "csv":
        assert read(tmp_path, form, content) == ROWS
        return
    with pytest.raises(StreamError, match=rf"a\.{form}:1: expected .* text, got lines that end with CR alone \(tr "):
        read(tmp_path, form, content)


@pytest.mark.parametrize("line", ["1 | a\r-1 | b", "1 |a x:1 y\rz", "1 |a\rb c", "1 |\r-1 | a", "1 | a b\r"])
def test_a_line_of_vowpal_wabbit_text_has_no_cr_but_at_its_end(tmp_path, line):
    """Files of old editors, of which one line ends otherwise: they would be one long row."""
    path = tmp_path / "a.vw"
    path.write_text(f"{line}\n1 | c\n", newline="")
    stream = streams.open(path, max_errors=1)
    rows = sum(block.n for block in stream)
    if line.endswith("\r"):
        assert (rows, stream.errors) == (2, [])
    else:
        assert (rows, len(stream.errors)) == (1, 1)
        assert "a.vw:1: expected " in stream.errors[0]
        assert "CR within a line" in stream.errors[0]


@pytest.mark.parametrize("form", ["svm", "vw"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_cr_within_the_first_line_is_of_that_line_however_blocks_are_cut(tmp_path, form, end):
    first = {"svm": "1 1:2\r3", "vw": "one\rtwo | a:1"}[form]
    path = tmp_path / f"a.{form}"
    path.write_bytes(f"{first}\n{FORMATS[form][0].rstrip()}{end}".encode())
    for block_bytes in (1, 5, len(first), len(first) + 1, 40, 1 << 20):
        stream = streams.open(path, block_bytes=block_bytes, max_errors=1)
        assert sum(block.n for block in stream) == len(ROWS)
        (error,) = stream.errors
        assert f"a.{form}:1: " in error
        assert "CR alone" not in error


@pytest.mark.parametrize(("text", "kind"), [('{"y": 1}\n', "JSON"), ("y,a,b\n1,2,3\n", "CSV"), ("y;a;b\n1;2;3\n", "CSV")])
def test_other_text_is_named(tmp_path, text, kind):
    with pytest.raises(StreamError, match=rf"a\.svm:1: expected a label \(a number\), got .*; this looks like {kind}, which"):
        read(tmp_path, "svm", text.encode())


@pytest.mark.parametrize("form", FORMATS)
def test_nul_bytes_are_no_numbers(tmp_path, form):
    text = FORMATS[form][0].encode()
    at = text.rindex(b"3")
    with pytest.raises(StreamError, match=rf"a\.{form}:[23]: expected a number"):
        read(tmp_path, form, text[:at] + b"\0" + text[at + 1 :], **({"numbers": "b"} if form == "csv" else {}))


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_that_ends_inside_a_character(tmp_path, form):
    content = {"svm": b"1 1:2\n0 2:3 # bl\xc3", "vw": b"1 | a:2\n0 | bl\xc3:3", "csv": b"y,a,s\n1,2,x\n0,3,bl\xc3"}[form]
    if form == "csv":
        with pytest.raises(StreamError, match=r"a\.csv:3: expected UTF-8 text in column 's'"):
            read(tmp_path, form, content)
        return
    assert read(tmp_path, form, content) == ROWS  # comments are skipped; names are bytes


@pytest.mark.parametrize("form", FORMATS)
def test_a_missing_label_is_named(tmp_path, form):
    content = {"svm": b"1 1:2\n2:3\n", "vw": b"1 | a:2\n| b:3\n", "csv": b"y,a,b\n1,2,0\n,0,3\n"}[form]
    line = 3 if form == "csv" else 2
    with pytest.raises(StreamError, match=rf"a\.{form}:{line}: expected "):
        read(tmp_path, form, content)


@pytest.mark.parametrize("form", often(FORMATS, ["vw"]))
def test_a_line_without_end_is_refused_at_a_stated_limit_and_not_held(tmp_path, form):
    """A packed file of 600 KB that is one line of 600 MB: read as the command does, in little memory."""
    path = tmp_path / f"a.{form}.gz"
    sink = io.BytesIO()
    start = {"svm": b"1 1:", "vw": b"1 | a:", "csv": b"y,a,b\n1,2,"}[form]
    with gzip.GzipFile(fileobj=sink, mode="wb", compresslevel=1) as file:
        file.write(start)
        for _ in range(600):
            file.write(b"1" * 10**6)
    path.write_bytes(sink.getvalue())
    code = f"from onlinear import streams; list(streams.open({str(path)!r}, **{FORMATS[form][1]!r}))"
    done = memory.run(code)
    of_csv, of_others = ":2: expected rows of at most 67108864 bytes", ":1: expected a line of at most 268435456 bytes"
    assert (of_csv if form == "csv" else of_others) in done.error
    assert done.peak < 1 << 30


NUMBERS = (
    "0 -0 7 00012 -12.5 .5 5. -.25 0.1234567 12345678 123456789 0.12345678 0.123456789 12345678.12345678 99999999.99999999999 "
    "0.1234567890123456 0.12345678901234567 0.123456789012345678 0.1234567890123456789 1234567890123456789 9007199254740993 "
    "0.000000000000000000 179769313486231570000 +3.5 1e3 -2.5E-3 1e400 nan 1.2.3 -- - . 1- 1: 3,5 0x10 1_0 \u00b2"
)


@pytest.mark.parametrize("value", NUMBERS.split())
@pytest.mark.parametrize("form", ["svmlight", "vw"])
def test_a_number_is_read_alike_wherever_in_the_text_it_stands(tmp_path, form, value):
    """Far from the end of the text many bytes are read at once, near it one after the other."""
    name, bar = ("12345", "") if form == "svmlight" else ("a_name.of'23+characters", "| ")

    def found(behind):
        path = tmp_path / f"rows.{form}"
        path.write_text(f"1 {bar}{name}:{value} 12346:1\n{behind}")
        try:
            block = next(iter(streams.open(path, format=form, hash_bits=30 if bar else None)))
        except StreamError as error:
            return str(error)
        return block.rows.indices[: int(block.rows.indptr[1])].tobytes(), block.rows.values[
            : int(block.rows.indptr[1])
        ].tobytes()

    near, far = found(""), found(f"-1 {bar}\n" * 40)
    assert near == far
    try:
        expected = float(value) if set(value) <= set("0123456789.eE+-") else None
    except ValueError:
        expected = None
    if expected is None or expected in (float("inf"), float("-inf")):
        assert isinstance(far, str)
        assert "rows." in far
    else:
        sizes = abs(np.frombuffer(far[1], float))
        assert abs(expected) in sizes if expected else sizes.tolist() == [1.0]


@pytest.mark.parametrize("length", range(1, 40))
def test_names_of_every_length_are_hashed_alike(tmp_path, length):
    name = "abcdefghij"[length % 7 :] * 8
    keys = [name[:length], f"space^{name[:length]}"]
    for behind in ("", "-1 |\n" * 40):
        (tmp_path / "names.vw").write_text(f"1 | {keys[0]}:2 |space {name[:length]}:2\n{behind}")
        block = next(iter(streams.open(tmp_path / "names.vw", hash_bits=30)))
        assert set(block.rows.indices.tolist()) == {key_hash(key) % 2**30 for key in keys}
