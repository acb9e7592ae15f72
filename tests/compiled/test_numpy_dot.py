"""Compiled sums of products are NumPy's, to the bit."""

import numpy as np

from onlinear.compiled import kernel
from onlinear.compiled.numpy_dot import dot_address, dot_at


@kernel
def _dot(address, x, y, n):
    return dot_at(address, x, y, n)


def test_the_sum_is_numpys():
    rng = np.random.default_rng(3)
    x, pairs = rng.standard_normal(300), rng.standard_normal((300, 2))
    for y in (rng.standard_normal(300), pairs[:, 1]):
        for n in (*range(1, 80), 255, 256, 257, 300):
            assert _dot(dot_address(), x, y, n) == np.dot(x[:n], y[:n])
    zeros = np.array([-0.0, 0.0])
    assert np.signbit(_dot(dot_address(), zeros, np.ones(2), 1)) == np.signbit(np.dot(zeros[:1], np.ones(1)))
