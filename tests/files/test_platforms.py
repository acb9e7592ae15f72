"""What Windows and macOS lack or do otherwise, simulated: locks, renames of open files, folders, signals, memory, letters."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from seldom import seldom
from typer.testing import CliRunner

from onlinear.cli import app, interrupts
from onlinear.compiled import home
from onlinear.files import writing
from onlinear.learner import limits
from onlinear.streams import ahead

LACKING = (
    *("getuid", "chown", "statvfs", "sysconf", "sched_getaffinity", "register_at_fork", "fork"),
    *("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC"),
)
linux = pytest.mark.skipif(sys.platform != "linux", reason="open files are listed in /proc")


class Windows:
    """The module ``os`` as Windows has it: names are missing, folders cannot be opened, open files cannot be renamed."""

    name = "nt"
    O_BINARY = 0

    def __getattr__(self, name):
        if name in LACKING:
            raise AttributeError(name)
        return getattr(os, name)

    def open(self, path, *rest):
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return os.open(path, *rest)

    def replace(self, source, target):
        for descriptor in Path("/proc/self/fd").iterdir():
            if os.path.realpath(descriptor) == os.path.realpath(source):
                raise PermissionError(errno.EACCES, "The process cannot access the file", source)
        os.replace(source, target)


@pytest.fixture
def windows(monkeypatch):
    found = Windows()
    for module in (writing, limits, home, ahead):
        monkeypatch.setattr(module, "os", found)
    monkeypatch.setattr(writing, "fcntl", None)
    return found


@linux
def test_windows_writes_a_file_whole_or_not_at_all(tmp_path, windows):
    writing.write(tmp_path / "m", b"one")
    writing.write(tmp_path / "m", b"two")
    assert (tmp_path / "m").read_bytes() == b"two"
    with pytest.raises(TypeError), writing.new_file(tmp_path / "m") as file:
        file.write(None)
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
    assert (tmp_path / "m").read_bytes() == b"two"


@linux
def test_windows_says_which_file_is_in_use(tmp_path, windows, monkeypatch):
    writing.write(tmp_path / "m", b"one")

    def in_use(source, target):
        raise PermissionError(errno.EACCES, "The process cannot access the file", source, 32, target)

    monkeypatch.setattr(windows, "replace", in_use, raising=False)
    with pytest.raises(OSError, match="cannot access") as error:
        writing.write(tmp_path / "m", b"two")
    assert error.value.filename == str(tmp_path / "m")
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_windows_has_memory_processors_and_a_private_cache(tmp_path, windows, monkeypatch):
    monkeypatch.delenv(limits.LIMIT, raising=False)
    assert limits.state_limit() == 4 << 30
    assert ahead.cores() >= 1
    monkeypatch.setenv("ONLINEAR_CACHE_DIR", str(tmp_path / "cache"))
    assert home.cache_folder() == tmp_path / "cache"


@pytest.mark.parametrize("error", [ValueError("unrecognized configuration name"), OSError(22, "Invalid argument")])
def test_a_system_that_does_not_say_its_memory_has_the_usual_limit(monkeypatch, error):
    def sysconf(name):
        raise error

    monkeypatch.delenv(limits.LIMIT, raising=False)
    monkeypatch.setattr(limits.os, "sysconf", sysconf, raising=False)
    assert limits.state_limit() == 4 << 30


@pytest.mark.parametrize("works", [True, False])
def test_macos_is_asked_to_write_to_the_disk_itself(tmp_path, monkeypatch, works):
    asked = []

    class Mac:
        F_FULLFSYNC, LOCK_EX, LOCK_NB = 51, 2, 4

        @staticmethod
        def flock(handle, how):
            pass

        @staticmethod
        def fcntl(handle, what):
            asked.append(what)
            if not works:
                raise OSError(errno.ENOTSUP, "Operation not supported")

    synced = []
    monkeypatch.setattr(writing, "fcntl", Mac)
    monkeypatch.setattr(writing.os, "fsync", synced.append)
    writing.write(tmp_path / "m", b"x")
    assert set(asked) == {51}
    assert bool(synced) != works


def test_a_handler_of_another_language_is_followed_by_the_default(monkeypatch):
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with interrupts.Interrupts() as entered:
            entered._before[signal.SIGTERM] = None  # what Python says of a handler that C has set
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("letters", ["ascii", "cp1252"])
def test_the_command_speaks_to_terminals_of_few_letters(letters):
    environment = {**os.environ, "PYTHONIOENCODING": letters, "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-m", "onlinear", "train", "--help"], env=environment, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert b"Usage:" in done.stdout


C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A model of classes with names of many letters, its rows, and its predictions as files have them."""
    folder = tmp_path_factory.mktemp("words")
    rows, model = folder / "rows.csv", folder / "model"
    rows.write_text("x,y\n1,Zürich\n2,Łódź\n3,Zürich\n4,日本\n", "utf-8")
    files = {kind: folder / kind for kind in ("labels", "probabilities")}
    for arguments in (
        ("train", rows, "--target", "y", "--scan", "--model", model),
        *(("predict", model, rows, "--as", kind, "--header", "-o", file) for kind, file in files.items()),
    ):
        done = CliRunner().invoke(app, list(map(str, arguments)))
        assert done.exit_code == 0, done.output
    assert "Łódź" in files["probabilities"].read_text("utf-8")
    return model, rows, files


@pytest.mark.parametrize(
    ("letters", "kind"),
    [
        *((letters, "probabilities") for letters in ("ascii", "cp1252", None)),
        ("ascii", "labels"),
        *(seldom(letters, "probabilities") for letters in ("utf-8", "latin-1")),
        *(seldom(letters, "labels") for letters in ("utf-8", "latin-1", "cp1252", None)),
    ],
)
def test_predictions_that_are_redirected_are_the_bytes_of_a_file(letters, kind, words):
    model, rows, files = words
    command = [sys.executable, "-m", "onlinear", "predict", model, rows, "--as", kind, "--header"]
    chosen = C_LOCALE if letters is None else {"PYTHONIOENCODING": letters}
    done = subprocess.run(command, env=os.environ | chosen, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == files[kind].read_bytes()


def test_files_have_all_letters_where_the_terminal_has_few(words, tmp_path):
    model, rows, files = words
    for step in (["train", rows, "--target", "y", "--scan", "--model", "m"], ["predict", "m", rows, "--header", "-o", "out"]):
        command = [sys.executable, "-m", "onlinear", *step]
        done = subprocess.run(command, env=os.environ | C_LOCALE, cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "m").read_bytes() == model.read_bytes()
    assert (tmp_path / "out").read_bytes() == files["labels"].read_bytes()
