"""scikit-learn's liblinear and saga."""

import warnings

from benchopt import BaseSolver, safe_import_context

with safe_import_context() as import_ctx:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression


class Solver(BaseSolver):
    """LogisticRegression; C = 1 / lmbd."""

    name = "scikit-learn"
    sampling_strategy = "iteration"
    parameters = {"solver": ["liblinear", "saga"]}  # noqa: RUF012 (benchopt's way to name settings)
    requirements = ["scikit-learn"]  # noqa: RUF012

    def set_objective(self, X, y, lmbd, fit_intercept=False):
        self.X, self.y = X, y
        self.model = LogisticRegression(
            C=1.0 / lmbd, l1_ratio=1.0, solver=self.solver, fit_intercept=False, tol=1e-12, random_state=0
        )
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)

    def run(self, n_iter):
        self.model.set_params(max_iter=max(n_iter, 1)).fit(self.X, self.y)

    def get_result(self):
        return {"beta": self.model.coef_.ravel()}
