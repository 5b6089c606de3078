from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from jumbo_bo.models.alternatives import (
    alternative,
    expectations,
    extended,
    families,
    posteriors,
    probabilities,
    with_pending,
)
from jumbo_bo.models.gp import (
    Evidence,
    Kernel,
    Term,
    ard,
    build,
    covariance,
    expected,
    extend,
    hallucinate,
    optimistic,
    posterior,
)

KERNEL = Kernel((Term("1", "linear", (0,)), ard("x", 2)), mean="heads", column=None)
THETA = np.log([0.5, 0.8, 0.3, 0.6, 0.05])


def blocks(n, seed=0):
    rng = np.random.default_rng(seed)
    return {"1": np.ones((n, 1)), "x": rng.random((n, 2)), "heads": rng.normal(size=(n, 3))}


@pytest.fixture
def data():
    at = blocks(8)
    return at, at["heads"][:, 1] + 0.3 * np.random.default_rng(1).normal(size=8)


def densities(at, y):
    cov = covariance(KERNEL, THETA, at, at) + np.exp(THETA[-1]) * np.eye(len(y))
    return np.array([multivariate_normal(mean, cov).pdf(y) for mean in at["heads"].T])


def test_the_likelihood_is_the_average_over_the_means(data):
    at, y = data
    gp = build(KERNEL, THETA, at, y)
    each = densities(at, y)
    assert gp.log_likelihood == pytest.approx(np.log(each.mean()))
    assert Evidence(KERNEL, at, y)(THETA)[0] == pytest.approx(np.log(each.mean()))
    np.testing.assert_allclose(probabilities(gp), each / each.sum())


def test_its_gradient(data):
    evidence = Evidence(KERNEL, *data)
    np.testing.assert_allclose(
        evidence(THETA)[1], approx_fprime(THETA, lambda theta: evidence(theta)[0], 1e-6), atol=1e-4
    )


def test_each_is_the_gp_with_this_mean(data):
    at, y = data
    for gp in (build(KERNEL, THETA, at, y), _grown(at, y)):
        for k in range(3):
            one, alone = alternative(gp, k), build(replace(KERNEL, column=k), THETA, at, y)
            new = blocks(5, seed=2)
            np.testing.assert_allclose(posterior(one, new), posterior(alone, new), atol=1e-9)
            assert one.log_likelihood == pytest.approx(alone.log_likelihood)


def family(at, y):
    gp = build(KERNEL, THETA, at, y)
    return [alternative(gp, k) for k in range(3)]


def _grown(at, y):
    first = {name: block[:5] for name, block in at.items()}
    return extend(build(KERNEL, THETA, first, y[:5]), {name: block[5:] for name, block in at.items()}, y)


def test_pending_points_lower_the_doubt_of_all_alike(data):
    gps = family(*data)
    pending, new = blocks(2, seed=3), blocks(5, seed=4)
    for told, gp in zip(with_pending(gps, pending), gps, strict=True):
        np.testing.assert_allclose(posterior(told, new), posterior(hallucinate(gp, pending), new), atol=1e-9)
        np.testing.assert_allclose(posterior(told, new).mean, posterior(gp, new).mean, atol=1e-9)
    assert with_pending(gps, blocks(0)) == gps


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("said", [posterior, lambda gp, at: optimistic(gp, at, first=4)])
def test_a_family_is_asked_at_once(data, said, dtype):
    gps, new = family(*data), {name: block.astype(dtype) for name, block in blocks(5, seed=2).items()}
    close = {"rtol": 1e-9, "atol": 1e-9} if dtype is np.float64 else {"rtol": 1e-4, "atol": 1e-4}
    np.testing.assert_allclose(posteriors(gps, new, said), [said(gp, new) for gp in gps], **close)
    np.testing.assert_allclose(expectations(gps, new), [expected(gp, new) for gp in gps], **close)
    assert {normal.mean.dtype for normal in posteriors(gps, new, said)} == {np.dtype(dtype)}


def test_a_family_grows_with_one_factor(data):
    more, y, new = blocks(3, seed=5), np.array([0.1, -0.2, 0.3]), blocks(5, seed=2)
    told = with_pending(family(*data), blocks(2, seed=3))  # each with values of its own
    grown = extended(told, more, y)
    assert len({id(gp.chol) for gp in grown}) == 1
    for gp, one in zip(grown, told, strict=True):
        np.testing.assert_allclose(
            posterior(gp, new), posterior(extend(one, more, np.append(one.y, y)), new), atol=1e-9
        )


def test_families_are_those_with_one_factor(data):
    gps = [*family(*data), build(replace(KERNEL, column=0), THETA, *data)]
    assert [[w for w, _ in one] for one in families(zip("abcd", gps, strict=True))] == [["a", "b", "c"], ["d"]]
