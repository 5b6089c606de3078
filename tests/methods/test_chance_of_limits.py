"""The chance to meet a limit against its definition, and how the default uses it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import FloatDistribution
from scipy.stats import norm, t

from jumbo_bo.methods.averaging import improvement, worthwhile
from jumbo_bo.methods.limits import LEAST, Doubt, Limits, log_chance
from jumbo_bo.models.gp import build, posterior
from jumbo_bo.models.population import alone
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

SPACE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})


def blocks(u):
    return {"1": np.ones((len(u), 1)), "x": SPACE.transform(u)}


def models(rng, n=6):
    kernel, u = alone(SPACE), SPACE.sample(rng, n)
    theta = kernel.priors[0]
    return [(w, build(kernel, theta + shift, blocks(u), rng.standard_normal(n))) for w, shift in ((0.3, 0), (0.7, 0.5))]


@pytest.mark.parametrize("doubt", [Doubt(math.inf, 1.0), Doubt(3.0, 1.25)])
@pytest.mark.parametrize("ends", [(-math.inf, 0.4), (0.4, math.inf), (-0.3, 0.5)])
def test_the_chance_is_that_of_the_mixture(rng, doubt, ends):
    gps, at = models(rng), blocks(SPACE.sample(rng, 20))
    distribution = norm if math.isinf(doubt.freedom) else t(doubt.freedom)
    expected = np.zeros(20)
    for w, gp in gps:
        mean, sd = posterior(gp, at)
        scale = doubt.wider * np.sqrt(sd**2 + gp.noise)
        expected += w * (distribution.cdf((ends[1] - mean) / scale) - distribution.cdf((ends[0] - mean) / scale))
    assert np.exp(log_chance(gps, *ends, doubt)(at)) == pytest.approx(expected, rel=1e-9)


@given(st.floats(-50, 50), st.floats(0.01, 20), st.sampled_from([1.0, 5.0, math.inf]))
def test_a_wider_limit_is_met_more_often_and_the_sides_sum_to_one(low, width, freedom):
    gps, at = models(np.random.default_rng(0)), blocks(np.array([[0.3, 0.6]]))
    doubt = Doubt(freedom, 1.0)

    def chance(*ends):
        return float(np.exp(log_chance(gps, *ends, doubt)(at))[0])

    parts = chance(-math.inf, low), chance(low, low + width), chance(low + width, math.inf)
    assert sum(parts) == pytest.approx(1.0, abs=1e-9)
    assert all(0 <= p <= 1 for p in parts)
    assert chance(low - 1, low + width) >= parts[1] - 1e-12


def test_a_hopeless_limit_still_tells_points_apart(rng):
    """There a chance would be 0 in double precision, and a search would wander."""
    gps, at = models(rng), blocks(SPACE.sample(rng, 50))
    scores = log_chance(gps, 25.0, math.inf, Doubt(math.inf, 1.0))(at)
    assert np.isfinite(scores).all()
    assert len(set(scores)) == 50
    assert scores.max() < math.log(1e-20)
    assert log_chance(gps, 1e9, 1e9 + 1, Doubt(math.inf, 1.0))(at).max() == pytest.approx(math.log(LEAST))


def test_the_score_is_multiplied_by_the_chance(rng):
    gps, at = models(rng), blocks(SPACE.sample(rng, 30))
    view = Optimizer(SPACE, limits={"q": (None, 1.0)}).view()
    score, chance = improvement(gps, 0.2), log_chance(gps, 0.0, 1.0, Doubt(4.0, 1.0))
    limits = Limits(np.zeros(0, bool), lambda pending: chance)
    found = worthwhile(_with(view, limits), score, None)(at)
    assert found == pytest.approx(score(at) + chance(at))
    half = worthwhile(_with(view, limits), score, lambda x: np.full(len(x), 0.5))(at)
    close = found > found.max() - 20
    assert half[close] == pytest.approx(found[close] + math.log(0.5))


def test_pending_trials_that_probably_meet_the_limits_have_to_be_beaten(rng):
    limits = Limits(np.array([True, False]), lambda pending: lambda blocks: np.log([0.4, 0.6]))
    assert list(limits.counting(rng.random((2, 2)), {})) == [True, False, False, True]
    assert list(limits.counting(np.zeros((0, 2)), {})) == [True, False]


def _with(view, limits):
    return replace(view, limits=limits)
