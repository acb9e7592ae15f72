"""
# The average of the weights

The weights of single steps wander around the optimum. Their average comes to rest near it.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlinear import Learner

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 2))
y = X @ [1.0, -1.0] + 2.0 * rng.normal(size=3000)
learner = Learner("sgd,schedule=constant,eta=0.05", "squared", average="uniform")
last, mean = [], []
for first in range(0, 3000, 10):
    learner.learn(X[first : first + 10], y[first : first + 10])
    last.append(learner.weights(average=False))
    mean.append(learner.weights(average=True))
plt.plot(*np.transpose(last), color="lightgrey", label="weights")
plt.plot(*np.transpose(mean), "C0", label="their average")
plt.plot(1.0, -1.0, "C3*", markersize=14, label="the truth")
plt.xlabel("first weight")
plt.ylabel("second weight")
plt.legend()
plt.show()
