"""Numbers with the digits they deserve, and names as short as they are clear."""

from __future__ import annotations

import doctest
import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo import wording
from jumbo_bo.cli import view
from jumbo_bo.cli.view import number, short_names
from jumbo_bo.space import values
from jumbo_bo.space.values import in_digits, shown


@pytest.mark.parametrize("module", [view, values, wording])
def test_doctests(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "others", "text"),
    [
        (0.5, (), "0.5000"),
        (0.0, (0.5,), "0.000"),
        (0.98312, (0.98314,), "0.98312"),
        (1000.12, (1000.13, 5.0), "1000.120"),
        (12.0, (12.0,), "12.00"),
        (-3.14159, (2.7,), "-3.142"),
        (1.0, (1.0 + 1e-15,), "1.00000000"),
    ],
)
def test_values(value: float, others: tuple[float, ...], text: str) -> None:
    assert number(value, *others) == text


@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_two_values_look_different(a: float, b: float) -> None:
    assume(abs(a - b) > 1e-7 * max(a, b))
    assert number(a, b) != number(b, a)


@pytest.mark.parametrize(
    ("value", "dist", "text"),
    [
        (0.136925859735, FloatDistribution(0, 1), "0.1369"),
        (0.00526096548782, FloatDistribution(1e-5, 0.1, log=True), "0.005261"),
        (1000.1234, FloatDistribution(1000, 1001), "1000.123"),
        (0.30000000000000004, FloatDistribution(0, 1, step=0.1), "0.3"),
        (0.35, FloatDistribution(0, 1, step=0.05), "0.35"),
        (123456, IntDistribution(1, 10**6), "123456"),
        ("adam", CategoricalDistribution(("adam", "sgd")), "adam"),
        (0.123456, CategoricalDistribution((0.123456, 1)), "0.123456"),
    ],
)
def test_parameters(value: object, dist: FloatDistribution, text: str) -> None:
    assert shown(value, dist) == text


@given(st.floats(-1e8, 1e8), st.floats(1e-9, 1e3))
def test_differences_that_matter_are_seen(value: float, finest: float) -> None:
    assume(abs(value) < 1e11 * finest)
    assert math.isclose(float(in_digits(value, finest)), value, abs_tol=0.51 * finest, rel_tol=1e-12)


def test_short_names() -> None:
    assert short_names(["lr", "units"]) == {"lr": "lr", "units": "units"}
    assert short_names(["config/opt.lr", "config/net:units"]) == {"config/opt.lr": "lr", "config/net:units": "units"}
    assert short_names(["a.lr", "lr"]) == {"a.lr": "a.lr", "lr": "lr"}
    assert short_names(["rig/conc (mol/l)"]) == {"rig/conc (mol/l)": "conc (mol/l)"}
    assert short_names(["a.", "b./", "", "."])["a."] == "a."


@given(st.lists(st.text("ab./:", max_size=6), unique=True))
def test_short_names_stay_different(names: list[str]) -> None:
    found = short_names(names)
    assert list(found) == names
    assert len(set(found.values())) == len(names)
    assert all(name.endswith(short) for name, short in found.items())
