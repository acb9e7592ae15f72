"""
# Learn from blocks as they come

The layer below the estimators: a method of its paper learns blocks of a stream, and its progressive loss is watched.
"""

from onlinear import Learner, streams

learner = Learner("fiol,eta=5", "logistic", "l1,l1=1e-3", scale="rms", fit_intercept=True)
for epoch in range(3):
    for block in streams.Shuffled(streams.open("breast-cancer"), window=100, seed=epoch):
        learner.learn(block.X, 2.0 * block.y - 1.0)
        print(f"{learner.t:6} rows   progressive loss {learner.progressive_loss:.4f}")
