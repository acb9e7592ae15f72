"""The outcome of an experiment."""

from __future__ import annotations

from dataclasses import dataclass, field

from onlinear.papers.claims import Judged
from onlinear.papers.experiments import Experiment
from onlinear.papers.study import Study


@dataclass
class Outcome:
    """An experiment, and either its study or why there is none."""

    experiment: Experiment
    study: Study | None = None
    claims: list[Judged] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)
    failed: str = ""
    wall: float = 0.0  # of all its work, kept or done now
    cpu: float = 0.0  # of learning alone
