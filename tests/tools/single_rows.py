"""Settings that tests of single rows have in common: their kernels are compiled once for all of them."""

CLASSIFIER = {  # by default
    "solver": "implicit-ftrl",
    "loss": "logistic",
    "average": "adaptive,calibrated=true",
    "scale": "tempered",
    "weights": "relative",
}
REGRESSOR = {  # with a penalty
    "solver": "implicit-ftrl",
    "loss": "squared",
    "penalty": "l1,l1=0.01",
    "targets": "relative",
    "clip": True,
    "scale": "dense",
}
