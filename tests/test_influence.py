"""How much each parameter matters, and how the value follows it: against functions whose shares are known."""

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.influence import FEWEST, importance, slices
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

SPACE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1), "c": FloatDistribution(0, 1)})


def told(function, n=40, space=SPACE, **options):
    optimizer = Optimizer(space, **options)
    for u in space.sample(np.random.default_rng(3), n):
        optimizer.tell(space.decode(u), function(space.decode(u)))
    return optimizer


def shares(optimizer):
    return {i.name: i for i in importance(optimizer)}


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda p: 3 * p["a"] + p["b"], {"a": 0.9, "b": 0.1, "c": 0.0}),  # variances 9 : 1
        # (a - 1/2)(b - 1/2) has no share that is one parameter's alone: both have a hand in all of it
        (lambda p: (p["a"] - 0.5) * (p["b"] - 0.5), {"a": 1.0, "b": 1.0, "c": 0.0}),
    ],
    ids=["sum", "product"],
)
def test_shares_are_those_of_the_function(function, expected):
    found = shares(told(function))
    for name, share in expected.items():
        assert found[name].share == pytest.approx(share, abs=0.12), name
        assert found[name].low <= found[name].share <= found[name].high
        assert found[name].low - 0.1 <= share <= found[name].high + 0.1


def test_the_most_important_comes_first_and_more_trials_leave_less_doubt():
    few, many = (importance(told(lambda p: p["b"] + 0.3 * p["c"], n)) for n in (4, 40))
    assert [i.name for i in many] == ["b", "c", "a"]
    assert many[0].high - many[0].low < few[0].high - few[0].low


def test_choices_count_too():
    space = Space({"kind": CategoricalDistribution(("x", "y", "z")), "n": IntDistribution(1, 9)})
    found = shares(told(lambda p: 5.0 * (p["kind"] == "y") + 0.01 * p["n"], 27, space))
    assert found["kind"].share > 0.9
    assert found["n"].share < 0.1


def test_there_is_nothing_to_say_without_values_or_a_model():
    assert importance(told(lambda p: p["a"], FEWEST - 1)) == []
    assert importance(told(lambda p: p["a"], method="random")) == []


def test_it_changes_no_suggestion():
    asked, other = (told(lambda p: p["a"] + p["b"], 6) for _ in range(2))
    assert importance(asked) == importance(asked)
    slices(asked, SPACE.decode([0.5] * 3), SPACE.names)
    assert asked.ask().params == other.ask().params


def test_a_slice_is_what_is_predicted_along_it():
    optimizer, at = told(lambda p: (p["a"] - 0.3) ** 2 + p["b"]), SPACE.decode([0.9, 0.1, 0.5])
    (along,) = slices(optimizer, at, ["a"])
    assert along.values == tuple(SPACE.axes[0].decode(u) for u in along.u)
    assert list(along.predicted) == optimizer.predict([{**at, "a": v} for v in along.values])
    best = along.values[int(np.argmin([p.mean for p in along.predicted]))]
    assert best == pytest.approx(0.3, abs=0.06)
    assert along.old.size == 0


def test_all_values_of_a_short_axis_and_some_of_a_long_one():
    space = Space({"kind": CategoricalDistribution(("x", "y")), "n": IntDistribution(1, 1000)})
    kind, n = slices(told(lambda p: float(p["n"]), 8, space), {"kind": "x", "n": 5}, space.names)
    assert kind.values == ("x", "y")
    assert (n.values[0], n.values[-1]) == (1, 1000)
    assert len(n.values) == len(set(n.values)) == 41


def test_old_runs_are_shown_on_the_scale_of_the_new_trials():
    """The new values are a thousand times as large."""
    u = np.random.default_rng(0).random((200, 3))
    tasks = tuple(Task(f"old {k}", u, -((u[:, 0] - 0.5 - 0.01 * k) ** 2) - 0.1 * k) for k in range(2))
    optimizer = told(lambda p: 1000 * (p["a"] - 0.5) ** 2, 20, history=History(SPACE, tasks))
    (along,) = slices(optimizer, SPACE.decode([0.5] * 3), ["a"])
    assert along.values[int(np.argmin(along.old))] == pytest.approx(0.5, abs=0.1)
    assert 50 < np.ptp(along.old) < 1000
