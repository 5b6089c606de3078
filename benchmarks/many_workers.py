"""Many processes on one study: is a trial lost or a configuration tried twice, and what does a trial cost each of them?

Each process runs its share of trials with `JumboSampler` on a grid of 64 x 64 configurations, so that two can want
the same one. CPU seconds and SQL statements are those of one process per trial, start-up not included.

    python benchmarks/many_workers.py postgresql+psycopg://user@host/database --processes 1 8 32 --trials 60
    python benchmarks/many_workers.py sqlite:///many.db --processes 1 4 --trials 20
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import uuid
from collections import Counter

import optuna

from jumbo_bo.data.storage import opened

WORKER = """
import json, sys, time, optuna
from optuna.distributions import IntDistribution
from sqlalchemy import event
from sqlalchemy.engine import Engine
from jumbo_bo import JumboSampler, Space
from jumbo_bo.data.storage import opened
address, name, method, trials = sys.argv[1:]
space, statements = Space({"a": IntDistribution(0, 63), "b": IntDistribution(0, 63)}), []
event.listen(Engine, "before_cursor_execute", lambda *_: statements.append(1))
with opened(address) as storage:
    sampler = JumboSampler(search_space=space, seed=0, method=method)
    study = optuna.load_study(study_name=name, storage=storage, sampler=sampler)
    start, before = time.process_time(), len(statements)
    study.optimize(lambda t: (t.suggest_int("a", 0, 63) - 3) ** 2 + (t.suggest_int("b", 0, 63) - 7) ** 2, int(trials))
    print(json.dumps([time.process_time() - start, len(statements) - before]))
"""


def measure(address: str, processes: int, trials: int, method: str) -> tuple[float, float, Counter[str]]:
    """CPU seconds and SQL statements per trial of a typical process, and how many trials are as they should be."""
    name = f"many-{uuid.uuid4().hex[:8]}"
    with opened(address) as storage:
        optuna.create_study(study_name=name, storage=storage)
    command = [sys.executable, "-c", WORKER, address, name, method, str(trials)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    costs = [json.loads(worker.communicate()[0]) for worker in workers]
    assert all(worker.returncode == 0 for worker in workers)
    with opened(address) as storage:
        found = optuna.load_study(study_name=name, storage=storage).get_trials()
        optuna.delete_study(study_name=name, storage=storage)
    counts = Counter(t.state.name.lower() for t in found)
    counts["lost"] = processes * trials - len(found)
    counts["twice"] = len(found) - len({tuple(t.params.values()) for t in found})
    cpu, statements = (statistics.median(cost[i] for cost in costs) / trials for i in range(2))
    return cpu, statements, counts


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("storage")
    parser.add_argument("--processes", type=int, nargs="*", default=[1, 8, 32])
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--method", default="random")
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    print(f"{'processes':>9} {'trials':>7} {'CPU ms per trial':>17} {'SQL per trial':>14}  found")
    for processes in options.processes:
        cpu, statements, counts = measure(options.storage, processes, options.trials, options.method)
        shown = ", ".join(f"{n} {what}" for what, n in counts.items())
        print(f"{processes:>9} {processes * options.trials:>7} {1000 * cpu:>17.1f} {statements:>14.1f}  {shown}")
