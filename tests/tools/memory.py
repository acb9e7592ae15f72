"""Code in a process of its own, and the most memory that it held."""

from __future__ import annotations

import subprocess
import sys
from typing import NamedTuple

# Of the process itself: what the system counts for children is the most of all of them, and what they were forked from.
WATCH = """
import atexit, sys
def told():
    try:
        lines = open("/proc/self/status").read().splitlines()
    except OSError:
        return
    print("peak", *(line.split()[1] for line in lines if line.startswith("VmHWM")), file=sys.stderr)
atexit.register(told)
"""


class Ended(NamedTuple):
    """How the process ended, what it said, and the bytes it held at most (0 where the system does not tell)."""

    code: int
    error: str
    peak: int


def run(code: str, *arguments: str) -> Ended:
    """Run the code, with ``sys.argv[1:]`` as given."""
    done = subprocess.run([sys.executable, "-c", WATCH + code, *arguments], capture_output=True, text=True, check=False)
    error, _, peak = done.stderr.rpartition("peak ")
    return Ended(done.returncode, error or done.stderr, 1024 * int(peak) if error else 0)
