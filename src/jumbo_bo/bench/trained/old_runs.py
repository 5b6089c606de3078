"""Configurations trained beforehand: POOL of every model on every data set, trained once and kept in a folder.

A run knows some of them, drawn by its seed, on the three other data sets. Failed ones have no value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import polars as pl
from rich.console import Console
from rich.progress import track
from threadpoolctl import threadpool_limits

from jumbo_bo.bench.circuit.evaluate import alone
from jumbo_bo.bench.trained.train import DATASETS, MODELS, error
from jumbo_bo.data.history import History, Task
from jumbo_bo.learning.cache import default_folder
from jumbo_bo.paths import whole
from jumbo_bo.space.space import Params

POOL = 240  # configurations of each model and data set
FIRST_SEED = 10_000  # of their trainings


def old_runs(model: str, datasets: Sequence[str], rows: int, seed: int, folder: Path | None = None) -> History:
    """`rows` of the pool on each of these data sets."""
    space = MODELS[model].space
    rng = np.random.default_rng([seed, 2])
    tasks = []
    for dataset in datasets:
        pool = trained(model, dataset, folder)
        drawn = pool[np.sort(rng.choice(len(pool), min(rows, len(pool)), replace=False))]
        u = np.array([space.encode(row) for row in drawn.select(space.names).to_dicts()])
        errors = drawn["error"].to_numpy()
        good = np.isfinite(errors)
        tasks.append(Task(dataset, u[good], -errors[good], u[~good]))
    return History(space, tuple(tasks), direction="minimize")


def trained(model: str, dataset: str, folder: Path | None = None, jobs: int = 1, count: int = POOL) -> pl.DataFrame:
    """The pool of a model and a data set, trained when it is not in the folder yet. Another version of scikit-learn
    trains differently, so it has a pool of its own."""
    folder = folder or default_folder() / "sklearn"
    path = folder / f"{model}.{dataset}.n{count}.scikit-learn-{version('scikit-learn')}.parquet"
    with alone(path.with_suffix(".lock")):  # runs that start together train once
        if not path.exists():
            space = MODELS[model].space
            rng = np.random.default_rng([list(MODELS).index(model), list(DATASETS).index(dataset)])
            pool = [space.decode(u) for u in space.sample(rng, count)]
            seeds = range(FIRST_SEED, FIRST_SEED + count)
            console = Console(stderr=True)
            errors = track(
                errors_of(model, dataset, pool, seeds, jobs), f"{model} on {dataset}", count, console=console
            )
            table = pl.DataFrame(pool).with_columns(error=pl.Series(list(errors), dtype=pl.Float64))
            with whole(path) as part:
                table.write_parquet(part)
    return pl.read_parquet(path)


def errors_of(model: str, dataset: str, params: Sequence[Params], seeds: Iterable[int], jobs: int) -> Iterator[float]:
    """One training each, `jobs` at a time, one thread per training."""
    one = partial(error, model, dataset)
    if jobs == 1:
        with threadpool_limits(1):
            yield from map(one, params, seeds)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn"), threadpool_limits, (1,)) as pool:
        yield from pool.map(one, params, seeds, chunksize=8)


def prepare(problems: Iterable[str], jobs: int) -> None:
    """Trains the old runs of these problems."""
    pairs = (name.partition("@")[0].partition("-")[::2] for name in problems)
    wanted = {(model, other) for model, target in pairs for other in DATASETS if other != target}
    for model, dataset in sorted(wanted):
        trained(model, dataset, jobs=jobs)
