"""The files that commands write: never one of their inputs, through pipes and devices, under long names."""

import os
import stat
import subprocess
import sys
import threading

import pytest
from command import invoke, run

from onlinear import load, streams
from onlinear.cli import checkpoints
from onlinear.files import paths

posix = pytest.mark.skipif(os.name != "posix", reason="links, pipes and devices are POSIX's")
ROWS = "1 1:1 3:0.5\n-1 2:1\n" * 5


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """A folder of inputs: rows under several names, a folder of tables, a model, a checkpoint."""
    folder = tmp_path_factory.mktemp("inputs")
    for name in ("g.svm", "h.svm"):
        (folder / name).write_text(ROWS)
    (folder / "tables").mkdir()
    (folder / "tables" / "a.csv").write_text("x,y\n1,1\n2,-1\n3,1\n")
    if os.name == "posix":
        (folder / "link").symlink_to("g.svm")
        os.link(folder / "g.svm", folder / "hard")
    before = os.getcwd()
    os.chdir(folder)
    try:
        for line in ("train g.svm -q -m m --checkpoint c --checkpoint-every 4", "train h.svm -q -m n"):
            run(*line.split())
    finally:
        os.chdir(before)
    return folder


OVER = [
    "train g.svm -m g.svm",
    "train ./g.svm -m g.svm",
    "train g.svm -m link",
    "train link -m hard",
    "train *.svm -m h.svm",
    "train h.svm g.svm -m g.svm",
    "train tables --target y -m tables/a.csv",
    "train g.svm --checkpoint g.svm",
    "train g.svm --checkpoint hard",
    "train g.svm --holdout h.svm -m h.svm",
    "train g.svm --holdout h.svm --checkpoint h.svm",
    "train m.partial -m m",
    "train --resume c -m g.svm",
    "train --resume c -m c",
    "train --resume c -m new --checkpoint hard",
    "predict m g.svm -o g.svm",
    "predict m g.svm -o link",
    "predict m h.svm g*.svm -o hard",
    "predict m g.svm -o m",
    "predict m tables -o tables/a.csv",
    "convert g.svm -o g.svm",
    "convert g.svm h.svm -o hard",
    "convert tables --target y -o tables/a.csv",
    "train g.svm -m x --checkpoint x",
]


@posix
@pytest.mark.parametrize("line", OVER)
def test_no_output_is_an_input(inputs, monkeypatch, line):
    monkeypatch.chdir(inputs)
    if "m.partial" in line:
        monkeypatch.setattr(paths, "suffixed", lambda path, suffix: path + suffix)
        (inputs / "m.partial").write_text(ROWS)
    files = {path: path.read_bytes() for path in inputs.rglob("*") if path.is_file()}
    found = invoke(*line.split(), "-q")
    assert found.exit_code == 2, found.output
    assert "is also" in found.stderr or "are one file" in found.stderr
    assert len(found.stderr.splitlines()) == 1
    assert {path: path.read_bytes() for path in inputs.rglob("*") if path.is_file()} == files


@posix
def test_standard_input_is_an_input_too(inputs):
    command = [sys.executable, "-m", "onlinear", "predict", "m", "-", "-o", "g.svm"]
    with open(inputs / "g.svm", "rb") as file:
        found = subprocess.run(command, stdin=file, capture_output=True, text=True, cwd=inputs, timeout=120, check=False)
    assert found.returncode == 2
    assert "--output g.svm: is also a source (-)" in found.stderr
    assert (inputs / "g.svm").read_text() == ROWS


@posix
def test_a_run_goes_on_in_its_own_checkpoint(inputs, monkeypatch):
    monkeypatch.chdir(inputs)
    run("train", "--resume", "c", "-q")
    assert load("m").t_ == 10


def test_uris_and_names_that_are_no_files_are_left_to_the_reader(inputs, monkeypatch):
    monkeypatch.chdir(inputs)
    assert streams.local_files(["iris", "gone.svm", "s3://bucket/*.parquet", "-", "g*.svm"]) == ["-", "g.svm"]
    assert streams.local_files([(inputs / "tables" / "a.csv").as_uri()]) == [str(inputs / "tables" / "a.csv")]
    run("train", "gone.svm", "-m", "gone.model", code=1)


# --- the commands on what is no file ---------------------------------------------------------------------------------


@posix
def test_commands_write_through_devices_and_refuse_them_for_checkpoints(inputs, tmp_path, monkeypatch):
    monkeypatch.chdir(inputs)
    for line in ("train g.svm -q -m", "predict m g.svm -q -o", "convert g.svm -q -o"):
        run(*line.split(), os.devnull)
        assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    said = run("train", "g.svm", "--checkpoint", os.devnull, code=2)
    assert "is a pipe or device; expected a file, which can be read again" in said


@posix
def test_a_whole_run_into_pipes(inputs, tmp_path):
    os.mkfifo(tmp_path / "pipe.arrow")
    found = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe.arrow").read_bytes()), daemon=True)
    reader.start()
    ran = invoke("convert", inputs / "g.svm", "-o", tmp_path / "pipe.arrow")
    reader.join(timeout=60)
    assert (ran.exit_code, ran.stdout) == (0, "")
    (tmp_path / "a.arrow").write_bytes(found[0])
    (block,) = streams.open(tmp_path / "a.arrow")
    assert block.n == 10


@posix
def test_an_interrupted_run_leaves_nothing_beside_a_device(tmp_path, monkeypatch):
    from onlinear.cli.train import _save_partial

    class Training:
        rows = 7

        def save(self, path):
            raise AssertionError(path)

    assert "are lost" in _save_partial(Training(), os.devnull)


def test_a_checkpoint_of_a_long_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.svm").write_text(ROWS)
    for name in ("c" * 255, "é" * 120):
        run("train", "g.svm", "-q", "--checkpoint", name, "--checkpoint-every", 3, "-m", f"m{name}"[:250])
        assert checkpoints.read(name).state.run["rows"] > 0
