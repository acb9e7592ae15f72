"""
# The losses of classifiers

What a score costs, when the class is +1. The hinge losses ask for a margin of 1 and no more. The logistic loss always
asks for more.
"""

import matplotlib.pyplot as plt
import numpy as np

from onlinear.losses import Exponential, Hinge, Logistic, ModifiedHuber, SquaredHinge

plt.style.use("tableau-colorblind10")

scores = np.linspace(-2.0, 3.0, 200)
for loss in (Hinge(), SquaredHinge(), Logistic(), ModifiedHuber(), Exponential()):
    plt.plot(scores, [loss.value(score, 1.0) for score in scores], label=type(loss).__name__)
plt.ylim(0.0, 5.0)
plt.xlabel("score")
plt.ylabel("loss")
plt.legend()
plt.show()
