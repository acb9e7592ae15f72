"""Examples in docstrings run, and what public names say of what they take, give and raise is what their signatures say."""

import doctest
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import onlinear

CLASSES = [onlinear.Learner, onlinear.OnlineClassifier, onlinear.OnlineRegressor, onlinear.PenaltyPath]
METHODS = ("fit", "partial_fit", "predict", "learn", "learn_one", "solve", "weights", "intercept", "objective", "save", "load")
ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
EXTRAS = ("dask", "river")  # rooms that import what is not always installed
WITH_EXAMPLES = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in SOURCE.rglob("*.py")
    if ">>> " in path.read_text()
)
REFERENCE = sorted(
    {name for page in ROOT.glob("docs/reference/*.md") for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)}
    | {"onlinear.river"}
)


def module_of(name):
    """The module, or a skip where it needs what is not installed."""
    extra = name.split(".")[1] if "." in name else ""
    return pytest.importorskip(name, exc_type=ImportError) if extra in EXTRAS else import_module(name)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = doctest.testmod(module_of(name))
    assert found.attempted > 0
    assert found.failed == 0


def documented(name):
    """The public objects under a name of the reference: a class with its own methods, a function, or all of a module."""
    parts = name.split(".")
    homes = [k for k in range(1, len(parts) + 1) if (SOURCE / "/".join(parts[:k])).with_suffix(".py").exists()]
    homes += [k for k in range(1, len(parts) + 1) if (SOURCE / "/".join(parts[:k])).is_dir()]
    found = module_of(".".join(parts[: max(homes)]))
    for part in parts[max(homes) :]:
        found = getattr(found, part)
    if inspect.ismodule(found):
        own = (value for value in vars(found).values() if inspect.isclass(value) or inspect.isfunction(value))
        tops = [value for value in own if value.__module__ == found.__name__]
    else:
        tops = [found]
    for top in tops:
        yield top
        if inspect.isclass(top):
            members = [inspect.getattr_static(top, member) for member in dir(top) if not member.startswith("_")]
            yield from (member for member in members if inspect.isfunction(member))


def described_parameters(described):
    """What a docstring says of each parameter, in its order: the text behind the name, empty where several share one."""
    _, _, section = described.partition("Parameters\n----------\n")
    for line in re.split(r"\n\n\S[^\n]*\n-{3,}\n", "\n\n" + section)[0].splitlines():
        if line and not line[0].isspace():
            names, _, kind = line.partition(" : ")
            shared = names.split(", ")
            yield from ((each.lstrip("*"), kind if len(shared) == 1 else "") for each in shared)


def default_in(kind):
    """The default that a description names, as text; ``optional`` stands for None."""
    named = re.search(r"\bdefault[= ](.+)$", kind)
    if named:
        return named[1].replace('"', "'")
    return "None" if kind.endswith("optional") else repr(inspect.Parameter.empty)


@pytest.mark.parametrize("name", REFERENCE)
def test_parameters_are_those_of_the_signature(name):
    for public in documented(name):
        described = list(described_parameters(inspect.getdoc(public) or ""))
        if not described:
            continue
        takes = {each: what for each, what in inspect.signature(public).parameters.items() if each not in ("self", "cls")}
        assert [each for each, _ in described] == list(takes), public
        for each, kind in described:
            if kind and takes[each].kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
                assert default_in(kind) == repr(takes[each].default), f"{public}: {each} : {kind}"


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


def diverged(regress):
    """A model whose state is not finite, and the rows that it was trained on."""
    settings = {"solver": "sgd,eta=1e8", "scale": "none", "average": "none", "penalty": "l2=1e-3"}
    model = onlinear.OnlineRegressor(**settings) if regress else onlinear.OnlineClassifier("exponential", **settings)
    X, y = [[1.0, 2.0], [3.0, -1.0]] * 50, [1.0, 0.0] * 50
    with pytest.raises(onlinear.DivergenceError):
        model.partial_fit(X, y) if regress else model.partial_fit(X, y, classes=[0, 1])
    return model, X, y


@pytest.mark.parametrize("regress", [True, False])
def test_methods_say_that_they_raise_where_the_state_is_not_finite(regress, tmp_path):
    model, X, y = diverged(regress)
    arguments = dict.fromkeys(("predict", "predict_proba", "predict_log_proba", "decision_function"), (X,))
    arguments |= {name: ([0], [1.0]) for name in ("predict_one", "predict_proba_one")}
    arguments |= dict.fromkeys(("score", "duality_gap", "partial_fit"), (X, y))
    arguments |= {"save": (tmp_path / "model",), "learn_one": (([0], [1.0]), 1.0), "explain": (([0], [1.0]),)}
    for name in filter(lambda name: hasattr(model, name), arguments):
        with pytest.raises(onlinear.DivergenceError):
            getattr(model, name)(*arguments[name])
        assert "\nDivergenceError\n" in inspect.getdoc(getattr(model, name)), name
