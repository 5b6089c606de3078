"""The best configurations known, for the regret: python -m jumbo_bo.bench.trained.reference

RANDOM configurations with few trainings, the TOP of them with many, then STEPS steps from the best, kept when they
improve. A minute or two per problem; problems that are in the file are not done again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from jumbo_bo.bench.trained.problem import DEVELOPMENT, FEW, MANY, REPORT
from jumbo_bo.bench.trained.train import MODELS, error
from jumbo_bo.paths import whole
from jumbo_bo.space.space import Array

RANDOM, TOP, STEPS = 200, 30, 60
NEAR = 0.1  # of the gap: a step that is worse by more in few trainings gets no more of them
FILE = Path(__file__).with_name("reference.json")


def searched(name: str) -> dict[str, Any]:
    model, _, dataset = name.partition("-")
    space, rng = MODELS[model].space, np.random.default_rng(7)

    def errors(u: Array, seeds: Iterable[int]) -> Array:
        return np.array([error(model, dataset, space.decode(u), seed) for seed in seeds])

    sample = space.sample(rng, RANDOM)
    few = np.array([errors(u, range(FEW)).mean() for u in sample])
    top = np.argsort(few)[:TOP]  # NaN comes last
    table = np.array([errors(sample[i], range(MANY)) for i in top])  # (TOP, MANY)
    chosen = int(np.nanargmin(table.mean(axis=1)))
    u, own = sample[top[chosen]], table[chosen]
    median = float(np.nanmedian(few))
    for size in np.linspace(0.2, 0.02, STEPS):
        moved = np.where(rng.random(space.d) < 0.5, u + size * rng.standard_normal(space.d), u)
        near = space.snap(moved[None])[0]
        first = own[:FEW].mean()
        if errors(near, range(FEW)).mean() < first + NEAR * (median - first):  # not so for NaN
            values = errors(near, range(MANY))
            if values.mean() < own.mean():
                u, own = near, values
    gap = median - float(own[:FEW].mean())
    return {
        "few": float(own[:FEW].mean()),
        "many": float(own.mean()),
        "gap": gap,
        "failed": float(np.isnan(few).mean()),  # share of random configurations
        "scatter": float(errors(u, range(1000, 1020)).std()),  # of one training of the best configuration
        "luck": luck(table[np.isfinite(table).all(axis=1)]) / gap,
        "params": space.decode(u),
    }


def luck(table: Array) -> float:  # (configurations, trainings) ->
    """Standard deviation of a configuration's mean that comes from which trainings there are, without what they have
    in common for all configurations."""
    own = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    return float(own.std() / np.sqrt(table.shape[1]))


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
