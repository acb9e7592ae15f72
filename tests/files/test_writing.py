"""One way to write a file: whole or not at all, nothing lost, no trace of killed writers, never over a device."""

import io
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from onlinear import Learner, OnlineClassifier, load, streams
from onlinear.cli.predict import _writer
from onlinear.files import paths, writing
from onlinear.streams.converted_writer import write_converted
from onlinear.streams.svmlight_writer import write_svmlight

posix = pytest.mark.skipif(os.name != "posix", reason="links, pipes, devices, owners and modes are POSIX's")
ROWS = "1 1:1 3:0.5\n-1 2:1\n" * 5


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def only(folder, *names):
    return sorted(os.listdir(folder)) == sorted(names)


# --- whole, or as it was ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["plain", "-", "a b*?[x]", "line\nend", ".hidden", "ö" * 127, "x" * 250, "x" * 255])
def test_any_name_that_the_system_takes_will_do(tmp_path, name):
    for content in (b"first", b"second"):
        writing.write(tmp_path / name, content)
        assert (tmp_path / name).read_bytes() == content
    assert only(tmp_path, name)


def test_a_name_that_is_too_long_is_told_at_once(tmp_path):
    for call in (paths.check_writable, lambda path: writing.write(path, b"x")):
        with pytest.raises(OSError, match="File name too long") as caught:
            call(tmp_path / ("x" * 256))
        assert caught.value.filename == str(tmp_path / ("x" * 256))
    assert only(tmp_path)


@pytest.mark.parametrize("name", ["", "new/", "new/.", "new/.."])
def test_the_name_of_a_folder_is_refused_though_there_is_none(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(IsADirectoryError, match="names a folder; expected a file"):
        writing.write(name, b"x")
    assert only(tmp_path)


def test_relative_names(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    for name in ("m", "./m", "sub/../m", "sub/m"):
        writing.write(name, name.encode())
        assert Path(name).read_bytes() == name.encode()
    assert only(tmp_path, "m", "sub")
    assert only(tmp_path / "sub", "m")


@posix
@pytest.mark.parametrize("kept", [0o600, 0o640, 0o755, 0o666])
def test_an_existing_file_keeps_its_mode_and_a_new_one_follows_the_umask(tmp_path, kept):
    before = os.umask(0o027)
    try:
        writing.write(tmp_path / "new", b"x")
        (tmp_path / "old").write_bytes(b"old")
        (tmp_path / "old").chmod(kept)
        with writing.new_file(tmp_path / "old") as file:
            file.write(b"new")
            (hidden,) = (tmp_path / name for name in os.listdir(tmp_path) if name.startswith(writing.PREFIX))
            assert not mode(hidden) & ~kept, "nobody reads the new content who could not read the old one"
    finally:
        os.umask(before)
    assert mode(tmp_path / "new") == 0o640
    assert mode(tmp_path / "old") == kept


@posix
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() != 0, reason="only root may give files away")
def test_root_leaves_files_to_their_owners(tmp_path):
    (tmp_path / "m").write_bytes(b"old")
    os.chown(tmp_path / "m", 12345, 54321)
    writing.write(tmp_path / "m", b"new")
    found = os.stat(tmp_path / "m")
    assert (found.st_uid, found.st_gid) == (12345, 54321)


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), ValueError("wrong"), KeyboardInterrupt(), MemoryError()])
def test_an_error_on_the_way_leaves_the_old_file(tmp_path, error):
    def fail():
        with writing.new_file(tmp_path / "m") as file:
            file.write(b"half" * 100_000)
            raise error

    for before in ([], ["m"]):
        with pytest.raises(type(error)) as caught:
            fail()
        assert caught.value is error, "an error of what is written is not one of the file"
        assert only(tmp_path, *before)
        (tmp_path / "m").write_bytes(b"old")
    assert (tmp_path / "m").read_bytes() == b"old"


def test_the_content_is_on_the_disk_before_the_name_and_the_name_before_the_end(tmp_path, monkeypatch):
    calls = []
    for name in ("fsync", "replace"):
        original = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, name=name, original=original: calls.append((name, args)) or original(*args))
    writing.write(tmp_path / "m", b"x")
    assert [name for name, _ in calls] == ["fsync", "replace", "fsync"][: 3 if os.name == "posix" else 2]


# --- links -----------------------------------------------------------------------------------------------------------


@posix
def test_links_are_followed(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "near").mkdir()
    (tmp_path / "far" / "m").write_bytes(b"old")
    (tmp_path / "near" / "link").symlink_to("../far/m")
    (tmp_path / "near" / "chain").symlink_to("link")
    (tmp_path / "near" / "dangling").symlink_to(tmp_path / "far" / "later")
    for name, target in (("link", "m"), ("chain", "m"), ("dangling", "later")):
        before = os.readlink(tmp_path / "near" / name)
        writing.write(tmp_path / "near" / name, name.encode())
        assert os.readlink(tmp_path / "near" / name) == before
        assert (tmp_path / "far" / target).read_bytes() == name.encode()
    assert only(tmp_path / "far", "m", "later")


@posix
def test_links_to_nowhere_are_told(tmp_path):
    (tmp_path / "round").symlink_to("round")
    (tmp_path / "lost").symlink_to("no/such/folder")
    for name in ("round", "lost"):
        with pytest.raises(OSError, match=r"symbolic links|there is no folder") as caught:
            writing.write(tmp_path / name, b"x")
        assert caught.value.filename == str(tmp_path / name)
    assert only(tmp_path, "round", "lost")


@posix
def test_other_names_of_a_file_keep_its_old_content(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    os.link(tmp_path / "a", tmp_path / "b")
    writing.write(tmp_path / "a", b"new")
    assert (tmp_path / "b").read_bytes() == b"old"


# --- pipes and devices -----------------------------------------------------------------------------------------------


def taken(pipe, found):
    with open(pipe, "rb") as file:
        found.append(file.read())


@posix
def test_a_pipe_takes_a_model_and_stays(tmp_path):
    learner = Learner("comid", "hinge", n_features=3).learn(np.eye(3), np.array([1.0, -1.0, 1.0]))
    learner.save(tmp_path / "m")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for name in ("pipe", "link"):
        found = []
        reader = threading.Thread(target=taken, args=(tmp_path / "pipe", found), daemon=True)
        reader.start()
        learner.save(tmp_path / name)
        reader.join(timeout=30)
        assert found == [(tmp_path / "m").read_bytes()]
    assert stat.S_ISFIFO(os.lstat(tmp_path / "pipe").st_mode)
    assert only(tmp_path, "m", "pipe", "link")


@posix
@pytest.mark.parametrize("kind", [stat.S_IFCHR, stat.S_IFBLK])
def test_devices_stay(tmp_path, kind):
    device = tmp_path / "device"
    try:
        os.mknod(device, 0o600 | kind, os.makedev(1, 3) if kind == stat.S_IFCHR else os.makedev(7, 250))
    except OSError as error:
        pytest.skip(f"a device node cannot be made here: {error}")
    if kind == stat.S_IFCHR:
        writing.write(device, b"x" * 100_000)
    else:
        with pytest.raises(OSError, match="is a block device; expected a file"):
            writing.write(device, b"x")
    assert stat.S_IFMT(os.lstat(device).st_mode) == kind
    assert only(tmp_path, "device")


@posix
def test_what_takes_no_bytes_is_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        before = os.getcwd()
        os.chdir(tmp_path)  # the names of sockets are short
        try:
            server.bind("socket")
        finally:
            os.chdir(before)
        for name, message in (("folder", "is a folder"), ("socket", "is a socket"), ("no/m", "there is no folder")):
            for call in (paths.check_writable, lambda path: writing.write(path, b"x")):
                with pytest.raises(OSError, match=message) as caught:
                    call(tmp_path / name)
                assert caught.value.filename == str(tmp_path / name)
        assert stat.S_ISSOCK(os.lstat(tmp_path / "socket").st_mode)
    assert only(tmp_path, "folder", "socket")


@posix
@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="needs /dev/fd")
def test_what_was_written_to_an_open_file_before_is_kept(tmp_path):
    with open(tmp_path / "out", "w+b", buffering=0) as file:
        file.write(b"before ")
        (tmp_path / "link").symlink_to(f"/dev/fd/{file.fileno()}")
        for name in (f"/dev/fd/{file.fileno()}", tmp_path / "link"):
            assert paths.is_stream(name)
            writing.write(name, b"through ")
        file.write(b"after")
    assert (tmp_path / "out").read_bytes() == b"before through through after"
    with pytest.raises(OSError, match="Bad file descriptor"):
        paths.check_writable("/dev/fd/987")


# --- a full disk names the file --------------------------------------------------------------------------------------


class Out:
    """Ways to write, each to a file whose suffix says how."""

    def model(path):
        Learner("comid", "hinge", n_features=3).learn(np.eye(3), np.array([1.0, -1.0, 1.0])).save(path)

    def text(path):
        write_svmlight(path, streams.open("iris"))

    def columns(path):
        write_converted(path, streams.open("iris"))

    def predictions(path):
        with _writer(os.fspath(path), ["score"], False) as write:
            for _ in range(50):
                write(np.arange(1000.0))


FORMS = {
    "model": [""],
    "text": [".svm", ".svm.gz", ".svm.bz2", ".svm.xz", ".svm.zst"],
    "columns": [".parquet", ".arrow"],
    "predictions": [".txt", ".csv", ".parquet", ".arrow"],
}


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize(("how", "suffix"), [(how, suffix) for how, all in FORMS.items() for suffix in all])
def test_a_full_device_is_named(tmp_path, how, suffix):
    (tmp_path / f"out{suffix}").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as caught:
        getattr(Out, how)(tmp_path / f"out{suffix}")
    assert caught.value.filename == str(tmp_path / f"out{suffix}")
    assert only(tmp_path, f"out{suffix}")


@posix
def test_a_file_that_grows_too_large_is_named_and_leaves_nothing(tmp_path):
    code = """
        import resource, sys
        sys.path.insert(0, sys.argv[2])
        from test_writing import FORMS, Out, os
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        for how, suffixes in FORMS.items():
            for suffix in suffixes:
                path = os.path.join(sys.argv[1], how + suffix)
                try:
                    getattr(Out, how)(path)
                except OSError as error:
                    assert error.filename == path and error.strerror == "File too large", (path, error)
                else:
                    raise AssertionError(path)
    """
    folder = os.path.dirname(os.path.abspath(__file__))
    command = [sys.executable, "-c", textwrap.dedent(code), tmp_path, folder]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert found.returncode == 0, found.stderr
    assert only(tmp_path)


def test_the_nameless_file_of_what_waits_names_the_target(tmp_path, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(OSError, match="No space left") as caught:
        Out.columns(tmp_path / "a.arrow")
    assert caught.value.filename == str(tmp_path / "a.arrow")
    assert only(tmp_path)


@posix
def test_what_may_not_be_written_is_told_before_and_stays():
    """As another user than root, who may write everything."""
    code = """
        import os, sys
        from onlinear.files import paths, writing
        if os.getuid() == 0:
            os.setuid(65534)
        for name, message in (("closed/m", "cannot be written to"), ("kept", "is write-protected")):
            for call in (paths.check_writable, lambda path: writing.write(path, b"new")):
                try:
                    call(os.path.join(sys.argv[1], name))
                except PermissionError as error:
                    assert message in str(error) and name in str(error), error
                else:
                    raise AssertionError(name)
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "closed").mkdir(mode=0o555)
        (folder / "kept").write_bytes(b"old")
        (folder / "kept").chmod(0o444)
        folder.chmod(0o777)
        command = [sys.executable, "-c", textwrap.dedent(code), name]
        found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert found.returncode == 0, found.stderr
        assert (folder / "kept").read_bytes() == b"old"
        assert only(folder, "closed", "kept")


# --- several writers, and killed ones --------------------------------------------------------------------------------

WAITS = """
import sys, time
from onlinear.files import writing
with writing.new_file(sys.argv[1]) as file:
    file.write(b"half" * 10_000)
    file.flush()
    print("writing", flush=True)
    time.sleep(600)
"""


def waiting(path):
    child = subprocess.Popen([sys.executable, "-c", WAITS, path], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "writing\n"
    return child


@posix
def test_the_next_writer_removes_what_killed_ones_left_and_nothing_else(tmp_path):
    hidden = [f"{writing.PREFIX}notours", ".m.abcd1234", writing._prefix("other") + "abcd1234"]
    for name in hidden:
        (tmp_path / name).write_bytes(b"")
    killed, other, living = (waiting(tmp_path / name) for name in ("m", "n", "m"))
    try:
        for child in (killed, other):
            child.send_signal(signal.SIGKILL)
            child.wait(timeout=60)
        assert len(os.listdir(tmp_path)) == len(hidden) + 3
        writing.write(tmp_path / "m", b"whole")
        left = sorted(set(os.listdir(tmp_path)) - {"m", *hidden})
        assert sorted(name.rpartition("-")[0] for name in left) == sorted(writing._prefix(n)[:-1] for n in ("m", "n"))
    finally:
        for child in (killed, other, living):
            child.kill()
            child.wait(timeout=60)
            child.stdout.close()
    writing.clean(tmp_path / "m")
    writing.clean(tmp_path / "n")
    assert only(tmp_path, "m", *hidden)
    assert (tmp_path / "m").read_bytes() == b"whole"


@pytest.mark.parametrize("lacking", ["no locks", "a file system without locks"])
def test_without_locks_age_tells_what_was_left(tmp_path, monkeypatch, lacking):
    class Refusing:
        LOCK_EX, LOCK_NB = 2, 4

        @staticmethod
        def flock(handle, how):
            raise OSError(95, "Operation not supported")

    monkeypatch.setattr(writing, "fcntl", None if lacking == "no locks" else Refusing)
    young, old = (tmp_path / f"{writing._prefix('m')}{name}" for name in ("young", "old"))
    for path in (young, old):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 2 * writing.OLD,) * 2)
    writing.write(tmp_path / "m", b"x")
    assert only(tmp_path, "m", young.name)


def test_a_writer_whose_file_is_taken_before_it_is_locked_takes_another(tmp_path, monkeypatch):
    held, count = writing._is_held, []

    def late(handle, name):
        count.append(name)
        if len(count) < 3:
            writing.clean(tmp_path / "m")
        return held(handle, name)

    monkeypatch.setattr(writing, "_is_held", late)
    writing.write(tmp_path / "m", b"x")
    assert len(set(count)) == (3 if writing.fcntl else 1)
    assert only(tmp_path, "m")


def test_many_writers_of_one_file_leave_it_whole(tmp_path):
    errors = []

    def write(number):
        try:
            for _ in range(15):
                writing.write(tmp_path / "m", bytes([number]) * 50_000)
                assert len(set((tmp_path / "m").read_bytes())) == 1
        except BaseException as error:
            errors.append(error)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert not errors
    assert (tmp_path / "m").stat().st_size == 50_000
    assert only(tmp_path, "m")


class Named:
    """A path of bytes."""

    def __init__(self, path):
        self.path = path

    def __fspath__(self):
        return os.fsencode(self.path)


@pytest.mark.parametrize("kind", [os.fsencode, Named], ids=["bytes", "path-like"])
def test_paths_of_bytes(tmp_path, kind):
    model = OnlineClassifier().fit(np.eye(4), [0, 1, 0, 1])
    path = kind(tmp_path / "m.onlinear")
    model.save(path)
    assert np.array_equal(load(path).coef_, model.coef_)
    (tmp_path / "a.svm").write_text("1 1:2\n0 1:3\n")
    assert [block.n for block in streams.open(kind(tmp_path / "a.svm"))] == [2]
    with pytest.raises(FileNotFoundError, match=r"no model file at '.*none'"):
        load(kind(tmp_path / "none"))
    with pytest.raises(TypeError, match=r"for a file, pass streams\.open\('.*a\.svm'\)"):
        model.predict(kind(tmp_path / "a.svm"))


@pytest.mark.parametrize("source", [None, 3, io.BytesIO(b"1 1:2"), io.StringIO("1 1:2"), np.ones((2, 2))])
def test_what_names_no_file(source):
    with pytest.raises(
        TypeError, match=r"source must be the name of a file, several of them, or a table, got (None|3|an open file|ndarray)"
    ):
        streams.open(source)
