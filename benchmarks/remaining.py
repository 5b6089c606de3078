"""How often something better was left when `Optimizer.remaining` gave it a certain chance, on tables that are known.

    python benchmarks/remaining.py                  # seed 100
    python benchmarks/remaining.py --first-seed 101 --seeds 2

The development problems of the suites suzuki, buchwald and gpu, with their old runs and without. A study is asked after
5, 10, 25 and 50 trials how likely it is that a row beats the best one tried by more than a gain: 0, 1 % and 10 % of the
way from the best row of the table to its median. Needs the tables (docs/suites.md).

The Brier score is the mean squared difference between the chance and what was true (0 or 1). It is compared with that
of a constant, the share of cases in which something was left.
"""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.suites import SUITES
from jumbo_bo.optimizer import Optimizer

NAMES = ("suzuki", "buchwald", "gpu")
AFTER = (5, 10, 25, 50)
GAINS = (0.0, 0.01, 0.1)  # shares of the way from the best to the median
BINS = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)


class Case(NamedTuple):
    suite: str
    old_runs: bool
    trials: int
    gain: float
    chance: float
    left: bool


def gap(problem: Problem, rng: np.random.Generator) -> float:
    """From the best row to the median, in the units of the objective."""
    rows = problem.candidates or [problem.space.decode(u) for u in problem.space.grid()]
    values = np.array([problem.objective(row, rng) for row in rows])
    best = values.min() if problem.direction == "minimize" else values.max()
    return float(abs(np.median(values) - best))


def study(suite: str, name: str, seed: int, old_runs: bool) -> Iterator[Case]:
    problem, rng = SUITES[suite](name, None, seed), np.random.default_rng(seed)
    history, budget = problem.history if old_runs else None, max(AFTER)
    optimizer = Optimizer(problem.space, history, problem.direction, budget, seed=seed, candidates=problem.candidates)
    unit, regret = gap(problem, rng), np.inf
    for trial in range(1, budget + 1):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, problem.objective(suggestion.params, rng))
        regret = min(regret, problem.regret(suggestion.params))
        for gain in GAINS if trial in AFTER else ():
            yield Case(suite, old_runs, trial, gain, optimizer.remaining(gain * unit), regret > gain + 1e-12)


def row(name: str, cases: Sequence[Case]) -> str:
    chance, left = np.array([c.chance for c in cases]), np.array([float(c.left) for c in cases])
    brier, constant = np.mean((chance - left) ** 2), left.var()
    return f"| {name} | {len(cases)} | {chance.mean():.0%} | {left.mean():.0%} | {brier:.3f} | {constant:.3f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    problems = [(suite, name) for suite in NAMES for name in SUITES[suite].development]
    cases = [
        c for seed in seeds for suite, name in problems for old in (True, False) for c in study(suite, name, seed, old)
    ]
    print("| cases | number | mean chance | something was left | Brier score | of a constant |")
    print("| --- | --- | --- | --- | --- | --- |")
    for old, words in ((True, "with old runs"), (False, "without old runs")):
        own = [c for c in cases if c.old_runs == old]
        print(row(words, own))
        for trials in AFTER:
            print(row(f"{words}, after {trials} trials", [c for c in own if c.trials == trials]))
        for gain in GAINS:
            print(row(f"{words}, gain {gain:.0%}", [c for c in own if c.gain == gain]))
        for suite in NAMES:
            print(row(f"{words}, {suite}", [c for c in own if c.suite == suite]))
        for low, high in itertools.pairwise(BINS):
            inside = [c for c in own if low <= c.chance < high or c.chance == high == 1.0]
            if inside:
                print(row(f"{words}, chance {low:.0%} to {high:.0%}", inside))


if __name__ == "__main__":
    main()
