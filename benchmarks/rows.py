"""How reading and learning grow with the number of old rows, beside Polars itself; what more rows would bring.

    python benchmarks/rows.py [--rows 1e5,1e6,1e7] [--kinds parquet,csv] [--folder TMP]
    python benchmarks/rows.py --quality [--rows 1e5,1e6,2e6,4e6]

The rows are made here: 3 tasks, 12 parameters, in random order (a sum of waves, the tasks are alike, a tenth of the
variance is noise), as float32 in row groups of 500,000. A cell is a process of its own on one thread: CPU seconds and
peak memory of read_history, summary() and learning; of Polars for one pass over the same columns, and for loading them.
1e8 rows need 5 GB of disk as Parquet. With --quality: what a net knows of the true functions when it may keep so many
of 4 million rows, and how good the suggestions are on FCNet tables with noise. Results are kept in
benchmarks/results/rows.json; what is there is not measured again.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from optuna.distributions import FloatDistribution
from polars.io.plugins import register_io_source

from jumbo_bo.bench.stamp import stamp
from jumbo_bo.bench.workers import ONE_THREAD
from jumbo_bo.data.history import History, Task
from jumbo_bo.data.readers import read_history
from jumbo_bo.learning.pretrain import pretrain
from jumbo_bo.learning.training import Array32
from jumbo_bo.space.space import Space

D, TASKS, WAVES, GROUP = 12, ("a", "b", "c"), 50, 500_000
NAMES = [f"p{i}" for i in range(D)]
SPACE = Space({name: FloatDistribution(0, 1) for name in NAMES})
COLUMNS: dict[str, Any] = {"task": "task", "objective": "loss"}
QUALITY_ROWS = 4_000_000  # the most that is compared
RESULTS = Path(__file__).parent / "results" / "rows.json"


def truth(x: Array32, k: int) -> Array32:  # (n, d) -> (n,)
    """A sum of waves; a third of each task's variance is its own."""
    total = np.zeros(len(x), np.float32)
    for seed, weight in ((0, 2 / 3), (1 + k, 1 / 3)):
        rng = np.random.default_rng(seed)
        w, phase = rng.normal(scale=1.5, size=(D, WAVES)), rng.uniform(0, 2 * np.pi, WAVES)
        waves = np.cos(x @ w.astype(np.float32) + phase.astype(np.float32))
        total += np.float32(np.sqrt(2 * weight / WAVES)) * waves.sum(axis=1)
    return total


def table(rng: np.random.Generator, n: int) -> pl.DataFrame:
    x, k = rng.random((n, D), dtype=np.float32), rng.integers(len(TASKS), size=n)
    loss = np.float32(np.sqrt(0.1)) * rng.standard_normal(n, dtype=np.float32)
    for i in range(len(TASKS)):
        loss[k == i] += truth(x[k == i], i)
    columns: dict[str, Any] = {name: x[:, i] for i, name in enumerate(NAMES)}
    return pl.DataFrame({**columns, "loss": loss, "task": np.array(TASKS)[k]})


def write(file: Path, rows: int) -> None:
    """Row group by row group, so that a hundred million never are in memory."""

    def batches(*_: object) -> Iterator[pl.DataFrame]:
        rng = np.random.default_rng(rows)
        for start in range(0, rows, GROUP):
            yield table(rng, min(GROUP, rows - start))

    lazy = register_io_source(batches, schema=table(np.random.default_rng(0), 1).schema)
    if file.suffix == ".csv":
        lazy.sink_csv(file)
    else:
        lazy.sink_parquet(file, row_group_size=GROUP)


def timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def memory() -> float:  # MB, the most so far
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def ours(file: str) -> dict[str, float]:
    start = time.process_time()
    history = read_history(file, SPACE, **COLUMNS)
    out = {"read": time.process_time() - start, "read_memory": memory()}
    out["summary"] = timed(history.summary)
    out["learn"] = timed(lambda: pretrain(history))
    return out | {"memory": memory()}


def polars_scan(file: str) -> pl.LazyFrame:
    return (pl.scan_csv if file.endswith(".csv") else pl.scan_parquet)(file).select([*NAMES, "loss", "task"])


def polars_pass(file: str) -> dict[str, float]:
    seconds = timed(lambda: polars_scan(file).select(pl.all().max()).collect(engine="streaming"))
    return {"seconds": seconds, "memory": memory()}


def polars_load(file: str) -> dict[str, float]:
    return {"seconds": timed(lambda: polars_scan(file).collect()), "memory": memory()}


def quality(seed: int, *sizes: int) -> dict[str, Any]:
    """Learned from so many of QUALITY_ROWS rows: R2 on rows without noise, averaged over the tasks."""
    rng = np.random.default_rng(1)
    frame = pl.concat([table(rng, GROUP) for _ in range(QUALITY_ROWS // GROUP)])
    x = np.random.default_rng(2).random((20_000, D), dtype=np.float32)
    out = {}
    for rows in sizes:
        net = pretrain(History.from_frame(frame, SPACE, most_rows=rows, **COLUMNS), seed=seed)
        predicted, r2 = net.predictions(x.astype(float)), []
        for i, warp in enumerate(net.warps):
            z = warp(-truth(x, TASKS.index(net.tasks[i])))
            r2.append(1 - float(np.mean((predicted[:, i] - z) ** 2)) / float(np.var(z)))
        losses = [member["validation_loss"] for member in net.info["members"]]
        out[str(rows)] = {"r2": float(np.mean(r2)), "validation_loss": float(np.mean(losses))}
        print(seed, rows, out[str(rows)], file=sys.stderr, flush=True)
    return out


def suggestions(seed: int, *sizes: int) -> dict[str, Any]:
    """Rows drawn from three FCNet tables, with noise, then 20 trials on the fourth: the best value found."""
    from jumbo_bo.bench.fcnet import leave_one_out
    from jumbo_bo.optimizer import Optimizer

    problem, out = leave_one_out("protein"), {}
    for rows in sizes:
        rng, tasks = np.random.default_rng(3), []
        for task in problem.history.tasks:
            drawn = rng.integers(len(task.y), size=rows // len(problem.history.tasks))
            y = -np.exp(np.log(-task.y[drawn]) + 0.3 * rng.standard_normal(len(drawn)))
            tasks.append(Task(task.name, task.u[drawn], y))
        optimizer = Optimizer(problem.space, History(problem.space, tuple(tasks)), n_trials=20, seed=seed)
        found, trial = [], np.random.default_rng([4, seed])
        for _ in range(20):
            suggestion = optimizer.ask()
            found.append(problem.objective(suggestion.params, trial))
            optimizer.tell(suggestion, found[-1])
        out[str(rows)] = {"best": min(found)}
        print(seed, rows, out[str(rows)], file=sys.stderr, flush=True)
    return out


CELLS: dict[str, Callable[..., dict[str, float]]] = {
    f.__name__: f for f in (ours, polars_pass, polars_load, quality, suggestions)
}


def cell(name: str, *arguments: str | int) -> dict[str, Any]:
    words = [sys.executable, __file__, "--cell", name, *map(str, arguments)]
    done = subprocess.run(words, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name} {arguments} failed:\n{done.stderr}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


class Kept:
    """Results by name; what is there is not measured again."""

    def __init__(self) -> None:
        self.results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}

    def get(self, key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if key not in self.results:
            self.results[key] = make() | stamp("python benchmarks/rows.py")
            RESULTS.write_text(json.dumps(self.results, indent=1) + "\n")
            print(key, self.results[key], file=sys.stderr, flush=True)
        return dict(self.results[key])


def measure(file: Path, rows: int) -> dict[str, Any]:
    write(file, rows)
    try:
        out: dict[str, Any] = {"ours": cell("ours", str(file)), "pass": cell("polars_pass", str(file))}
        if rows <= 10_000_000:
            out["load"] = cell("polars_load", str(file))
        return out
    finally:
        file.unlink()


def growth(rows: list[int], found: list[dict[str, Any]], key: str) -> str:
    """Exponents between successive sizes: 1 is proportional to the rows, 0 independent of them."""
    seconds = [f["ours"][key] for f in found]
    steps = [
        math.log(b / a) / math.log(m / n) for n, m, a, b in zip(rows, rows[1:], seconds, seconds[1:], strict=False)
    ]
    return ", ".join(f"{s:.2f}" for s in steps)


def show_speed(kept: Kept, kind: str, rows: list[int], folder: Path) -> None:
    found = [kept.get(f"{kind} {n}", lambda n=n: measure(folder / f"rows.{kind}", n)) for n in rows]  # type: ignore[misc]
    print(f"\n{kind}: CPU seconds, and peak memory in MB\n")
    print(
        "| rows | read | M rows per s | memory | Polars, one pass | ratio | Polars, load | summary | learn | memory |"
    )
    print("| --- |" + " --- |" * 9)
    for n, f in zip(rows, found, strict=True):
        a, b = f["ours"], f["pass"]
        load = f"{f['load']['seconds']:.2f} ({f['load']['memory']:,.0f} MB)" if "load" in f else "-"
        print(
            f"| {n:,} | {a['read']:.2f} | {n / a['read'] / 1e6:.2f} | {a['read_memory']:,.0f} | {b['seconds']:.2f} | "
            f"{a['read'] / b['seconds']:.1f} | {load} | {a['summary']:.2f} | {a['learn']:.1f} | {a['memory']:,.0f} |"
        )
    print(f"\ngrowth of read: {growth(rows, found, 'read')}; of learn: {growth(rows, found, 'learn')}")


def show_quality(kept: Kept, rows: list[int], seeds: int) -> None:
    results = {
        name: [kept.get(f"{name} {s} {rows}", lambda name=name, s=s: cell(name, s, *rows)) for s in range(seeds)]  # type: ignore[misc]
        for name in ("quality", "suggestions")
    }
    columns = (("quality", "r2"), ("quality", "validation_loss"), ("suggestions", "best"))
    print("| rows kept | R2, waves | validation loss, waves | best after 20 trials, FCNet |\n| --- | --- | --- | --- |")
    for n in rows:
        cells = [_mean([found[str(n)][key] for found in results[name]]) for name, key in columns]
        print(f"| {n:,} | {' | '.join(cells)} |")


def _mean(values: list[float]) -> str:
    error = f" ± {np.std(values, ddof=1) / math.sqrt(len(values)):.4f}" if len(values) > 1 else ""
    return f"{np.mean(values):.4f}{error}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", help="how many, separated by commas")
    parser.add_argument("--kinds", default="parquet")
    parser.add_argument("--folder", help="where the files are made, and removed again")
    parser.add_argument("--quality", action="store_true")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--cell", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        name, *arguments = options.cell
        print(json.dumps(CELLS[name](*(int(a) if a.isdecimal() else a for a in arguments))))
        return
    default = "1e5,1e6,2e6,4e6" if options.quality else "1e5,1e6,1e7"
    rows, kept = [int(float(n)) for n in (options.rows or default).split(",")], Kept()
    if options.quality:
        show_quality(kept, rows, options.seeds)
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for kind in options.kinds.split(","):
            show_speed(kept, kind, rows, Path(folder))


if __name__ == "__main__":
    main()
