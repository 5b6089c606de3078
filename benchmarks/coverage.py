"""How often the 90 % interval of a suggestion holds the value that then comes.

    python benchmarks/coverage.py                  # seeds 100 to 107, by which WIDER in explain.py was chosen
    python benchmarks/coverage.py --first-seed 0

Smooth random functions on three spaces (mixed, continuous, a table) and three levels of noise. Three old tasks of 150
rows share a part with the new one and have a part of their own. 24 trials per study; suggestions that predict nothing
(the start of a study, the contrast) do not count.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable
from typing import NamedTuple

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

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
METHODS = {"jumbo-mixture": True, "jumbo-mixture, no old runs": False, "gp-ucb": True, "jumbo": True}
PHASES = ((0, 1), (1, 4), (4, 8), (8, 14), (14, TRIALS))
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=8)
    options = parser.parse_args()
    found: list[Outcome] = []
    for seed in range(options.first_seed, options.first_seed + options.seeds):
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
