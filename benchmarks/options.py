"""The command lines of the benchmarks: options of one name mean the same in all of them."""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def parser_of(text: str | None, *, data: bool = False, page: bool = False) -> argparse.ArgumentParser:
    """The parser of a benchmark with this head: ``--json``, and where asked for ``--data``, which ONLINEAR_DATA may name, and
    ``--write``."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    if data:
        named = os.environ.get("ONLINEAR_DATA")
        parser.add_argument("--data", type=Path, default=named, required=named is None, help="folder of the data sets")
    if page:
        parser.add_argument("--write", type=Path, metavar="PAGE", help="the page to put the tables into")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the figures go")
    return parser
