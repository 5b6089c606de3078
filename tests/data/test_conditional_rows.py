"""Old runs of parameters that do not always exist."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import optuna
import polars as pl
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from jumbo_bo.data.history import History
from jumbo_bo.data.readers import from_study, read_history
from jumbo_bo.errors import InputError
from jumbo_bo.space.space import Space

DISTS = {
    "depth": IntDistribution(1, 8),  # stands before what decides
    "booster": CategoricalDistribution(("tree", "linear")),
    "alpha": FloatDistribution(0, 1),
    "deep": FloatDistribution(0, 1),
}
SPACE = Space(DISTS, conditions={"depth": "booster == 'tree'", "alpha": "booster == 'linear'", "deep": "depth > 4"})
CONFIGURATIONS = [
    {"booster": "tree", "depth": 3},
    {"booster": "linear", "alpha": 0.5},
    {"booster": "tree", "depth": 6, "deep": 0.2},
]


def frame(*rows: dict[str, object]) -> pl.DataFrame:
    return pl.DataFrame([{**dict.fromkeys(DISTS), **row} for row in rows], infer_schema_length=None)


def test_empty_cells_of_what_does_not_exist_are_no_fault(tmp_path: Path) -> None:
    table = frame(*({**params, "loss": float(i)} for i, params in enumerate(CONFIGURATIONS)))
    table.write_csv(tmp_path / "runs.csv")
    nan = table.with_columns(pl.col("alpha", "deep").fill_null(math.nan))  # as pandas leaves them
    for history in (
        read_history(tmp_path / "runs.csv", SPACE, objective="loss"),
        History.from_frame(table, SPACE, objective="loss"),
        History.from_frame(nan, SPACE, objective="loss"),
    ):
        (task,) = history.tasks
        assert [SPACE.decode(u) for u in task.u] == [
            {name: params[name] for name in SPACE.active(params)} for params in CONFIGURATIONS
        ]
        np.testing.assert_array_equal(task.u, [SPACE.encode(params) for params in CONFIGURATIONS])
        assert "dropped" not in history.summary()


def test_a_value_of_what_does_not_exist_is_ignored() -> None:
    rows = [{**params, "loss": 1.0 + i} for i, params in enumerate(CONFIGURATIONS)]
    junk = [{"depth": 99, "alpha": -5.0, "deep": 7.0, **row} for row in rows]
    read = [History.from_frame(frame(*some), SPACE, objective="loss").tasks[0].u for some in (rows, junk)]
    np.testing.assert_array_equal(*read)


def test_an_empty_cell_of_what_exists_is_a_fault() -> None:
    rows = [{**params, "loss": 1.0 + i} for i, params in enumerate(CONFIGURATIONS)]
    history = History.from_frame(
        frame(*rows, {"booster": "tree", "loss": 5.0}, {"booster": "tree", "depth": 7, "loss": 6.0}, {"loss": 7.0}),
        SPACE,
        objective="loss",
    )
    assert history.n_rows == 3
    summary = history.summary()
    for words in ("1 x depth is empty", "1 x deep is empty", "1 x booster is empty"):
        assert words in summary


def test_rows_that_are_only_sampled_keep_their_meaning() -> None:
    rng = np.random.default_rng(0)
    rows = [SPACE.decode(u) | {"loss": float(rng.random())} for u in SPACE.sample(rng, 300)]
    history = History.from_frame(frame(*rows), SPACE, objective="loss", most_rows=50)
    (task,) = history.tasks
    assert (len(task.y), task.of[0]) == (50, 300)
    known = {row["loss"]: SPACE.encode({k: v for k, v in row.items() if k != "loss"}).tobytes() for row in rows}
    assert [known[-y] for y in task.y] == [u.tobytes() for u in task.u]


def test_a_column_that_decides_must_be_there() -> None:
    table = frame(*({**params, "loss": float(i)} for i, params in enumerate(CONFIGURATIONS))).drop("booster")
    with pytest.raises(InputError, match=r"no column 'booster', which decides whether 'depth' exists.*fill="):
        History.from_frame(table, SPACE, objective="loss")
    trees = table.filter(pl.col("depth").is_not_null())
    filled = History.from_frame(trees, SPACE, objective="loss", fill={"booster": "tree"})
    assert filled.n_rows == 2
    assert "alpha" not in filled.summary()


def test_a_column_that_is_not_needed_is_not_missed() -> None:
    table = frame({"booster": "linear", "alpha": 0.1, "loss": 1.0}, {"booster": "linear", "alpha": 0.4, "loss": 2.0})
    history = History.from_frame(table.drop("depth", "deep"), SPACE, objective="loss")
    assert "missing" not in history.summary()
    assert [SPACE.decode(u) for u in history.tasks[0].u] == [
        {"booster": "linear", "alpha": 0.1},
        {"booster": "linear", "alpha": 0.4},
    ]


def test_a_study_of_an_objective_that_asks_for_what_it_needs() -> None:
    study = optuna.create_study(study_name="old")
    for i, params in enumerate(CONFIGURATIONS):
        ranges = {name: DISTS[name] for name in params}
        study.add_trial(create_trial(params=params, distributions=ranges, value=float(i)))
    lost = {"booster": "linear", "alpha": 0.9}
    ranges = {name: DISTS[name] for name in lost}
    study.add_trial(create_trial(params=lost, distributions=ranges, state=TrialState.FAIL))
    history = from_study(study, SPACE)
    np.testing.assert_array_equal(history.tasks[0].u, [SPACE.encode(params) for params in CONFIGURATIONS])
    np.testing.assert_array_equal(history.tasks[0].failed, [SPACE.encode(lost)])
