"""Scores of rows by weights that lie side by side, and what a penalty says of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from onlinear.rows import Rows, Source, dot_rows


def predictors_of(learner: Any) -> tuple[np.ndarray, np.ndarray]:
    """The weights (d, K) and the intercepts (K,) by which a learner, or what predicts of one, predicts."""
    weights = learner.weights(average=True).reshape(learner.size, learner.n_outputs)
    return weights, np.atleast_1d(np.asarray(learner.intercept(average=True), np.float64))


def score_rows(source: Source, bias: float, weights: np.ndarray) -> np.ndarray:
    """<w, x> + b of each row; columns beyond the weights have weight 0."""
    out = np.empty(source.n)
    for which, block in source.blocks():
        if source.size <= len(weights):
            out[which] = score_block(block, weights.take(block.indices), bias)
            continue
        known = block.indices < len(weights)
        picked = weights[np.where(known, block.indices, 0)] if len(weights) else np.zeros(len(known))
        out[which] = score_block(block, np.where(known, picked, 0.0), bias)
    return out


def score_block(block: Rows, weights: np.ndarray, bias: float) -> np.ndarray:
    """<w, x> + b of each row, from the weight of each entry."""
    scores = np.full(block.count, bias)
    dot_rows(block, weights, scores)
    return scores


def penalty_value(penalty: Any, w: np.ndarray) -> float:
    """r(w), also of a penalty that takes one weight at a time."""
    try:
        return float(np.sum(penalty.value(w)))
    except (TypeError, ValueError):
        return float(sum(penalty.value(v) for v in w))
