"""Learning curves out of tables and studies; what a table has to look like is said when it does not."""

import numpy as np
import optuna
import pandas as pd
import polars as pl
import pytest
from optuna.trial import TrialState, create_trial

from jumbo_bo.data.curves import from_studies, read_curves, steps_of, units
from jumbo_bo.data.warp import Warp
from jumbo_bo.errors import InputError, MissingFile

LONG = {
    "data": ["a", "a", "a", "a", "a", "b", "b"],
    "run": [1, 1, 1, 2, 2, 1, 1],
    "epoch": [3, 1, 2, 1, 2, 0, 10],
    "loss": [0.1, 0.5, 0.3, 0.9, 0.8, 5.0, 4.0],
}
COLUMNS = {"run": "run", "step": "epoch", "value": "loss"}


@pytest.mark.parametrize("kind", ["polars", "pandas", "csv", "parquet"])
def test_a_long_table_in_any_order(kind, tmp_path):
    frame = pl.DataFrame(LONG)
    source = {"polars": lambda: frame, "pandas": lambda: pd.DataFrame(LONG)}.get(
        kind, lambda: tmp_path / f"old.{kind}"
    )()
    if kind == "csv":
        frame.write_csv(source)
    if kind == "parquet":
        frame.write_parquet(source)
    found = read_curves(source, task="data", **COLUMNS)
    assert {name: len(curves) for name, curves in found.tasks.items()} == {"a": 2, "b": 1}
    assert len(found) == 3
    first = found.tasks["a"][0]
    assert first.values.tolist() == [-0.5, -0.3, -0.1]
    assert first.at == pytest.approx([1 / 3, 2 / 3, 1])
    assert first.end == -0.1
    assert found.tasks["b"][0].at == pytest.approx([0.5, 1])


def test_what_is_maximised_keeps_its_sign():
    found = read_curves(pl.DataFrame(LONG), task="data", direction="maximize", **COLUMNS)
    assert found.tasks["b"][0].end == 4.0


def test_each_file_is_a_task(tmp_path):
    for name, part in pl.DataFrame(LONG).group_by("data"):
        part.write_csv(tmp_path / f"{name[0]}.csv")
    assert set(read_curves(str(tmp_path / "*.csv"), **COLUMNS).tasks) == {"a", "b"}


def test_rows_without_a_value_are_left_out():
    odd = pl.DataFrame({"run": [1, 1, 1, None], "epoch": [1, 2, 3, 1], "loss": [0.5, None, float("nan"), 0.1]})
    (curve,) = read_curves(odd, **COLUMNS).tasks["old runs"]
    assert curve.values.tolist() == [-0.5]


def test_a_table_with_a_column_for_each_step_is_explained():
    wide = pl.DataFrame({"run": [1], "loss_1": [0.5], "loss_2": [0.4]})
    with pytest.raises(InputError, match=r"one column per step \('loss_1', 'loss_2', ...\).*unpivot"):
        read_curves(wide, **COLUMNS)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"value": "los"}, "no column 'los'; did you mean 'loss'"),
        ({"step": "data"}, "column 'data' has values that are no numbers"),
        ({"direction": "min"}, "direction is 'min'"),
        ({"value": "empty"}, "no row has"),
    ],
)
def test_mistakes_are_one_line(columns, message):
    frame = pl.DataFrame(LONG).with_columns(empty=pl.lit(None, dtype=pl.Float64))
    with pytest.raises(InputError, match=message):
        read_curves(frame, **{**COLUMNS, **columns})


def test_a_missing_file(tmp_path):
    with pytest.raises(MissingFile):
        read_curves(str(tmp_path / "*.csv"), **COLUMNS)


def test_steps_may_be_counted_in_any_way():
    for steps in ([0, 1, 2, 3], [1, 2, 3, 4], [100, 200, 300, 400]):
        step = np.array(steps, dtype=float)
        assert steps_of(step).at(step) == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert steps_of(np.array([7.0])).at(np.array([7.0])) == [1.0]


def test_studies_give_the_curves_of_their_complete_trials():
    study = optuna.create_study(study_name="old", direction="maximize")
    nan = float("nan")
    study.add_trial(create_trial(value=0.9, intermediate_values={0: 0.5, 1: nan, 2: 0.8}))
    study.add_trial(create_trial(state=TrialState.PRUNED, intermediate_values={0: 0.1}))
    study.add_trial(create_trial(state=TrialState.FAIL, intermediate_values={0: 0.1}))
    study.add_trial(create_trial(value=0.7))
    study.add_trial(create_trial(value=0.7, intermediate_values={0: nan}))
    (curve,) = from_studies([study]).tasks["old"]
    assert (curve.values.tolist(), curve.end) == ([0.5, 0.8], 0.9)
    assert list(from_studies([study, study]).tasks) == ["old", "old #2"]
    assert from_studies([optuna.create_study()]).tasks == {}


def test_studies_with_several_objectives_are_refused():
    with pytest.raises(InputError, match="2 objectives"):
        from_studies([optuna.create_study(directions=["minimize", "maximize"])])


def test_units_are_those_of_the_better_half():
    ends = np.array([0.0, -1.0, -2.0, -1e3, -1e6])
    warp = units(ends)
    assert warp(ends)[:3] == pytest.approx([0.0, -0.5, -1.0])
    assert (np.diff(warp(ends)) < 0).all()
    few = units(np.array([5.0, 5.0]), [Warp(0, 0.0, 2.0)])
    assert few(np.array([5.0, 3.0])) == pytest.approx([0.0, -1.0])
    assert np.isfinite(units(np.array([0.0]))(np.array([1e308, -1e308]))).all()
