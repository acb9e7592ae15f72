"""Every part and every public method of one says in its docstring what it is: ``help`` shows it."""

import inspect

import pytest

from onlinear import averages, losses, penalties, schedules
from onlinear.text.describe import describe
from onlinear.text.form import parts_of

PARTS = [cls for module in (losses, penalties, schedules, averages) for cls in parts_of(vars(module)).values()]
OF_TUPLES = {"count", "index"}
METHODS = [
    (cls, name)
    for cls in PARTS
    for name in dir(cls)
    if not name.startswith("_") and name not in OF_TUPLES and inspect.isfunction(getattr(cls, name))
]


def test_there_are_parts_and_methods():
    assert len(PARTS) >= 17
    assert len(METHODS) >= 70


@pytest.mark.parametrize("cls", PARTS, ids=lambda cls: cls.__name__)
def test_a_part_describes_itself_and_its_parameters(cls):
    text = inspect.getdoc(cls)
    first, rest = text.split("\n", 1)
    assert first.endswith(".")
    assert "\nParameters\n----------\n" in rest
    for name, value in cls._field_defaults.items():
        assert f"\n{name} : {type(value).__name__}, default {value}\n    " in rest


@pytest.mark.parametrize(("cls", "name"), METHODS, ids=lambda item: item if isinstance(item, str) else item.__name__)
def test_a_method_describes_itself(cls, name):
    text = inspect.getdoc(getattr(cls, name))
    assert text
    assert text.count(".\n") + text.endswith(".") >= 1


def test_help_has_the_formula_and_what_all_losses_share():
    text = inspect.getdoc(losses.Hinge.theta)
    assert text.startswith("-y clip((margin - y a) / C, 0, 1).\n\nThe theta of the implicit step")
    assert "c : float\n" in text


def test_a_shared_text_is_added_once_and_references_stay_last():
    class Part:
        """A part.

        References
        ----------
        A book.
        """

        _field_defaults = {"k": 2.0}  # noqa: RUF012

        def at(self):
            """K."""

    describe(Part, {"k": "A number."}, {"at": "Shared."})
    assert Part.at.__doc__ == "K.\n\nShared."
    assert Part.__doc__ == (
        "A part.\n\nParameters\n----------\nk : float, default 2.0\n    A number.\n\nReferences\n----------\nA book."
    )
    again = type("Again", (), {"__doc__": "Again.", "_field_defaults": {}, "at": Part.at})
    describe(again, {}, {"at": "Shared."})
    assert Part.at.__doc__ == "K.\n\nShared."
