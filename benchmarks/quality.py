"""One pass of every solver family over real data, through the real command, beside scikit-learn and LIBLINEAR.

    python benchmarks/quality.py --data FOLDER [--sets a9a,rcv1-ccat,mnist,breast-cancer] [--json FILE]

FOLDER has the layout of ONLINEAR_DATA (svmlight files under the set's name; MNIST as idx files). Rows are put in a seeded
random order and written as svmlight text to a temporary folder; each family is trained there by `onlinear train` in a process
of its own and judged on the test rows by `onlinear predict`. Settings are the families' own, chosen once and the same for all
sets. The peers get the same rows; LIBLINEAR (scikit-learn's) runs to its own stop: a mark, not a one-pass method.
"""

from __future__ import annotations

import gzip
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_breast_cancer, load_svmlight_files
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsRestClassifier

import onlinear
from options import parser_of

Data = tuple[sp.csr_matrix, np.ndarray, sp.csr_matrix, np.ndarray]

FAMILIES: dict[str, list[str]] = {
    "defaults": [],
    "defaults, l1": ["--penalty", "l1,l1=1e-5"],
    "SGD (asgd)": ["--solver", "asgd,eta=1", "--loss", "logistic", "--penalty", "l2,l2=1e-5", "--scale", "rms"],
    "Pegasos": [
        "--solver",
        "pegasos",
        "--loss",
        "hinge",
        "--penalty",
        "l2,l2=1e-4",
        "--average",
        "weighted-t",
        "--scale",
        "rms",
    ],
    "Epoch-GD": ["--solver", "epoch-gd", "--loss", "hinge", "--penalty", "l2,l2=1e-3", "--scale", "rms"],
    "COMID": ["--solver", "comid,eta=0.5", "--loss", "logistic", "--penalty", "l1,l1=1e-5", "--scale", "rms"],
    "HRMD-W": ["--solver", "hrmd-w", "--loss", "hinge", "--penalty", "elastic-net,l1=1e-5,l2=1e-3", "--scale", "rms"],
    "RDA": ["--solver", "rda,gamma=2", "--loss", "logistic", "--penalty", "l1,l1=1e-5", "--scale", "rms"],
    "FIOL": ["--solver", "fiol,eta=1", "--loss", "hinge", "--penalty", "l1,l1=1e-5", "--scale", "rms"],
    "implicit SGD": ["--solver", "implicit-sgd,eta=5", "--loss", "logistic", "--average", "weighted-t1", "--scale", "rms"],
    "PA-I": ["--solver", "pa-1,C=0.01", "--loss", "hinge", "--average", "uniform", "--scale", "rms"],
    "SADMM": ["--solver", "sadmm,rho=1,schedule=growing-rho", "--loss", "hinge", "--penalty", "l1,l1=1e-5", "--scale", "rms"],
    "OADM": ["--solver", "oadm,rho=1", "--loss", "hinge", "--penalty", "l1,l1=1e-5", "--scale", "rms"],
    "oDRs": ["--solver", "odrs,lam=0.1", "--loss", "logistic", "--penalty", "l1,l1=1e-5", "--scale", "rms"],
    "ioDRs": ["--solver", "iodrs,lam=0.1", "--loss", "logistic", "--penalty", "l1,l1=1e-5", "--scale", "rms"],
    "NCSGD": ["--solver", "ncsgd,eta=0.05", "--loss", "squared", "--task", "classify", "--scale", "rms"],
    "RLS": ["--solver", "rls,delta=1", "--loss", "squared", "--task", "classify", "--n-features", "{features}"],
}
MOST_FEATURES = {"RLS": 1000}


def shuffled(X: sp.csr_matrix, y: np.ndarray) -> tuple[sp.csr_matrix, np.ndarray]:
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order]


def images(folder: Path, part: str) -> tuple[sp.csr_matrix, np.ndarray]:
    with gzip.open(folder / f"{part}-images-idx3-ubyte.gz") as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16)
    with gzip.open(folder / f"{part}-labels-idx1-ubyte.gz") as file:
        labels = np.frombuffer(file.read(), np.uint8, offset=8)
    return sp.csr_matrix(pixels.reshape(len(labels), -1) / 255.0), labels.astype(np.float64)


def load(name: str, root: Path) -> Data:
    if name == "breast-cancer":
        X, y = load_breast_cancer(return_X_y=True)
        X, y = shuffled(sp.csr_matrix(X), y.astype(np.float64))
        return X[:400], y[:400], X[400:], y[400:]
    folder = root / name
    if name == "mnist":
        return *shuffled(*images(folder, "train")), *images(folder, "t10k")
    train, test = sorted(folder.glob("*.svm.xz"), key=lambda path: ".t." in path.name)
    with lzma.open(train) as first, lzma.open(test) as second:
        X, y, Z, z = load_svmlight_files([first, second])
    return *shuffled(X, y), Z, z


def command(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "onlinear", *args], capture_output=True, text=True, env={**os.environ, "COLUMNS": "200"}
    )


def by_command(options: list[str], folder: Path, z: np.ndarray) -> dict[str, object]:
    model, start = folder / "model.onlinear", time.perf_counter()
    classes = ["--classes", ",".join(f"{label:g}" for label in np.unique(z))]
    trained = command("train", str(folder / "train.svm"), "--model", str(model), *classes, *options)
    seconds = time.perf_counter() - start
    if trained.returncode:
        return {"error": (trained.stderr or trained.stdout).strip().splitlines()[-1]}
    predicted = command("predict", str(model), str(folder / "test.svm"))
    labels = np.array([float(line) for line in predicted.stdout.split()])
    estimator = onlinear.load(model)
    nonzeros = int(np.count_nonzero(estimator.coef_))
    last = round(estimator.coef_.size * (1.0 - estimator.sparsity_last_))
    return {"test error": float(np.mean(labels != z)), "non-zeros": nonzeros, "last": int(last), "seconds": seconds}


def by_peer(model: object, data: Data) -> dict[str, object]:
    X, y, Z, z = data
    start = time.perf_counter()
    model.fit(X, y)  # type: ignore[attr-defined]
    seconds = time.perf_counter() - start
    parts = getattr(model, "estimators_", [model])
    nonzeros = int(sum(np.count_nonzero(part.coef_) for part in parts))
    return {"test error": float(np.mean(model.predict(Z) != z)), "non-zeros": nonzeros, "last": nonzeros, "seconds": seconds}  # type: ignore[attr-defined]


def liblinear(several: bool) -> object:
    one = LogisticRegression(l1_ratio=1.0, C=1.0, solver="liblinear", max_iter=1000, random_state=0)
    return OneVsRestClassifier(one) if several else one


def main() -> int:
    parser = parser_of(__doc__, data=True)
    parser.add_argument("--sets", default="a9a,rcv1-ccat,mnist,breast-cancer")
    args = parser.parse_args()
    found: dict[str, dict[str, dict[str, object]]] = {}
    for name in args.sets.split(","):
        data = load(name, args.data)
        X, y, Z, z = data
        found[name] = {}
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            dump_svmlight_file(X, y, str(folder / "train.svm"), zero_based=False)
            dump_svmlight_file(Z, z, str(folder / "test.svm"), zero_based=False)
            for family, options in FAMILIES.items():
                if X.shape[1] > MOST_FEATURES.get(family, X.shape[1]):
                    found[name][family] = {"error": f"more than {MOST_FEATURES[family]} features"}
                    continue
                found[name][family] = by_command([option.format(features=X.shape[1]) for option in options], folder, z)
        found[name]["scikit-learn SGDClassifier(l1), one pass"] = by_peer(
            SGDClassifier(loss="log_loss", penalty="l1", alpha=1e-5, max_iter=1, tol=None, random_state=0), data
        )
        if name != "mnist":
            found[name]["LIBLINEAR, l1 logistic, to its stop"] = by_peer(liblinear(len(np.unique(y)) > 2), data)
        print(f"\n### {name}: {X.shape[0]} training rows, {X.shape[1]} features, {len(z)} test rows\n")
        print("| method | test error | non-zeros of the predictor | of the last iterate | seconds |")
        print("|---|---:|---:|---:|---:|")
        for method, result in found[name].items():
            if "error" in result:
                print(f"| {method} | {result['error']} | | | |")
            else:
                error, seconds = result["test error"], result["seconds"]
                print(f"| {method} | {error:.4f} | {result['non-zeros']} | {result['last']} | {seconds:.1f} |", flush=True)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
