"""
# How strong should the penalty be?

`PenaltyPath` trains a model for each penalty, all in one pass. A strong L1 penalty keeps few weights; the progressive
loss says which strength predicts best.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlinear import OnlineClassifier, PenaltyPath

rng = np.random.default_rng(0)
X = rng.normal(size=(4000, 200))
y = X[:, :10].sum(axis=1) + 2.0 * rng.normal(size=4000) > 0.0
strengths = np.geomspace(1e-5, 0.3, 24)
path = PenaltyPath(OnlineClassifier(random_state=0), strengths).fit(X, y)

figure, losses = plt.subplots()
losses.plot(strengths, path.losses_, "C0o-")
losses.axvline(strengths[path.best_index_], color="grey", linestyle=":")
losses.set(xscale="log", xlabel="l1", ylabel="progressive loss (blue)")
counts = losses.twinx()
counts.plot(strengths, path.nonzeros_, "C1s-")
counts.set_ylabel("non-zero weights (orange)")
plt.show()
