"""The benchmark problem: many schematic simulations are known, layouts are evaluated one after the other.

Old tasks (1000 designs drawn by the seed, the same for all three; larger is better):
    schematic score, phase margin, log10 of the unity-gain bandwidth
Objective: the score of the layout, maximised. It has no noise.
Regret: against the best layout known, `best.json`. Landmark: the best schematic known, laid out, which is what a
    designer has who simulates no layouts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl
from rich.console import Console
from rich.progress import track

from jumbo_bo.bench.circuit import TASK
from jumbo_bo.bench.circuit.design import SPACE, Design
from jumbo_bo.bench.circuit.evaluate import Cache, Result, alone, check_tools, evaluate_many
from jumbo_bo.bench.circuit.search import best_known
from jumbo_bo.bench.problem import Problem
from jumbo_bo.data.history import History, Task
from jumbo_bo.errors import InputError, UserError
from jumbo_bo.learning.cache import default_folder
from jumbo_bo.paths import whole
from jumbo_bo.space.space import Array, Params

OFFLINE = 1000  # designs
TASKS = ("schematic score", "phase margin", "log UGB")
SCHEMATIC = "the best schematic, laid out"
FLOOR = 1e-3  # regrets below it count as this: a twentieth of the roughness that whole fingers cause


def problem(
    seed: int, folder: Path | None = None, tasks: Sequence[str] = TASKS, jobs: int = 1, count: int = OFFLINE
) -> Problem:
    """`folder` keeps what was simulated: the old runs of each seed, and the layouts of all runs. Default: `circuit` in
    the cache of jumbo-bo."""
    folder = folder or default_folder() / "circuit"
    unknown = set(tasks) - set(TASKS)
    if unknown or not tasks:
        raise InputError(f"no old task {sorted(unknown)}; choose from {list(TASKS)}")
    history = old_runs(offline(seed, folder, jobs, count), tasks)
    layouts = Cache(folder / f"{TASK}.layout.jsonl", "layout")
    best = float(best_known()["score"])

    def objective(params: Params, _: np.random.Generator) -> float:
        return layouts(Design.of(params)).score

    def regret(params: Params) -> float:
        value = layouts(Design.of(params)).score
        return math.inf if math.isnan(value) else max(best - value, 0.0)

    landmarks = {SCHEMATIC: best - float(best_known("schematic")["layout_score"])}
    return Problem(TASK, SPACE, history, objective, regret, "maximize", floor=FLOOR, landmarks=landmarks)


def prepare(seeds: Iterable[int], jobs: int, folder: Path | None = None) -> None:
    """Sees that all that simulations need is there, then simulates the old runs of these seeds, `jobs` designs at a
    time."""
    check_tools()
    for seed in sorted(set(seeds)):
        offline(seed, folder or default_folder() / "circuit", jobs)


def old_runs(table: pl.DataFrame, tasks: Sequence[str] = TASKS) -> History:
    """A table of schematic results as old tasks; failed designs are left out."""
    good = table.filter(pl.col("score").is_finite())
    u = np.array([SPACE.encode(row) for row in good.select(SPACE.names).iter_rows(named=True)])
    signals: dict[str, Array] = {
        "schematic score": good["score"].to_numpy(),
        "phase margin": good["pm"].to_numpy(),
        "log UGB": np.log10(good["ugb"].to_numpy()),
    }
    return History(SPACE, tuple(Task(name, u, signals[name]) for name in tasks), direction="maximize")


def offline(seed: int, folder: Path, jobs: int = 1, count: int = OFFLINE) -> pl.DataFrame:
    """The schematic designs of a seed with their specs, simulated once and then read from the folder."""
    path = folder / f"{TASK}.schematic.n{count}.s{seed:04d}.parquet"
    with alone(path.with_suffix(".lock")):  # runs of one seed that start together simulate once
        if not path.exists():
            table = _simulate(seed, jobs, count)
            with whole(path) as part:
                table.write_parquet(part)
    return pl.read_parquet(path)


def _simulate(seed: int, jobs: int, count: int) -> pl.DataFrame:
    sample = SPACE.sample(np.random.default_rng([seed, 5]), count)
    designs = [Design.of(SPACE.decode(u)) for u in sample]
    results = evaluate_many(designs, "schematic", jobs)
    text, console = f"schematics of seed {seed}", Console(stderr=True)
    table = tabulate(designs, list(track(results, text, total=count, console=console)))
    failed = count - int(table["score"].is_finite().sum())
    if failed > count // 2:
        example = next(filter(None, table["error"].to_list()))
        raise UserError(f"{failed} of {count} schematic simulations failed, for example: {example}")
    return table


def tabulate(designs: Sequence[Design], results: Sequence[Result]) -> pl.DataFrame:
    """One row per design: variables, specs (empty for a failure), score and error."""
    rows = [
        {
            **design.params,
            **(asdict(result.specs) if result.specs else {}),
            "score": result.score,
            "error": result.error,
        }
        for design, result in zip(designs, results, strict=True)
    ]
    return pl.DataFrame(rows, infer_schema_length=None)
