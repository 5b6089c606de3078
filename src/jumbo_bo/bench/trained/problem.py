"""Tune a model of scikit-learn on one data set, with runs of the same model on the three others known.

Objective: the error of one training (train.py) whose seed comes from the run's generator.
Regret: the mean error of trainings that are always the same ones, above that of the best configuration known, as a
    share of the gap from there to the median of random configurations (reference.json). Better than the best known is
    0. FEW trainings tell that a configuration is far from the best; the others have MANY, because how lucky one is
    with few splits differs between configurations by more than the good ones do.

Notation
    few, many   mean error of a configuration in the first FEW and in all MANY trainings
    best        of the best configuration known: its `few` and `many`
    gap         median of `few` of random configurations - few of the best
    regret      (few - few of the best) / gap where that is above FAR, else (many - many of the best) / gap
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.trained.old_runs import old_runs
from jumbo_bo.bench.trained.train import DATASETS, MODELS, error
from jumbo_bo.errors import InputError
from jumbo_bo.space.space import Params

FEW, MANY = 3, 12  # trainings that regret is measured with
FAR = 0.5
ROWS = 60  # old runs on each data set
FLOOR = 0.05  # regrets below it count as this; luck with MANY splits is 0.006 to 0.06 (reference.json)


def _order(model: str) -> list[str]:
    names = [f"{model}-{dataset}" for dataset in DATASETS]
    return sorted(names, key=lambda name: hashlib.sha256(f"sklearn/{name}".encode()).digest())


DEVELOPMENT = tuple(name for model in MODELS for name in _order(model)[:2])
REPORT = tuple(name for model in MODELS for name in _order(model)[2:])


def problem(
    name: str, seed: int, tasks: int | None = None, rows: int | None = None, folder: Path | None = None
) -> Problem:
    """`tasks` of the other data sets, drawn by the seed, and `rows` of the pool on each. `folder` keeps the pools."""
    model, _, dataset = name.partition("-")
    if model not in MODELS or dataset not in DATASETS:
        raise InputError(f"no sklearn problem {name!r}; choose one of {[*REPORT, *DEVELOPMENT]}")
    others = [other for other in DATASETS if other != dataset]
    if tasks is not None:
        others = [others[i] for i in np.sort(np.random.default_rng([seed, 3]).choice(3, tasks, replace=False))]
    known = reference()["problems"][name]

    def objective(params: Params, rng: np.random.Generator) -> float:
        return error(model, dataset, params, int(rng.integers(2**31)))

    def regret(params: Params) -> float:
        few = (mean_error(name, params, range(FEW)) - known["few"]) / known["gap"]
        if few > FAR or math.isnan(few):
            return math.inf if math.isnan(few) else few
        many = (mean_error(name, params, range(MANY)) - known["many"]) / known["gap"]
        return math.inf if math.isnan(many) else max(many, 0.0)

    history = old_runs(model, others, rows or ROWS, seed, folder)
    return Problem(name, MODELS[model].space, history, objective, regret, floor=FLOOR)


def mean_error(name: str, params: Params, seeds: Iterable[int]) -> float:
    """NaN when one of the trainings fails."""
    model, _, dataset = name.partition("-")
    return float(np.mean([error(model, dataset, params, seed) for seed in seeds]))


@cache
def reference() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(files(__package__).joinpath("reference.json").read_text(encoding="utf-8"))
    return content
