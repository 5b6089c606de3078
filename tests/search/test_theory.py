"""Information gain against determinants and brute force, the bounds against their formulas."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumbo_bo.models import gp as gps
from jumbo_bo.models.kernel import Blocks, Kernel, LogNormal, Term, covariance, isotropic
from jumbo_bo.search import theory
from jumbo_bo.search.acquisition import theory_beta

KERNEL = Kernel((isotropic("x", 2),))
NOISE = 0.05
THETA = np.log([1.3, 0.4, NOISE])


def points(seed: int, m: int) -> Blocks:
    return {"x": np.random.default_rng(seed).random((m, 2))}


def cov(blocks: Blocks, rows: object = slice(None)) -> np.ndarray:
    part = {name: block[rows] for name, block in blocks.items()}
    return covariance(KERNEL, THETA, part, part)


def direct(matrix: np.ndarray) -> float:
    return 0.5 * np.linalg.slogdet(np.eye(len(matrix)) + matrix / NOISE)[1]


@pytest.mark.parametrize("n", [0, 1, 2, 10, 40])
def test_information_gain_is_half_the_log_determinant(n: int) -> None:
    matrix = cov(points(n, n))
    assert theory.information_gain(matrix, NOISE) == pytest.approx(direct(matrix), rel=1e-10, abs=1e-15)


def test_information_gain_by_hand() -> None:
    assert theory.information_gain(np.eye(3), 0.25) == pytest.approx(1.5 * math.log(5))
    # The same point twice tells as much as one observation with half the noise.
    twice = theory.information_gain(np.ones((2, 2)), 0.25)
    assert twice == pytest.approx(theory.information_gain(np.ones((1, 1)), 0.125))


def test_information_gain_survives_a_singular_matrix_and_a_tiny_noise() -> None:
    x = np.repeat(np.linspace(0, 1, 5), 20)[:, None]
    kernel, theta = Kernel((isotropic("x", 1),)), np.log([1.0, 2.0, 1e-10])
    gain = theory.information_gain(covariance(kernel, theta, {"x": x}, {"x": x}), 1e-10)
    once = {"x": np.unique(x)[:, None]}  # 20 looks at a point are one with a twentieth of the noise
    assert gain == pytest.approx(theory.information_gain(covariance(kernel, theta, once, once), 5e-12), rel=1e-3)


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.lists(st.integers(0, 14), max_size=6), st.lists(st.integers(0, 14), max_size=6))
def test_gain_is_monotone_and_submodular_also_with_repeats(seed: int, small: list[int], more: list[int]) -> None:
    matrix = cov(points(seed, 15))

    def gain(rows: list[int]) -> float:
        return theory.information_gain(matrix[np.ix_(rows, rows)], NOISE)

    large, extra = small + more, seed % 15
    assert gain(large) >= gain(small) - 1e-9
    assert gain([*small, extra]) - gain(small) >= gain([*large, extra]) - gain(large) - 1e-9


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.booleans())
def test_greedy_between_its_guarantee_and_the_best_subset(seed: int, repeats: bool) -> None:
    blocks = points(seed, 7)
    matrix = cov(blocks)
    found = theory.max_gain(KERNEL, THETA, blocks, 4, repeats)
    choose = itertools.combinations_with_replacement if repeats else itertools.combinations
    for n in range(5):
        best = max(direct(matrix[np.ix_(rows, rows)]) for rows in choose(range(7), n))
        assert theory.GREEDY * best - 1e-9 <= found.lower[n] <= best + 1e-9
        assert best <= found.upper[n] + 1e-9
        chosen = found.chosen[:n]
        assert found.lower[n] == pytest.approx(direct(matrix[np.ix_(chosen, chosen)]))
    assert repeats or len(set(found.chosen)) == 4


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 30))
def test_each_greedy_step_takes_the_best_single_point(seed: int, n: int) -> None:
    blocks = points(seed, 12)
    matrix = cov(blocks)
    found = theory.max_gain(KERNEL, THETA, blocks, n)
    before = list(found.chosen[: n - 1])
    best = max(direct(matrix[np.ix_(rows, rows)]) for rows in ([*before, i] for i in range(12)))
    assert found.lower[n] == pytest.approx(best)
    assert np.all(np.diff(found.lower) > 0)
    assert np.all(found.upper >= found.lower)


def test_greedy_on_independent_points_is_exact() -> None:
    x = np.arange(5.0)[:, None] * 1e3
    found = theory.max_gain(Kernel((isotropic("x", 1),)), np.log([1.0, 0.1, 0.5]), {"x": x}, 5)
    np.testing.assert_allclose(found.lower, np.arange(6) * 0.5 * math.log(3))
    np.testing.assert_allclose(found.upper, found.lower)


def test_linear_features_gain_at_most_their_rank() -> None:
    """A one-dimensional linear kernel: n looks at the longest vector."""
    kernel = Kernel((Term("h", "linear", (0,), variance=LogNormal(1.0, 1.0)),))
    blocks = {"h": np.array([[1.0], [-3.0], [2.0]])}
    found = theory.max_gain(kernel, np.log([1.0, 0.1]), blocks, 6)
    np.testing.assert_allclose(found.lower, 0.5 * np.log1p(9 * np.arange(7) / 0.1))
    assert set(found.chosen) == {1}


def test_no_points_and_too_many() -> None:
    empty = theory.max_gain(KERNEL, THETA, points(0, 0), 3)
    assert empty.lower.tolist() == empty.upper.tolist() == [0.0] * 4
    assert theory.max_gain(KERNEL, THETA, points(0, 3), 0).lower.tolist() == [0.0]
    with pytest.raises(ValueError, match="there are 3 points"):
        theory.max_gain(KERNEL, THETA, points(0, 3), 4, repeats=False)


def test_add_observation_gives_the_posterior_of_the_gp(rng: np.random.Generator) -> None:
    blocks, y = points(1, 40), rng.standard_normal(6)
    matrix = cov(blocks)
    rows = [3, 17, 3, 8, 30, 17]  # with repeats
    roots, mean, var = np.zeros((6, 40)), np.zeros(40), np.diag(matrix).copy()
    for k, i in enumerate(rows):
        scale = math.sqrt(var[i] + NOISE)
        root = theory.add_observation(roots[:k], matrix[i], i, var, NOISE, out=roots[k])
        mean += root * (y[k] - mean[i]) / scale
        var -= root**2
    model = gps.build(KERNEL, THETA, {"x": blocks["x"][rows]}, y)
    expected = gps.posterior(model, blocks)
    np.testing.assert_allclose(mean, expected.mean, atol=1e-9)
    np.testing.assert_allclose(np.sqrt(var), expected.sd, atol=1e-7)


def test_greedy_on_the_largest_table_is_fast() -> None:
    blocks = {"x": np.random.default_rng(0).random((62_208, 9))}
    start = time.process_time()
    found = theory.max_gain(Kernel((isotropic("x", 9),)), np.log([1.0, 1.0, 0.01]), blocks, 50)
    assert time.process_time() - start < 4.0
    assert found.lower[50] > found.lower[49]


def test_constant_by_hand() -> None:
    assert theory.regret_constant(0.01) == pytest.approx(8 / math.log(101))
    # Values in other units: variances grow by 4, so C does, and a bound on the regret by 2.
    assert theory.regret_constant(0.04, 4.0) == pytest.approx(4 * theory.regret_constant(0.01))


def test_bound_by_hand() -> None:
    beta = np.array([theory_beta(100, 0.1)(t, None) for t in (1, 2, 3)])
    cold, warm = theory.Side(np.array([0.0, 2.0, 3.0, 3.5]), 1.5), theory.Side(np.array([0.0, 1.0, 1.2, 1.3]), 0.5)
    bound = theory.regret_bound(beta, np.array([False, True, True]), cold, warm)
    b3 = 2 * math.log(100 * math.pi**2 * 9 / 0.3)
    assert bound[2] == pytest.approx(math.sqrt(3 * b3 * (1.5 * 2.0 + 0.5 * 1.2)))
    alone = theory.regret_bound(beta, np.zeros(3, bool), cold, warm)
    assert alone[2] == pytest.approx(math.sqrt(1.5 * 3 * b3 * 3.5))


def test_beta_of_gp_ucb_is_that_of_theorem_1_at_twice_delta() -> None:
    assert theory_beta(500, 0.2)(7, None) == pytest.approx(2 * math.log(500 * math.pi**2 * 49 / (6 * 0.1)))


@settings(max_examples=50)
@given(st.integers(0, 10**6), st.floats(0.01, 2.0))
def test_bound_is_above_the_summed_widths_of_any_sequence(seed: int, noise: float) -> None:
    """Lemma 4 and Cauchy-Schwarz: whatever is queried, sum 2 sqrt(beta) sd <= sqrt(C T beta Psi)."""
    blocks, rng = points(seed, 10), np.random.default_rng(seed)
    theta = np.log([1.0, 0.4, noise])
    rows = rng.integers(0, 10, 8)
    sd = []
    for t, i in enumerate(rows):
        model = gps.build(KERNEL, theta, {"x": blocks["x"][rows[:t]]}, np.zeros(t))
        sd.append(gps.posterior(model, {"x": blocks["x"][[i]]}).sd[0])
    beta = np.array([theory_beta(10, 0.1)(t, None) for t in range(1, 9)])
    side = theory.Side(theory.max_gain(KERNEL, theta, blocks, 8).upper, theory.regret_constant(noise))
    bound = theory.regret_bound(beta, np.zeros(8, bool), side, side)
    widths = theory.width_bound(beta, np.array(sd))
    assert widths[-1] == pytest.approx(sum(2 * math.sqrt(b) * s for b, s in zip(beta, sd, strict=True)))
    assert np.all(widths <= bound + 1e-9)


def test_what_theorem_2_adds() -> None:
    assert pytest.approx(sum(1 / t**2 for t in range(1, 100_000)), abs=1e-4) == theory.DISCRETISATION
