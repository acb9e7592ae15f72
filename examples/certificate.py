"""
# How far from the optimum?

The duality gap bounds the distance to the best objective, without knowing it. More passes bring online methods nearer,
slowly; `tol=` brings a certified optimum.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

from onlinear import OnlineClassifier

X, y = load_breast_cancer(return_X_y=True)
passes = [1, 3, 10, 30, 100]
gaps = [OnlineClassifier(penalty="l2=0.01", passes=k, random_state=0).fit(X, y).duality_gap(X, y) for k in passes]
best = OnlineClassifier(penalty="l2=0.01", tol=1e-6).fit(X, y)
plt.plot(passes, gaps, "o-", label="online passes")
plt.plot(best.n_passes_, best.dual_gap_, "*", markersize=14, label="tol=1e-6")
plt.loglog()
plt.xlabel("passes over the rows")
plt.ylabel("relative duality gap")
plt.legend()
plt.show()
