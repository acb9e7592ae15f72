"""scikit-learn estimators: labels, classes, passes and shuffling in front of ``Learner``, which does the learning.

    minimise  mean_i s_i l(<w, x_i> + b, y_i) + r(w),     s_i = sample weight times class weight

Several classes are joined by one loss, or trained one against the rest, all in one pass over the rows. ``partial_fit`` takes
the rows in the order given; ``fit`` may shuffle them, and equals ``partial_fit`` over the permuted rows of all passes. Both
also take a stream of rows (``onlinear.streams``), or any iterable of blocks (X, y) or (X, y, weight), whose rows they learn in
its order.
"""

from __future__ import annotations

import os
from typing import Any

from onlinear.models.classifier import OnlineClassifier
from onlinear.models.loading import load as load_as
from onlinear.models.regressor import OnlineRegressor

__all__ = ["ESTIMATORS", "OnlineClassifier", "OnlineRegressor", "load"]

ESTIMATORS: dict[str, Any] = {"classifier": OnlineClassifier, "regressor": OnlineRegressor}


def load(path: str | os.PathLike[str], **parts: Any) -> Any:
    """The model in a model file.

    Parameters
    ----------
    path : str or path-like
        The file, as ``save`` or ``onlinear train`` wrote it. A checkpoint gives the model as it stood.
    **parts
        User-defined parts of the model, by role: ``load(path, loss=MyLoss())``. A file does not hold their code.

    Returns
    -------
    OnlineClassifier, OnlineRegressor or Learner
        A model that predicts the same, and continues exactly as the one that was saved.

    Raises
    ------
    FileNotFoundError
        Where there is no such file.
    ModelFileError
        For a file that is no model file of a version that this release reads, or that is damaged, and for a path of penalties,
        which ``PenaltyPath.load`` reads.
    ValueError
        For a part that is not the model's, or a user-defined part that is missing.

    Examples
    --------
    >>> from onlinear import OnlineClassifier, load
    >>> from tempfile import mkdtemp
    >>> path = f"{mkdtemp()}/model.onlinear"
    >>> OnlineClassifier().partial_fit([[1.0], [2.0]], [0, 1], classes=[0, 1]).save(path)
    >>> load(path).t_
    2
    """
    return load_as(path, ESTIMATORS, **parts)
