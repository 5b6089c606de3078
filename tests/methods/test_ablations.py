"""The paper's two ablations of JUMBO: linear regression in place of the warm-GP, and a constant lambda."""

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, IntDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.learning.pretrain import Pretraining, pretrain
from jumbo_bo.methods import METHODS
from jumbo_bo.models.gp import posterior
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.search.acquisition import ucb
from jumbo_bo.space.space import Space

SPACE = Space({"a": IntDistribution(0, 9), "b": IntDistribution(0, 9), "c": CategoricalDistribution(["x", "y"])})


def loss(p):
    return (p["a"] - 6) ** 2 / 10 + (p["b"] - 2) ** 2 / 10 + (p["c"] == "x")


@pytest.fixture(scope="module")
def net():
    u = SPACE.sample(np.random.default_rng(0), 80)
    old = Task("old", u, np.array([-loss(SPACE.decode(row)) for row in u]))
    return pretrain(History(SPACE, (old,)), Pretraining(max_steps=300))


def after(method, net, n=8):
    optimizer = Optimizer(SPACE, net, n_trials=20, method=method)
    for _ in range(n):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, loss(suggestion.params))
    return optimizer


def test_the_linear_warm_model_is_bayesian_linear_regression(net):
    """Against the textbook posterior of the weights: S = (P + F'F / s)^-1, w = S F'y / s."""
    optimizer = after("jumbo-blr", net)
    view = optimizer.view()
    warm, _ = METHODS["jumbo-blr"].models(view)
    blocks = view.domain.blocks
    intercept, weight, noise = np.exp(warm.theta)
    prior = np.diag([1 / intercept] + [1 / weight] * blocks["h"].shape[1])
    design = np.hstack([warm.blocks["1"], warm.blocks["h"]])
    covariance = np.linalg.inv(prior + design.T @ design / noise)
    mean = covariance @ design.T @ warm.y / noise
    query = np.hstack([blocks["1"], blocks["h"]])
    ours = posterior(warm, blocks)
    np.testing.assert_allclose(ours.mean, query @ mean, atol=1e-6)
    np.testing.assert_allclose(ours.sd, np.sqrt(np.einsum("ij,jk,ik->i", query, covariance, query)), atol=1e-5)


def test_a_constant_lambda_is_the_average_of_the_two_scores(net):
    optimizer = after("jumbo-constant", net)
    view = optimizer.view()
    choice = optimizer.recipe(view)
    warm, cold = METHODS["jumbo-constant"].models(view)
    blocks = view.domain.blocks
    scores = 0.5 * ucb(warm.predict, choice.beta)(blocks) + 0.5 * ucb(cold.predict, choice.beta)(blocks)
    scores[view.domain.rows_of(view.taken)] = -np.inf
    assert choice.best.index == int(np.argmax(scores))


def test_the_ablations_are_no_copies_of_jumbo(net):
    plain = [s.params for s in after("jumbo-printed", net, 12).suggestions]
    assert [s.params for s in after("jumbo-blr", net, 12).suggestions] != plain
    assert [s.params for s in after("jumbo-constant", net, 12).suggestions] != plain
