"""Where rows come from: compressed files, patterns, standard input, bundled sets, and rows in a shuffled order."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
import threading
import zlib

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer, load_svmlight_file

from onlinear import Learner, OnlineClassifier, streams
from onlinear.streams import Shuffled, StreamError
from onlinear.streams.files import BEGIN, ByteFile, Members, count_byte
from onlinear.streams.holdout import Marked

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
    path, other = tmp_path / f"a.svm{suffix}", ".xz" if suffix == ".gz" else ".gz"
    for content, kind in ((TEXT, "text"), (PACKERS[other](TEXT), f"a {other} file")):
        path.write_bytes(content)
        with pytest.raises(StreamError, match=f"is not compressed as its name says: it begins as {kind}. Rename it"):
            list(streams.open(path))
    path.write_bytes(b"\xff" + TEXT)
    with pytest.raises(StreamError, match="damaged or cut short"):
        list(streams.open(path))


@pytest.mark.parametrize("name", ["a.svm", "a.svm.gz"])
def test_an_error_of_the_disk_is_no_wrong_name(tmp_path, name):
    (tmp_path / name).write_bytes(TEXT if name == "a.svm" else gzip.compress(TEXT))
    file = ByteFile(str(tmp_path / name))

    class Broken(io.RawIOBase):
        def readinto(self, target):
            raise OSError(5, "Input/output error")

    file._file = Broken()
    with pytest.raises(StreamError, match=r"cannot be read to its end, .*Input/output error"):
        file.readinto(memoryview(bytearray(8)))
    file.close()


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


# --- pipes -----------------------------------------------------------------------------------------------------------

needs_fifos = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no FIFOs")


def fifo(path, content):
    """A FIFO into which another thread writes."""
    os.mkfifo(path)
    threading.Thread(target=path.write_bytes, args=(content,), daemon=True).start()
    return path


@needs_fifos
@pytest.mark.parametrize("packer", PACKERS.values())
def test_a_fifo_gives_its_rows_once_and_its_first_bytes_tell_how_they_are_packed(tmp_path, packer):
    (tmp_path / "plain.svm").write_bytes(TEXT)
    stream = streams.open(fifo(tmp_path / "pipe", packer(TEXT)))
    assert (stream.rereadable, stream.total) == (False, None)
    for found, wanted in zip(rows_of(stream), rows_of(streams.open(tmp_path / "plain.svm")), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert stream.text_bytes == len(TEXT)
    with pytest.raises(StreamError, match="pipe: a pipe cannot be read twice; several passes need a file"):
        list(stream)


@needs_fifos
def test_other_formats_from_a_fifo(tmp_path):
    csv = streams.open(fifo(tmp_path / "a", gzip.compress(b"y,x\n1,2\n0,3\n")), format="csv", target="y")
    assert rows_of(csv)[1].tolist() == [[2], [3]]
    with pytest.raises(StreamError, match="a pipe cannot be read twice"):
        list(csv)
    vw = streams.open(fifo(tmp_path / "b", b"1 | a b\n"), format="vw")
    assert sum(block.n for block in vw) == 1
    for name in ("c.parquet", "d.arrow"):
        os.mkfifo(tmp_path / name)
        with pytest.raises(StreamError, match=rf"{name} is a pipe and cannot be read as .* from the end of a file"):
            streams.open(tmp_path / name, target="y")


@needs_fifos
def test_a_pipe_among_files(tmp_path):
    (tmp_path / "a.csv").write_text("y,x\n1,2\n")
    for order in (["a.csv", "p.csv"], ["p.csv", "a.csv"]):
        (tmp_path / "p.csv").unlink(missing_ok=True)
        fifo(tmp_path / "p.csv", b"y,x\n0,3\n")
        y, _ = rows_of(streams.open([tmp_path / name for name in order], target="y"))
        assert y.tolist() == ([1, 0] if order[0] == "a.csv" else [0, 1])


def test_packed_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT))))
    assert sum(block.n for block in streams.open("-")) == 4999


@needs_fifos
def test_several_passes_over_a_pipe_are_refused_before_the_first(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(StreamError, match="cannot be read twice, as a pipe or an iterator gives its rows once"):
        OnlineClassifier(passes=2).fit(streams.open(tmp_path / "pipe"))


# --- sources that change ---------------------------------------------------------------------------------------------

FORMS = {"a.svm": TEXT, "a.svm.gz": gzip.compress(TEXT), "a.csv": b"y,a,b\n" + b"1,2,3\n0,5,7\n" * 500}


def changed(name, change):
    text = gzip.decompress(FORMS[name]) if name.endswith(".gz") else FORMS[name]
    lines = text.splitlines(keepends=True)
    lines = {
        "shorter": lines[:300],
        "longer": [*lines, lines[-1]],
        "another value": [*lines[:-1], lines[-1].replace(b"5", b"6", 1).replace(b"7", b"8", 1)],
        "another label": [*lines[:-1], (b"1" if lines[-1][:1] == b"0" else b"0") + lines[-1].lstrip(b"-")[1:]],
        "rows in another order": [lines[0], *lines[2:], lines[1]],
    }[change]
    return gzip.compress(b"".join(lines)) if name.endswith(".gz") else b"".join(lines)


@pytest.mark.parametrize("change", ["shorter", "longer", "another value", "another label", "rows in another order"])
@pytest.mark.parametrize("name", FORMS)
def test_a_source_that_changes_between_passes_is_refused_by_name(tmp_path, name, change):
    path, options = tmp_path / name, {"target": "y"} if name == "a.csv" else {}
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / name).write_bytes(FORMS[name])
    path.write_bytes(FORMS[name])
    stream = streams.open([tmp_path / "b" / name, path], **options)
    rows = sum(block.n for block in stream) // 2
    assert sum(block.n for block in stream) == 2 * rows
    path.write_bytes(changed(name, change))
    got = {"shorter": "got (299|300)", "longer": f"got {rows + 1:,} or more"}.get(change, "got as many with other labels")
    with pytest.raises(StreamError, match=rf"{tmp_path}/{name}: expected the {rows:,} rows of the first pass again, {got}"):
        list(stream)


def test_what_was_learnt_before_a_source_changed_is_kept(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(TEXT)

    def change(progress):
        if progress.rows >= 4999:
            path.write_bytes(b"".join(TEXT.splitlines(keepends=True)[:100]))

    model = OnlineClassifier(passes=3, shuffle=None, solver="comid,eta=0.1", callbacks=[change])
    with pytest.raises(
        StreamError, match=r"a\.svm: expected the 4,999 rows of the first pass again, got .*Rows learned before"
    ):
        model.fit(streams.open(path, block_bytes=1 << 30))
    assert model.t_ > 4999


def test_a_shuffled_stream_that_is_read_again_is_no_change(tmp_path):
    (tmp_path / "a.svm").write_bytes(TEXT)
    stream = Shuffled(Marked(streams.open(tmp_path / "a.svm", block_bytes=5000), 0.1), 700, 0)
    for _ in range(3):
        assert sum(block.n for block in stream) == 4999
    next(iter(stream))  # left in the middle
    assert sum(block.n for block in stream) == 4999


# --- names -----------------------------------------------------------------------------------------------------------


def test_wrong_names(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no file at 'gone\.svm'"):
        streams.open("gone.svm")
    with pytest.raises(FileNotFoundError, match="no file matches"):
        streams.open(str(tmp_path / "*.svm"))
    with pytest.raises(FileNotFoundError, match="Did you mean 'breast-cancer'"):
        streams.open("breast-cancr")
    with pytest.raises(FileNotFoundError, match=r"no file at 'wine'\. The data set 'wine' is read by itself, and without"):
        streams.open("wine", format="csv")
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


@pytest.mark.parametrize(
    "option", [{"features": ["a"]}, {"target": "y"}, {"bins": ["a=3"]}, {"missing": "omit"}, {"hash_bits": 9}]
)
def test_a_bundled_set_has_no_options(option):
    with pytest.raises(ValueError, match=f"{next(iter(option))} is for files and tables; the data set 'wine' is as it is"):
        streams.open("wine", **option)


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


def packed_by(pack, *members):
    return b"".join(member if member.strip(b"\0") == b"" else pack(member) for member in members)


class Dripping(io.BytesIO):
    """A file that gives a few bytes at a time."""

    def read(self, size=-1):
        return super().read(min(size, 7) if size > 0 else size)


OF_MEMBERS = {".gz": gzip, ".bz2": bz2, ".xz": lzma}
WRONG = zlib.error, EOFError, OSError, lzma.LZMAError


@pytest.mark.parametrize("suffix", OF_MEMBERS)
@pytest.mark.parametrize("piece", [1, 100, 1 << 18])
@pytest.mark.parametrize("kind", [io.BytesIO, Dripping])
@pytest.mark.parametrize(
    "members",
    [
        (b"",),
        (TEXT[:9000],),
        (b"a\n", TEXT[:5000], b"b"),
        (TEXT[:100], b"\0" * 300, TEXT[:70], b"\0"),
        (b"1\n",) * 300,
        (bytes([0, 1]),),
    ],
)
def test_members_are_read_as_python_reads_them(members, kind, piece, suffix):
    packed = packed_by(OF_MEMBERS[suffix].compress, *members)
    file, room, found = Members(kind(packed), BEGIN[suffix]), bytearray(piece), b""
    while count := file.readinto(memoryview(room)):
        found += room[:count]
    assert found == b"".join(OF_MEMBERS[suffix].decompress(OF_MEMBERS[suffix].compress(m)) for m in members if m.strip(b"\0"))


@pytest.mark.parametrize("suffix", OF_MEMBERS)
def test_a_file_cut_anywhere_or_damaged_is_an_error_and_nothing_else(suffix):
    pack, begin = OF_MEMBERS[suffix].compress, BEGIN[suffix]
    packed = packed_by(pack, TEXT[:700], b"\0\0", TEXT[:50])
    second = len(pack(TEXT[:700]))
    for end in range(1, len(packed)):
        if second <= end <= second + 2:
            continue  # a whole member, or zeros behind it
        with pytest.raises(EOFError, match="it ends within a member"):
            Members(io.BytesIO(packed[:end]), begin).readall()
    for place in range(len(packed)):
        damaged = bytearray(packed)
        damaged[place] ^= 0x55
        try:
            found = Members(io.BytesIO(bytes(damaged)), begin).readall()
        except WRONG:
            continue
        assert found == TEXT[:700] + TEXT[:50]  # the time in the header of gzip, and bits behind the end of bzip2, say nothing
    for behind in (b"hello", b"\0\0hello", packed[:2]):
        with pytest.raises(WRONG):
            Members(io.BytesIO(packed + behind), begin).readall()


@pytest.mark.parametrize("suffix", OF_MEMBERS)
def test_rows_behind_a_damaged_member_are_not_lost_without_a_word(tmp_path, suffix):
    path, packed = tmp_path / f"a.svm{suffix}", OF_MEMBERS[suffix].compress(TEXT)
    path.write_bytes(packed + b"?" + packed[1:])
    found = []
    with pytest.raises(StreamError, match="damaged or cut short"):
        found.extend(streams.open(path))
    assert sum(block.n for block in found) == 4999


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz", ".zst"])
def test_a_compressed_file_without_bytes_is_cut_short(tmp_path, suffix):
    path = tmp_path / f"rows.svm{suffix}"
    path.write_bytes(b"")
    with pytest.raises(streams.StreamError, match=r"damaged or cut short \(it has no bytes\)"):
        list(streams.open(path))
