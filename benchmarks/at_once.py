"""What a suggestion costs when several results have come in since the last one, as for one of many processes.

    python benchmarks/at_once.py

Each line: so many results at once, as many trials pending, until there are 320 trials on a grid of 50 x 40. `ask()`
chooses from a share, as when others decide at the same moment. CPU milliseconds per `ask()`, and of those in fits of
hyperparameters.
"""

from __future__ import annotations

import random
import time
from typing import Any

from optuna.distributions import IntDistribution

from jumbo_bo import Optimizer, Space
from jumbo_bo.models import gp as gps

TRIALS, HEIGHT, WIDTH = 320, 50, 40


def measure(at_once: int) -> tuple[float, float, float]:
    """Seconds per ask, seconds of those in fits, and fits per ask."""
    space = Space({"a": IntDistribution(0, HEIGHT - 1), "b": IntDistribution(0, WIDTH - 1)})
    grid = [{"a": a, "b": b} for a in range(HEIGHT) for b in range(WIDTH)]
    random.Random(0).shuffle(grid)
    optimizer, pending = Optimizer(space), grid[TRIALS : TRIALS + at_once - 1]
    optimizer.ask([])
    spent, fits, fit = 0.0, list[float](), gps.best_theta

    def timed(*given: Any) -> Any:
        start = time.process_time()
        found = fit(*given)
        fits.append(time.process_time() - start)
        return found

    gps.best_theta = timed
    try:
        for i in range(0, TRIALS, at_once):
            for params in grid[i : i + at_once]:
                optimizer.tell(params, (params["a"] - HEIGHT // 9) ** 2 + (params["b"] - WIDTH // 9) ** 2)
            start = time.process_time()
            optimizer.ask(pending, (0, 2 * at_once) if at_once > 1 else None)
            spent += time.process_time() - start
    finally:
        gps.best_theta = fit
    asks = TRIALS / at_once
    return spent / asks, sum(fits) / asks, len(fits) / asks


if __name__ == "__main__":
    print(f"{'results at once':>15} {'ask() ms':>9} {'in fits':>8} {'fits':>5}")
    for at_once in (1, 16):
        ask, fitting, fits = measure(at_once)
        print(f"{at_once:>15} {1000 * ask:>9.1f} {1000 * fitting:>8.1f} {fits:>5.1f}", flush=True)
