"""Does a belief help when it is right, and for how long does it hurt when it is wrong?

Two functions on the unit cube, without old runs: Branin, and a bowl with ripples in three dimensions whose optimum is
drawn for each seed. A right belief names a value off by 0.1 (one standard deviation) for every parameter, a wrong one a
value half the range away; both with within=0.1. Prints the mean of log10(regret) after some trials.

    python benchmarks/beliefs.py --method gp-ucb --first-seed 100 --seeds 8
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from optuna.distributions import FloatDistribution

from jumbo_bo import Optimizer, Space, about

Array = npt.NDArray[np.float64]
Problem = tuple[Callable[[Array], float], Array, float]  # function, where its optimum is, and its value there

TRIALS, SHOWN, LEAST = 25, (3, 5, 10, 15, 25), 1e-6
WITHIN = 0.1


def branin(x: Array) -> float:
    a, b = 15 * x[0] - 5, 15 * x[1]
    valley = (b - 5.1 / (4 * math.pi**2) * a**2 + 5 / math.pi * a - 6) ** 2
    return float(valley + 10 * (1 - 1 / (8 * math.pi)) * math.cos(a) + 10)


def bowl(centre: Array) -> Callable[[Array], float]:
    weights = np.array([4.0, 1.0, 0.3])
    return lambda x: float(np.sum((x - centre) ** 2 * weights) + 0.3 * np.sum(np.sin(7 * (x - centre)) ** 2))


def regrets(method: str, seed: int, problem: Problem, believed: Array | None) -> Array:  # -> (len(SHOWN),)
    function, optimum, best = problem
    names = [f"x{i}" for i in range(len(optimum))]
    beliefs = None
    if believed is not None:
        beliefs = {name: about(float(v), within=WITHIN) for name, v in zip(names, believed, strict=True)}
    space = Space({name: FloatDistribution(0, 1) for name in names})
    optimizer = Optimizer(space, n_trials=TRIALS, method=method, seed=seed, beliefs=beliefs)
    values = []
    for _ in range(TRIALS):
        suggestion = optimizer.ask()
        values.append(function(np.array([suggestion.params[name] for name in names])))
        optimizer.tell(suggestion, values[-1])
    return (np.minimum.accumulate(values) - best)[[n - 1 for n in SHOWN]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--method", default="jumbo-mixture")
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=8)
    args = parser.parse_args()
    found = defaultdict(list)
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        rng = np.random.default_rng([seed, 7])
        centre = rng.uniform(0.1, 0.9, 3)
        problems: dict[str, Problem] = {
            "branin": (branin, np.array([0.5428, 0.1517]), 0.397887),
            "bowl": (bowl(centre), centre, 0.0),
        }
        for name, problem in problems.items():
            optimum = problem[1]
            right = np.clip(optimum + rng.normal(0, WITHIN, len(optimum)), 0, 1)
            for kind, believed in (("none", None), ("right", right), ("wrong", (optimum + 0.5) % 1)):
                found[name, kind].append(np.log10(np.maximum(regrets(args.method, seed, problem, believed), LEAST)))
    print("| problem | belief | " + " | ".join(f"trial {n}" for n in SHOWN) + " |")
    print("| --- | --- |" + " --- |" * len(SHOWN))
    for (name, kind), logs in found.items():
        print(f"| {name} | {kind} | " + " | ".join(f"{m:.2f}" for m in np.mean(logs, axis=0)) + " |")


if __name__ == "__main__":
    main()
