"""The command with sources that are no plain files: pipes that nobody writes, packed ones, and the text that was read."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import shutil
import signal
import subprocess
import sys
import time
import zlib

import pytest
import ready
from command import invoke
from seldom import seldom

from onlinear import load, streams
from onlinear.cli import checkpoints

COMMAND = [sys.executable, "-m", "onlinear"]
LINES = [f"{1 if i % 3 else -1} {1 + i % 3}:1 {4 + i % 5}:0.5\n" for i in range(400)]
needs_fifos = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no FIFOs")


def onlinear(*arguments, **options):
    command = [*ready.command(), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **options)


def waiting(folder, form):
    """A run that waits for somebody to write what it reads."""
    os.mkfifo(folder / form)
    options = ["--target", "y"] if form == "csv" else []
    command = [*COMMAND, "train", folder / form, "--format", form, *options]
    return subprocess.Popen(command, stdout=-1, stderr=-1, start_new_session=True)


@needs_fifos
def test_runs_that_wait_for_a_writer_can_be_ended(tmp_path):
    with waiting(tmp_path, "svmlight") as one, waiting(tmp_path, "csv") as other:
        time.sleep(3.0)  # until they wait
        for child, number in ((one, signal.SIGTERM), (other, signal.SIGINT)):
            assert child.poll() is None
            child.send_signal(number)
            _, error = child.communicate(timeout=20)
            assert child.returncode == 130
            assert b"interrupted" in error
            assert b"Traceback" not in error


FEW = "".join(LINES[:20]).encode()
TABLE = b"a,b,y\n" + b"".join(b"%d,%d,%d\n" % (i, i % 3, i % 2) for i in range(20))


def begun(text):
    """The start of a gzip file of some text, all of which can be read."""
    packer = zlib.compressobj(wbits=31)
    return packer.compress(text) + packer.flush(zlib.Z_SYNC_FLUSH)


@needs_fifos
def test_a_pipe_is_named_once(tmp_path):
    os.mkfifo(tmp_path / "rows")
    for name, words in (("-", "standard input"), (tmp_path / "rows", f"the pipe {tmp_path / 'rows'}")):
        found = invoke("train", name, name)
        assert found.exit_code == 2
        assert f"source names {words} more than once" in " ".join(found.stderr.split())


@needs_fifos
@pytest.mark.parametrize(
    ("form", "given"), [seldom("svmlight", FEW), ("svmlight", begun(FEW + b"1 1:2")), seldom("csv", TABLE + b"5,7")]
)
def test_rows_that_a_pipe_has_given_are_learned_before_a_run_ends(tmp_path, form, given):
    """They fill no block, and a row is left before its end."""
    model = tmp_path / "m.onlinear"
    options = ["--target", "y"] if form == "csv" else []
    command = [*COMMAND, "train", "-", "--format", form, "--model", model, "-q", *options]
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, start_new_session=True) as run:
        give(run, given)
        run.send_signal(signal.SIGINT)
        run.wait(timeout=60)  # while the pipe is open
        error = run.stderr.read()
    assert (run.returncode, b"interrupted after 20 rows" in error) == (130, True)
    whole = TABLE if form == "csv" else FEW
    assert onlinear("train", "-", "--format", form, "--model", model, *options, input=whole.decode()).returncode == 0
    assert learned_by(f"{model}.partial") == learned_by(model)


@needs_fifos
def test_a_run_that_is_interrupted_before_it_is_where_it_stood_says_how_to_continue(tmp_path):
    kept = "--checkpoint", tmp_path / "c", "--checkpoint-every", 15
    assert onlinear("train", "-", "-q", "--model", tmp_path / "m", *kept, input=FEW.decode()).returncode == 0
    command = [*COMMAND, "train", "--resume", tmp_path / "c", "-q"]
    with subprocess.Popen(command, stdin=-1, stderr=-1, start_new_session=True) as run:
        give(run, "".join(LINES[:10]).encode())
        run.send_signal(signal.SIGTERM)
        run.wait(timeout=60)
        error = run.stderr.read().decode()
    assert run.returncode == 130
    assert error.startswith("onlinear: interrupted after 15 rows. The checkpoint")
    assert onlinear("train", "--resume", tmp_path / "c", "-q", "-m", tmp_path / "n", input=FEW.decode()).returncode == 0
    assert (tmp_path / "n").read_bytes() == (tmp_path / "m").read_bytes()


def unread(pipe):
    """The bytes of a pipe that nobody has read."""
    import fcntl
    import termios

    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def give(run, content):
    """Write to the standard input of a run, and wait until it has read that and has had a second for it."""
    run.stdin.write(content)
    run.stdin.flush()
    until = time.monotonic() + 60.0
    while unread(run.stdin) and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(1.0)


def learned_by(path):
    """What a model is, and the rows that it has learned."""
    model = load(path)
    return model.t_, model.coef_.tolist(), model.intercept_.tolist()


@pytest.mark.skipif(shutil.which("bash") is None, reason="process substitution is bash's")
def test_process_substitution_learns_what_the_file_teaches(tmp_path):
    with gzip.open(tmp_path / "a.svm.gz", "wt") as file:
        file.writelines(LINES)
    assert invoke("train", tmp_path / "a.svm.gz", "-q", "-m", tmp_path / "m").exit_code == 0
    for k, source in enumerate(("gzip -dc a.svm.gz", "cat a.svm.gz")):
        script = f"{' '.join(COMMAND)} train <({source}) -q -m n{k}"
        done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        assert (tmp_path / f"n{k}").read_bytes() == (tmp_path / "m").read_bytes()
    script = f"{' '.join(COMMAND)} train <(cat a.svm.gz) --passes 2"
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1
    assert "cannot be read twice, as a pipe" in done.stderr


@needs_fifos
def test_rows_to_score_after_each_pass_cannot_come_from_a_pipe(tmp_path):
    (tmp_path / "a.svm").write_text("".join(LINES))
    os.mkfifo(tmp_path / "pipe")
    done = onlinear("train", tmp_path / "a.svm", "--holdout", tmp_path / "pipe")
    assert done.returncode != 0
    assert "pipe: a pipe cannot be read after each pass" in done.stderr


PACKERS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.mark.parametrize(
    ("name", "repeats", "passes"),
    [("a.svm", 1, 1), ("a.svm.gz", 1, 2), ("a.svm", 700, 1), ("a.svm.xz", 700, 2), ("a.csv", 1, 1), ("a.csv.bz2", 300, 1)],
)
def test_the_text_that_a_run_reports_is_the_text_of_its_rows(tmp_path, name, repeats, passes):
    text = "".join(LINES) * repeats
    options = ["--passes", passes, "--scan"]  # the pass that finds the classes is not the run's
    if ".csv" in name:
        text = "y,a\n" + "".join(f"{i % 2},{i % 7}\n" for i in range(400)) * repeats
        options += ["--target", "y"]
    (tmp_path / name).write_bytes(PACKERS[os.path.splitext(name)[1] if name.count(".") > 1 else ""](text.encode()))
    done = invoke("train", tmp_path / name, "--json", "--scale", "standard", *options)  # and one more before the first
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["text_bytes"] == passes * len(text)


@pytest.mark.parametrize("repeats", [1, 700])
def test_the_text_of_standard_input(repeats):
    text = "".join(LINES) * repeats
    done = onlinear("train", "-", "--json", input=text)
    assert json.loads(done.stdout.splitlines()[-1])["text_bytes"] == len(text)


def test_a_damaged_table_is_no_wrong_option(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"PAR1" + bytes(100) + b"PAR1")
    (tmp_path / "a.arrow").write_bytes(b"ARROW1\0\0" + bytes(100))
    for name in ("a.parquet", "a.arrow"):
        done = invoke("train", tmp_path / name, "--target", "y")
        assert (done.exit_code, type(done.exception)) == (1, SystemExit)
        assert f"{tmp_path / name}: expected a" in done.stderr


def test_a_table_on_standard_input_is_told_the_option_of_the_command():
    done = onlinear("train", "-", "--target", "y", input="y,a\n1,2\n0,1\n" * 3)
    assert done.returncode == 2
    assert "(in the command: --format csv)" in done.stderr
    assert onlinear("train", "-", "--target", "y", "--format", "csv", input="y,a\n" + "1,2\n0,1\n" * 3).returncode == 0


def test_a_long_row_of_a_csv_file_ends_the_process(tmp_path):
    """pyarrow's thread was still reading then, and the end of the process waited for it for ever."""
    rows = tmp_path / "rows.csv"
    rows.write_text("y,t\n1,a\n0,b\n1," + "x" * 20_000_000 + "\n0,c\n")
    done = subprocess.run([*COMMAND, "train", rows, "--target", "y"], capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 1
    assert "rows.csv:4: expected rows of at most 1048576 bytes" in done.stderr


def test_a_file_whose_name_begins_as_a_uri_is_a_file(tmp_path):
    (tmp_path / "file:x.svm").write_text("".join(LINES))
    done = onlinear("train", "file:x.svm", "--quiet", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_standard_output_is_named_once(unbuffered):
    options = {"env": os.environ | {"PYTHONUNBUFFERED": unbuffered}, "stderr": subprocess.PIPE, "text": True, "timeout": 300}
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, "parts"], stdout=full, check=False, **options)
    assert done.returncode == 1
    assert done.stderr == "onlinear: standard output: No space left on device.\n"


def test_what_may_not_be_looked_at_is_not_said_to_be_absent(monkeypatch):
    def closed(path):
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr("onlinear.files.writing.os.stat", closed)
    for opened in (streams.open, load, checkpoints.read):
        with pytest.raises(PermissionError, match=r"^locked/rows\.svm: no permission to read it\.$"):
            opened("locked/rows.svm")
