"""The bounds for sums and averages of models, against determinants, densities and brute force."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumbo_bo.models import gp as gps
from jumbo_bo.models.kernel import Blocks, Kernel, LogNormal, Term, covariance, isotropic
from jumbo_bo.search.sum_theory import excess_loss, rank_gain, rounds_apart, small_gain, sum_gain
from jumbo_bo.search.theory import information_gain

KERNEL = Kernel((Term("1", "linear", (0,)), Term("g", "linear", (0, 1, 2)), isotropic("x", 2)), mean="m")


def points(rng: np.random.Generator, m: int) -> Blocks:
    x = rng.random((m, 2))
    return {"1": np.ones((m, 1)), "g": rng.normal(size=(m, 3)), "x": x, "m": rng.normal(size=(m, 1))}


def theta_of(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=7)  # log: level, three slopes, amplitude, length, noise


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.integers(1, 12))
def test_no_points_tell_more_than_the_two_parts_allow(seed: int, n: int) -> None:
    """Any n points, repeats among them, against the exact gain of the whole kernel."""
    rng = np.random.default_rng(seed)
    blocks, theta = points(rng, 20), theta_of(rng)
    bound = sum_gain(KERNEL, theta, blocks, n)
    chosen = rng.integers(0, 20, n)
    some = {name: block[chosen] for name, block in blocks.items()}
    gain = information_gain(covariance(KERNEL, theta, some, some), math.exp(theta[-1]))
    assert gain <= bound.total[n] * (1 + 1e-9)
    assert bound.rank == 4
    assert np.all(np.diff(bound.total) > 0)
    assert bound.old[0] == bound.new[0] == 0.0


def test_each_part_is_bounded_by_its_own_formula() -> None:
    rng = np.random.default_rng(3)
    blocks, theta, noise = points(rng, 30), theta_of(rng), 0.2
    theta[-1] = math.log(noise)
    level, slopes = math.exp(theta[0]), np.exp(theta[1:4])
    largest = float((level + blocks["g"] ** 2 @ slopes).max())
    found = sum_gain(KERNEL, theta, blocks, 9)
    assert found.old[9] == pytest.approx(4 / 2 * math.log(1 + 9 * largest / (4 * noise)))
    assert found.new[1] == pytest.approx(0.5 * math.log(1 + math.exp(theta[4]) / noise))
    assert found.new[9] <= 9 * found.new[1]


def test_the_formula_of_the_rank_is_reached() -> None:
    """By orthogonal features of equal length, each observed equally often, nothing is lost."""
    features = np.repeat(np.eye(3) * 2.0, 5, axis=0)  # 15 points, variance 4
    assert information_gain(features @ features.T, 0.5) == pytest.approx(float(rank_gain(15, 3, 4.0, 0.5)))
    assert float(rank_gain(15, 0, 4.0, 0.5)) == 0.0
    independent = information_gain(0.3 * np.eye(7), 0.5)
    assert independent == pytest.approx(float(small_gain(7, 0.3, 0.5)))
    assert float(small_gain(50, 1e-6, 0.1)) == pytest.approx(50 * 1e-6 / 0.2, rel=1e-4)


def test_a_kernel_of_one_kind_has_one_part() -> None:
    rng = np.random.default_rng(1)
    blocks = points(rng, 10)
    cold = sum_gain(Kernel((isotropic("x", 2),)), np.log([1.0, 0.5, 0.1]), blocks, 5)
    assert (cold.rank, cold.old.max()) == (0, 0.0)
    linear = sum_gain(Kernel((Term("1", "linear", (0,)),)), np.log([1.0, 0.1]), blocks, 5)
    assert (linear.rank, linear.new.max()) == (1, 0.0)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.floats(0.01, 0.99))
def test_an_average_loses_at_most_its_prior_weight(seed: int, weight: float) -> None:
    rng = np.random.default_rng(seed)
    log_densities = 5.0 * rng.normal(size=(2, 12))
    prior = np.array([weight, 1 - weight])
    excess = excess_loss(log_densities, prior)
    assert np.all(excess <= -np.log(prior)[:, None] + 1e-9)
    by_hand = math.log(prior @ np.exp(log_densities[:, :3].sum(axis=1)))
    assert excess[0, 2] == pytest.approx(log_densities[0, :3].sum() - by_hand)


def test_the_average_of_two_gps_and_what_it_loses() -> None:
    """Densities of trials one by one are those of the GP, and the product is its likelihood."""
    rng = np.random.default_rng(5)
    blocks = {"x": rng.random((8, 2))}
    kernel = Kernel((Term("x", "matern52", (0, 0), LogNormal(1.0, 1.0)),))
    y, rows = rng.normal(size=8), []
    for length in (0.1, 1.0):
        theta, each = np.log([1.0, length, 0.05]), []
        for t in range(8):
            seen = {"x": blocks["x"][:t]}
            mean, sd = gps.build(kernel, theta, seen, y[:t]).predict({"x": blocks["x"][t : t + 1]})
            var = sd[0] ** 2 + 0.05
            each.append(-0.5 * math.log(2 * math.pi * var) - 0.5 * (y[t] - mean[0]) ** 2 / var)
        assert sum(each) == pytest.approx(gps.build(kernel, theta, blocks, y).log_likelihood)
        rows.append(each)
    excess = excess_loss(np.array(rows), np.array([2 / 3, 1 / 3]))
    assert excess.max() <= math.log(3.0)
    assert excess[:, -1].max() > 0.0  # the better one of the two is better than their average


def test_rounds_apart_by_simulation() -> None:
    """Two coins: the average of both, when one is true, is far from it only a few times."""
    rng, p, q, weight, distance = np.random.default_rng(0), 0.5, 0.9, 0.25, 0.2
    counts = []
    for _ in range(400):
        log_odds, far = math.log(weight / (1 - weight)), 0
        for heads in rng.random(60) < p:
            w = 1 / (1 + math.exp(-log_odds))
            far += (1 - w) * abs(p - q) > distance  # total variation of two coins
            log_odds += math.log(p / q) if heads else math.log((1 - p) / (1 - q))
        counts.append(far)
    assert 1.0 < np.mean(counts) <= rounds_apart(weight, distance)
    assert rounds_apart(weight, distance) == pytest.approx(math.log(4) / 0.08)
