"""Where pickles of release 0.1 look for what is in onlinear.models.estimators now."""

from onlinear.models.estimators import OnlineClassifier, OnlineRegressor

__all__ = ["OnlineClassifier", "OnlineRegressor"]
