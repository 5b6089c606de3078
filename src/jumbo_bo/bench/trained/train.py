"""One training: a model of scikit-learn on half of a data set, at most MOST_ROWS, and its error on all other rows.

Classification is judged by log loss, regression by the squared error as a share of the variance. A seed decides which
rows it sees and how the model starts, so two trainings differ as they do in practice.

A training fails (NaN) when its numbers stop being finite, and when it would take more steps than MOST_STEPS allows:
a limit in steps is the same on every machine, a limit in seconds is not.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.space.space import Array, Params, Space

DATASETS = {"breast-cancer": 2, "diabetes": 1, "digits": 10, "wine": 3}  # classes; 1: a number is predicted
MOST_ROWS = 300  # to train on
MOST_STEPS = {"mlp": 800, "boosting": 5000, "svm": 20_000}  # minibatches; leaves; iterations of the solver
WORST = 20.0  # log loss of a certain and wrong answer; errors above it count as this


@dataclass(frozen=True)
class Model:
    space: Space
    train: Callable[
        [Params, str, int, int], Any
    ]  # (params, data set, rows, seed) -> steps of a pipeline; None: too long


def error(model: str, dataset: str, params: Params, seed: int) -> float:
    """The error on rows that the training did not see; NaN for a training that failed."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import log_loss
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline

    x, y = data(dataset)
    labels = None if DATASETS[dataset] == 1 else y
    size = min(MOST_ROWS, len(y) // 2)
    fit, held = train_test_split(np.arange(len(y)), train_size=size, random_state=seed, stratify=labels)
    parts = MODELS[model].train(params, dataset, len(fit), seed)
    if parts is None:
        return math.nan
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if model == "svm":
            warnings.simplefilter("error", ConvergenceWarning)  # it was stopped by the limit
        try:
            estimator = make_pipeline(*parts).fit(x[fit], y[fit])
            if labels is None:
                value = float(np.mean((estimator.predict(x[held]) - y[held]) ** 2) / np.var(y[held]))
            else:
                shown = estimator.predict_proba(x[held])
                finite = np.isfinite(shown).all()
                value = float(log_loss(y[held], shown, labels=estimator.classes_)) if finite else math.nan
        except ConvergenceWarning:
            return math.nan
        except ValueError as problem:
            if "finite" in str(problem) or "infinity" in str(problem):  # the weights, or what was made of them
                return math.nan
            raise
    return min(value, WORST) if math.isfinite(value) else math.nan


@cache
def data(dataset: str) -> tuple[Array, Array]:  # -> (n, features), (n,)
    from sklearn import datasets

    x, y = getattr(datasets, f"load_{dataset.replace('-', '_')}")(return_X_y=True)
    return x, (y - y.mean()) / y.std() if DATASETS[dataset] == 1 else y


def _mlp(params: Params, dataset: str, rows: int, seed: int) -> Any:
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.preprocessing import StandardScaler

    if params["epochs"] * math.ceil(rows / params["batch_size"]) > MOST_STEPS["mlp"]:
        return None
    kind = MLPRegressor if DATASETS[dataset] == 1 else MLPClassifier
    return StandardScaler(), kind(
        hidden_layer_sizes=(params["width"],) * params["layers"],
        activation=params["activation"],
        solver=params["solver"],
        alpha=params["alpha"],
        batch_size=min(params["batch_size"], rows),
        learning_rate_init=params["learning_rate"],
        max_iter=params["epochs"],
        n_iter_no_change=params["epochs"],
        random_state=seed,
    )


def _boosting(params: Params, dataset: str, rows: int, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    trees = params["iterations"] * (DATASETS[dataset] if DATASETS[dataset] > 2 else 1)
    if trees * params["leaves"] > MOST_STEPS["boosting"]:
        return None
    kind = HistGradientBoostingRegressor if DATASETS[dataset] == 1 else HistGradientBoostingClassifier
    return (
        kind(
            learning_rate=params["learning_rate"],
            max_iter=params["iterations"],
            max_leaf_nodes=params["leaves"],
            min_samples_leaf=params["rows_per_leaf"],
            l2_regularization=params["l2"],
            max_features=params["features"],
            max_bins=params["bins"],
            early_stopping=False,
            random_state=seed,
        ),
    )


def _svm(params: Params, dataset: str, rows: int, seed: int) -> Any:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.preprocessing import MinMaxScaler, StandardScaler
    from sklearn.svm import SVC, SVR

    options = {name: params[name] for name in ("C", "kernel", "gamma", "degree", "coef0", "tol")}
    options["max_iter"] = MOST_STEPS["svm"]
    scaler = StandardScaler() if params["scaling"] == "standard" else MinMaxScaler()
    if DATASETS[dataset] == 1:
        return scaler, SVR(**options)
    return scaler, CalibratedClassifierCV(SVC(**options), ensemble=False, cv=3)


MODELS = {
    "svm": Model(
        Space(
            {
                "kernel": CategoricalDistribution(("rbf", "poly", "sigmoid")),
                "C": FloatDistribution(1e-3, 1e4, log=True),
                "gamma": FloatDistribution(1e-5, 10.0, log=True),
                "degree": IntDistribution(2, 5),
                "coef0": FloatDistribution(-1.0, 1.0),
                "tol": FloatDistribution(1e-4, 1e-1, log=True),
                "scaling": CategoricalDistribution(("standard", "minmax")),
            }
        ),
        _svm,
    ),
    "mlp": Model(
        Space(
            {
                "layers": IntDistribution(1, 3),
                "width": IntDistribution(4, 128, log=True),
                "activation": CategoricalDistribution(("relu", "tanh", "logistic")),
                "solver": CategoricalDistribution(("adam", "sgd")),
                "learning_rate": FloatDistribution(1e-4, 1.0, log=True),
                "alpha": FloatDistribution(1e-6, 10.0, log=True),
                "batch_size": IntDistribution(8, 256, log=True),
                "epochs": IntDistribution(5, 100, log=True),
            }
        ),
        _mlp,
    ),
    "boosting": Model(
        Space(
            {
                "learning_rate": FloatDistribution(0.01, 1.0, log=True),
                "iterations": IntDistribution(5, 200, log=True),
                "leaves": IntDistribution(2, 32, log=True),
                "rows_per_leaf": IntDistribution(1, 50, log=True),
                "l2": FloatDistribution(1e-6, 100.0, log=True),
                "features": FloatDistribution(0.1, 1.0),
                "bins": CategoricalDistribution((4, 16, 64, 255)),
            }
        ),
        _boosting,
    ),
}
