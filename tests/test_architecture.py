"""The page on the architecture names what exists, and its picture is the one that the imports give."""

import pkgutil
import re

import arrows
import family
import numpy as np
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


def test_arrows_pass_between_boxes_and_apart():
    gaps = arrows.Gaps([100.0, 300.0], size=150.0, gap=50.0)
    assert gaps.pass_near(20.0) == 20.0, "where no box is an arrow goes straight on"
    assert [gaps.pass_near(wanted) for wanted in (180.0, 190.0, 200.0, 210.0)] == [269.0, 275.0, 281.0, 81.0]


@pytest.mark.parametrize("picture", [rooms, family], ids=["rooms", "family"])
def test_no_arrow_passes_behind_a_box(picture):
    text = picture.drawn()
    boxes = np.array(re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="(\d+)" height="(\d+)"', text), float)
    curves = re.findall(r'<path d="(M[^"]+)" fill="none"', text)
    paths = [np.array(re.findall(r"[\d.]+", curve), float).reshape(-1, 2) for curve in curves]
    assert len(boxes) > 15
    assert len(paths) > 15
    for path in paths:
        for k in range(0, len(path) - 1, 3):
            x, y = bezier(path[k : k + 4])[:, :, None]
            left, top, wide, high = boxes.T[:, None, :]
            assert not np.any((left < x) & (x < left + wide) & (top < y) & (y < top + high))


def bezier(corners):
    """Points along a cubic curve, as (2, points)."""
    t = np.linspace(0.01, 0.99, 99)
    shares = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3
    return corners.T @ np.array(shares)
