"""What the parsers of text look for, and how far around an entry they read."""

from __future__ import annotations

import numpy as np

from onlinear.compiled import MARKED

NEWLINE, RETURN, SPACE, TAB, COLON = (ord(c) for c in "\n\r \t:")
BEHIND = np.uint64(MARKED)  # the place of a mark that there is not
SEEN = MARKED + 16  # bytes that an entry is read in
AHEAD = np.uint64(16)  # bytes before it that are read too
