"""Hundreds of mutated model files and checkpoints, in processes of their own: refused, diverged or working, never harmful."""

from __future__ import annotations

import os

import pytest
from seldom import seldom

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.mark.parametrize(("count", "seed", "every"), [(300, 2, 10), seldom(5000, 1, 1)])
def test_mutated_files_do_no_harm(count, seed, every):
    import mutants

    harmful = []
    total = mutants.fuzz(
        count, seed, lambda found: harmful.extend(outcome for outcome in found if outcome.kind in mutants.HARM), every
    )
    assert not harmful, f"{harmful[0]} (python tests/tools/mutants.py --only {harmful[0].number} --seed {seed} --every {every})"
    assert total[mutants.WORKS] > count // 10, "mutants that come further than the first check"
    assert total[mutants.DIVERGED] > 0
