"""Rules for a table of old runs, its columns, cells and tasks: each test breaks when its rule does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from good_table import GOOD, SPACE, history
from optuna.distributions import CategoricalDistribution

from jumbo_bo.data.history import History
from jumbo_bo.space.space import Space


def test_call_as_in_the_readme():
    h = History.from_frame(pl.DataFrame(GOOD), SPACE, task="dataset", objective="loss", direction="minimize")
    assert [t.name for t in h.tasks] == ["a", "b"]
    assert h.tasks[0].y.tolist() == [-0.5, -2.0]
    params = {"lr": 1e-3, "units": 32, "act": "tanh", "layers": 2}
    np.testing.assert_array_equal(h.tasks[0].u[1], SPACE.encode(params))
    assert h.n_rows == 4


def test_without_a_task_column_the_source_is_the_task():
    h = history(task=None, source="old.csv")
    assert [t.name for t in h.tasks] == ["old.csv"]
    assert "dataset" in h.summary().split("ignored columns")[1]


def test_target_rows_are_kept_apart():
    h = history(target="b")
    assert h.target is not None
    assert (h.target.name, len(h.target.y), [t.name for t in h.tasks]) == ("b", 2, ["a"])
    assert history({"dataset": [1, 1, 2, 2]}, target=2).target is not None
    assert "kept out" not in history({"loss": [1.0, 2.0, 3.0, 3.0]}, target="b").summary()
    with pytest.raises(ValueError, match=r"target='bb' is not one of the tasks \['a', 'b'\]; did you mean 'b'"):
        history(target="bb")


def test_missing_parameter_is_noise_of_a_fixed_seed_on_allowed_values():
    frame = pl.DataFrame(GOOD).drop("layers").rename({"lr": "learning_rate"})
    h, again = (History.from_frame(frame, SPACE, task="dataset", objective="loss") for _ in range(2))
    assert h.fingerprint == again.fingerprint
    u = np.vstack([t.u for t in h.tasks])
    np.testing.assert_array_equal(SPACE.snap(u), u)
    assert len(set(u[:, 0])) == 4
    text = h.summary()
    assert "lr: filled with random values" in text
    assert "layers: filled with random values" in text


def test_missing_parameter_is_filled_as_told():
    frame = pl.DataFrame(GOOD).drop("layers")
    h = History.from_frame(frame, SPACE, task="dataset", objective="loss", fill={"layers": 3})
    assert {SPACE.decode(u)["layers"] for t in h.tasks for u in t.u} == {3}
    assert "layers: filled with 3" in h.summary()
    with pytest.raises(ValueError, match=r"fill sets 'layers' to 9, expected an integer in \[1, 4\]"):
        History.from_frame(frame, SPACE, task="dataset", objective="loss", fill={"layers": 9})
    with pytest.raises(ValueError, match="fill names 'layer'; did you mean 'layers'"):
        history(fill={"layer": 1})


def test_all_parameters_missing_names_both_sides_and_the_fix():
    frame = pl.DataFrame({"eta": [0.1], "loss": [1.0]})
    with pytest.raises(
        ValueError, match=r"old: none of the parameters \['lr'.*it has \['eta', 'loss'\].*rename=\{'eta'"
    ):
        History.from_frame(frame, SPACE, objective="loss", source="old")


def test_rename():
    frame = pl.DataFrame(GOOD).rename({"lr": "eta"})
    h = History.from_frame(frame, SPACE, task="dataset", objective="loss", rename={"eta": "lr"})
    assert h.fingerprint == history().fingerprint
    with pytest.raises(ValueError, match="no such column"):
        history(rename={"etaa": "rate"})
    with pytest.raises(ValueError, match="has both columns"):
        history(rename={"loss": "lr"})


@pytest.mark.parametrize(
    ("column", "bad", "reason"),
    [
        ("lr", None, "lr is empty"),
        ("lr", float("nan"), "lr is empty"),
        ("lr", 0.5, "lr is out of range"),
        ("lr", "auto", "lr is not a number"),
        ("units", 48, "units is an unknown category"),
        ("units", 128, "units is out of range"),
        ("act", "gelu", "act is an unknown category"),
        ("act", None, "act is empty"),
        ("layers", 2.5, "layers is not an allowed value"),
        ("layers", 7, "layers is out of range"),
        ("loss", None, "loss is empty or NaN"),
        ("loss", float("nan"), "loss is empty or NaN"),
        ("loss", float("inf"), "loss is not finite"),
        ("loss", 1e200, "loss is not finite"),
        ("loss", "crashed", "loss is not a number"),
        ("dataset", None, "dataset is empty"),
    ],
)
def test_bad_cell_drops_its_row_and_is_counted_with_an_example(column, bad, reason):
    cells = [*GOOD[column][:1], bad, *GOOD[column][2:]]
    h = History.from_frame(pd.DataFrame({**GOOD, column: cells}), SPACE, task="dataset", objective="loss")
    assert h.n_rows == 3
    text = " ".join(h.summary().split())
    assert f"1 x {reason}, e.g. frame row 1: {column!r} is " in text
    drops = [d for found in h.reports[0].dropped.values() for d in found]
    assert [(d.reason, d.count) for d in drops] == [(reason, 1)]
    assert ("(no task)" in text) == (column == "dataset")


@pytest.mark.parametrize(("odd", "shown"), [([0.1, 0.2], r"'\[0.1, 0.2\]'"), (Path("gelu"), "PosixPath|WindowsPath")])
def test_a_list_or_an_object_is_a_bad_cell(odd, shown):
    frame = pd.DataFrame({**GOOD, "act": [odd] * 4})
    with pytest.raises(ValueError, match=f"none of 4 rows can be used; frame row 0: 'act' is ({shown})"):
        History.from_frame(frame, SPACE, task="dataset", objective="loss")


def test_nan_in_a_column_of_task_numbers_is_no_task():
    frame = pd.DataFrame({**GOOD, "dataset": [1, 1, 1, None]})
    h = History.from_frame(frame, SPACE, task="dataset", objective="loss")
    assert h.reports[0].read == {"1.0": 3, "(no task)": 1}


def test_a_row_with_two_faults_counts_once():
    h = history({"lr": [9.0, 1e-3, 1e-2, 1e-2], "loss": [None, 1.0, 2.0, 3.0]})
    assert [d.reason for d in h.reports[0].dropped["a"]] == ["loss is empty or NaN"]
    assert h.reports[0].read == {"a": 2, "b": 2}


def test_on_bad_rows_error_stops_at_the_first_bad_row():
    cells = ["0.01", "0.01", "auto", "0.01"]
    message = "runs row 2: 'lr' is 'auto', expected a number in [1e-05, 0.1]; drop the row or pass on_bad_rows=\"skip\""
    with pytest.raises(ValueError, match="runs row 2") as caught:
        history({"lr": cells, "layers": [1, 1, 1, 99]}, on_bad_rows="error", source="runs")
    assert str(caught.value) == message
    assert history({"lr": cells}).n_rows == 3
    with pytest.raises(ValueError, match='on_bad_rows is \'drop\', expected "skip" or "error"'):
        history(on_bad_rows="drop")


def test_an_empty_cell_is_the_choice_none_where_there_is_one():
    space = Space({"penalty": CategoricalDistribution([None, "l2"])})
    frame = pl.DataFrame({"penalty": [None, "l2"], "value": [1.0, 2.0]})
    (task,) = History.from_frame(frame, space).tasks
    assert [space.decode(u)["penalty"] for u in task.u] == [None, "l2"]


def test_repeated_rows_are_kept_counted_and_averaged():
    same = {"lr": [1e-3] * 4, "units": [16] * 4, "act": ["relu"] * 4, "layers": [1] * 4, "loss": [1.0, 3.0, 2.0, 4.0]}
    h = history({**same, "dataset": ["a", "a", "a", "b"]})
    assert "2 repeated" in h.summary()
    u, z, weight = h.wide()
    assert u.shape == (1, 4)
    np.testing.assert_array_equal(weight, [[3.0, 1.0]])
    np.testing.assert_allclose(z, [[h.tasks[0].z.mean(), h.tasks[1].z.mean()]])


def test_constant_task_is_kept_out_of_training_and_said_so():
    h = history({"loss": [1.0, 1.0, 2.0, 3.0]})
    assert [t.name for t in h.tasks] == ["b"]
    assert [t.name for t in h.constant] == ["a"]
    assert "constant: kept out of training" in h.summary()
    assert h.fingerprint == History(SPACE, h.tasks).fingerprint
    with pytest.raises(ValueError, match="all usable values of 'loss' are the same"):
        history({"loss": [1.0, 1.0, 2.0, 2.0]})


def test_single_row_task_is_kept_and_noted():
    h = history({"dataset": ["a", "b", "b", "b"]})
    assert len(h.tasks[0].y) == 1
    assert np.isfinite(h.tasks[0].z).all()
    assert "a single row" in h.summary()


def test_task_without_usable_rows_is_left_out_and_reported():
    h = history({"lr": [9.0, 9.0, 1e-3, 1e-3]})
    assert [t.name for t in h.tasks] == ["b"]
    assert "0 / 2" in h.summary()
    assert "no usable rows" in h.summary()


def test_nothing_usable_is_an_error_that_names_row_column_and_fix():
    with pytest.raises(ValueError, match=r"old: none of 4 rows can be used; old row 0: 'lr' is 9.0, .*widen the space"):
        history({"lr": [9.0] * 4}, source="old")
    with pytest.raises(ValueError, match=r"frame: no rows; .*History\.empty"):
        History.from_frame(pl.DataFrame(GOOD).clear(), SPACE, task="dataset", objective="loss")


def test_objective_task_and_option_names_are_checked():
    with pytest.raises(ValueError, match=r"frame has no column 'los'; did you mean 'loss'.*pass objective= one of"):
        history(objective="los")
    with pytest.raises(ValueError, match="no column 'datasets'; did you mean 'dataset'"):
        history(task="datasets")
    with pytest.raises(ValueError, match="objective='lr' is also a parameter"):
        history(objective="lr")
    with pytest.raises(TypeError, match="unknown option 'objectiv'; did you mean 'objective'"):
        history(objectiv="loss")
    with pytest.raises(ValueError, match='direction is \'min\', expected "minimize" or "maximize"'):
        history(direction="min")
    with pytest.raises(TypeError, match="expected a Polars, pandas or Arrow table, got str"):
        History.from_frame("runs.csv", SPACE)


@pytest.mark.parametrize("convert", [pl.DataFrame.to_pandas, pl.DataFrame.to_arrow, pl.DataFrame.lazy])
def test_polars_pandas_and_arrow_give_the_same_history(convert):
    frame = pl.DataFrame({**GOOD, "lr": [1e-4, None, 1e-2, 1e-1], "act": pl.Series(GOOD["act"], dtype=pl.Categorical)})
    ours = History.from_frame(frame, SPACE, task="dataset", objective="loss")
    theirs = History.from_frame(convert(frame), SPACE, task="dataset", objective="loss")
    assert theirs.fingerprint == ours.fingerprint
    assert theirs.summary() == ours.summary()


def test_odd_frames_of_other_libraries():
    batch = pa.RecordBatch.from_pydict(GOOD)
    assert History.from_frame(batch, SPACE, task="dataset", objective="loss").fingerprint == history().fingerprint
    nullable = pd.DataFrame(GOOD).convert_dtypes()
    assert History.from_frame(nullable, SPACE, task="dataset", objective="loss").fingerprint == history().fingerprint
    twice = pd.DataFrame([[1, 2]], columns=["lr", "lr"])
    with pytest.raises(ValueError, match="the pandas frame has duplicate columns"):
        History.from_frame(twice, SPACE)


def test_neither_pandas_nor_pyarrow_is_needed():
    code = (
        "import sys, polars as pl, jumbo_bo.data.readers; from jumbo_bo.data.history import History, Space;"
        "from optuna.distributions import CategoricalDistribution as C;"
        "frame = pl.DataFrame({'act': ['relu', 'tanh'], 'value': [1.0, 2.0]});"
        "h = History.from_frame(frame, Space({'act': C(['relu', 'tanh'])})); h.wide(); h.summary();"
        "found = {'pandas', 'pyarrow', 'jax', 'torch'} & set(sys.modules); assert not found, found"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
