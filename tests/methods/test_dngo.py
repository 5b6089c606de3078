"""DNGO alone fits a known function, and is blind to old runs when asked to be."""

import numpy as np
from optuna.distributions import FloatDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.learning.pretrain import Pretraining, pretrain
from jumbo_bo.methods import DNGO
from jumbo_bo.methods.dngo import OWN
from jumbo_bo.models import blr
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

SPACE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})


def wave(u):
    return np.sin(5 * u[:, 0]) + u[:, 1] ** 2


def told(recipe, history=None, n=40, seed=0):
    optimizer = Optimizer(SPACE, history, "maximize", 50, recipe, seed)
    u = np.random.default_rng(seed).random((n, 2))
    for row, y in zip(u, wave(u), strict=True):
        optimizer.tell(SPACE.decode(row), float(y))
    return optimizer


def test_regression_on_the_net_of_the_trials_predicts_a_known_function():
    rng = np.random.default_rng(0)
    u, new = rng.random((60, 2)), rng.random((200, 2))
    net = pretrain(History(SPACE, (Task("new", u, wave(u)),)), OWN)
    h, h_new = (np.hstack([net.blocks(SPACE.transform(p))["h"], np.ones((len(p), 1))]) for p in (u, new))
    mean, sd = blr.posterior(blr.fit(h, wave(u)), h_new)
    assert 1 - np.var(wave(new) - mean) / np.var(wave(new)) > 0.95
    assert np.mean(np.abs(wave(new) - mean) < 4 * sd + 0.05) > 0.9


def test_alone_it_proposes_near_the_known_optimum():
    suggestion = told(DNGO(old=False, beta0=0.1)).ask()
    assert wave(np.array([list(suggestion.params.values())]))[0] > 1.8  # the maximum is 2
    assert "your trials" in suggestion.why


def test_blind_to_old_runs_when_told_so():
    u = np.random.default_rng(1).random((50, 2))
    history = History(SPACE, (Task("old", u, -wave(u)),))
    blind = told(DNGO(old=False), history, n=6)
    assert blind.net is None
    assert blind.ask().params == told(DNGO(old=False), None, n=6).ask().params == told(DNGO(), None, n=6).ask().params


def test_old_net_gives_the_basis():
    """A target that is linear in the old net's features is known after a few trials."""
    u = np.random.default_rng(1).random((100, 2))
    net = pretrain(History(SPACE, (Task("old", u, wave(u)),)), Pretraining(n_u=20, n_z=5, members=1, max_steps=1500))
    suggestion = told(DNGO(beta0=0.1), net, n=12).ask()
    assert wave(np.array([list(suggestion.params.values())]))[0] > 1.8
    assert "old runs" in suggestion.why
