"""What is compiled for the texts in ``text_words.py``: one load, and one comparison of 32 bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from onlinear.compiled._private import cgutils
from onlinear.compiled.lane_code import emits
from onlinear.compiled.text_words import (
    MARKED,
    ZEROS,
    count_marks,
    first_mark,
    marks_of,
    marks_up_to,
    spelled_words,
    word_at,
)

BYTES, WORD = ir.VectorType(ir.IntType(8), MARKED), ir.IntType(64)
WORDS = 4  # of MARKED bytes


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


def _vector(bits: int) -> Any:
    return ir.VectorType(ir.IntType(bits), 8 * MARKED // bits)


def _same(bits: int, number: int) -> Any:
    return ir.Constant(_vector(bits), [number] * (8 * MARKED // bits))


def _side_by_side(builder: Any, words: Any) -> Any:
    found = ir.Constant(_vector(64), ir.Undefined)
    for place, word in enumerate(words):
        found = builder.insert_element(found, word, ir.IntType(32)(place))
    return found


def _emit_spelled(builder: Any, args: Any, kinds: Any) -> Any:
    """Digits become pairs, fours and eights: one product makes the upper half of each number ``ten`` times its lower half and
    itself, for the lower half stands first in the text."""
    words = builder.xor(_side_by_side(builder, args[:WORDS]), _same(64, ZEROS))
    digits = builder.bitcast(builder.and_(words, _side_by_side(builder, args[WORDS:])), BYTES)
    others = builder.zext(builder.bitcast(builder.icmp_unsigned(">", digits, _same(8, 9)), ir.IntType(MARKED)), WORD)
    pairs = builder.bitcast(digits, _vector(16))
    pairs = builder.lshr(builder.mul(pairs, _same(16, 10 * 2**8 + 1)), _same(16, 8))
    fours = builder.bitcast(pairs, _vector(32))
    fours = builder.lshr(builder.mul(fours, _same(32, 100 * 2**16 + 1)), _same(32, 16))
    eights = builder.bitcast(fours, _vector(64))
    lower = builder.mul(builder.and_(eights, _same(64, 2**32 - 1)), _same(64, 10000))
    eights = builder.add(lower, builder.lshr(eights, _same(64, 32)))
    numbers = [builder.extract_element(eights, ir.IntType(32)(place)) for place in range(WORDS)]
    return cgutils.pack_array(builder, [*numbers, others])


for _text, _emit in (
    (word_at, _emit_word),
    (marks_of, _marks("==")),
    (marks_up_to, _marks("<=")),
    (first_mark, _emit_first),
    (count_marks, _emit_count),
):
    emits(_text, lambda *kinds: types.uint64, _emit)
emits(spelled_words, lambda *kinds: types.UniTuple(types.uint64, WORDS + 1), _emit_spelled)
