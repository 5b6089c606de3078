"""Round bounds around the values of a column."""

from __future__ import annotations

import doctest
from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.space.space import Space
from jumbo_bo.study import column
from jumbo_bo.study.column import nice, parameter


@given(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9), st.booleans(), st.booleans())
def test_nice_bounds_cover_the_data(low: float, high: float, log: bool, whole: bool) -> None:
    if whole:
        low, high = round(low), round(high)
    log = log and low > 0
    assume(low < high)
    a, b = nice(float(low), float(high), log, whole)
    assert a <= low < high <= b
    assert not (low > 0 and a < 0)
    assert not (log and a <= 0)
    if whole:
        assert a == int(a) and b == int(b)  # noqa: PT018
    assert b - a <= 1.5 * (high - low) or log, "not much wider than the data"
    if log:
        assert a >= 0.4 * low
        assert b <= 2.5 * high


RNG = np.random.default_rng(3)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (RNG.integers(5, 20, 60) * 5, IntDistribution(25, 95, step=5)),
        ([16, 496, *RNG.integers(1, 32, 90) * 16], IntDistribution(16, 496, step=16)),
        ([20, 25, 30, 35, 40] * 3, IntDistribution(20, 40, step=5)),
        ([20, 25, 30, 40] * 3, IntDistribution(20, 40, step=5)),  # one is missing
        ([20, 25, 30, 40, 80] * 3, CategoricalDistribution((20, 25, 30, 40, 80))),
        ([16, 32, 64, 128, 256], IntDistribution(16, 256)),  # no steps, and too few rows for choices
        ([10, 20, 50, 100, 200, 500, 1000], IntDistribution(10, 1000, log=True)),
        (np.arange(11) / 20, FloatDistribution(0.0, 0.5, step=0.05)),
        (0.1 + 0.1 * np.arange(12), FloatDistribution(0.1, 1.2, step=0.1)),  # 0.30000000000000004
        (np.arange(12) + 0.5, FloatDistribution(0.5, 11.5, step=1.0)),
        (RNG.permutation(200) * 5, IntDistribution(0, 1000)),  # too many steps
        ([1, 60, *RNG.integers(1, 61, 90)], IntDistribution(1, 60)),
        ([-30, -20, 0, 40, 50], IntDistribution(-30, 50, step=10)),
    ],
)
def test_steps(values: list[float], expected: BaseDistribution) -> None:
    found, why = parameter(pl.Series("p", [x.item() if isinstance(x, np.generic) else x for x in values]))
    assert found == expected
    step = getattr(expected, "step", None)
    stepped = step is not None and not (step == 1 and isinstance(expected, IntDistribution))
    assert (f"in steps of {step:g}" in why) if stepped else ("steps" not in why)


@given(st.integers(-50, 50), st.integers(1, 400), st.integers(0, 3), st.sets(st.integers(0, 90), min_size=5))
def test_numbers_in_steps_are_in_the_range_that_is_found(first: int, step: int, digits: int, levels: set[int]) -> None:
    unit = Decimal(1).scaleb(-digits)
    values = [float((first + step * i) * unit) for i in levels]
    found, _ = parameter(pl.Series("p", values), wanted=True)
    assert found is not None
    space = Space({"p": found})
    assert [space.decode(space.encode({"p": v}))["p"] for v in values] == pytest.approx(values, abs=1e-9)


def test_doctests() -> None:
    assert doctest.testmod(column).failed == 0
