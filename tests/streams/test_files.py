"""Where rows come from: compressed files, patterns, standard input, bundled sets, and rows in a shuffled order."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer, load_svmlight_file

from onlinear import Learner, streams
from onlinear.streams import Shuffled, StreamError
from onlinear.streams.files import count_byte

TEXT = "".join(f"{1 if i % 3 else -1} {1 + i % 7}:{i}.25 {9 + i % 5}:-1e-3\n" for i in range(1, 5000)).encode()


def zst(content):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as file:
        file.write(content)
    return sink.getvalue().to_pybytes()


PACKERS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress, ".zst": zst}


def rows_of(stream):
    blocks = list(stream)
    y = np.concatenate([block.y for block in blocks])
    width = max(block.size for block in blocks)
    return y, np.concatenate([block.csr(width).toarray() for block in blocks])


@pytest.mark.parametrize("suffix", PACKERS)
def test_every_compression_gives_the_same_rows_twice(tmp_path, suffix):
    (tmp_path / "plain.svm").write_bytes(TEXT)
    path = tmp_path / f"a.svm{suffix}"
    path.write_bytes(PACKERS[suffix](TEXT))
    stream = streams.open(path, block_bytes=10_000)
    y, X = rows_of(streams.open(tmp_path / "plain.svm"))
    for _ in range(2):
        again_y, again_X = rows_of(stream)
        np.testing.assert_array_equal(again_y, y)
        np.testing.assert_array_equal(again_X, X)
        assert stream.done == stream.total == path.stat().st_size
    assert stream.text_bytes == 2 * len(TEXT)


@pytest.mark.parametrize("suffix", list(PACKERS)[1:])
@pytest.mark.parametrize("keep", [3, 0.5, 0.999])
def test_a_file_cut_short_is_an_error_after_the_rows_that_are_whole(tmp_path, suffix, keep):
    packed = PACKERS[suffix](TEXT)
    path = tmp_path / f"a.svm{suffix}"
    path.write_bytes(packed[: keep if keep > 1 else int(len(packed) * keep)])
    with pytest.raises(StreamError, match="damaged or cut short"):
        list(streams.open(path))


@pytest.mark.parametrize("suffix", list(PACKERS)[1:])
def test_a_file_that_is_not_what_its_name_says(tmp_path, suffix):
    path = tmp_path / f"a.svm{suffix}"
    path.write_bytes(TEXT)
    with pytest.raises(StreamError, match="damaged or cut short"):
        list(streams.open(path))


def test_several_files_and_patterns_in_order(tmp_path):
    for k in (2, 1, 3):
        (tmp_path / f"part-{k}.svm").write_text(f"{k} {k}:1\n")
    y, _ = rows_of(streams.open(tmp_path / "part-*.svm"))
    assert y.tolist() == [1, 2, 3]
    stream = streams.open([tmp_path / "part-3.svm", tmp_path / "part-1.svm"])
    assert [block.where(0) for block in stream] == [f"{tmp_path}/part-3.svm:1", f"{tmp_path}/part-1.svm:1"]


def test_standard_input_once(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT)))
    stream = streams.open("-")
    assert not stream.rereadable
    assert sum(block.n for block in stream) == 4999
    with pytest.raises(StreamError, match="cannot be read twice"):
        list(stream)


def test_wrong_names(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file at 'gone\.svm'"):
        streams.open("gone.svm")
    with pytest.raises(FileNotFoundError, match="no file matches"):
        streams.open(str(tmp_path / "*.svm"))
    with pytest.raises(FileNotFoundError, match="Did you mean 'breast-cancer'"):
        streams.open("breast-cancr")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        streams.open(tmp_path)
    with pytest.raises(ValueError, match="at least one file"):
        streams.open([])


@pytest.mark.parametrize("name", streams.BUNDLED)
def test_bundled_sets_need_no_file(name):
    stream = streams.open(name)
    y, X = rows_of(stream)
    assert stream.rows == len(y) == len(X) > 100
    assert (stream.classes is None) == (stream.task == "regress")


def test_a_bundled_set_is_scikit_learns():
    y, X = rows_of(streams.open("breast-cancer"))
    theirs = load_breast_cancer()
    np.testing.assert_array_equal(X, theirs.data)
    np.testing.assert_array_equal(y, theirs.target)


def test_shuffled_windows_are_seeded_and_do_not_depend_on_blocks(tmp_path):
    (tmp_path / "a.svm").write_bytes(TEXT)

    def orders(block_bytes, seed):
        stream = Shuffled(streams.open(tmp_path / "a.svm", block_bytes=block_bytes), 1000, seed)
        return [[int(line) for block in stream for line in block.lines] for _ in range(2)]

    first, second = orders(1 << 20, 5)
    assert orders(777, 5) == [first, second]
    assert first != second
    assert orders(1 << 20, 6)[0] != first
    generator = np.random.default_rng(5)
    wanted = np.concatenate([start + generator.permutation(min(1000, 4999 - start)) for start in range(0, 4999, 1000)])
    assert first == (wanted + 1).tolist()


def test_shuffled_rows_keep_their_file_and_line(tmp_path):
    for k in range(3):
        (tmp_path / f"{k}.svm").write_text("".join(f"{k}{i} {i + 1}:{k}{i}\n" for i in range(1, 9)))
    for block in Shuffled(streams.open(tmp_path / "*.svm"), 100, 0):
        for i in range(block.n):
            name, _, line = block.where(i).rpartition(":")
            assert name.endswith(f"{int(block.y[i]) // 10}.svm")
            assert int(line) == int(block.y[i]) % 10
            assert block.csr(10)[[i]].indices.tolist() == [int(block.y[i]) % 10]


@pytest.mark.parametrize("suffix", [".svm.xz"])
def test_real_files_are_read_as_scikit_learn_reads_them(data, suffix):
    for name in ("a9a/a9a", "spambase/spambase", "cadata/cadata"):
        path = data / f"{name}{suffix}"
        y, X = rows_of(streams.open(path))
        with lzma.open(path) as file:
            theirs, their_y = load_svmlight_file(file, n_features=X.shape[1], zero_based=False)
        np.testing.assert_array_equal(y, their_y)
        np.testing.assert_array_equal(X, theirs.toarray())


def test_a_stream_grows_a_learner_to_the_bits_of_a_known_size(tmp_path):
    (tmp_path / "a.svm").write_bytes(TEXT)
    y, X = rows_of(streams.open(tmp_path / "a.svm"))
    whole = Learner("comid,eta=0.1", "hinge", "l1,l1=1e-3", n_features=X.shape[1]).learn(X, y)
    grown = Learner("comid,eta=0.1", "hinge", "l1,l1=1e-3")
    for block in streams.open(tmp_path / "a.svm", block_bytes=50):
        grown.learn(block.X, block.y)
    np.testing.assert_array_equal(grown.weights(), whole.weights())


@pytest.mark.parametrize("size", [100, 10_000, 1 << 20])
def test_the_rows_before_the_damage_are_given(tmp_path, size):
    path = tmp_path / "a.svm.gz"
    packed = gzip.compress(TEXT * 10)
    path.write_bytes(packed[: len(packed) // 2])
    found = []
    with pytest.raises(StreamError, match="damaged or cut short"):
        found.extend(streams.open(path, block_bytes=size))
    lines = [int(line) for block in found for line in block.lines]
    assert len(lines) > 20_000
    assert lines == list(range(1, len(lines) + 1))


def test_a_source_that_gives_nothing_yet_is_no_end_of_file(monkeypatch):
    class Pipe(io.BytesIO):
        raw = property(lambda self: self)

        def readinto(self, target):
            return super().readinto(target[:100]) or None

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Pipe(TEXT)))
    with pytest.raises(StreamError, match="standard input: cannot be read to its end"):
        list(streams.open("-"))


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 1023, 1024, 1025, 5000])
def test_counting_a_byte(length):
    rng = np.random.default_rng(length)
    for text in (rng.integers(0, 256, length), rng.integers(9, 12, length), np.full(length, 10)):
        array = text.astype(np.uint8)
        for byte in (0, 10, 58, 138, 255):
            assert count_byte(array, byte) == np.count_nonzero(array == byte)
