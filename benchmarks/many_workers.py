"""Many processes on one study: is a trial lost or a configuration tried twice, and what does a trial cost each of them?

Each process runs its share of trials with `JumboSampler` on a grid, so that two can want the same configuration, and
its objective takes no time, so that all of them decide at the same moment. CPU seconds and SQL statements are those of
one process per trial, start-up not included; the former once more for the suggestion alone.

    python benchmarks/many_workers.py postgresql+psycopg://user@host/database --processes 1 8 32 --trials 60
    python benchmarks/many_workers.py sqlite:///many.db --processes 1 4 --trials 20

What a trial costs grows with the number of finished ones. So that one process can be compared with many, it has to run
as many trials as they do together:

    python benchmarks/many_workers.py ADDRESS --processes 32 --trials 60 --grid 50 40 --method jumbo-mixture
    python benchmarks/many_workers.py ADDRESS --processes 1 --trials 1920 --grid 50 40 --method jumbo-mixture
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import uuid
from collections import Counter
from typing import NamedTuple

import optuna

from jumbo_bo.data.storage import opened

WORKER = """
import json, sys, time, optuna
from optuna.distributions import IntDistribution
from sqlalchemy import event
from sqlalchemy.engine import Engine
from jumbo_bo import JumboSampler, Space
from jumbo_bo.data.storage import opened
address, name, method, trials, height, width = sys.argv[1:]
last = {"a": int(height) - 1, "b": int(width) - 1}
space, statements, deciding = Space({k: IntDistribution(0, n) for k, n in last.items()}), [], []
class Timed(JumboSampler):
    def sample_relative(self, *of):
        start = time.process_time()
        try:
            return super().sample_relative(*of)
        finally:
            deciding.append(time.process_time() - start)
event.listen(Engine, "before_cursor_execute", lambda *_: statements.append(1))
with opened(address) as storage:
    sampler = Timed(search_space=space, seed=0, method=method)
    study = optuna.load_study(study_name=name, storage=storage, sampler=sampler)
    start, before = time.process_time(), len(statements)
    study.optimize(lambda t: sum((t.suggest_int(k, 0, n) - n // 9) ** 2 for k, n in last.items()), int(trials))
    print(json.dumps([time.process_time() - start, sum(deciding), len(statements) - before]))
"""


class Found(NamedTuple):
    """Of a typical process and per trial; the counts are of all of them."""

    cpu: float  # seconds
    deciding: float  # seconds of those
    statements: float
    counts: Counter[str]


def measure(address: str, processes: int, trials: int, method: str, grid: list[int]) -> Found:
    name = f"many-{uuid.uuid4().hex[:8]}"
    with opened(address) as storage:
        optuna.create_study(study_name=name, storage=storage)
    command = [sys.executable, "-c", WORKER, address, name, method, str(trials), *map(str, grid)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
    costs = [json.loads(worker.communicate()[0]) for worker in workers]
    assert all(worker.returncode == 0 for worker in workers)
    with opened(address) as storage:
        found = optuna.load_study(study_name=name, storage=storage).get_trials()
        optuna.delete_study(study_name=name, storage=storage)
    counts = Counter(t.state.name.lower() for t in found)
    counts["lost"] = processes * trials - len(found)
    counts["twice"] = len(found) - len({tuple(t.params.values()) for t in found})
    return Found(*(statistics.median(cost[i] for cost in costs) / trials for i in range(3)), counts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("storage")
    parser.add_argument("--processes", type=int, nargs="*", default=[1, 8, 32])
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--method", default="random")
    parser.add_argument("--grid", type=int, nargs=2, default=[64, 64])
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    print(f"{'processes':>9} {'trials':>7} {'CPU ms per trial':>17} {'to decide':>10} {'SQL per trial':>14}  found")
    for n in options.processes:
        cpu, deciding, statements, counts = measure(options.storage, n, options.trials, options.method, options.grid)
        shown = ", ".join(f"{n} {what}" for what, n in counts.items())
        print(
            f"{n:>9} {n * options.trials:>7} {1000 * cpu:>17.1f} {1000 * deciding:>10.1f} {statements:>14.1f}  {shown}",
            flush=True,
        )
