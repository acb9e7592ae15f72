"""Pickles and deep copies of what other threads train: all their parts are of one moment."""

from __future__ import annotations

from typing import Any


class Moment:
    """An object as it was, in the state of what holds it: pickled or copied deeply it becomes the object."""

    def __init__(self, *made: Any) -> None:
        self._made = made

    def __reduce__(self) -> tuple[Any, ...]:
        return self._made

    def made(self) -> Any:
        """The object, for those who read the attributes of what they copy and call no ``__reduce__``, as skops does."""
        make, args, *state = self._made
        found = make(*args)
        for attributes in state:
            found.__setstate__(attributes)
        return found


def as_made(value: Any) -> Any:
    """What a moment becomes; all else is as it is."""
    return value.made() if isinstance(value, Moment) else value


def moment_of(model: Any) -> Moment:
    """A model as it is."""
    return Moment(_empty, (type(model),), model.__getstate__())


def _empty(cls: type) -> Any:
    return object.__new__(cls)


def at_rest(state: dict[str, Any], learner: Any) -> dict[str, Any]:
    """The attributes of a model as they are while nobody changes its learner, none of which changes later."""
    followed = {"n_features_in_": max(1, learner.size)} if "n_features_in_" in state else {}
    held = {name: _copied(state[name]) for name in ("encoding_", "history_") if name in state}
    return state | followed | held | {"learner_": Moment(*learner.__reduce__())}


def _copied(value: Any) -> Any:
    """Lists and dicts of plain values, anew."""
    if isinstance(value, dict):
        return {key: _copied(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_copied(part) if isinstance(part, (dict, list)) else part for part in value]
    return value
