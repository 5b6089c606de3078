"""Pending trials join what a GP says of a list of points."""

import numpy as np
import pytest

from jumbo_bo.models.evidence import Evidence, cholesky, inverse_from_cholesky, inverse_root
from jumbo_bo.models.gp import build, hallucinate, posterior
from jumbo_bo.models.kernel import Kernel, Term, ard
from jumbo_bo.models.pending import joined, seen

KERNEL = Kernel((Term("1", "linear", (0,)), Term("m", "linear", (0,)), ard("x", 3)), mean="m")
THETA = np.log([2.0, 0.5, 1.0, 0.4, 0.7, 1.5, 0.01])


def points(n, seed):
    x = np.random.default_rng(seed).random((n, 3))
    return {"1": np.ones((n, 1)), "x": x, "m": np.sin(3 * x[:, :1])}


@pytest.mark.parametrize("n", [0, 1, 40, 150])
@pytest.mark.parametrize("pending", [1, 20])
def test_joined_is_the_posterior_with_pending_trials(n, pending):
    trials, at = points(n, 0), points(60, 1)
    gp = build(KERNEL, THETA, trials, np.cos(4 * trials["x"]).sum(axis=1))
    told = hallucinate(gp, points(pending, 2))
    exact, updated = posterior(told, at), joined(told, seen(gp, at))
    np.testing.assert_allclose(updated.mean, exact.mean, atol=1e-9)
    np.testing.assert_allclose(updated.sd, exact.sd, atol=1e-8)
    assert (updated.sd < posterior(gp, at).sd).all()


@pytest.mark.parametrize("n", [1, 64, 65, 200])
def test_factors_are_inverted_by_halves(n):
    x = points(n, 3)["x"]
    cov = np.exp(-np.sum((x[:, None] - x) ** 2, axis=2))
    chol, exact = cholesky(cov, 0.1), np.linalg.inv(cov + 0.1 * np.eye(n))
    np.testing.assert_allclose(inverse_root(chol) @ chol, np.eye(n), atol=1e-10)
    np.testing.assert_allclose(inverse_from_cholesky(chol), exact, atol=1e-9)


def test_the_gradient_of_many_trials_equals_finite_differences():
    trials = points(130, 4)
    evidence = Evidence(KERNEL, trials, np.cos(4 * trials["x"]).sum(axis=1))
    value, gradient = evidence(THETA)
    numeric = [(evidence(THETA + e)[0] - evidence(THETA - e)[0]) / 2e-5 for e in 1e-5 * np.eye(len(THETA))]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-3)
    assert value == pytest.approx(build(KERNEL, THETA, trials, np.cos(4 * trials["x"]).sum(axis=1)).log_likelihood)
