"""Known constraints: what they mean, where points are drawn and moved to, and which sets of them are refused."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.errors import InputError
from jumbo_bo.space.formula import parse
from jumbo_bo.space.space import Space

UNIT = {name: FloatDistribution(0, 1) for name in "abc"}
MIXTURE = Space(UNIT, constraints=["a + b + c == 1"])
STEPS = {name: FloatDistribution(0, 1, step=0.05) for name in "abcd"}


def small_circle(params: Any) -> bool:
    return params["a"] ** 2 + params["b"] ** 2 <= 0.1


SPACES = {
    "mixture": MIXTURE,
    "bounded mixture": Space(
        {"a": FloatDistribution(0.2, 0.8), "b": FloatDistribution(0, 0.1), "c": FloatDistribution(0.1, 0.5)},
        constraints=["a + b + c == 1"],
    ),
    "mixture with a logarithmic part": Space(
        {"cat": FloatDistribution(1e-4, 0.1, log=True), "s": FloatDistribution(0.5, 1), "w": FloatDistribution(0, 0.3)},
        constraints=["cat + s + w == 1"],
    ),
    "mixture in steps": Space(STEPS, constraints=["a + b + c + d == 1"]),
    "mixture in too many steps for a list": Space(
        {name: FloatDistribution(0, 100, step=0.5) for name in "abcdef"}, constraints=["a + b + c + d + e + f == 100"]
    ),
    "two equations": Space(UNIT | {"d": FloatDistribution(0, 1)}, constraints=["a == 2 * b", "c + d == a"]),
    "thin": Space(UNIT, constraints=["a - b <= 0.001", "b - a <= 0.001"]),
    "strict": Space(UNIT, constraints=["a < b < c"]),
    "whole numbers": Space(
        {"n": IntDistribution(1, 64, log=True), "w": IntDistribution(1, 1024), "x": FloatDistribution(0, 1)},
        constraints=["n * 16 + w <= 512", "n + 2 * w == 200"],
    ),
    "choices": Space(
        {
            "n": CategoricalDistribution([1, 5, 7, 20]),
            "m": CategoricalDistribution([2, 3]),
            "x": FloatDistribution(0, 9),
        },
        constraints=["n + m + x == 10"],
    ),
    "a function": Space(UNIT, constraints=[small_circle]),
    "forbidden combination": Space(
        {
            "o": CategoricalDistribution(["sgd", "adam"]),
            "m": FloatDistribution(0, 1),
            "on": CategoricalDistribution([True, False]),
        },
        constraints=["not (o == 'adam' and m > 0.5)", "on or m <= 0.9"],
    ),
    "sums and others": Space(
        UNIT | {"o": CategoricalDistribution(["x", "y"])}, constraints=["a + b + c == 1", "o == 'x' or a * b <= 0.05"]
    ),
    "other units": Space(
        {"mg": FloatDistribution(0, 5000), "g": FloatDistribution(0, 20)}, constraints=["mg / 1000 + g == 10"]
    ),
    "a narrow range that is far from zero": Space(
        {"a": FloatDistribution(1e6, 1e6 + 1), "b": FloatDistribution(0, 1)}, constraints=["a - b == 1000000"]
    ),
}


def meets(space: Space, params: dict[str, Any]) -> bool:
    """By asking each constraint, with a tolerance of its own."""
    named = {name: params[name] for name in space.names}
    return all(c(named) if callable(c) else parse(c, space.names).holds(named) for c in space.constraints)


@pytest.mark.parametrize("name", SPACES)
def test_every_point_drawn_or_moved_meets_the_constraints(name: str) -> None:
    space, rng = SPACES[name], np.random.default_rng(0)
    drawn = space.sample(rng, 200)
    moved = space.snap(rng.uniform(-0.2, 1.2, (200, space.d)))
    assert drawn.shape == moved.shape == (200, space.d)
    for u in np.vstack([drawn, moved]):
        params = space.decode(u)
        assert space.allows(params)
        assert meets(space, params)
        assert space.decode(space.encode(params)) == params


@pytest.mark.parametrize("name", SPACES)
def test_what_is_allowed_stays_where_it_is(name: str) -> None:
    space = SPACES[name]
    u = space.sample(np.random.default_rng(1), 100)
    np.testing.assert_array_equal(space.snap(u), u)


@pytest.mark.parametrize("name", SPACES)
def test_the_same_generator_draws_the_same_points(name: str) -> None:
    space = SPACES[name]
    again = replace(space)  # knows nothing of what the first has computed
    assert again == space
    first, second = (s.sample(np.random.default_rng(3), 20) for s in (space, again))
    np.testing.assert_array_equal(first, second)


def test_a_mixture_sums_to_its_total() -> None:
    for u in MIXTURE.sample(np.random.default_rng(0), 100):
        assert abs(math.fsum(MIXTURE.decode(u).values()) - 1) <= 1e-11


def test_points_are_spread_evenly_over_a_mixture() -> None:
    """Uniform on the simplex: each fraction is Beta(1, 2), with mean 1/3 and P(a <= 0.5) = 3/4."""
    a = MIXTURE.sample(np.random.default_rng(5), 2_000)[:, 0]
    assert a.mean() == pytest.approx(1 / 3, abs=0.02)
    for at in (0.1, 0.25, 0.5, 0.8):
        assert (a <= at).mean() == pytest.approx(1 - (1 - at) ** 2, abs=0.04)


def test_points_are_spread_evenly_where_few_of_the_cube_are_allowed() -> None:
    """The corner a_1 + ... + a_8 <= 1 has volume 1 / 8!; the largest sum of n uniform points there is close to 1, and
    the sum s has P(s <= t) = t^8."""
    names = [f"a{i}" for i in range(8)]
    space = Space({n: FloatDistribution(0, 1) for n in names}, constraints=[" + ".join(names) + " <= 1"])
    total = space.sample(np.random.default_rng(2), 2_000).sum(axis=1)
    for t in (0.7, 0.85, 0.95):
        assert (total <= t).mean() == pytest.approx(t**8, abs=0.06)


def test_moving_reaches_the_faces_of_a_mixture() -> None:
    """Where a fraction is exactly zero, as it is in many best recipes."""
    moved = MIXTURE.snap(np.random.default_rng(0).uniform(-0.5, 1.5, (400, 3)))
    assert ((moved == 0).sum(axis=1) == 1).sum() > 100
    assert ((moved == 0).sum(axis=1) == 2).sum() > 10


def test_moving_is_the_projection_where_no_range_ends() -> None:
    u = np.array([[0.5, 0.4, 0.3], [0.2, 0.3, 0.1]])
    expected = u - (u.sum(axis=1, keepdims=True) - 1) / 3
    np.testing.assert_allclose(MIXTURE.snap(u), expected, atol=1e-12)


def test_the_grid_of_a_mixture_in_steps() -> None:
    """Compositions of 20 steps into 4 fractions: 23 choose 3."""
    space = SPACES["mixture in steps"]
    assert space.cardinality == math.comb(23, 3)
    grid = space.grid()
    assert len(np.unique(grid, axis=0)) == space.cardinality
    assert all(round(20 * sum(space.decode(u).values()), 9) == 20 for u in grid)


def test_the_grid_is_that_of_the_space_without_what_is_forbidden() -> None:
    distributions: dict[str, BaseDistribution] = {
        "n": IntDistribution(0, 5),
        "x": FloatDistribution(0, 1, step=0.25),
        "o": CategoricalDistribution(["x", "y"]),
    }
    texts = ["n + 4 * x <= 6", "not (o == 'y' and n == 0)"]
    space = Space(distributions, constraints=[*texts, lambda p: p["n"] != 3])
    everything = Space(distributions)
    kept = [
        u
        for u in everything.grid()
        if (p := everything.decode(u))["n"] != 3 and meets(Space(distributions, constraints=texts), p)
    ]
    np.testing.assert_array_equal(space.grid(), np.array(kept))
    assert 0 < len(kept) < (everything.cardinality or 0)


def test_a_large_cube_with_a_small_region_is_listed() -> None:
    space = Space(
        {f"b{i}": IntDistribution(0, 1) for i in range(40)},
        constraints=[" + ".join(f"b{i}" for i in range(40)) + " == 2"],
    )
    assert space.cardinality == math.comb(40, 2)


@settings(max_examples=60, deadline=None)
@given(
    weights=st.lists(st.integers(-3, 3), min_size=3, max_size=3).filter(any),
    total=st.integers(-4, 8),
    comparison=st.sampled_from(["<=", ">=", "==", "<", ">"]),
    tops=st.lists(st.integers(1, 4), min_size=3, max_size=3),
)
def test_small_spaces_agree_with_trying_everything(
    weights: list[int], total: int, comparison: str, tops: list[int]
) -> None:
    text = " + ".join(f"{w} * {n}" for w, n in zip(weights, "abc", strict=True)) + f" {comparison} {total}"
    distributions = {n: IntDistribution(0, top) for n, top in zip("abc", tops, strict=True)}
    formula = parse(text, "abc")
    everything = [dict(zip("abc", values, strict=True)) for values in itertools.product(*(range(t + 1) for t in tops))]
    expected = [params for params in everything if formula.holds(params)]
    if not expected:
        with pytest.raises(InputError, match="is met by no configuration"):
            Space(distributions, constraints=[text])
        return
    space = Space(distributions, constraints=[text])
    assert [space.decode(u) for u in space.grid()] == expected
    moved = space.snap(np.random.default_rng(0).random((50, 3)))
    assert all(space.decode(u) in expected for u in moved)


def test_what_a_configuration_breaks_is_named() -> None:
    space = Space(UNIT, constraints=["a + b <= 1", "c <= 0.5", small_circle])
    assert space.broken({"a": 0.1, "b": 0.1, "c": 0.1}) == []
    assert space.broken({"a": 0.9, "b": 0.9, "c": 0.1}) == ["a + b <= 1", "small_circle()"]
    assert not space.allows({"a": 0.0, "b": 0.0, "c": 0.6})


def test_the_tolerance_is_that_of_the_sum() -> None:
    space = Space({name: FloatDistribution(0, 100) for name in "ab"}, constraints=["a + b == 100"])
    assert space.allows({"a": 33.3, "b": 66.7 + 5e-8})
    assert not space.allows({"a": 33.3, "b": 66.7 + 5e-7})


def test_constraints_change_neither_the_encoding_nor_the_fingerprint() -> None:
    plain = Space(UNIT)
    assert MIXTURE.fingerprint == plain.fingerprint
    assert plain != MIXTURE
    assert MIXTURE.unconstrained == plain
    assert plain.unconstrained is plain
    u = np.random.default_rng(0).random((5, 3))
    np.testing.assert_array_equal(MIXTURE.transform(u), plain.transform(u))
    assert (
        Space(UNIT, constraints=["a <= 0.5"])
        == Space(UNIT, constraints=["a  <=  0.5"])
        != Space(UNIT, constraints=["a <= 0.6"])
    )


def test_functions_are_told_apart_by_their_code() -> None:
    low, high = (Space(UNIT, constraints=[f]) for f in (lambda p: p["a"] < 0.5, lambda p: p["a"] < 0.6))
    assert low != high


def test_completions_keep_what_is_fixed() -> None:
    found = MIXTURE.completions({"b": 0.25}, np.random.default_rng(0), 50)
    assert len(found) == 50
    for params in found:
        assert params["b"] == 0.25
        assert MIXTURE.allows(params)
    with pytest.raises(InputError, match=r"cannot be completed.*would have to be at most|cannot be completed"):
        Space(UNIT, constraints=["a + b <= 0.5"]).completions({"a": 0.9}, np.random.default_rng(0), 5)
