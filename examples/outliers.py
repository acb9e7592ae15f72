"""
# Outliers

One row in ten is far away. The squared loss follows these rows; the Huber loss and the absolute loss do not.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlinear import OnlineRegressor

rng = np.random.default_rng(0)
x = rng.uniform(0.0, 10.0, 2000)
y = 2.0 * x + rng.normal(size=2000)
far = rng.random(2000) < 0.1
y[far] += 60.0
plt.plot(x[:400], y[:400], ".", color="lightgrey")
for loss in ("squared", "huber,delta=1", "absolute"):
    model = OnlineRegressor(loss, passes=5, random_state=0).fit(x[:, None], y)
    plt.plot([0.0, 10.0], model.predict([[0.0], [10.0]]), label=loss)
plt.xlabel("x")
plt.ylabel("y")
plt.legend()
plt.show()
