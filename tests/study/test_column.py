"""Round bounds around the values of a column."""

from __future__ import annotations

import doctest

from hypothesis import assume, given
from hypothesis import strategies as st

from jumbo_bo.study import column
from jumbo_bo.study.column import nice


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


def test_doctests() -> None:
    assert doctest.testmod(column).failed == 0
