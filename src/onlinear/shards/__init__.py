"""Public: rows in pieces, on several cores or machines. A *shard* is a piece of the rows; what is asked of it is a task.

    shards = open_shards("part-*.parquet", target="click")
    fit(OnlineClassifier(penalty="l1=1e-4", tol=1e-3), shards, Local(workers=4))

Tasks are functions of a shard and of what is asked. Their results are sums, which are merged by a tree that the number of
shards alone decides (MATH 20.6): the model is the same byte for byte, whoever ran a task and whenever it was done.
"""

from __future__ import annotations

from onlinear.shards.checkpoints import Keeper
from onlinear.shards.fitting import CorrectedRound, Round, fit, refuse
from onlinear.shards.rotation import advance, rotate
from onlinear.shards.runners import Local, Runner, Tree
from onlinear.shards.scoring import evaluate, predict, predict_to
from onlinear.shards.sources import Blocks, File, Shard, open_shards
from onlinear.shards.tasks import Centre, Job, Looks, Start, Survey, correct, learn, look, survey

__all__ = [
    "Blocks",
    "Centre",
    "CorrectedRound",
    "File",
    "Job",
    "Keeper",
    "Local",
    "Looks",
    "Round",
    "Runner",
    "Shard",
    "Start",
    "Survey",
    "Tree",
    "advance",
    "correct",
    "evaluate",
    "fit",
    "learn",
    "look",
    "open_shards",
    "predict",
    "predict_to",
    "refuse",
    "rotate",
    "survey",
]
