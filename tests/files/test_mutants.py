"""A thousand mutated model files and checkpoints, in processes of their own: refused, diverged or working, never harmful."""

from __future__ import annotations

import os

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


def test_mutated_files_do_no_harm():
    import mutants

    harmful = []
    total = mutants.fuzz(1000, 0, lambda found: harmful.extend(outcome for outcome in found if outcome.kind in mutants.HARM))
    assert not harmful, f"{harmful[0]} (python tests/tools/mutants.py --only {harmful[0].number})"
    assert total[mutants.WORKS] > 100, "mutants that come further than the first check"
    assert total[mutants.DIVERGED] > 0
