"""Optimizer.forget and replace: as if the trials had never been told, or had been told right."""

import math

import numpy as np
import polars as pl
import pytest

from bowl import SPACE, told, value
from jumbo_bo.data.history import History
from jumbo_bo.errors import InputError
from jumbo_bo.optimizer import Optimizer

ODD = {"x": 0.75, "n": 5}


def outcomes(optimizer):
    return [(params, None if math.isnan(y) else y) for params, y in optimizer.told]


def old_runs():
    rng = np.random.default_rng(0)
    rows = [SPACE.decode(u) for u in SPACE.sample(rng, 24)]
    losses = [value(row) + 0.01 * rng.random() for row in rows]
    frame = pl.DataFrame(rows).with_columns(loss=pl.Series(losses), task=pl.Series(["a", "b"] * 12))
    return History.from_frame(frame, SPACE, task="task", objective="loss")


@pytest.mark.parametrize("method", ["gp-ucb", "scaml-gp", "cma-es", "bohb"])
def test_the_next_suggestion_is_as_if_they_had_never_been_told(method):
    optimizer = Optimizer(SPACE, old_runs(), method=method, n_trials=30, seed=4)
    for i in range(14):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, math.nan if i in (1, 4) else value(suggestion.params))
    assert len(optimizer.forget()) == 2
    fresh = optimizer.restarted()
    for params, y in optimizer.told:
        fresh.tell(params, y)
    for _ in range(4):  # soon there are as many trials as before, but not the same ones
        here, there = optimizer.ask(), fresh.ask()
        assert here.params == there.params
        np.testing.assert_equal(here.explanation.to_json(), there.explanation.to_json())
        optimizer.tell(here, value(here.params))
        fresh.tell(there, value(there.params))


def test_failed_ones_are_forgotten_and_returned():
    optimizer = told(3)
    kept = outcomes(optimizer)
    crashed = optimizer.ask()
    optimizer.fail(crashed)
    optimizer.tell(kept[0][0], math.inf)  # a repeat that failed: only that goes
    assert optimizer.forget() == [crashed.params, kept[0][0]]
    assert outcomes(optimizer) == kept
    assert optimizer.forget() == []


def test_a_failure_teaches_nothing_once_it_is_forgotten():
    """The same five failures as in a study that keeps them, and none of them matters any more."""
    kept, forgot, spared = (told(0) for _ in range(3))
    for optimizer in (kept, forgot):
        for x in (0.2, 0.25, 0.3, 0.35, 0.4):
            optimizer.fail({"x": x, "n": 2})
    forgot.forget()
    for optimizer in (kept, forgot, spared):
        for params in (ODD, {"x": 0.1, "n": 3}, {"x": 0.9, "n": 2}):
            optimizer.tell(params, value(params))
    assert forgot.ask().params == spared.ask().params != kept.ask().params


def test_all_trials_of_a_configuration_are_forgotten():
    optimizer = told(2)
    first, second = optimizer.suggestions
    optimizer.tell(first.params, 7.0)
    assert optimizer.forget([first]) == [first.params, first.params]
    assert [params for params, _ in optimizer.told] == [second.params]
    assert optimizer.best.params == second.params
    assert optimizer.forget({"x": s.params["x"], "n": s.params["n"]} for s in [second]) == [second.params]
    assert optimizer.told == []
    assert optimizer.best is None


def test_one_that_was_never_told_is_an_error_and_nothing_is_forgotten():
    optimizer = told(3)
    pending = optimizer.ask()
    before, first = optimizer.told, optimizer.suggestions[0]
    for other in (ODD, pending):
        with pytest.raises(InputError, match="was never told, so it cannot be forgotten; nothing was changed"):
            optimizer.forget([first, other])
    with pytest.raises(InputError, match="'x' is 2, expected a number"):
        optimizer.forget([first, {"x": 2, "n": 5}])
    for single in (first, first.params):
        with pytest.raises(InputError, match="expected a list"):
            optimizer.forget(single)
    assert optimizer.told == before
    assert len(optimizer.view().pending) == 1


def test_a_forgotten_configuration_may_be_suggested_again():
    grid = [{"x": 0.5, "n": n} for n in range(1, 6)]
    optimizer = Optimizer(SPACE, method="gp-ucb", candidates=grid)
    for params in grid:
        optimizer.tell(params, math.nan if params["n"] == 4 else 1.0)
    optimizer.forget()
    assert optimizer.ask().params == grid[3]


def test_old_data_of_the_target_stays():
    frame = pl.DataFrame({"x": [0.1, 0.5, 0.9], "n": [1, 2, 3], "task": ["new"] * 3, "loss": [3.0, 1.0, 2.0]})
    history = History.from_frame(frame, SPACE, task="task", objective="loss", target="new")
    optimizer = Optimizer(SPACE, history, method="gp-ucb")
    old = {"x": 0.5, "n": 2}
    with pytest.raises(InputError, match="never told"):
        optimizer.forget([old])
    optimizer.fail(old)
    assert optimizer.forget([old]) == [old]
    view = optimizer.view()
    assert (view.old, len(view.z)) == (3, 3)


@pytest.mark.parametrize("method", ["gp-ucb", "scaml-gp", "bohb"])
def test_the_next_suggestion_is_as_if_the_value_had_been_told(method):
    optimizer = Optimizer(SPACE, old_runs(), method=method, n_trials=30, seed=4)
    for i in range(14):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, {3: math.nan, 5: 70.0}.get(i, value(suggestion.params)))
    wrong = [optimizer.suggestions[i] for i in (3, 5, 7)]
    assert math.isnan(optimizer.replace(wrong[0], value(wrong[0].params)))
    assert optimizer.replace(wrong[1].params, value(wrong[1].params)) == 70.0
    assert optimizer.replace(wrong[2], math.inf) == value(wrong[2].params)
    fresh = optimizer.restarted()
    for i, suggestion in enumerate(optimizer.suggestions):
        fresh.tell(suggestion.params, math.nan if i == 7 else value(suggestion.params))
    assert outcomes(optimizer) == outcomes(fresh)
    assert optimizer.best == fresh.best
    for _ in range(2):
        here, there = optimizer.ask(), fresh.ask()
        assert here.params == there.params
        np.testing.assert_equal(here.explanation.to_json(), there.explanation.to_json())
        optimizer.tell(here, value(here.params))
        fresh.tell(there, value(there.params))


def test_what_cannot_be_replaced():
    optimizer = told(3)
    pending, first = optimizer.ask(), optimizer.suggestions[0]
    before = optimizer.told
    for other in (ODD, pending):
        with pytest.raises(InputError, match="was never told, so it cannot be replaced; nothing was changed"):
            optimizer.replace(other, 1.0)
    with pytest.raises(TypeError, match="value is 'high', expected a number"):
        optimizer.replace(first, "high")
    assert optimizer.told == before
    optimizer.tell(first.params, 7.0)
    with pytest.raises(InputError, match=r"was told 2 times, so it is not clear which one is meant; forget\(\)"):
        optimizer.replace(first, 1.0)
