"""The command in processes that need no start: forks of one that has imported the package, which takes longer than most runs.

``command()`` is what ``subprocess`` starts in place of Python: a few lines that hand their streams, folder and environment to
such a fork, wait for it and end as it ended. Signals do not reach it, and what is asked of the start itself (imports, streams
that are closed, variables that Python reads) is tested with Python.
"""

from __future__ import annotations

import io
import json
import os
import socket
import sys
from contextlib import suppress

PYTHON = [sys.executable, "-m", "onlinear"]
IMPORTED = ("cli.train", "cli.predict", "cli.evaluate", "cli.explain", "cli.report", "training.training", "models", "streams")
_STARTED: list[str] = []


def command() -> list[str]:
    """The command, to which arguments are appended."""
    if not sys.platform.startswith("linux"):
        return PYTHON
    if not _STARTED:
        _STARTED.append(start())
    return [sys.executable, "-I", "-S", __file__, "ask", _STARTED[0]]


def start() -> str:
    """Start the process that forks; the place where it listens."""
    import atexit
    import subprocess
    import tempfile

    folder = tempfile.TemporaryDirectory(prefix="onlinear-")
    place = f"{folder.name}/socket"
    served = subprocess.Popen([sys.executable, __file__, "serve", place], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    served.stdout.readline()  # it listens

    def end() -> None:
        served.communicate()
        folder.cleanup()

    atexit.register(end)
    return place


def ask(place: str, arguments: list[str]) -> None:
    """Have the command run with the streams of this process, and end as it ends."""
    with socket.socket(socket.AF_UNIX) as asked:
        asked.connect(place)
        told = json.dumps([arguments, os.getcwd(), dict(os.environ)]).encode()
        socket.send_fds(asked, [len(told).to_bytes(8, "big")], [0, 1, 2])
        asked.sendall(told)
        code = int(asked.makefile().readline())
    if code < 0:
        os.kill(os.getpid(), -code)
    os._exit(code)


def serve(place: str) -> None:
    """Fork for each that asks, until nobody holds the other end of standard input."""
    from importlib import import_module
    from select import select

    for name in IMPORTED:
        import_module(f"onlinear.{name}")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(place)
        listening.listen()
        print("ready", flush=True)
        while sys.stdin not in select([listening, sys.stdin], [], [])[0]:
            asked, _ = listening.accept()
            if os.fork() == 0:
                listening.close()
                return attend(asked)
            asked.close()
            reap()
    return reap(0)


def reap(options: int = getattr(os, "WNOHANG", 0)) -> None:
    """Let those that have ended go; with 0 wait for the others."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, options)[0]:
            pass


def attend(asked: socket.socket) -> None:
    """Run the command in a further fork, and tell how it ended."""
    size, streams, _, _ = socket.recv_fds(asked, 8, 3)
    told = json.loads(asked.makefile("rb").read(int.from_bytes(size, "big")))
    child = os.fork()
    if child == 0:
        asked.close()
        return run(streams, *told)
    _, status = os.waitpid(child, 0)
    asked.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def run(streams: list[int], arguments: list[str], folder: str, environment: dict[str, str]) -> None:
    """The command, as Python would start it."""
    from onlinear.cli import main

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = written(1)
    sys.stderr = sys.__stderr__ = written(2, errors="backslashreplace", line_buffering=True)
    sys.argv = ["onlinear", *arguments]
    main()


def written(number: int, **options: object) -> io.TextIOWrapper:
    """Standard output or error as Python opens it."""
    raw = open(number, "wb", buffering=0, closefd=False)  # noqa: SIM115
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    return io.TextIOWrapper(raw if unbuffered else io.BufferedWriter(raw), write_through=unbuffered, **options)


if __name__ == "__main__":
    what, where, *rest = sys.argv[1:]
    if what == "ask":
        ask(where, rest)
    serve(where)
