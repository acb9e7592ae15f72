"""NumPy's tanh of one number, called from compiled code, has NumPy's bits."""

import numpy as np
import pytest

from onlinear.compiled import COMPILED, Held, opened
from onlinear.compiled.numpy_tanh import tanh_address, tanh_at


def _tanh(here, x):
    (address,) = opened(here)
    return tanh_at(address, x)


@pytest.mark.skipif(COMPILED and not tanh_address(), reason="NumPy's loop is not where it is expected")
def test_the_bits_are_those_of_numpy():
    draw = np.random.default_rng(3)
    numbers = [
        *draw.normal(size=2000) * np.exp(draw.normal(size=2000) * 3.0),
        0.0,
        -0.0,
        1e-320,
        800.0,
        -np.inf,
        np.inf,
        np.nan,
    ]
    held = Held(tanh_address())
    run = held.compile(_tanh, {}, 1.0)
    found = np.array([run(held.here, float(x)) for x in numbers])
    assert found.tobytes() == np.array([np.tanh(float(x)) for x in numbers]).tobytes()
