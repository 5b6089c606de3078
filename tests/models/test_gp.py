"""The GP against scikit-learn, finite differences and its own definition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern, WhiteKernel

from jumbo_bo.models import gp as gps
from jumbo_bo.models.gp import Kernel, LogNormal, Term
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.space.space import Space

KERNELS = {
    "iso": Kernel((gps.isotropic("x", 4),)),
    "ard": Kernel((gps.ard("x", 4),)),
    "grouped": Kernel((Term("x", "matern52", (0, 1, 1, 2)),)),
    "linear": Kernel((Term("g", "linear", (0, 0)),)),
    "joint": Kernel((Term("g", "linear", (0, 1)), gps.isotropic("h", 3), gps.ard("x", 4))),
    "with mean": Kernel((gps.ard("x", 4),), mean="m"),
}


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    blocks = {"x": rng.random((n, 4)), "h": rng.standard_normal((n, 3)), "g": rng.standard_normal((n, 2))}
    blocks["m"] = np.sin(blocks["x"][:, :1])
    y = np.sin(4 * blocks["x"][:, 0]) + blocks["x"][:, 1] - 0.5 * blocks["g"][:, 0] + 0.1 * rng.standard_normal(n)
    return blocks, y


def random_theta(kernel, seed=0):
    return 0.4 * np.random.default_rng(seed).standard_normal(len(kernel.priors[0]))


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("iso", lambda v: ConstantKernel(v[0]) * Matern(v[1], nu=2.5)),
        ("ard", lambda v: ConstantKernel(v[0]) * Matern(v[1:5], nu=2.5)),
        ("grouped", lambda v: ConstantKernel(v[0]) * Matern(v[[1, 2, 2, 3]], nu=2.5)),
    ],
)
def test_equals_scikit_learn(name, make):
    kernel = KERNELS[name]
    theta = random_theta(kernel)
    values = np.exp(theta)
    (blocks, y), (new, _) = data(30), data(200, seed=1)
    ours = gps.build(kernel, theta, blocks, y)
    theirs = GaussianProcessRegressor(make(values) + WhiteKernel(values[-1]), alpha=0.0, optimizer=None)
    theirs.fit(blocks["x"], y)
    mean, sd = theirs.predict(new["x"], return_std=True)
    predicted = gps.posterior(ours, new)
    np.testing.assert_allclose(predicted.mean, mean, atol=1e-6)
    np.testing.assert_allclose(predicted.sd**2 + values[-1], sd**2, atol=1e-6)
    assert ours.log_likelihood == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-6)


def test_linear_term_equals_scikit_learn_dot_product():
    kernel = Kernel((Term("g", "linear", (0, 0)),))
    theta = np.log([0.7, 0.05])
    (blocks, y), (new, _) = data(20), data(50, seed=1)
    theirs = GaussianProcessRegressor(ConstantKernel(0.7) * DotProduct(1e-9) + WhiteKernel(0.05), optimizer=None)
    theirs.fit(blocks["g"], y)
    mean, sd = theirs.predict(new["g"], return_std=True)
    ours = gps.posterior(gps.build(kernel, theta, blocks, y), new)
    np.testing.assert_allclose(ours.mean, mean, atol=1e-6)
    np.testing.assert_allclose(ours.sd**2 + 0.05, sd**2, atol=1e-6)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("n", [1, 2, 25])
def test_gradient_equals_finite_differences(name, n):
    kernel = KERNELS[name]
    blocks, y = data(n)
    evidence = gps.Evidence(kernel, blocks, y)
    theta = random_theta(kernel, seed=3)
    value, gradient = evidence(theta)
    steps = 1e-5 * np.eye(len(theta))
    numeric = [(evidence(theta + e)[0] - evidence(theta - e)[0]) / 2e-5 for e in steps]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-6)
    assert value == pytest.approx(gps.build(kernel, theta, blocks, y).log_likelihood, abs=1e-9)


@pytest.mark.parametrize("name", KERNELS)
def test_leave_one_out_equals_refitting_without_the_point(name):
    kernel = KERNELS[name]
    theta = random_theta(kernel)
    blocks, y = data(12)
    fast = gps.leave_one_out(gps.build(kernel, theta, blocks, y))
    for i in range(len(y)):
        keep = np.arange(len(y)) != i
        rest = gps.build(kernel, theta, {k: v[keep] for k, v in blocks.items()}, y[keep])
        slow = gps.posterior(rest, {k: v[[i]] for k, v in blocks.items()})
        assert fast.mean[i] == pytest.approx(slow.mean[0], abs=1e-8)
        assert fast.sd[i] == pytest.approx(np.sqrt(slow.sd[0] ** 2 + rest.noise), abs=1e-8)


@pytest.mark.parametrize("name", KERNELS)
def test_posterior_mean_splits_exactly_by_term(name):
    kernel = KERNELS[name]
    (blocks, y), (new, _) = data(15), data(40, seed=1)
    model = gps.build(kernel, random_theta(kernel), blocks, y)
    total = gps.prior_mean(kernel, new) + gps.mean_by_term(model, new).sum(axis=0)
    np.testing.assert_allclose(total, gps.posterior(model, new).mean, atol=1e-12)


def test_variance_is_the_diagonal_of_the_covariance():
    kernel = KERNELS["joint"]
    theta = random_theta(kernel)
    blocks, _ = data(20)
    full = gps.covariance(kernel, theta, blocks, blocks)
    np.testing.assert_allclose(gps.variance(kernel, theta, blocks), np.diag(full), atol=1e-10)


def test_a_prior_mean_is_a_gp_on_what_it_leaves():
    with_mean, without = KERNELS["with mean"], KERNELS["ard"]
    theta = random_theta(with_mean)
    (blocks, y), (new, _) = data(15), data(40, seed=1)
    ours = gps.build(with_mean, theta, blocks, y)
    rest = gps.build(without, theta, blocks, y - blocks["m"][:, 0])
    predicted, left = gps.posterior(ours, new), gps.posterior(rest, new)
    np.testing.assert_allclose(predicted.mean, new["m"][:, 0] + left.mean, atol=1e-12)
    np.testing.assert_allclose(predicted.sd, left.sd, atol=1e-12)
    assert ours.log_likelihood == pytest.approx(rest.log_likelihood)
    value, gradient = gps.Evidence(with_mean, blocks, y)(theta)
    assert value == pytest.approx(rest.log_likelihood)
    np.testing.assert_allclose(gradient, gps.Evidence(without, blocks, y - blocks["m"][:, 0])(theta)[1])
    np.testing.assert_allclose(gps.posterior(gps.fit(with_mean, data(0)[0], data(0)[1]), new).mean, new["m"][:, 0])


@pytest.mark.parametrize("name", KERNELS)
def test_single_precision_is_the_same_up_to_rounding(name):
    kernel = KERNELS[name]
    (blocks, y), (new, _) = data(15), data(40, seed=1)
    model = gps.build(kernel, random_theta(kernel), blocks, y)
    exact = gps.posterior(model, new)
    rough = gps.posterior(model, {name: block.astype(np.float32) for name, block in new.items()})
    assert rough.mean.dtype == rough.sd.dtype == np.float32
    np.testing.assert_allclose(rough.mean, exact.mean, atol=1e-3)
    np.testing.assert_allclose(rough.sd, exact.sd, atol=1e-3)


def test_the_cold_kernel_has_one_length_scale_per_parameter():
    space = Space(
        {"a": FloatDistribution(0, 1), "b": CategoricalDistribution(["x", "y", "z"]), "c": IntDistribution(0, 9)}
    )
    (term,) = cold_kernel(space).terms
    assert (term.block, term.kind, term.groups) == ("x", "matern52", (0, 1, 1, 1, 2))
    assert term.length == pytest.approx((0.4 * 3**0.5, 1.0))
    assert term.variance == (1.0, 1.0)
    (one,) = cold_kernel(space, per_parameter=False).terms
    assert one.groups == (0, 0, 0, 0, 0)
    assert cold_kernel(space).noise == (1e-2, 1.5)


def test_posterior_in_batches_equals_one_batch(monkeypatch):
    kernel = KERNELS["joint"]
    (blocks, y), (new, _) = data(15), data(100, seed=1)
    model = gps.build(kernel, random_theta(kernel), blocks, y)
    whole = gps.posterior(model, new)
    monkeypatch.setattr(gps, "CHUNK", 7)
    parts = gps.posterior(model, new)
    np.testing.assert_allclose(parts.mean, whole.mean, atol=1e-12)
    np.testing.assert_allclose(parts.sd, whole.sd, atol=1e-12)


def test_hallucinated_points_keep_the_mean_and_shrink_the_variance():
    kernel = KERNELS["joint"]
    (blocks, y), (pending, _), (new, _) = data(15), data(3, seed=1), data(60, seed=2)
    model = gps.build(kernel, random_theta(kernel), blocks, y)
    before, after = gps.posterior(model, new), gps.posterior(gps.hallucinate(model, pending), new)
    np.testing.assert_allclose(after.mean, before.mean, atol=1e-8)
    assert (after.sd <= before.sd + 1e-9).all()
    at_pending = gps.posterior(gps.hallucinate(model, pending), pending).sd
    assert (at_pending < gps.posterior(model, pending).sd).all()


def test_fit_finds_a_stationary_point_of_the_posterior():
    kernel = KERNELS["ard"]
    blocks, y = data(40)
    model = gps.fit(kernel, blocks, y)
    median, sd = kernel.priors
    gradient = gps.Evidence(kernel, blocks, y)(model.theta)[1] - (model.theta - median) / sd**2
    assert np.abs(gradient).max() < 0.05
    start = gps.build(kernel, median, blocks, y)
    assert model.log_likelihood > start.log_likelihood


def test_fit_from_several_starts_is_at_least_as_good_as_from_one():
    kernel = KERNELS["ard"]
    blocks, y = data(12)
    median, sd = kernel.priors

    def posterior_density(model):
        return model.log_likelihood - 0.5 * np.sum(((model.theta - median) / sd) ** 2)

    one = posterior_density(gps.fit(kernel, blocks, y, [median - 2.0]))
    both = posterior_density(gps.fit(kernel, blocks, y, [median - 2.0, median]))
    assert both >= one - 1e-9


def test_adam_fit_follows_the_paper_amplitude_one_and_a_better_likelihood():
    kernel = KERNELS["iso"]
    blocks, y = data(30)
    y = y - y.mean()
    model = gps.fit_adam(kernel, blocks, y)
    assert model.theta[0] == 0.0
    start = kernel.priors[0].copy()
    start[0] = 0.0
    assert model.log_likelihood > gps.build(kernel, start, blocks, y).log_likelihood


def test_irrelevant_inputs_get_longer_length_scales():
    rng = np.random.default_rng(0)
    x = rng.random((60, 3))
    model = gps.fit(Kernel((gps.ard("x", 3),)), {"x": x}, np.sin(6 * x[:, 0]))
    assert model.theta[1] + 1 < min(model.theta[2:4])


@pytest.mark.parametrize("n", [0, 1])
def test_no_data_gives_the_prior_and_one_point_is_interpolated(n):
    kernel = Kernel((gps.isotropic("x", 4),), noise=LogNormal(1e-6, 0.1))
    blocks, y = data(n)
    model = gps.fit(kernel, blocks, y)
    new, _ = data(5, seed=1)
    predicted = gps.posterior(model, new)
    if n == 0:
        np.testing.assert_allclose(predicted.mean, 0.0)
        np.testing.assert_allclose(predicted.sd, 1.0)
        assert gps.mean_by_term(model, new).shape == (1, 5)
    else:
        assert gps.posterior(model, blocks).mean[0] == pytest.approx(y[0], rel=0.05)


def test_a_flat_likelihood_does_not_send_the_hyperparameters_off():
    """Four standard deviations of the prior are as good as forever: these values want a far larger amplitude."""
    kernel = Kernel((gps.isotropic("x", 4, length=LogNormal(1.0, 0.1)),), noise=LogNormal(1e-2, 0.1))
    blocks, _ = data(60)
    y = 100 * blocks["x"][:, 0]
    model = gps.fit(kernel, blocks, y)
    median, sd = kernel.priors
    assert (np.abs(model.theta - median) <= 4 * sd + 1e-12).all()
    assert model.theta[0] == pytest.approx(median[0] + 4 * sd[0])


def test_no_more_jitter_than_needed():
    """A singular matrix: the first jitter that helps is 1e-8 of its size."""
    chol = gps.cholesky(np.full((3, 3), 4.0), 0.0)
    np.testing.assert_allclose(chol @ chol.T, 4 * (np.ones((3, 3)) + 1e-8 * np.eye(3)), rtol=0, atol=1e-12)
    exact = gps.cholesky(np.eye(3), 0.5)
    np.testing.assert_allclose(exact @ exact.T, 1.5 * np.eye(3), rtol=1e-15)


def test_duplicates_and_constants_are_survived_by_jitter():
    x = np.repeat(np.random.default_rng(0).random((3, 4)), 10, axis=0)
    kernel = Kernel((gps.isotropic("x", 4),), noise=LogNormal(1e-30, 1e-6))
    model = gps.build(kernel, np.array([0.0, 3.0, -80.0]), {"x": x}, np.zeros(30))
    assert np.isfinite(gps.posterior(model, {"x": x}).sd).all()


def test_not_finite_inputs_are_an_error_that_says_so():
    kernel = KERNELS["iso"]
    with pytest.raises(
        np.linalg.LinAlgError,
        match=r"the 3 x 3 kernel matrix is not .* even with jitter 0.01; are there infinities or NaN",
    ):
        gps.build(kernel, kernel.priors[0], {"x": np.full((3, 4), np.nan)}, np.zeros(3))


@given(st.integers(1, 12), st.integers(0, 10_000))
def test_variance_never_grows_with_data_nor_exceeds_the_prior(n, seed):
    kernel = KERNELS["joint"]
    theta = random_theta(kernel, seed)
    (blocks, y), (new, _) = data(n, seed), data(6, seed + 1)
    fewer = gps.build(kernel, theta, {k: v[:-1] for k, v in blocks.items()}, y[:-1])
    more = gps.build(kernel, theta, blocks, y)
    assert (gps.posterior(more, new).sd <= gps.posterior(fewer, new).sd + 1e-6).all()
    assert (gps.posterior(more, new).sd ** 2 <= gps.variance(kernel, theta, new) + 1e-6).all()


@given(st.integers(0, 10_000), st.floats(0.1, 10.0))
def test_posterior_mean_scales_with_the_data(seed, factor):
    kernel = KERNELS["joint"]
    (blocks, y), (new, _) = data(8, seed), data(5, seed + 1)
    theta = random_theta(kernel, seed)
    one = gps.posterior(gps.build(kernel, theta, blocks, y), new)
    other = gps.posterior(gps.build(kernel, theta, blocks, factor * y), new)
    np.testing.assert_allclose(other.mean, factor * one.mean, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(other.sd, one.sd)
