"""
# Are the probabilities right?

Of the rows with a predicted probability near 0.3, three in ten should be of the class. The closer to the diagonal, the
better.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import calibration_curve

from onlinear import OnlineClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(40_000, 30)) * rng.lognormal(0.0, 1.0, 30)
score = X[:, :6] @ rng.normal(size=6) - 1.0
y = (rng.random(40_000) < 1.0 / (1.0 + np.exp(-score))).astype(int)
for passes in (1, 5):
    model = OnlineClassifier(passes=passes, random_state=0).fit(X[:20_000], y[:20_000])
    came_true, predicted = calibration_curve(y[20_000:], model.predict_proba(X[20_000:])[:, 1], n_bins=10)
    plt.plot(predicted, came_true, "o-", label=f"passes={passes}")
plt.plot([0, 1], [0, 1], ":", color="grey")
plt.xlabel("predicted probability")
plt.ylabel("share that came true")
plt.legend()
plt.show()
