"""Public: fits on a Dask cluster, to a certified optimum, with the same bytes whatever the workers are. Needs the extra ``dask``.

    from dask.distributed import Client
    from onlinear.dask import OnlineClassifier

    model = OnlineClassifier(penalty="l1=1e-4", tol=1e-3, client=Client("tcp://scheduler:8786"))
    model.fit("part-*.parquet", target="click")
    model.to_local().save("clicks.onlinear")

A shard is a file, or a block of rows of a Dask collection. Tasks are those of ``onlinear.shards``, and so is the tree by which their
sums are merged; all that a task needs is part of the graph, so what a lost worker held is made again by Dask.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numba

import onlinear
from onlinear import models
from onlinear.shards import Blocks, Round, fit, open_shards
from onlinear.streams import StreamError
