"""Schedules against their formulas, the gate against Algorithm 1."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from jumbo_bo.models import gp as gps
from jumbo_bo.search import acquisition as acq

SCORES = st.lists(st.floats(-5, 5), min_size=2, max_size=30)


def table(values):
    return lambda blocks: np.asarray(values)


def test_paper_schedule():
    beta = acq.paper_beta()
    assert beta(0, 50) == 10.0
    assert beta(50, 50) == pytest.approx(10 / math.e)
    assert beta(25, 50) == pytest.approx(10 * math.exp(-0.5))


def test_schedule_without_a_budget_falls_but_never_to_zero():
    beta = [acq.paper_beta()(t, None) for t in (1, 25, 1000, 10**6)]
    assert beta == sorted(beta, reverse=True)
    assert beta[1] == pytest.approx(5.0)
    assert beta[-1] > 0


def test_theory_beta_of_theorem_1():
    expected = 2 * math.log(62208 * math.pi**2 * 7**2 / (3 * 0.1))
    assert acq.theory_beta(62208, 0.1)(7, None) == pytest.approx(expected)


def test_theory_beta_of_theorem_2():
    d, t, delta, a, b, r = 3, 5, 0.05, 2.0, 1.5, 4.0
    expected = 2 * math.log(4 * math.pi**2 * t**2 / (3 * delta)) + 4 * d * math.log(
        d * t * b * r * math.sqrt(math.log(4 * d * a / delta))
    )
    assert acq.theory_beta_continuous(d, delta, a, b, r)(t, None) == pytest.approx(expected)
    assert acq.theory_beta_continuous(3)(5, None) == acq.theory_beta_continuous(3, 0.1, 1.0, 1.0, 1.0)(5, None)
    assert acq.theory_beta(7)(5, None) == acq.theory_beta(7, 0.1)(5, None)


def test_ucb_is_mean_plus_root_beta_sd():
    rng = np.random.default_rng(0)
    x = {"x": rng.random((6, 2))}
    model = gps.fit(gps.Kernel((gps.ard("x", 2),)), x, rng.standard_normal(6))
    new = {"x": rng.random((9, 2))}
    mean, sd = gps.posterior(model, new)
    np.testing.assert_allclose(acq.ucb(model.predict, 4.0)(new), mean + 2 * sd)


def test_another_beta_on_the_same_blocks_costs_no_posterior():
    """What is said of the largest blocks is kept; the scores are those of a new one."""
    rng = np.random.default_rng(0)
    model = gps.fit(gps.Kernel((gps.ard("x", 2),)), {"x": rng.random((6, 2))}, rng.standard_normal(6))
    large, small = {"x": rng.random((9, 2))}, {"x": rng.random((4, 2))}
    computed = []

    def spy(blocks):
        computed.append(len(blocks["x"]))
        return model.predict(blocks)

    predict = acq.remembered(spy)
    for beta, blocks in ((1.0, large), (4.0, large), (4.0, small), (9.0, large), (9.0, small)):
        mean, sd = gps.posterior(model, blocks)
        np.testing.assert_allclose(acq.ucb(predict, beta)(blocks), mean + np.sqrt(beta) * sd)
    assert computed == [9, 4, 4]
    assert acq.ucb(predict, 1.0)({"x": large["x"].astype(np.float32)}).dtype == np.float32


def test_an_observation_has_the_noise_of_the_model_in_it():
    rng = np.random.default_rng(0)
    model = gps.fit(gps.Kernel((gps.ard("x", 2),)), {"x": rng.random((6, 2))}, rng.standard_normal(6))
    new = {"x": rng.random((4, 2))}
    mean, sd = acq.noisy(model.predict, model.noise)(new)
    np.testing.assert_allclose(mean, model.predict(new).mean)
    np.testing.assert_allclose(sd**2 - model.predict(new).sd ** 2, model.noise)


@given(SCORES, st.data())
def test_gate_is_equation_2_with_the_indicator_of_algorithm_1(warm, data):
    cold = data.draw(st.lists(st.floats(-5, 5), min_size=len(warm), max_size=len(warm)))
    threshold = data.draw(st.floats(0, 4))
    best = max(warm)
    lam = np.array([1.0 if best - w <= threshold else 0.0 for w in warm])
    expected = lam * np.array(cold) + (1 - lam) * np.array(warm)
    got = acq.gated(table(warm), table(cold), best, threshold)({})
    np.testing.assert_allclose(got, expected)


@given(SCORES)
def test_infinite_threshold_is_the_cold_score_and_a_negative_one_the_warm(warm):
    cold = list(reversed(warm))
    best = max(warm)
    np.testing.assert_array_equal(acq.gated(table(warm), table(cold), best, math.inf)({}), cold)
    np.testing.assert_array_equal(acq.gated(table(warm), table(cold), best, -math.inf)({}), warm)
    np.testing.assert_array_equal(acq.gated(table(warm), table(cold), best, -1e-9)({}), warm)


def test_at_zero_only_the_warm_maximiser_is_scored_by_the_cold_gp():
    warm, cold = np.array([0.0, 2.0, 1.0]), np.array([9.0, -3.0, 9.0])
    np.testing.assert_array_equal(acq.gated(table(warm), table(cold), 2.0, 0.0)({}), [0.0, -3.0, 1.0])


def test_as_the_threshold_falls_to_zero_all_but_the_maximiser_agree_with_offline_dkl():
    rng = np.random.default_rng(0)
    warm, cold = rng.standard_normal(200), rng.standard_normal(200)
    different = [
        np.flatnonzero(acq.gated(table(warm), table(cold), warm.max(), threshold)({}) != warm)
        for threshold in (1.0, 0.1, 0.01, 0.001, 0.0)
    ]
    assert all(set(b) <= set(a) for a, b in itertools.pairwise(different))
    np.testing.assert_array_equal(different[-1], [warm.argmax()])


def test_printed_gate_may_leave_the_gate_and_the_constrained_one_never_does():
    warm = np.array([1.0, 0.95, 0.8, 0.0])  # inside for l_alpha = 0.1: the first two
    cold = np.array([0.2, 0.3, 5.0, 5.0])
    printed = acq.gated(table(warm), table(cold), 1.0, 0.1)({})
    constrained = acq.gated(table(warm), table(cold), 1.0, 0.1, "constrained")({})
    assert printed.argmax() == 2
    assert constrained.argmax() == 1
    assert acq.gated(table(warm), table(cold), 1.0, 0.1, "printed")({}).tolist() == printed.tolist()
    # Outside, the warm score leads back to the gate: far below everything inside, but in order.
    assert constrained[:2].tolist() == cold[:2].tolist()
    assert constrained[3] < constrained[2] < -1e5
    assert constrained[2] - constrained[3] == pytest.approx(0.8, abs=1e-9)


def test_constant_lambda_is_the_plain_average():
    np.testing.assert_allclose(acq.blended(table(np.array([2.0])), table(np.array([4.0])))({}), [3.0])
    np.testing.assert_allclose(acq.blended(table(np.array([2.0])), table(np.array([4.0])), 1.0)({}), [4.0])


@given(u=st.floats(-2000, 50), sd=st.floats(1e-3, 1e3))
def test_expected_improvement_is_the_integral(u, sd):
    """E max(u + e, 0) = phi(a) int_0^inf v exp(-a v - v^2 / 2) dv, plus u where it is positive; a = |u|."""
    a = abs(u)
    integral, _ = quad(lambda s: s * math.exp(-s - (s / (1 + a)) ** 2 / 2 + s / (1 + a)), 0, np.inf)
    below = -0.5 * a**2 - 0.5 * math.log(2 * math.pi) + math.log(integral) - 2 * math.log(1 + a)
    exact = math.log(sd) + (below if u <= 0 else math.log(u + math.exp(below)))
    value = acq.log_expected_improvement(np.array([u * sd]), np.array([sd]), 0.0)[0]
    assert value == pytest.approx(exact, rel=1e-7, abs=1e-7)


def test_expected_improvement_far_away_is_finite_and_falls():
    u = -np.geomspace(0.5, 1e6, 400)
    value = acq.log_expected_improvement(u, np.ones(400), 0.0)
    assert np.isfinite(value).all()
    assert (np.diff(value) < 0).all()
