"""Intervals end where values do."""

from __future__ import annotations

import math

import pytest
from optuna.distributions import FloatDistribution

from jumbo_bo.errors import InputError, UserError
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space
from jumbo_bo.study.study_file import load

SPACE = Space({"x": FloatDistribution(0, 1), "y": FloatDistribution(0, 1)})
POINTS = [{"x": i / 4, "y": 0.5} for i in range(5)]


def told(bounds=(None, None)):
    """Yields of 90 to 99.5 percent."""
    optimizer = Optimizer(SPACE, direction="maximize", bounds=bounds)
    for x, value in ((0.1, 90.0), (0.5, 99.5), (0.9, 95.0)):
        optimizer.tell({"x": x, "y": x}, value)
    return optimizer


def test_intervals_end_at_the_bounds():
    free, bounded = told().predict(POINTS), told((0, 100)).predict(POINTS)
    assert max(p.high for p in free) > 100
    assert max(p.high for p in bounded) == 100
    assert [p.low for p in bounded] == [max(0, p.low) for p in free]
    assert told((None, 100)).predict(POINTS)[0].low == free[0].low


def test_suggestions_and_values_do_not_depend_on_them():
    free, bounded = told(), told((0, 99))  # one of the values is above
    assert free.ask().params == bounded.ask().params
    assert bounded.best.value == 99.5
    again = bounded.restarted()
    assert again.bounds == (0, 99)


@pytest.mark.parametrize("bounds", [(1, 0), (1, 1), 5, ("a", 2), (0, 1, 2), (math.nan, 1)])
def test_bounds_that_make_no_sense_are_refused(bounds):
    with pytest.raises(InputError, match="bounds are"):
        Optimizer(SPACE, bounds=bounds)


def test_bounds_in_a_study_file(tmp_path):
    file = tmp_path / "study.toml"
    space = '[space]\nx = {type = "float", low = 0.0, high = 1.0}\n'
    file.write_text(f'name = "a"\nbounds = [0, inf]\n{space}')
    assert load(file).bounds == (0, math.inf)
    file.write_text(f'name = "a"\nbounds = [1, 0]\n{space}')
    with pytest.raises(UserError, match="smaller one first"):
        load(file)
