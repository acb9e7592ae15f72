"""Ctrl-C while Numba loads or compiles leaves it whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading

import pytest
from seldom import seldom

from onlinear.compiled.uninterrupted import uninterrupted


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(autouse=True)
def raises():
    """Ctrl-C raises KeyboardInterrupt, whatever the process that runs the tests has set."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_waits_for_the_end_of_the_block():
    done = []

    def work():
        with uninterrupted(), uninterrupted():
            interrupt()
            interrupt()
            done.append(1)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_of_the_block_is_kept():
    def work(first):
        with uninterrupted():
            first()
            raise LookupError

    with pytest.raises(LookupError):
        work(int)
    with pytest.raises(KeyboardInterrupt) as found:
        work(interrupt)
    assert isinstance(found.value.__context__, LookupError)


def test_signals_that_are_ignored_stay_so_and_other_threads_set_none():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with uninterrupted():
        interrupt()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    found = []

    def run():
        with uninterrupted():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [signal.SIG_IGN]


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
@pytest.mark.parametrize(
    "module",
    ["numba.core.types", seldom("numba.core.typing.npydecl"), "numba.np.arraymath"],
)
def test_a_call_that_was_stopped_while_it_compiled_works_the_next_time(module, tmp_path):
    """The signal comes while Numba imports a module, of itself at first and of its functions when it first compiles."""
    code = f"""
        import os, signal, sys

        class Interrupt:
            def find_spec(self, name, path=None, target=None):
                if name == {module!r}:
                    sys.meta_path.remove(self)
                    os.kill(os.getpid(), signal.SIGINT)

        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.meta_path.insert(0, Interrupt())
        from onlinear import Learner
        try:
            Learner("pa", "hinge").learn([[1.0]], [1.0])
        except KeyboardInterrupt:
            print("stopped")
        print(Learner("pa", "hinge").learn([[1.0]], [1.0]).t)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, env={**os.environ, "ONLINEAR_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.stdout.split() == ["stopped", "1"], done.stderr
