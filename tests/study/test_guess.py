"""Guesses from a table: ranges, scales, roles of columns, and reasons."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.frames import Columns, Source
from jumbo_bo.data.history import History
from jumbo_bo.data.stream import Collector
from jumbo_bo.errors import UserError
from jumbo_bo.study.guess import guess, guess_space
from jumbo_bo.study.table import read_table

N = 120
RNG = np.random.default_rng(7)


def table(**columns: Any) -> pl.DataFrame:
    """With a parameter and a result, so that a guess is possible."""
    return pl.DataFrame({"x": RNG.uniform(0, 1, N)} | columns | {"loss": RNG.normal(size=N)})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (10 ** RNG.uniform(-4.8, -1.1, N), FloatDistribution(1e-5, 0.1, log=True)),
        (RNG.uniform(0.001, 0.993, N), FloatDistribution(0.0, 1.0)),  # 3 orders of magnitude, but evenly
        ([0.05, *RNG.uniform(0.06, 0.49, N - 1)], FloatDistribution(0.05, 0.5)),
        (RNG.uniform(-39, 89, N), FloatDistribution(-40, 90)),
        ([16, *np.rint(2 ** RNG.uniform(4, 12, N - 1))], IntDistribution(16, 5000, log=True)),
        ([17, 498, *RNG.integers(17, 499, N - 2)], IntDistribution(17, 500)),
        (RNG.integers(1, 6, N), IntDistribution(1, 5)),
        (RNG.integers(0, 2, N), IntDistribution(0, 1)),
        (RNG.choice([16, 32, 64, 512], N), CategoricalDistribution((16, 32, 64, 512))),
        (RNG.choice([0.3, 0.0, 0.6], N), CategoricalDistribution((0.0, 0.3, 0.6))),
        (RNG.choice(["relu", "tanh"], N), CategoricalDistribution(("relu", "tanh"))),
        (RNG.choice(["True", "False"], N), CategoricalDistribution((False, True))),
        (RNG.choice([True, False], N), CategoricalDistribution((False, True))),
        ([*map(str, RNG.integers(1, 6, N - 1)), "auto"], IntDistribution(1, 5)),
        (RNG.choice(["4", "4.0", " 7", "1e1"], N), CategoricalDistribution((4, 7, 10))),
        (RNG.choice(["16", "32", "auto"], N), CategoricalDistribution(("16", "32", "auto"))),
        ([*RNG.choice([4.0, 7.0, 8.0], N - 2), np.nan, np.inf], CategoricalDistribution((4, 7, 8))),
    ],
)
def test_what_a_column_is_taken_for(values: Any, expected: BaseDistribution) -> None:
    assert guess(table(p=np.asarray(values))).space.distributions["p"] == expected


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("p", [3] * N, "always 3"),
        ("p", [None] * N, "empty"),
        ("p", [None, *["a"] * (N - 1)], "always 'a'"),
        ("p", range(N), "counts the rows"),
        ("p", [f"run {i}" for i in range(N)], "text with 120 different values"),
        ("p", [10**15 + 7 * i for i in range(N)], "identifiers"),
        ("p", [datetime(2024, 1, 1) + timedelta(days=i) for i in range(N)], "a time"),
        ("p", [f"2024-01-{1 + i % 5:02d}T10:00" for i in range(N)], "a time"),
        ("start_time", RNG.uniform(1.7e9, 1.71e9, N), "a time"),
        ("train_seconds", RNG.uniform(1, 60, N), "measured"),
        ("p", [[1, 2]] * (N - 1) + [[3]], "neither a number nor text"),
        ("p", [*RNG.uniform(-1, 1, N - 3) * 1e308, 1.7e308, -1.7e308, 0.5], "too wide"),
        ("p", [np.inf, 1.0] * (N // 2), "only one usable number"),
        ("", RNG.integers(0, 9, N), "bookkeeping"),
        ("run_id", RNG.integers(0, 9, N), "an id"),
        ("seed", RNG.integers(0, 9, N), "bookkeeping"),
        ("_step", RNG.integers(0, 9, N), "bookkeeping"),
        ("datetime_start", RNG.choice(["a", "b"], N), "a time"),
        ("val_accuracy", RNG.uniform(0, 1, N), "another result (--objective val_accuracy"),
    ],
)
def test_what_is_left_out_and_why(name: str, values: Any, reason: str) -> None:
    found = guess(table(**{name: values}))
    assert list(found.space.names) == ["x"]
    assert found.notes[name].startswith("left out")
    assert reason in found.notes[name]


def test_names_that_only_look_like_bookkeeping_or_results() -> None:
    names = ["number_of_layers", "seed_density", "loss_weight", "cure_time", "λ", "%", "Temperature"]
    found = guess(table(**{name: RNG.uniform(0, 1, N) for name in names}))
    assert set(found.space.names) == {"x", *names}
    assert found.objective == "loss"


def test_reasons_name_gaps_and_odd_cells() -> None:
    found = guess(table(a=[None] * 20 + [0.5, 0.25] * 50, b=["diverged", *map(str, RNG.uniform(0, 1, N - 1))]))
    assert "20 rows have none" in found.notes["a"]
    assert "'diverged' is not a usable number" in found.notes["b"]
    assert list(found.notes) == ["x", "a", "b", "loss"]


@pytest.mark.parametrize(
    ("columns", "asked", "objective", "direction", "sure"),
    [
        ({"valid_loss": 1.0}, {}, "valid_loss", "minimize", True),
        ({"testAccuracy": 1.0}, {}, "testAccuracy", "maximize", True),
        ({"valid_mse_epoch3": 1.0}, {}, "valid_mse_epoch3", "minimize", True),
        ({"value": 1.0}, {}, "value", "minimize", False),
        ({"score": 1.0, "train_loss": 1.0}, {}, "score", "maximize", True),
        ({"loss": 1.0, "acc": 1.0}, {"objective": "acc"}, "acc", "maximize", True),
        ({"strength": 1.0}, {"objective": "strength"}, "strength", "minimize", False),
        ({"strength": 1.0}, {"objective": "strength", "direction": "maximize"}, "strength", "maximize", True),
        ({"loss": 1.0}, {"direction": "maximize"}, "loss", "maximize", True),
    ],
)
def test_objective_and_direction(
    columns: dict[str, float], asked: dict[str, Any], objective: str, direction: str, sure: bool
) -> None:
    frame = pl.DataFrame({"x": RNG.uniform(0, 1, N)} | {c: RNG.normal(size=N) for c in columns})
    found = guess(frame, **asked)
    assert (found.objective, found.direction) == (objective, direction)
    assert ("assumed" in found.notes[objective]) == (not sure)
    assert list(found.space.names) == ["x"]


@pytest.mark.parametrize(
    ("columns", "asked", "expected"),
    [
        (["train_loss", "valid_loss"], {}, "--objective one of train_loss, valid_loss"),
        (["loss", "score"], {}, "loss, score look like results"),
        (["a", "b"], {}, "--objective one of x, a, b"),
        (["loss"], {"objective": "los"}, "no column 'los'; did you mean 'loss'?; pass --objective one of x, loss"),
        (["loss"], {"task": "dataset"}, "no column 'dataset'; pass --task one of x, loss"),
        (["loss"], {"ignore": ["y_*"]}, "--ignore y_* matches no column"),
        (["loss"], {"ignore": ["x"]}, "no column looks like a parameter"),
    ],
)
def test_what_cannot_be_guessed_is_asked_for(columns: list[str], asked: dict[str, Any], expected: str) -> None:
    frame = pl.DataFrame({name: RNG.normal(size=N) for name in ["x", *columns]})
    with pytest.raises(UserError) as caught:
        guess(frame, **asked)
    assert expected in str(caught.value)


def test_task() -> None:
    names = RNG.choice(["a", "b", "c"], N)
    assert guess(table(dataset=names)).task == "dataset"
    assert guess(table(study_name=names)).task == "study_name"
    both = guess(table(project=names, task=names))
    assert both.task == "task"
    assert "could be the task (--task project)" in both.notes["project"]
    assert "3 tasks" in both.notes["task"]
    assert guess(table(experiment_id=range(N))).task is None, "another one in each row"
    assert guess(table(plant=names)).task is None
    asked = guess(table(plant=names), task="plant")
    assert asked.task == "plant"
    assert list(asked.space.names) == ["x"]


def test_ignored_patterns() -> None:
    found = guess(table(u_1=RNG.normal(size=N), u_2=RNG.normal(size=N)), ignore=["u_*"])
    assert list(found.space.names) == ["x"]
    assert found.notes["u_1"] == "left out, as asked"


def test_tables_of_trackers_mark_their_parameters() -> None:
    frame = pl.DataFrame(
        {
            "number": range(N),
            "value": RNG.normal(size=N),
            "params_lr": RNG.uniform(0, 1, N),
            "other": RNG.normal(size=N),
        }
    )
    found = guess(frame)
    assert list(found.space.names) == ["lr"]
    assert found.columns == {"objective": "value", "direction": "minimize", "rename": {"params_lr": "lr"}}
    assert "'params_'" in found.notes["other"]
    history = History.from_frame(frame, found.space, **found.columns)
    assert history.n_rows == N


def test_kept_columns_are_parameters_whatever_they_look_like() -> None:
    gpus = RNG.choice(["A100", "V100"], N)
    frame = table(gpu=gpus, run_id=RNG.integers(0, 90, N), score=RNG.uniform(0, 1, N), same=[1] * N)
    assert list(guess(frame, objective="loss").space.names) == ["x"]
    found = guess(frame, keep={"gpu": None, "s*e": FloatDistribution(0.0, 2.0)}, ignore=["same"])
    assert found.space.distributions["gpu"] == CategoricalDistribution(("A100", "V100"))
    assert found.space.distributions["score"] == FloatDistribution(0.0, 2.0)
    assert found.notes["score"] == "as asked"
    assert found.objective == "loss", "not the other result, which is kept"
    assert list(found.notes) == frame.columns
    with pytest.raises(UserError, match=r"--keep gpus matches no column; did you mean 'gpu'\?"):
        guess(frame, keep={"gpus": None})
    with pytest.raises(UserError, match="same cannot be a parameter: it is always 1"):
        guess(frame, objective="loss", keep={"same": None})


def test_kept_columns_of_trackers() -> None:
    columns = {name: RNG.uniform(0, 1, N) for name in ("params_lr", "params_seed", "other", "seed")}
    frame = pl.DataFrame(columns | {"value": RNG.normal(size=N)})
    found = guess(frame, keep={"params_seed": None, "other": None})
    assert found.rename == {"params_lr": "lr", "params_seed": "seed"}
    assert list(found.space.names) == ["lr", "seed", "other"]
    both = guess(frame, keep={"seed": None, "params_seed": None})
    assert list(both.space.names) == ["lr", "params_seed", "seed"]


def test_guess_space_alone() -> None:
    space, notes = guess_space(table(), ignore=["loss"])
    assert list(space.names) == list(notes) == ["x"]


CELL = (
    st.none()
    | st.booleans()
    | st.integers(-(10**18), 10**18)
    | st.floats()
    | st.sampled_from([0.1, 0.2, 1, 2, "a", "b"])
    | st.text(max_size=5)
)


@given(st.lists(st.lists(CELL, min_size=2, max_size=30), min_size=1, max_size=3))
def test_whatever_is_guessed_reads_its_own_rows(columns: list[list[Any]]) -> None:
    n = min(map(len, columns))
    frame = pl.DataFrame([pl.Series(f"p{i}", c[:n], strict=False) for i, c in enumerate(columns)])
    frame = frame.with_columns(x=pl.int_range(n) / 7 + 0.1, loss=pl.int_range(n) / 3)
    found = guess(frame)
    assert set(found.notes) == set(frame.columns)
    collector = Collector(found.space, Columns.of(found.columns))
    collector.read(frame, Source("frame", "frame"))
    drops = [d for several in collector.reports[0].dropped.values() for d in several]
    assert sum(len(rows.y) for rows in collector.tasks()) == n - sum(d.count for d in drops)
    # A cell is empty or no number; but no number is outside of the range that was guessed from it.
    usual = {"empty", "not a number", "not an allowed value", "out of range"}
    assert {d.reason.split(" is ")[1] for d in drops} <= usual
    assert [d for d in drops if "out of range" in d.reason and "inf" not in d.example] == []


def test_real_tables(data_dir: Path) -> None:
    """The authors' data: every parameter is found with the grid it was drawn from."""
    frame = read_table(data_dir / "jumbo-authors" / "naval_e3.csv").frame
    found = guess(frame, objective="valid_mse_epoch3", ignore=["u_*"])
    assert found.direction == "minimize"
    assert {name: len(dist.choices) for name, dist in found.space.distributions.items()} == {
        "activation_fn_1": 2,
        "activation_fn_2": 2,
        "batch_size": 4,
        "dropout_1": 3,
        "dropout_2": 3,
        "init_lr": 6,
        "lr_schedule": 2,
        "n_units_1": 6,
        "n_units_2": 6,
    }
