"""Learning curves of networks, really trained: the data of benchmarks/curves.py. About 20 minutes on two cores.

    python benchmarks/curves_data.py --jobs 2

Every configuration of a grid is trained for EPOCHS epochs by scikit-learn's `partial_fit`, on six tasks made of the
data sets that come with scikit-learn. After each epoch the error on rows that were not trained on is written down:
log loss for classes, the squared error as a share of the variance for numbers. One Parquet file per task:
the parameters, and `epoch`, `error` as lists. DEVELOPMENT tasks are for tuning, REPORT tasks for the tables.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import polars as pl
from optuna.distributions import CategoricalDistribution, IntDistribution
from rich.console import Console
from rich.progress import track

from jumbo_bo.learning.cache import default_folder
from jumbo_bo.paths import whole
from jumbo_bo.space.space import Params, Space

EPOCHS = 50
MOST_ROWS = 300  # to train on
WORST = 20.0  # log loss of a certain and wrong answer; errors above it, and numbers that overflow, count as this
RATES = (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
SPACE = Space(
    {
        "learning_rate": CategoricalDistribution(RATES),
        "width": CategoricalDistribution((8, 32, 128)),
        "layers": IntDistribution(1, 2),
        "batch_size": CategoricalDistribution((16, 64)),
        "solver": CategoricalDistribution(("adam", "sgd")),
        "alpha": CategoricalDistribution((1e-4, 1.0)),
    }
)
DEVELOPMENT = ("iris", "digits-parity", "diabetes-bmi")
REPORT = ("breast-cancer", "breast-cancer-texture", "diabetes")
TASKS: dict[str, tuple[str, Any]] = {  # data set, and what is predicted: its labels, one of its columns, their parity
    "breast-cancer": ("breast_cancer", None),
    "breast-cancer-texture": ("breast_cancer", 1),
    "diabetes": ("diabetes", None),
    "diabetes-bmi": ("diabetes", 2),
    "digits-parity": ("digits", "parity"),
    "iris": ("iris", None),
}


def data(task: str) -> tuple[Any, Any, bool]:  # -> (n, features), (n,), whether a class is predicted
    from sklearn import datasets

    name, kind = TASKS[task]
    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    if kind == "parity":
        y = y % 2
    elif kind is not None:
        x, y = np.delete(x, kind, axis=1), x[:, kind]
    classes = name != "diabetes" and not isinstance(kind, int)
    return x, y if classes else (y - y.mean()) / y.std(), classes


def curve(task: str, params: Params) -> list[float]:
    """The error after each epoch."""
    from sklearn.metrics import log_loss
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.preprocessing import StandardScaler

    x, y, classes = data(task)
    fit, held = train_test_split(
        np.arange(len(y)), train_size=min(MOST_ROWS, len(y) // 2), random_state=0, stratify=y if classes else None
    )
    scaler = StandardScaler().fit(x[fit])
    x = scaler.transform(x)
    net = (MLPClassifier if classes else MLPRegressor)(
        hidden_layer_sizes=(params["width"],) * params["layers"],
        solver=params["solver"],
        alpha=params["alpha"],
        batch_size=params["batch_size"],
        learning_rate_init=params["learning_rate"],
        random_state=np.random.RandomState(0),
    )
    first: Callable[..., Any] = partial(net.partial_fit, classes=np.unique(y)) if classes else net.partial_fit
    errors: list[float] = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for epoch in range(EPOCHS):
            try:
                (net.partial_fit if epoch else first)(x[fit], y[fit])
                if classes:
                    error = log_loss(y[held], net.predict_proba(x[held]), labels=net.classes_)
                else:
                    error = float(np.mean((net.predict(x[held]) - y[held]) ** 2) / np.var(y[held]))
            except ValueError:  # numbers that are not finite
                error = np.inf
            errors.append(float(min(error, WORST)) if np.isfinite(error) else WORST)
            if errors[-1] == WORST and not np.isfinite(error):
                return errors + [WORST] * (EPOCHS - len(errors))
    return errors


def table(task: str, folder: Path | None = None, jobs: int = 1) -> pl.DataFrame:
    """Trained when it is not in the folder yet. Another version of scikit-learn has a table of its own."""
    folder = folder or default_folder() / "curves"
    path = folder / f"{task}.scikit-learn-{version('scikit-learn')}.parquet"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        configurations = [SPACE.decode(u) for u in SPACE.grid()]
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            found = pool.map(partial(curve, task), configurations, chunksize=4)
            errors = list(track(found, task, len(configurations), console=Console(stderr=True)))
        with whole(path) as part:
            pl.DataFrame(configurations).with_columns(error=pl.Series(errors)).write_parquet(part)
    return pl.read_parquet(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    for task in (*DEVELOPMENT, *REPORT):
        errors = np.array(table(task, options.folder, options.jobs)["error"].to_list())
        last = errors[:, -1]
        print(f"{task:22s} best {last.min():.4f}, median {np.median(last):.4f}, worst {last.max():.2f}")


if __name__ == "__main__":
    main()
