"""``learn_one`` and ``predict_one`` of a learner as built-in functions, where their rows are plain.

They do what the methods of these names do. What is compiled for the learner's state as it is, they find in ``words``, memory of
the learner. They leave to the methods all rows that are not plain, and all states for which nothing is compiled yet.
"""

from __future__ import annotations

from collections.abc import Callable
from math import nan
from typing import Any

import numpy as np

from onlinear.compiled import function
from onlinear.compiled.calls import (
    DATA,
    FIRST,
    TARGETS,
    built_in,
    free_lock,
    new_real,
    passed_on,
    ran_output,
    ran_row,
    ran_score,
    real_at,
    take_lock,
    target_of,
    word_at,
)

# The moves of the learner's arrays; whether code failed that learned, that scored; the learner's lock; the types of targets.
MOVES, FAILED, UNREAD, LOCK, TYPES_OF_TARGETS = range(5)
# Of what learns, of what scores by weights that are listed, and of what scores between rows: the moves for which it was made,
# its code and what that holds. LAST, GIVEN: where the number of columns of the last row is, if that is kept, and how many the
# state knows of. What scores between rows has a form for the last iterate and one for the average, each with its output, and
# the losses of a race. NEWS: how often columns or their names came. AHEAD: the columns that are known where the states are yet
# to follow, else 0. UNTIL, LENGTHS: the columns up to which compiled code lets what is held follow, and its ``Lengths.table``.
LEARNING, LAST, GIVEN, LISTED, READING, RACE, NEWS = 7, 10, 11, 12, 15, 22, 23
AHEAD, UNTIL, LENGTHS, WORD_COUNT = 24, 25, 26, 28
CODE, HERE, OUTPUT = 1, 2, 3
# What a function owns: the words, the learner's lock, how that is taken and freed, the method of its name, what ends a row.
WORDS, LOCKED, ACQUIRE, RELEASE, METHOD, END, OTHERS = range(FIRST, FIRST + 7)


def new_words(lock: Any) -> np.ndarray:
    """The words of a learner of that lock for which nothing is compiled. A final model has no lock, as nothing changes it."""
    words = np.zeros(WORD_COUNT, np.int64)
    words[TYPES_OF_TARGETS:LEARNING] = list(map(id, TARGETS))
    words[[LEARNING, LISTED, READING]] = -1
    words[LOCK] = id(lock)
    return words


def tell(words: np.ndarray, what: int, *found: int) -> None:
    """Let built-in functions use code and what it holds, until the arrays move."""
    words[what + CODE : what + CODE + len(found)] = found
    words[what] = words[MOVES]


@function
def stands(own, words, what):  # type: ignore[no-untyped-def]
    """Whether there is code for the arrays as they are; the lock of a learner in the child of a fork may be another."""
    return word_at(words, what) == word_at(words, MOVES) and word_at(words, LOCK) == word_at(own, LOCKED)


@function
def is_given(last, given):  # type: ignore[no-untyped-def]
    """Whether the state knows of the last row, whose number of columns has 32 bits, as it is."""
    return last == 0 or word_at(last, 0) & 0xFFFFFFFF == given


@function
def learned(words, first, second, y):  # type: ignore[no-untyped-def]
    """The score of a row that was learned; NaN where more is to be done."""
    code, here = word_at(words, LEARNING + CODE), word_at(words, LEARNING + HERE)
    score = ran_row(code, words + 8 * FAILED, here, first, second, y)
    return score if is_given(word_at(words, LAST), word_at(words, GIVEN)) else nan


def learn_one(own, args, count, names):  # type: ignore[no-untyped-def]
    """``Learner.learn_one``."""
    words = word_at(word_at(own, WORDS), DATA)
    y = target_of(word_at(args, 2), words + 8 * TYPES_OF_TARGETS) if count == 3 and names == 0 else nan
    if y != y or not stands(own, words, LEARNING):
        return passed_on(word_at(own, METHOD), args, count, names)
    if take_lock(word_at(own, ACQUIRE)) == 0:
        return 0
    if stands(own, words, LEARNING):
        score = learned(words, word_at(args, 0), word_at(args, 1), y)
        found = new_real(score) if score == score else passed_on(word_at(own, END), args, count, names)
    else:  # another thread has used the learner meanwhile
        found = passed_on(word_at(own, METHOD), args, count, names)
    free_lock(word_at(own, RELEASE))
    return found


@function
def score_read(words, first, second):  # type: ignore[no-untyped-def]
    """The score by the weights of the row's own columns; NaN where it takes another way."""
    race = word_at(words, RACE)
    way = READING + (OUTPUT if race != 0 and not real_at(race, 0) < real_at(race, 1) else 0)
    code = word_at(words, way + CODE)
    if code == 0:
        return nan
    here, one = word_at(words, way + HERE), word_at(words, way + OUTPUT)
    return ran_output(code, words + 8 * UNREAD, here, one, first, second, 1.0)


@function
def scored(own, words, first, place):  # type: ignore[no-untyped-def]
    """The score of a row, NaN where it takes another way; and whether there is no error. The address of the second object is at
    ``place``, 0 for none: it is read anew with the lock, for which other threads may have run."""
    score = nan
    if stands(own, words, LISTED):  # which needs no lock
        here = word_at(words, LISTED + HERE)
        score = ran_score(word_at(words, LISTED + CODE), words + 8 * UNREAD, here, first, word_at(place, 0))
    if score != score and stands(own, words, READING):
        if take_lock(word_at(own, ACQUIRE)) == 0:
            return nan, False
        if stands(own, words, READING) and word_at(place, 0) != 0:
            score = score_read(words, first, word_at(place, 0))
        free_lock(word_at(own, RELEASE))
    return score, True


def predict_one(own, args, count, names):  # type: ignore[no-untyped-def]
    """``Learner.predict_one``."""
    if count == 2 and names == 0:
        words = word_at(word_at(own, WORDS), DATA)
        score, fine = scored(own, words, word_at(args, 0), args + 8)
        if not fine:
            return 0
        if score == score:
            return new_real(score)
    return passed_on(word_at(own, METHOD), args, count, names)


def owned(learner: Any, method: Any, end: Any = None) -> tuple[Any, ...]:
    """What a function owns that learns or scores rows by a learner."""
    lock = learner.lock
    ways = (None, None) if lock is None else (lock.acquire, lock.release)
    return learner.words, lock, *ways, method, end


def built_in_of(text: Callable[..., Any], learner: Any, signature: str, end: Any = None) -> Callable[..., Any]:
    """The built-in function of a learner that stands for its method of the same name."""
    method = getattr(type(learner), text.__name__).__get__(learner)
    return built_in(text, method, signature, owned(learner, method, end))
