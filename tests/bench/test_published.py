"""What the published runs say of the default: claims of the documentation that a change of the model could undo."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
DEFAULT = "jumbo-mixture"


def runs_of(suite: str, trial: int) -> pl.DataFrame:
    return pl.read_parquet(RESULTS / suite / "runs.parquet").filter(pl.col("trial") == trial)


def regret(suite: str, trial: int) -> dict[str, float]:
    """Geometric mean over problems and seeds, of the methods that have all problems."""
    logs = runs_of(suite, trial).with_columns(pl.col("regret").clip(lower_bound=1e-9).log().alias("log"))
    means = logs.group_by("method", "problem").agg(pl.col("log").mean())
    full = means["problem"].n_unique()
    table = means.group_by("method").agg(pl.col("log").mean(), pl.len().alias("n")).filter(pl.col("n") == full)
    return {method: float(np.exp(log)) for method, log, _ in table.iter_rows()}


def test_it_does_not_settle_too_early():
    slices = runs_of("fcnet-dt", 50).filter(pl.col("problem") == "slice")
    at_the_end = dict(slices.group_by("method").agg(pl.col("regret").mean()).iter_rows())
    assert at_the_end[DEFAULT] <= at_the_end["gp-ucb"] < at_the_end["jumbo-joint"]


@pytest.mark.parametrize("trial", [5, 10])
def test_many_small_old_tasks_are_no_hindrance(trial):
    found = regret("x264", trial)
    assert found[DEFAULT] <= min(found[m] for m in ("jumbo-joint", "rgpe", "gcp", "gp-ucb"))


def test_it_has_the_best_rank_from_5_trials_on():
    lines = (RESULTS / "summary.md").read_text().split("## Average rank")[1].split("The same in each suite")[0]
    rows = [line.strip("|").split("|") for line in lines.splitlines() if line.startswith("| ") and "[" in line]
    ranks = {row[0].strip(): [float(cell.split("[")[0]) for cell in row[1:]] for row in rows}
    assert len(ranks) >= 10
    for mark in range(1, 6):  # at 5, 10, 25 and 50 trials, and over all
        assert min(ranks, key=lambda method: ranks[method][mark]) == DEFAULT


def test_without_old_runs_it_is_no_worse_than_gpsampler():
    found = regret("cold", 60)
    assert found[DEFAULT] < min(found[m] for m in ("optuna-gp", "tpe", "gp-ucb"))
