"""One run of a peer: what it is told of the old runs, its trials on a problem of our suites, the usual run file.

A peer is a module beside this one with

    PACKAGE                        the distribution whose version the run's stamp shows
    build(setting: Setting) -> Peer

Everything a peer sees is oriented so that larger is better, and is the logarithm of the objective where the old tasks
span orders of magnitude. Only this module knows the user's units. Each peer runs in an environment of its own
(setup.py); `python peer.py JOB` is how run.py starts it there.
"""

from __future__ import annotations

import importlib
import json
import math
import random
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.run import Run, play, save
from jumbo_bo.bench.stamp import stamp
from jumbo_bo.bench.suites import SUITES
from jumbo_bo.data.history import Task
from jumbo_bo.data.warp import TINY, fit_warp
from jumbo_bo.learning.row_gp import best_and_others
from jumbo_bo.space.space import Params, Space

Array = npt.NDArray[np.float64]

MODULES = {
    "ax": "with_ax",
    "baybe": "with_baybe",
    "botorch-logei": "with_botorch",
    "openbox-rgpe": "with_openbox",
    "peer-random": "with_nothing",
}
GRID = 5_000  # a space of at most this many configurations is a list to choose from


class Peer(Protocol):
    def ask(self) -> Params: ...
    def tell(self, params: Params, y: float) -> None: ...  # y: larger is better


@dataclass(frozen=True)
class Caps:
    """How much of the old runs a peer is given."""

    tasks: int = 10
    rows: int = 50  # of a task


# One GP over the rows of all tasks, fitted before every trial: with 5 x 30 rows a trial already takes 23 to 80 CPU
# seconds (three trials of suzuki bromide-acid or buchwald cf3-iodide, see docs/peers.md).
CAPS = {"ax": Caps(5, 30), "baybe": Caps(5, 30)}


@dataclass(frozen=True, eq=False)
class Old:
    name: str
    params: list[Params]
    y: Array  # (n,) larger is better


@dataclass(frozen=True, eq=False)
class Setting:
    space: Space
    old: tuple[Old, ...]
    choices: list[Params] | None  # all configurations there are, None when they are too many to list
    seed: int
    trials: int


def usual_caps(peer: str) -> Caps:
    return CAPS.get(peer, Caps())


def method_name(peer: str, caps: Caps) -> str:
    """Other caps are another method, shown as an ablation is: 'ax:tasks=10,rows=100'."""
    return peer if caps == usual_caps(peer) else f"{peer}:tasks={caps.tasks},rows={caps.rows}"


def scale(problem: Problem) -> Callable[[Array], Array]:
    """Oriented values -> what a peer sees: their logarithm where the package itself would take it."""
    sign = fit_warp(np.empty(0), [task.warp for task in problem.history.tasks]).sign
    return (lambda y: sign * np.log(np.maximum(sign * y, TINY))) if sign else (lambda y: y)


def setting(problem: Problem, seed: int, trials: int, caps: Caps) -> Setting:
    """Old tasks and rows within the caps, drawn by the seed: of a task its best third and a sample of the others."""
    rng, space, history = np.random.default_rng([seed, 3]), problem.space, problem.history
    if history.target is not None:
        raise ValueError(f"{problem.name} has old runs of its own ({history.target.name!r}); peers only take old tasks")
    drawn = rng.choice(len(history.tasks), min(caps.tasks, len(history.tasks)), replace=False)
    see = scale(problem)

    def old(task: Task) -> Old:
        rows = best_and_others(task, caps.rows, rng)
        return Old(task.name, [space.decode(u) for u in task.u[rows]], see(task.y[rows]))

    tasks = tuple(old(history.tasks[i]) for i in np.sort(drawn))
    return Setting(space, tasks, choices(problem), seed, trials)


def choices(problem: Problem) -> list[Params] | None:
    if problem.candidates is not None:
        return [dict(params) for params in problem.candidates]
    if problem.space.cardinality is None or problem.space.cardinality > GRID:
        return None
    return [problem.space.decode(u) for u in problem.space.grid()]


def run_peer(problem: Problem, build: Callable[[Setting], Peer], run: Run, caps: Caps) -> tuple[list[Any], float]:
    """One row per trial, and the CPU seconds before the first one."""
    random.seed(run.seed)
    np.random.seed(run.seed)  # noqa: NPY002 - some peers draw from the global generator
    start = time.process_time()
    peer = build(setting(problem, run.seed, run.trials, caps))
    before = time.process_time() - start
    see, sign = scale(problem), -1.0 if problem.direction == "minimize" else 1.0

    def tell(params: Params, value: float) -> None:
        if not math.isfinite(value):
            raise ValueError(f"{problem.name}: {params} gave {value}; peers are not told of failed trials")
        peer.tell(params, float(see(np.array([sign * value]))[0]))

    return play(problem, peer.ask, tell, run.seed, run.trials), before


def execute(run: Run, out: Path, data: Path | None, command: str, caps: Caps) -> None:
    """Does one run in this process and writes its file."""
    module = importlib.import_module(MODULES[run.method.partition(":")[0]])
    problem = SUITES[run.suite](run.problem, data, run.seed)
    rows, before = run_peer(problem, module.build, run, caps)
    made = stamp(command, ("numpy", "jumbo-bo", module.PACKAGE))
    save(run, out, problem, rows, {**made, "caps": asdict(caps), "cpu_pretraining": before})


if __name__ == "__main__":
    job = json.loads(sys.argv[1])
    folder = Path(job["data"]) if job["data"] else None
    execute(Run(**job["run"]), Path(job["out"]), folder, job["command"], Caps(**job["caps"]))
