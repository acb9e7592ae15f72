"""The command with ``--workers`` and ``--dask``: the bytes of Python's, resumed from any round; one clear error first."""

import pytest
from command import lines, run

from onlinear import OnlineClassifier
from onlinear.cli import sharded
from onlinear.shards import Local, fit, open_shards

LABELS = ["no", "yes"]


@pytest.fixture(autouse=True)
def one_process(monkeypatch):
    """Workers are threads here: tests/shards has processes."""
    monkeypatch.setattr(sharded, "Local", lambda workers, processes: Local(workers))


@pytest.fixture
def rows(tmp_path):
    for k in range(3):
        lines = [f"{i},{(7 * i + k) % 13 - 6},{i % 5},{LABELS[(i * i + k) % 7 > 2]}\n" for i in range(40 + 20 * k)]
        (tmp_path / f"part-{k}.csv").write_text("id,size,kind,bought\n" + "".join(lines))
    return tmp_path / "part-*.csv"


def command(*arguments, code=0):
    """What the command said, on one line."""
    return " ".join(run(*arguments, code=code).split())


OPTIONS = ("--target", "bought", "--exclude", "id", "--penalty", "l1=1e-3", "--tol", "1e-5")


def test_workers_give_the_bytes_of_python_and_of_a_resumed_run(rows, tmp_path):
    said = command("train", rows, *OPTIONS, "--workers", 3, "-m", tmp_path / "m", "--checkpoint", tmp_path / "c")
    assert "certified: the objective is at most" in said
    assert "3 shards" in said
    model = OnlineClassifier(penalty="l1=1e-3", tol=1e-5, random_state=0, scale=None)
    alone = fit(model, open_shards(rows, target="bought", exclude=("id",)), Local())
    alone.save(tmp_path / "alone")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "alone").read_bytes()
    (tmp_path / "m").unlink()
    command("train", "--resume", tmp_path / "c", "--workers", 1, "--quiet")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "alone").read_bytes()
    short = ("--max-passes", 3, "-m", tmp_path / "half")
    assert "not certified" in command("train", rows, *OPTIONS, "--workers", 2, *short)


def test_rounds_give_the_bytes_of_python_and_of_a_resumed_run(rows, tmp_path):
    options = (*OPTIONS[:-2], "--rounds", 3)
    said = command("train", rows, *options, "--workers", 3, "-m", tmp_path / "m", "--checkpoint", tmp_path / "c")
    assert "passes in" in said
    model = OnlineClassifier(penalty="l1=1e-3", random_state=0, scale=None)
    fit(model, open_shards(rows, target="bought", exclude=("id",)), Local(), rounds=3).save(tmp_path / "alone")
    assert (tmp_path / "m").read_bytes() == (tmp_path / "alone").read_bytes()
    (tmp_path / "m").unlink()
    *_, last, end = lines("--resume", tmp_path / "c", "--workers", 1)
    assert (last["seconds"], end["passes"]) == (0.0, last["passes"]), "no round is left: where it stands"
    assert (tmp_path / "m").read_bytes() == (tmp_path / "alone").read_bytes()
    kinds = [line["kind"] for line in lines(rows, *options, "--workers", 1)]
    assert kinds == ["start", "round", "round", "round", "end"]


def test_json_has_a_line_for_each_round(rows):
    start, *rounds, end = lines(rows, *OPTIONS, "--workers", 1)
    assert (start["kind"], start["shards"], start["task"]) == ("start", 3, "classify")
    assert [found["kind"] for found in rounds] == ["certified"] * len(rounds)
    assert [found["passes"] for found in rounds] == list(range(3, 3 + len(rounds)))
    assert end["certified"]["gap"] == rounds[-1]["gap"] <= 1e-5


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--workers", "0"), "Invalid value for '--workers'"),
        (("--workers", "2", "--dask", "tcp://127.0.0.1:1"), "exclude each other"),
        (("--workers", "2", "--holdout", "0.1"), "--holdout has no form over shards"),
        (("--workers", "2", "--passes", "2"), "--passes has no form over shards"),
        (("--workers", "2", "--max-errors", "2"), "--max-errors has no form over shards"),
        (("--workers", "2", "--loss", "hinge"), "second derivative"),
        (("--workers", "2", "--average", "uniform"), "has no average"),
        (("--workers", "2", "--checkpoint-every", "5"), "--checkpoint-every"),
        (("--workers", "2", "--max-passes", "2"), "leaves no pass to certify"),
    ],
)
def test_what_has_no_form_over_shards_is_refused_first(rows, tmp_path, arguments, says):
    said = command("train", rows, *OPTIONS, *arguments, "-m", tmp_path / "m", code=2)
    assert says in said
    assert not (tmp_path / "m").exists()


def test_no_tol_and_a_checkpoint_of_the_other_kind_are_refused(rows, tmp_path):
    assert "give --workers N" in command("train", rows, "--rounds", 2, code=2)
    assert "exclude each other" in command("train", rows, *OPTIONS, "--rounds", 2, "--workers", 2, code=2)
    assert "need --tol" in command("train", rows, *OPTIONS[:-2], "--workers", 2, code=2)
    command("train", rows, *OPTIONS, "--workers", 1, "--checkpoint", tmp_path / "c", "-q")
    assert "give --workers N or --dask" in command("train", "--resume", tmp_path / "c", code=2)
    command("train", rows, *OPTIONS, "--scan", "--checkpoint", tmp_path / "d", "--checkpoint-every", 10, "-q")
    assert "leave out --workers" in command("train", "--resume", tmp_path / "d", "--workers", 2, code=2)


def test_a_wrong_row_names_its_file_and_the_run_goes_on_once_it_is_mended(rows, tmp_path, monkeypatch):
    command("train", rows, *OPTIONS, "--workers", 1, "-m", tmp_path / "whole", "-q")
    right = (tmp_path / "part-1.csv").read_text()

    def spoil(show, found):
        if found.passes == 4:
            (tmp_path / "part-1.csv").write_text("id,size,kind,bought\n1,2,x,no\n")

    monkeypatch.setattr(sharded.Quiet, "round", spoil)
    kept = ("--checkpoint", tmp_path / "c", "-m", tmp_path / "m")
    said = command("train", rows, *OPTIONS, "--workers", 2, *kept, "-q", code=1)
    assert "part-1.csv" in said
    assert f"onlinear train --resume {tmp_path / 'c'}" in said
    (tmp_path / "part-1.csv").write_text(right)
    command("train", "--resume", tmp_path / "c", "--workers", 3)
    assert (tmp_path / "m").read_bytes() == (tmp_path / "whole").read_bytes()


def test_the_way_on_is_that_of_this_run(rows, tmp_path, monkeypatch):
    kept = ("--checkpoint", tmp_path / "c", "-m", tmp_path / "m", "-q")
    way = f"onlinear train --resume {tmp_path / 'c'} with --workers"
    rounds = (*OPTIONS[:-2], "--rounds", 2, "--workers", 1)

    def no_reader(show, found):
        raise BrokenPipeError(32, "Broken pipe", "standard output")

    def full(model, path, final):
        raise OSError(28, "No space left on device", path)

    with monkeypatch.context() as patch:
        patch.setattr(sharded.Quiet, "round", no_reader)
        said = command("train", rows, *rounds, *kept, code=1)
        assert said == f"onlinear: standard output has no reader any more. To continue from the last round: {way} or --dask."
        assert command("train", rows, *rounds, "-q", code=1) == ""
    with monkeypatch.context() as patch:
        patch.setattr(sharded.runs.Classifier, "save", full)
        said = command("train", rows, *rounds, *kept, code=1)
        assert f"the model {tmp_path / 'm'} cannot be written: No space left on device. To continue from" in said
        assert way in said
    (tmp_path / "part-1.csv").write_text("id,size,kind,bought\n1,2,x\n")
    assert "To continue" not in command("train", rows, *rounds, *kept, code=1)


def test_a_scheduler_that_does_not_answer_is_one_error(rows, monkeypatch):
    pytest.importorskip("distributed", reason="the extra dask is not installed")
    monkeypatch.setattr(sharded, "CONNECT", 0.3)
    said = command("train", rows, *OPTIONS, "--dask", "tcp://127.0.0.1:1", code=2)
    assert "--dask tcp://127.0.0.1:1: no scheduler answers there" in said
    from onlinear.dask import Client

    monkeypatch.setattr(Client, "__init__", lambda *_, **__: pytest.fail("a client of no address waits 20 seconds for its end"))
    assert "missing port" in command("train", rows, *OPTIONS, "--dask", "host", code=2)


@pytest.fixture
def model(rows, tmp_path):
    command("train", rows, *OPTIONS[:-2], "--classes", "no,yes", "-m", tmp_path / "m", "-q")
    return tmp_path / "m"


@pytest.mark.parametrize(
    ("suffix", "kind"), [("txt", "labels"), ("csv", "probabilities"), ("parquet", "scores"), ("arrow", "labels")]
)
def test_predictions_of_workers_are_those_of_the_plain_command(rows, model, tmp_path, suffix, kind):
    command("predict", model, rows, "--as", kind, "-o", tmp_path / f"plain.{suffix}")
    command("predict", model, rows, "--as", kind, "-o", tmp_path / f"several.{suffix}", "--workers", 3)
    assert (tmp_path / f"several.{suffix}").read_bytes() == (tmp_path / f"plain.{suffix}").read_bytes()


def test_measures_of_workers_are_those_of_the_plain_command(rows, model, tmp_path):
    for form in ((), ("--json",)):
        plain = command("evaluate", model, rows, *form)
        assert command("evaluate", model, rows, "--workers", 3, *form) == plain
    assert "--gap has no form" in command("evaluate", model, rows, "--workers", 2, "--gap", code=2)
    (tmp_path / "part-2.csv").write_text("id,size,kind,bought\n1,2,3,maybe\n")
    said = command("evaluate", model, rows, "--workers", 2, code=1)
    assert "part-2.csv" in said
    assert "maybe" in said


def test_a_prediction_that_fails_leaves_no_file(rows, model, tmp_path):
    (tmp_path / "part-2.csv").write_text("id,size,kind,bought\n1,x,3,yes\n")
    said = command("predict", model, rows, "-o", tmp_path / "p.csv", "--workers", 2, code=1)
    assert "part-2.csv" in said
    assert not (tmp_path / "p.csv").exists()
