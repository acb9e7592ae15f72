"""The page on the architecture names what exists, and its picture is the one that the imports give."""

import pkgutil
import re

import family
import pytest
import rooms

PAGE = (rooms.ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
NAMES = sorted(set(re.findall(r"`((?:cli|streams|training|models|learner|solvers|files|rows|compiled)(?:\.\w+)+)`", PAGE)))


def test_the_picture_is_that_of_the_imports():
    assert rooms.PICTURE.read_text(encoding="utf-8") == rooms.drawn(), "python tests/tools/rooms.py draws it again"


def test_every_room_has_its_line():
    table = re.findall(r"^\| `([\w/]+)` \|", PAGE, re.MULTILINE)
    assert sorted(table) == sorted(rooms.rooms())


def test_the_page_names_functions():
    assert len(NAMES) > 20


@pytest.mark.parametrize("name", NAMES)
def test_what_the_page_names_exists(name):
    assert pkgutil.resolve_name(f"onlinear.{name}") is not None


def test_rooms_on_a_circle_are_refused():
    with pytest.raises(ValueError, match="rooms on a circle, or above one: a, b, c"):
        rooms.floors({"a": {"b"}, "b": {"a"}, "c": {"a"}, "d": set()})


def test_the_picture_of_the_family_is_that_of_its_table():
    assert len(family.cases()) == family.PAGE.read_text(encoding="utf-8").count("`tests/") > 20
    assert family.PICTURE.read_text(encoding="utf-8") == family.drawn(), "python tests/tools/family.py draws it again"


def test_methods_that_are_cases_of_one_another_are_refused():
    with pytest.raises(ValueError, match="cases of one another: a, b"):
        family.columns([family.Case("a", "b", ""), family.Case("b", "a", "")])
