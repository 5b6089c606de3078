"""How often the 90 % interval of a suggestion holds the value that then comes.

    python benchmarks/coverage.py                  # seeds 100 to 107, by which WIDER in explain.py was chosen
    python benchmarks/coverage.py --first-seed 0
    python benchmarks/coverage.py --suites gpu,x264 --data DATA --seeds 1     # development problems
    python benchmarks/coverage.py --suites gpu,x264 --data DATA --seeds 1 --first-seed 0     # report problems

Without --suites: smooth random functions on three spaces (mixed, continuous, a table) and three levels of noise. Three
old tasks of 150 rows share a part with the new one and have a part of their own. 24 trials per study; suggestions that
predict nothing (the start of a study, the contrast) do not count.

With --suites: 50 trials of the default method on problems of `jumbo bench`; seeds from 100 on take the problems that it
may be tuned on. Trials that failed do not count.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.suites import SUITES
from jumbo_bo.data.history import History, Task
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.learning.pretrain import pretrain
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Array, Space

TRIALS, ROWS, WAVES = 24, 150, 40
NOISES = (0.02, 0.1, 0.3)  # of functions whose standard deviation is about 1.1
SPACES = (
    Space({"x": FloatDistribution(0, 1), "kind": CategoricalDistribution(["a", "b", "c"])}),
    Space({f"x{i}": FloatDistribution(0, 1) for i in range(4)}),
    Space({f"x{i}": IntDistribution(0, 7) for i in range(4)}),
)
METHODS = {"jumbo-mixture": True, "jumbo-mixture, no old runs": False, "gp-ucb": True, "jumbo-printed": True}
PHASES = ((0, 1), (1, 4), (4, 8), (8, 14), (14, TRIALS))
SUITE_TRIALS, SUITE_PHASES = 50, ((0, 5), (5, 15), (15, 50))
Function = Callable[[Array], Array]


class Outcome(NamedTuple):
    method: str
    noise: float
    trial: int
    inside: bool


def smooth(space: Space, rng: np.random.Generator) -> Function:
    width = len(space.groups)
    frequency, phase = 2 * rng.normal(size=(width, WAVES)), rng.uniform(0, 2 * math.pi, WAVES)
    weight = rng.normal(size=WAVES) / math.sqrt(WAVES / 2)
    return lambda u: np.asarray(np.cos(space.transform(u) @ frequency + phase) @ weight)


def related(space: Space, n: int, rng: np.random.Generator) -> list[Function]:
    shared = smooth(space, rng)

    def one(own: Function) -> Function:
        return lambda u: shared(u) + 0.4 * own(u)

    return [one(smooth(space, rng)) for _ in range(n)]


def study(method: str, space: Space, past: FeatureNet | None, new: Function, noise: float, seed: int) -> list[Outcome]:
    optimizer = Optimizer(space, past, "maximize", TRIALS, method.split(",")[0], seed)
    rng, outcomes = np.random.default_rng(seed), []
    for trial in range(TRIALS):
        suggestion = optimizer.ask()
        value = float(new(space.encode(suggestion.params)[None])[0] + noise * rng.normal())
        if not math.isnan(suggestion.predicted.low):
            inside = suggestion.predicted.low <= value <= suggestion.predicted.high
            outcomes.append(Outcome(method, noise, trial, inside))
        optimizer.tell(suggestion, value)
    return outcomes


def on_problem(problem: Problem, seed: int) -> list[Outcome]:
    options = problem.direction, SUITE_TRIALS, "jumbo-mixture", seed, problem.candidates
    optimizer = Optimizer(problem.space, problem.history, *options)
    rng, outcomes = np.random.default_rng([seed, 1]), []
    for trial in range(SUITE_TRIALS):
        suggestion = optimizer.ask()
        value = problem.objective(suggestion.params, rng)
        if math.isfinite(value) and not math.isnan(suggestion.predicted.low):
            inside = suggestion.predicted.low <= value <= suggestion.predicted.high
            outcomes.append(Outcome(problem.name, math.nan, trial, inside))
        optimizer.tell(suggestion, value)
    return outcomes


def on_suites(names: list[str], seeds: range, most: int, data: Path | None) -> None:
    phases = [f"trials {a + 1} to {b}" for a, b in SUITE_PHASES]
    print(f"| suite | predictions | inside | {' | '.join(phases)} |")
    print(f"| --- | {' | '.join('---' for _ in range(2 + len(phases)))} |")
    for name in names:
        suite, found = SUITES[name], list[Outcome]()
        problems = suite.development if seeds[0] >= 100 and suite.development else suite.problems
        for problem in problems[:most]:
            for seed in seeds:
                found += on_problem(suite(problem, data, seed), seed)
        parts = [[o.inside for o in found if a <= o.trial < b] for a, b in SUITE_PHASES]
        shares = [f"{np.mean(part):.0%}" for part in parts]
        print(
            f"| {name} | {len(found)} | {np.mean([o.inside for o in found]):.0%} | {' | '.join(shares)} |", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--suites", default="", help="names of suites, with commas")
    parser.add_argument("--problems", type=int, default=8, help="of each suite, at most")
    parser.add_argument("--data", type=Path, help="folder of the tables")
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    if options.suites:
        on_suites(options.suites.split(","), seeds, options.problems, options.data)
        return
    found: list[Outcome] = []
    for seed in seeds:
        for space in SPACES:
            for noise in NOISES:
                rng = np.random.default_rng(seed)
                *old, new = related(space, 4, rng)
                rows = [space.sample(rng, ROWS) for _ in old]
                tasks = [
                    Task(f"old {k}", u, f(u) + noise * rng.normal(size=ROWS))
                    for k, (u, f) in enumerate(zip(rows, old, strict=True))
                ]
                net = pretrain(History(space, tuple(tasks)), seed=seed)
                for method, uses_old_runs in METHODS.items():
                    found += study(method, space, net if uses_old_runs else None, new, noise, seed)
    names = [f"noise {noise}" for noise in NOISES] + [f"trials {a + 1} to {b}" for a, b in PHASES]
    print(f"| method | predictions | inside | {' | '.join(names)} |")
    print(f"| --- | {' | '.join('---' for _ in range(2 + len(names)))} |")
    for method in METHODS:
        own = [o for o in found if o.method == method]
        parts = [[o.inside for o in own if o.noise == noise] for noise in NOISES]
        parts += [[o.inside for o in own if a <= o.trial < b] for a, b in PHASES]
        shares = [f"{np.mean(part):.0%}" if part else "" for part in parts]
        print(f"| {method} | {len(own)} | {np.mean([o.inside for o in own]):.1%} | {' | '.join(shares)} |")


if __name__ == "__main__":
    main()
