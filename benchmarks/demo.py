"""Is the demo ahead of a search without old runs? The rank of what a user would take home after 1 to 30 trials.

    python benchmarks/demo.py            # four data sets, ten seeds: ten minutes of one core
    python benchmarks/demo.py --seeds 3

The problem, its noise and the rank are those of `jumbo demo`: of 15,552 configurations, 1 is the best.
"""

from __future__ import annotations

import argparse
import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np

from jumbo_bo.bench import demo, fcnet
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Array

MARKS = (1, 5, 10, 30)


def ranks(case: demo.Case, old_runs: bool, seed: int) -> Array:  # -> (marks,)
    problem = case.problem
    history, method = (problem.history, demo.METHOD) if old_runs else (None, demo.RIVAL)
    optimizer = Optimizer(problem.space, history, problem.direction, MARKS[-1], method, seed, problem.candidates)
    best, regret, after = np.inf, np.inf, []
    for trial in range(MARKS[-1]):
        suggestion = optimizer.ask()
        value = problem.objective(suggestion.params, np.random.default_rng([seed, trial]))
        optimizer.tell(suggestion, value)
        if value < best:
            best, regret = value, problem.regret(suggestion.params)
        after.append(1 + np.searchsorted(case.losses, case.losses[0] + regret - 1e-12))
    return np.array([after[mark - 1] for mark in MARKS], dtype=float)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    seeds = range(parser.parse_args().seeds)
    print(f"median rank [worst] after trial {', '.join(map(str, MARKS))}")
    for target in fcnet.UNITS:
        case = demo.build(target)
        for old_runs in (True, False):
            found = np.array([ranks(case, old_runs, seed) for seed in seeds])
            cells = (f"{m:g} [{w:g}]" for m, w in zip(np.median(found, axis=0), found.max(axis=0), strict=True))
            print(
                f"{target:12}{'with old runs' if old_runs else 'cold start':15}",
                *(f"{cell:18}" for cell in cells),
                flush=True,
            )


if __name__ == "__main__":
    main()
