"""Bayesian linear regression against scikit-learn, our own GP and a dense normal distribution."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.linear_model import BayesianRidge

from jumbo_bo.models import blr, gp


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    phi = np.tanh(rng.normal(size=(40, 7)))
    return phi, phi @ rng.normal(size=7) + 0.3 * rng.normal(size=40)


def test_evidence_is_that_of_a_dense_normal_and_its_gradient_is_right(data):
    phi, y = data
    evidence, theta = blr.Evidence(phi, y), np.log([2.0, 30.0])
    cov = phi @ phi.T / 2.0 + np.eye(40) / 30.0
    value, gradient = evidence(theta)
    assert value == pytest.approx(multivariate_normal(np.zeros(40), cov).logpdf(y), rel=1e-10)
    numeric = [(evidence(theta + 1e-5 * e)[0] - evidence(theta - 1e-5 * e)[0]) / 2e-5 for e in np.eye(2)]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-6)


@pytest.mark.parametrize("n", [0, 3, 40])
def test_posterior_is_that_of_the_gp_with_a_linear_kernel(data, n):
    phi, y = data[0][:n], data[1][:n]
    new = np.random.default_rng(1).normal(size=(5, 7))
    model = blr.build(np.log([2.0, 30.0]), phi, y)
    kernel = gp.Kernel((gp.Term("phi", "linear", (0,) * 7),))
    dual = gp.build(kernel, -np.log([2.0, 30.0]), {"phi": phi}, y)
    for ours, theirs in zip(blr.posterior(model, new), gp.posterior(dual, {"phi": new}), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-8)
    pending = new[:2]
    both = blr.hallucinate(model, pending), gp.hallucinate(dual, {"phi": pending})
    np.testing.assert_allclose(blr.posterior(both[0], new)[1], gp.posterior(both[1], {"phi": new}).sd, rtol=1e-8)
    np.testing.assert_allclose(blr.posterior(both[0], new)[0], blr.posterior(model, new)[0], atol=1e-8)


def test_precisions_of_scikit_learn_are_stationary_and_fit_is_near_them(data):
    phi, y = data
    flat = dict.fromkeys(("alpha_1", "alpha_2", "lambda_1", "lambda_2"), 1e-12)
    ridge = BayesianRidge(max_iter=3000, tol=1e-12, fit_intercept=False, compute_score=True, **flat).fit(phi, y)
    theta = np.log([ridge.lambda_, ridge.alpha_])  # scikit-learn's alpha is the noise precision
    value, gradient = blr.Evidence(phi, y)(theta)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-3)
    assert value == pytest.approx(ridge.scores_[-1], abs=1e-3)
    model = blr.fit(phi, y)
    assert np.all(np.abs(model.theta - theta) < 0.5)  # the priors pull a little
    np.testing.assert_allclose(model.mean, ridge.coef_, atol=0.1)


def test_single_precision_gives_nearly_the_same(data):
    model = blr.fit(*data)
    rough = blr.posterior(model, data[0].astype(np.float32))
    assert all(a.dtype == np.float32 for a in rough)
    np.testing.assert_allclose(rough, blr.posterior(model, data[0]), rtol=1e-3, atol=1e-4)
