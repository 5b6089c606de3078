from __future__ import annotations

import numpy as np
from optuna.distributions import CategoricalDistribution, FloatDistribution

from jumbo_bo.models.gp import build, posterior
from jumbo_bo.models.kernel import covariance
from jumbo_bo.models.population import alone, informed, population
from jumbo_bo.space.space import Space

SPACE = Space({"a": FloatDistribution(0, 1), "b": CategoricalDistribution(["p", "q", "r"])})


def blocks(n, tasks, seed=0):
    rng = np.random.default_rng(seed)
    heads = rng.normal(size=(n, tasks))
    mean = heads.mean(axis=1, keepdims=True)
    x = SPACE.transform(SPACE.sample(rng, n))
    return heads, {"1": np.ones((n, 1)), "x": x, "m": mean, "dev": (heads - mean) / np.sqrt(tasks - 1)}


def test_the_prior_is_mean_and_sample_covariance_of_the_old_tasks():
    heads, at = blocks(7, 5)
    kernel = population(SPACE, 5)
    theta = np.full(len(kernel.priors[0]), -40.0)  # nothing but the covariance of the tasks
    slot = next(s for term, s in kernel.slices() if term.block == "dev")
    theta[slot] = 0.0
    np.testing.assert_allclose(covariance(kernel, theta, at, at), np.cov(heads), atol=1e-12)
    prior = build(kernel, theta, {name: block[:0] for name, block in at.items()}, np.zeros(0))
    np.testing.assert_allclose(posterior(prior, at).mean, heads.mean(axis=1))
    np.testing.assert_allclose(posterior(prior, at).sd, heads.std(axis=1, ddof=1), atol=1e-6)


def test_one_old_task_has_no_covariance():
    assert [term.block for term in population(SPACE, 0).terms] == ["1", "m", "x"]
    assert [term.block for term in population(SPACE, 1 + 1).terms] == ["1", "m", "dev", "x"]


def test_learned_priors_take_the_place_of_weak_ones():
    for kernel in (alone(SPACE), population(SPACE, 3)):
        p = len(kernel.priors[0])
        prior = np.stack([np.linspace(-1, 1, p), np.linspace(0.3, 0.9, p)])
        median, sd = informed(kernel, prior).priors
        np.testing.assert_allclose(median, prior[0])
        np.testing.assert_allclose(sd, prior[1])
        assert informed(kernel, None) == kernel
