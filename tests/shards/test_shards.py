"""Fits over shards: the same bytes whoever runs the tasks, the optimum of one machine, and what is refused."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.exceptions import NotFittedError

from onlinear import OnlineClassifier, OnlineRegressor, load, streams
from onlinear.models.evaluation import evaluate as in_one_place
from onlinear.shards import Blocks, Local, Tree, evaluate, fit, fitting, open_shards, predict, predict_to, survey
from onlinear.streams import StreamError

X, Y = load_breast_cancer(return_X_y=True)


def cut(X, y, ends, weights=None):
    """Rows in shards that end at these places."""
    starts = [0, *ends]
    parts = [slice(a, b) for a, b in zip(starts, [*ends, len(y)], strict=True)]
    more = [() if weights is None else (weights[part],) for part in parts]
    return [Blocks(f"part {k}", ((X[part], y[part], *w),)) for k, (part, w) in enumerate(zip(parts, more, strict=True))]


def bytes_of(model, folder):
    model.save(folder / "m")
    return (folder / "m").read_bytes()


def sparse_model(**settings):
    return OnlineClassifier(**{"penalty": "l1=1e-2", "tol": 1e-4} | settings)


class Word(str):
    def merged(self, other):
        return Word(f"({self}{other})")


@pytest.mark.parametrize(
    ("n", "tree"),
    [(1, "0"), (2, "(01)"), (3, "((01)2)"), (5, "(((01)(23))4)"), (6, "(((01)(23))(45))"), (7, "(((01)(23))((45)6))")],
)
def test_tree_follows_from_the_number_of_shards(n, tree):
    found = Tree()
    for k in range(n):
        found.add(Word(k))
    assert found.result() == tree


def test_threads_give_the_bytes_of_a_loop_and_the_optimum_of_one_machine(tmp_path):
    shards = cut(X, Y, [100, 101, 250, 400])
    alone = fit(sparse_model(), shards, Local())
    assert bytes_of(fit(sparse_model(), shards, Local(3)), tmp_path) == bytes_of(alone, tmp_path)
    best = sparse_model(tol=1e-7).fit(X, Y)
    assert alone.dual_gap_ <= 1e-4
    assert best.dual_bound_ <= alone.objective_ <= best.objective_ / (1.0 - 1e-4)
    assert alone.duality_gap(X, Y) <= 1e-4
    again = load(tmp_path / "m")
    assert np.array_equal(again.predict(X), alone.predict(X))
    assert bytes_of(again, tmp_path) == bytes_of(alone, tmp_path)


@pytest.mark.exhaustive
def test_processes_give_the_bytes_of_a_loop(tmp_path):
    shards = cut(X, Y, [100, 101, 250, 400])
    with Local(2, processes=True) as runner:
        assert bytes_of(fit(sparse_model(), shards, runner), tmp_path) == bytes_of(
            fit(sparse_model(), shards, Local()), tmp_path
        )


def test_a_start_of_few_weights_ends_at_the_same_optimum(monkeypatch):
    monkeypatch.setattr(fitting, "STARTING", 3)
    started = []
    few = fit(sparse_model(), cut(X, Y, [100, 300]), Local(), lambda found: started.append(found.nonzeros))
    assert started[0] == 3
    best = sparse_model(tol=1e-7).fit(X, Y)
    assert best.dual_bound_ <= few.objective_ <= best.objective_ / (1.0 - 1e-4)


def test_order_of_labels_and_empty_shards_do_no_harm():
    order = np.argsort(Y, kind="stable")
    shards = cut(sp.csr_array(X[order]), Y[order], [0, 200, 200, 400])
    model = fit(sparse_model(), shards, Local())
    assert model.converged_
    assert model.duality_gap(X, Y) <= 1e-4


@pytest.mark.parametrize(("classes", "first"), [(["red", "rose", "white"], "red"), (["1", "2", "3"], 1)], ids=str)
def test_text_classes_weights_and_several_outputs(classes, first):
    X, y = load_wine(return_X_y=True)
    names = np.array(classes)[y]
    weights = 1.0 + np.arange(len(y)) % 3
    settings = {"penalty": "l2=0.1", "class_weight": {first: 3.0}, "scale": "max-abs"}
    model = fit(sparse_model(**settings), cut(X, names, [50, 90], weights), Local())
    best = sparse_model(**settings).fit(X, names, weights)
    assert model.classes_.tolist() == classes
    assert model.objective_ == pytest.approx(best.objective_, rel=3e-4)


def test_balanced_classes_count_the_rows_of_all_shards():
    order = np.argsort(Y, kind="stable")
    settings = {"class_weight": "balanced", "tol": 1e-5}
    model = fit(sparse_model(**settings), cut(X[order], Y[order], [100, 300]), Local())
    assert model.objective_ == pytest.approx(sparse_model(**settings).fit(X, Y).objective_, rel=3e-5)


def test_shards_without_rows_change_nothing():
    ends = [200, 350]
    model, with_none = (fit(sparse_model(), cut(X, Y, more), Local()) for more in (ends, [0, 200, 200, 350, len(Y)]))
    assert model.objective_ == pytest.approx(with_none.objective_, rel=1e-4)
    assert evaluate(model, cut(X, Y, [0, *ends]), Local()).loss == evaluate(model, cut(X, Y, ends), Local()).loss


@pytest.mark.parametrize("kind", ["labels", "scores", "probabilities", "intervals"])
@pytest.mark.parametrize("names", [["no", "yes"], ["a", "b", "c"]])
def test_shards_without_rows_are_predicted_and_written(tmp_path, names, kind):
    classes = np.array(names)[np.arange(len(Y)) % len(names)]
    model = OnlineClassifier(uncertainty=True, random_state=0).fit(X, classes)
    shards = cut(X, classes, [0, 100, 100])
    found = np.concatenate(list(predict(model, shards, Local(), kind)))
    whole = np.concatenate(list(predict(model, cut(X, classes, []), Local(), kind)))
    assert np.array_equal(found, whole)
    rows = [pq.read_table(path).num_rows for path in predict_to(model, shards, Local(), tmp_path, kind)]
    assert rows == [0, 100, 0, len(Y) - 100]


def test_numbers():
    X, y = load_diabetes(return_X_y=True)
    settings = {"penalty": "l1=1,l2=0.1", "tol": 1e-4, "clip": False}
    model = fit(OnlineRegressor(**settings), cut(X, y, [200]), Local())
    assert model.converged_
    assert model.duality_gap(X, y) <= 1e-4


def test_files_of_text(tmp_path):
    for k in range(3):
        rows = "".join(f"{y} 1:{i % 7 + 1} {2 + i % 5}:1\n" for i, y in enumerate(Y[150 * k : 150 * k + 150]))
        (tmp_path / f"{k}.svm").write_text(rows)
    shards = open_shards(tmp_path / "*.svm")
    assert len(shards) == 3
    model = fit(sparse_model(penalty="l1=1e-3"), shards, Local())
    small = fit(sparse_model(penalty="l1=1e-3"), open_shards(tmp_path / "*.svm", block_bytes=600), Local())
    assert bytes_of(model, tmp_path) == bytes_of(small, tmp_path)
    assert model.duality_gap(streams.open(tmp_path / "*.svm")) <= 1e-2
    (tmp_path / "1.svm").write_text("1 1:1\n0 x:2\n")
    with pytest.raises(StreamError, match=r"1\.svm:2: expected index:value"):
        fit(sparse_model(), shards, Local())


def test_files_of_columns_share_the_columns_of_the_first(tmp_path):
    for k, words in enumerate((["a", "b"], ["c", "a"])):
        answers = pa.array(["yes", "no"] * 20)
        table = pa.table({"word": words * 20, "size": np.arange(40.0) + k, "bought": answers})
        pq.write_table(table, tmp_path / f"{k}.parquet")
    shards = open_shards(tmp_path, target="bought", hash_bits=5)
    model = fit(sparse_model(), shards, Local())
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.encoding_["features"] == [["word", "text"], ["size", "number"]]
    assert model.encoding_["seen"]["names"] == ["word=a", "word=b", "word=c"], "as one reader of all files keeps them"
    with pytest.raises(ValueError, match="use 'hash'"):
        open_shards(tmp_path, target="bought", categories="one-hot")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tol": None}, "give tol="),
        ({"average": "weighted-t1"}, "has no average"),
        ({"scale": "standard"}, "excludes scale='standard'"),
        *(({"scale": scale}, "use 'rms', 'max-abs' or 'none'") for scale in ("centred", "tempered", "dense")),
        ({"solver": "mixture", "penalty": "l2=1e-2"}, "scale='dense' has no form over shards"),
        ({"penalty": "none"}, "no gap is finite|penalty"),
        ({"loss": "hinge"}, "second derivative"),
        ({"solver": "rls"}, "rls"),
        ({"max_passes": 2}, "leaves no pass"),
    ],
)
def test_what_has_no_form_over_shards_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        fit(sparse_model(**settings), cut(X, Y, [300]), Local())


@pytest.mark.parametrize("rounds", [None, 2])
@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ({1: -2.0}, ValueError, r"weight of 1 must be in \[0, inf\), got -2"),
        ({1: np.nan}, ValueError, r"weight of 1 must be in \[0, inf\), got nan"),
        ({1: "2"}, TypeError, "weight of 1 must be a number"),
        ({0: 0, 1: 0}, ValueError, "every class the weight zero"),
        ({7: 2.0}, ValueError, r"The classes, \[0, 1\], are not in class_weight"),
        ([1, 2], TypeError, "None, 'balanced' or a dict"),
        ("even", ValueError, "None, 'balanced' or a dict"),
    ],
    ids=str,
)
def test_class_weights_are_checked_as_those_of_arrays(weights, error, message, rounds):
    model = sparse_model(class_weight=weights).set_params(**({} if rounds is None else {"tol": None}))
    for fitted in (lambda: fit(model, cut(X, Y, [300]), Local(), rounds=rounds), lambda: model.fit(X, Y)):
        with pytest.raises(error, match=message):
            fitted()


def test_numbers_may_be_named_as_text_as_those_of_a_stream():
    as_text, as_number = (fit(sparse_model(class_weight={one: 3.0}), cut(X, Y, [300]), Local()) for one in ("1", 1))
    np.testing.assert_array_equal(as_text.coef_, as_number.coef_)
    with pytest.raises(ValueError, match=r"The classes, \[0, 1\], are not in class_weight"):
        fit(sparse_model(class_weight={"yes": 3.0}), cut(X, Y, [300]), Local())


def test_rows_that_the_weights_of_classes_leave_out_are_no_rows():
    model = sparse_model(class_weight={0: 0.0})
    with pytest.raises(StreamError, match="weight above 0"):
        fit(model, cut(X, Y, [300], (Y == 0).astype(float)), Local())
    with pytest.raises(StreamError, match="weight above 0"):
        fit(model, cut(X[:0], Y[:0], []), Local())


def test_a_weight_times_that_of_its_class_that_is_infinite_is_refused_with_its_row():
    model = sparse_model(class_weight={0: 1e200})
    weights = np.where(np.arange(len(Y)) == 5, 1e200, 1.0)
    with pytest.raises(StreamError, match=r"part 0, block 1:6: expected a finite weight, got 1e\+200 of the row times 1e\+200"):
        fit(model, cut(X, Y, [300], weights), Local())


def test_wrong_rows_are_refused_by_shard():
    with pytest.raises(StreamError, match="a, block 1: X contains NaN at row 1"):
        survey(Blocks("a", (([[0.0], [np.nan]], [0, 1]),)), True)
    with pytest.raises(StreamError, match="expected classes"):
        survey(Blocks("a", ((np.ones((70_000, 1)), np.arange(70_000.0)),)), True)
    with pytest.raises(StreamError, match="at least one shard"):
        fit(sparse_model(), [], Local())
    with pytest.raises(ValueError, match="at least two classes"):
        fit(sparse_model(), cut(X, np.ones(len(Y)), [300]), Local())
    with pytest.raises(StreamError, match="weight above 0"):
        fit(sparse_model(), cut(X, Y, [300], np.zeros(len(Y))), Local())


def test_a_file_without_the_column_of_weights_is_named(tmp_path):
    table = pd.DataFrame({"size": [1.0, 2.0], "weight": [1.0, 2.0], "bought": [0, 1]})
    table.to_parquet(tmp_path / "0.parquet")
    table.drop(columns="weight").to_parquet(tmp_path / "1.parquet")
    shards = open_shards(str(tmp_path / "*.parquet"), target="bought", weight="weight")
    with pytest.raises(StreamError, match=r"1\.parquet: weight: the column 'weight' is not known"):
        fit(sparse_model(), shards, Local())


def test_predictions_and_measures_are_those_of_one_stream(tmp_path):
    for k in range(3):
        rows = slice(150 * k, 150 * k + 150)
        table = pa.table({"a": X[rows, 0], "b": X[rows, 1], "sick": Y[rows]})
        pq.write_table(table, tmp_path / f"{k}.parquet")
    model = fit(sparse_model(), open_shards(tmp_path / "*.parquet", target="sick"), Local())
    stream = streams.open(tmp_path / "*.parquet", encoding=model.encoding_)
    shards = open_shards(tmp_path / "*.parquet", encoding=model.encoding_)
    wanted = model.predict_proba(stream)
    for runner in (Local(), Local(3)):
        assert np.array_equal(np.concatenate(list(predict(model, shards, runner, "probabilities"))), wanted)
        assert evaluate(model, shards, runner) == in_one_place(model, stream)
    (tmp_path / "found").mkdir()
    files = predict_to(model, shards, Local(2), tmp_path / "found", "probabilities")
    assert files == [str(tmp_path / "found" / f"{k}.parquet") for k in range(3)]
    found = pa.concat_tables([pq.read_table(file) for file in files])
    assert found.column_names == ["probability 0", "probability 1"]
    assert np.array_equal(np.column_stack(found.columns), wanted)
    with pytest.raises(ValueError, match=r"two shards would be written to 0\.parquet"):
        predict_to(model, [shards[0]] * 2, Local(), tmp_path / "found")
    with pytest.raises(ValueError, match="kind must be one of"):
        next(predict(model, shards, Local(), "odds"))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        predict_to(model, shards, Local(), tmp_path / "nowhere")
    for ask in (evaluate, lambda *given: next(predict(*given)), lambda *given: predict_to(*given, tmp_path / "found")):
        with pytest.raises(NotFittedError, match="is not fitted yet"):
            ask(OnlineClassifier(), shards, Local())
    for workers in (0, "2"):
        with pytest.raises(ValueError, match="workers must be an integer of at least 1"):
            Local(workers)


def test_what_cannot_be_cut_into_shards_is_refused():
    with pytest.raises(ValueError, match="pipe"):
        open_shards("-")
    with pytest.raises(ValueError, match="bundled"):
        open_shards("iris")


def test_frames_whose_columns_are_others_than_those_learned_are_refused():
    frame = pd.DataFrame(X[:, :3], columns=["a", "b", "c"])
    right, turned = [Blocks("rows", ((frame[list(names)], Y),)) for names in ("abc", "cba")]
    model, message = fit(sparse_model(), [right], Local()), "rows, block 1: the columns of X must have the names that the model"
    assert evaluate(model, [right], Local()).measures["error"] < 0.2
    with pytest.raises(StreamError, match=message):
        evaluate(model, [turned], Local())
    with pytest.raises(StreamError, match=message):
        list(predict(model, [turned], Local()))
    unnamed = Blocks("rows", ((X[:, :3], Y),))
    assert evaluate(model, [unnamed], Local()) == evaluate(model, [right], Local())
    assert evaluate(fit(sparse_model(), [unnamed], Local()), [turned], Local()).rows == len(Y)


@pytest.mark.parametrize("widths", [(3, 2), (2, 3)])
def test_dense_shards_of_unequal_widths_are_refused(widths):
    unequal = [Blocks(f"rows {k}", ((X[:, :width], Y),)) for k, width in enumerate(widths)]
    with pytest.raises(
        ValueError, match="dense X must have equally many columns in all shards, got {}.* and {}".format(*widths)
    ):
        fit(sparse_model(), unequal, Local())
    sparse = [Blocks(f"rows {k}", ((sp.csr_matrix(X[:, :width]), Y),)) for k, width in enumerate(widths)]
    assert fit(sparse_model(), sparse, Local()).n_features_in_ == 3
    mixed = [unequal[0], Blocks("none", ((X[:0, :1], Y[:0]),)), Blocks("wide", ((sp.csr_matrix(X), Y),))]
    assert fit(sparse_model(), mixed, Local()).n_features_in_ == X.shape[1]


def test_labels_that_doubles_do_not_tell_apart_are_refused():
    with pytest.raises(StreamError, match=r"part 0: expected classes within 2\^53.* got 4\.61168"):
        fit(sparse_model(), cut(X, 2**62 + np.arange(len(Y)) % 3 + 5000 * Y, [200]), Local())


def test_text_and_numbers_as_labels_of_two_shards_are_refused():
    mixed = [*cut(X, Y, []), *cut(X, np.where(Y, "a", "b"), [])]
    for shards in (mixed, mixed[::-1]):
        with pytest.raises(ValueError, match="y must be text in all shards or numbers in all"):
            fit(sparse_model(), shards, Local())
