"""
# A rare class

Three rows in a hundred are of the orange class. The plain model finds few of them; the balanced one finds most, and
calls more of the others wrongly.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlinear import OnlineClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(6000, 2))
rare = (X @ [1.0, 1.0] + 0.8 * rng.normal(size=6000) > 3.0).astype(int)
plt.scatter(*X.T, c=np.where(rare, "C1", "lightgrey"), s=4)
across = np.array([-3.0, 3.5])
for name, weights in (("plain", None), ("balanced", "balanced")):
    model = OnlineClassifier(class_weight=weights, random_state=0).fit(X, rare)
    (a, b), c = model.coef_[0], model.intercept_[0]
    found = model.predict(X)[rare == 1].mean()
    plt.plot(across, -(a * across + c) / b, label=f"{name}: finds {found:.0%}")
plt.xlim(-3.5, 4.0)
plt.ylim(-3.5, 4.0)
plt.xlabel("first column")
plt.ylabel("second column")
plt.legend(loc="lower left")
plt.show()
