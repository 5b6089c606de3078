"""The best configurations known, for the regret: python -m jumbo_bo.bench.trained.reference

RANDOM configurations, then STEPS steps from the best of them that are kept when they improve; each the mean of the
trainings that regret is measured with. About a minute per problem; problems that are in the file are not done again.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from jumbo_bo.bench.trained.problem import DEVELOPMENT, REPORT, mean_error
from jumbo_bo.bench.trained.train import MODELS, error
from jumbo_bo.paths import whole

RANDOM, STEPS = 200, 60
FILE = Path(__file__).with_name("reference.json")


def searched(name: str, random: int = RANDOM, steps: int = STEPS) -> dict[str, Any]:
    model, _, dataset = name.partition("-")
    space, rng = MODELS[model].space, np.random.default_rng(7)
    sample = space.sample(rng, random)
    means = np.array([mean_error(name, space.decode(u)) for u in sample])
    u, best = sample[np.nanargmin(means)], float(np.nanmin(means))
    for size in np.linspace(0.2, 0.02, steps):
        moved = np.where(rng.random(space.d) < 0.5, u + size * rng.standard_normal(space.d), u)
        near = space.snap(moved[None])[0]
        mean = mean_error(name, space.decode(near))
        if mean < best:  # not so for NaN
            u, best = near, mean
    again = [error(model, dataset, space.decode(u), 1000 + seed) for seed in range(20)]
    return {
        "best": best,
        "median": float(np.nanmedian(means)),
        "failed": float(np.isnan(means).mean()),
        "scatter": float(np.nanstd(again)),  # of one training of the best configuration
        "params": space.decode(u),
    }


def main() -> None:
    known: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))["problems"] if FILE.exists() else {}
    for name in sorted({*DEVELOPMENT, *REPORT} - set(known)):
        with threadpool_limits(1):
            known[name] = searched(name)
        print(name, known[name], file=sys.stderr, flush=True)
        versions = {package: version(package) for package in ("numpy", "scikit-learn")}
        content = {"versions": versions, "problems": dict(sorted(known.items()))}
        with whole(FILE) as part:
            part.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
