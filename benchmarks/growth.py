"""How the time of a suggestion grows with the number of old rows, for every method.

    python benchmarks/growth.py [--methods a,b] [--rows 1000,10000,100000]

Old runs: that many rows of the Naval, Parkinsons and Slice tables of FCNet, in equal parts; target: Protein, 62,208
configurations. A cell is a process of its own on one thread: it learns from the old runs, is told 20 random trials,
asks once to warm up, and then times four suggestions (CPU seconds, the mean). A cell ends after LIMIT seconds of CPU
time. Methods that do not see old runs are measured once. Results are kept in benchmarks/results/growth.json; what is
there is not measured again.
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

from jumbo_bo.bench.fcnet import leave_one_out
from jumbo_bo.bench.run import parse_method, split_names
from jumbo_bo.bench.stamp import stamp
from jumbo_bo.bench.workers import ONE_THREAD
from jumbo_bo.data.history import History, Task
from jumbo_bo.methods import METHODS
from jumbo_bo.optimizer import Optimizer

LIMIT = 600  # CPU seconds of one cell
TOO_LONG = 60.0  # for one suggestion
RESULTS = Path(__file__).parent / "results" / "growth.json"


def measure(method: str, rows: int) -> dict[str, float | str]:
    problem = leave_one_out("protein")
    rng = np.random.default_rng(0)
    tasks = []
    for k, task in enumerate(problem.history.tasks):
        n = (rows + k) // len(problem.history.tasks)
        chosen = rng.choice(len(task.y), n, replace=False)
        tasks.append(Task(task.name, task.u[chosen], task.y[chosen]))
    start = time.process_time()
    try:
        optimizer = Optimizer(
            problem.space, History(problem.space, tuple(tasks)), n_trials=50, method=parse_method(method)
        )
    except ValueError as error:
        return {"refuses": str(error)}
    _ = optimizer.past
    learning = time.process_time() - start
    for u in problem.space.sample(rng, 20):
        params = problem.space.decode(u)
        optimizer.tell(params, problem.objective(params, rng))
    seconds = []
    for _ in range(5):
        start = time.process_time()
        suggestion = optimizer.ask()
        seconds.append(time.process_time() - start)
        optimizer.tell(suggestion, problem.objective(suggestion.params, rng))
        if seconds[0] > TOO_LONG:
            break
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"learning": learning, "suggestion": float(np.mean(seconds[1:] or seconds)), "memory": memory}


def cell(method: str, rows: int) -> dict[str, float | str]:
    words = [sys.executable, __file__, "--cell", method, str(rows)]
    limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))  # noqa: E731
    done = subprocess.run(
        words, env=os.environ | ONE_THREAD, capture_output=True, text=True, check=False, preexec_fn=limit
    )
    if done.returncode == 0:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    if done.returncode in (-9, -24):  # SIGKILL, SIGXCPU
        return {"over": float(LIMIT)}
    raise RuntimeError(f"{method} with {rows} rows failed:\n{done.stderr}")


def shown(result: dict[str, float | str]) -> str:
    if "refuses" in result:
        return "refuses"
    if "over" in result:
        return f"over {result['over']:.0f} s"
    learning, suggestion = float(result["learning"]), float(result["suggestion"])
    return f"{learning:.1f} + {suggestion:.3f}" if suggestion <= TOO_LONG else f"{learning:.1f} + over {TOO_LONG:.0f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--rows", default="1000,10000,100000")
    parser.add_argument("--cell", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cell:
        print(json.dumps(measure(options.cell[0], int(options.cell[1]))))
        return
    methods, rows = split_names(options.methods), [int(n) for n in options.rows.split(",")]
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for method in methods:
        recipe = parse_method(method)
        blind = recipe.learns is None
        for n in rows:
            if blind and f"{method} {rows[0]}" in results:
                results.setdefault(f"{method} {n}", results[f"{method} {rows[0]}"])
            if f"{method} {n}" not in results:
                results[f"{method} {n}"] = cell(method, n) | stamp("python benchmarks/growth.py")
                RESULTS.write_text(json.dumps(results, indent=1) + "\n")
            print(f"{method}, {n:,} rows: {shown(results[f'{method} {n}'])}", file=sys.stderr, flush=True)
    print("CPU seconds: learning from the old runs + one suggestion, by the number of old rows.\n")
    print("| method | " + " | ".join(f"{n:,}" for n in rows) + " |\n| --- |" + " --- |" * len(rows))
    for method in methods:
        print(f"| {method} | " + " | ".join(shown(results[f"{method} {n}"]) for n in rows) + " |")


if __name__ == "__main__":
    main()
