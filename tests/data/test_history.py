"""History: combined, fingerprinted, summed up, and wide for training."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from good_table import GOOD, SPACE, history
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.space.space import Space


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
