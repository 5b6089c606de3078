"""Do the published runs still come out as published? Repeats a sample of them and compares every value.

    python benchmarks/replay.py                       # two runs of every suite and method that can run here
    python benchmarks/replay.py --suites fcnet-dt --methods jumbo-joint,gp-ucb --runs 4

A refactoring must not change a suggestion. Every trial of a repeated run must have the value that it had when the run
was published; the first that differs is shown. Runs are drawn at random, always the same ones, from the methods and
problems in `benchmarks/results/<suite>/runs.parquet`. Another processor may round differently.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from jumbo_bo.bench.run import Run, Start, in_workers, read_runs, split_names

RESULTS = Path(__file__).parent / "results"


def drawn(suite: str, methods: list[str], count: int) -> list[Run]:
    _, heads = read_runs(RESULTS, suite)
    known = sorted({(h["method"], h["problem"], h["seed"], h["trials"]) for h in heads})
    rng = np.random.default_rng(0)
    chosen = []
    for method in methods or sorted({m for m, *_ in known}):
        runs = [Run(suite, problem, m, seed, trials) for m, problem, seed, trials in known if m == method]
        chosen += [runs[i] for i in sorted(rng.permutation(len(runs))[:count])]
    return chosen


def compared(run: Run, out: Path, start: Start) -> str:
    """What became of a run that is done again; empty when it is the same."""
    if error := start(run, out, None, "python benchmarks/replay.py"):
        return f"did not run: {error.splitlines()[-1]}"
    before, _ = read_runs(RESULTS, run.suite, run.trials)
    after, _ = read_runs(out, run.suite, run.trials)
    old, new = (
        f.filter(problem=run.problem, method=run.method, seed=run.seed).sort("trial")["value"] for f in (before, after)
    )
    differs = (old.fill_null(np.nan).fill_nan(None).ne_missing(new.fill_null(np.nan).fill_nan(None))).arg_true()
    if len(old) == len(new) and len(differs) == 0:
        return ""
    first = int(differs[0]) if len(differs) else min(len(old), len(new))
    return f"trial {first + 1} has {new[first]!r}, published was {old[first]!r}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suites", default="fcnet-dt,hpobench-mlp,synthetic")
    parser.add_argument("--methods", default="", help="default: all that are published")
    parser.add_argument("--runs", type=int, default=2, help="of every suite and method")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    pl.Config.set_fmt_float("full")
    runs = [
        run for suite in options.suites.split(",") for run in drawn(suite, split_names(options.methods), options.runs)
    ]
    same = 0
    with TemporaryDirectory() as folder, in_workers() as start, ThreadPoolExecutor(options.jobs) as pool:
        found = pool.map(partial(compared, out=Path(folder), start=start), runs)
        for run, problem in zip(runs, found, strict=True):
            same += not problem
            print(f"{run.suite} {run.problem} {run.method} seed {run.seed}: {problem or 'the same'}", flush=True)
    print(f"{same} of {len(runs)} runs are as published")
    return int(same < len(runs))


if __name__ == "__main__":
    sys.exit(main())
