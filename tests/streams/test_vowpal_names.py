"""Features of Vowpal Wabbit text by their names."""

from __future__ import annotations

import pytest

from onlinear import streams
from onlinear.streams import StreamError

TEXT = """\
1 2 'tag|animal:0.5 cat:2 whiskers |color black white
-1\tone|animal cat\tmeow | plain:3 animal^cat |color
0 |a |ab x:0 y:1e-3 \r
1 |über straße |color black |color black:2 red
"""
PAIRS = [(), ("animal:color",), ("a*:color", "*:*")]


@pytest.fixture
def path(tmp_path):
    (tmp_path / "rows.vw").write_bytes(TEXT.encode())
    return str(tmp_path / "rows.vw")


@pytest.mark.parametrize("pairs", PAIRS)
@pytest.mark.parametrize("hash_bits", [1, 3, 18])
def test_every_entry_has_a_name_of_its_row(path, hash_bits, pairs):
    stream = streams.open(path, hash_bits=hash_bits, interactions=pairs, block_bytes=64)
    wanted = [(block.where(row), block.X[row]) for block in stream for row in range(block.n)]
    named = list(stream.named_rows())
    assert [where for where, _ in named] == [where for where, _ in wanted]
    for (_, entries), (_, row) in zip(named, wanted, strict=True):
        assert [column for _, column, _ in entries] == row.indices.tolist()
        assert [value for _, _, value in entries] == row.data.tolist()
        assert all(name for name, _, _ in entries)


def test_names_are_keys_and_crosses_have_both(path):
    first, second, third, last = [
        {name for name, _, _ in entries} for _, entries in streams.open(path, interactions=["a*:color"]).named_rows()
    ]
    crosses = {f"animal^{one} x color^{other}" for one in ("cat", "whiskers") for other in ("black", "white")}
    assert first == {"animal^cat", "animal^whiskers", "color^black", "color^white"} | crosses
    assert second == {"animal^cat", "animal^meow", "plain"}
    assert third == {"ab^y"}
    assert last == {"über^straße", "color^black", "color^red"}


def test_a_column_of_several_features_has_all_their_names(path):
    (_, entries), *_ = streams.open(path, hash_bits=1).named_rows()
    assert {part for name, _, _ in entries for part in name.split(" + ")} == {
        "animal^cat", "animal^whiskers", "color^black", "color^white",
    }  # fmt: skip


def test_wrong_lines_are_errors_or_counted(tmp_path):
    (tmp_path / "rows.vw").write_text("1 |a b\n\nx |a b\n-1 |a c\n")
    named = streams.open(str(tmp_path / "rows.vw")).named_rows()
    assert next(named)[1][0][0] == "a^b"
    with pytest.raises(StreamError, match=r"rows\.vw:3: expected a label"):
        next(named)
    stream = streams.open(str(tmp_path / "rows.vw"), max_errors=1)
    assert [(where.rpartition(":")[2], entries[0][0]) for where, entries in stream.named_rows()] == [("1", "a^b"), ("4", "a^c")]
    assert len(stream.errors) == 1
