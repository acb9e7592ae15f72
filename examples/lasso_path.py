"""
# Weights along a path of optima

With `tol`, training ends at a certified optimum. Each line is a weight; one after the other leaves 0 as the L1 penalty
falls.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from onlinear import OnlineRegressor

X, y = load_diabetes(return_X_y=True)
y = (y - y.mean()) / y.std()
strengths = np.geomspace(0.5, 0.001, 30)
model = OnlineRegressor(tol=1e-6, warm_start=True)
weights = [model.set_params(penalty=f"l1={l1}").fit(X, y).coef_.copy() for l1 in strengths]

plt.plot(strengths, weights)
plt.gca().invert_xaxis()
plt.xscale("log")
plt.xlabel("l1")
plt.ylabel("weight")
plt.show()
