"""Examples in docstrings run, and public methods of public classes say what they take, give and raise."""

import doctest
import inspect
from importlib import import_module

import pytest

import onlinear

CLASSES = [onlinear.Learner, onlinear.OnlineClassifier, onlinear.OnlineRegressor, onlinear.PenaltyPath]
METHODS = ("fit", "partial_fit", "predict", "learn", "learn_one", "solve", "weights", "intercept", "objective", "save", "load")


@pytest.mark.parametrize(
    "name", ["learner.learner", "models.classifier", "models.regressor", "models.estimators", "models.path"]
)
def test_examples_run(name):
    found = doctest.testmod(import_module(f"onlinear.{name}"))
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("public", CLASSES)
def test_every_argument_is_described(public):
    described = inspect.getdoc(public)
    for name in inspect.signature(public).parameters:
        assert f"\n{name} : " in described, f"{public.__name__}: {name}"
    for section in ("Parameters", "Attributes", "Examples"):
        assert f"\n{section}\n---" in described, f"{public.__name__} lacks {section}"


@pytest.mark.parametrize("public", CLASSES)
def test_methods_have_sections(public):
    for method in filter(None, (getattr(public, name, None) for name in METHODS)):
        described = inspect.getdoc(method)
        for name in inspect.signature(method).parameters:
            assert name in ("self", "cls") or name in described, f"{method.__qualname__}: {name}"
        wanted = ["Parameters", "Raises"] + ([] if inspect.signature(method).return_annotation == "None" else ["Returns"])
        for section in wanted:
            assert f"\n{section}\n---" in described, f"{method.__qualname__} lacks {section}"
