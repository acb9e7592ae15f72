"""
# A step size that is far too large

An explicit step overshoots where the step size is too large. An implicit one cannot: it looks at the loss where the
step ends.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlinear import Learner

rng = np.random.default_rng(0)
X = rng.normal(size=(2000, 20))
y = X @ rng.normal(size=20) + rng.normal(size=2000)
steps = np.geomspace(1e-3, 0.3, 12)
for solver in ("sgd", "implicit-sgd"):
    losses = [Learner(f"{solver},schedule=constant,eta={eta}", "squared").learn(X, y).progressive_loss for eta in steps]
    plt.plot(steps, losses, "o-", label=solver)
plt.loglog()
plt.ylim(0.3, 1e4)
plt.xlabel("step size")
plt.ylabel("progressive loss")
plt.legend()
plt.show()
