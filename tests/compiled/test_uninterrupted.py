"""Ctrl-C, or another signal, while Numba loads or compiles leaves it whole."""

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
    signal.raise_signal(signal.SIGINT)


def time_out(number, frame):
    raise UnicodeError  # a ValueError, as ``signal`` has for other threads


HANDLERS = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: time_out}


@pytest.fixture(autouse=True)
def raises():
    """Ctrl-C raises KeyboardInterrupt, and SIGTERM another error, whatever the process that runs the tests has set."""
    before = {number: signal.signal(number, handler) for number, handler in HANDLERS.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def are_back():
    return all(signal.getsignal(number) is handler for number, handler in HANDLERS.items())


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
    assert are_back()


def test_handlers_are_called_in_the_order_of_their_signals_though_one_raises():
    with pytest.raises(KeyboardInterrupt) as found, uninterrupted():
        list(map(signal.raise_signal, (signal.SIGTERM, signal.SIGINT, signal.SIGTERM)))
    assert isinstance(found.value.__context__, UnicodeError)
    assert found.value.__context__.__context__ is None
    assert are_back()


@pytest.mark.parametrize(
    "numbers", [[signal.SIGINT], [signal.SIGTERM], [signal.SIGINT, signal.SIGTERM]], ids=["one", "other", "both"]
)
def test_a_signal_at_any_moment_stops_the_block_before_or_behind_it(numbers):
    left = moment = 0
    while left <= 0:
        moment += 1
        left, steps, stopped = moment, [], False

        def come(*_):
            nonlocal left
            left -= 1
            if left == 0:
                try:
                    signal.raise_signal(numbers[0])
                finally:
                    signal.raise_signal(numbers[-1])

        try:
            sys.setprofile(come)
            with uninterrupted():
                steps += ["begun"]
                int("1")
                steps += ["ended"]
            sys.setprofile(None)
        except (KeyboardInterrupt, UnicodeError):
            stopped = True
        assert steps in ([], ["begun", "ended"])
        assert stopped == (left <= 0)
        assert are_back()
    assert moment > 10


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_child_of_another_thread_hears_signals():
    ends = []

    def fork():
        if child := os.fork():
            ends.append(os.waitpid(child, 0)[1])
        else:
            os._exit(0 if are_back() else 1)

    thread = threading.Thread(target=fork)
    with uninterrupted():
        thread.start()
        thread.join()
    assert ends == [0]
    assert are_back()


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
    ["numba.core.types", seldom("numba.core.typing.npydecl"), seldom("numba.np.arraymath")],
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
