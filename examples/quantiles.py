"""
# A range instead of a number

The quantile loss has the q-quantile as its minimiser. The noise grows to the right, and so does the range between the
quantiles.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlinear import OnlineRegressor

rng = np.random.default_rng(0)
x = rng.uniform(0.0, 10.0, 5000)
y = 3.0 * x + (1.0 + x) * rng.normal(size=5000)
plt.plot(x[:600], y[:600], ".", color="lightgrey")
for q in (0.05, 0.25, 0.5, 0.75, 0.95):
    model = OnlineRegressor(f"quantile,q={q}", passes=5, random_state=0).fit(x[:, None], y)
    plt.plot([0.0, 10.0], model.predict([[0.0], [10.0]]), label=f"q = {q}")
plt.xlabel("x")
plt.ylabel("y")
plt.legend()
plt.show()
