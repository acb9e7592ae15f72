"""
# What the weights of digits look like

One weight for each pixel and class. Blue pixels speak for the digit, red ones against it.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from onlinear import OnlineClassifier

X, y = load_digits(return_X_y=True)
model = OnlineClassifier(passes=10, random_state=0).fit(X, y)
figure, places = plt.subplots(2, 5, figsize=(8, 3.6))
for digit, (place, weights) in enumerate(zip(places.flat, model.coef_, strict=True)):
    limit = abs(weights).max()
    place.imshow(weights.reshape(8, 8), cmap="RdBu", vmin=-limit, vmax=limit)
    place.set(title=digit, xticks=[], yticks=[])
plt.show()
