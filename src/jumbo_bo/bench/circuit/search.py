"""The search for the best score: `python -m jumbo_bo.bench.circuit.search FOLDER [layout|schematic]`.

Random designs, then runs of CMA-ES from the best of them that is far from where earlier runs ended, with growing
populations, and last a short one around the best design of all. Every evaluation goes through the cache in the folder,
and the same seed asks for the same designs, so that an interrupted search resumes where it stopped.
"""

from __future__ import annotations

import json
import math
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

import numpy as np
import polars as pl

from jumbo_bo.bench.circuit import TASK
from jumbo_bo.bench.circuit.design import SPACE, Design
from jumbo_bo.bench.circuit.evaluate import Cache, Mode, Result, evaluate
from jumbo_bo.errors import InputError
from jumbo_bo.space.axes import Array

RANDOM = 500
RUNS = ((700, 16), (1000, 24), (1300, 40))  # (evaluations, population) of each run from a new place
POLISH = (600, 16)  # around the best
FAR = 0.5  # a new run starts at least this far from the ends of the others, in the unit cube
WORST = -10.0  # the score of a failure; the real ones are above -6
BEST = "best.json"

Row = dict[str, Any]
Score = Callable[[Array, str], float]  # (u, which part of the search asks) -> score


def best_known(mode: Mode = "layout") -> Row:
    """The best layout known: `score`, `design`, `specs`, and how it was searched. Or the best schematic, which also has
    the `layout_score` of the same design."""
    name = BEST if mode == "layout" else f"{mode}_{BEST}"
    found: Row = json.loads(files(__package__).joinpath(name).read_text())
    if found["task"] != TASK:
        raise InputError(f"{name} is for {found['task']}, expected {TASK}; search again")
    return found


def search(result_of: Callable[[Design], Result], seed: int) -> list[Row]:
    """Every evaluation, in order."""
    rows: list[Row] = []

    def score(u: Array, part: str) -> float:
        design = Design.of(SPACE.decode(np.clip(u, 0, 1)))
        result = result_of(design)
        specs = asdict(result.specs) if result.specs else {}
        rows.append({"part": part, **design.params, **specs, "score": result.score})
        return WORST if math.isnan(result.score) else result.score

    explore(score, seed)
    return rows


def explore(score: Score, seed: int) -> None:
    rng = np.random.default_rng([seed, 4])
    sample = SPACE.sample(rng, RANDOM)
    starts = sample[np.argsort([-score(u, "random") for u in sample])]
    ends: list[tuple[float, Array]] = []
    for i, (budget, population) in enumerate(RUNS):
        far = [u for u in starts if all(np.linalg.norm(u - end) > FAR for _, end in ends)]
        start = far[0] if far else starts[i]
        ends.append(climb(lambda u, part=f"cma-es {i + 1}": score(u, part), start, 0.25, budget, population, seed + i))  # type: ignore[misc]
    best = max(ends, key=lambda end: end[0])[1]
    climb(lambda u: score(u, "polish"), best, 0.05, *POLISH, seed + len(RUNS))


def climb(
    f: Callable[[Array], float], start: Array, spread: float, budget: int, population: int, seed: int
) -> tuple[float, Array]:
    """One run of CMA-ES in the unit cube: its best value and where that is."""
    with warnings.catch_warnings():  # pycma warns at import when matplotlib is absent
        warnings.simplefilter("ignore")
        import cma

    options = {"bounds": [0, 1], "popsize": population, "seed": seed + 1, "verbose": -9, "tolfun": 1e-4}
    strategy = cma.CMAEvolutionStrategy(list(start), spread, options)
    best: tuple[float, Array] = (-math.inf, start)
    spent = 0
    while spent + population <= budget and not strategy.stop():
        points = strategy.ask()
        values = [f(u) for u in points]
        strategy.tell(points, [-value for value in values])
        spent += population
        top = int(np.argmax(values))
        best = max(best, (values[top], points[top]), key=lambda pair: pair[0])
    return best


def main(folder: Path, mode: Mode = "layout", seed: int = 100) -> None:
    """Writes every evaluation as `search.parquet` and the best as `best.json`. For schematics the names begin with
    `schematic_`, and the best one is also laid out: what a designer gets without simulating layouts."""
    table = pl.DataFrame(search(Cache(folder / f"{TASK}.{mode}.jsonl", mode), seed), infer_schema_length=None)
    prefix = "" if mode == "layout" else f"{mode}_"
    table.write_parquet(folder / f"{prefix}search.parquet")
    top = table.filter(pl.col("score").is_finite()).sort("score", descending=True).row(0, named=True)
    design = {name: top[name] for name in SPACE.names}
    specs = {name: value for name, value in top.items() if name not in (*SPACE.names, "part", "score")}
    parts = ", ".join(f"{part} ({count})" for part, count in table.group_by("part", maintain_order=True).len().rows())
    how = {"evaluations": len(table), "failed": int(table["score"].is_nan().sum()), "parts": parts, "seed": seed}
    found = {"task": TASK, "score": top["score"], "design": design, "specs": specs, "search": how}
    if mode == "schematic":
        found["layout_score"] = evaluate(Design.of(design), "layout").score
    (folder / f"{prefix}{BEST}").write_text(json.dumps(found, indent=2) + "\n")
    print(f"best {mode} score {top['score']:.4f} after {len(table)} evaluations; {folder / f'{prefix}{BEST}'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), cast(Mode, (*sys.argv[2:], "layout")[0]))
