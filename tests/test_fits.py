"""The GPs fitted to the trials: to all of them, and quickly."""

from __future__ import annotations

import numpy as np
from optuna.distributions import FloatDistribution

from jumbo_bo.models.gp import expected, fit, posterior
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.space.space import Space
from jumbo_bo.trials import MOST_FITTED, Fits, Trial, Trials

SPACE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})
KERNEL = cold_kernel(SPACE)


def featurise(u):
    return {"1": np.ones((len(u), 1)), "x": u}


def told(n):
    rng = np.random.default_rng(0)
    u = rng.random((n, 2))
    rows = [Trial(row, SPACE.decode(row), float(np.sin(5 * row).sum() + 0.1 * rng.standard_normal())) for row in u]
    return Trials(tuple(rows), 0, 2)


def test_few_trials_are_all_fitted_and_the_gp_is_made_once():
    trials, fits = told(30), Fits()
    gp = fits.gp(featurise, trials, KERNEL)
    exact = fit(KERNEL, featurise(trials.u), trials.z, [KERNEL.priors[0]], 100)
    np.testing.assert_array_equal(gp.theta, exact.theta)
    assert fits.gp(featurise, trials, KERNEL) is gp
    assert fits.gp(featurise, trials.first(29), KERNEL) is not gp


def test_of_many_trials_some_decide_the_hyperparameters_and_all_are_known():
    trials = told(MOST_FITTED + 100)
    gp = Fits().gp(featurise, trials, KERNEL)
    assert len(gp.y) == len(trials)
    exact = fit(KERNEL, featurise(trials.u), trials.z, [KERNEL.priors[0]], 100)
    at = featurise(np.random.default_rng(1).random((200, 2)))
    (mean, sd), (exact_mean, exact_sd) = posterior(gp, at), posterior(exact, at)
    assert np.abs(mean - exact_mean).max() < 0.25 * exact_sd.mean()
    assert np.abs(np.log(sd / exact_sd)).max() < 0.25


def test_the_mean_alone_is_that_of_the_posterior():
    gp = Fits().gp(featurise, told(40), KERNEL)
    at = featurise(np.random.default_rng(2).random((5000, 2)))
    np.testing.assert_array_equal(expected(gp, at), posterior(gp, at).mean)
