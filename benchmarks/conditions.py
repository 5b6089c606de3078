"""What it is worth to say when a parameter exists: boosting as XGBoost has it, with three kinds of boosters.

    python benchmarks/conditions.py [--seeds 0-4] [--trials 40] [--variants old/conditions,old/all,...]

    booster    gbtree, dart: trees, fitted to what is left; dart leaves some of the earlier ones out while it does.
               gblinear: a linear model
    lambda     always; ridge, of a leaf or of the linear model
    eta, max_depth, subsample     of trees
    rate_drop  of dart
    alpha      of gblinear; lasso

Every trial is a real training (trees of scikit-learn) on half of a data set, and its value the error on the other half
as a share of the variance. The new problem is one of four data sets, the old runs are `OLD` random ones of each of the
other three. Ways to search:

    conditions    Space(..., conditions=...)
    all           the same parameters without conditions: all always exist, and some do nothing
    learned       JumboSampler without a search space: it learns from the trials when a parameter exists
    tpe           Optuna's TPESampler(multivariate=True, group=True)

each `new/`, without old runs, with gp-ucb, and the first two `old/`, with old runs and the default method. Printed is
the distance of the best value to the best one that any run found on that data set, the mean over data sets and seeds.
Results are kept in benchmarks/results/conditions.json; what is there is not measured again.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import optuna
import polars as pl
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import TPESampler

from jumbo_bo import JumboSampler, Optimizer, Space
from jumbo_bo.bench.stamp import stamp
from jumbo_bo.data.history import History

Array = npt.NDArray[np.float64]

RESULTS = Path(__file__).parent / "results" / "conditions.json"
OLD, ROUNDS, TRAINED = 60, 30, 200
SHOWN = (10, 20, 40)
TREES = "booster != 'gblinear'"
CONDITIONS = {"eta": TREES, "max_depth": TREES, "subsample": TREES}
CONDITIONS |= {"rate_drop": "booster == 'dart'", "alpha": "booster == 'gblinear'"}
ALL = Space(
    {
        "booster": CategoricalDistribution(("gbtree", "gblinear", "dart")),
        "lambda": FloatDistribution(1e-3, 1e3, log=True),
        "eta": FloatDistribution(0.01, 1.0, log=True),
        "max_depth": IntDistribution(1, 8),
        "subsample": FloatDistribution(0.2, 1.0),
        "rate_drop": FloatDistribution(0.0, 0.9),
        "alpha": FloatDistribution(1e-4, 1.0, log=True),
    }
)
CONDITIONAL = Space(ALL.distributions, CONDITIONS)
DATASETS = ("diabetes", "friedman1", "friedman2", "friedman3")


@cache
def data(name: str) -> tuple[Array, Array]:
    from sklearn import datasets

    if name == "diabetes":
        x, y = datasets.load_diabetes(return_X_y=True)
    else:
        noise = {"friedman1": 1.0, "friedman2": 100.0, "friedman3": 0.1}[name]
        x, y = getattr(datasets, f"make_{name}")(2 * TRAINED, noise=noise, random_state=0)
    x, y = x[: 2 * TRAINED], y[: 2 * TRAINED]
    return (x - x.mean(axis=0)) / x.std(axis=0), (y - y.mean()) / y.std()


def error(dataset: str, params: dict[str, Any]) -> float:
    x, y = data(dataset)
    train, test = np.arange(len(y)) % 2 == 0, np.arange(len(y)) % 2 == 1
    predicted = (linear if params["booster"] == "gblinear" else trees)(x[train], y[train], x[test], params)
    return float(np.mean((predicted - y[test]) ** 2) / np.var(y[test]))


def linear(x: Array, y: Array, new: Array, params: dict[str, Any]) -> Array:
    """Coordinate descent on the squared error with both penalties, as XGBoost does it."""
    weights, left = np.zeros(x.shape[1]), y.copy()
    for _ in range(ROUNDS):
        for j, column in enumerate(x.T):
            left += weights[j] * column
            pull = column @ left
            weights[j] = (
                np.sign(pull) * max(abs(pull) - params["alpha"] * len(y), 0) / (column @ column + params["lambda"])
            )
            left -= weights[j] * column
    return np.asarray(new @ weights)


def trees(x: Array, y: Array, new: Array, params: dict[str, Any]) -> Array:
    from sklearn.tree import DecisionTreeRegressor

    rng = np.random.default_rng(0)
    fitted, predicted, weights = np.zeros((0, len(y))), np.zeros((0, len(new))), np.zeros(0)
    for k in range(ROUNDS):
        dropped = np.zeros(k, dtype=bool)
        if params["booster"] == "dart":
            dropped = rng.random(k) < params["rate_drop"]
        left = y - weights[~dropped] @ fitted[~dropped]
        rows = rng.random(len(y)) < params["subsample"]
        rows[:2] = True
        tree = DecisionTreeRegressor(max_depth=params["max_depth"], random_state=0).fit(x[rows], left[rows])
        size = tree.tree_.n_node_samples
        shrink = size / (size + params["lambda"])  # the weight of a leaf is sum(gradients) / (n + lambda)
        here, there = (tree.predict(part) * shrink[tree.apply(part)] for part in (x, new))
        fitted, predicted = np.vstack([fitted, here]), np.vstack([predicted, there])
        n = int(dropped.sum())  # of dart: the new tree and those it stands in for together weigh what those did
        weights[dropped] *= n / (n + params["eta"])
        weights = np.append(weights, params["eta"] / (n + params["eta"]) if n else params["eta"])
    return np.asarray(weights @ predicted)


@cache
def old_runs(new: str, seed: int) -> pl.DataFrame:
    """Random trials of the other data sets, with a value in every cell."""
    rows = []
    for i, name in enumerate(DATASETS):
        if name != new:
            rng = np.random.default_rng([seed, i, 1])
            found = [ALL.decode(u) for u in ALL.sample(rng, OLD)]
            rows += [{**params, "error": error(name, params), "task": name} for params in found]
    return pl.DataFrame(rows)


def jumbo(space: Space, old: bool, dataset: str, trials: int, seed: int) -> list[float]:
    history = History.from_frame(old_runs(dataset, seed), space, objective="error", task="task") if old else None
    method = {} if old else {"method": "gp-ucb"}
    optimizer = Optimizer(space, history, n_trials=trials, seed=seed, **method)  # type: ignore[arg-type]
    values = []
    for _ in range(trials):
        suggestion = optimizer.ask()
        values.append(error(dataset, suggestion.params))
        optimizer.tell(suggestion, values[-1])
    return values


def define_by_run(dataset: str, trial: optuna.Trial) -> float:
    params: dict[str, Any] = {}
    for name, dist in ALL.distributions.items():
        if name in CONDITIONAL.active(params):
            params[name] = trial._suggest(name, dist)
    return error(dataset, params)


def sampled(
    sampler: Callable[[int, int], optuna.samplers.BaseSampler], dataset: str, trials: int, seed: int
) -> list[float]:
    study = optuna.create_study(sampler=sampler(trials, seed))
    study.optimize(partial(define_by_run, dataset), n_trials=trials)
    return [float(t.value or 0.0) for t in study.trials]


def tpe(trials: int, seed: int) -> optuna.samplers.BaseSampler:
    return TPESampler(seed=seed, multivariate=True, group=True)


def learned(trials: int, seed: int) -> optuna.samplers.BaseSampler:
    return JumboSampler(method="gp-ucb", n_trials=trials, seed=seed)


VARIANTS: dict[str, Callable[[str, int, int], list[float]]] = {
    "new/tpe": partial(sampled, tpe),
    "new/all": partial(jumbo, ALL, False),
    "new/conditions": partial(jumbo, CONDITIONAL, False),
    "new/learned": partial(sampled, learned),
    "old/all": partial(jumbo, ALL, True),
    "old/conditions": partial(jumbo, CONDITIONAL, True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seeds", default="0-4", help="first and last one")
    parser.add_argument("--trials", type=int, default=max(SHOWN))
    parser.add_argument("--variants", default=",".join(VARIANTS))
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()
    first, last = map(int, options.seeds.split("-"))
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    kept = json.loads(options.results.read_text()) if options.results.exists() else {"runs": {}}
    for seed in range(first, last + 1):
        for dataset in DATASETS:
            for variant in options.variants.split(","):
                key = f"{variant} {dataset} {seed} {options.trials}"
                if key not in kept["runs"]:
                    values = VARIANTS[variant](dataset, options.trials, seed)
                    kept["runs"][key] = np.round(np.minimum.accumulate(values), 6).tolist()
                    options.results.write_text(json.dumps(kept | stamp(" ".join(sys.argv)), indent=1) + "\n")
    for line in table(kept["runs"], range(first, last + 1), options.trials, options.variants.split(",")):
        print(line)


def table(runs: dict[str, list[float]], seeds: range, trials: int, variants: list[str]) -> Iterator[str]:
    shown = [n for n in SHOWN if n <= trials]
    yield "| | " + " | ".join(f"after {n}" for n in shown) + " |"
    yield "| --- |" + " --- |" * len(shown)
    best = {name: min(run[-1] for key, run in runs.items() if key.split()[1] == name) for name in DATASETS}
    for variant in variants:
        far = np.array(
            [
                np.mean([np.array(runs[f"{variant} {name} {seed} {trials}"]) - best[name] for name in DATASETS], axis=0)
                for seed in seeds
            ]
        )
        error = far.std(axis=0, ddof=1) / np.sqrt(len(far)) if len(far) > 1 else np.full(far.shape[1], np.nan)
        yield f"| {variant} | " + " | ".join(f"{far[:, n - 1].mean():.4f} ± {error[n - 1]:.4f}" for n in shown) + " |"


if __name__ == "__main__":
    main()
