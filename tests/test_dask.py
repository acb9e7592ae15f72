"""``onlinear.dask``: the same bytes on every cluster, dead workers included; what collections give; what is refused."""

import os
import signal
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from deadly import Deadly
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from typer.testing import CliRunner

from onlinear import OnlineClassifier as Local
from onlinear import PenaltyPath, __version__, streams
from onlinear.cli import app
from onlinear.models.evaluation import evaluate
from onlinear.shards import Blocks, fit, rotate
from onlinear.shards import Local as Loop
from onlinear.streams import StreamError

dask = pytest.importorskip("dask", reason="the extra dask is not installed")
distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")

da = pytest.importorskip("dask.array")
db = pytest.importorskip("dask.bag")
on_dask = pytest.importorskip("onlinear.dask")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
X, Y = load_breast_cancer(return_X_y=True)
ENDS = [0, 150, 300, 450, 569]
PARTS = [slice(a, b) for a, b in pairwise(ENDS)]
SETTINGS = {"penalty": "l1=1e-2", "tol": 1e-4}


def cluster(workers, threads, *, processes):
    return distributed.LocalCluster(
        workers, threads_per_worker=threads, processes=processes, dashboard_address=None, scheduler_port=0
    )


@pytest.fixture(scope="module")
def client():
    with cluster(1, 2, processes=False) as threads, distributed.Client(threads) as connected:
        yield connected


def bytes_of(model, folder):
    model.save(folder / "m")
    return (folder / "m").read_bytes()


@pytest.fixture(scope="module")
def alone():
    """What a loop on this machine gives for the shards."""
    return fit(Local(**SETTINGS), [Blocks(str(k), ((X[part], Y[part]),)) for k, part in enumerate(PARTS)], Loop())


def collections():
    chunks = tuple(part.stop - part.start for part in PARTS)
    x, y = da.from_array(X, chunks=(chunks, -1)), da.from_array(Y, chunks=(chunks,))
    yield "dense", x, y
    yield "CSR", x.map_blocks(sp.csr_array, dtype=np.float64, meta=sp.csr_array((0, 0))), y
    yield "bag", db.from_delayed([dask.delayed(lambda part: [(X[part], Y[part])])(part) for part in PARTS]), None
    yield "delayed", [dask.delayed(lambda part: (X[part], Y[part]))(part) for part in PARTS], None


@pytest.mark.parametrize(("name", "x", "y"), list(collections()), ids=lambda value: value if isinstance(value, str) else "")
def test_blocks_of_collections_give_the_bytes_of_a_loop(client, alone, tmp_path, name, x, y):
    model = on_dask.OnlineClassifier(**SETTINGS, client=client).fit(x, y)
    assert bytes_of(model.to_local(), tmp_path) == bytes_of(alone, tmp_path)
    assert model.history_[-1].gap == alone.dual_gap_


def test_a_path_has_the_bytes_of_one_machine(client, tmp_path):
    penalties = ["l1=1e-4", "l1=1e-2", "none"]
    alone = PenaltyPath(Local(), penalties).partial_fit(X, Y, classes=[0, 1])
    for _, x, y in collections():
        path = on_dask.PenaltyPath(Local(), penalties, client=client)
        with pytest.raises(NotFittedError):
            path.to_local()
        assert bytes_of(path.fit(x, y).to_local(), tmp_path) == bytes_of(alone, tmp_path)
    (model,) = rotate([Local()], on_dask.shards_of(client, x, y), on_dask.OnDask(client))
    assert bytes_of(model, tmp_path) == bytes_of(Local().partial_fit(X, Y, classes=[0, 1]), tmp_path)


def test_rounds_give_the_bytes_of_a_loop(client, tmp_path):
    loop = fit(
        Local(penalty="l1=1e-2"), [Blocks(str(k), ((X[part], Y[part]),)) for k, part in enumerate(PARTS)], Loop(), rounds=3
    )
    _, x, y = next(collections())
    model = on_dask.OnlineClassifier(penalty="l1=1e-2", rounds=3, client=client).fit(x, y)
    assert bytes_of(model.to_local(), tmp_path) == bytes_of(loop, tmp_path)
    assert len(model.history_) == 3


def test_frames_files_and_lazy_predictions(client, tmp_path):
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X[:, :4], columns=list("abcd")).assign(sick=Y)
    frame = frames.from_pandas(table, npartitions=3)
    model = on_dask.OnlineClassifier(penalty="l1=1e-2", client=client).fit(frame, "sick")
    local = model.to_local()
    assert local.feature_names_in_.tolist() == list("abcd")
    for call in (Local().fit, Local().partial_fit, local.score):
        with pytest.raises(TypeError, match=r"got a data frame of Dask, which holds none yet: give its compute\(\)"):
            call(frame, "sick")
    lazy = model.predict(frame[list("abcd")])
    assert np.array_equal(lazy.compute(), local.predict(table[list("abcd")]))
    few, those = frame[frame.a == X[0, 0]][list("abcd")], X[:, 0] == X[0, 0]
    assert 0 in few.map_partitions(len).compute().tolist()
    assert np.array_equal(model.predict(few).compute(), local.predict(table[list("abcd")])[those])
    assert np.array_equal(model.predict_proba(few).compute(), local.predict_proba(table[list("abcd")])[those])
    for k in range(3):
        table[200 * k : 200 * k + 200].to_csv(tmp_path / f"{k}.csv", index=False)
    files = on_dask.OnlineClassifier(penalty="l1=1e-2", client=client).fit(str(tmp_path / "*.csv"), target="sick")
    assert files.to_local().converged_
    measured = files.evaluate(str(tmp_path / "*.csv"), target="sick")
    assert measured == evaluate(files.to_local(), streams.open(str(tmp_path / "*.csv"), target="sick"))
    with pytest.raises(StreamError, match=r"in column 'word': .* onlinear\.dask with target="):
        model.fit(frame.assign(word="a"), "sick")
    (tmp_path / "scores").mkdir()
    written = files.predict_to(str(tmp_path / "*.csv"), tmp_path / "scores", "scores")
    assert written == [str(tmp_path / "scores" / f"{k}.parquet") for k in range(3)]
    assert model.evaluate(frame, "sick").rows == 569
    (tmp_path / "1.csv").write_text("a,b,c,d,sick\n1,2,3,x,0\n")
    with pytest.raises(StreamError, match=r"1\.csv"):
        files.fit(str(tmp_path / "*.csv"), target="sick")


def test_lazy_probabilities_of_arrays(client, alone):
    _, x, y = next(collections())
    model = on_dask.OnlineClassifier(**SETTINGS, client=client).fit(x, y)
    lazy = model.predict_proba(x)
    assert lazy.shape == (569, 2)
    assert np.array_equal(lazy.compute(), alone.predict_proba(X))


def test_a_fit_is_resumed_on_another_layout(client, alone, tmp_path):
    class Stop(Exception):
        pass

    def stop(found):
        if found.passes == 4:
            raise Stop

    shards = [Blocks(f"shard {k + 1} of 4", ((X[part], Y[part]),)) for k, part in enumerate(PARTS)]
    with pytest.raises(Stop):
        fit(Local(**SETTINGS), shards, Loop(2), stop, checkpoint=tmp_path / "c")
    _, x, y = next(collections())
    model = on_dask.OnlineClassifier(**SETTINGS, client=client).fit(x, y, resume=tmp_path / "c")
    assert next(found.passes for found in model.history_) == 5
    assert bytes_of(model.to_local(), tmp_path) == bytes_of(alone, tmp_path)


def test_numbers(client):
    _, x, _ = next(collections())
    model = on_dask.OnlineRegressor(penalty="l1=1e-2", clip=False, client=client).fit(x, x[:, 0] * 2.0)
    assert model.to_local().converged_


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (da.from_array(X, chunks=(100, 10)), None, "blocks of columns"),
        (da.from_array(X, chunks=(100, -1)), da.from_array(Y, chunks=50), "the same blocks"),
        (X, Y, "must be files, a dask collection"),
        ("rows.svm", Y, "target="),
    ],
)
def test_what_does_not_go_together_is_refused(client, x, y, message):
    with pytest.raises((ValueError, TypeError), match=message):
        on_dask.OnlineClassifier(**SETTINGS, client=client).fit(x, y)


def test_other_versions_are_refused_before_the_first_round(client, monkeypatch):
    monkeypatch.setattr(on_dask, "version", lambda name: "0.0" if name == "numba" else "1")
    found = on_dask._versions()
    assert found["onlinear"] == __version__  # also where the package is not installed
    monkeypatch.undo()
    monkeypatch.setattr(client, "run", lambda task: {"tcp://far": {**on_dask._versions(), "numba": found["numba"]}})
    with pytest.raises(RuntimeError, match=r"tcp://far has numba 0\.0"):
        on_dask.OnDask(client)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("workers", "threads"), [(2, 1), (4, 1), (1, 2)])
def test_processes_give_the_bytes_of_a_loop(alone, tmp_path, workers, threads):
    _, x, y = next(collections())
    with cluster(workers, threads, processes=True) as processes, distributed.Client(processes) as connected:
        model = on_dask.OnlineClassifier(**SETTINGS, client=connected).fit(x, y)
    assert bytes_of(model.to_local(), tmp_path) == bytes_of(alone, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_worker_changes_no_byte(alone, tmp_path, workers):
    _, x, y = next(collections())
    with cluster(workers, 1, processes=True) as processes, distributed.Client(processes) as connected:
        own = set(connected.run(os.getpid).values())
        killed = []

        def kill(found):
            if not killed:
                killed.append(connected.run(os.getpid).popitem()[1])
                os.kill(killed[0], signal.SIGKILL)

        model = on_dask.OnlineClassifier(**SETTINGS, client=connected).fit(x, y, tell=kill)
        assert killed[0] in own
    assert bytes_of(model.to_local(), tmp_path) == bytes_of(alone, tmp_path)


@pytest.mark.exhaustive
@pytest.mark.parametrize("dying", [(1,), (0, 1, 2, 3)], ids=["one", "all"])
def test_workers_killed_in_the_middle_of_a_round_change_no_byte(alone, tmp_path, dying):
    shards = [Blocks(str(k), ((X[part], Y[part]),)) for k, part in enumerate(PARTS)]
    for k in dying:
        shards[k] = Deadly(*shards[k], tmp_path / f"log{k}", 4)
    patient = dask.config.set({"distributed.scheduler.allowed-failures": 10})
    with patient, cluster(2, 1, processes=True) as processes, distributed.Client(processes) as connected:
        model = fit(Local(**SETTINGS), shards, on_dask.OnDask(connected))
    assert bytes_of(model, tmp_path) == bytes_of(alone, tmp_path)
    for k in dying:
        assert len((tmp_path / f"log{k}").read_text().split()) > 4


def test_the_command_on_a_cluster_gives_the_bytes_of_one_process(client, tmp_path):
    for k, part in enumerate(PARTS):
        rows = "".join(f"{y} 1:{x[0]} 2:{x[1]}\n" for x, y in zip(X[part], Y[part], strict=True))
        (tmp_path / f"{k}.svm").write_text(rows)

    def run(*arguments):
        result = CliRunner().invoke(app, list(map(str, arguments)))
        assert result.exit_code == 0, result.output
        return result.output

    address, rows = client.scheduler.address, tmp_path / "*.svm"
    for where in (("--dask", address), ("--workers", 1)):
        run("train", rows, "--penalty", "l1=1e-2", "--tol", "1e-4", *where, "-m", tmp_path / where[0], "-q")
    model = tmp_path / "--dask"
    assert model.read_bytes() == (tmp_path / "--workers").read_bytes()
    assert run("evaluate", model, rows, "--json", "--dask", address) == run("evaluate", model, rows, "--json")
    assert run("predict", model, rows, "--dask", address) == run("predict", model, rows)


def no_client(cls, *arguments, **options):
    raise ValueError("No client found")


def test_without_a_client(client, monkeypatch):
    monkeypatch.setattr(distributed.Client, "current", classmethod(no_client))
    rows = da.from_array(X, (150, -1)), da.from_array(Y, 150)
    for model in (on_dask.OnlineClassifier(**SETTINGS), on_dask.PenaltyPath(Local(), [1e-3])):
        with pytest.raises(ValueError, match="there is no connection to a cluster: make one"):
            model.fit(*rows)
    assert on_dask.OnlineClassifier(client=client, **SETTINGS).fit(*rows).to_local().dual_gap_ <= 1e-4
