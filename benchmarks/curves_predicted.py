"""How well the ends of learning curves are predicted: constants of models/endings.py, and whether chances come true.

    python benchmarks/curves_predicted.py --variants "as it is"       # REPORT tasks, seeds 0 to 3
    python benchmarks/curves_predicted.py --development --seeds 3     # the constants: DEVELOPMENT tasks, seeds from 100

TRIALS random configurations of a task are trained one after the other, and none is pruned. After each epoch at which a
pruner would judge it, the final value of the running one is predicted from the earlier ones, with old curves and
without. The score is the mean log likelihood of "better than the best so far", larger is better.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from curves import EPOCHS, Array, drawn, errors, old_curves
from curves_data import DEVELOPMENT, REPORT

from jumbo_bo.data.curves import units
from jumbo_bo.models import endings
from jumbo_bo.pruner import is_due

TRIALS = 40
BINS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.01)
LAST_VALUE = np.array([0.0, 1.0, 0.0, 0.0])
VARIANTS = {
    "as it is": {},
    "all curves count the same": {"REACH": 1e3},
    "before any curve: the last value": {"NOTHING": endings.NOTHING._replace(m=LAST_VALUE)},
    "... the median": {"NOTHING": endings.NOTHING._replace(m=-1 + 0 * LAST_VALUE)},
}


def predicted(task: str, sources: Sequence[str], seed: int, old: bool, folder: Path | None) -> Iterator[list[float]]:
    """(chance, became the best, inside the 90% interval) of every prediction."""
    at, e = np.arange(1, EPOCHS + 1) / EPOCHS, errors(task, folder)
    order = np.random.default_rng([seed, 1]).permutation(len(e))[:TRIALS]
    tasks = old_curves(drawn(task, sources, seed), folder).tasks.values() if old else []
    warps = [units(np.array([c.end for c in curves])) for curves in tasks]
    known = [[c.within(w) for c in curves] for w, curves in zip(warps, tasks, strict=True)]
    for epoch in filter(is_due, range(1, EPOCHS)):
        until = epoch / EPOCHS

        def rows(curves: Array, until: float = until) -> Array:
            return np.array([endings.so_far(at, curve, until) for curve in curves])

        before = [(rows([c.values for c in curves]), np.array([c.end for c in curves])) for curves in known]
        for n in range(3, TRIALS):
            warp = units(-e[order[:n], -1], warps)
            z, new = warp(-e[order[:n]]), warp(-e[order[n]])
            end = endings.ending(rows(new[None])[0], rows(z), z[:, -1], before)
            inside = end.quantile(0.05) <= new[-1] <= end.quantile(0.95)
            yield [end.above(0.0), float(new[-1] > 0), float(inside)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--development", action="store_true", help="old curves are of DEVELOPMENT tasks, too")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=list(VARIANTS))
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    heads = [f"{low:.0%} to {min(high, 1):.0%}" for low, high in pairwise(BINS)]
    print(f"| | old curves | score | inside 90% | {' | '.join(f'said, came true: {head}' for head in heads)} |")
    print("| --- |" + " --- |" * (len(heads) + 3))
    first = 100 if options.development else 0
    tasks, sources = (DEVELOPMENT, DEVELOPMENT) if options.development else (REPORT, (*DEVELOPMENT, *REPORT))
    seeds = range(first, first + options.seeds)
    for name in options.variants:
        usual = {constant: getattr(endings, constant) for constant in VARIANTS[name]}
        for constant, value in VARIANTS[name].items():
            setattr(endings, constant, value)
        for old in (False, True):
            runs = [predicted(t, sources, s, old, options.folder) for t in tasks for s in seeds]
            chance, came, inside = np.array([row for run in runs for row in run]).T
            score = np.mean(np.log(np.where(came > 0, chance, 1 - chance)))
            cells = []
            for low, high in pairwise(BINS):
                some = (low <= chance) & (chance < high)
                cells.append(f"{chance[some].mean():.1%}, {came[some].mean():.1%}" if some.any() else "")
            print(f"| {name} | {'yes' if old else 'no'} | {score:.3f} | {inside.mean():.0%} | {' | '.join(cells)} |")
        for constant, value in usual.items():
            setattr(endings, constant, value)


if __name__ == "__main__":
    main()
