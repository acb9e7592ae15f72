"""Names of files and options in messages and commands."""

from __future__ import annotations


def as_argument(name: str) -> str:
    """The name of a file as an argument of a command, which takes a leading hyphen for an option."""
    return f"./{name}" if name.startswith("-") and name != "-" else name


def printable(name: str) -> str:
    """The name of a file on one line: what ends lines, or cannot be seen, is escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in name)


def option_of(name: str) -> str:
    """The command's option for a setting, such as --hash-bits; --from says where a model starts."""
    return "--from" if name == "start" else f"--{name.replace('_', '-')}"
