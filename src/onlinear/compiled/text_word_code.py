"""What is compiled for the texts in ``text_words.py``: one load, and one comparison of 32 bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from onlinear.compiled.lane_code import emits
from onlinear.compiled.text_words import MARKED, count_marks, first_mark, marks_of, marks_up_to, word_at

BYTES, WORD = ir.VectorType(ir.IntType(8), MARKED), ir.IntType(64)


def _read(builder: Any, kind: Any, text: Any, place: Any) -> Any:
    return builder.load(builder.bitcast(builder.gep(text, [place]), kind.as_pointer()), align=1)


def _emit_word(builder: Any, args: Any, kinds: Any) -> Any:
    return _read(builder, WORD, *args)


def _marks(relation: str) -> Callable[..., Any]:
    def emit(builder: Any, args: Any, kinds: Any) -> Any:
        text, place, byte = args
        first = builder.insert_element(ir.Constant(BYTES, ir.Undefined), builder.trunc(byte, BYTES.element), ir.IntType(32)(0))
        same = builder.shuffle_vector(first, first, ir.Constant(ir.VectorType(ir.IntType(32), MARKED), [0] * MARKED))
        found = builder.icmp_unsigned(relation, _read(builder, BYTES, text, place), same)
        return builder.zext(builder.bitcast(found, ir.IntType(MARKED)), WORD)

    return emit


def _emit_first(builder: Any, args: Any, kinds: Any) -> Any:
    return builder.cttz(args[0], ir.IntType(1)(0))


def _emit_count(builder: Any, args: Any, kinds: Any) -> Any:
    return builder.ctpop(args[0])


for _text, _emit in (
    (word_at, _emit_word),
    (marks_of, _marks("==")),
    (marks_up_to, _marks("<=")),
    (first_mark, _emit_first),
    (count_marks, _emit_count),
):
    emits(_text, lambda *kinds: types.uint64, _emit)
