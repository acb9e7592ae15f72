"""Mutated svmlight text through the compiled reader and through the plain reference: the same rows, bits and refusals.

    python tests/tools/fuzz.py --lines 1000000 --seed 0          seeded mutations of valid lines
    python tests/tools/fuzz.py --atheris 200000 --seed 0         coverage-guided, on the parser as interpreted Python

Lines come in batches. Each batch is a file that is read with base 0 and 1, sorted and not, in one block and in blocks of a few
bytes, with every wrong line skipped and with fewer skips than there are wrong lines. Each line is parsed once more where the
pages after the text and after every array that is written to cannot be touched: a read or write past an end is a crash.
A batch that takes longer than a minute ends the run with a traceback.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import mmap
import os
import random
import re
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.append(str(Path(__file__).parent.parent / "streams"))
from reference import LAST_COLUMN, Read, Row, by_line, reference

from onlinear import streams
from onlinear.streams import svmlight

GUARDS = os.name == "posix"
BATCH = 400
PATIENCE = 60.0
EVERY = 1 << 40
SETTINGS = [(base, sort) for base in (0, 1) for sort in (False, True)]
MESSAGE = re.compile(r"(?P<line>[0-9]+): expected .+, got .+\.", re.DOTALL)

# --- lines -----------------------------------------------------------------------------------------------------------

NUMBERS = [
    "0", "-0", "+0", "0.0", "1", "-1", "+1", "1.", ".5", "-.5", "00", "007", "0e5", "0e-999", "1e0", "1E+05", "1e-5", "0.1",
    "5e-324", "4.9e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "2.2250738585072011e-308", "1e-400", "1e-310",
    "2.2250738585072014e-308", "9007199254740992", "9007199254740993", "9007199254740992.5", "18014398509481985", "1e22",
    "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "99999999999999999999",
    "1e23", "8.5e22", "1e-22", "1e-23", "1e280", "1e281", "1e-250", "1e-251", "9999999999999999999e280", "1e308", "1e309",
    "-1e309", "1.7976931348623157e308", "1.7976931348623158e308", "1.7976931348623159e308", "179769313486231580793e288",
    "1e999999999999999999999", "1e-999999999999999999999", "0e999999999999999999999", "7.2057594037927933e16",
    "1.00000000000000011102230246251565404236316680908203125", "1.00000000000000011102230246251565404236316680908203124",
]  # fmt: skip
WORDS = [
    "nan", "NaN", "-nan", "inf", "+inf", "-Infinity", "0x10", "1_0", "1e", "1e+", ".", "+", "-", "+-1", "1.2.3", "1..2", "e5",
    "1e5.5", "1d5", "1f", "qid:", "qid:1", "qid:-2.5e3", "qid:x", ":1", "1:", "1::2", "1:2:3", "0:1", "1,2", "1,2:3", "-1:1",
    "+1:1", "1.0:1", "#", "#x", "\ufeff1", "\u0663", "\u0661:\u0662", "qid:\u0663", "\uff11", "\u20091", "\u22121", "\xb2",
]  # fmt: skip
BYTES = b"0123456789+-.eE:,# \t\r\n\x0b\x0c\x00\x7f\x80\xff/;qidnaxf_"


def valid_line(rng: random.Random) -> bytes:
    """A line that base 1 accepts."""
    tokens = [rng.choice(["1", "-1", "+1", "0", "2.5", "-3e2", number(rng)])]
    if rng.random() < 0.1:
        tokens.append(f"qid:{rng.randrange(100)}")
    index = 0
    for _ in range(rng.randrange(8)):
        index += rng.choice([1, 1, 2, 7, 100, 100000])
        tokens.append(f"{index}:{number(rng) if rng.random() < 0.3 else round(rng.uniform(-9, 9), rng.randrange(5))}")
    blank = rng.choice([" ", " ", " ", "\t", "  ", " \t "])
    line = blank.join(tokens)
    if rng.random() < 0.15:
        line = rng.choice(["", " ", "\t"]) + line + rng.choice(["", " ", " # 1:2", "#", "# \u00e9\u0663 3:x", "\t"])
    return (line + ("\r" if rng.random() < 0.1 else "")).encode()


def number(rng: random.Random) -> str:
    """A number of a kind that readers get wrong; a few are infinite."""
    kind = rng.randrange(9)
    if kind == 0:
        return rng.choice(NUMBERS)
    if kind == 1:
        return f"{rng.choice(['', '-', '+'])}{digits(rng, 25)}.{digits(rng, 25)}e{rng.randrange(-345, 310)}"
    if kind == 2:
        return digits(rng, 22) + rng.choice(["", ".", "." + digits(rng, 4)])
    if kind == 3:
        return tie(rng)
    if kind == 4:
        return padded(rng)
    if kind == 5:
        return (
            f"{digits(rng, 19)}e{rng.choice([-1, 1]) * rng.choice([0, 1, 21, 22, 23, 249, 250, 251, 279, 280, 281, 300, 330])}"
        )
    double = struct.unpack("<d", rng.randbytes(8))[0]
    if double != double or abs(double) == float("inf"):
        double = 5e-324 * rng.randrange(1 << 52)
    return rng.choice(["{!r}", "{:.18e}", "{:.15g}", "{:.25g}", "{:.60e}", "{:.3E}"]).format(double)


def padded(rng: random.Random) -> str:
    """Digits with zeros in front or behind, and often an exponent that makes up for them."""
    zeros = rng.randrange(rng.choice([30, 30, 30, 1000]))
    power = rng.choice([0, rng.randrange(-340, 310)])
    text, back = rng.choice([("0." + "0" * zeros + digits(rng, 20), zeros), (digits(rng, 20) + "0" * zeros, -zeros)])
    return text if rng.random() < 0.3 else f"{text}e{back + power}"


def digits(rng: random.Random, most: int) -> str:
    return "".join(rng.choices("0123456789", k=rng.randrange(1, most + 1)))


def tie(rng: random.Random) -> str:
    """A number exactly between two doubles, or its neighbour in the last digit, or its first 19 digits and zeros."""
    odd, power = 2 * rng.randrange(2**52, 2**53) + 1, rng.randrange(80)
    exact = odd * 5**power
    text = str(exact + rng.choice([-1, 0, 0, 1]))
    return f"{text[:19] + '0' * (len(text) - 19) if rng.random() < 0.2 else text}e-{power}"


def mutated(rng: random.Random, line: bytes, other: bytes) -> bytes:
    """The line after one to four changes, each of one of the kinds in ``CHANGES``."""
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        line = rng.choice(CHANGES)(rng, line, other)
    return line


def _at(rng: random.Random, line: bytes) -> int:
    return rng.randrange(len(line) + 1)


def flip(rng: random.Random, line: bytes, other: bytes) -> bytes:
    if not line:
        return line
    i = rng.randrange(len(line))
    return line[:i] + bytes([line[i] ^ 1 << rng.randrange(8)]) + line[i + 1 :]


def insert(rng: random.Random, line: bytes, other: bytes) -> bytes:
    i = _at(rng, line)
    return line[:i] + bytes(rng.choices(BYTES, k=rng.choice([1, 1, 2, 5]))) + line[i:]


def replace(rng: random.Random, line: bytes, other: bytes) -> bytes:
    i = _at(rng, line)
    return line[:i] + bytes([rng.choice([rng.choice(BYTES), rng.randrange(256)])]) + line[i + 1 :]


def delete(rng: random.Random, line: bytes, other: bytes) -> bytes:
    i = _at(rng, line)
    return line[:i] + line[i + rng.choice([1, 1, 2, 8]) :]


def duplicate(rng: random.Random, line: bytes, other: bytes) -> bytes:
    i = _at(rng, line)
    return line[: i + rng.randrange(1, 12)] + line[i:]


def splice(rng: random.Random, line: bytes, other: bytes) -> bytes:
    return line[: _at(rng, line)] + other[_at(rng, other) :]


def token(rng: random.Random, line: bytes, other: bytes) -> bytes:
    """Put an odd number, index, word, other token or repeated index in a token's place, or swap two tokens."""
    tokens = line.split(b" ")
    i = rng.randrange(len(tokens))
    index, colon, _ = tokens[i].partition(b":")
    kind = rng.randrange(6)
    if kind == 0:
        tokens[i] = (index + colon if colon else b"") + number(rng).encode()
    elif kind == 1:
        tokens[i] = odd_index(rng).encode() + b":" + number(rng).encode()
    elif kind == 2:
        tokens[i] = (index + colon if rng.random() < 0.5 else b"") + rng.choice(WORDS).encode()
    elif kind == 3:
        tokens[i] = rng.choice(other.split(b" "))
    elif kind == 4:
        values = rng.choices(
            ["1e308", "1.7e308", "-1e308", "0.1", "-0.1", "1e-17", "5e-324", number(rng)], k=rng.randrange(2, 6)
        )
        tokens[i] = " ".join(f"{rng.choice([1, 9, 9])}:{value}" for value in values).encode()
    else:
        j = rng.randrange(len(tokens))
        tokens[i], tokens[j] = tokens[j], tokens[i]
    return b" ".join(tokens)


def odd_index(rng: random.Random) -> str:
    edge = LAST_COLUMN + rng.randrange(-1, 4)
    wide = rng.choice([2**31, 2**32, 2**32 + 1, 2**63, 2**64, 2**64 + 1, 10 ** rng.randrange(9, 40)])
    return rng.choice([str(edge), str(wide), "0", "1", "01", f"{rng.randrange(1, 100):010}", f"{rng.randrange(1, 100):011}"])


def long(rng: random.Random, line: bytes, other: bytes) -> bytes:
    """A token of up to 10,000 characters, rarely."""
    if rng.random() > 0.02:
        return flip(rng, line, other)
    size = rng.choice([50, 400, 4095, 4096, 4097, 10000])
    body = rng.choice([b"0", b"9", b"1", b"x", b"\x00", b" ", b"\t", b"1:"]) * size
    tail = rng.choice([b"", b"e-%d" % size, b"e-%d" % (size - 300), b".5", b"1e%d" % size])
    front = rng.choice([b"", b"1:", b"0.", b"1:0.", b"7 1:-"])
    return line[: line.find(b" ") + 1] + front + body + tail


CHANGES: list[Callable[[random.Random, bytes, bytes], bytes]] = [
    flip, insert, replace, delete, duplicate, splice, token, token, token, long
]  # fmt: skip


def batch_text(rng: random.Random, lines: int) -> bytes:
    """The text of a file of about so many lines (changes may add and remove line ends)."""
    valid = [valid_line(rng) for _ in range(lines)]
    text = b"\n".join(mutated(rng, line, rng.choice(valid)) if rng.random() < 0.7 else line for line in valid)
    return text + rng.choice([b"", b"\n", b"\r\n", b"\r"])


# --- checks ----------------------------------------------------------------------------------------------------------


def compiled(path: str, **options: Any) -> tuple[Read, list[str]]:
    """What the reader gives, in the reference's form, and its messages."""
    stream = streams.open(path, **options)
    rows: list[Row] = []
    last: list[str] = []
    try:
        for block in stream:
            starts, columns, values = (array.tolist() for array in block.rows)
            hexes = [value.hex() for value in values]
            for line, label, a, b in zip(block.lines.tolist(), block.y.tolist(), starts, starts[1:], strict=False):
                rows.append(Row(line, label.hex(), columns[a:b], hexes[a:b]))
    except streams.StreamError as error:
        last = [str(error)]
    skipped = [place(message, path) for message in stream.errors]
    return Read(rows, skipped, place(last[0], path) if last else None), [*stream.errors, *last]


def place(message: str, path: str) -> int:
    """The line that an error names, or -1 where it is not ``file:line: expected ..., got ...``."""
    found = MESSAGE.fullmatch(message.removeprefix(f"{path}:"))
    return int(found["line"]) if found else -1


def differences(text: bytes, path: str, rng: random.Random, settings: Sequence[tuple[int, bool]] = SETTINGS) -> Iterator[str]:
    """Read one file in each setting, in one block and in small ones, with and without skips to spare; what is not the same."""
    Path(path).write_bytes(text)
    for base, sort in settings:
        wanted = reference(text, base=base, sort=sort, max_errors=EVERY)
        sizes = [1 << 20, rng.randrange(1, rng.choice([100, 2000, len(text) + 2]))]
        cases = [(size, EVERY) for size in sizes]
        if wanted.skipped:
            cases.append((rng.choice(sizes), rng.randrange(min(5, len(wanted.skipped)))))
        for size, most in cases:
            expected = wanted if most == EVERY else cut(wanted, most)
            found, messages = compiled(path, base=base, sort=sort, max_errors=most, block_bytes=size)
            if found != expected:
                yield f"base={base} sort={sort} max_errors={most} block_bytes={size}: {first_difference(found, expected)}"
            if size == sizes[0] and most == EVERY:
                plain = messages
            elif messages != plain[: len(messages)]:
                yield f"base={base} sort={sort} max_errors={most} block_bytes={size}: other messages than in one block"


def cut(read: Read, most: int) -> Read:
    """What is read if only ``most`` wrong lines are skipped, and there are more."""
    refused = read.skipped[most]
    return Read([row for row in read.rows if row.line < refused], read.skipped[:most], refused)


def first_difference(found: Read, expected: Read) -> str:
    for a, b in zip(found.rows, expected.rows, strict=False):
        if a != b:
            return f"read {a}, the reference {b}"
    short = [len(found.rows), found.skipped[:3], found.refused]
    return f"{short} (rows, skipped, refused), the reference {[len(expected.rows), expected.skipped[:3], expected.refused]}"


class Guard:
    """Memory whose next page must not be touched; arrays are placed at its very end."""

    def __init__(self, size: int) -> None:
        page = mmap.PAGESIZE
        self.size = -(-size // page) * page
        self._map = mmap.mmap(-1, self.size + page)
        self._bytes = np.frombuffer(self._map, np.uint8)
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        protect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
        if protect(self._bytes.ctypes.data + self.size, page, 0):
            raise OSError(ctypes.get_errno(), "a guard page cannot be had")

    def like(self, array: np.ndarray) -> np.ndarray:
        """An array with this shape, type and content that ends where the memory ends."""
        placed = self._bytes[self.size - array.nbytes : self.size].view(array.dtype).reshape(array.shape)
        placed[...] = array
        return placed


class Guarded:
    """Parses text at the end of readable memory, with every output array at the end of writable memory."""

    def __init__(self) -> None:
        self._guards: dict[str, Guard] = {}

    def _placed(self, name: str, array: np.ndarray) -> np.ndarray:
        if name not in self._guards or self._guards[name].size < array.nbytes:
            self._guards[name] = Guard(max(1 << 16, 2 * array.nbytes))
        return self._guards[name].like(array)

    def parse(self, lines: bytes) -> tuple[int, int]:
        """The rows and the wrong lines that the compiled loop finds in lines without their last line end."""
        text = np.frombuffer(lines + b"\n", np.uint8)
        arrays = svmlight.make_arrays(text, lines.count(b"\n") + 1, EVERY)
        copies = (self._placed(name, array) for name, array in zip(arrays._fields, arrays, strict=True))
        placed = svmlight.SvmlightArrays(*copies)
        with np.errstate(over="ignore"):
            svmlight.parse(self._placed("text", text), len(text), 1, True, svmlight.powers(), *placed)
        return int(placed.found[svmlight.ROWS]), int(placed.found[svmlight.WRONGS])

    def differences(self, lines: bytes, accepted: int, refused: int) -> Iterator[str]:
        rows, wrongs = self.parse(lines)
        # Numbers left to ``float`` may still turn out infinite.
        if rows + wrongs != accepted + refused or wrongs > refused:
            yield f"{lines[:300]!r} gave {rows} rows and {wrongs} wrong lines at the end of a page"


# --- runs ------------------------------------------------------------------------------------------------------------


class Total(NamedTuple):
    """What a run saw, under base 1 and indices in order."""

    lines: int = 0
    accepted: int = 0
    refused: int = 0
    slowest: float = 0.0
    differences: tuple[str, ...] = ()

    def __str__(self) -> str:
        blank = self.lines - self.accepted - self.refused
        guards = "each at the end of a page" if GUARDS else "no guard pages on this system"
        counts = f"{self.lines:,} lines: {self.accepted:,} accepted, {self.refused:,} refused, {blank:,} blank"
        return f"{counts}; {guards}; slowest batch {self.slowest:.1f} s; {len(self.differences)} differences"


def run(lines: int, seed: int, tell: Callable[[str], object] = print) -> Total:
    """At least ``lines`` lines; the batches depend on ``seed`` and their number alone."""
    total, guarded, batch = Total(), Guarded() if GUARDS else None, 0
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "fuzz.svm")
        while total.lines < lines:
            start = time.perf_counter()
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
            rng = random.Random(f"{seed}/{batch}")
            text = batch_text(rng, min(BATCH, lines - total.lines))
            whole = by_line(text, max_errors=EVERY)
            found = list(differences(text, path, rng))
            split = text.removesuffix(b"\n").split(b"\n")
            if guarded is not None:
                found += guarded.differences(b"\n".join(split), len(whole.rows), len(whole.skipped))
                accepted, refused = {row.line for row in whole.rows}, set(whole.skipped)
                for at, line in enumerate(split, 1):
                    found += guarded.differences(line, at in accepted, at in refused)
            faulthandler.cancel_dump_traceback_later()
            for difference in found:
                tell(f"seed {seed}, batch {batch}: {difference}")
            total = Total(
                total.lines + len(split),
                total.accepted + len(whole.rows),
                total.refused + len(whole.skipped),
                max(total.slowest, time.perf_counter() - start),
                (*total.differences, *found),
            )
            batch += 1
    return total


def coverage_guided(runs: int, seed: int) -> int:
    """Let atheris steer the bytes of small files by the branches of the interpreted parser that they reach."""
    try:
        import atheris
    except ImportError:
        print("atheris is not installed: pip install atheris, where it has a wheel for this system.", file=sys.stderr)
        return 2
    if not os.environ.get("NUMBA_DISABLE_JIT"):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "NUMBA_DISABLE_JIT": "1"})
    for name in ("parse", "number", "significant", "scaled", "ends", "_message", "_tidy"):
        atheris.instrument_func(getattr(svmlight, name))
    folder = tempfile.mkdtemp()
    path, corpus = Path(folder) / "fuzz.svm", Path(folder) / "corpus"
    corpus.mkdir()
    rng = random.Random(seed)
    for k in range(200):
        (corpus / str(k)).write_bytes(bytes([k]) + b"\n".join(valid_line(rng) for _ in range(rng.randrange(1, 4))))
    (corpus / "numbers").write_bytes(b"\0" + "".join(f"{x} 1:{x}\n" for x in NUMBERS).encode())
    done = [0]

    def once(data: bytes) -> None:
        head, text = data[0] if data else 0, data[1:]
        found = list(differences(text, str(path), random.Random(head), [SETTINGS[head % len(SETTINGS)]]))
        if found:
            raise AssertionError(f"{data!r}: {found}")
        done[0] += 1
        if done[0] == runs:
            print(f"atheris: {runs:,} files, 0 differences")

    atheris.Setup([sys.argv[0], str(corpus), f"-runs={runs}", f"-seed={seed + 1}", "-max_len=300", "-timeout=60"], once)
    atheris.Fuzz()
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--atheris", type=int, metavar="RUNS", help="coverage-guided instead, this many files")
    args = parser.parse_args()
    if args.atheris is not None:
        return coverage_guided(args.atheris, args.seed)
    start = time.perf_counter()
    total = run(args.lines, args.seed)
    print(f"{total}; {time.perf_counter() - start:.0f} s")
    return 1 if total.differences else 0


if __name__ == "__main__":
    sys.exit(main())
