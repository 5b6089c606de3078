"""Space: encode and decode are exact inverses on arbitrary spaces, and T(u) is what the paper says."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from scipy import stats

from jumbo_bo.space.axes import DIGITS, Continuous, Nominal, Ordinal
from jumbo_bo.space.space import Space


def finite_floats(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_nan=False, allow_infinity=False)


@st.composite
def floats(draw: st.DrawFn) -> FloatDistribution:
    low = draw(finite_floats(-1e6, 1e6))
    return FloatDistribution(low, low + 1e-5 * abs(low) + draw(finite_floats(1e-6, 1e6)))


@st.composite
def log_floats(draw: st.DrawFn) -> FloatDistribution:
    low = 10.0 ** draw(finite_floats(-12, 6))
    return FloatDistribution(low, low * 10.0 ** draw(finite_floats(0.1, 12)), log=True)


@st.composite
def stepped_floats(draw: st.DrawFn) -> FloatDistribution:
    step = draw(st.sampled_from([1e-15, 1e-3, 0.1, 0.25, 0.3, 1 / 3, 7.0]))
    start, count = draw(st.integers(-20, 20)), draw(st.integers(0, 30))
    low = float(f"{start * step:.12g}")
    return FloatDistribution(low, float(f"{low + count * step:.14g}") + step / 10, step=step)


@st.composite
def ints(draw: st.DrawFn) -> IntDistribution:
    low = draw(st.integers(-100, 100))
    return IntDistribution(low, low + draw(st.integers(0, 40)), step=draw(st.integers(1, 9)))


@st.composite
def log_ints(draw: st.DrawFn) -> IntDistribution:
    low = draw(st.integers(1, 50))
    return IntDistribution(low, low + draw(st.integers(0, 60)), log=True)


NUMBERS = st.one_of(st.integers(-1000, 1000), finite_floats(-1e3, 1e3))
NAMES = st.one_of(st.none(), st.booleans(), st.text(max_size=4), st.sampled_from([1, 2.5, -3]))


@st.composite
def choices(draw: st.DrawFn) -> CategoricalDistribution:
    pool = draw(st.sampled_from([NUMBERS, NAMES, st.booleans(), st.sampled_from(["relu", "tanh", "gelu"])]))
    unique_by = lambda c: (isinstance(c, bool), c)  # noqa: E731
    return CategoricalDistribution(draw(st.lists(pool, min_size=1, max_size=6, unique_by=unique_by)))


SINGLE = st.one_of(
    finite_floats(-1e9, 1e9).map(lambda v: FloatDistribution(v, v)),
    st.integers(-(10**9), 10**9).map(lambda v: IntDistribution(v, v)),
)
FINITE = st.one_of(stepped_floats(), ints(), log_ints(), choices(), SINGLE)
ANY = st.one_of(floats(), log_floats(), FINITE)


def spaces(distributions: st.SearchStrategy[BaseDistribution] = ANY, most: int = 5) -> st.SearchStrategy[Space]:
    return st.lists(distributions, min_size=1, max_size=most).map(
        lambda dists: Space({f"p{i}": dist for i, dist in enumerate(dists)})
    )


SEEDS = st.integers(0, 2**32 - 1)


def points(space: Space, seed: int, n: int = 20) -> np.ndarray:
    """(n, d) random u with the corners of the cube among them."""
    rng = np.random.default_rng(seed)
    u = rng.random((n, space.d))
    u[0], u[1], u[2] = 0.0, 1.0, rng.integers(2, size=space.d)
    return u


@given(spaces(), SEEDS)
@pytest.mark.filterwarnings("ignore:The distribution is specified by:UserWarning")  # Optuna adjusts `high` to the step
def test_decode_then_encode_is_exact(space: Space, seed: int) -> None:
    for u in points(space, seed):
        params = space.decode(u)
        again = space.encode(params)
        assert space.decode(again) == params
        assert [type(v) for v in space.decode(again).values()] == [type(v) for v in params.values()]
        np.testing.assert_allclose(again, space.snap(u[None])[0], rtol=0, atol=1e-9)
        for name, dist in space.distributions.items():
            assert dist._contains(dist.to_internal_repr(params[name])), (name, dist, params[name])


@given(st.one_of(floats(), log_floats()), st.data())
def test_a_value_of_twelve_digits_survives(dist: FloatDistribution, data: st.DataObject) -> None:
    value = data.draw(finite_floats(dist.low, dist.high))
    if dist.log:
        value = float(f"{value:.{DIGITS - 1}e}")
    else:
        value = round(value, DIGITS - math.ceil(math.log10(dist.high - dist.low)))
    if dist.low <= value <= dist.high:
        space = Space({"x": dist})
        assert space.decode(space.encode({"x": value})) == {"x": value}


@given(st.one_of(floats(), log_floats()))
def test_the_ends_of_a_range_survive_whatever_their_digits(dist: FloatDistribution) -> None:
    space = Space({"x": dist})
    for u, value in ((0.0, dist.low), (1.0, dist.high)):
        assert space.encode({"x": value})[0] == u
        assert space.decode([u]) == {"x": value}


@given(spaces(), SEEDS)
@pytest.mark.filterwarnings("ignore:The distribution is specified by:UserWarning")
def test_snap_and_transform(space: Space, seed: int) -> None:
    u = points(space, seed)
    snapped, t = space.snap(u), space.transform(u)
    np.testing.assert_array_equal(space.snap(snapped), snapped)
    np.testing.assert_array_equal(space.transform(snapped), t)
    assert t.shape == (len(u), len(space.groups))
    assert t.min() >= 0
    assert t.max() <= 1
    for i, axis in enumerate(space.axes):
        columns = t[:, np.array(space.groups) == i]
        assert columns.shape[1] == axis.width
        if isinstance(axis, Nominal):
            np.testing.assert_array_equal(columns.sum(axis=1), 1)
            assert set(np.unique(columns)) <= {0.0, 1.0}


@given(spaces(FINITE, most=2))
@pytest.mark.filterwarnings("ignore:The distribution is specified by:UserWarning")
def test_grid_holds_every_configuration_once(space: Space) -> None:
    assert space.cardinality is not None
    grid = space.grid()
    assert grid.shape == (space.cardinality, space.d)
    assert len(np.unique(grid, axis=0)) == space.cardinality
    np.testing.assert_array_equal(space.snap(grid), grid)
    per_axis = [[axis.decode(u) for u in np.unique(grid[:, i])] for i, axis in enumerate(space.axes)]
    assert math.prod(len(values) for values in per_axis) == space.cardinality
    for values, dist in zip(per_axis, space.distributions.values(), strict=True):
        assert same_set(values, expected_values(dist))


def expected_values(dist: BaseDistribution) -> list[Any]:
    match dist:
        case CategoricalDistribution():
            return list(dist.choices)
        case IntDistribution():
            return list(range(dist.low, dist.high + 1, dist.step))
        case FloatDistribution(step=None):
            return [dist.low]
        case FloatDistribution(step=float(step)):
            count = round((dist.high - dist.low) / step) + 1
            return [float(Fraction(str(dist.low)) + i * Fraction(str(step))) for i in range(count)]
    raise AssertionError(dist)


def same_set(left: list[Any], right: list[Any]) -> bool:
    def key(v: Any) -> tuple[str, str]:
        number = isinstance(v, int | float) and not isinstance(v, bool)
        return ("number", f"{v:.10g}") if number else (type(v).__name__, repr(v))

    return sorted(map(key, left)) == sorted(map(key, right))


@pytest.mark.parametrize(
    "dist",
    [
        IntDistribution(0, 6),
        IntDistribution(0, 30, step=5),
        FloatDistribution(0, 1, step=0.2),
        CategoricalDistribution([1, 10, 100]),
        CategoricalDistribution(["a", "b", None, True]),
    ],
)
def test_samples_are_uniform_over_levels(dist: BaseDistribution, rng: np.random.Generator) -> None:
    space = Space({"x": dist})
    u = space.sample(rng, 2000)
    assert u.shape == (2000, 1)
    _, counts = np.unique(u, return_counts=True)
    assert len(counts) == space.cardinality
    assert stats.chisquare(counts).pvalue > 1e-4


def test_samples_of_a_log_integer_follow_its_cells(rng: np.random.Generator) -> None:
    space = Space({"x": IntDistribution(1, 8, log=True)})
    values = np.array([space.decode(u)["x"] for u in space.sample(rng, 4000)])
    edges = np.log(np.arange(1, 10) - 0.5)  # value v owns [v - 1/2, v + 1/2] on the log axis
    share = np.diff(edges) / (edges[-1] - edges[0])
    counts = np.bincount(values, minlength=9)[1:]
    assert stats.chisquare(counts, share * len(values)).pvalue > 1e-4
    t = space.transform(space.grid())[:, 0]
    np.testing.assert_allclose(t, np.log(np.arange(1, 9)) / np.log(8), atol=1e-12)


def test_kinds_of_axes() -> None:
    space = Space(
        {
            "lr": FloatDistribution(1e-5, 1e-1, log=True),
            "batch": CategoricalDistribution([64, 8, 16, 32]),
            "act": CategoricalDistribution(["relu", "tanh"]),
            "layers": IntDistribution(1, 4),
        }
    )
    lr, batch, act, layers = space.axes
    assert isinstance(lr, Continuous)
    assert isinstance(batch, Ordinal)
    assert isinstance(act, Nominal)
    assert isinstance(layers, Ordinal)
    assert space.groups == (0, 1, 2, 2, 3)
    assert space.cardinality is None
    assert list(space) == list(space.names) == ["lr", "batch", "act", "layers"]
    u = space.encode({"lr": 1e-3, "batch": 32, "act": "tanh", "layers": 4})
    np.testing.assert_allclose(space.transform(u[None])[0], [0.5, 2 / 3, 0, 1, 1])


def test_fingerprint_changes_with_any_change() -> None:
    a, b = FloatDistribution(0, 1), IntDistribution(1, 4)
    variants = [
        Space({"a": a, "b": b}),
        Space({"b": b, "a": a}),
        Space({"a": a}),
        Space({"a": a, "c": b}),
        Space({"a": FloatDistribution(0, 2), "b": b}),
        Space({"a": FloatDistribution(0, 1, step=0.5), "b": b}),
        Space({"a": a, "b": IntDistribution(1, 4, log=True)}),
        Space({"a": a, "b": CategoricalDistribution([1, 2, 3, 4])}),
        Space({"a": a, "b": CategoricalDistribution([1, 2, 4, 3])}),
        Space({"a": a, "b": CategoricalDistribution(["1", "2", "3", "4"])}),
    ]
    assert len({s.fingerprint for s in variants}) == len(variants)
    assert len(set(variants)) == len(variants)
    twin = Space({"a": FloatDistribution(0.0, 1.0), "b": IntDistribution(1, 4)})
    assert twin == variants[0]
    assert hash(twin) == hash(variants[0])
    assert variants[0] != variants[1]


def test_equal_spaces_are_one_key():
    lr = FloatDistribution(1e-5, 1e-1, log=True)
    first, twin, other = Space({"lr": lr}), Space({"lr": lr}), Space({"rate": lr})
    assert {first: 1, other: 2}[twin] == 1
    assert len({hash(first), hash(other)}) == 2
    assert first != "lr"
