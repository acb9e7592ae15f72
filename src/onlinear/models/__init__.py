"""Models around a learner: estimators, predict-only models, penalty paths, and their evaluation.

Public through ``onlinear``; the modules are not."""
