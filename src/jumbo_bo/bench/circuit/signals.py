"""How alike are the old signals and the layout's score? `python -m jumbo_bo.bench.circuit.signals FOLDER`

FOLDER holds both searches (search.py), which begin with the same random designs: once as layouts, once as schematics.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import polars as pl
from scipy.stats import pearsonr, spearmanr

from jumbo_bo.bench import markdown
from jumbo_bo.bench.circuit.design import SPACE
from jumbo_bo.bench.circuit.problem import TASKS, old_runs
from jumbo_bo.errors import InputError

TOP = 0.1  # of the designs


def correlations(layouts: pl.DataFrame, schematics: pl.DataFrame) -> dict[str, tuple[float, float, float]]:
    """By signal: linear correlation, rank correlation, and which part of the best layouts is among the designs that
    are best by this signal. Rows are the same designs in the same order."""
    if not layouts.select(SPACE.names).equals(schematics.select(SPACE.names)):
        raise InputError("the two tables have different designs")
    good = layouts["score"].is_finite() & schematics["score"].is_finite()
    target = layouts.filter(good)["score"].to_numpy()
    top = max(1, round(TOP * len(target)))
    best = set(np.argsort(-target)[:top])
    found = {}
    for task in old_runs(schematics.filter(good)).tasks:
        shared = len(best & set(np.argsort(-task.y)[:top])) / top
        found[task.name] = float(pearsonr(target, task.y)[0]), float(spearmanr(target, task.y)[0]), shared
    return found


def main(folder: Path) -> None:
    layouts, schematics = (
        pl.read_parquet(folder / name).filter(pl.col("part") == "random")
        for name in ("search.parquet", "schematic_search.parquet")
    )
    found = correlations(layouts, schematics)
    rows = [[name, *(f"{value:.2f}" for value in found[name])] for name in TASKS]
    header = ["signal", "correlation", "rank correlation", f"best {TOP:.0%} that are also best by it"]
    text = markdown.document(
        "# Signals of the schematic and the score of the layout",
        f"{len(layouts)} random designs, each as a schematic and as a layout.",
        markdown.table(header, rows),
        markdown.made_by(f"python -m jumbo_bo.bench.circuit.signals {folder}"),
    )
    (folder / "signals.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
