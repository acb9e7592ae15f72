"""``learn_one``, ``predict_one`` and ``predict_proba_one`` of an estimator as built-in functions, for dicts of numbers.

They stand for the methods where a model has one output, and its rows the names of the row before, in their order: as
``learner.row_calls`` for rows of columns and values.
"""

from __future__ import annotations

from functools import partial
from math import nan
from typing import Any

import numpy as np

from onlinear.compiled import function, is_ours
from onlinear.compiled.calls import (
    DATA,
    KIND,
    TAKES_CALLS,
    built_in,
    entry_of,
    free_lock,
    new_pair,
    new_real,
    passed_on,
    real_of,
    same,
    set_whole,
    take_lock,
    word_at,
)
from onlinear.compiled.held import write_word
from onlinear.compiled.numpy_tanh import tanh_address, tanh_at
from onlinear.compiled.objects import PLACE, SHAPE
from onlinear.learner.row_calls import (
    ACQUIRE,
    AHEAD,
    END,
    LEARNING,
    METHOD,
    NEWS,
    OTHERS,
    RELEASE,
    WORDS,
    learned,
    owned,
    scored,
    stands,
)
from onlinear.losses import Logistic

NAMES = frozenset({"learn_one", "predict_one", "predict_proba_one"})  # attributes that copies do not have
# Of the words of a ``QuickRows``: the names of the row that was learned and scored last, 0 where there are none; the news of
# the learner that the model has followed; the types of labels that are looked up; where NumPy's tanh is.
LEARNED, SCORED, FOLLOWED, TANH, TYPES_OF_LABELS = range(5)
LABELS = (bool, int, str, float, np.bool_, np.int64)
WORD_COUNT = TYPES_OF_LABELS + len(LABELS)
# What a function owns besides: the words, the attributes of the model, what four of them must be, the model, the targets of
# the classes, the name of the number of columns, and these.
OWN, ATTRIBUTES, PARTS, MODEL, TARGETS, COLUMNS, NO, YES = (OTHERS + k for k in (0, 1, 2, 10, 11, 12, 13, 14))
CHECKED, COUNT = ("learner_", "encoding_", "classes_", "class_weight"), "n_features_in_"


def new_words() -> np.ndarray:
    """The words of a ``QuickRows`` that has seen no row."""
    words = np.zeros(WORD_COUNT, np.int64)
    words[FOLLOWED], words[TANH], words[TYPES_OF_LABELS:] = -1, tanh_address(), list(map(id, LABELS))
    return words


@function
def serves(own, parts):  # type: ignore[no-untyped-def]
    """Whether the model still has the learner, the numbering and, as further parts, the classes and their weights."""
    attributes = word_at(own, ATTRIBUTES)
    for k in range(PARTS, PARTS + 2 * parts, 2):
        if entry_of(attributes, word_at(own, k)) != word_at(own, k + 1):
            return False
    return True


@function
def is_row(own, args, count, names, target):  # type: ignore[no-untyped-def]
    """Whether the arguments are a row and a target, and a weight of 1 if any, by the kind of a float."""
    if names != 0 or count < 2 or count > 3 or target != target:
        return False
    weight = word_at(args, 2) if count == 3 else 0
    return weight == 0 or (word_at(weight, KIND) == word_at(own, TYPES_OF_LABELS + 3) and real_of(weight) == 1.0)


@function
def followed(own, words, learner):  # type: ignore[no-untyped-def]
    """Let the model know as many columns as the learner, whose code has given names columns, and look names up that have some
    now; whether there was memory."""
    columns, scored = word_at(learner, AHEAD), word_at(words, SCORED)
    if columns > 0 and set_whole(word_at(own, ATTRIBUTES), word_at(own, COLUMNS), columns) != 0:
        return False
    if scored != 0 and word_at(word_at(scored, DATA), word_at(word_at(scored, SHAPE // 8), 0) + PLACE) == 0:
        write_word(words + 8 * SCORED, 0)
    write_word(words + 8 * FOLLOWED, word_at(learner, NEWS))
    return True


@function
def learn(own, words, args, count, names, target):  # type: ignore[no-untyped-def]
    """Learn a row, and give the model."""
    learner = word_at(word_at(own, WORDS), DATA)
    if not stands(own, learner, LEARNING) or not is_row(words, args, count, names, target):
        return passed_on(word_at(own, METHOD), args, count, names)
    if take_lock(word_at(own, ACQUIRE)) == 0:
        return 0
    last = word_at(words, LEARNED)
    if last != 0 and stands(own, learner, LEARNING) and word_at(learner, NEWS) == word_at(words, FOLLOWED):
        score = learned(learner, word_at(args, 0), last, target)
        if score != score:
            found = passed_on(word_at(own, END), args, count, names)
        elif word_at(learner, NEWS) == word_at(words, FOLLOWED) or followed(own, words, learner):
            found = same(word_at(own, MODEL))
        else:
            found = 0
    else:
        found = passed_on(word_at(own, METHOD), args, count, names)
    free_lock(word_at(own, RELEASE))
    return found


def learn_class(own, args, count, names):  # type: ignore[no-untyped-def]
    """``OnlineClassifier.learn_one``."""
    words, target = word_at(word_at(own, OWN), DATA), nan
    if count >= 2 and serves(own, 4):
        label = word_at(args, 1)
        kind, known = word_at(label, KIND), False
        for k in range(TYPES_OF_LABELS, WORD_COUNT):
            known = known or kind == word_at(words, k)
        entry = entry_of(word_at(own, TARGETS), label) if known else 0
        if entry != 0:
            target = real_of(entry)
    return learn(own, words, args, count, names, target)


def learn_number(own, args, count, names):  # type: ignore[no-untyped-def]
    """``OnlineRegressor.learn_one``."""
    words, target = word_at(word_at(own, OWN), DATA), nan
    if count >= 2 and serves(own, 2):
        number = word_at(args, 1)
        if word_at(number, KIND) == word_at(words, TYPES_OF_LABELS + 3):
            target = real_of(number)
    return learn(own, words, args, count, names, target)


@function
def score_of(own, words, args, count, names, parts):  # type: ignore[no-untyped-def]
    """The score of the row that is the one argument, NaN where it takes another way; and whether there is no error."""
    if count != 1 or names != 0 or word_at(words, SCORED) == 0 or not serves(own, parts):
        return nan, True
    return scored(own, word_at(word_at(own, WORDS), DATA), word_at(args, 0), words + 8 * SCORED)


def predict_class(own, args, count, names):  # type: ignore[no-untyped-def]
    """``OnlineClassifier.predict_one``."""
    score, fine = score_of(own, word_at(word_at(own, OWN), DATA), args, count, names, 3)
    if not fine:
        return 0
    if score != score:
        return passed_on(word_at(own, METHOD), args, count, names)
    return same(word_at(own, YES if score > 0.0 else NO))


def predict_number(own, args, count, names):  # type: ignore[no-untyped-def]
    """``OnlineRegressor.predict_one``."""
    score, fine = score_of(own, word_at(word_at(own, OWN), DATA), args, count, names, 2)
    if not fine:
        return 0
    return new_real(score) if score == score else passed_on(word_at(own, METHOD), args, count, names)


def chances(own, args, count, names):  # type: ignore[no-untyped-def]
    """``OnlineClassifier.predict_proba_one`` by ``Logistic.probability``."""
    words = word_at(word_at(own, OWN), DATA)
    score, fine = score_of(own, words, args, count, names, 3)
    if not fine:
        return 0
    if score != score:
        return passed_on(word_at(own, METHOD), args, count, names)
    chance = 0.5 * (1.0 + tanh_at(word_at(words, TANH), 0.5 * score))
    return new_pair(word_at(own, NO), 1.0 - chance, word_at(own, YES), chance)


_ROW, _ROW_OR_COLUMNS = "row, y, weight=1.0", "indices, values=None"
FOR_CLASSES = ((learn_class, "learn_one", f"{_ROW}, classes=None"), (predict_class, "predict_one", _ROW_OR_COLUMNS))
FOR_CHANCES = (chances, "predict_proba_one", _ROW_OR_COLUMNS)
FOR_NUMBERS = ((learn_number, "learn_one", _ROW), (predict_number, "predict_one", _ROW_OR_COLUMNS))


def take_out(model: Any) -> None:
    """Let the methods of a model's class be found again, where built-in functions took their place."""
    for name in NAMES:
        vars(model).pop(name, None)  # another thread may have done it


def build_in(model: Any, quick: Any) -> None:
    """Let built-in functions take the place of a model's methods for single rows, by what is held for its dicts."""
    kind, attributes = type(model), vars(model)
    take_out(model)
    if not TAKES_CALLS or not is_ours(kind.__module__) or not quick.alone:
        return
    texts: list[Any] = list(FOR_CLASSES if quick.labels else FOR_NUMBERS)[quick.final :]
    if not quick.labels and (quick.mean is not None or model.columns_ is not None):  # its predictions are not its scores
        texts.pop()
    if quick.labels and type(quick.learner.loss) is Logistic and quick.words[TANH]:
        texts.append(FOR_CHANCES)
    parts = [part for name in CHECKED for part in (name, attributes.get(name))]
    besides = quick.words, attributes, *parts, model, quick.targets, COUNT, *(quick.labels or (None, None))
    for text, name, signature in texts:
        method = getattr(kind, name).__get__(model)
        own = *owned(quick.learner, method, partial(quick.end, model)), *besides
        attributes[name] = built_in(text, method, signature, own)
