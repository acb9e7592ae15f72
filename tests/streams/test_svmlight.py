"""The svmlight reader: every number exactly Python's float, every error with its place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onlinear import streams

HARD = [
    "0", "-0", "+1", "1.", ".5", "5e-324", "2.4703282292062327208e-324", "2.4703282292062327209e-324", "1e-400", "0e999999",
    "1.7976931348623157e308", "2.2250738585072011e-308", "2.2250738585072014e-308", "9007199254740993", "9007199254740992.5",
    "0.1", "1e22", "1e23", "8.5e22", "123456789012345678901234567890", "0.000000000000000000000000000001", "1e-22", "4.35",
    "18014398509481985", "1.00000000000000011102230246251565404236316680908203125", "000000000000000000000001.5", "1E+5",
    "7.2057594037927933e16", "9223372036854775807", "18446744073709551615", "99999999999999999999", "6.02214076e23", "1e-5",
]  # fmt: skip


def values(tmp_path, tokens):
    path = tmp_path / "numbers.svm"
    path.write_text("".join(f"{token} 1:{token}\n" for token in tokens))
    y, entries = [], []
    for block in streams.open(path):
        y += block.y.tolist()
        X = block.csr(1)
        entries += X.toarray()[:, 0].tolist()
    return y, entries


def test_hard_numbers_are_read_as_python_reads_them(tmp_path):
    y, entries = values(tmp_path, HARD)
    wanted = [float(token) for token in HARD]
    assert [v.hex() for v in y] == [v.hex() for v in wanted]
    assert [abs(v).hex() if v == 0.0 else v.hex() for v in entries] == [abs(v).hex() if v == 0.0 else v.hex() for v in wanted]


@pytest.mark.parametrize("base", [0, 1])
def test_rows_labels_lines_and_layouts(tmp_path, base):
    path = tmp_path / "a.svm"
    path.write_bytes(
        f"# head\r\n\r\n+1\t{base}:2  {base + 3}:-1.5e0 # tail\r\n\n-1 qid:7 {base + 1}:0 {base + 2}:4\n2.5".encode()
    )
    (block,) = streams.open(path, base=base)
    assert block.y.tolist() == [1.0, -1.0, 2.5]
    assert block.lines.tolist() == [3, 5, 6]
    np.testing.assert_array_equal(block.X.toarray(), [[2, 0, 0, -1.5], [0, 0, 4, 0], [0, 0, 0, 0]])


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=30),
    st.sampled_from(["{!r}", "{:.18e}", "{:.20g}"]),
)
def test_any_double_is_read_back(tmp_path_factory, numbers, form):
    tokens = [form.format(x) for x in numbers]
    y, _ = values(tmp_path_factory.mktemp("svm"), tokens)
    assert [v.hex() for v in y] == [float(token).hex() for token in tokens]
