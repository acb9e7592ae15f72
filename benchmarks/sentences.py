"""Sentences of the documentation inside SciPy and scikit-learn, as they are installed, and which of the two each is from."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pandas as pd
import scipy
import sklearn


def sentences() -> pd.DataFrame:
    """The columns ``text`` and ``of``: small letters, 4 to 30 words, without the names of the packages, each sentence once."""
    found = {"scipy": _of_package(scipy), "sklearn": _of_package(sklearn)}
    frame = pd.DataFrame([(text, name) for name, texts in found.items() for text in texts], columns=["text", "of"])
    return frame[~frame["text"].str.contains("scipy|sklearn|scikit|learn")].reset_index(drop=True)


def _of_package(package: ModuleType) -> list[str]:
    kept: dict[str, None] = {}
    for path in sorted(Path(str(package.__file__)).parent.glob("*/*.py")):
        for text in re.findall(r'"""(.*?)"""', path.read_text(encoding="utf-8"), re.DOTALL):
            for sentence in re.split(r"\.\s|\n\s*\n|:\n", text):
                words = re.findall(r"[A-Za-z]+", sentence.lower())
                if 4 <= len(words) <= 30:
                    kept[" ".join(words)] = None
    return list(kept)
