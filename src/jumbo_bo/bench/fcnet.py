"""FCNet problems: tune a two-layer network on four UCI regression datasets, every configuration measured beforehand.

`temporal`        old task = the same dataset after 3 epochs, about 960 configurations (paper, temporal transfer)
`leave_one_out`   old tasks = the three other datasets' complete tables; needs nothing but PyPI

A trial shows the loss of one of the four training seeds; regret is of the mean over the four.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl

from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.tables import CHOICES, FILES, SPACE, Table, fcnet_table
from jumbo_bo.history import History
from jumbo_bo.space import Params

UNITS = {"protein": 1e-3, "parkinsons": 1e-3, "naval": 1e-5, "slice": 1e-4}
EPOCH3 = ("protein", "parkinsons", "naval")


def temporal(dataset: str, data_dir: Path | None = None) -> Problem:
    if dataset not in EPOCH3:
        raise ValueError(f"there are no 3-epoch runs of {dataset!r}; choose one of {list(EPOCH3)}")
    frame = pl.read_csv(_author_data(data_dir) / f"{dataset}_e3.csv")
    frame = frame.select(*SPACE.names, "valid_mse_epoch3", task=pl.lit(f"{dataset} after 3 epochs"))
    history = History.from_frame(frame, SPACE, task="task", objective="valid_mse_epoch3", direction="minimize")
    return _problem(dataset, history)


def leave_one_out(dataset: str) -> Problem:
    if dataset not in FILES:
        raise ValueError(f"no FCNet dataset {dataset!r}; choose one of {list(FILES)}")
    others = [_frame(name, fcnet_table(name)) for name in FILES if name != dataset]
    history = History.from_frame(pl.concat(others), SPACE, task="task", objective="loss", direction="minimize")
    return _problem(dataset, history)


def _problem(dataset: str, history: History) -> Problem:
    table = fcnet_table(dataset)
    mean = table.loss.mean(axis=1)
    best, second = np.unique(mean)[:2]

    def objective(params: Params, rng: np.random.Generator) -> float:
        return float(table.loss[table.row(params), rng.integers(4)])

    def regret(params: Params) -> float:
        return float(mean[table.row(params)] - best)

    # No configuration has a regret between 0 and `second - best`: the optimum counts as that in logarithms.
    return Problem(dataset, SPACE, history, objective, regret, unit=UNITS[dataset], floor=float(second - best))


def _frame(dataset: str, table: Table) -> pl.DataFrame:
    columns = {name: np.array(choices)[table.index[:, i]] for i, (name, choices) in enumerate(CHOICES.items())}
    return pl.DataFrame(columns).with_columns(loss=pl.Series(table.loss.mean(axis=1)), task=pl.lit(dataset))


def _author_data(data_dir: Path | None) -> Path:
    """The folder with the epoch-3 CSVs: `data_dir`, else $JUMBO_DATA, else shared/data beside the repository."""
    given = data_dir or (Path(os.environ["JUMBO_DATA"]) if os.environ.get("JUMBO_DATA") else None)
    roots = [given] if given else [Path.cwd().parent / "shared/data", Path(__file__).parents[4] / "shared/data"]
    for root in roots:
        for folder in (root / "jumbo-authors", root):
            if (folder / "naval_e3.csv").exists():
                return folder
    looked = ", ".join(str(root) for root in roots)
    raise FileNotFoundError(
        f"no 3-epoch runs (naval_e3.csv, ...) in {looked}; pass their folder with --data or JUMBO_DATA, "
        "or use the suite fcnet-dt, which needs no data beyond jumbo-bo[bench]"
    )
