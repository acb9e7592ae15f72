"""Names that other libraries use, with the sentences by which errors suggest the names used here.

Tests check that no such name is one of this package, and that the advice can be built.
"""

from __future__ import annotations

import re

MISSING_IN_TABLE = ' (missing="indicator" or "omit", of the estimator or of streams.open, accept it)'

_IMPLICIT = "The default solver needs no tuned step (leave solver out)"
_BATCH = (
    "It needs all rows at once, as 'prox-newton' here does, which is what tol=1e-4 with a penalty takes. "
    f"{_IMPLICIT} and takes one row at a time."
)
_ADAPTIVE = (
    f"Solvers with a step per feature are 'implicit-ftrl' and 'ftrl'. {_IMPLICIT} and divides each column by its own scale."
)
_SGD = "The nearest is 'sgd', with averaged weights 'asgd'."

# Sentences by the kind of part and the name, in lower case, with hyphens.
_PARTS: dict[str, dict[str, str]] = {
    "solver": {
        "ftrl-proximal": "It is 'ftrl' here.",
        "dual-averaging": "The nearest is 'rda', dual averaging, which keeps zeros too.",
        **dict.fromkeys(("adagrad", "adam", "adamw", "adadelta", "rmsprop", "momentum", "nesterov"), _ADAPTIVE),
        **dict.fromkeys(("sag", "saga", "svrg"), _BATCH),
        **dict.fromkeys(("lbfgs", "l-bfgs", "bfgs", "liblinear", "newton", "newton-cg", "newton-cholesky"), _BATCH),
        **dict.fromkeys(("cholesky", "svd", "lsqr", "sparse-cg", "coordinate-descent", "cd"), _BATCH),
        **dict.fromkeys(("auto", "default"), f"{_IMPLICIT}."),
        **dict.fromkeys(
            ("gd", "gradient-descent", "stochastic-gradient", "sgdclassifier", "averaged-sgd", "average-sgd"), _SGD
        ),
        "perceptron": "It is solver='sgd,schedule=constant' with loss='hinge,margin=1e-9'.",
        **dict.fromkeys(
            ("passive-aggressive", "passiveaggressive"), "It is 'pa-1' or 'pa-2', without a bound on the step 'pa'."
        ),
        **dict.fromkeys(("admm", "online-admm"), "It is 'sadmm', with a Bregman term 'oadm'."),
        **dict.fromkeys(("douglas-rachford", "dr"), "It is 'odrs'."),
        **dict.fromkeys(("mirror-descent", "fobos", "forward-backward", "proximal-sgd", "prox-sgd"), "It is 'comid'."),
        **dict.fromkeys(("implicit", "proximal-point"), "It is 'implicit-sgd', with a penalty 'fiol'."),
        **dict.fromkeys(("lms", "widrow-hoff", "delta-rule"), "It is 'adaline'."),
        "kalman": "The nearest is 'rls', recursive least squares.",
    },
    "loss": {
        **dict.fromkeys(("log", "log-loss", "logloss", "logit", "bce", "deviance", "binomial"), "It is 'logistic' here."),
        **dict.fromkeys(
            ("cross-entropy", "crossentropy", "binary-crossentropy", "binary-cross-entropy"), "It is 'logistic' here."
        ),
        **dict.fromkeys(("multinomial", "categorical-crossentropy", "multiclass"), "It is 'softmax' here."),
        **dict.fromkeys(
            ("squared-error", "squared-loss", "mse", "l2", "ls", "ols", "least-squares", "gaussian"), "It is 'squared' here."
        ),
        **dict.fromkeys(("mean-squared-error", "rmse"), "It is 'squared' here."),
        **dict.fromkeys(("absolute-error", "mae", "l1", "lad", "mean-absolute-error", "laplace"), "It is 'absolute' here."),
        **dict.fromkeys(("pinball", "pinball-loss", "quantile-loss"), "It is 'quantile,q=0.9' here."),
        **dict.fromkeys(
            ("svm", "svc", "svr", "linear-svm", "hinge-loss"), "For classes it is 'hinge', for numbers 'epsilon-insensitive'."
        ),
        "perceptron": "It is 'hinge,margin=1e-9' here.",
        **dict.fromkeys(("exp", "adaboost"), "It is 'exponential' here."),
        **dict.fromkeys(("squared-epsilon-insensitive", "smooth-l1", "log-cosh"), "The nearest is 'huber,delta=1'."),
        **dict.fromkeys(("gamma", "tweedie", "count"), "Of the losses for counts there is 'poisson'."),
    },
    "penalty": {
        "lasso": "It is 'l1' here.",
        **dict.fromkeys(("ridge", "tikhonov", "weight-decay"), "It is 'l2' here."),
        **dict.fromkeys(
            ("tv", "fused"), "It is 'total-variation,tv=0.01', with l1 or l2 beside it 'fused-lasso,tv=0.01,l1=0.01'."
        ),
        **dict.fromkeys(("positive", "nonnegative", "non-negative"), "It is 'lower=0' here."),
        **dict.fromkeys(("box", "bounds"), "It is 'lower=-1,upper=1' here."),
        **dict.fromkeys(("l0", "group-lasso"), "The nearest is 'l1'."),
    },
    "average": {
        **dict.fromkeys(("true", "mean", "polyak", "polyak-ruppert", "averaged", "asgd"), "It is 'uniform' here."),
        **dict.fromkeys(("false", "off"), "It is 'none' here."),
        **dict.fromkeys(("tail", "last"), "It is 'suffix,alpha=0.5' here."),
        "weighted": "It is 'weighted-t1' here.",
    },
    "scale": {
        **dict.fromkeys(
            ("standardize", "standardise", "standard-scaler", "z-score", "zscore", "true"),
            "It is 'standard' here, and 'centred' with running means.",
        ),
        **dict.fromkeys(("min-max", "minmax", "max", "absmax"), "It is 'max-abs' here."),
        **dict.fromkeys(("false", "off"), "It is 'none' here."),
    },
    "schedule": {
        "optimal": "The nearest is 'inverse-shifted'.",
        **dict.fromkeys(("invscaling", "polynomial"), "It is 'power' here, with power=0.25 or another number."),
        **dict.fromkeys(("sqrt", "adaptive", "1/sqrt(t)"), "The nearest is 'inverse-sqrt'."),
        "1/t": "It is 'inverse' here.",
        "fixed": "It is 'constant' here.",
    },
}

# The settings that do what a setting of another name does elsewhere; those that the part has are named.
_SETTINGS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("learning-rate", "lr", "step", "step-size", "eta0", "alpha0"), ("eta",)),
    **dict.fromkeys(("power-t", "decay"), ("power",)),
    **dict.fromkeys(("alpha", "reg", "strength", "lambda", "l1-ratio", "c"), ("l1", "l2", "tv")),
    **dict.fromkeys(("quantile", "tau", "level"), ("q",)),
    "epsilon": ("eps", "delta"),
    **dict.fromkeys(("min", "low"), ("lower",)),
    **dict.fromkeys(("max", "high"), ("upper",)),
}


def elsewhere(kind: str, name: str) -> list[str]:
    """What other libraries call a part of this kind: names whose advice begins with ``name``."""
    return [other for other, advice in _PARTS.get(kind, {}).items() if re.match(rf"(It|The nearest) is '{name}[',]", advice)]


_ARGUMENTS: dict[str, str] = {
    "alpha": "Write penalty='l2=1e-4' for SGDClassifier's alpha=1e-4; with l1: penalty='l1=1e-4'.",
    "C": "Write penalty='l2=...' with 1 / (C * rows): the objective here is the mean over the rows.",
    "reg_l1": "Write l1=1e-5.",
    **dict.fromkeys(("reg_l2", "weight_decay"), "Write l2=1e-5."),
    **dict.fromkeys(("lam", "lambda_", "reg", "regularizer"), "Write penalty='l1=1e-5' or penalty='l2=1e-5'."),
    "l1_ratio": "Write both strengths: penalty='l1=1e-5,l2=1e-6' (alpha * l1_ratio and alpha * (1 - l1_ratio)).",
    **dict.fromkeys(
        ("eta0", "lr", "learning_rate_init", "step_size"), "The step size is eta=20, or a setting: solver='fiol,eta=20'."
    ),
    "learning_rate": "Steps are settings of the solver: solver='fiol,eta=20', solver='sgd,schedule=constant,eta=0.1'.",
    "power_t": "Steps are settings of the solver: solver='sgd,schedule=power,power=0.25,eta=0.1'.",
    "schedule": "Steps are settings of the solver: solver='sgd,schedule=constant,eta=0.1'.",
    **dict.fromkeys(
        ("max_iter", "n_iter", "epochs", "n_epochs", "num_epochs", "iterations"), "Write passes=5 for 5 passes over the rows."
    ),
    **dict.fromkeys(
        ("n_iter_no_change", "early_stopping", "validation_fraction"),
        "Write tol=1e-4 with a penalty, for a fit that stops at a certified gap; onlinear train has --early-stop.",
    ),
    **dict.fromkeys(("optimizer", "algorithm", "method"), "Write solver=, for instance solver='rda'."),
    "epsilon": "It is a setting of the loss: loss='huber,delta=0.1', loss='epsilon-insensitive,eps=0.1'.",
    "delta": "It is a setting of the loss: loss='huber,delta=0.1'.",
    "quantile": "It is a setting of the loss: loss='quantile,q=0.9'.",
    **dict.fromkeys(("seed", "random_seed"), "Write random_state=0."),
    **dict.fromkeys(("intercept", "bias"), "Write fit_intercept=True or fit_intercept=False."),
    "batch_size": "It is a setting of the solver: solver='comid,batch=32'. Without it rows are learned one at a time.",
    "positive": "Write penalty='lower=0'.",
    **dict.fromkeys(("standardize", "normalize"), "Write scale='standard', for sparse rows scale='rms'."),
    "classes": "It is an argument of fit (streams) and partial_fit.",
    "sample_weight": "It is an argument of fit and partial_fit.",
    **dict.fromkeys(
        ("multi_class", "n_classes", "n_outputs"), "Several classes or targets are found in y; nothing needs to be set."
    ),
}


_NOT_HERE = "Vowpal Wabbit's reductions, bandits, active learning and daemons are not here."

_OPTIONS: dict[str, str] = {
    "--l1": "Write --penalty l1=1e-6.",
    **dict.fromkeys(("--l2", "--alpha", "--reg", "--weight-decay"), "Write --penalty l2=1e-6."),
    **dict.fromkeys(
        ("--eta", "--lr", "--learning-rate", "--learning_rate", "--step-size", "-l"),
        "The step size is a setting of the solver: --solver implicit-ftrl,eta=0.5. The default needs none.",
    ),
    **dict.fromkeys(
        ("--power_t", "--power-t"), "It is a setting of the solver: --solver sgd,schedule=power,power=0.25,eta=0.1."
    ),
    **dict.fromkeys(("--epochs", "--max-iter", "--iterations", "--n-iter"), "Write --passes 5."),
    **dict.fromkeys(("--loss_function", "--loss-function", "--objective"), "Write --loss logistic."),
    **dict.fromkeys(("--optimizer", "--algorithm", "--method", "--ftrl"), "Write --solver ftrl."),
    "--sgd": "Write --solver sgd --scale none.",
    "--ftrl_alpha": "It is a setting of the solver: --solver ftrl,eta=0.1.",
    "--ftrl_beta": "It is a setting of the solver: --solver ftrl,eta=0.1,beta=1.",
    **dict.fromkeys(("--csoaa", "--csoaa_ldf", "--ect", "--wap", "--multilabel_oaa", "--boosting", "--bootstrap"), _NOT_HERE),
    **dict.fromkeys(("--cb", "--cb_adf", "--cb_explore", "--cb_explore_adf", "--active", "--daemon"), _NOT_HERE),
    **dict.fromkeys(("--ksvm", "--nn", "--lrq", "--lda", "--rank", "--oja", "--bag", "--stage_poly", "--search"), _NOT_HERE),
    **dict.fromkeys(
        ("--adaptive", "--normalized", "--invariant", "--coin"),
        "Write nothing: the default's steps are adaptive, scaled and implicit.",
    ),
    **dict.fromkeys(("--batch", "--batch-size", "--batch_size"), "It is a setting of the solver: --solver comid,batch=32."),
    **dict.fromkeys(("--bfgs", "-e"), "Write --tol 1e-4 with a penalty, for passes to a certified gap."),
    "-s": "LIBLINEAR's solvers are a loss and a penalty: --loss logistic --penalty l2=1e-4 --tol 1e-4, or others.",
    **dict.fromkeys(("-C", "--C"), "Write --penalty l2=1e-4 with 1 / (C * rows): the objective is the mean over the rows."),
    **dict.fromkeys(("--label", "--label-column", "--y"), "Write --target COLUMN."),
    **dict.fromkeys(("--sep", "--separator", "--delim"), "Write --delimiter ';'."),
    **dict.fromkeys(("--na-values", "--null", "--na"), "Write --nulls 'NA,?'."),
    **dict.fromkeys(("--ignore", "--drop"), "Write --exclude COLUMN, of tables."),
    "--keep": "Write --features COLUMN, of tables.",
    **dict.fromkeys(("--output", "-o", "-f", "--final_regressor"), "Write --model FILE."),
    **dict.fromkeys(("-i", "--initial_regressor"), "Write --from MODEL to continue a model."),
    **dict.fromkeys(("-t", "--testonly"), "Write: onlinear predict MODEL FILE."),
    **dict.fromkeys(("-d", "--data", "--input", "--file"), "Files need no option: onlinear train FILE."),
    **dict.fromkeys(("-b", "--bit_precision"), "Write --hash-bits 22."),
    "--ngram": "Write --ngrams 2, of tables with text.",
    **dict.fromkeys(
        ("--skips", "--affix", "--spelling", "--dictionary"), "Write such features into the rows: none are made of names here."
    ),
    "--hash": "All names are hashed, those that look like numbers too; --hash-bits 22 takes 2^22 columns.",
    **dict.fromkeys(
        ("--initial_weight", "--random_weights", "--feature_mask"), "Weights begin at 0, or as those of --from MODEL."
    ),
    **dict.fromkeys(
        ("--min_prediction", "--max_prediction"),
        "Write nothing: predicted numbers stay within the targets seen, unless there is --no-clip.",
    ),
    "--examples": "Write: head -n ROWS FILE | onlinear train - --format vw.",
    "--no_stdin": "Write nothing: standard input is read where the source is -.",
    "--dsjson": "JSON is read as a data frame in Python, or once it is CSV or Parquet.",
    **dict.fromkeys(("--quadratic", "--cubic"), "Write --interactions 'a*:b*': crosses of two namespaces, by name."),
    "-c": "Write nothing for Vowpal Wabbit's cache; for LIBLINEAR's C write --penalty l2=1e-4 with 1 / (C * rows).",
    **dict.fromkeys(
        ("--cache", "--cache_file", "-k", "--kill_cache"), "Write nothing: onlinear convert makes a file that is read faster."
    ),
    **dict.fromkeys(("--test", "--validation", "--test-file", "--valid"), "Write --holdout FILE, or --holdout 0.1."),
    **dict.fromkeys(("--holdout_period", "--holdout_after", "-v"), "Write --holdout 0.1."),
    "--holdout_off": "Write nothing: all rows are learned, unless there is --holdout.",
    **dict.fromkeys(("--early_terminate", "--early-stopping"), "Write --early-stop 2 with --holdout 0.1."),
    **dict.fromkeys(("--oaa", "--num-classes"), "Write nothing: name the classes with --classes, or find them with --scan."),
    "-w": "Write --class-weight 1=20.",
    **dict.fromkeys(("--noconstant", "--no-bias"), "Write --no-intercept."),
    "-B": "Write nothing: there is an intercept, unless there is --no-intercept.",
    **dict.fromkeys(("--random_seed", "--random-state"), "Write --seed 1."),
    **dict.fromkeys(("-P", "--progress"), "Write nothing: there is a line whenever the row count has doubled."),
    **dict.fromkeys(
        ("--save_resume", "--preserve_performance_counters"), "Write nothing: every model file can be continued with --from."
    ),
    **dict.fromkeys(("-p", "--predictions", "-r", "--raw_predictions"), "Write: onlinear predict MODEL FILE > PREDICTIONS."),
    **dict.fromkeys(
        ("--link", "--binary", "--probabilities"), "Write nothing: onlinear predict gives labels, scores or probabilities."
    ),
    **dict.fromkeys(
        ("--audit", "-a", "--invert_hash", "--readable_model"), "Write: onlinear explain MODEL FILE, or onlinear inspect MODEL."
    ),
    "--confidence": "Write --uncertainty.",
    **dict.fromkeys(("--threads", "--n-jobs", "--jobs"), "Write --workers 4 with --tol, for several files."),
    **dict.fromkeys(("--regression", "--classification"), "Write --task regress or --task classify."),
    **dict.fromkeys(("--shuffle",), "Write --shuffle-rows 10000: rows are shuffled within windows of so many."),
    "--quantile": "Write --loss quantile,q=0.9.",
    "--quantile_tau": "Write --loss quantile,q=0.9.",
}


_COMMANDS: dict[str, str] = {
    **dict.fromkeys(("fit", "learn", "run", "vw"), "train"),
    **dict.fromkeys(("test", "eval", "score", "validate"), "evaluate"),
    **dict.fromkeys(("apply", "infer", "transform"), "predict"),
    **dict.fromkeys(("show", "info", "dump", "print"), "inspect"),
}


def advise_on_command(name: str) -> str | None:
    """The suggestion for a command that is called ``name`` elsewhere, or is the name of a file."""
    if name in _COMMANDS:
        return f"Write: onlinear {_COMMANDS[name]}."
    return f"Write: onlinear train {name}." if "." in name or "/" in name else None


def advise_on_option(name: str) -> str | None:
    """The suggestion for an option of ``onlinear train`` that is called ``name`` elsewhere."""
    return _OPTIONS.get(name)


def advise_on_pair(name: str) -> str | None:
    """The suggestion for a source that may be Vowpal Wabbit's pair of namespaces behind ``-q``: the first letter of each, or
    ``:`` for any. None for other names."""
    if re.fullmatch(r"[A-Za-z0-9_:]{2}", name) is None:
        return None
    first, second = ("*" if letter == ":" else f"{letter}*" for letter in name)
    return f"-q is --quiet here; for Vowpal Wabbit's -q {name} write --interactions '{first}:{second}'."


def advise(kind: str, name: str, known: list[str]) -> str | None:
    """The suggestion for a solver, loss, penalty, average, scale, schedule or setting that is called ``name`` elsewhere."""
    if kind == "penalty" and re.fullmatch(r"[0-9.]+(e-?[0-9]+)?", name):
        return f"Write 'l1={name}' or 'l2={name}'."
    if kind != "setting":
        return _PARTS.get(kind, {}).get(name)
    keys = [f"{key}=" for key in _SETTINGS.get(name, ()) if key in known][:2]
    return f"It is {' or '.join(keys)} here." if keys else None


def advise_on_argument(name: str) -> str | None:
    """The suggestion for an argument of an estimator that is called ``name`` elsewhere."""
    return _ARGUMENTS.get(name)
