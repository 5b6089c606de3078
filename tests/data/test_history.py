"""Rules for old runs: each test breaks when its rule does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.space.space import Space

SPACE = Space(
    {
        "lr": FloatDistribution(1e-5, 0.1, log=True),
        "units": CategoricalDistribution([16, 32, 64]),
        "act": CategoricalDistribution(["relu", "tanh"]),
        "layers": IntDistribution(1, 4),
    }
)
GOOD: dict[str, list[Any]] = {
    "lr": [1e-4, 1e-3, 1e-2, 1e-1],
    "units": [16, 32, 64, 16],
    "act": ["relu", "tanh", "relu", "tanh"],
    "layers": [1, 2, 3, 4],
    "loss": [0.5, 2.0, 30.0, 0.1],
    "dataset": ["a", "a", "b", "b"],
}


def history(changes: dict[str, Any] | None = None, **options: Any) -> History:
    frame = pl.DataFrame({**GOOD, **(changes or {})}, strict=False)
    return History.from_frame(frame, SPACE, **{"task": "dataset", "objective": "loss", **options})


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


@pytest.mark.parametrize(("odd", "shown"), [([0.1, 0.2], r"\[0.1, 0.2\]"), (Path("gelu"), "PosixPath|WindowsPath")])
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


def test_empty_history():
    h = History.empty(SPACE)
    u, z, weight = h.wide()
    assert (u.shape, z.shape, weight.shape, h.n_rows) == ((0, 4), (0, 0), (0, 0), 0)
    assert h.summary() == "0 old tasks: 0 rows used"
    assert (h + history()).fingerprint == history().fingerprint


def test_combine_joins_tasks_of_one_name_and_equals_reading_at_once():
    frame = pl.DataFrame(GOOD)
    parts = [
        History.from_frame(frame[i : i + 2], SPACE, task="dataset", objective="loss", source=f"part{i}") for i in (0, 2)
    ]
    both = parts[0] + parts[1]
    assert both.fingerprint == history().fingerprint
    doubled = History.combine(both, both)
    assert [len(t.y) for t in doubled.tasks] == [4, 4]
    # constant in each part, not together
    a, b = (History.from_frame(frame[i : i + 1], SPACE, objective="loss") for i in (0, 1))
    assert len((a + a).constant) == 1
    assert len((a + a + b).tasks) == 1


def test_combine_orients_each_source_by_its_own_direction():
    gain = history({"loss": [0.9, 0.8, 0.7, 0.6], "dataset": ["acc"] * 4}, direction="maximize")
    both = history() + gain
    assert both.tasks[1].y.tolist() == [0.9, 0.8, 0.7, 0.6]
    assert "0.6 .. 0.9" in both.summary()
    assert "0.5 .. 2" in both.summary()


def test_combine_refuses_other_spaces_and_two_targets():
    other = Space({"lr": FloatDistribution(0, 1)})
    with pytest.raises(ValueError, match="different spaces"):
        History.empty(other) + history()
    with pytest.raises(ValueError, match=r"different targets \['a', 'b'\]"):
        history(target="a") + history(target="b")
    joined = history(target="b") + history()
    assert joined.target is not None
    assert (len(joined.target.y), [t.name for t in joined.tasks]) == (4, ["a"])


def test_values_cannot_be_changed_or_built_wrong():
    task = history().tasks[0]
    with pytest.raises(ValueError, match="read-only"):
        task.y[0] = 1.0
    with pytest.raises(ValueError, match=r"needs u \(n, d\) and y \(n,\)"):
        Task("t", np.zeros((2, 1)), np.zeros(3))
    with pytest.raises(ValueError, match="finite y"):
        Task("t", np.zeros((1, 4)), np.array([np.nan]))
    with pytest.raises(ValueError, match="two tasks share a name"):
        History(SPACE, (task, task))
    with pytest.raises(ValueError, match="has 1 parameters, but the space has 4"):
        History(SPACE, (Task("t", np.zeros((1, 1)), np.zeros(1)),))


def test_fingerprint_sees_names_values_and_space():
    base = history().fingerprint
    assert history({"dataset": ["a", "a", "c", "c"]}).fingerprint != base
    assert history({"loss": [0.5, 2.0, 30.0, 0.2]}).fingerprint != base
    assert history(target="b").fingerprint != base
    assert history(direction="maximize").fingerprint != base


def test_summary_fits_a_terminal():
    long = {"dataset": ["a" * 60, "a" * 60, "b", "b"], "x" * 40: [1] * 4, "y" * 40: [1] * 4, "z" * 40: [1] * 4}
    text = history({**long, "lr": [1e-3, 9.0, 1e-3, 1e-3], "loss": [1e-5, 1.0, 4e7, 1.0]}).summary()
    assert max(map(len, text.splitlines())) <= 100
    assert "log" in text
    assert "3 rows used of 4 read" in text


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


values = st.floats(1e-5, 4e7) | st.floats(0, 1)


@given(st.lists(values, min_size=2, max_size=40, unique=True))
@settings(deadline=None, max_examples=60)
def test_minimising_a_loss_is_maximising_its_negative(loss):
    frame = pl.DataFrame({"lr": np.geomspace(1e-5, 0.1, len(loss)), "loss": loss, "gain": [-v for v in loss]})
    (low,) = History.from_frame(frame, SPACE, objective="loss", direction="minimize").tasks
    (high,) = History.from_frame(frame, SPACE, objective="gain", direction="maximize").tasks
    np.testing.assert_array_equal(low.u, high.u)
    np.testing.assert_array_equal(low.z, high.z)
    assert loss[int(np.argmax(low.z))] == pytest.approx(min(loss), abs=1e-9)


@given(st.permutations(range(12)))
@settings(deadline=None, max_examples=40)
def test_order_of_rows_does_not_matter_to_wide(order):
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "lr": rng.choice([1e-4, 1e-3, 1e-2], 12),
            "units": rng.choice([16, 32], 12),
            "layers": 1,
            "act": "relu",
            "dataset": rng.choice(["a", "b", "c"], 12),
            "loss": rng.lognormal(size=12),
        }
    )
    first = History.from_frame(frame, SPACE, task="dataset", objective="loss").wide()
    second = History.from_frame(frame[order], SPACE, task="dataset", objective="loss").wide()
    for a, b in zip(first, second, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-12)


@given(
    st.lists(st.floats(np.log(1e-5), np.log(4e7)).map(np.exp), min_size=2, max_size=60),
    st.lists(st.floats(0, 1), min_size=2, max_size=60),
)
@settings(deadline=None, max_examples=60)
def test_tasks_of_very_different_scales_become_comparable(losses, accuracies):
    tasks = [Task("loss", np.zeros((len(losses), 1)), -np.array(losses))]
    tasks.append(Task("accuracy", np.zeros((len(accuracies), 1)), np.array(accuracies)))
    for task in tasks:
        assert np.all(np.diff(task.z[np.argsort(task.y, kind="stable")]) >= 0)
        assert np.all(np.abs(task.z) < 45)
        assert np.abs(np.median(task.z)) < 3


def test_wide_matches_a_plain_loop():
    rng = np.random.default_rng(0)
    grid = SPACE.snap(rng.random((6, 4)))
    tasks = tuple(Task(f"t{k}", grid[rng.integers(0, 6, 9)], rng.normal(size=9)) for k in range(3))
    u, z, weight = History(SPACE, tasks).wide()
    assert [tuple(row) for row in u.tolist()] == sorted({tuple(row) for t in tasks for row in t.u.tolist()})
    for i, row in enumerate(u):
        for k, task in enumerate(tasks):
            here = np.all(task.u == row, axis=1)
            assert weight[i, k] == here.sum()
            assert z[i, k] == pytest.approx(task.z[here].mean() if here.any() else 0.0)


def test_the_papers_offline_data(data_dir):
    frame = pl.read_csv(data_dir / "jumbo-authors" / "naval_e3.csv")
    names = ["activation_fn_1", "batch_size", "init_lr"]
    space = Space({n: CategoricalDistribution(frame[n].unique().sort().to_list()) for n in names})
    h = History.from_frame(frame, space, objective="valid_mse_epoch3", source="naval_e3")
    assert h.n_rows == 964
    assert h.reports[0].dropped == {}
    assert "log" in h.summary()
    best = frame.row(int(frame["valid_mse_epoch3"].arg_min()), named=True)
    assert space.decode(h.tasks[0].u[np.argmax(h.tasks[0].y)]) == {n: best[n] for n in names}
