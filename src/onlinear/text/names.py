"""Names of files in messages."""

from __future__ import annotations


def printable(name: str) -> str:
    """The name of a file on one line: what ends lines, or cannot be seen, is escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)
