"""What many old tasks cost, and what they are worth.

    python benchmarks/tasks.py [--cells 10x1000,100x1000,1000x1000,10000x50] [--problems 20] [--method jumbo-mixture]

Every task is one function of six parameters, moved at random: sum_i a_i (x_i - c_i)^2 and a ripple, with its minimum 0
at c, which is drawn anew for each task. A cell is K tasks x rows in a process of its own on one thread. It reads a
frame, learns from it and searches new problems of the same kind, ten trials each.

    read, learn, first, later   CPU seconds: the frame, the training, the first `ask()` and the tenth one
    memory                      peak of the process in GB
    R2                          of rows that nobody has seen, the median over up to 50 old tasks
    after 1, after 10           the best value so far, the geometric mean over the problems; random search beside it

Results are kept in benchmarks/results/tasks.json; what is there is not measured again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from optuna.distributions import FloatDistribution

from jumbo_bo.bench.stamp import stamp
from jumbo_bo.bench.workers import ONE_THREAD
from jumbo_bo.data.history import History
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

Array = npt.NDArray[np.float64]

D, TRIALS, JUDGED, FRESH = 6, 10, 50, 200
SPACE = Space({f"x{i}": FloatDistribution(0, 1) for i in range(D)})
SLOPE = np.array([3.0, 2.0, 1.5, 1.0, 0.7, 0.5])
RESULTS = Path(__file__).parent / "results" / "tasks.json"


def loss(x: Array, c: Array) -> Array:  # (n, D), (n, D) or (D,) -> (n,)
    far = x - c
    ripple = 0.2 * (1 - np.cos(3 * np.pi * (far[:, 0] + far[:, 1])))
    return np.asarray(1e-3 + far**2 @ SLOPE + ripple)


def centres(n: int, seed: int) -> Array:  # -> (n, D)
    return np.random.default_rng(seed).uniform(0.2, 0.8, (n, D))


def old_runs(tasks: int, rows: int) -> pl.DataFrame:
    rng, which = np.random.default_rng(1), np.repeat(np.arange(tasks), rows)
    x = rng.random((tasks * rows, D))
    columns = {f"x{i}": x[:, i] for i in range(D)}
    return pl.DataFrame({"task": which, **columns, "loss": loss(x, centres(tasks, 0)[which])})


def measure(tasks: int, rows: int, problems: int, method: str) -> dict[str, float]:
    frame = old_runs(tasks, rows)
    clock = time.process_time()
    history = History.from_frame(frame, SPACE, task="task", objective="loss")
    history.summary()
    read, clock = time.process_time() - clock, time.process_time()
    optimizer = Optimizer(SPACE, history, n_trials=TRIALS, method=method)
    past = optimizer.past
    learn = time.process_time() - clock
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    found = [_search(optimizer if i == 0 else past, c, method, i) for i, c in enumerate(centres(problems, 2))]
    values, first, later = (np.array(part) for part in zip(*found, strict=True))
    best = np.exp(np.log(np.minimum.accumulate(values, axis=1)).mean(axis=0))
    return {
        "read": read,
        "learn": learn,
        "first": float(first[0]),
        "later": float(later.mean()),
        "memory": memory,
        "R2": _fresh_r2(past, tasks) if isinstance(past, FeatureNet) else float("nan"),
        "after 1": float(best[0]),
        "after 10": float(best[-1]),
    }


def _search(past: object, c: Array, method: str, seed: int) -> tuple[list[float], float, float]:
    """The values of the trials, and the seconds of the first and of the last suggestion."""
    optimizer = (
        past if isinstance(past, Optimizer) else Optimizer(SPACE, past, n_trials=TRIALS, method=method, seed=seed)
    )
    values, seconds = [], []
    for _ in range(TRIALS):
        clock = time.process_time()
        suggestion = optimizer.ask()
        seconds.append(time.process_time() - clock)
        values.append(float(loss(SPACE.encode(suggestion.params)[None], c)[0]))
        optimizer.tell(suggestion, values[-1])
    return values, seconds[0], seconds[-1]


def _fresh_r2(net: FeatureNet, tasks: int) -> float:
    c, x = centres(tasks, 0), np.random.default_rng(3).random((FRESH, D))
    predicted, each = net.predictions(SPACE.transform(x)), []
    for k in range(0, len(net.tasks), max(1, len(net.tasks) // JUDGED)):
        z = net.warps[k](-loss(x, c[int(net.tasks[k])]))
        each.append(1 - np.mean((z - predicted[:, k]) ** 2) / np.var(z))
    return float(np.median(each))


def cell(size: str, problems: int, method: str) -> dict[str, float | str]:
    words = [sys.executable, __file__, "--cell", size, "--problems", str(problems), "--method", method]
    done = subprocess.run(words, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    return {"failed": (done.stderr.strip().splitlines() or ["killed"])[-1]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", default="10x1000,100x1000,1000x1000,10000x50")
    parser.add_argument("--problems", type=int, default=20)
    parser.add_argument("--method", default="jumbo-mixture")
    parser.add_argument("--cell", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        tasks, rows = map(int, options.cell.split("x"))
        print(json.dumps(measure(tasks, rows, options.problems, options.method)))
        return
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    names = ("read", "learn", "first", "later", "memory", "R2", "after 1", "after 10")
    print("| tasks x rows | " + " | ".join(names) + " |\n| --- |" + " --- |" * len(names))
    for size in options.cells.split(","):
        key = f"{options.method} {size} {options.problems}"
        if key not in results:
            results[key] = cell(size, options.problems, options.method) | stamp("python benchmarks/tasks.py")
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        found = results[key]
        shown = " | ".join(f"{found[name]:.3g}" for name in names) if "failed" not in found else found["failed"]
        print(f"| {size.replace('x', ' x ')} | {shown} |", flush=True)


if __name__ == "__main__":
    main()
