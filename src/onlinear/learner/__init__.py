"""The learner, and what it is made of: its parts as text and in files, running units, single rows.

``Learner`` is public; the modules are not.
"""

from __future__ import annotations

from onlinear.learner.learner import Learner, _thawed

__all__ = ["Learner", "_thawed"]
