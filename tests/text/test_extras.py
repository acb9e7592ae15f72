"""Packages that only a part of the library needs: where one is missing, the error says what to install."""

from __future__ import annotations

import sys
from importlib import import_module

import numpy as np
import pytest

from onlinear import OnlineClassifier
from onlinear.text.extras import needed_by


@pytest.mark.parametrize(("module", "lacks"), [("dask", "dask"), ("dask", "distributed"), ("river", "river")])
def test_a_module_of_an_extra_names_it(module, lacks, monkeypatch):
    monkeypatch.setitem(sys.modules, lacks, None)
    monkeypatch.delitem(sys.modules, f"onlinear.{module}", raising=False)
    with pytest.raises(ModuleNotFoundError) as caught:
        import_module(f"onlinear.{module}")
    assert str(caught.value) == f"onlinear.{module} needs {lacks}: pip install 'onlinear[{module}]'."


def test_a_frame_of_weights_needs_pandas(monkeypatch):
    model = OnlineClassifier()
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert not hasattr(model, "coef_frame_")
    model.fit(np.eye(4), [0, 1, 0, 1])
    with pytest.raises(AttributeError, match=r"^coef_frame_ needs pandas: pip install pandas\.$"):
        _ = model.coef_frame_
    assert "coef_" in dir(model)
    assert "OnlineClassifier" in model._repr_html_()


def test_other_errors_are_as_they_were():
    with pytest.raises(ImportError, match="cannot import name"), needed_by("a part", "something"):
        from onlinear import nothing  # noqa: F401
