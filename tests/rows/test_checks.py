"""Targets and weights at the boundary: what passes, and the error for what does not."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from onlinear.rows import checks


def test_targets_of_one_and_of_several_outputs():
    for given in ([1, -1, 1], np.array([1, -1, 1], np.int8), np.array([[1.0], [-1.0], [1.0]], np.float32), [True, False, True]):
        found = checks.targets(given, 3, 1)
        assert found.shape == (3, 1)
        assert found.dtype == np.float64
    many = checks.targets(np.arange(6.0).reshape(3, 2), 3, 2)
    assert many.flags.f_contiguous
    np.testing.assert_array_equal(many[:, 1], [1.0, 3.0, 5.0])


@pytest.mark.parametrize(
    ("values", "outputs", "error", "message"),
    [
        (np.ones((3, 2)), 1, ValueError, r"y must have shape \(n,\) for 1 output\(s\), got \(3, 2\)"),
        (np.ones(3), 2, ValueError, r"y must have shape \(n, 2\) for 2 output\(s\), got \(3,\)"),
        (np.ones((3, 3)), 2, ValueError, r"y must have shape \(n, 2\)"),
        (1.0, 1, ValueError, r"y must have shape \(n,\)"),
        (np.ones(2), 1, ValueError, "inconsistent numbers of samples, X has 3 rows, y 2"),
        ([1.0, np.nan, 1.0], 1, ValueError, "y contains NaN at row 1"),
        ([[1.0, 1.0], [1.0, 1.0], [1.0, -np.inf]], 2, ValueError, "y contains infinity at row 2"),
        (["a", "b", "c"], 1, TypeError, "y must hold numbers, got 'a' at row 0"),
        ([1.0, None, 3.0], 1, TypeError, "y must hold numbers, got None at row 1"),
        ([1j, 1, 1], 1, TypeError, "y must hold numbers, got dtype complex128"),
        ([1.0, [2.0], 3.0], 1, ValueError, "y must hold numbers"),
    ],
)
def test_wrong_targets(values, outputs, error, message):
    with pytest.raises(error, match=message):
        checks.targets(values, 3, outputs)


def test_labels():
    checks.labels(np.array([[1.0], [-1.0]]), "signs")
    checks.labels(np.array([[0.0], [3.5]]), "counts")
    checks.labels(np.array([[-9.0]]), "real")
    checks.labels(np.zeros((0, 1)), "signs")
    with pytest.raises(ValueError, match=r"y must be -1 or \+1 for this loss, got 0.5 at row 1"):
        checks.labels(np.array([[1.0, -1.0], [1.0, 0.5]]), "signs")
    with pytest.raises(ValueError, match="y must be 0 or more for this loss, got -3 at row 0"):
        checks.labels(np.array([[-3.0]]), "counts")


def test_weights():
    np.testing.assert_array_equal(checks.weights(None, 2), [1.0, 1.0])
    np.testing.assert_array_equal(checks.weights(0.5, 2), [0.5, 0.5])
    np.testing.assert_array_equal(checks.weights([0, 2], 2), [0.0, 2.0])
    for wrong, message in (
        ([1.0, -1.0], "sample_weight must not be negative, got -1 at row 1"),
        (-1.0, "sample_weight must not be negative, got -1 at row 0"),
        ([1.0, np.nan], "sample_weight contains NaN at row 1"),
        ([1.0], "sample_weight must have one value per row"),
        ([[1.0], [1.0]], "sample_weight must be 1-D"),
    ):
        with pytest.raises(ValueError, match=message):
            checks.weights(wrong, 2)
    with pytest.raises(TypeError, match=r"got 'size': it names a column only where y names one too\.$"):
        checks.weights("size", 2)
    for other, kind in (({0: 1.0, 1: 2.0}, "dict"), (iter([1.0, 2.0]), "list_iterator"), (sp.csr_array([[1.0]]), "csr_array")):
        with pytest.raises(TypeError, match=f"sample_weight must hold numbers, got one {kind}: give an array or a list, in"):
            checks.weights(other, 2)


def test_read_only_and_strided_input_comes_out_as_kernels_take_it():
    frozen = np.ones(4)
    frozen.flags.writeable = False
    for found in (checks.targets(frozen, 4, 1)[:, 0], checks.weights(frozen, 4), checks.weights(np.ones(8)[::2], 4)):
        assert found.flags.c_contiguous
        assert found.flags.writeable


def test_column():
    np.testing.assert_array_equal(checks.column([1, 2], "row", 2), [1.0, 2.0])
    with pytest.raises(ValueError, match=r"row must be 1-D with one value per row, got shape \(1, 2\)"):
        checks.column([[1, 2]], "row", 2)


def test_one_target_that_no_double_holds_is_told_so():
    with pytest.raises(ValueError, match=r"y must be a number that a double holds, got -1000.*\.\.\.\."):
        checks.one_target(-(10**400))


@pytest.mark.parametrize("values", [np.array([1, 2.5, True], object), [Decimal(1), Fraction(5, 2), 1]])
def test_weights_that_are_numbers_as_objects_are_taken(values):
    np.testing.assert_array_equal(checks.weights(values, 3), [1.0, 2.5, 1.0])
    for other, found in (
        (None, "got None at row 1"),
        ("2", "got '2' at row 1"),
        (10**400, "got dtype object"),
        (1j, "got dtype"),
    ):
        with pytest.raises(TypeError, match=found):
            checks.weights(np.array([1, other, 1], object), 3)
