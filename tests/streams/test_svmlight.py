"""The svmlight reader: every number exactly Python's float, every error with its place, the same rows for any block size."""

from __future__ import annotations

import bz2
import gzip
import lzma
import random

import numpy as np
import pytest
from fuzz import compiled
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reference import Row, reference
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from onlinear import streams
from onlinear.streams import StreamError

HARD = [
    "0", "-0", "+1", "1.", ".5", "5e-324", "2.4703282292062327208e-324", "2.4703282292062327209e-324", "1e-400", "0e999999",
    "1.7976931348623157e308", "2.2250738585072011e-308", "2.2250738585072014e-308", "9007199254740993", "9007199254740992.5",
    "0.1", "1e22", "1e23", "8.5e22", "123456789012345678901234567890", "0.000000000000000000000000000001", "1e-22", "4.35",
    "18014398509481985", "1.00000000000000011102230246251565404236316680908203125", "000000000000000000000001.5", "1E+5",
    "7.2057594037927933e16", "9223372036854775807", "18446744073709551615", "99999999999999999999", "6.02214076e23", "1e-5",
    "1e-250", "1.5e-251", "9999999999999999999e-250", "9999999999999999999e280", "1e281", "0." + "0" * 400 + "1e390", "1e00005",
]  # fmt: skip


def read(path, **options):
    """Labels, lines and dense rows of a file."""
    blocks = list(streams.open(path, **options))
    width = max([block.size for block in blocks], default=0)
    y = np.concatenate([block.y for block in blocks]) if blocks else np.empty(0)
    lines = [int(line) for block in blocks for line in block.lines]
    return y, lines, [row for block in blocks for row in block.csr(max(1, width)).toarray().tolist()]


def write(folder, content):
    path = folder / "a.svm"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def bits(numbers):
    return [(0.0 if x == 0.0 else float(x)).hex() for x in numbers]


def numbers_read(folder, tokens):
    y, _, rows = read(write(folder, "".join(f"{token} 1:{token}\n" for token in tokens)))
    assert bits(y) == bits(row[0] for row in rows)
    return bits(y)


def test_hard_numbers_are_pythons(tmp_path):
    assert numbers_read(tmp_path, HARD) == bits(map(float, HARD))


@pytest.mark.parametrize("size", [4095, 4096, 5000, 30000])
def test_numbers_of_any_length_are_pythons(tmp_path, size):
    tokens = [f"1{'0' * size}e-{size}", f"0.{'0' * size}25e{size}", "3" * 20 + f".{'7' * size}", f"0.{'0' * 300}{'4' * size}"]
    assert numbers_read(tmp_path, tokens) == bits(map(float, tokens))


@given(
    numbers=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30),
    form=st.sampled_from(["{!r}", "{:.18e}", "{:.17f}", "{:.3g}", "{:.25g}"]),
)
def test_any_double_is_pythons(tmp_path_factory, numbers, form):
    tokens = [text for text in map(form.format, numbers) if abs(float(text)) < np.inf]
    assert numbers_read(tmp_path_factory.mktemp("svm"), tokens) == bits(map(float, tokens))


def test_numbers_of_every_shape_are_pythons(tmp_path):
    rng = random.Random(4)

    def some(count, of="0123456789"):
        return "".join(rng.choice(of) for _ in range(count))

    shapes = [(sign, before, after) for sign in ("", "-") for before in range(11) for after in range(22) if before + after]
    for of in ("0123456789", "09", "9"):
        tokens = [f"{sign}{some(before, of)}.{some(after, of)}" for sign, before, after in shapes]
        tokens += [f"{sign}{some(before, of)}" for sign, before, after in shapes if not after]
        assert numbers_read(tmp_path, tokens) == bits(map(float, tokens))


@pytest.mark.parametrize("index", [1, 9, 10, 99, 100, 9_999_999, 10_000_000, 99_999_999, 100_000_000, 2**31 - 2])
def test_indices_of_every_length(tmp_path, index):
    path = write(tmp_path, "".join(f"1 {index}:{x}\n" for x in range(1, 20)))
    (block,) = streams.open(path)
    assert block.rows.indices.tolist() == [index - 1] * 19
    assert block.rows.values.tolist() == list(range(1, 20))


DIGITS = st.text("0123456789", max_size=24)


@given(
    tokens=st.lists(st.tuples(st.sampled_from(["", "+", "-"]), DIGITS, DIGITS, st.integers(-330, 290)), min_size=1, max_size=30)
)
def test_any_decimal_is_pythons(tmp_path_factory, tokens):
    texts = [f"{sign}{whole or '0'}.{part}e{power}" for sign, whole, part, power in tokens]
    finite = [text for text in texts if abs(float(text)) < np.inf]
    assert numbers_read(tmp_path_factory.mktemp("svm"), finite) == bits(map(float, finite))


def test_ties_are_pythons(tmp_path):
    """Doubles' midpoints and their decimal neighbours, where a correct reader is hardest."""
    rng = random.Random(1)
    tokens = []
    for _ in range(3000):
        m, e = rng.randrange(2**52, 2**53), rng.randrange(-60, 12)
        numerator, power = (2 * m + 1) * 2 ** max(e, 0), max(-e, 0)
        digits = str(numerator * 5**power)  # (2m+1) 2^e = digits / 10^power, exactly
        for text in (digits, str(int(digits) - 1), str(int(digits) + 1), digits[:19] + "0" * (len(digits) - 19)):
            tokens.append(f"{text}e-{power}")
    assert numbers_read(tmp_path, tokens) == bits(map(float, tokens))


@pytest.mark.parametrize("base", [0, 1])
def test_blanks_comments_crlf_tabs_qid_zeros_and_a_missing_newline(tmp_path, base):
    text = f"# head\r\n\r\n+1\t{base}:2  {base + 3}:-1.5e0 # tail\r\n\n-1 qid:7 {base + 1}:0 {base + 2}:4#x\n \t\n2.5"
    y, lines, rows = read(write(tmp_path, text), base=base)
    assert y.tolist() == [1.0, -1.0, 2.5]
    assert lines == [3, 5, 7]
    assert rows == [[2, 0, 0, -1.5], [0, 0, 4, 0], [0, 0, 0, 0]]
    assert reference(text.encode(), base=base).rows[0] == Row(3, (1.0).hex(), [0, 3], [(2.0).hex(), (-1.5).hex()])


VOWPAL = "; this looks like Vowpal Wabbit text, which format='vw' (--format vw) reads"
TABLE = "; this looks like CSV, which format='csv' and delimiter=' ' (--format csv --delimiter"
ERRORS = [
    ("x 1:2", "a label (a number), got 'x'"),
    ("1:2 2:3", "one label, then a blank, got '1:2'; a row begins with its label, such as 0 where none is known"),
    ("1,2 1:3", "one label in each row (several labels are not supported), got '1,2'"),
    ("nan 1:2", "a finite number, got 'nan'"),
    ("-inf 1:2", "a finite number, got '-inf'"),
    ("1e999 1:2", "a finite number, got '1e999'"),
    ("1 1:nan", "a finite number, got 'nan'"),
    ("1 1:Infinity", "a finite number, got 'Infinity'"),
    ("1 1:1e999", "a finite number, got '1e999'"),
    ("1 1:2 3", "index:value, got '3'"),
    ("1 1:2 x:3", "index:value, got 'x:3'"),
    ("1 -1:2", "index:value, got '-1:2'"),
    ("1 1.5:2", "index:value, got '1.5:2'"),
    ("1 1:", "a number after 'index:', got the end of the line"),
    ("1 1: 2", "a number after 'index:', got the end of the line"),
    ("1 1:2x", "a number after 'index:', got '2x'"),
    ("1 1:2,3", "a number after 'index:', got '2,3'"),
    ("1 1:1_0", "a number after 'index:', got '1_0'"),
    ("1 1:0x10", "a number after 'index:', got '0x10'"),
    ("1 1:1e", "a number after 'index:', got '1e'"),
    ("1 1:--1", "a number after 'index:', got '--1'"),
    ("1 1:2\r3", "index:value, got '\\r3'"),
    ("1 2:1 1:1", "ascending indices, got '1:1'; sort=True (--sort) accepts any order"),
    ("1 2:1 2:1", "ascending indices, got '2:1'; sort=True (--sort) accepts any order"),
    ("1 0:1", "an index from 1 to 2147483647, got '0:1'; indices that begin at 0 need base=0 (--base 0)"),
    ("1 2147483648:1", "an index from 1 to 2147483647, got '2147483648:1'"),
    ("1 99999999999999999999999:1", "an index from 1 to 2147483647, got '99999999999999999999999:1'"),
    ("1 qid:x 1:2", "qid:number, got 'qid:x'"),
    ("1 1:2 qid:3", "index:value, got 'qid:3'"),
    ("\x00\x01", "a label (a number), got '\\x00\\x01'; this looks like binary data"),
    ("1 2:\x00", "a number after 'index:', got '\\x00'; this looks like binary data"),
    ("\ufeff1 1:2", "a label (a number), got '\\ufeff1'; a byte order mark is no part of svmlight text"),
    ("1 \u0663:2", "index:value, got '\u0663:2'"),
    ("1 qid:\u0663 1:2", "qid:number, got 'qid:\u0663'"),
    ("1 00000000000:2", "an index from 1 to 2147483647, got '00000000000:2'; indices that begin at 0 need base=0 (--base 0)"),
    ("1 00002147483648:2", "an index from 1 to 2147483647, got '00002147483648:2'"),
    ("1 000018446744073709551617:2", "an index from 1 to 2147483647, got '000018446744073709551617:2'"),
    ("1 1:2:3", "a number after 'index:', got '2:3'"),
    ("1 2 3:4", "index:value, got '2'"),
    ("1 1:é", "a number after 'index:', got 'é'"),
    ("1 |a b:2", f"index:value, got '|a'{VOWPAL}"),
    ("1 2 'tag|a b", f"index:value, got '2'{VOWPAL}"),
    ("1 'tag |a b", f'index:value, got "\'tag"{VOWPAL}'),
    ("| b:2", f"a label (a number), got '|'{VOWPAL}"),
    ("1 x:2 # a |b", "index:value, got 'x:2'"),
    ("a|b", "a label (a number), got 'a|b'"),
    ("id x y", f"a label (a number), got 'id'{TABLE} ' ') read"),
    ("id\tx", "a label (a number), got 'id'" + TABLE.replace("' '", r"'\t'") + r" '\t') read"),
    ("id  x", f"a label (a number), got 'id'{TABLE} ' ') read, where several blanks in a row must become one: tr -s ' '"),
    ("\0 b", "a label (a number), got '\\x00'; this looks like binary data"),
    ("\0,b", "a label (a number), got '\\x00,b'; this looks like binary data"),
    ("1 1:" + "7x" * 40, "got '" + "7x" * 18 + "7...'"),
]


@pytest.mark.parametrize("zeros", [0, 1, 7, 9, 10, 11, 30, 4000])
def test_zeros_before_an_index_are_none(tmp_path, zeros):
    path = write(tmp_path, "".join(f"1 {'0' * zeros}7:1 {'0' * zeros}2147483647:0.5 # {k}\n" for k in range(3)))
    (block,) = streams.open(path)
    assert block.rows.indices.tolist() == [6, 2147483646] * 3
    assert block.rows.values.tolist() == [1.0, 0.5] * 3
    (block,) = streams.open(write(tmp_path, f"1 {'0' * zeros}0:2 1:3\n"), base=0)
    assert block.rows.indices.tolist() == [0, 1]
    assert [row.columns for row in reference(path.read_bytes(), base=0).rows] == [[0, 1]]


@pytest.mark.parametrize(("line", "message"), ERRORS, ids=[repr(line)[:30] for line, _ in ERRORS])
def test_wrong_lines_are_skipped_and_counted_when_asked(tmp_path, line, message):
    path = write(tmp_path, f"1 1:1\n{line}\n-1 2:1\n{line}\n2 3:1")
    stream = streams.open(path, max_errors=2)
    assert [(y, int(at)) for block in stream for y, at in zip(block.y, block.lines, strict=True)] == [(1, 1), (-1, 3), (2, 5)]
    assert [error.split(":")[1] for error in stream.errors] == ["2", "4"]
    assert all(error.endswith(f"{message}.") for error in stream.errors)
    with pytest.raises(StreamError, match=":4: expected"):
        list(streams.open(path, max_errors=1))


def test_each_pass_counts_its_own_wrong_lines(tmp_path):
    stream = streams.open(write(tmp_path, "1 1:1\nx\n2 1:1\ny\n"), max_errors=2)
    for _ in range(3):
        assert [y for block in stream for y in block.y] == [1, 2]
        assert [error.split(":")[1] for error in stream.errors] == ["2", "4"]


def test_sorted_when_asked(tmp_path):
    path = write(tmp_path, "1 3:1 1:2\n2 1:1 2:1\n3 2:1 1:5 2:1 3:0\n4 1:1 1:-1\n")
    y, _, rows = read(path, sort=True)
    assert y.tolist() == [1, 2, 3, 4]
    assert rows == [[2, 0, 1], [1, 1, 0], [5, 2, 0], [0, 0, 0]]
    (block,) = streams.open(path, sort=True)
    assert block.rows.indptr.tolist() == [0, 2, 4, 6, 6]


def test_repeated_indices_are_summed_in_the_order_of_the_text(tmp_path):
    values = [1.0, 1e16, *[1.0] * 30, -1e16, 0.1, *[1e-17] * 30]
    path = write(tmp_path, "1 " + " ".join(f"2:{x!r} 1:1" for x in values))
    _, _, ((_, total),) = read(path, sort=True)
    expected = 0.0
    for x in values:
        expected += x
    assert total == expected


@pytest.mark.parametrize("size", [1, 40, 1 << 20])
def test_a_sum_that_is_infinite_is_an_error_of_its_own_line(tmp_path, size):
    path = write(tmp_path, "1 1:1\n2 1:1\n3 7:1e308 2:1 7:1e308\n4 1:1\n")
    with pytest.raises(StreamError, match=r":3: expected values of index 7 with a finite sum, got infinity\.$"):
        list(streams.open(path, sort=True, block_bytes=size))
    stream = streams.open(path, sort=True, max_errors=1, block_bytes=size)
    assert [y for block in stream for y in block.y] == [1, 2, 4]
    assert len(stream.errors) == 1


def test_wrong_lines_of_every_kind_in_one_block_are_told_in_order(tmp_path):
    path = write(tmp_path, "1 1:1e999\nx\n3 1:1\n1e999 1:1\n5 1:\n6 1:1 1:-1e400\n7 2:1\n")
    stream = streams.open(path, max_errors=5)
    assert [y for block in stream for y in block.y] == [3, 7]
    assert [error.split(":")[1] for error in stream.errors] == ["1", "2", "4", "5", "6"]


FOREIGN = [
    (gzip.compress(b"1 1:1\n"), "gzip data; a file named *.gz is read as that."),
    (lzma.compress(b"1 1:1\n"), "xz data; a file named *.xz is read as that."),
    (bz2.compress(b"1 1:1\n"), "bzip2 data; a file named *.bz2 is read as that."),
    (b"\x28\xb5\x2f\xfd\x00\x00", "Zstandard data; a file named *.zst is read as that."),
    (b"PK\x03\x04\x14\x00", "a zip archive or a spreadsheet; unpack it, or save it as text."),
    (b"PAR1\x15\x04", "a Parquet file; a file named *.parquet is read as that."),
    (b"ARROW1\x00\x00", "an Arrow or Feather file; a file named *.arrow is read as that."),
    (b"\x93NUMPY\x01", "a NumPy file."),
    ("1 1:1\n".encode("utf-16"), "UTF-16 text; convert it to UTF-8 (iconv -f UTF-16 -t UTF-8)."),
]


@pytest.mark.parametrize(("content", "kind"), FOREIGN, ids=[kind[:12] for _, kind in FOREIGN])
def test_files_of_another_kind_are_told_and_never_skipped_through(tmp_path, content, kind):
    path = write(tmp_path, content)
    for options in ({}, {"max_errors": 1000}, {"block_bytes": 1}):
        with pytest.raises(StreamError) as error:
            list(streams.open(path, **options))
        assert str(error.value) == f"{path}:1: expected svmlight text, got what looks like {kind}"
    assert reference(content, max_errors=1000) == ([], [], 1)


LINES = st.lists(
    st.one_of(
        st.sampled_from(
            ["", "#", "  # only a comment", "1", "-1 1:5e-324", "+1 1:1 2:1e22 3:123456789012345678901 ", "0 2:1e-300"]
        ),
        st.builds(
            lambda y, row: " ".join([repr(y), *(f"{j}:{x!r}" for j, x in sorted(row.items()))]),
            st.floats(-1e6, 1e6),
            st.dictionaries(st.integers(1, 2000), st.floats(-1e30, 1e30), max_size=6),
        ),
        st.text("0123456789:+-.e #\tqidnaf", max_size=20),
    ),
    max_size=25,
)


@settings(max_examples=300)
@given(lines=LINES, newline=st.sampled_from(["\n", "\r\n"]), last=st.booleans(), size=st.integers(1, 200))
@example(lines=["1 1:1"], newline="\n", last=False, size=1)
def test_any_text_reads_as_the_plain_reference_does_for_any_block_size(tmp_path_factory, lines, newline, last, size):
    path = write(tmp_path_factory.mktemp("svm"), newline.join(lines) + (newline if last else ""))
    assert compiled(str(path), block_bytes=size)[0] == reference(path.read_bytes())


def test_a_line_longer_than_the_block_and_one_longer_than_allowed(tmp_path, monkeypatch):
    row = " ".join(f"{j}:{j}" for j in range(1, 3000))
    y, _, rows = read(write(tmp_path, f"1 1:1\n2 {row}\n3 1:1"), block_bytes=64)
    assert y.tolist() == [1, 2, 3]
    assert rows[1] == list(range(1, 3000))
    monkeypatch.setattr("onlinear.streams.lines.LONGEST_LINE", 1000)
    with pytest.raises(StreamError, match=r"a\.svm:2: expected a line of at most 1000 bytes"):
        read(write(tmp_path, f"1 1:1\n2 {row}\n3 1:1"), block_bytes=64)


def test_scikit_learn_writes_what_is_read(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 40)) * (rng.random((300, 40)) < 0.3) * 10.0 ** rng.integers(-8, 8, (300, 40))
    y = rng.integers(0, 3, 300)
    dump_svmlight_file(X, y, str(tmp_path / "a.svm"), zero_based=False)
    theirs, _ = load_svmlight_file(str(tmp_path / "a.svm"), n_features=40, zero_based=False)
    mine_y, _, rows = read(tmp_path / "a.svm", block_bytes=1000)
    assert mine_y.tolist() == y.tolist()
    np.testing.assert_array_equal(np.array(rows), theirs.toarray())


@pytest.mark.parametrize("options", [{"base": 2}, {"block_bytes": 0}, {"max_errors": -1}])
def test_options_out_of_range(tmp_path, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        streams.open(write(tmp_path, "1 1:1"), **options)
