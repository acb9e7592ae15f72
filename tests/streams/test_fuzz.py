"""Mutated text: the compiled reader and the plain reference agree, and nothing past an end is touched."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import fuzz
import numpy as np
import pytest
from fuzz import EVERY, GUARDS, Guarded, batch_text, compiled, cut, run
from reference import reference
from seldom import seldom

from onlinear.streams.numbers import LOWEST_POWER


def test_ten_thousand_lines():
    total = run(10_000, seed=2026)
    assert total.differences == ()
    assert min(total.accepted, total.refused) > 2_500, "the changes must leave lines of both kinds"


@pytest.mark.parametrize("sort", [seldom(False), True])
def test_every_block_size_and_every_number_of_skips(tmp_path, sort):
    text = batch_text(random.Random(5), 12)
    (tmp_path / "a.svm").write_bytes(text)
    path, whole = str(tmp_path / "a.svm"), reference(text, sort=sort, max_errors=EVERY)
    _, told = compiled(path, sort=sort, max_errors=EVERY)
    assert len(whole.skipped) > 2
    for size in range(1, len(text) + 2, 3 if sort else 1):  # entries are sorted when their lines are whole
        assert compiled(path, sort=sort, max_errors=EVERY, block_bytes=size) == (whole, told)
    for most in range(len(whole.skipped)):
        for size in (1, 50, len(text)):
            assert compiled(path, sort=sort, max_errors=most, block_bytes=size) == (cut(whole, most), told[: most + 1])


@pytest.mark.skipif(not GUARDS, reason="memory is protected by the calls of POSIX")
@pytest.mark.parametrize("which", ["text", "values"])
def test_an_access_past_the_end_would_be_a_crash(which):
    code = f"from fuzz import *; a = Guarded()._placed({which!r}, np.zeros(8)); ctypes.string_at(a.ctypes.data, a.nbytes + 1)"
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(fuzz.__file__).parent, capture_output=True)
    assert -done.returncode in (signal.SIGSEGV, signal.SIGBUS)


@pytest.mark.skipif(not GUARDS, reason="memory is protected by the calls of POSIX")
def test_every_beginning_of_a_line_ends_where_the_memory_does():
    line, guarded = b"+1.5e-3 qid:7.0 1:2.5\t20:-1E+5 300:123456789012345678901 4000:.5 # end\r", Guarded()
    for end in range(len(line) + 1):
        read = reference(line[:end])
        assert guarded.parse(line[:end]) == (len(read.rows), int(read.refused is not None))


def test_a_difference_is_told(monkeypatch):
    wrong = fuzz.svmlight.powers().copy()
    wrong[2 * (3 - LOWEST_POWER)] = np.nextafter(1e3, 2e3)
    monkeypatch.setattr(fuzz.svmlight, "powers", lambda: wrong)
    told: list[str] = []
    assert run(2_000, seed=1, tell=told.append).differences
    assert "the reference" in told[0]
