"""Classic test functions without old runs: is the optimizer worth using before there is anything to learn from?

    branin              2 parameters
    levy-4, -20         many local optima in a bowl
    ackley-4, -20       many local optima; flat far from the best one
    rosenbrock-5, -20   a long curved valley
    hartmann6           6 parameters
    hartmann6-50        the same, and 44 parameters that do nothing; the seed draws which

Domains and optima are the usual ones, scaled to [0, 1]; a trial has no noise. Ackley's optimum is the centre of its
domain and Levy's is close to it. A method that likes the centre would find them by luck, so the seed moves both, in
every parameter by up to SHIFT of the domain. The others stay where they are; the table of each shows what a trial of
the centre would find.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from optuna.distributions import FloatDistribution

from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.synthetic import Function, branin, hartmann6
from jumbo_bo.data.history import History
from jumbo_bo.errors import InputError
from jumbo_bo.space.space import Array, Params, Space

SHIFT = 0.25
FLOOR = 1e-5  # of the spread of a function's values over the cube: smaller regrets count as this in logarithms
OWN = 2000  # marks the generator of a problem: suggestion n of a study uses default_rng([seed, n])


def levy(u: Array) -> Array:
    w = 1 + (20 * u - 11) / 4
    first, last, inner = w[:, 0], w[:, -1], w[:, :-1]
    waves = np.sum((inner - 1) ** 2 * (1 + 10 * np.sin(math.pi * inner + 1) ** 2), axis=1)
    result: Array = np.sin(math.pi * first) ** 2 + waves + (last - 1) ** 2 * (1 + np.sin(2 * math.pi * last) ** 2)
    return -result


def ackley(u: Array) -> Array:
    x = 65.536 * (u - 0.5)
    far, waves = np.sqrt(np.mean(x**2, axis=1)), np.mean(np.cos(2 * math.pi * x), axis=1)
    result: Array = 20 * np.exp(-0.2 * far) + np.exp(waves) - 20 - math.e
    return result


def rosenbrock(u: Array) -> Array:
    x = 15 * u - 5
    here, following = x[:, :-1], x[:, 1:]
    result: Array = np.sum(100 * (following - here**2) ** 2 + (1 - here) ** 2, axis=1)
    return -result


@dataclass(frozen=True)
class Case:
    f: Function
    d: int
    best: float = 0.0  # the largest value of f
    idle: int = 0  # parameters that do nothing
    shift: float = 0.0


BRANIN, HARTMANN = -0.39788735772973816, 3.3223680114155147
CASES = {
    "branin": Case(branin, 2, BRANIN),
    "levy-4": Case(levy, 4, shift=SHIFT),
    "levy-20": Case(levy, 20, shift=SHIFT),
    "ackley-4": Case(ackley, 4, shift=SHIFT),
    "ackley-20": Case(ackley, 20, shift=SHIFT),
    "rosenbrock-5": Case(rosenbrock, 5),
    "rosenbrock-20": Case(rosenbrock, 20),
    "hartmann6": Case(hartmann6, 6, HARTMANN),
    "hartmann6-50": Case(hartmann6, 50, HARTMANN, idle=44),
}


def problem(name: str, seed: int) -> Problem:
    if name not in CASES:
        raise InputError(f"no function {name!r}; choose one of {list(CASES)}")
    case = CASES[name]
    rng = np.random.default_rng([seed, OWN, case.d])
    used = np.sort(rng.permutation(case.d)[case.idle :])
    shift = rng.uniform(-case.shift, case.shift, len(used))
    space = Space({f"x{i + 1}": FloatDistribution(0, 1) for i in range(case.d)})

    def f(u: Array) -> Array:  # (m, d) -> (m,)
        return case.f(u[:, used] - shift)

    def value(params: Params) -> float:
        return float(f(space.encode(params)[None])[0])

    def regret(params: Params) -> float:
        return max(case.best - value(params), 0.0)

    centre = case.best - float(f(np.full((1, case.d), 0.5))[0])
    floor = FLOOR * float(np.std(f(rng.uniform(size=(2000, case.d)))))
    return Problem(
        name,
        space,
        History.empty(space),
        lambda params, _: -value(params),
        regret,
        floor=floor,
        landmarks={} if case.shift else {"centre of the domain": centre},
    )
