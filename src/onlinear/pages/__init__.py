"""Pages of HTML that stand alone: templates that escape what they are given, and figures as SVG within the page."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import resources
from importlib.util import find_spec
from typing import Any

NEEDED = ("jinja2", "matplotlib")


def lacking() -> list[str]:
    """The packages that pages need and that are not installed."""
    return [name for name in NEEDED if find_spec(name) is None]


def templates(package: str, **filters: Callable[..., Any]) -> Any:
    """The templates of a package, which escape all that they are given."""
    from jinja2 import Environment, FunctionLoader

    home = resources.files(package)
    found = Environment(
        loader=FunctionLoader(lambda name: (home / name).read_text(encoding="utf-8")), autoescape=True, trim_blocks=True
    )
    found.filters.update(filters)
    return found


def unique(svg: str, name: str) -> str:
    """The SVG with its ids made the page's own, so that several can stand in one page, and without a size of its own."""
    svg = re.sub(r'id="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    return re.sub(
        r'<svg([^>]*?) width="[^"]+"', r"<svg\1", re.sub(r'<svg([^>]*?) height="[^"]+"', r"<svg\1", svg, count=1), count=1
    )
