"""The delimiter that the names of a CSV file suggest, where another one was asked for."""

from __future__ import annotations

from collections.abc import Sequence

TAB, TYPED_TAB = "\t", r"\t"
BLANK = " "
OTHERS = (TAB, ";", "|", ",")
MANY_BLANKS = "several blanks in a row must become one: tr -s ' '"


def delimiter_within(names: Sequence[str]) -> str | None:
    """What most likely separates the names that were read as the name of one column; None where nothing does."""
    if len(names) != 1:
        return None
    blank = BLANK if BLANK in names[0].strip() else None
    return max((text for text in OTHERS if text in names[0]), key=names[0].count, default=blank)


def as_delimiter(text: str | None) -> str | None:
    """A delimiter as it was asked for: the two characters that stand for a tab are one. Raises ValueError for what is none."""
    found = TAB if text == TYPED_TAB else text
    wanted = isinstance(found, str) and len(found) == 1 and found.isascii() and found not in '"\r\n\0'
    if found is not None and not wanted:
        raise ValueError(f"delimiter must be one ASCII character, and no quote or line end, got {text!r}.")
    return found


def typed(text: str) -> str:
    """A delimiter as it can be typed and copied."""
    return TYPED_TAB if text == TAB else text
