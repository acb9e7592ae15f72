"""Weights and their totals against exact integers; the lazy sums against sums."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onlinear import Learner, load
from onlinear.averages import (
    NAMED,
    NUMBERS,
    Average,
    Masked,
    alive,
    close_fallen,
    moved,
    moved_sum,
    new_table,
    part_sum,
    record,
    room_to_close,
    turned,
)
from onlinear.compiled import kernel
from onlinear.penalties import ElasticNet

AVERAGES = {**NAMED, "suffix": Average(1.0, 0.0, 37.0), "late growth": Average(1.0, 1.0, 5.0)}
every_average = pytest.mark.parametrize("average", AVERAGES.values(), ids=AVERAGES)


def weight(average, k):
    """Weight of the predictor before step k, in whole numbers."""
    k = k - 1 if average.post else k
    return int(average.base) + int(average.growth) * k if k >= int(average.first) else 0


@every_average
def test_weights_and_totals(average):
    total = 0
    for t in range(1, 300):
        assert average.om(t) == weight(average, t)
        total += weight(average, t)
        # after t steps an average of the predictors after them has one more: the last
        assert average.total(t) == total + (weight(average, t + 1) if average.post else 0)


@every_average
@pytest.mark.parametrize("T", [10**6, 10**9 - 1, 10**9])
def test_totals_of_long_runs(average, T):
    base, growth, first = int(average.base), int(average.growth), int(average.first)
    n = T - first + 1
    exact = base * n + growth * (T * (T + 1) // 2 - first * (first - 1) // 2)
    assert average.total(T) == pytest.approx(exact, rel=1e-15)
    assert average.om(T) == weight(average, T)


def test_no_weight_before_the_first_step():
    late = Average(1.0, 0.0, 1000.0)
    assert late.om(999) == 0.0
    assert late.total(999) == 0.0
    assert late.total(1000) == 1.0
    assert all(average.total(0) == 0.0 for average in AVERAGES.values())


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40), st.integers(1, 40), st.floats(0, 3))
@settings(max_examples=200, deadline=None)
def test_alive_counts_thresholds_below(rises, c, size):
    q = np.cumsum(rises)
    c = min(c, len(q))
    table = new_table(len(q))
    table[: NUMBERS * len(q) : NUMBERS] = q
    assert alive(table, c, size) == int(np.sum(q[:c] < size))
    assert alive(table, 0, size) == 0
    assert alive(table, c, float(q[c - 1])) == int(np.sum(q[:c] < q[c - 1]))  # a tie is dead


@pytest.mark.parametrize("power", [-0.9, -0.5, 0.0, 0.7, 3.0, "exponential", "steps"])
def test_alive_finds_the_step_whatever_the_schedule(power):
    """Thresholds that rise ever more slowly, evenly, ever faster, and by leaps with rests between them."""
    k = np.arange(1.0, 3001.0)
    rises = np.exp(0.02 * k) if power == "exponential" else (k % 100 == 0) * k if power == "steps" else k**power
    q = np.concatenate([[0.0], np.cumsum(rises)])
    table = new_table(len(q))
    table[: NUMBERS * len(q) : NUMBERS] = q
    for c in (1, 2, 3, 100, 3001):
        for size in [*q[: c : max(1, c // 50)], *(0.5 * (q[1:c] + q[: c - 1]))[:: max(1, c // 50)], 0.0, 2.0 * q[-1], 5e-324]:
            assert alive(table, c, size) == np.searchsorted(q[:c], size, side="left")


@kernel
def _alive(table, c, size):
    return alive(table, c, size)


schedules = pytest.mark.parametrize(
    "rises",
    [np.ones(1000), np.arange(1.0, 1001.0) ** -0.5, np.exp(np.arange(1000) / 50.0), np.arange(1000) % 97 == 5, np.eye(1000)[3]],
    ids=["even", "slower", "faster", "stairs", "one stair"],
)


@pytest.mark.parametrize("count", [_alive, alive], ids=["compiled", "interpreted"])
@schedules
def test_a_guess_of_the_step_at_which_a_state_dies_is_checked(rises, count):
    q = np.cumsum(rises, dtype=np.float64)
    for unit in (1e-6, 1e-300, 1e300 / q[-1]):
        table, rising = new_table(len(q)), q * unit
        table[: NUMBERS * len(q) : NUMBERS] = rising
        for c in (1, 2, 3, 500, len(q)):
            sizes = np.concatenate([rising[:c], np.nextafter(rising[:c], np.inf), np.linspace(0.0, rising[c - 1], 7)])
            wanted = np.searchsorted(rising[:c], sizes)
            assert [count(table, c, size) for size in sizes[::3].tolist()] == wanted[::3].tolist()


@kernel
def _close_fallen(table, c, mark, V, B, indices, begin, end, listed):
    close_fallen(table, c, mark, V, B, indices, begin, end, listed)


@pytest.mark.parametrize("close", [_close_fallen, close_fallen], ids=["compiled", "interpreted"])
@schedules
def test_sums_of_fallen_states_are_closed_together_as_one_by_one(rises, close):
    rng = np.random.default_rng(0)
    q = np.cumsum(rises, dtype=np.float64)
    for unit in (1e-6, 1e-300, 1e200 / q[-1]):
        table = new_table(len(q))
        for k, at in enumerate(q * unit):
            record(table, k + 1, 1.0, at, 1.0)
        for c in (1, 2, 3, 500, len(q)):
            last = q[c - 1] * unit
            V = np.concatenate(
                [[0.0, -0.0, last, -last, 5e-324], rng.uniform(-2.0, 2.0, 60) * last, rng.choice(q[:c], 9) * unit]
            )
            B, columns = rng.standard_normal(len(V)), np.arange(1, len(V) - 1, dtype=np.uint32)
            fallen = (V != 0.0) & (np.abs(V) <= last) & np.isin(np.arange(len(V)), columns)
            wanted = [b + part_sum(table, c, v) if fell else b for b, v, fell in zip(B, V.tolist(), fallen, strict=True)]
            begin, end = np.uint64(0), np.uint64(len(columns))
            close(
                table,
                c,
                (last, *table[NUMBERS * c + 1 : NUMBERS * c + 3]),
                V,
                B,
                columns,
                begin,
                end,
                room_to_close(len(columns)),
            )
            assert B.tobytes() == np.array(wanted).tobytes()


@kernel
def _simulate(penalty, average, etas, writes, values, V, B, A):
    """One coordinate: potentials written at some steps, its sum kept lazily; gives the sum of om_k w_k after all steps."""
    table = np.zeros(NUMBERS * (etas.shape[0] + 1))
    clock = penalty.start()
    for t in range(1, etas.shape[0] + 1):
        after = penalty.tick(clock, etas[t - 1])
        mark = record(table, t, average.om(t), clock[1], clock[2])
        if writes[t - 1]:
            V[0] = moved(table, t, mark, B, 0, V[0], penalty.deposit(values[t - 1], etas[t - 1], clock, after))
        clock = after
    A[0] = B[0] + part_sum(table, etas.shape[0], V[0])
    return penalty.weight(V[0], clock)


@every_average
@pytest.mark.parametrize(
    "penalty", [ElasticNet(), ElasticNet(l1=0.05), ElasticNet(l2=0.02), ElasticNet(l1=0.1, l2=0.05)], ids=repr
)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_the_lazy_sum_is_the_sum(average, penalty, data):
    n = data.draw(st.integers(1, 60))
    etas = np.array(data.draw(st.lists(st.one_of(st.just(0.0), st.floats(0, 1)), min_size=n, max_size=n)))
    writes = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    values = np.array(data.draw(st.lists(st.floats(-2, 2), min_size=n, max_size=n)))
    start = data.draw(st.floats(-2, 2))
    V, B, A = np.array([penalty.potential(start, penalty.start())]), np.zeros(1), np.zeros(1)
    last = _simulate(penalty, average, etas, writes, values, V, B, A)
    w, total, size = start, 0.0, 0.0
    for t in range(1, n + 1):
        total += average.om(t) * w
        size += average.om(t) * max(abs(w), 1.0)
        w = float(penalty.prox(values[t - 1] if writes[t - 1] else w, etas[t - 1]))
    assert last == pytest.approx(w, rel=1e-12, abs=1e-13)
    assert A[0] == pytest.approx(total, rel=1e-12, abs=1e-12 * size)


@pytest.mark.parametrize("solver", ["comid,eta=2", "implicit-ftrl", "sgd", "rda", "csgd,m=40"])
@pytest.mark.parametrize("text", ["weighted-t1", "uniform-post", "suffix,total=80"])
def test_a_masked_average_is_0_where_the_last_iterate_is(solver, text):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 12)) * (rng.random((80, 12)) < 0.4), np.where(rng.random(80) < 0.5, -1.0, 1.0)
    X[:, 3] = 0.0
    loss, penalty = ("squared", "none") if "csgd" in solver else ("logistic", "none" if solver == "sgd" else "l1=0.05")
    plain, masked = (
        Learner(solver, loss, penalty, name, fit_intercept=True).learn(X, y) for name in (text, f"{text},masked=true")
    )
    zeros = masked.weights() == 0.0
    assert zeros.any()
    np.testing.assert_array_equal(masked.weights(average=True), np.where(zeros, 0.0, plain.weights(average=True)))
    assert masked.intercept(average=True) == plain.intercept(average=True)


def test_a_masked_average_as_an_object_is_that_of_its_text(tmp_path):
    X, y = np.eye(4)[[0, 1, 0, 2]], np.array([1.0, -1.0, 1.0, 1.0])
    by_text = Learner("comid", "hinge", "l1=0.1", "weighted-t1,masked=true").learn(X, y)
    by_object = Learner("comid", "hinge", "l1=0.1", Masked(1.0, 1.0)).learn(X, y)
    for run in (by_text, by_object):
        run.save(tmp_path / "model")
        again = load(tmp_path / "model")
        assert again.weights(average=True).tobytes() == by_text.weights(average=True).tobytes()


@pytest.mark.parametrize("text", ["none,masked=true", "adaptive,masked=true", "uniform,masked=1"])
def test_masks_that_mean_nothing_are_refused(text):
    with pytest.raises((ValueError, TypeError), match="masked"):
        Learner("comid", "hinge", average=text)


def test_where_no_threshold_has_risen_sums_move_without_asking():
    states = [0.0, -0.0, 1.5, -2.25, 5e-324, -1e300]
    for old in states:
        for new in states:
            mark = (0.0, 7.0, 0.0)
            gained, kept = turned(mark, old, new)
            assert moved_sum(mark, old, new) == gained
            assert str(kept) == str(new)
