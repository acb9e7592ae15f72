"""Mutated data files are refused in words or read: no crash, no hang, little memory, no raw error."""

from __future__ import annotations

import os

import input_mutants
import pytest
from input_mutants import CRASH, HANG, HARM, LARGE, RAW, READ, REFUSED, run

pytestmark = pytest.mark.skipif(os.name == "nt", reason="limits of memory are set by the calls of POSIX")


def test_a_few_hundred_mutants():
    told: list[str] = []
    total = run(300, seed=7, tell=told.append)
    assert not any(total[kind] for kind in HARM), told
    assert min(total[REFUSED], total[READ]) > 40, "the changes must leave files of both kinds"
    assert told[-1].endswith("0 crashes, 0 hangs, 0 over 1 GB, 0 raw errors")


CODE = """
import ctypes, os, sys, time
import input_mutants as m
def harm(path, options):
    n = int(sys.argv[sys.argv.index("--first") + 1]) + harm.count
    harm.count += 1
    if n == 1: ctypes.string_at(0)
    if n == 3: time.sleep(600)
    m.MOST = 1 if n == 5 else 1 << 60
    return (m.RAW, "KeyError") if n == 7 else (m.READ, "")
harm.count = 0
m.outcome = harm
m.main()
"""


@pytest.mark.exhaustive
def test_every_harm_would_be_told(tmp_path, monkeypatch):
    (tmp_path / "child.py").write_text(CODE)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([os.path.dirname(input_mutants.__file__), os.environ.get("PYTHONPATH", "")])
    )
    monkeypatch.setattr(input_mutants, "__file__", str(tmp_path / "child.py"))
    found = {outcome.number: outcome.kind for outcome in input_mutants.outcomes(0, 0, 9, patience=5.0)}
    large = {5: LARGE} if os.path.exists("/proc/self/clear_refs") else {}
    assert found == dict.fromkeys(range(9), READ) | {1: CRASH, 3: HANG, 7: RAW} | large
