from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from jumbo_bo.models.success import TYPICAL, Success, fit

GROUPS = (0, 1)


def typical(x):
    return np.full(len(x), TYPICAL)


def fitted(x, ok):
    return fit(x, ok, typical(x), tuple(range(x.shape[1])))


def test_the_probability_is_the_mean_of_a_gp_of_the_outcomes():
    rng = np.random.default_rng(0)
    x, at = rng.random((12, 2)), rng.random((50, 2))
    level, variance, lengths, noise = 0.05, 0.1, (0.5, 0.8), 0.03
    ok = x[:, 0] < 0.6
    model = Success(GROUPS, np.log([level, variance, *lengths, noise]), x, ok - typical(x))
    kernel = ConstantKernel(level) + ConstantKernel(variance) * Matern(lengths, nu=2.5)
    oracle = GaussianProcessRegressor(kernel, alpha=noise, optimizer=None).fit(x, ok - TYPICAL)
    expected = np.clip(TYPICAL + oracle.predict(at), 1 / 14, 13 / 14)
    np.testing.assert_allclose(model.probability(at, typical(at)), expected, atol=1e-9)


def test_one_setting_that_decides_is_found_among_others():
    rng = np.random.default_rng(1)
    x, at = rng.random((30, 6)), rng.random((200, 6))
    probability = fitted(x, x[:, 2] < 0.7).probability(at, typical(at))
    assert np.mean((probability > 0.5) == (at[:, 2] < 0.7)) > 0.9


def test_failures_by_chance_condemn_no_region():
    rng = np.random.default_rng(2)
    x, at = rng.random((60, 3)), rng.random((200, 3))
    probability = fitted(x, rng.random(60) < 0.8).probability(at, typical(at))
    assert probability.min() > 0.5
    assert probability.mean() == pytest.approx(0.8, abs=0.1)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_few_trials_are_never_certain(share):
    x = np.random.default_rng(3).random((3, 2))
    probability = fitted(x, np.full(3, share) > 0.5).probability(x, typical(x))
    assert np.all((probability >= 1 / 5) & (probability <= 4 / 5))


def test_what_was_known_before_stands_where_nothing_was_tried():
    x = np.full((4, 1), 0.05)
    model = fit(x, np.ones(4, dtype=bool), np.full(4, 0.95), (0,))
    at = np.array([[0.05], [1.0]])
    before = np.array([0.95, 0.3])
    assert model.probability(at, before)[1] == pytest.approx(0.3, abs=0.1)


def test_probabilities_are_calibrated():
    """Over many regions that fail, drawn at random: of the trials that are given 10 % to 30 % about that many succeed,
    and so on. 300 regions, 40 places each; the error of a share is below 0.03, that of the model is allowed 0.08."""
    rng = np.random.default_rng(4)
    told, happened = [], []
    for _ in range(300):
        d = int(rng.integers(1, 5))
        x, normal, edge = rng.random((int(rng.integers(6, 30)) + 40, d)), rng.standard_normal(d), rng.normal(0.5, 0.5)
        ok = rng.random(len(x)) < np.where((x - 0.5) @ normal < edge, 0.97, 0.1)
        if ok[40:].all():
            continue  # nothing failed: there is no model then
        told.append(fitted(x[40:], ok[40:]).probability(x[:40], typical(x[:40])))
        happened.append(ok[:40])
    told, happened = np.concatenate(told), np.concatenate(happened)
    for low, high in ((0.1, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 1.0)):
        here = (told >= low) & (told < high)
        assert here.sum() > 300
        assert happened[here].mean() == pytest.approx(told[here].mean(), abs=0.08), (low, high)
