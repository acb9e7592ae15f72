"""
# A world that changes

After row 8,000 two weights change their signs. Averages and steps that shrink hold on to the past; steps of constant
size forget it, and so does a half-life.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlinear import OnlineClassifier

plt.style.use("tableau-colorblind10")

rng = np.random.default_rng(0)
X = rng.normal(size=(16_000, 5))
signs = np.where(np.arange(16_000) < 8_000, 1.0, -1.0)
y = signs * (2.0 * X[:, 0] - X[:, 1]) + 0.5 * X[:, 2] + 0.5 * rng.normal(size=16_000) > 0.0
models = {
    "shrinking steps, uniform average": OnlineClassifier(solver="implicit-sgd,eta=2", average="uniform"),
    "shrinking steps": OnlineClassifier(solver="implicit-sgd,eta=2", average="none"),
    "a half-life of 500 rows": OnlineClassifier(forget=500),
    "constant steps": OnlineClassifier(solver="implicit-sgd,schedule=constant,eta=0.1", average="none"),
}
for name, model in models.items():
    model.partial_fit(X[:200], y[:200], classes=[False, True])
    errors = []
    for first in range(200, 16_000, 200):
        block = slice(first, first + 200)
        errors.append(np.mean(model.predict(X[block]) != y[block]))
        model.partial_fit(X[block], y[block])
    plt.plot(range(200, 16_000, 200), errors, label=name)
plt.xlabel("rows")
plt.ylabel("error in blocks of 200 rows")
plt.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
plt.show()
