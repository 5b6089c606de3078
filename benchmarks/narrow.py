"""Old runs that cover only a corner of the space: is what they say beyond it believed, feared, or left to the trials?

    python benchmarks/narrow.py                    # seeds 0 to 19, five minutes
    python benchmarks/narrow.py --first-seed 100   # for tuning

Random smooth functions of four parameters. Three old tasks of 100 rows share a part with the new one and have a part of
their own. Their rows lie in a corner that is `reach` wide in every parameter; the new problem is searched everywhere,
by the default method for 30 trials, with the old runs and without. Regret is the distance to the best of 200,000 random
points and at least 0.001 (the standard deviation of a function is about 1); intervals are the 90% ones of `explain.py`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from optuna.distributions import FloatDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Array, Space

D, WAVES, OLD, ROWS, TRIALS = 4, 60, 3, 100, 30
SPACE = Space({f"x{i}": FloatDistribution(0, 1) for i in range(D)})
REACHES = (1.0, 0.75, 0.5)
MARKS = (1, 5, 10, 20, 30)
FLOOR = 1e-3
Function = Callable[[Array], Array]


def smooth(rng: np.random.Generator) -> Function:
    waves, phases, heights = 2.5 * rng.normal(size=(WAVES, D)), rng.uniform(0, 2 * np.pi, WAVES), rng.normal(size=WAVES)
    return lambda u: np.cos(u @ waves.T + phases) @ (heights * np.sqrt(2 / WAVES))


def related(rng: np.random.Generator) -> list[Function]:
    shared, own = smooth(rng), [smooth(rng) for _ in range(1 + OLD)]
    return [lambda u, f=f: 0.8 * shared(u) + 0.6 * f(u) for f in own]


def study(seed: int, reach: float | None) -> tuple[Array, Array]:
    """Regret after each trial, and whether its value was inside the interval. Without a reach, without old runs."""
    rng = np.random.default_rng([seed, 77])
    new, *old = related(rng)
    top = new(np.random.default_rng(1).random((200_000, D))).max()
    rows = rng.random((OLD, ROWS, D))
    tasks = [Task(f"task {k}", u, f(u)) for k, (u, f) in enumerate(zip(rows * (reach or 1.0), old, strict=True))]
    optimizer = Optimizer(SPACE, History(SPACE, tuple(tasks)) if reach else None, "maximize", TRIALS, seed=seed)
    values, inside = [], []
    for _ in range(TRIALS):
        suggestion = optimizer.ask()
        value = float(new(SPACE.encode(suggestion.params)[None])[0])
        optimizer.tell(suggestion, value)
        values.append(value)
        inside.append(suggestion.explanation.predicted.low <= value <= suggestion.explanation.predicted.high)
    return np.maximum(top - np.maximum.accumulate(values), FLOOR), np.array(inside)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=0)
    given = parser.parse_args()
    print(f"regret after {', '.join(map(str, MARKS))} trials (geometric mean), intervals that held: trials 1 to 5, all")
    for reach in (*REACHES, None):
        studies = [study(seed, reach) for seed in range(given.first_seed, given.first_seed + given.seeds)]
        regret = np.exp(np.mean([np.log(r) for r, _ in studies], axis=0))
        held = np.mean([inside for _, inside in studies], axis=0)
        name = f"reach {reach:g}" if reach else "no old runs"
        print(
            f"{name:12}",
            *(f"{regret[t - 1]:6.3f}" for t in MARKS),
            f"  {held[:5].mean():.0%} {held.mean():.0%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
