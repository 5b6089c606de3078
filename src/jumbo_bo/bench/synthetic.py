"""Synthetic families: everything about them is known, and every seed draws a new instance.

    branin, hartmann6   the classic functions, each task shifted and rescaled by its own random amounts
    periodic            the paper's one-dimensional pair: the same oscillation, different optima
    gp                  functions drawn from a Gaussian process; tasks share most of it

and adversarial old runs for two targets, Hartmann's function and the FCNet table of Protein (`hartmann6-shuffled`):

    related     siblings of the target, for comparison
    unrelated   smooth random functions
    shuffled    the target's own values, assigned to the wrong configurations
    inverted    siblings of the target with the sign turned: good is bad
    constant    one task, every value the same
    one-good    one sibling among nine unrelated functions

All are maximised here; the objective shows the negative. A trial has noise of 1 % of the function's spread.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from optuna.distributions import FloatDistribution
from scipy.optimize import minimize

from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.tables import FCNET, table
from jumbo_bo.bench.tabular import tabular
from jumbo_bo.data.history import History, Task
from jumbo_bo.errors import InputError
from jumbo_bo.space.space import Array, Params, Space

Function = Callable[[Array], Array]  # (m, d) in [0, 1] -> (m,), larger is better
Rng = np.random.Generator

SOURCES = ("related", "unrelated", "shuffled", "inverted", "constant", "one-good")
NOISE = 0.01  # of the spread of the function's values over the cube
FLOOR = 0.01  # of the spread: smaller regrets count as this in logarithms

HARTMANN_A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
HARTMANN_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
HARTMANN_W = np.array([1.0, 1.2, 3.0, 3.2])


def branin(u: Array) -> Array:
    a, b = 15 * u[:, 0] - 5, 15 * u[:, 1]
    bowl = (b - 5.1 / (4 * math.pi**2) * a**2 + 5 / math.pi * a - 6) ** 2
    return -(bowl + 10 * (1 - 1 / (8 * math.pi)) * np.cos(a) + 10)


def hartmann6(u: Array) -> Array:
    distance = np.sum(HARTMANN_A * (u[:, None, :] - HARTMANN_P) ** 2, axis=2)
    result: Array = np.exp(-distance) @ HARTMANN_W
    return result


def periodic(u: Array) -> Array:
    result: Array = np.sin(14 * math.pi * u[:, 0])
    return result


def random_smooth(rng: Rng, d: int, length: float, features: int = 300) -> Function:
    """A draw from a Gaussian process with a Matérn-5/2 kernel, by random Fourier features."""
    df = 5.0  # the spectral density of Matérn-nu is a Student t with 2 nu degrees of freedom
    w = rng.normal(size=(d, features)) / np.sqrt(rng.chisquare(df, features) / df) / length
    phase, weight = rng.uniform(0, 2 * math.pi, features), rng.normal(size=features)

    def f(u: Array) -> Array:
        result: Array = math.sqrt(2 / features) * np.cos(u @ w + phase) @ weight
        return result

    return f


@dataclass(frozen=True)
class Family:
    d: int
    rows: int  # of an old task
    tasks: int
    draw: Callable[[Rng, int], list[Function]]  # n related functions; the first is the target


def _moved(f: Function, d: int, shift: float) -> Callable[[Rng, int], list[Function]]:
    def draw(rng: Rng, n: int) -> list[Function]:
        moves = rng.uniform(-shift, shift, (n, d))
        scales = np.exp(rng.normal(0, 0.5, n))
        return [lambda u, a=a, s=s: s * f(u + a) for a, s in zip(moves, scales, strict=True)]  # type: ignore[misc]

    return draw


def _periodic(rng: Rng, n: int) -> list[Function]:
    def with_trend(centre: float) -> Function:
        return lambda u: periodic(u) - 6 * (u[:, 0] - centre) ** 2

    return [with_trend(centre) for centre in rng.uniform(0, 1, n)]


def _gp(rng: Rng, n: int) -> list[Function]:
    shared, own = random_smooth(rng, 3, 0.3), [random_smooth(rng, 3, 0.3) for _ in range(n)]
    return [lambda u, f=f: 0.9 * shared(u) + math.sqrt(1 - 0.9**2) * f(u) for f in own]  # type: ignore[misc]


FAMILIES = {
    "branin": Family(2, 100, 3, _moved(branin, 2, 0.1)),
    "hartmann6": Family(6, 300, 3, _moved(hartmann6, 6, 0.1)),
    "periodic": Family(1, 60, 1, _periodic),
    "gp": Family(3, 200, 3, _gp),
}
ADVERSARIAL = ("hartmann6", "protein")
PROBLEMS = (*FAMILIES, *(f"{target}-{source}" for target in ADVERSARIAL for source in SOURCES if source != "related"))


def problem(name: str, seed: int) -> Problem:
    target, _, source = name.partition("-")
    rng = np.random.default_rng([seed, 3])
    if target == "protein" and source in SOURCES:
        return replace(_table_problem(source, rng), name=name)
    if target not in FAMILIES or source not in ("", *SOURCES):
        raise InputError(f"no synthetic problem {name!r}; choose one of {list(PROBLEMS)}")
    return replace(_function_problem(FAMILIES[target], source or "related", rng), name=name)


def _function_problem(family: Family, source: str, rng: Rng) -> Problem:
    space = Space({f"x{i + 1}": FloatDistribution(0, 1) for i in range(family.d)})
    f, *siblings = family.draw(rng, family.tasks + 1)
    sample = rng.uniform(size=(2000, family.d))
    spread = float(np.std(f(sample)))
    best = maximum(f, sample)

    def objective(params: Params, noise: Rng) -> float:
        return -float(f(space.encode(params)[None])[0]) + NOISE * spread * noise.normal()

    def regret(params: Params) -> float:
        return max(best - float(f(space.encode(params)[None])[0]), 0.0)

    history = _old_runs(space, source, f, siblings, family.rows, rng)
    return Problem("", space, history, objective, regret, unit=spread, floor=FLOOR * spread)


def _table_problem(source: str, rng: Rng, rows: int = 1000) -> Problem:
    def looked_up(dataset: str) -> Function:
        values, shape = -np.log(table(FCNET, dataset).values.mean(axis=1)), FCNET.shape
        levels = np.array(shape) - 1

        def f(u: Array) -> Array:
            index = np.rint(u * levels).astype(int)
            result: Array = values[np.ravel_multi_index(tuple(index.T), shape)]
            return result

        return f

    siblings = [looked_up(dataset) for dataset in ("parkinsons", "naval", "slice")]
    history = _old_runs(FCNET.space, source, looked_up("protein"), siblings, rows, rng)
    losses = tuple(replace(task, y=-np.exp(-task.y)) for task in history.tasks)  # in the units of the target
    return tabular(FCNET, "protein", replace(history, tasks=losses), 1e-3)


def _old_runs(space: Space, source: str, f: Function, siblings: list[Function], rows: int, rng: Rng) -> History:
    count = len(siblings)
    if source in ("related", "shuffled", "constant"):
        functions = {"related": siblings, "shuffled": [f] * count, "constant": [lambda u: np.ones(len(u))]}[source]
    elif source == "inverted":
        functions = [lambda u, g=g: -g(u) for g in siblings]  # type: ignore[misc]
    else:
        width = space.transform(space.sample(rng, 1)).shape[1]
        smooth = 0.4 * math.sqrt(width)  # so that a net can learn them
        strangers = [random_smooth(rng, width, smooth) for _ in range(9 if source == "one-good" else count)]
        functions = [lambda u, g=g: g(space.transform(u)) for g in strangers]  # type: ignore[misc]
        functions += siblings[:1] if source == "one-good" else []
    tasks = []
    for i, g in enumerate(functions):
        u = space.sample(rng, rows)
        y = g(u)
        tasks.append(Task(f"{source} {i + 1}", u, rng.permutation(y) if source == "shuffled" else y))
    return History.combine(History(space, tuple(tasks)))


def maximum(f: Function, sample: Array, starts: int = 20) -> float:
    """The largest value on the unit cube: L-BFGS-B from the best of a sample."""
    values = f(sample)
    d = sample.shape[1]
    found = [float(values.max())]
    for u in sample[np.argsort(-values)[:starts]]:
        result = minimize(lambda v: -float(f(v[None])[0]), u, method="L-BFGS-B", bounds=[(0, 1)] * d)
        found.append(-float(result.fun))
    return max(found)
