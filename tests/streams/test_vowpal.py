"""Vowpal Wabbit text against a plain Python reading of the format, for any block size, and every way a line can be wrong."""

from __future__ import annotations

import math
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from sklearn.utils import murmurhash3_32

from onlinear import Learner, streams
from onlinear.streams import Block, StreamError

NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


class Wrong(ValueError):
    """A line that is refused."""


def number(token):
    if not NUMBER.fullmatch(token) or not math.isfinite(float(token)):
        raise Wrong
    return float(token)


def reference_line(line, bits, unlabelled):
    """Label, importance and entries of one line, in plain Python; None for a blank line."""
    line = line.removesuffix("\r")
    if not line.strip(" \t"):
        return None
    head, bar, body = line.partition("|")
    if not bar:
        raise Wrong
    tokens = [token for token in re.split("[ \t]+", head) if token]
    if tokens and (head[-1] not in " \t" or tokens[-1].startswith("'")):
        tokens.pop()
    if len(tokens) > 3 or any(token.startswith("'") for token in tokens):
        raise Wrong
    y, weight, base = [*map(number, tokens), *[math.nan, 1.0, 0.0][len(tokens) :]]
    if weight < 0 or base != 0 or (math.isnan(y) and not unlabelled):
        raise Wrong
    entries: dict[int, float] = {}
    for part in body.split("|"):
        name, *features = re.split("[ \t]+", part)
        scale, prefix = 1.0, ""
        if name:
            name, colon, text = name.partition(":")
            if not name:
                raise Wrong
            scale, prefix = number(text) if colon else 1.0, f"{name}^"
        for feature in filter(None, features):
            name, colon, text = feature.partition(":")
            if not name:
                raise Wrong
            value = number(text) if colon else 1.0
            h = murmurhash3_32((prefix + name).encode(), positive=True)
            x = scale * value * (-1.0 if h >= 2**31 else 1.0)
            if x != 0.0:
                entries[h % 2**bits] = entries.get(h % 2**bits, 0.0) + x
    if not all(map(math.isfinite, entries.values())):
        raise Wrong
    return y, weight, {j: x for j, x in sorted(entries.items()) if x != 0.0}


def reference(text, bits=18, unlabelled=False):
    """The rows as (line, label, weight, entries), and the lines that are refused."""
    rows, wrong = [], []
    for at, line in enumerate(text.split("\n"), 1):
        try:
            row = reference_line(line, bits, unlabelled)
        except Wrong:
            wrong.append(at)
        else:
            rows += [(at, *row)] if row is not None else []
    return rows, wrong


def read(stream):
    rows = []
    for block in stream:
        starts, columns, values = block.rows
        for i, (begin, end) in enumerate(pairwise(starts.astype(int))):
            entries = dict(zip(columns[begin:end].tolist(), values[begin:end].tolist(), strict=True))
            assert list(entries) == sorted(entries)
            rows.append((int(block.lines[i]), float(block.y[i]), float(block.importance[i]), entries))
    return rows


def write(folder, content):
    path = folder / "a.vw"
    path.write_bytes(content.encode())
    return path


def shown(rows):
    return repr(rows)  # nan is not equal to itself, its text is


NAMES = st.sampled_from(["a", "b", "price", "ns", "12", "1.5", "é", "x^y", "#", "'q", "word_with_some_length"])
NUMBERS = st.floats(-1e6, 1e6).map(repr) | st.sampled_from(["0", "-0", "1e-300", "123456789012345678901", "+2", ".5", "1e200"])


@st.composite
def lines(draw):
    blank = st.sampled_from([" ", "  ", "\t", " \t "])
    head = " ".join(draw(st.lists(NUMBERS, min_size=1, max_size=2)))
    tag = draw(st.sampled_from(["", "", "", " 'tag", " 'x y", " second"]))
    parts = [head + tag + draw(st.sampled_from(["", " "]))]
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.just("") | NAMES)
        name += draw(st.just("") | NUMBERS.map(lambda text: ":" + text)) if name else ""
        features = draw(st.lists(st.tuples(blank, NAMES, st.just("") | NUMBERS.map(lambda text: ":" + text)), max_size=5))
        parts.append(name + "".join(map("".join, features)) + draw(st.just("") | blank))
    return "|".join(parts)


TEXTS = st.lists(
    lines() | st.text("01.:|' \tab-+e", max_size=20) | st.sampled_from(["", " ", "1", "|", "| a", "1 |a:"]), max_size=20
)


@settings(max_examples=80)
@given(
    given_lines=TEXTS,
    newline=st.sampled_from(["\n", "\r\n"]),
    last=st.booleans(),
    size=st.integers(1, 300),
    bits=st.integers(1, 22),
    unlabelled=st.booleans(),
)
@example(["1 |a a:0.1 b|b:1e308 c:1e308 d"], "\n", True, 100, 18, False)
@example(["1 |a:123456789012345678901 b:0.1 c:123456789012345678901"], "\n", True, 100, 18, False)
@example(["1 |a:1e999", "1 |b"], "\n", True, 100, 18, False)
@example(["1 |a:123456789012345678901", "1 |b"], "\n", True, 100, 18, False)
@example(["123456789012345678901 123456789012345678901 |x"], "\n", True, 100, 18, False)
def test_any_text_reads_as_the_plain_reference_does_for_any_block_size(
    tmp_path_factory, given_lines, newline, last, size, bits, unlabelled
):
    text = newline.join(given_lines) + (newline if last else "")
    path = write(tmp_path_factory.mktemp("vw"), text)
    rows, wrong = reference(text, bits, unlabelled)
    stream = streams.open(path, hash_bits=bits, unlabelled=unlabelled, max_errors=len(wrong), block_bytes=size)
    assert shown(read(stream)) == shown(rows)
    assert [int(error.removeprefix(f"{path}:").partition(":")[0]) for error in stream.errors] == wrong
    if wrong:
        before: list[Block] = []
        with pytest.raises(StreamError, match=f":{wrong[0]}: expected "):
            before.extend(streams.open(path, hash_bits=bits, unlabelled=unlabelled, block_bytes=size))
        assert [int(line) for block in before for line in block.lines] == [row[0] for row in rows if row[0] < wrong[0]]


COSTS = "; labels with costs, of Vowpal Wabbit's reductions and bandits, are not read"
ERRORS = [
    ("x |a b", "a label (a number), got 'x'"),
    ("1:2 |a b", f"a label (a number), got '1:2'{COSTS}"),
    ("shared |a", f"a label (a number), got 'shared'{COSTS}"),
    ("nan |a b", "a finite number, got 'nan'"),
    ("1e999 |a b", "a finite number, got '1e999'"),
    ("1 x |a b", "an importance (a number), got 'x'"),
    ("1 -2 |a b", "an importance of 0 or more, got '-2'"),
    ("1 2 0.5 |a b", "no base (initial prediction) but 0, got '0.5'"),
    ("1 2 0 4 |a b", "a tag or '|' after label, importance and base, got '4'"),
    ("1 'tag 2 |a b", "'|' after the tag, got '2'"),
    ("1 2", "'|' before the features, got the end of the line"),
    ("|a b", "a label, got none"),
    ("1|a b", "a label, got the tag '1' (a blank before '|' makes it a label)"),
    ("1 |:2 b", "a namespace's name or a blank after '|', got ':2'"),
    ("1 |a:x b", "the namespace's scale (a number), got 'x'"),
    ("1 |a :2", "a feature's name before ':', got ':2'"),
    ("1 |a b:", "a number after 'name:', got the end of the line"),
    ("1 |a b:c", "a number after 'name:', got 'c'"),
    ("1 |a b:1:2", "a number after 'name:', got '1:2'"),
    ("1 |a b:inf", "a finite number, got 'inf'"),
    ("1 |a b:1e999", "a finite number, got '1e999'"),
    ("1 |a:1e200 b:1e200", "features with finite values and sums, got infinity"),
    ("1 |a b:1e308 b:1e308", "features with finite values and sums, got infinity"),
]


@pytest.mark.parametrize(("line", "message"), ERRORS, ids=[line for line, _ in ERRORS])
@pytest.mark.parametrize("last", ["", "\n", "\n1 |a b\n"], ids=["end", "newline", "more"])
def test_wrong_lines_are_refused_with_their_place(tmp_path, line, message, last):
    path = write(tmp_path, "1 |a b\n\n-1 |a c\n" + line + last)
    found = []
    with pytest.raises(StreamError) as error:
        found.extend(streams.open(path))
    assert str(error.value) == f"{path}:4: expected {message}."
    assert sum(block.n for block in found) == 2, "the rows before the wrong line are given first"


def test_what_the_stream_says_of_itself(tmp_path):
    path = write(tmp_path, "1 |a b\n1 |a c\n")
    stream = streams.open(path)
    assert stream.encoding == {"version": 1, "format": "vw", "hash_bits": 18, "seed": 0}
    assert (stream.labels, stream.classes, stream.rows, stream.total) == (None, None, None, path.stat().st_size)
    assert [block.weights for block in stream] == [None]
    assert stream.done == stream.total
    (path.parent / "b.vw").write_text("|a b\n")
    (block,) = streams.open(path.parent / "b.vw", encoding=stream.encoding)
    assert np.isnan(block.y).all()
    with pytest.raises(StreamError, match="expected a label, got none"):
        list(streams.open(path.parent / "b.vw", encoding=stream.encoding, unlabelled=False))


@pytest.mark.parametrize("bits", [0, 31, 2.5, "18"])
def test_hash_bits_out_of_range(tmp_path, bits):
    with pytest.raises(ValueError, match="hash_bits must be a whole number from 1 to 30"):
        streams.open(write(tmp_path, "1 |a b\n"), hash_bits=bits)


def test_another_kind_of_file_is_named(tmp_path):
    path = tmp_path / "a.vw"
    path.write_bytes(b"PAR1" + bytes(100))
    with pytest.raises(StreamError, match="expected Vowpal Wabbit text, got what looks like a Parquet file"):
        list(streams.open(path))


def test_weighted_words_are_learnt(tmp_path):
    """Words that decide the label are found; the importance reaches the learner as a weight."""
    rng = np.random.default_rng(0)
    rows = [rng.choice(50, 8, replace=False) for _ in range(400)]
    text = "".join(f"{1 if row.min() < 5 else -1} 2 |text {' '.join(f'w{k}' for k in row)}\n" for row in rows)
    (block,) = streams.open(write(tmp_path, text))
    assert block.weights.tolist() == [2.0] * 400
    learner = Learner("comid,eta=0.1", "hinge", "l1,l1=1e-3").learn(block.X, block.y, block.weights)
    assert roc_auc_score(block.y, learner.predict(block.X)) > 0.95
