"""Warp: monotone, invertible, finite, and robust against a few extreme values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumbo_bo.data.warp import TINY, Array, Warp, fit_warp

LOSSES = st.floats(1e-5, 4e7).map(lambda v: -v)
GAINS = st.floats(1e-5, 4e7)
MIXED = st.floats(-4e7, 4e7)


def values(most: int = 60) -> st.SearchStrategy[Array]:
    some = st.one_of(*(st.lists(kind, min_size=1, max_size=most) for kind in (LOSSES, GAINS, MIXED)))
    return some.map(lambda ys: np.array(ys, dtype=float))


WARPS = st.builds(Warp, st.sampled_from([-1, 0, 1]), st.floats(-20, 20), st.floats(1e-3, 1e3))


@given(values(), st.lists(WARPS, max_size=3))
def test_monotone_and_finite(y: Array, like: list[Warp]) -> None:
    warp = fit_warp(y, like)
    z = warp(np.sort(y))
    assert np.all(np.isfinite(z))
    assert np.all(np.diff(z) >= 0)


@given(values(), st.lists(WARPS, max_size=3))
def test_inverse_undoes_the_warp(y: Array, like: list[Warp]) -> None:
    warp = fit_warp(y, like)
    tolerance = 2 * TINY + 1e-9 * (np.abs(y) + (abs(warp.centre) + warp.scale if warp.sign == 0 else 0))
    assert np.all(np.abs(warp.inverse(warp(y)) - y) <= tolerance)


@given(WARPS, st.floats(-2.9, 2.9))
def test_straight_is_the_inverse_before_the_knee(warp: Warp, z: float) -> None:
    np.testing.assert_allclose(warp.straight(np.array([z])), warp.inverse(np.array([z])))


def test_straight_makes_no_wild_promise_beyond_the_knee() -> None:
    losses = Warp(-1, 0.0, 1.0)  # r = -log(loss)
    np.testing.assert_allclose(losses.straight(np.array([-6.0, 6.0])), [-np.exp(6.0), -np.exp(-6.0)])
    assert losses.inverse(np.array([-6.0]))[0] < -1e9


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=30), st.lists(st.floats(-1e3, 1e3), max_size=5))
def test_no_input_leaves_the_finite_numbers(y: list[float], z: list[float]) -> None:
    warp = fit_warp(np.array(y))
    assert np.all(np.isfinite(warp(np.array(y))))
    assert np.all(np.isfinite(warp.inverse(np.array(z))))


@pytest.mark.parametrize("constant", [0.0, -0.1, 1e-12, -3e9, 5.0])
@pytest.mark.parametrize("n", [1, 2, 7, 50])
def test_constants_become_zero(constant: float, n: int) -> None:
    y = np.full(n, constant)
    warp = fit_warp(y)
    np.testing.assert_allclose(warp(y), 0, atol=1e-9)
    np.testing.assert_allclose(warp.inverse(np.zeros(n)), y, rtol=1e-12)
    assert warp.scale == 1.0


def test_no_values() -> None:
    assert fit_warp(np.array([])) == Warp(0, 0.0, 1.0)
    assert fit_warp(np.array([]), [Warp(-1, 2.0, 0.5), Warp(-1, 4.0, 1.5)]) == Warp(-1, 3.0, 1.0)


def test_heavy_tailed_losses_are_seen_on_a_log_scale(rng: np.random.Generator) -> None:
    y = -np.concatenate([10 ** rng.uniform(-5, 0, 1000), [4e7]])
    warp = fit_warp(y)
    assert warp.sign == -1
    z = warp(y)
    assert 0.5 < np.std(z) < 2
    assert z.min() > -10


def test_accuracies_stay_as_they_are(rng: np.random.Generator) -> None:
    y = rng.uniform(0.5, 0.95, 100)
    warp = fit_warp(y)
    assert warp.sign == 0
    np.testing.assert_allclose(np.diff(warp(y)), np.diff(y) / warp.scale)


def test_a_diverged_run_does_not_flatten_the_others(rng: np.random.Generator) -> None:
    y = np.append(rng.uniform(-0.5, 0.9, 40), -3e5)  # R² of a regression, one run diverged
    z = fit_warp(y)(y)
    assert np.ptp(z[:-1]) > 1
    assert z[-1] == z.min()


@pytest.mark.parametrize("unit", [1e-13, 1.0, 1e9])
def test_units_do_not_matter(unit: float, rng: np.random.Generator) -> None:
    y = rng.normal(size=30)
    np.testing.assert_allclose(fit_warp(unit * y)(unit * y), fit_warp(y)(y), rtol=1e-9, atol=1e-9)


def test_like_shares_the_form_when_signs_allow() -> None:
    old = [Warp(-1, 3.0, 0.8), Warp(-1, 2.0, 1.2)]
    one = fit_warp(np.array([-0.25]), old)  # one value cannot say that losses are seen on a log scale
    assert one == Warp(-1, -np.log(0.25), 1.0)
    assert fit_warp(np.array([0.25, -1.0]), old).sign == 0
    assert fit_warp(np.array([-1.0, -1.1]), [Warp(0, 0.0, 1.0)]).sign == 0


def test_like_counts_less_with_every_value(rng: np.random.Generator) -> None:
    y, old = rng.normal(size=400), [Warp(0, 0.0, 5.0)]
    scales = [fit_warp(y[:n], old).scale for n in (2, 20, 400)]
    assert scales[0] > scales[1] > scales[2]
    assert scales[2] == pytest.approx(1.0, abs=0.25)


def test_like_of_other_units_is_ignored(rng: np.random.Generator) -> None:
    y = rng.uniform(0.1, 0.9, 10)
    throughput = Warp(0, 5e5, 1e5)
    assert fit_warp(y, [throughput]) == fit_warp(y)


def test_a_value_of_the_other_sign_keeps_its_rank() -> None:
    losses = Warp(-1, 2.0, 1.0)
    z = losses(np.array([-10.0, -1e-5, 0.0, 3.0]))
    assert np.all(np.isfinite(z))
    assert z[0] < z[1] < z[2] <= z[3]


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf])
def test_a_broken_warp_cannot_be_built(scale: float) -> None:
    with pytest.raises(ValueError, match="positive scale"):
        Warp(0, 0.0, scale)


@pytest.mark.parametrize("n", [4, 6, 19, 40])
def test_one_diverged_run_does_not_flatten_the_others(n):
    y = np.append(np.linspace(-0.5, 0.9, n - 1), -3e5)
    z = fit_warp(y)(y)
    assert np.ptp(z[:-1]) > 1.0
    assert z[-1] < z[:-1].min()


def test_a_cluster_at_the_best_point_is_not_blown_up():
    """What an optimizer leaves: a few spread values and many almost equal good ones."""
    y = np.concatenate([np.linspace(-10.0, -1.0, 10), -0.5 + 1e-4 * np.arange(30)])
    z = fit_warp(y)(y)
    assert np.ptp(z[10:]) < 0.01


def test_many_diverged_losses_do_not_hide_the_differences_between_the_others():
    rng = np.random.default_rng(0)
    good = -rng.uniform(0.1, 1.5, 40)
    alone = fit_warp(good)
    diverged = fit_warp(np.concatenate([good, -np.full(15, 1e6)]))
    assert diverged.scale == pytest.approx(alone.scale)
    assert diverged(np.array([-1e6]))[0] < diverged(good).min() - 1  # bad as they are
    # Losses that fill the range between are no accident.
    spread = fit_warp(-(10.0 ** rng.uniform(-1, 6, 55)))
    assert spread.scale > 5 * alone.scale
