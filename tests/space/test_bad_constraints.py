"""Constraints that nothing meets, or that are a mistake, are refused where they are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution

from jumbo_bo.errors import InputError
from jumbo_bo.space.space import Space

UNIT = {name: FloatDistribution(0, 1) for name in "abc"}


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        (["a + b + c == 4"], r"'a \+ b \+ c == 4' is met by no configuration: a \+ b \+ c lies between 0 and 3"),
        (["a > 1"], r"'a > 1' is met by no configuration.* above 1"),
        (["a + b <= 0.5", "c <= 0.5", "a + b >= 0.6"], r"'a \+ b <= 0.5', 'a \+ b >= 0.6' are never met at the same"),
        (["a + z <= 1"], "'z', which is no parameter"),
        (["a + b"], "neither true nor false"),
        ("a <= 1", "expected a list"),
        ([3], "neither text"),
        (["__import__('os').system('true') == 0"], "not understood|cannot be read"),
        (["o == 'adm'"], r"'o' is never 'adm'; it is one of \['sgd', 'adam'\]"),
        (["o in ['sgd', 'x']"], "'o' is never 'x'"),
        (["o + a <= 1"], r"'o' is one of \['sgd', 'adam'\], not a number"),
        (["a == 'x'"], "'a' is never 'x'"),
        ([lambda p: p["q"] < 1], "the constraint <lambda>.. failed on .*KeyError: 'q'"),
        ([lambda p: np.array([True, False])], "expected True or False"),
        ([lambda p: False], "is met by no configuration among 4,096 that were drawn at random"),
    ],
)
def test_what_cannot_work_is_refused(constraints: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Space(UNIT | {"o": CategoricalDistribution(["sgd", "adam"])}, constraints=constraints)


def test_constraints_and_conditions_are_not_combined() -> None:
    with pytest.raises(InputError, match="a space with conditions cannot have constraints"):
        Space(UNIT, constraints=["a <= 0.5"], conditions={"b": "c > 0.5"})


def test_an_equation_that_no_step_meets_is_refused() -> None:
    with pytest.raises(InputError, match="the steps or choices of its parameters miss it"):
        Space({name: FloatDistribution(0, 0.9, step=0.3) for name in "ab"}, constraints=["a + b == 1"])
