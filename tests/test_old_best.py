"""What the best old settings would give here: measured where they were tried, expected elsewhere."""

import math

import numpy as np
import pytest
from optuna.distributions import FloatDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.old_best import old_best
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

SPACE = Space({"x": FloatDistribution(0, 1)})
LEFT = Task("left", np.array([[0.25], [0.5], [0.75]]), np.array([3.0, 1.0, 0.0]))
RIGHT = Task("right", np.array([[0.25], [0.5], [0.75]]), np.array([0.0, 1.0, 3.0]))


def test_the_best_of_the_settings_that_were_tried():
    optimizer = Optimizer(SPACE, History(SPACE, (LEFT, RIGHT)), "maximize", method="gp-ucb")
    for x in (0.1, 0.25, 0.75, 0.9):
        optimizer.tell({"x": x}, 10 * x)
    found = old_best(optimizer)
    assert (found.task, found.params, found.value, found.measured) == ("right", {"x": 0.75}, 7.5, True)


def test_settings_that_were_not_tried_are_predicted():
    optimizer = Optimizer(SPACE, History(SPACE, (LEFT,)), method="gp-ucb")
    for x in (0.0, 0.2, 0.3, 0.6, 1.0):
        optimizer.tell({"x": x}, 10 * x)
    found = old_best(optimizer)
    (expected,) = optimizer.predict([{"x": 0.25}])
    assert (found.params, found.value, found.low, found.high) == (
        {"x": 0.25},
        expected.mean,
        expected.low,
        expected.high,
    )
    assert not found.measured
    assert found.value == pytest.approx(2.5, abs=0.5)


def test_failed_trials_are_not_measured():
    optimizer = Optimizer(SPACE, History(SPACE, (LEFT,)), method="gp-ucb")
    for x in (0.0, 0.25, 1.0):
        optimizer.tell({"x": x}, math.nan if x == 0.25 else x)
    assert not old_best(optimizer).measured


def test_old_data_of_the_same_problem_count_as_measured():
    history = History(SPACE, (LEFT,), Task("me", np.array([[0.4], [0.6]]), np.array([-2.0, -4.0])))
    assert history.direction == "minimize"
    found = old_best(Optimizer(SPACE, history, method="random"))
    assert (found.task, found.value, found.measured) == ("me", 2.0, True)


@pytest.mark.parametrize("history", [None, History.empty(SPACE)])
def test_nothing_without_old_runs_or_a_model(history):
    optimizer = Optimizer(SPACE, history)
    optimizer.tell({"x": 0.5}, 1.0)
    assert old_best(optimizer) is None
    assert old_best(Optimizer(SPACE, History(SPACE, (LEFT,)), method="random")) is None
