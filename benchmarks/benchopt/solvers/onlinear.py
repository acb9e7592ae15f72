"""onlinear: passes of an online method, or passes to a certified optimum."""

import warnings

from benchopt import BaseSolver, safe_import_context

with safe_import_context() as import_ctx:
    from sklearn.exceptions import ConvergenceWarning

    from onlinear import OnlineClassifier, QualityWarning


class Solver(BaseSolver):
    """OnlineClassifier without an intercept, on columns as they are; the sum over rows is n times its mean."""

    name = "onlinear"
    sampling_strategy = "iteration"
    parameters = {"method": ["passes", "certified"]}  # noqa: RUF012 (benchopt's way to name settings)
    requirements = ["onlinear"]  # noqa: RUF012

    def set_objective(self, X, y, lmbd, fit_intercept=False):
        self.X, self.y, self.l1 = X, y, lmbd / len(y)
        self.model = None
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        warnings.filterwarnings("ignore", category=QualityWarning)
        self.run(30)  # compiles what runs of any length need

    def run(self, n_iter):
        extra = {"tol": 1e-12, "max_passes": max(n_iter, 1)} if self.method == "certified" else {"passes": max(n_iter, 1)}
        self.model = OnlineClassifier(l1=self.l1, scale="none", fit_intercept=False, random_state=0, **extra)
        self.model.fit(self.X, self.y)

    def get_result(self):
        return {"beta": self.model.coef_.ravel()}
