"""
# A model that measures itself

Every row is predicted before it is learned. The mean loss so far is therefore a loss of unseen rows, and no rows have
to be held out.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification

from onlinear import OnlineClassifier

X, y = make_classification(20_000, 40, n_informative=15, n_classes=5, random_state=0)
blocks = [(X[first : first + 100], y[first : first + 100]) for first in range(0, len(y), 100)]
for loss in ("logistic", "softmax"):
    history = OnlineClassifier(loss).fit(blocks, classes=[0, 1, 2, 3, 4]).history_
    plt.plot([point["rows"] for point in history], [point["error"] for point in history], "o-", label=loss)
plt.xscale("log")
plt.xlabel("rows")
plt.ylabel("share of wrong predictions so far")
plt.legend()
plt.show()
