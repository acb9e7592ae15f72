"""Running means of the columns that are nearly always there, against their definition, the same for any cut of the stream."""

import itertools
import time

import numpy as np
import pytest
import scipy.sparse as sp

from onlinear import Learner, ModelFileError, OnlineClassifier, OnlineRegressor, rows
from onlinear.rows.centring import CENTRED_KINDS, EARLY, RANKED, Centring

RNG = np.random.default_rng(8)
N = 300


def table(offset=10.0, n=N, seed=8):
    """Columns always there, nearly always, often and seldom, far from 0."""
    rng = np.random.default_rng(seed)
    present = rng.random((n, 6)) < np.array([1.0, 0.96, 1.0, 0.6, 0.1, 1.0])
    present[0] = True
    return np.where(present, rng.standard_normal((n, 6)) * 10.0 ** np.arange(-2, 4) + offset, 0.0)


S = np.where(RNG.random(N) < 0.2, 0.0, RNG.random(N))


def definition(X, s, kind):
    """Every row in scaled units, and the columns centred in the end, straight from the words of the module."""
    listed, counted, out, begun, left, squares = set(), [], np.zeros_like(X), False, set(), []
    first = 1 if kind == "dense" else 4
    for i, x in enumerate(X):
        begun = begun or bool(s[i] > 0.0 and x.any())
        if s[i] > 0.0 and begun and (listed or len(counted) < first):
            known = listed & set(np.flatnonzero(x))
            if len(counted) < min(first, 2) or (len(counted) < first and len(known) >= np.count_nonzero(x) / 2):
                listed |= {j for j in np.flatnonzero(x) if not X[counted, j].any()}
            counted.append(i)
            if kind == "dense" and len(counted) == 2:
                listed &= set(np.flatnonzero(x))
        for j in range(X.shape[1]):
            if j in listed:
                mean, deviation = X[counted, j].mean(), X[counted, j].std()
                if len(counted) == 1:
                    mean, deviation = 0.0, abs(mean)
                out[i, j] = (x[j] - mean) / deviation if deviation > 1e-12 * abs(mean) else 0.0
            else:
                seen = X[: i + 1, j][(X[: i + 1, j] != 0.0) & (s[: i + 1] > 0.0)]
                size = np.sqrt(np.mean(seen**2)) if len(seen) else np.inf
                if kind == "tempered" and squares:
                    size = np.clip(np.sqrt(size * np.sqrt(np.mean(squares))), size / 2.0, size * 2.0)
                out[i, j] = x[j] if kind == "dense" and j not in left else x[j] / size
        squares += [v * v for j, v in enumerate(x) if v != 0.0 and j not in listed and s[i] > 0.0]
        n = len(counted)
        if s[i] > 0.0 and n >= 4 and n & (n - 1) == 0:
            sizes = np.count_nonzero(X[: i + 1][s[: i + 1] > 0.0], axis=0)
            kept = {j for j in listed if sizes[j] > n / 4}
            if kind == "dense" or sum(sizes[j] for j in kept) < sum(sizes) / 2:
                least = 0.9 * n - 1.0 if n <= EARLY else 0.5 * n
                kept = {j for j in listed if sizes[j] >= least}
            left |= listed - kept
            listed = kept
    return out, sorted(listed)


def scaled(scaler, X, s):
    found, largest = scaler.learn(rows.read(X).stored().data, s)
    assert largest == np.abs(found.values).max(initial=0.0)
    return sp.csr_matrix((found.values.copy(), found.indices.copy(), found.indptr.astype(int)), shape=X.shape).toarray()


def words(n, count=60, seed=9):
    """Columns that are seldom there, each of them."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random((n, count)) < 0.15, rng.integers(1, 4, (n, count)), 0.0)


@pytest.mark.parametrize("kind", CENTRED_KINDS)
@pytest.mark.parametrize("empty", [0, 5])
@pytest.mark.parametrize("content", ["table", "table without a rare column", "text"])
def test_rows_follow_the_definition(content, empty, kind):
    X = table()[:, [0, 1, 2, 3, 5]] if content.endswith("column") else table()
    X = np.hstack([X, words(N)]) if content == "text" else X
    X, s = np.vstack([np.zeros((empty, X.shape[1])), X]), np.concatenate([np.ones(empty), S])
    scaler = Centring(kind, X.shape[1])
    wanted, listed = definition(X, s, kind)
    np.testing.assert_allclose(scaled(scaler, X, s), wanted, rtol=1e-9, atol=1e-12)
    last = X.shape[1] - 1 if content != "text" else 5
    assert scaler.centred.tolist() == listed == [0, 1, 2, *([3] if content != "text" and kind != "dense" else []), last]
    np.testing.assert_allclose(scaler.scales(np.array([last, 3, 0])), scaler.scales()[[last, 3, 0]])


@pytest.mark.parametrize("kind", CENTRED_KINDS)
@pytest.mark.parametrize("cuts", [(0, 1, 1, 2, 3, 17, N), (0, 64, N), tuple(range(N + 1))], ids=len)
def test_any_cut_gives_the_same_bits(cuts, kind):
    X = table()
    whole, cut = Centring(kind, 6), Centring(kind, 6)
    together = scaled(whole, X, S)
    pieces = [scaled(cut, X[a:b], S[a:b]) for a, b in itertools.pairwise(cuts)]
    np.testing.assert_array_equal(np.vstack(pieces), together)
    for name, array in whole.arrays().items():
        assert array.tobytes() == cut.arrays()[name].tobytes()


@pytest.mark.parametrize("kind", CENTRED_KINDS)
@pytest.mark.parametrize("places", [RANKED - 7, RANKED - 6, RANKED])
def test_columns_are_found_wherever_they_are(places, kind):
    near = sp.csr_matrix(table())
    far = sp.csr_matrix((near.data, near.indices + places, near.indptr), shape=(N, places + 6))
    here, there = (Centring(kind, X.shape[1]).learn(rows.read(X).stored().data, S)[0] for X in (near, far))
    assert there.indptr.tobytes() == here.indptr.tobytes()
    assert there.values.tobytes() == here.values.tobytes()
    np.testing.assert_array_equal(there.indices, here.indices + places)


def test_a_text_whose_first_words_are_not_in_the_others_is_scaled_as_rms():
    X = sp.random(400, 50, density=0.1, format="csr", random_state=1)
    y = np.where(RNG.random(400) < 0.5, 1.0, -1.0)
    kept = Learner("fiol,eta=1", "logistic", scale="centred", fit_intercept=True).learn(X, y)
    assert not len(kept.scaler.centred)
    plain = Learner("fiol,eta=1", "logistic", scale="rms", fit_intercept=True).learn(X, y)
    np.testing.assert_allclose(kept.scaler.scales(), plain.scaler.scales(), rtol=1e-12)


def test_the_unit_of_a_column_moves_its_tempered_size_by_the_root_and_at_most_by_two():
    X = sp.random(400, 50, density=0.1, format="csr", random_state=1)
    X.data[:] = 1.0

    def sizes(unit):
        """Those of the values of all columns, of which number 3 has a unit of its own."""
        units, scaler = np.where(np.arange(50) == 3, unit, 1.0), Centring("tempered", 50)
        scaler.learn(rows.read((X @ sp.diags(units)).tocsr()).stored().data, np.ones(400))
        return units / scaler.scales()

    assert np.all(sizes(1.0) == 1.0)
    assert sizes(2.25)[3] / sizes(2.25)[4] == pytest.approx(1.5)
    assert sizes(1e6)[3:5] == pytest.approx([2.0, 0.5])
    assert sizes(1e-6)[3:5] == pytest.approx([0.5, 1.0], rel=0.02)


def test_dense_leaves_a_text_as_it_is():
    X = sp.random(400, 50, density=0.1, format="lil", random_state=1)
    X[:2] = 0.0
    X[0, :5], X[1, 5:10] = 0.3, 0.2
    X = X.tocsr()
    y = np.where(RNG.random(400) < 0.5, 1.0, -1.0)
    kept = Learner("fiol,eta=1", "logistic", scale="dense", fit_intercept=True).learn(X, y)
    assert not len(kept.scaler.centred)
    assert np.all(kept.scaler.scales() == 1.0)
    plain = Learner("fiol,eta=1", "logistic", fit_intercept=True)
    plain.learn(X[:1].sign(), y[:1]).learn(X[1:], y[1:])
    assert kept.predict(X).tobytes() == plain.predict(X).tobytes()


def test_columns_that_fall_silent_cost_at_most_three_times_the_entries_that_they_had():
    X = np.zeros((6000, 40))
    X[:1024] = RNG.standard_normal((1024, 40)) + 5.0
    X[1024:, 0] = 1.0
    scaler = Centring("centred", 40)
    found, _ = scaler.learn(rows.read(X).stored().data, np.ones(6000))
    assert scaler.centred.tolist() == [0]
    assert len(found.values) <= 4 * np.count_nonzero(X)


@pytest.mark.filterwarnings("ignore:The loss was still falling")
@pytest.mark.parametrize("offset", [0.0, 10.0, 1e6, -1e9])
def test_columns_far_from_zero_are_learned_as_those_around_it(offset):
    rng = np.random.default_rng(2)
    X, w = rng.standard_normal((3000, 8)), rng.standard_normal(8)
    y = X @ w + 0.1 * rng.standard_normal(3000)
    far = X + offset * np.resize([1.0, -1.0, 0.5], 8)
    assert OnlineRegressor(random_state=0).fit(far[:2000], y[:2000]).score(far[2000:], y[2000:]) > 0.98
    model = OnlineClassifier(random_state=0).fit(far[:2000], y[:2000] > 0.0)
    assert model.score(far[2000:], y[2000:] > 0.0) > 0.93


def test_a_constant_column_is_left_to_the_intercept():
    X = np.column_stack([np.full(200, 0.1), np.full(200, 1e9), RNG.standard_normal(200)])
    learner = Learner("fiol,eta=1", "squared", scale="centred", fit_intercept=True).learn(X, X[:, 2] + 7.0)
    assert learner.weights()[:2].tolist() == [0.0, 0.0]
    assert learner.predict([[0.1, 1e9, 0.0]])[0] == pytest.approx(7.0, abs=0.1)


@pytest.mark.parametrize("kind", CENTRED_KINDS)
def test_the_weights_and_the_intercept_are_those_of_rows_as_given(kind):
    X = table()
    y = X @ np.array([3.0, 0.0, 0.1, 0.0, 0.0, 1e-3]) + 5.0
    learner = Learner("implicit-ftrl,eta=2", "squared", scale=kind, fit_intercept=True, average="weighted-t1").learn(X, y)
    for average in (False, True):
        weights, bias = learner.weights(average=average), learner.intercept(average=average)
        scores = X @ weights + bias
        if average:
            np.testing.assert_allclose(learner.predict(X), scores, rtol=1e-12, atol=1e-12)
    again = Learner.thaw(*learner.freeze())
    assert again.predict(X).tobytes() == learner.predict(X).tobytes()


def test_it_needs_an_intercept():
    for kind in CENTRED_KINDS:
        with pytest.raises(ValueError, match=f"scale='{kind}' needs fit_intercept=True"):
            Learner("fiol", "squared", scale=kind)
    assert OnlineRegressor(fit_intercept=False).fit(table(), table()[:, 0]).learner_.scaler.kind == "rms"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("scales.rows", lambda a: a - 1e3),
        ("scales.rows", lambda a: a + 1e6),
        ("scales.rows", lambda a: a + 0.5),
        ("scales.centred", lambda a: a[:3]),
        ("scales.centred", lambda a: a[:, ::-1].copy()),
        ("scales.centred", lambda a: a + 100.0),
        ("scales.centred", lambda a: -a),
        ("scales.centred", lambda a: a * np.nan),
        ("scales.centred", lambda a: a + 0.5),
        ("scales", lambda a: -a),
        ("scales.whole", lambda a: -a),
        ("scales.whole", lambda a: a + 0.5),
        ("scales.whole", lambda a: a * np.nan),
        ("scales.whole", lambda a: a[:1]),
    ],
)
def test_arrays_that_no_run_gives_are_refused(name, change):
    kind = "tempered" if name == "scales.whole" else "centred"
    scaler = Centring("dense" if name == "scales" else kind, 6)
    scaled(scaler, table(), S)
    arrays = {key: array.copy() for key, array in scaler.arrays().items()}
    Centring(kind, 6).restore(arrays, N)
    with pytest.raises(ModelFileError):
        Centring(kind, 6).restore(arrays | {name: change(arrays[name])}, N)
    with pytest.raises(ModelFileError):
        Centring(kind, 6).restore({key: array for key, array in arrays.items() if key != name}, N)


def test_the_columns_of_a_very_wide_row_are_found_in_little_time():
    """NumPy's own union of columns takes microseconds for each."""
    n = 400_000
    wide = sp.csr_array((np.ones(n), np.arange(n), [0, n, n]), shape=(2, n))
    learner = Learner("implicit-ftrl", "logistic", scale="tempered", fit_intercept=True, n_features=n)
    learner.learn(wide, np.array([1.0, -1.0]))
    began = time.process_time()
    for _ in range(10):
        used = learner.scaler.used
    assert time.process_time() - began < 1.0
    np.testing.assert_array_equal(used, np.arange(n))
