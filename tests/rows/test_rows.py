"""Every layout of the same numbers gives the same rows; every wrong one gives an error that says where."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from onlinear import Learner, rows
from onlinear.rows import Rows
from onlinear.rows.arrays import ENTRIES, float_type

D = np.array(
    [
        [0.0, 1.5, 0.0, -2.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0],
        [4.0, 0.0, 0.0, 0.0, 1.0],
        [0.0, 0.0, -0.5, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.0],
    ]
)
WANTED = Rows(
    np.array([0, 2, 2, 4, 5, 5], np.uint64), np.array([1, 3, 0, 4, 2], np.uint32), np.array([1.5, -2.0, 4.0, 1.0, -0.5])
)


def collect(source):
    return source.stored().data


def assert_rows(found, wanted=WANTED):
    assert found.indptr.dtype == np.uint64
    assert found.indices.dtype == np.uint32
    np.testing.assert_array_equal(found.indptr, wanted.indptr)
    np.testing.assert_array_equal(found.indices, wanted.indices)
    np.testing.assert_array_equal(found.values, wanted.values)
    for array in found:
        assert array.flags.c_contiguous
        assert array.flags.aligned
        assert array.flags.writeable


def with_stored_zeros():
    X = sp.csr_matrix(D)
    return sp.csr_matrix(
        (np.insert(X.data, 2, [0.0, -0.0]), np.insert(X.indices, 2, [0, 2]), [0, 2, 4, 6, 7, 7]),
        shape=X.shape,
    )


def unsorted():
    return sp.csr_matrix((WANTED.values[[1, 0, 3, 2, 4]], [3, 1, 4, 0, 2], WANTED.indptr.astype(int)), shape=D.shape)


def repeated():
    return sp.csr_matrix(
        ([1.0, -2.0, 0.5, 4.0, 1.0, -0.5, 3.0, -3.0], [1, 3, 1, 0, 4, 2, 1, 1], [0, 3, 3, 5, 6, 8]), shape=D.shape
    )


def with_index_types(indices, indptr):
    X = sp.csr_matrix(D)
    X.indices, X.indptr = X.indices.astype(indices), X.indptr.astype(indptr)
    return X


def unaligned():
    raw = np.frombuffer(b"\0" + D.tobytes(), np.uint8)[1:]
    return raw.view(np.float64).reshape(D.shape)


def frozen(X):
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    return X


LAYOUTS = {
    "csr": lambda: sp.csr_matrix(D),
    "csr array": lambda: sp.csr_array(D),
    "csc": lambda: sp.csc_matrix(D),
    "csc array": lambda: sp.csc_array(D),
    "coo": lambda: sp.coo_matrix(D),
    "lil": lambda: sp.lil_matrix(D),
    "dok": lambda: sp.dok_matrix(D),
    "bsr": lambda: sp.bsr_matrix(D),
    "float32": lambda: sp.csr_matrix(D.astype(np.float32)),
    "float16 dense": lambda: D.astype(np.float16),
    "long double": lambda: D.astype(np.longdouble),
    "stored zeros": with_stored_zeros,
    "unsorted": unsorted,
    "repeated": repeated,
    "int64 indices": lambda: with_index_types(np.int64, np.int64),
    "unsigned indices": lambda: with_index_types(np.uint32, np.uint64),
    "small indices": lambda: with_index_types(np.uint8, np.uint8),
    "big-endian indices": lambda: with_index_types(">i4", ">i8"),
    "read-only csr": lambda: frozen(sp.csr_matrix(D)),
    "dense": lambda: D,
    "dense list": lambda: D.tolist(),
    "dense Fortran": lambda: np.asfortranarray(D),
    "dense strided": lambda: np.repeat(np.repeat(D, 2, axis=0), 3, axis=1)[::2, ::3],
    "dense reversed": lambda: D[::-1].copy()[::-1],
    "dense float32": lambda: D.astype(np.float32),
    "dense big-endian": lambda: D.astype(">f8"),
    "dense unaligned": unaligned,
    "dense read-only": lambda: np.frombuffer(D.tobytes()).reshape(D.shape),
    "dense masked, nothing masked": lambda: np.ma.MaskedArray(D),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_gives_the_same_rows(name):
    source = rows.read(LAYOUTS[name]())
    assert_rows(collect(source))
    assert (source.n, source.width, source.size, source.largest, source.nnz) == (5, 5, 5, 4.0, 5)


def test_a_memory_map_is_not_copied(tmp_path):
    np.save(tmp_path / "data.npy", WANTED.values)
    X = sp.csr_matrix(D)
    mapped = np.load(tmp_path / "data.npy", mmap_mode="r")
    X.data = mapped
    source = rows.read(X)
    assert_rows(source.data)
    assert np.shares_memory(source.data.values, mapped)


def test_ordered_csr_is_not_copied():
    X = sp.csr_matrix(D)
    found = rows.read(X).data
    assert np.shares_memory(found.values, X.data)
    assert np.shares_memory(found.indices, X.indices)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.int64, np.uint64, bool])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, sp.csc_matrix, sp.coo_matrix])
def test_integers_and_booleans_are_numbers(dtype, make):
    counts = np.array([[0, 1, 0], [1, 0, 1]], dtype)
    found = collect(rows.read(make(counts)))
    np.testing.assert_array_equal(found.indices, [1, 0, 2])
    np.testing.assert_array_equal(found.values, [1.0, 1.0, 1.0])
    assert found.values.dtype == np.float64


def test_small_integers_are_summed_without_overflow():
    X = sp.coo_matrix((np.array([100, 100, 1], np.int8), ([0, 0, 1], [2, 2, 0])), shape=(2, 3))
    np.testing.assert_array_equal(rows.read(X).data.values, [200.0, 1.0])


def test_float32_repeats_are_summed_in_float64():
    values = np.array([1.0, 2.0**-30], np.float32)
    for X in (sp.csr_matrix((values, [1, 1], [0, 2]), shape=(1, 2)), sp.coo_matrix((values, ([0, 0], [1, 1])), shape=(1, 2))):
        np.testing.assert_array_equal(rows.read(X).data.values, [1.0 + 2.0**-30])


def test_repeats_are_summed_in_the_order_they_are_stored():
    values = np.array([1e16, 1.0, -1e16, 3.0])
    X = sp.csr_matrix((values, [4, 4, 4, 0], [0, 4]), shape=(1, 5))
    np.testing.assert_array_equal(rows.read(X).data.values, [3.0])  # (1e16 + 1) - 1e16 is 0, (1e16 - 1e16) + 1 is not


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix, sp.csc_matrix])
@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 3)])
def test_nothing_at_all(make, shape):
    source = rows.read(make(np.zeros(shape)))
    found = collect(source)
    assert (source.n, source.size, source.largest, source.nnz) == (shape[0], 0, 0.0, 0)
    if shape[0]:
        np.testing.assert_array_equal(found.indptr, np.zeros(shape[0] + 1))


def test_the_size_ends_at_the_last_non_zero():
    X = np.zeros((2, 9))
    X[1, 4] = 1.0
    assert rows.read(X).size == rows.read(sp.csr_matrix(X)).size == 5
    wide = sp.csr_matrix(([0.0, 2.0], [8, 3], [0, 1, 2]), shape=(2, 9))
    assert rows.read(wide).size == 4


@pytest.mark.parametrize("make", ["sorted", "rows in disorder", "stored zeros", "64-bit", "float32"])
def test_columns_are_turned_into_rows(make):
    rng = np.random.default_rng(7)
    D = np.round(rng.standard_normal((91, 6)), 2) * (rng.random((91, 6)) < 0.6)
    D = D.astype(np.float32) if make == "float32" else D
    X = sp.csc_matrix(D)
    if make == "rows in disorder":
        for begin, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
            order = begin + rng.permutation(end - begin)
            X.indices[begin:end], X.data[begin:end] = X.indices[order], X.data[order]
    elif make == "stored zeros":
        X.data[::5] = 0.0
        D = X.toarray()
    elif make == "64-bit":
        X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    found = rows.read(X)
    assert_rows(found.data, rows.read(sp.csr_matrix(D)).data)
    assert found.data.values.dtype == float_type(D)


def test_wrong_columns_are_refused():
    X = sp.csc_matrix(FULL)
    for change, message in (
        ({"indices": np.where(np.arange(60) == 17, 12, X.indices)}, r"row index must be in \[0, 12\), got 12 in column 1"),
        ({"indices": np.where(np.arange(60) == 17, -1, X.indices)}, r"row index must be in \[0, 12\), got -1 in column 1"),
        ({"indptr": np.array([0, 12, 11, 36, 48, 60])}, "never decrease"),
        ({"indptr": np.array([0, 12, 24, 36, 48, 61])}, "within the stored"),
        ({"data": np.where(np.arange(60) == 17, np.nan, X.data)}, "NaN at row 5, column 1"),
    ):
        wrong = sp.csc_matrix(FULL)
        for name, array in change.items():
            setattr(wrong, name, array)
        with pytest.raises(ValueError, match=message):
            rows.read(wrong)


HOSTILE = {  # rows, columns and entries: what is stored has repeats, zeros and no order
    "many entries": (4000, 50, 30_000),
    "one row": (1, 300, 2000),
    "one column": (3000, 1, 2000),
    "more columns than entries": (40, 3_000_000, 300),
    "nothing": (30, 20, 0),
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("order", ["any", "by row", "by column"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint64, ">i4"])
def test_entries_in_any_order_are_those_of_sorted_rows(kind, order, dtype):
    n, width, count = HOSTILE[kind]
    rng = np.random.default_rng(8)
    row, col, values = rng.integers(0, n, count), rng.integers(0, width, count), rng.integers(-1, 3, count) * 0.1
    if order != "any":
        at = np.argsort(row if order == "by row" else col, kind="stable")
        row, col, values = row[at], col[at], values[at]
    by_row, by_col = np.argsort(row, kind="stable"), np.argsort(col, kind="stable")
    X = sp.csr_matrix((n, width))
    X.data, X.indices, X.indptr = values[by_row], col[by_row], np.searchsorted(row[by_row], np.arange(n + 1))
    wanted = rows.read(X)
    coo = sp.coo_matrix((n, width))
    coo.data, coo.coords = values, (row.astype(dtype), col.astype(dtype))
    found = [rows.read(coo)]
    if order != "by row":  # columns in the order that the entries of a row have above
        X = sp.csc_matrix((n, width))
        X.data, X.indices = values[by_col], row[by_col].astype(dtype)
        X.indptr = np.searchsorted(col[by_col], np.arange(width + 1)).astype(dtype)
        found.append(rows.read(X))
    for source in found:
        for ours, theirs in zip(source.data, wanted.data, strict=True):
            assert ours.tobytes() == theirs.tobytes()
        assert source[:4] == wanted[:4]


def test_wrong_entries_are_refused():
    for change, error, message in (
        ({"row": [0, 1, 12]}, ValueError, r"a row index must be in \[0, 12\), got 12 at entry 2"),
        ({"row": [0, -1, 3]}, ValueError, r"a row index must be in \[0, 12\), got -1 at entry 1"),
        ({"col": [0, 5, 1]}, ValueError, r"a column index must be in \[0, 5\), got 5 at row 1"),
        ({"col": [0, -3, 1]}, ValueError, r"a column index must be in \[0, 5\), got -3 at row 1"),
        ({"row": [3, 1, 2], "col": [0, -3, 1]}, ValueError, r"a column index must be in \[0, 5\), got -3 at row 1"),
        ({"row": [0.0, 1.0, 2.0]}, TypeError, "row and col must be integers, got dtypes float64 and int64"),
        ({"row": [0, 1]}, ValueError, "row, col and data must be as long, got 2, 3 and 3"),
        ({"data": [1.0, np.inf, 2.0]}, ValueError, "infinity at row 1, column 1"),
        ({"row": [3, 1, 2], "data": [1.0, np.nan, 2.0]}, ValueError, "NaN at row 1, column 1"),
    ):
        given = {"row": [0, 1, 3], "col": [0, 1, 2], "data": [1.0, 2.0, 3.0], **change}
        X = sp.coo_matrix((12, 5))
        X.data, X.coords = np.array(given["data"]), (np.array(given["row"]), np.array(given["col"]))
        with pytest.raises(error, match=message):
            rows.read(X, "X")


def test_a_negative_index_of_few_bits_is_no_column():
    X = sp.csr_matrix((1, 300))
    X.data, X.indices, X.indptr = np.ones(1), np.array([-1], np.int8), np.array([0, 1])
    with pytest.raises(ValueError, match=r"a column index must be in \[0, 300\), got -1 at row 0"):
        rows.read(X)


@pytest.mark.parametrize("kind", ["CSC", "COO by column", "COO by row", "columns in any order"])
def test_containers_take_the_memory_of_one_copy(kind):
    n, width, count = 5000, 400, 300_000
    rng = np.random.default_rng(9)
    row, col, values = rng.integers(0, n, count, np.int32), rng.integers(0, width, count, np.int32), np.ones(count)
    order = np.argsort(col if kind != "COO by row" else row, kind="stable")
    X = sp.coo_matrix((values, (row[order], col[order])), shape=(n, width))
    if kind == "CSC":
        X = sp.csc_matrix((values, row[order], np.searchsorted(col[order], np.arange(width + 1))), shape=(n, width))
    elif kind == "columns in any order":
        by_row = np.argsort(row, kind="stable")
        X = sp.csr_matrix((values, col[by_row], np.searchsorted(row[by_row], np.arange(n + 1))), shape=(n, width))
    rows.read(X)
    tracemalloc.start()
    rows.read(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.25 * 12 * count + 16 * n


@pytest.mark.parametrize("kept", [0, 1 << 20])
@pytest.mark.parametrize("density", [0.0, 0.02, 0.3, 1.0])
def test_many_rows_cross_the_scan_and_conversion_blocks(density, kept, monkeypatch):
    monkeypatch.setattr("onlinear.rows.arrays.ENTRIES", 700)
    monkeypatch.setattr("onlinear.rows.arrays.LEAST_KEPT", kept)
    rng = np.random.default_rng(5)
    X = rng.standard_normal((333, 17)) * (rng.random((333, 17)) < density)
    wanted = rows.read(sp.csr_matrix(X))
    for other in (X, X.astype(np.float32).astype(np.float64), np.asfortranarray(X), sp.csc_matrix(X)):
        source = rows.read(other)
        assert source.size == wanted.size
        if other.dtype == np.float64 and np.array_equal(other.toarray() if sp.issparse(other) else other, X):
            assert_rows(collect(source), wanted.data)
            assert source.largest == wanted.largest
    pieces = [rows.Rows(*(array.copy() for array in piece)) for _, piece in rows.read(X).blocks()]
    cut = density == 1.0 or (density == 0.3 and kept == 0)  # only non-zeros of many zeros are kept, unless they take too much
    assert (len(pieces) > 1) == cut
    assert sum(len(piece.values) for piece in pieces) == wanted.nnz


def test_one_descent_anywhere_is_seen():
    rng = np.random.default_rng(6)
    lengths = rng.integers(0, 4, 300)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    indices = np.concatenate([np.sort(rng.choice(50, k, replace=False)) for k in lengths]).astype(np.int32)
    values = rng.standard_normal(len(indices))
    assert np.shares_memory(rows.read(sp.csr_matrix((values, indices, indptr), shape=(300, 50))).data.indices, indices)
    for row in np.flatnonzero(lengths > 1)[::7]:
        at = indptr[row]
        swapped, moved = indices.copy(), values.copy()
        swapped[[at, at + 1]], moved[[at, at + 1]] = indices[[at + 1, at]], values[[at + 1, at]]
        assert_rows(
            rows.read(sp.csr_matrix((moved, swapped, indptr), shape=(300, 50))).data,
            Rows(indptr.astype(np.uint64), indices.view(np.uint32), values),
        )


def test_rows_in_another_order():
    for X in (sp.csr_matrix(D), D):
        order = np.array([3, 0, 0, 4, 2])
        assert_rows(collect(rows.read(X).take(order)), rows.read(sp.csr_matrix(D[order])).data)


def test_dot_rows_adds_in_order():
    out = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    rows.dot_rows(WANTED, np.array([1.0, 2.0, 3.0, 4.0, 5.0]), out)
    np.testing.assert_array_equal(out, [1.0 + 1.5 - 4.0, 2.0, 3.0 + 12.0 + 4.0, 4.0 - 2.5, 5.0])


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("make", [np.asarray, np.asfortranarray, sp.csr_matrix, sp.csc_matrix])
def test_a_value_that_is_not_finite_is_located(value, dtype, make):
    X = D.astype(dtype)
    X[2, 4] = value
    what = "NaN" if np.isnan(value) else "infinity"
    with pytest.raises(ValueError, match=f"^A contains {what} at row 2, column 4; every value must be finite"):
        rows.read(make(X), "A")


def test_too_large_for_float64():
    if np.finfo(np.longdouble).max > np.finfo(np.float64).max:
        X = np.array([[1.0, 0.0]], np.longdouble)
        X[0, 1] = np.finfo(np.longdouble).max
        with pytest.raises(ValueError, match="infinity at row 0, column 1"):
            rows.read(X)
    X = sp.csr_matrix(([1e308, 1e308], [1, 1], [0, 0, 2]), shape=(2, 3))
    with pytest.raises(ValueError, match="sum to infinity at row 1, column 1"):
        rows.read(X)


@pytest.mark.parametrize(("index", "found"), [(-1, -1), (5, 5), (2**31 - 1, 2147483647)])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_an_index_out_of_range_is_located(index, found, dtype):
    X = with_index_types(dtype, dtype)
    X.indices[3] = index
    with pytest.raises(ValueError, match=rf"a column index must be in \[0, 5\), got {found} at row 2"):
        rows.read(X)


def test_an_index_too_large_for_any_model():
    X = sp.csr_matrix(([1.0], np.array([2**31 - 1]), [0, 1]), shape=(1, 2**40))
    with pytest.raises(ValueError, match="at most 2147483646, got 2147483647 at row 0"):
        rows.read(X)
    fits = sp.csr_matrix(([1.0], np.array([2**31 - 2]), [0, 1]), shape=(1, 2**40))
    assert rows.read(fits).size == 2**31 - 1


@pytest.mark.parametrize(
    "indptr",
    [[1, 2, 2, 4, 5, 5], [0, 3, 2, 4, 5, 5], [0, 2, 2, 4, 5, 6], [0, 2, 2, 4, 5]],
    ids=["start", "fall", "end", "short"],
)
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_a_broken_indptr_is_refused(indptr, dtype):
    X = sp.csr_matrix(D)
    X.indptr = np.array(indptr, dtype)
    with pytest.raises(ValueError, match="indptr must start at 0, never decrease and end within the stored entries"):
        rows.read(X)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.array([["a", "b"]]), TypeError, "A must hold numbers, got an array of dtype <U1"),
        (np.array([[1, None]], object), TypeError, "A must hold numbers, got an array of dtype object"),
        (np.array([["2020-01-01"]], "M8[D]"), TypeError, "A must hold numbers"),
        (None, TypeError, "A must hold numbers"),
        (np.ones(3), ValueError, "A must be 2-D .*got 1-D array instead, of shape"),
        (3.0, ValueError, "A must be 2-D .*got 0-D"),
        (np.ones((2, 2, 2)), ValueError, "A must be 2-D .*got 3-D"),
        ([[1.0, 2.0], [3.0]], ValueError, "A must be 2-D"),
        (np.ones((1, 2), complex), ValueError, "Complex data not supported: A has dtype complex128"),
        (sp.csr_matrix(np.ones((1, 2), complex)), ValueError, "Complex data not supported: A has dtype complex128"),
        (sp.coo_array(np.ones(3)), ValueError, "A must be 2-D, got a sparse array of shape"),
        (np.ma.MaskedArray([[1.0, 2.0]], [[False, True]]), ValueError, "A has masked entries"),
    ],
)
def test_what_holds_no_rows_of_numbers_is_refused(X, error, message):
    with pytest.raises(error, match=message):
        rows.read(X, "A")


FULL = np.arange(1.0, 61.0).reshape(12, 5) * np.where(np.arange(5) % 2, -0.25, 1.0)
ORDERS = {"reversed": np.arange(12)[::-1], "with repeats": np.array([3, 3, 0, 11, 7]), "none": np.array([], np.int64)}


def as_csr(found):
    return sp.csr_matrix((found.values, found.indices.astype(int), found.indptr.astype(int)), shape=(len(found.indptr) - 1, 5))


def rows_where_they_stand(block):
    """The rows of a block, each as its begin and end say."""
    begins, columns, entries = block.begun
    for begin, end in zip(begins.astype(int), block.ends.astype(int), strict=False):
        row = np.zeros(5)
        row[columns[begin:end]] = entries[begin:end]
        yield row


@pytest.mark.parametrize(
    "make", [np.ascontiguousarray, np.asfortranarray, lambda X: X[::-1].copy()[::-1], np.float32, sp.csr_matrix]
)
@pytest.mark.parametrize("zeros", [0, 1, 40])
@pytest.mark.parametrize("entries", [1, 11, 1000])
def test_cuts_and_orders_of_any_layout(make, zeros, entries, monkeypatch):
    monkeypatch.setattr("onlinear.rows.arrays.ENTRIES", entries)
    monkeypatch.setattr("onlinear.rows.records.PERMUTED", entries)
    X = FULL.copy()
    X.flat[np.random.default_rng(zeros).permutation(60)[:zeros]] = 0.0
    source = rows.read(make(X))
    for name, order in ORDERS.items():
        for taken in (source.take(order), source.held().take(order), source.take(np.arange(12)[::-1]).take(11 - order)):
            assert (taken.n, taken.nnz) == (len(order), np.count_nonzero(X[order])), name
            found = np.vstack([np.empty((0, 5)), *(as_csr(piece).toarray() for _, piece in taken.blocks())])
            np.testing.assert_array_equal(found, X[order].reshape(-1, 5))
            cut = taken.cut(slice(1, 4))
            found = [(which, as_csr(piece).toarray()) for which, piece in cut.blocks()]
            assert cut.n == len(order[1:4]) == sum(len(piece) for _, piece in found)
            for which, piece in found:
                np.testing.assert_array_equal(piece, X[order[1:4]][which])
            for source_of, wanted in ((taken, X[order]), (cut, X[order[1:4]])):
                found = [row for _, block in source_of.blocks_anywhere() for row in rows_where_they_stand(block)]
                np.testing.assert_array_equal(np.reshape(found, (-1, 5)), wanted)
    pieces = [(which, as_csr(piece).toarray()) for which, piece in source.pieces()]
    assert [which.start for which, _ in pieces] == [0, *(which.stop for which, _ in pieces)][:-1]
    np.testing.assert_array_equal(np.vstack([piece for _, piece in pieces]), X)


@pytest.mark.parametrize("lengths", [[], [0, 0], [5] * 20, [0, 0, 7, 0, 90, 1, 0], [1] * 99 + [4], [300, 0, 1]])
@pytest.mark.parametrize("most", [1, 8, 60, 66, 67, 1000])
def test_shares_are_all_of_the_rows_and_none_is_small(lengths, most):
    starts = 3 + np.cumsum([0, *lengths]).astype(np.uint64)  # as of rows that are a part of others
    count = sum(lengths)
    given = rows.Rows(starts, np.zeros(count, np.uint32), np.ones(count))
    found = list(given.shares(most))
    assert [which.start for which in found] == [0, *(which.stop for which in found)][:-1][: len(found)]
    assert not lengths or found[-1].stop == len(lengths)
    entries = [int(starts[which.stop] - starts[which.start]) for which in found]
    longest = max(lengths, default=0)
    assert all(share <= max(1.5 * most, most + 1) + longest for share in entries)
    assert len(found) < 2 or min(entries) >= most / 1.5 - 1 - longest


def test_rows_without_zeros_are_read_where_they_lie():
    ((_, found),) = rows.read(FULL).blocks()
    assert np.shares_memory(found.values, FULL)
    assert_rows(found, rows.read(sp.csr_matrix(FULL)).data)


LARGE = {
    "rows": np.ascontiguousarray,
    "columns": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "every other row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "columns of float32": lambda X: np.asfortranarray(X, np.float32),
    "bytes in another order": lambda X: X.astype(">f8"),
}


@pytest.mark.parametrize("layout", LARGE)
@pytest.mark.parametrize("zeros", [0.0, 0.1, 0.8])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_found_in_every_block(layout, zeros, value):
    n = 3 * ENTRIES // 4 + 5  # three blocks, and some rows
    rng = np.random.default_rng(3)
    X = rng.standard_normal((n, 4)) * (rng.random((n, 4)) >= zeros)
    for row in (0, n // 3, n // 2, n - 1):
        wrong = X.copy()
        wrong[row, 2] = value
        with pytest.raises(ValueError, match=f"at row {row}, column 2; every value must be finite"):
            rows.read(LARGE[layout](wrong))
    rows.read(LARGE[layout](X))


def test_rows_beyond_the_first_block_with_nan_are_neither_learned_nor_predicted():
    n = ENTRIES // 2
    rng = np.random.default_rng(4)
    X, y = rng.standard_normal((n, 4)), np.where(rng.random(n) < 0.5, 1.0, -1.0)
    learner = Learner("comid", "hinge").learn(X, y)
    before = learner.freeze()[1]
    X[7, 1] = np.nan
    for call in (lambda: learner.predict(X), lambda: learner.learn(X, y)):
        with pytest.raises(ValueError, match="NaN at row 7, column 1"):
            call()
    assert learner.t == n
    assert all(np.array_equal(array, before[name]) for name, array in learner.freeze()[1].items())
