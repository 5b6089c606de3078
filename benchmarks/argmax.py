"""CMA-ES against our short evolution on smooth acquisitions: the score reached and the CPU seconds it took.

    python benchmarks/argmax.py

Upper confidence bounds of GPs on 50 random trials of a rippled bowl, one thread, 10 functions per dimension. 'lost' is
how much less of the score the evolution reached than CMA-ES; negative means that it found the better point.
"""

from __future__ import annotations

import os

os.environ["OPENBLAS_NUM_THREADS"] = "1"

import time

import numpy as np
from optuna.distributions import FloatDistribution

from jumbo_bo.models import gp as gps
from jumbo_bo.search.acquisition import ucb
from jumbo_bo.search.argmax import domain_of
from jumbo_bo.space.space import Space

TRIALS, FUNCTIONS = 50, 10


def compare(d: int, seed: int) -> list[tuple[float, float]]:
    """(score, seconds) of the evolution and of CMA-ES."""
    rng = np.random.default_rng(seed)
    x = rng.random((TRIALS, d))
    y = 0.3 * np.sin(8 * x[:, 0]) - np.sum((x - rng.random(d)) ** 2, axis=1)
    y = (y - y.mean()) / y.std()
    model = gps.fit(gps.Kernel((gps.ard("x", d),)), {"x": x}, y)
    space = Space({f"x{i}": FloatDistribution(0, 1) for i in range(d)})
    domain = domain_of(space, lambda u: {"x": space.transform(u)})
    found = []
    for smooth in (True, False):
        start = time.process_time()
        best = domain.argmax(ucb(model, 1.0), np.random.default_rng(seed), x[np.argsort(-y)[:5]], x[:0], smooth)
        found.append((best.score, time.process_time() - start))
    return found


def main() -> None:
    compare(2, 0)  # imports scipy.stats and cma
    print("| dimensions | lost, median (worst) | evolution, s | CMA-ES, s |")
    print("| --- | --- | --- | --- |")
    for d in (2, 6, 12, 20):
        runs = np.array([compare(d, seed) for seed in range(FUNCTIONS)])  # (functions, 2, 2)
        lost = runs[:, 1, 0] - runs[:, 0, 0]
        evolution, cma = np.median(runs[:, :, 1], axis=0)
        print(f"| {d} | {np.median(lost):.4f} ({lost.max():.4f}) | {evolution:.3f} | {cma:.3f} |")


if __name__ == "__main__":
    main()
