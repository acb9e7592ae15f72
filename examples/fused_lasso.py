"""
# Weights in steps

Neighbouring columns, such as the bands of a spectrum, often have equal weights. The total variation penalty makes them
so.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlinear import Learner

rng = np.random.default_rng(0)
truth = np.repeat([0.0, 2.0, -1.0, 0.5], 15)
X = rng.normal(size=(1500, 60))
y = X @ truth + 3.0 * rng.normal(size=1500)
plt.step(range(60), truth, "k", label="truth", where="mid")
for penalty in ("none", "tv=0.05"):
    learner = Learner("comid,eta=0.03", "squared", penalty, n_features=60)
    for _ in range(3):
        learner.learn(X, y)
    plt.plot(learner.weights(), "o-", markersize=3, label=penalty)
plt.xlabel("column")
plt.ylabel("weight")
plt.legend()
plt.show()
