"""Where a kernel's time goes: the processor's own counters around the compiled loop, beside the bare loops.

    python benchmarks/profile_kernels.py [--rows 50000] [--repeats 5] [--only PATTERN] [--json FILE] [--asm FOLDER]

The rows are those of throughput.py; the kernels are those whose target is missed, and grids of eight penalties side by side
beside one model alone (many outputs), with every check. Each event is counted alone, in user mode, for a pass; a figure is the
smallest of the repeats (an interrupt only adds), per non-zero or per row. L1 and L2 misses are what Linux calls
L1-dcache-load-misses and cache-misses, which beside AMD's processors may mean something else. --asm leaves the generated code
of each kernel as NAME.s. Needs Linux and leave to count (/proc/sys/kernel/perf_event_paranoid at most 2).
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import platform
import re
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from many import METHODS, learn_grid, learn_one
from onlinear import rows
from onlinear.solvers.core.engine import Examples
from options import parser_of
from pages import table
from throughput import CASES, Case, bare_hinge, bare_run, bare_squared, engine_of, kernel_run, text_like

MISSED = (
    "COMID, L1",
    "CSGD (of squared bare)",
    "ioDRs, L1",
    "OADM, L1",
    "COMID + average, few die",
    "COMID + average, many die",
    "RDA + average",
    "FIOL + average",
    "SADMM + zbar",
)
EVENTS = {  # of linux/perf_event.h: type (0 hardware, 3 cache) and number
    "instructions": (0, 1),
    "cycles": (0, 0),
    "loads": (3, 0x00000),
    "L1 misses": (3, 0x10000),
    "L2 misses": (0, 3),
    "branches": (0, 4),
    "mispredicted": (0, 5),
}
PER_ROW = ("mispredicted",)
PERF_EVENT_OPEN = {"x86_64": 298, "aarch64": 241}
DISABLED, USER_ONLY = 1, 1 << 5 | 1 << 6  # not in the kernel, not in a hypervisor
ENABLE, DISABLE, RESET = 0x2400, 0x2401, 0x2403


class Counter:
    """One event of this thread."""

    def __init__(self, kind: int, number: int) -> None:
        call = PERF_EVENT_OPEN.get(platform.machine())
        if platform.system() != "Linux" or call is None:
            raise SystemExit(f"{platform.system()} on {platform.machine()} has no counters that this script knows.")
        wanted = struct.pack("IIQQQQQIIQ", kind, 64, number, 0, 0, 0, DISABLED | USER_ONLY, 0, 0, 0)
        libc = ctypes.CDLL(None, use_errno=True)
        self._file = libc.syscall(call, ctypes.c_char_p(wanted), 0, -1, -1, 0)
        if self._file < 0:
            raise SystemExit(f"this machine's counters cannot be opened: {os.strerror(ctypes.get_errno())}.")

    def __call__(self, run: Callable[[], object]) -> float:
        """The count while ``run`` runs."""
        fcntl.ioctl(self._file, RESET)
        fcntl.ioctl(self._file, ENABLE)
        run()
        fcntl.ioctl(self._file, DISABLE)
        return float(struct.unpack("Q", os.read(self._file, 8))[0])

    def close(self) -> None:
        os.close(self._file)


def runs(cases: list[Case], X: rows.Rows, d: int, y: np.ndarray, counter: Counter) -> dict[str, Callable[[], float]]:
    """Every loop, counted."""
    bare = {"bare hinge": bare_hinge, "bare squared": bare_squared}
    found = {name: bare_run(loop, X, d, y, counter) for name, loop in bare.items()}
    return found | {case[0]: kernel_run(case, X, d, y, counter) for case in cases}


def grid_runs(X: sp.csr_matrix, y: np.ndarray, wanted: str, counter: Counter) -> dict[str, Callable[[], float]]:
    """A model alone and a grid of eight, counted."""
    found: dict[str, Callable[[], float]] = {}
    for method in METHODS:
        if method.average == "none" and re.search(wanted, method.name):
            for name, make in (("alone", learn_one(method, X, y)), ("grid of 8", learn_grid(method, X, y, 8, 1))):
                found[f"{method.name}, {name}"] = lambda make=make: counter(make())  # type: ignore[misc]
    return found


def counted(X: sp.csr_matrix, y: np.ndarray, wanted: str, repeats: int) -> dict[str, dict[str, float]]:
    """Events of one pass, by loop."""
    found: dict[str, dict[str, float]] = {}
    data, cases = rows.read(X).data, cases_of(wanted)
    for event, (kind, number) in EVENTS.items():
        counter = Counter(kind, number)
        loops = runs(cases, data, X.shape[1], y, counter) | grid_runs(X, y, wanted, counter)
        for name, run in loops.items():
            found.setdefault(name, {})[event] = min(run() for _ in range(repeats + 1))
        counter.close()
    return found


def cases_of(wanted: str) -> list[Case]:
    return [case for case in CASES if case[0] in MISSED and re.search(wanted, case[0])]


def write_code(folder: Path, case: Case, X: rows.Rows, d: int, y: np.ndarray) -> None:
    """The generated code of a kernel, compiled anew, since code from the disk cannot be shown."""
    engine = engine_of(case)
    call, args = engine.call(engine.start(np.zeros(d), 0.0), Examples(X, 1.0, y, np.ones(len(y)), np.empty(len(y))))
    call.fresh(*args)
    folder.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"\W+", "-", case[0]).strip("-").lower()
    (folder / f"{name}.s").write_text("\n".join(call.fresh.inspect_asm().values()))


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", default="")
    parser.add_argument("--asm", type=Path)
    args = parser.parse_args()
    X, y = text_like(args.rows)
    found = counted(X, y, args.only, args.repeats)
    shape = f"{args.rows:,} rows x {X.shape[1]:,} columns, {X.nnz / args.rows:.0f} non-zeros per row"
    print(f"{shape}; smallest of {args.repeats + 1}.\n")
    lines = []
    for name, events in found.items():
        each = [f"{events[event] / (args.rows if event in PER_ROW else X.nnz):.2f}" for event in EVENTS]
        lines.append([name, *each, f"{events['instructions'] / events['cycles']:.2f}"])
    head = [f"{event} per {'row' if event in PER_ROW else 'non-zero'}" for event in EVENTS]
    print(table(["loop", *head, "instructions per cycle"], lines))
    if args.json:
        args.json.write_text(json.dumps({"rows": args.rows, "nnz": X.nnz, "events": found}))
    if args.asm:
        for case in cases_of(args.only):
            write_code(args.asm, case, rows.read(X).data, X.shape[1], y)
    return 0


if __name__ == "__main__":
    sys.exit(main())
