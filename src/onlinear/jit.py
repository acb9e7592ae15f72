"""Where parts written for release 0.1 find ``adopt``."""

from onlinear.compiled import adopt

__all__ = ["adopt"]
