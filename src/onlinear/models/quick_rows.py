"""Single rows as dicts of numbers, each by one compiled call."""

from __future__ import annotations

from collections.abc import Mapping
from threading import RLock
from typing import Any

from onlinear.compiled.objects import Names
from onlinear.compiled.uninterrupted import uninterrupted
from onlinear.models import dict_calls
from onlinear.models.dict_calls import FOLLOWED, LEARNED, SCORED
from onlinear.models.predictor import Final
from onlinear.streams.dict_rows import NamedRow, TableRow


class QuickRows:
    """Learns and scores dicts of numbers, of names in an order that came before, by one compiled call each.

    It is made for one learner, one numbering of columns, one list of classes and their weights, and serves a model as long as
    that has these. ``targets``: what rows of a class are learned as, where they have no weight of their own.
    """

    def __init__(self, model: Any, reader: NamedRow | TableRow, targets: Mapping[Any, Any]) -> None:
        self.learner, self.encoding, self.classes = model.learner_, model.encoding_, vars(model).get("classes_")
        self.class_weight = vars(model).get("class_weight")
        self.targets, self.labels = targets, [] if self.classes is None else self.classes.tolist()
        self.alone, loss = self.learner.n_outputs == 1, self.learner.loss
        self.final = isinstance(self.learner, Final)  # which learns no row
        self.mean, self.probability = getattr(loss, "mean", None), getattr(loss, "probability", None)
        self._reader = reader
        self._learn_compiled, self._score_compiled = getattr(self.learner, "learn_compiled", None), self.learner.score_compiled
        self._learned: Any = None  # the names of the row that was learned last
        self._scored: Any = None
        self.words = dict_calls.new_words()
        self._lock = RLock()  # of who writes the words of names

    def serves(self, model: Any) -> bool:
        """Whether the model still has the learner, the numbering, the classes and their weights for which this was made."""
        return (
            self.learner is model.learner_
            and self.encoding is model.encoding_
            and (self.classes is None or (self.classes is model.classes_ and self.class_weight is model.class_weight))
        )

    def learn(self, model: Any, row: Any, target: Any) -> bool:
        """Learn a row; False, and nothing is learned, for one that needs ``learn_row``."""
        learn = self._learn_compiled
        if learn is None or not self.serves(model):
            return False
        last = self._learned
        if last is None or learn(row, last, target) is None:
            with uninterrupted():
                if not self._learn_other(row, last, target):
                    return False
        self._follow(model)
        return True

    def _learn_other(self, row: Any, last: Any, target: Any) -> bool:
        """``learn`` for a row of other names than the last one."""
        names, known = self._reader.names_held(row, True), self._reader.count
        if names is None or names is last or self._learn_compiled(row, names, target) is None:  # type: ignore[misc]
            return False
        if last is None or self._reader.count == known:
            self._hold_learned(names)
        else:
            names.book.note(row)  # rows to come may have its order
        return True

    def _hold_learned(self, names: Names) -> None:
        with self._lock:  # so that the word is 0 or the address of what is held
            self.words[LEARNED] = 0
            self._learned = names
            self.words[LEARNED] = id(names)

    def _follow(self, model: Any) -> None:
        """Let the model know as many columns as the learner, and look names up that have columns now."""
        news = self.learner.news
        if news != self.words[FOLLOWED]:
            model.follow_columns()
            self.forget_scored()
            self.words[FOLLOWED] = news  # last: then no other thread needs to

    def end(self, model: Any, row: Any, y: Any, weight: float = 1.0) -> Any:
        """End a row for which a built-in function, which has the lock, has run the code, which gave no score; the model."""
        target = self.targets[y] if self.labels else y
        if self.learner.end_compiled(row, self._learned, target) is None:
            return type(model).learn_one(model, row, y, weight)
        self._follow(model)
        return model

    def forget_scored(self) -> None:
        """Forget the names of the row that was scored last: some may have columns now."""
        scored = self._scored
        if scored is not None and not scored.looks_up:
            with self._lock:
                self.words[SCORED] = 0
                self._scored = None

    def score(self, model: Any, row: Any) -> Any:
        """The score as ``predict`` gives it, a float or (K,); None for a row that needs ``score_dict``."""
        if not self.serves(model):
            return None
        last = self._scored if self.words[SCORED] else None  # which compiled code lets go of where names come
        found = None if last is None else self._score_compiled(row, last)
        if found is None:
            known, names = self._reader.count, self._reader.names_held(row, False)
            if names is not None and names is not last:
                with self._lock:
                    self.words[SCORED] = 0
                    self._scored = names
                    self.words[SCORED] = id(names)
                if self._reader.count != known:  # by another thread
                    self.forget_scored()
                found = self._score_compiled(row, names)
        return found
