"""
# How many bits for hashed names?

Text is hashed to 2^bits columns. Few bits save memory, and let categories collide. The model can do with fewer than one
expects.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from onlinear import OnlineClassifier, streams

rng = np.random.default_rng(0)
users, sites = rng.integers(0, 3000, 20_000), rng.integers(0, 200, 20_000)
score = rng.normal(size=3000)[users] + rng.normal(size=200)[sites]
frame = pd.DataFrame({"user": users.astype(str), "site": sites.astype(str)})
frame["click"] = (score + rng.logistic(size=20_000) > 0.0).astype(int)
bits = [4, 6, 8, 10, 12, 14, 16]
losses = []
for count in bits:
    model = OnlineClassifier().fit(streams.open(frame, target="click", hash_bits=count))
    losses.append(model.history_[-1]["loss"])
plt.plot(bits, losses, "o-")
plt.xlabel("hash_bits")
plt.ylabel("progressive log loss")
plt.show()
