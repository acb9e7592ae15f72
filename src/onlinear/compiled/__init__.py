"""The bridge to Numba: the only room that knows it.

    methods.py        parts are ``NamedTuple`` classes whose methods compiled kernels call
    loss_address.py   a loss enters a kernel by address
    lanes.py          *lanes* are several numbers at once: here entries of a row
    outputs.py        lanes that are outputs
    lines.py          *lines* are sixty-four bytes of numbers at once
    objects.py        rows as Python has them: arrays, and dicts of numbers
    held.py           ``Held`` arguments cost nothing to pass again and again
    calls.py          methods of objects that are machine code
    cache.py          machine code is kept on disk

Numba takes long to import. The modules of texts do without it; ``compiler.py`` imports it, and the modules named ``*_code.py``,
when a kernel is first called.

``adopt`` is public: it lets kernels call the methods of a part of your own. The rest is not.
"""

from __future__ import annotations

from onlinear.compiled.held import Growing, Held, Lengths, borrowed, first_number, load, opened, opened_at, store
from onlinear.compiled.home import COMPILED, is_ours
from onlinear.compiled.lanes import (
    LANES,
    WIDTH,
    added,
    at_column,
    empty,
    fetch,
    first_of,
    four,
    gather,
    lane,
    nothing,
    numbers,
    put,
    put_back,
    room,
    rooms,
    taken,
    total,
    totals,
    untouched,
    where,
    within,
)
from onlinear.compiled.lines import LINE, ask, exchange, non_zeros, turned
from onlinear.compiled.loss_address import BoundLoss, bind_loss, take_lanes, with_fields_at
from onlinear.compiled.methods import adopt, composed, function, kept_function, kernel, lane_by_lane
from onlinear.compiled.outputs import (
    chosen,
    fetch_lanes,
    gather_output,
    in_lanes,
    laid_out,
    lanes,
    lanes_apart,
    lanes_like,
    no_lanes,
    no_row,
    number_at,
    of_output,
    places_of,
    put_apart,
    put_back_output,
    put_each,
    put_lanes,
    put_number,
    put_row,
    row_of,
    same_lanes,
    some,
    taken_output,
    value_at,
)
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

__all__ = [
    "COMPILED",
    "LANES",
    "LINE",
    "MARKED",
    "WIDTH",
    "ZEROS",
    "BoundLoss",
    "Growing",
    "Held",
    "Lengths",
    "added",
    "adopt",
    "ask",
    "at_column",
    "bind_loss",
    "borrowed",
    "chosen",
    "composed",
    "count_marks",
    "empty",
    "exchange",
    "fetch",
    "fetch_lanes",
    "first_mark",
    "first_number",
    "first_of",
    "four",
    "function",
    "gather",
    "gather_output",
    "in_lanes",
    "is_ours",
    "kept_function",
    "kernel",
    "laid_out",
    "lane",
    "lane_by_lane",
    "lanes",
    "lanes_apart",
    "lanes_like",
    "load",
    "marks_of",
    "marks_up_to",
    "no_lanes",
    "no_row",
    "non_zeros",
    "nothing",
    "number_at",
    "numbers",
    "of_output",
    "opened",
    "opened_at",
    "places_of",
    "put",
    "put_apart",
    "put_back",
    "put_back_output",
    "put_each",
    "put_lanes",
    "put_number",
    "put_row",
    "room",
    "rooms",
    "row_of",
    "same_lanes",
    "some",
    "spelled_words",
    "store",
    "take_lanes",
    "taken",
    "taken_output",
    "total",
    "totals",
    "turned",
    "untouched",
    "value_at",
    "where",
    "with_fields_at",
    "within",
    "word_at",
]
