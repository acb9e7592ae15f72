"""L1-regularised logistic regression, in the terms of benchmark_logreg_l1."""

import numpy as np

from benchopt import BaseObjective


class Objective(BaseObjective):
    """sum_i log(1 + exp(-y_i <w, x_i>)) + lmbd |w|_1."""

    name = "L1 logistic regression"
    min_benchopt_version = "1.6"
    parameters = {"reg": [0.1, 0.01]}  # noqa: RUF012 (benchopt's way to name settings)

    def set_data(self, X, y):
        self.X, self.y = X, y
        self.lmbd = self.reg * np.max(np.abs(X.T @ y)) / 2.0  # above reg = 1 all weights are 0

    def evaluate_result(self, beta):
        margins = self.y * (self.X @ beta)
        return {"value": np.sum(np.logaddexp(0.0, -margins)) + self.lmbd * np.sum(np.abs(beta))}

    def get_one_result(self):
        return {"beta": np.zeros(self.X.shape[1])}

    def get_objective(self):
        return {"X": self.X, "y": self.y, "lmbd": self.lmbd}
