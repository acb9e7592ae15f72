"""Model files: one safetensors file of arrays, with a JSON header. No pickle, no clock, host or path in it.

The header is the one entry ``onlinear-model`` of the file's metadata; the same header and arrays give the same bytes. It holds
a digest of all else, so a damaged file is never taken for a model. ``writing`` writes the file.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from onlinear.errors import ModelFileError
from onlinear.files import paths, writing
from onlinear.text.names import printable

FORMAT = "onlinear-model"
VERSION = 1
DTYPES = ("F64", "I64", "U64", "U32", "U8", "BOOL")  # of arrays, as safetensors names them
KINDS = {
    "<u8": "U64",
    "<i8": "I64",
    "<f8": "F64",
    "<f4": "F32",
    "<u4": "U32",
    "<i4": "I32",
    "<f2": "F16",
    "<u2": "U16",
    "<i2": "I16",
    "|i1": "I8",
    "|u1": "U8",
    "|b1": "BOOL",
}  # names of all types, in the order in which arrays lie in a file
DEEPEST = 32  # lists and objects inside one another in a header
MOST_BYTES = 100_000_000  # of a header that safetensors writes or reads
Arrays = dict[str, np.ndarray]


def arrays_below(arrays: Arrays, prefix: str) -> Arrays:
    """The arrays whose names begin with ``prefix``, by what follows it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def arrays_of_each(arrays: Arrays, mark: str) -> dict[str, Arrays]:
    """The arrays of each of several parts, whose names begin with the part's and a mark, by what follows it."""
    found: dict[str, Arrays] = {}
    for name, array in arrays.items():
        part, marked, own = name.partition(mark)
        if marked:
            found.setdefault(part, {})[own] = array
    return found


def write(path: str | os.PathLike[str], header: dict[str, Any], arrays: Arrays) -> None:
    """Write a model file; the same header and arrays give the same bytes.

    Raises OSError, also for a header that is larger than any that is read.
    """
    arrays = {name: np.ascontiguousarray(array) for name, array in sorted(arrays.items())}
    header = {"version": VERSION, **header}
    header["digest"] = _digest(header, arrays)
    little = [(name, array.astype(array.dtype.newbyteorder("<"), copy=False)) for name, array in arrays.items()]
    ordered = sorted(little, key=lambda item: (list(KINDS).index(item[1].dtype.str), item[0]))
    beginning = _beginning(_text(header), ordered)
    if len(beginning) > MOST_BYTES:
        held = f"its header takes {len(beginning):,} bytes of at most {MOST_BYTES:,}"
        raise OSError(errno.EFBIG, f"{held}: names of columns, categories and classes are too many or too long", path)
    with writing.new_file(path) as file:
        file.write(len(beginning).to_bytes(8, "little") + beginning)
        for _, array in ordered:
            file.write(array.reshape(-1).view(np.uint8).data)


def _beginning(text: str, arrays: list[tuple[str, np.ndarray]]) -> bytes:
    """What stands before the arrays: a JSON object of the header and of where each array lies, and blanks up to a multiple of 8
    bytes. safetensors writes the same, but makes two copies of all arrays, and ends the process where they find no memory."""
    places: dict[str, Any] = {"__metadata__": {FORMAT: text}}
    end = 0
    for name, array in arrays:
        begin, end = end, end + array.nbytes
        places[name] = {"dtype": KINDS[array.dtype.str], "shape": array.shape, "data_offsets": (begin, end)}
    found = json.dumps(places, separators=(",", ":"), ensure_ascii=False).encode()
    return found + b" " * (-len(found) % 8)


def size_in_header(text: str) -> int:
    """Bytes that a text takes in a header, which is JSON as text in JSON."""
    return len(quoted(quoted(text))) - 2


def _text(header: dict[str, Any]) -> str:
    return json.dumps(header, sort_keys=True, separators=(",", ":"))


def _digest(header: dict[str, Any], arrays: Arrays) -> str:
    """SHA-256 of the header without its digest, and of every array's name, type, shape and bytes."""
    total = hashlib.sha256(_text({key: value for key, value in header.items() if key != "digest"}).encode())
    for name, array in sorted(arrays.items()):
        total.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        total.update(array.ravel().data)
    return total.hexdigest()


def read(path: str | os.PathLike[str]) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of a model file; no more memory is taken than the file is long, a few times over.

    Raises OSError, or ModelFileError for a file that is truncated, damaged, foreign or of a newer version.
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"path must be the name of a model file, got {type(path).__name__}: save its bytes as a file first.")
    name = os.fsdecode(path)
    if not paths.exists(name):  # of no name, which is no folder
        raise FileNotFoundError(f"no model file at {name!r}.")
    if not Path(name).is_file():
        raise ModelFileError(f"{printable(name)}: not an onlinear model file (not a file).")
    with open(name, "rb"):
        pass  # where the system refuses the file, its own error follows
    try:
        with safe_open(name, framework="numpy") as file:
            header = _header(file.metadata() or {})
            kinds = {key: _kind(file, key) for key in file.keys()}  # noqa: SIM118
        arrays = _arrays(name, kinds)
        if header.get("digest") != _digest(header, arrays):
            raise ModelFileError("the file is damaged (its content does not match its digest).")
    except ModelFileError as error:
        raise ModelFileError(f"{printable(name)}: {error}") from None
    except (SafetensorError, OSError, ValueError, TypeError, OverflowError, KeyError) as error:
        raise ModelFileError(f"{printable(name)}: not an onlinear model file, or cut short ({error}).") from None
    return header, arrays


def _kind(file: Any, key: str) -> str:
    kind: str = file.get_slice(key).get_dtype()
    if kind not in DTYPES:
        raise ModelFileError(f"an array of the type {kind}, which no model file holds.")
    return kind


def _arrays(name: str, kinds: dict[str, str]) -> Arrays:
    """The arrays of a file whose beginning safetensors has checked; it does not end where they find no memory."""
    types, found = {kind: np.dtype(code) for code, kind in KINDS.items()}, {}
    with open(name, "rb") as file:
        start = int.from_bytes(file.read(8), "little")
        places = json.loads(file.read(start))
        for key, kind in kinds.items():
            begin, end = places[key]["data_offsets"]
            array = np.empty((end - begin) // types[kind].itemsize, types[kind])
            file.seek(8 + start + begin)
            if file.readinto(array.view(np.uint8).data) != end - begin:
                raise ModelFileError("the file is cut short.")
            found[key] = array.astype(array.dtype.newbyteorder("="), copy=False).reshape(places[key]["shape"])
    return found


def _header(metadata: dict[str, str]) -> dict[str, Any]:
    if FORMAT not in metadata:
        raise ModelFileError("not an onlinear model file (a safetensors file of another kind).")
    try:
        header = json.loads(metadata[FORMAT], object_pairs_hook=_object)
        if _too_deep(header):
            raise RecursionError("nested too deeply")
        version = header["version"]
        if type(version) is not int or version < 1:
            raise TypeError(f"version {version!r}")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ModelFileError(f"the model file's header is damaged ({type(error).__name__}: {error}).") from None
    if version > VERSION:
        raise ModelFileError(f"model file version {version}; this release reads up to {VERSION}. Upgrade onlinear.")
    return header


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; one that names something twice says two things."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an entry is given twice")
    return found


def _too_deep(header: Any) -> bool:
    """Whether lists and objects stand deeper inside one another than in any model: all that handles them recurses."""
    level = [header]
    for _ in range(DEEPEST):
        inside = (item.values() if isinstance(item, dict) else item for item in level if isinstance(item, (dict, list)))
        level = [value for values in inside for value in values]
    return bool(level)
