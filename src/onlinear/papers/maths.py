"""Formulas of experiments, which are plain text, set as HTML."""

from __future__ import annotations

import re
from typing import Any

WORDS = {
    "theta": "θ",
    "eta0": "η<sub>0</sub>",
    "eta": "η",
    "rho": "ρ",
    "lambda": "λ",
    "lam": "λ",
    "mu": "μ",
    "gamma": "γ",
    "sigma": "σ",
    "delta": "δ",
    "epsilon": "ε",
    "eps": "ε",
}
GREEK = re.compile(rf"\b({'|'.join(WORDS)})(?=\b|_)")
LOWERED = re.compile(r"(?<=\w)_(?:\{([^}]+)\}|\((\w[+-]\w)\)|([A-Za-z0-9])(?!\w))")


def maths(text: str) -> Any:
    """A text as HTML with its formulas set: 2^14, w_{t+1}, eta0, sqrt T, <=."""
    from markupsafe import Markup, escape

    found = str(escape(text)).replace("&lt;=", "≤").replace("&gt;=", "≥")
    found = re.sub(r"\bsqrt(?: (\w)|\((\w)\))", lambda root: f"√{root[1] or root[2]}", found)
    found = GREEK.sub(lambda word: WORDS[word[1]], found)
    found = re.sub(r"\^(?:\{([^}]+)\}|(-?\d+(?:\.\d+)?|-?\w+|\*))", lambda power: f"<sup>{power[1] or power[2]}</sup>", found)
    found = LOWERED.sub(lambda low: f"<sub>{low[1] or low[2] or low[3]}</sub>", found)
    return Markup(found)
