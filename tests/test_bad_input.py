"""Whatever is wrong with the input, a learner raises one clear error and stays, bit for bit, as it was."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from seldom import seldom

from onlinear.averages import Average
from onlinear.errors import DivergenceError
from onlinear.learner import Learner
from onlinear.losses import Hinge
from onlinear.penalties import Box, ElasticNet
from onlinear.schedules import Power
from onlinear.solvers.comid import Comid

D, N = 4, 6
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.7)
Y = np.where(RNG.random(N) < 0.5, -1.0, 1.0)


def fresh(**settings):
    chosen = {"solver": "comid,eta=0.5", "loss": "hinge", "penalty": "l1,l1=0.01", "average": "uniform", "n_features": D}
    learner = Learner(**(chosen | {"fit_intercept": True} | settings))
    targets = Y if learner.n_outputs == 1 else np.stack([Y] * learner.n_outputs, axis=1)
    return learner.learn(X, targets)


def assert_refused(learner, call, error, message):
    before = {name: array.copy() for name, array in learner.freeze()[1].items()}
    with pytest.raises(error, match=message):
        call(learner)
    after = learner.freeze()[1]
    assert after.keys() == before.keys()
    for name in before:
        assert after[name].tobytes() == before[name].tobytes(), name
    learner.learn(X, Y if learner.n_outputs == 1 else np.stack([Y] * learner.n_outputs, axis=1))  # and goes on


def with_value(value, row, column):
    wrong = X.copy()
    wrong[row, column] = value
    return wrong


def with_index(index, dtype=np.int32):
    wrong = sp.csr_matrix(np.ones((N, D)))
    wrong.indices = wrong.indices.astype(dtype)
    wrong.indices[2 * D + 1] = index
    return wrong


def changed(values, at, value):
    wrong = np.array(values, dtype=float)
    wrong[at] = value
    return wrong


LEARN = {
    "NaN in X": ((with_value(np.nan, 3, 1), Y), ValueError, "X contains NaN at row 3, column 1"),
    "infinity in X": ((with_value(-np.inf, 0, 2), Y), ValueError, "X contains infinity at row 0, column 2"),
    "NaN in sparse X": ((sp.csr_matrix(with_value(np.nan, 5, 3)), Y), ValueError, "X contains NaN at row 5, column 3"),
    "infinity in the last row of CSC": (
        (sp.csc_matrix(with_value(np.inf, 5, 0)), Y),
        ValueError,
        "infinity at row 5, column 0",
    ),
    "NaN in y": ((X, changed(Y, 2, np.nan)), ValueError, "y contains NaN at row 2"),
    "infinity in y": ((X, changed(Y, 5, np.inf)), ValueError, "y contains infinity at row 5"),
    "NaN weight": ((X, Y, changed(np.ones(N), 1, np.nan)), ValueError, "sample_weight contains NaN at row 1"),
    "infinite weight": ((X, Y, changed(np.ones(N), 4, np.inf)), ValueError, "sample_weight contains infinity at row 4"),
    "negative weight": (
        (X, Y, changed(np.ones(N), 3, -0.5)),
        ValueError,
        "sample_weight must not be negative, got -0.5 at row 3",
    ),
    "labels 0 and 1": ((X, (Y + 1) / 2), ValueError, r"y must be -1 or \+1 for this loss, got 0 at row"),
    "three labels": ((X, changed(Y, 4, 2.0)), ValueError, r"y must be -1 or \+1 for this loss, got 2 at row 4"),
    "too many columns": ((np.ones((N, D + 1)), Y), ValueError, "X has 5 columns, the model has 4 features"),
    "index out of range": ((with_index(D), Y), ValueError, r"column index must be in \[0, 4\), got 4 at row 2"),
    "negative index": ((with_index(-1), Y), ValueError, r"column index must be in \[0, 4\), got -1 at row 2"),
    "unsigned index": ((with_index(2**32 - 1, np.uint32), Y), ValueError, r"in \[0, 4\), got 4294967295 at row 2"),
    "1-D X": ((X[0], Y), ValueError, "X must be 2-D .*got 1-D array"),
    "3-D X": ((X[None], Y), ValueError, "X must be 2-D .*got 3-D array"),
    "object X": ((X.astype(object), Y), TypeError, "X must hold numbers, got an array of dtype object"),
    "string X": ((X.astype(str), Y), TypeError, "X must hold numbers, got an array of dtype <U"),
    "complex X": ((X.astype(complex), Y), ValueError, "Complex data not supported"),
    "no X": ((None, Y), TypeError, "X must hold numbers"),
    "ragged X": (([[1.0], [1.0, 2.0]], Y[:2]), ValueError, "X must be 2-D"),
    "string y": ((X, Y.astype(str)), TypeError, "y must hold numbers, got '-?1.0' at row 0"),
    "object y": ((X, Y.astype(object)), TypeError, "y must hold numbers, got dtype object"),
    "no y": ((X, None), TypeError, "y must hold numbers"),
    "ragged y": ((X, [1.0, [1.0, -1.0]]), ValueError, "y"),
    "y too short": ((X, Y[:-1]), ValueError, "y must have one value per row of X: .*X has 6 rows, y 5"),
    "y too long": ((X, np.ones(N + 1)), ValueError, "y must have one value per row of X: .*X has 6 rows, y 7"),
    "y of two columns": ((X, np.ones((N, 2))), ValueError, r"y must have shape \(n,\) for 1 output\(s\), got \(6, 2\)"),
    "0-D y": ((X, 1.0), ValueError, r"y must have shape \(n,\)"),
    "weights too short": ((X, Y, np.ones(N - 1)), ValueError, "sample_weight must have one value per row of X"),
    "2-D weights": ((X, Y, np.ones((N, 1))), ValueError, "sample_weight must be 1-D"),
    "string weights": ((X, Y, ["a"] * N), TypeError, "sample_weight must hold numbers"),
}


@pytest.mark.parametrize("name", LEARN)
@pytest.mark.parametrize("scale", ["none", "rms"])
def test_learn(name, scale):
    arguments, error, message = LEARN[name]
    assert_refused(fresh(scale=scale), lambda learner: learner.learn(*arguments), error, message)


AS_GIVEN = "fractional index", "index beyond 32 bits", "index beyond 64 bits", "masked"
ONE = {
    "NaN value": (([0, 2], [1.0, np.nan], 1.0), ValueError, "contains NaN at row 0, column 2"),
    "infinite value": (([0, 2], [1.0, np.inf], 1.0), ValueError, "contains infinity at row 0, column 2"),
    "negative index": (([0, -1], [1.0, 1.0], 1.0), ValueError, "indices must not be negative, got -1"),
    "index out of range": (([0, 4], [1.0, 1.0], 1.0), ValueError, "the model has 4 features"),
    "index beyond 64 bits": (([0, 2**63], [1.0, 1.0], 1.0), ValueError, r"a column index .*, got 9223372036854775808\.$"),
    "index beyond 32 bits": (([0, 2**40], [1.0, 1.0], 1.0), ValueError, "column index must be at most|has .* columns"),
    "fractional index": (([0.5], [1.0], 1.0), TypeError, "indices must be integers, got dtype float64"),
    "masked": (([0, 1], np.ma.masked_array([1.0, 2.0], [0, 1]), 1.0), ValueError, "values has masked entries"),
    "lengths": (([0, 1], [1.0], 1.0), ValueError, "indices and values must be 1-D and equally long"),
    "2-D": (([[0]], [[1.0]], 1.0), ValueError, "indices and values must be 1-D and equally long"),
    "string values": (([0], ["a"], 1.0), TypeError, "values must be numbers, got dtype <U"),
    "label": (([0], [1.0], 0.0), ValueError, r"y must be -1 or \+1 for this loss, got 0"),
    "NaN label": (([0], [1.0], np.nan), ValueError, "y contains NaN"),
    "string label": (([0], [1.0], "1"), TypeError, "y must hold numbers"),
    "no label": (([0], [1.0], None), TypeError, "y must hold numbers"),
}


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("warm", [False, True], ids=["first", "later"])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, None])
def test_learn_one(name, warm, dtype):
    (indices, values, y), error, message = ONE[name]
    if dtype is not None and not isinstance(values[0], str) and name not in AS_GIVEN:
        indices, values = np.array(indices, dtype), np.array(values)
    learner = fresh()
    if warm:
        learner.learn_one(np.array([0, 2], np.int32), np.array([1.0, -1.0]), 1.0)
        learner.learn_one(np.array([0, 2], np.int32), np.array([1.0, -1.0]), 1.0)
    assert_refused(learner, lambda learner: learner.learn_one(indices, values, y), error, message)


def test_other_targets():
    counts = fresh(loss="poisson", solver="comid,eta=0.01") if np.all(Y >= 0) else Learner("comid", "poisson", n_features=D)
    assert_refused_first(counts, (X, changed(np.ones(N), 3, -2.0)), "y must be 0 or more for this loss, got -2 at row 3")
    two = fresh(n_outputs=2)
    assert_refused(two, lambda it: it.learn(X, Y), ValueError, r"y must have shape \(n, 2\) for 2 output\(s\), got \(6,\)")
    wrong = np.stack([Y, changed(Y, 1, 0.0)], axis=1)
    assert_refused(two, lambda it: it.learn(X, wrong), ValueError, r"y must be -1 or \+1 for this loss, got 0 at row 1")


def assert_refused_first(learner, arguments, message):
    before = {name: array.tobytes() for name, array in learner.freeze()[1].items()}
    with pytest.raises(ValueError, match=message):
        learner.learn(*arguments)
    assert {name: array.tobytes() for name, array in learner.freeze()[1].items()} == before


def test_a_growing_learner_does_not_grow_for_a_wrong_row():
    learner = Learner("comid", "hinge")
    learner.learn(X, Y)
    for wide, y in ((with_value(np.nan, 5, 3), Y), (np.ones((N, 50)), changed(Y, 5, 3.0))):
        with pytest.raises(ValueError, match=r"NaN|must be"):
            learner.learn(wide, y)
        assert learner.size == D
    with pytest.raises(ValueError, match="y must be"):
        learner.learn_one([80], [1.0], 5.0)
    assert learner.size == D


@pytest.mark.parametrize("read", ["predict", "objective"])
def test_reading_with_wrong_rows(read):
    learner = fresh()
    extra = () if read == "predict" else (Y,)
    for wrong, message in ((with_value(np.nan, 3, 1), "NaN at row 3, column 1"), (np.ones((N, 9)), "9 columns"), (X[0], "2-D")):
        assert_refused(learner, lambda it, wrong=wrong: getattr(it, read)(wrong, *extra), ValueError, message)


def test_nothing_to_learn_is_no_error_but_has_no_objective():
    learner = fresh()
    before = {name: array.tobytes() for name, array in learner.freeze()[1].items()}
    for empty in (np.zeros((0, D)), sp.csr_matrix((0, D))):
        learner.learn(empty, np.zeros(0))
        assert learner.predict(empty).shape == (0,)
        with pytest.raises(ValueError, match="X has 0 rows"):
            learner.objective(empty, np.zeros(0))
    assert {name: array.tobytes() for name, array in learner.freeze()[1].items()} == before


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"n_features": 0}, ValueError, "n_features must be an integer of at least 1, got 0"),
        ({"n_features": 2.5}, ValueError, "n_features must be an integer of at least 1, got 2.5"),
        ({"n_features": True}, ValueError, "n_features must be an integer of at least 1, got True"),
        ({"n_outputs": -1}, ValueError, "n_outputs must be an integer of at least 1, got -1"),
        ({"start": np.zeros(3)}, ValueError, r"start must have shape \(4,\), got \(3,\)"),
        ({"start": np.full(4, np.nan)}, ValueError, "start contains NaN at row 0"),
        (
            {"scale": "rsm"},
            ValueError,
            "scale 'rsm' is not known. Did you mean 'rms'.* Known: .*max-abs, none, rms, standard",
        ),
        ({"solver": "comdi"}, ValueError, "solver 'comdi' is not known. Did you mean 'comid'"),
        ({"loss": "hing"}, ValueError, "loss 'hing' is not known. Did you mean 'hinge'"),
        ({"penalty": "elasticnett"}, ValueError, "penalty 'elasticnett' is not known. Did you mean 'elastic-net'"),
        ({"average": "uniforn"}, ValueError, "average 'uniforn' is not known. Did you mean 'uniform'"),
        ({"solver": "comid,eta=-1"}, ValueError, r"eta must be in \(0, inf\), got -1.0"),
        ({"penalty": "l1,l1=much"}, TypeError, r"l1 must be a number in \[0, inf\), got 'much'"),
        ({"penalty": "total-variation,tv=1", "n_features": None}, ValueError, r"n_features \(--n-features\) must be given"),
    ],
)
def test_wrong_settings(settings, error, message):
    with pytest.raises(error, match=message):
        Learner(**({"solver": "comid", "loss": "hinge", "n_features": D} | settings))


def test_divergence_is_named_and_final():
    learner = Learner("comid,schedule=constant,eta=10", "squared", n_features=2)
    rows = np.tile([[1e3, 1.0]], (500, 1))
    learner.learn(rows[:3], np.ones(3))
    with pytest.raises(DivergenceError, match=r"finite at row (\d+) of this call \(step \d+, eta = 10\).*implicit") as caught:
        learner.learn(rows, np.ones(500))
    row, step = map(int, re.search(r"row (\d+) of this call \(step (\d+)", str(caught.value)).groups())
    assert step == 3 + row + 1
    for refused in (
        lambda: learner.learn(X[:, :2], Y),
        lambda: learner.learn_one([0], [1.0], 1.0),
        lambda: learner.predict(X[:, :2]),
        lambda: learner.save("never-written"),
    ):
        with pytest.raises(DivergenceError, match="has diverged and learns no more"):
            refused()


@pytest.mark.parametrize("solver", ["adagrad-rda", "adagrad-comid"])
def test_a_sum_of_squares_that_overflows_is_divergence(solver):
    """Its column would keep its weight for good, and the file of the model could not be read."""
    learner = Learner(solver, "squared", n_features=1).learn([[1e90]], [1e90])
    with pytest.raises(DivergenceError):
        learner.learn([[1.0]], [1.0])


def test_a_model_whose_file_could_not_be_read_is_not_saved(tmp_path):
    learner = Learner("mixture", "squared", n_features=1).learn([[1.0], [2.0]], [3e160, 3e160])
    assert np.isfinite(learner.weights()).all()
    with pytest.raises(DivergenceError, match=r"stopped being finite \(step 2"):
        learner.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_divergence_in_learn_one_is_the_same():
    learner = Learner("comid,schedule=constant,eta=10", "squared", n_features=2)

    def many():
        for _ in range(500):
            learner.learn_one(np.array([0, 1]), np.array([1e3, 1.0]), 1.0)

    with pytest.raises(DivergenceError, match=r"stopped being finite \(step 45, eta = 10\)"):
        many()
    with pytest.raises(DivergenceError, match="learns no more"):
        learner.learn_one(np.array([0, 1]), np.array([1e3, 1.0]), 1.0)


def test_the_first_step_that_overflows_is_the_one_named():
    learner = Learner("sgd,schedule=constant,eta=1e200", "squared", n_features=1)
    with pytest.raises(DivergenceError, match=r"at row 1 of this call \(step 2, eta = 1e\+200\)"):
        learner.learn(np.ones((4, 1)), np.ones(4))


@pytest.mark.parametrize("solver", ["fiol,schedule=constant,eta=1e308", "odrs,lam=1e308", "iodrs,lam=1e300"])
def test_what_is_advised_after_divergence_depends_on_the_solver(solver):
    learner = Learner(solver, "squared", n_features=2)
    rows, targets = np.tile([[1e3, 1.0], [-1e3, 5.0]], (50, 1)), np.tile([1.0, 1e3], 50)
    explicit = solver.startswith("iodrs")
    advice = (
        r"Use a smaller step, or a solver whose steps are implicit: 'fiol' or 'odrs'\.$"
        if explicit
        else r"Use a smaller step\.$"
    )
    with pytest.raises(DivergenceError, match=advice):
        learner.learn(rows, targets)


def test_weights_that_make_steps_too_large_are_named():
    learner = Learner("sgd,schedule=constant,eta=0.1", "squared", n_features=1)
    with pytest.raises(DivergenceError, match=r"Rows count up to 5e\+03 times, which .*: divide their weights by the mean, or"):
        learner.learn(np.ones((500, 1)), np.ones(500), np.full(500, 5e3))
    learner = Learner("sgd,schedule=constant,eta=0.1", "squared,factor=5e3", n_features=1)
    with pytest.raises(DivergenceError, match=r"\. Use a smaller step"):
        learner.learn(np.ones((500, 1)), np.ones(500))


LARGE = ["fiol", "fiol,inner=sort", "implicit-sgd", "implicit-ftrl", "pa", "comid", "odrs"]
SCALED = [(solver, "rms") if "inner" not in solver else seldom(solver, "rms") for solver in LARGE]


@pytest.mark.parametrize(("solver", "scale"), [*((solver, "none") for solver in LARGE), *SCALED])
def test_values_without_a_finite_square_are_refused(solver, scale):
    learner = Learner(solver, "hinge", n_features=D, scale=scale).learn(np.eye(2, D), [1.0, -1.0])
    message = r"a value of size 1e\+155 at row 1; .* at most 1e\+150"
    rows = np.diag([1.0, -1e155, 0.0, 0.0])[:2, :D]
    for given in (rows, sp.csr_matrix(rows)):
        assert_refused(learner, lambda learner, given=given: learner.learn(given, [1.0, 1.0]), ValueError, message)
    row = np.array([1]), np.array([1e155])
    assert_refused(learner, lambda learner: learner.learn_one(*row, 1.0), ValueError, "the row holds a value of size 1e\\+155")


@pytest.mark.parametrize("solver", LARGE)
def test_the_largest_values_are_learned(solver):
    learner = Learner(solver, "hinge", n_features=1).learn([[1e150]], [1.0])
    assert np.isfinite(learner.weights()).all()
    assert learner.weights()[0] != 0.0


@pytest.mark.parametrize(
    ("parts", "error", "message"),
    [
        ((Comid(Power(-1.0)), Hinge()), ValueError, r"solver Comid Power: eta must be in \(0, inf\), got -1.0"),
        ((Comid(), Hinge(), ElasticNet(-1.0, 0.0)), ValueError, "penalty ElasticNet: l1 must be in"),
        ((Comid(), Hinge(), Box(lower=1.0, upper=-1.0)), ValueError, "penalty Box: lower must be in"),
        ((Comid(), Hinge(), "none", Average(-1.0, 0.0)), ValueError, "average Average: base must be in"),
        ((Comid(), Hinge(factor=np.nan)), ValueError, "loss Hinge: factor must be in"),
        ((Comid("inverse"), Hinge()), TypeError, "schedule must be a schedule object such as Power"),
        ((Comid, Hinge()), TypeError, "solver must be text or a part object, got the class Comid: make one, as in Comid"),
        ((Comid(), Hinge), TypeError, "loss must be text or a part object, got the class Hinge"),
    ],
)
def test_settings_of_part_objects_are_checked_as_those_of_text(parts, error, message):
    with pytest.raises(error, match=message):
        Learner(*parts)


def test_masked_targets_and_weights():
    learner = Learner("comid", "hinge", n_features=D)
    hidden = np.ma.masked_array(Y, mask=Y > 0)
    assert_refused(learner, lambda learner: learner.learn(X, hidden), ValueError, "y has masked entries")
    assert_refused(
        learner, lambda learner: learner.learn(X, Y, np.ma.abs(hidden)), ValueError, "sample_weight has masked entries"
    )


# --- one row at a time, the short way and the long way --------------------------------------------------------------


@pytest.mark.parametrize("average", [None, "weighted-t1"])
@pytest.mark.parametrize("loss", ["hinge,factor=2", "squared", "poisson"])
def test_learn_one_is_learn_bit_for_bit(average, loss):
    rng = np.random.default_rng(7)
    rows = rng.standard_normal((150, 30)) * (rng.random((150, 30)) < 0.3)
    y = np.where(rng.random(150) < 0.5, -1.0 if loss.startswith("h") else 3.0, 1.0)
    settings = {"solver": "comid,eta=0.05", "loss": loss, "penalty": "elastic-net,l1=0.01,l2=0.01", "fit_intercept": True}
    whole = Learner(**settings, average=average).learn(rows, y)
    single = Learner(**settings, average=average)
    kinds = [np.int32, np.int64, np.uint32]
    for i, row in enumerate(rows):
        columns = np.flatnonzero(row).astype(kinds[i % 3])
        values = row[columns]
        if i % 5 == 0:  # stored zeros, any order, lists: the long way
            columns, values = np.append(columns, 0)[::-1].tolist(), np.append(values, 0.0)[::-1].tolist()
        elif i % 5 == 1:  # strided arrays: the short way
            columns, values = np.repeat(columns, 2)[::2], np.repeat(values, 3)[::3]
        want = single.predict(row[None])[0] if average is None else None
        score = single.learn_one(columns, values, float(y[i]))
        assert want is None or score == pytest.approx(want, rel=1e-12, abs=1e-14)  # the kernel divides the whole sum by P
    assert single.progressive_loss == whole.progressive_loss
    one, other = single.freeze()[1], whole.freeze()[1]
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].tobytes() == other[name].tobytes(), name


def test_learn_one_takes_long_and_empty_rows():
    learner, whole = (Learner("comid", "squared", n_features=2000) for _ in range(2))
    dense = np.random.default_rng(1).standard_normal(2000)
    for _ in range(3):
        learner.learn_one(np.array([], np.int64), np.array([]), 1.0)
        learner.learn_one(np.arange(2000), 1e-3 * dense, 2.0)
        whole.learn(np.stack([np.zeros(2000), 1e-3 * dense]), [1.0, 2.0])
    np.testing.assert_array_equal(learner.weights(), whole.weights())
    assert learner.t == whole.t == 6


def test_learn_one_between_learn_growth_and_outputs():
    learner, whole = Learner("comid", "hinge", average="uniform"), Learner("comid", "hinge", average="uniform")
    for width in (3, 3, 3, 70, 70, 5):
        row = np.zeros(width)
        row[[0, width - 1]] = 1.0, -1.0
        learner.learn_one(np.flatnonzero(row), row[row != 0], 1.0)
        learner.learn(row[None], [-1.0])
        whole.learn(np.stack([row, row]), [1.0, -1.0])
    np.testing.assert_array_equal(learner.weights(True), whole.weights(True))
    two = Learner("comid", "squared", n_features=3, n_outputs=2)
    np.testing.assert_array_equal(two.learn_one([0], [1.0], [1.0, -1.0]), [0.0, 0.0])
    assert two.learn_one([0], [1.0], [1.0, -1.0]).shape == (2,)
