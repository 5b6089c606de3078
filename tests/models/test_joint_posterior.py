"""Joint posteriors of several points, and draws of hyperparameters, against scikit-learn and closed forms."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

from jumbo_bo.models.evidence import semidefinite_root
from jumbo_bo.models.gp import Kernel, LogNormal, Term, ard, build, joint_posterior, posterior
from jumbo_bo.models.plausible import plausible

RNG = np.random.default_rng(0)
X, AT = RNG.random((12, 2)), RNG.random((7, 2))
Y = np.sin(4 * X[:, 0]) + X[:, 1]
GP = build(Kernel((ard("x", 2),)), np.log([1.7, 0.4, 0.9, 0.02]), {"x": X}, Y)


def test_joint_posterior_is_that_of_scikit_learn():
    kernel = ConstantKernel(1.7) * Matern([0.4, 0.9], nu=2.5) + WhiteKernel(0.02)
    oracle = GaussianProcessRegressor(kernel, optimizer=None).fit(X, Y)
    expected, cov = oracle.predict(AT, return_cov=True)
    mean, found = joint_posterior(GP, {"x": AT})
    assert mean == pytest.approx(expected, abs=1e-9)
    assert found == pytest.approx(cov - 0.02 * np.eye(len(AT)), abs=1e-9)  # scikit-learn adds the noise


def test_joint_posterior_agrees_with_the_marginal_one_and_with_the_prior():
    mean, cov = joint_posterior(GP, {"x": AT})
    each = posterior(GP, {"x": AT})
    assert mean == pytest.approx(each.mean, abs=1e-10)
    assert np.sqrt(np.diag(cov)) == pytest.approx(each.sd, abs=1e-7)
    nothing = build(Kernel((Term("x", "linear", (0, 0)),), mean="m"), np.log([2.0, 0.1]), {"x": X[:0]}, Y[:0])
    mean, cov = joint_posterior(nothing, {"x": AT, "m": AT[:, :1]})
    assert mean == pytest.approx(AT[:, 0])
    assert cov == pytest.approx(2.0 * AT @ AT.T)


def test_the_root_of_a_singular_covariance():
    """The same point three times, and more points than the rank: the samples of equal points are equal."""
    points = np.vstack([AT, AT[:1], AT[:1]])
    cov = points @ points.T
    root = semidefinite_root(cov)
    assert root @ root.T == pytest.approx(cov, abs=1e-12)
    assert root[0] == pytest.approx(root[-1], abs=1e-7)


def test_drawn_hyperparameters_follow_their_posterior():
    """Without trials it is the prior. With one trial of a constant of variance v and noise of variance s it is known up
    to a factor, p(v, s | y) = N(y | 0, v + s) p(v) p(s), which is integrated on a grid here."""
    kernel = Kernel((Term("1", "linear", (0,), variance=LogNormal(1.0, 0.5)),), noise=LogNormal(0.5, 0.7))
    ones, rng = np.ones((1, 1)), np.random.default_rng(1)
    free = build(kernel, kernel.priors[0], {"1": ones[:0]}, np.zeros(0))
    drawn = np.array([gp.theta for gp in plausible(free, 1500, rng)])
    assert drawn.mean(axis=0) == pytest.approx(np.log([1.0, 0.5]), abs=0.06)  # about 3 standard errors
    assert drawn.std(axis=0) == pytest.approx([0.5, 0.7], abs=0.06)

    told = build(kernel, kernel.priors[0], {"1": ones}, np.array([4.0]))
    drawn = np.array([gp.theta for gp in plausible(told, 1500, rng)])
    v, s = np.meshgrid(np.linspace(-3, 3, 400), np.linspace(-4, 4, 400))
    total = np.exp(v) + np.exp(s)
    weight = np.exp(-8.0 / total - 0.5 * (v / 0.5) ** 2 - 0.5 * ((s - np.log(0.5)) / 0.7) ** 2) / np.sqrt(total)
    expected = [np.average(v, weights=weight), np.average(s, weights=weight)]
    assert expected[0] > 0.3  # the trial moves them
    assert drawn.mean(axis=0) == pytest.approx(expected, abs=0.08)
