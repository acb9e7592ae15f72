"""Sparse rows with a few columns that matter."""

import numpy as np
import scipy.sparse as sp

from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Rows of normal numbers; ``density`` of them are not 0."""

    name = "simulated"
    parameters = {"n_samples, n_features, density": [(2000, 500, 0.1)]}  # noqa: RUF012 (benchopt's way to name settings)

    def get_data(self):
        rng = np.random.default_rng(0)
        X = sp.random(
            self.n_samples, self.n_features, self.density, format="csr", random_state=rng, data_rvs=rng.standard_normal
        )
        truth = np.zeros(self.n_features)
        truth[: self.n_features // 20] = rng.normal(size=self.n_features // 20)
        y = np.sign(X @ truth + 0.3 * rng.normal(size=self.n_samples))
        return {"X": X, "y": y}
