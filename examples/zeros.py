"""
# Which method keeps the most zeros?

All have the same penalty. Dual averaging (`rda`) looks at the mean of all gradients, so a column of noise stays at 0.
Mirror descent (`comid`) looks at the last ones.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlinear import Learner

plt.style.use("tableau-colorblind10")

rng = np.random.default_rng(0)
X = rng.normal(size=(5000, 300))
y = np.sign(X[:, :10].sum(axis=1) + rng.normal(size=5000))
for solver in ("comid,eta=0.5", "fiol,eta=0.5", "ftrl,eta=0.5", "rda,gamma=1"):
    learner, counts = Learner(solver, "logistic", "l1=0.02"), []
    for first in range(0, 5000, 100):
        learner.learn(X[first : first + 100], y[first : first + 100])
        counts.append(np.count_nonzero(learner.weights()))
    plt.plot(range(100, 5001, 100), counts, label=solver)
plt.axhline(10, color="black", linestyle=":", label="columns that matter")
plt.xlabel("rows")
plt.ylabel("non-zero weights")
plt.legend()
plt.show()
