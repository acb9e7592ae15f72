"""Reading ahead: whatever the timing, the blocks, errors and progress are those of the stream itself, and no thread stays."""

from __future__ import annotations

import random
import threading
import time

import numpy as np
import pytest
from garbage import collected

from onlinear.rows import Rows
from onlinear.streams.ahead import Ahead, in_order
from onlinear.streams.blocks import Block, Stream, StreamError, skip
from onlinear.streams.shuffle import Shuffled
from onlinear.streams.svmlight import Svmlight

LINES = [f"{1 if i % 3 else -1} {1 + i % 7}:{i}.25 {9 + i % 5}:-1e-3\n" for i in range(1, 2000)]


def one_row(i):
    return Block(
        Rows(np.array([0, 1], np.uint64), np.array([i], np.uint32), np.ones(1)), np.ones(1), np.array([i]), ("s",), i, 1.0
    )


class Slow(Stream):
    """Ten blocks of one row, with random sleeps; ``opened`` and ``closed`` count the passes."""

    name, rereadable, task, classes, total, rows = "slow", True, None, None, 10, 10

    def __init__(self, error=None, seed=0):
        self.done = self.text_bytes = self.opened = self.closed = self.made = 0
        self.errors = []
        self.error, self.rng = error, random.Random(seed)

    def __iter__(self):
        self.opened += 1
        self.done = 0
        try:
            for i in range(10):
                time.sleep(self.rng.random() * 2e-3)
                self.made = self.done = i + 1
                self.text_bytes += 100
                if i % 4 == 3:
                    self.errors.append(f"wrong {i}")
                if self.error is not None and i == 7:
                    raise self.error
                yield one_row(i)
        finally:
            self.closed += 1


@pytest.fixture(autouse=True)
def no_thread_stays():
    before = threading.active_count()
    with collected():
        yield
    assert threading.active_count() == before


def seen(stream, sleep=None):
    """What a consumer sees at each block."""
    for block in stream:
        if sleep is not None:
            time.sleep(sleep.random() * 2e-3)
        yield int(block.lines[0]), stream.done, stream.text_bytes, list(stream.errors)


@pytest.mark.parametrize("blocks", [1, 2, 20])
@pytest.mark.parametrize("seed", range(3))
def test_blocks_progress_and_errors_are_the_streams_whatever_the_timing(blocks, seed):
    ahead, plain = Ahead(Slow(seed=seed), blocks), Slow()
    for _ in range(2):
        assert list(seen(ahead, random.Random(seed))) == list(seen(plain))
        assert (ahead.done, ahead.text_bytes, ahead.errors) == (plain.done, plain.text_bytes, plain.errors)


def test_no_more_than_the_agreed_blocks_are_made_ahead():
    inner = Slow()
    for i, _ in enumerate(Ahead(inner, 3)):
        time.sleep(0.01)
        assert inner.made <= i + 1 + 3


@pytest.mark.parametrize("error", [StreamError("a:3: expected a label."), OSError(5, "input"), KeyError("x")])
def test_an_error_arrives_as_it_is_after_the_blocks_before_it(error):
    found = []
    with pytest.raises(type(error)) as raised:
        found.extend(seen(Ahead(Slow(error))))
    assert raised.value is error
    assert [row for row, *_ in found] == list(range(7))


@pytest.mark.parametrize("blocks", [1, 4])
def test_closing_early_ends_the_thread_and_closes_the_stream(blocks):
    inner = Slow()
    passing = iter(Ahead(inner, blocks))
    next(passing)
    passing.close()
    assert (inner.opened, inner.closed) == (1, 1)
    assert inner.made <= 2 + blocks


def test_a_consumer_that_fails_ends_the_thread():
    inner = Slow()

    def consume():
        for _ in Ahead(inner):
            raise KeyboardInterrupt

    with collected(), pytest.raises(KeyboardInterrupt):
        consume()
    assert inner.closed == 1


def test_the_wait_for_a_read_that_nothing_interrupts_is_bounded(monkeypatch):
    monkeypatch.setattr("onlinear.streams.ahead.PATIENCE", 0.01)
    go_on = threading.Event()

    class Pipe(Slow):
        rereadable = False

        def __iter__(self):
            yield one_row(1)
            go_on.wait(10)

    passing = iter(Ahead(Pipe()))
    next(passing)
    began = time.perf_counter()
    passing.close()
    assert time.perf_counter() - began < 5.0
    go_on.set()
    for thread in threading.enumerate():
        if thread.name == "reading slow":
            thread.join()


def test_what_the_stream_says_of_itself_is_shown():
    inner = Slow()
    inner.labels, inner.encoding, inner.extra = ("a", "b"), {"bits": 4}, "x"
    for stream in (Ahead(inner), Shuffled(inner, 5, 0), Ahead(Shuffled(inner, 5, 0))):
        for _ in range(2):
            assert (stream.name, stream.rereadable, stream.total, stream.rows) == ("slow", True, 10, 10)
            assert (stream.labels, stream.encoding, stream.extra) == (("a", "b"), {"bits": 4}, "x")
            next(iter(stream))


def test_time_is_counted():
    ahead = Ahead(Slow(), 1)
    for _ in ahead:
        time.sleep(2e-3)
    assert ahead.timing.read > 0.0
    assert ahead.timing.full > 0.0
    assert 0.0 < ahead.timing.wait < 60.0
    assert ahead.timing.parse == 0.0
    with pytest.raises(ValueError, match="blocks must be at least 1, got 0"):
        Ahead(Slow(), 0)


def as_text(stream, errors=None):
    found = []
    try:
        for block in stream:
            starts, columns, values = (array.tolist() for array in block.rows)
            found += [
                (block.where(i), block.y[i], columns[starts[i] : starts[i + 1]], values[starts[i] : starts[i + 1]])
                for i in range(block.n)
            ]
    except StreamError as error:
        found.append(str(error))
    return found, list(stream.errors), stream.done, stream.text_bytes


@pytest.mark.parametrize("max_errors", [0, 3, 100])
@pytest.mark.parametrize("wrong", [(), (700, 701, 1500, 1999), (0,)])
def test_text_is_the_same_by_any_number_of_threads(tmp_path, wrong, max_errors):
    for name, lines in (("a", LINES), ("b", LINES[::-1])):
        (tmp_path / name).write_text("".join("junk\n" if i in wrong else line for i, line in enumerate(lines)))
    paths = (str(tmp_path / "a"), str(tmp_path / "b"))
    wanted = as_text(Svmlight(paths, max_errors=max_errors, threads=1, block_bytes=3000))
    for threads in (2, 3):
        stream = Svmlight(paths, max_errors=max_errors, threads=threads, block_bytes=3000)
        assert as_text(stream) == wanted
        assert as_text(Ahead(Svmlight(paths, max_errors=max_errors, threads=threads, block_bytes=3000))) == wanted
    assert stream.timing.parse > 0.0
    with pytest.raises(ValueError, match="threads must be at least 1, got 0"):
        Svmlight(paths, threads=0)


def test_results_come_in_order_with_errors_in_their_place():
    rng = random.Random(0)

    def slowly(i):
        time.sleep(rng.random() * 1e-3)
        if i == 12:
            raise ValueError("twelve")
        return i * i

    def numbers(last, log):
        try:
            for i in range(last):
                log.append(i)
                yield i
            raise OSError("no more")
        finally:
            log.append("closed")

    for last, error in ((9, OSError), (30, ValueError)):
        found, log = [], []
        with pytest.raises(error):
            found.extend(in_order(slowly, numbers(last, log), 3))
        assert found == [i * i for i in range(min(last, 12))]
        assert log[-1] == "closed"
        assert len(log) <= 12 + 6
    log = []
    some = in_order(slowly, numbers(30, log), 2)
    next(some)
    some.close()
    assert log == [0, 1, 2, "closed"]


@pytest.mark.parametrize("rows", [0, 1, 5, 9, 10, 11])
def test_skipping_rows(tmp_path, rows):
    path = tmp_path / "a.svm"
    path.write_text("".join(f"{i} 1:1\n" for i in range(10)))
    for size in (8, 16, 1000):
        left = [y for block in skip(Svmlight((str(path),), block_bytes=size), rows) for y in block.y.tolist()]
        assert left == list(range(rows, 10))
