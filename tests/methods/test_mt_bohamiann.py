"""The sampler against closed forms, the net's uncertainty against held-out rows, the recipe against its promises."""

import math
import sys
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from optuna.distributions import FloatDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.errors import UserError
from jumbo_bo.learning.learners import bnn
from jumbo_bo.methods import MTBohamiann
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

LINE = Space({"a": FloatDistribution(0, 1)})
QUICK = MTBohamiann(units=20, chains=4, samples=5, thin=20, burn_in=5, learn_rounds=8, adapt_rounds=2)


def sampler(gradient, p, chains=200, n=100, thin=20):  # -> share -> (chains n, p)
    import jax

    @jax.jit
    @partial(jax.vmap, in_axes=(0, 0, None))
    def run(chain, key, share):
        first, then = jax.random.split(key)
        chain, _ = bnn.sample(gradient, chain, first, share, True, n, thin)
        return bnn.sample(gradient, chain, then, share, False, n, thin)[1]

    start = bnn.start(np.zeros((chains, p), np.float32))
    keys = jax.random.split(jax.random.key(0), chains)
    return lambda share: np.asarray(run(start, keys, share)).reshape(-1, p)


def test_a_gaussian_of_very_different_scales_is_sampled_exactly():
    mean, sd = np.array([1.0, -0.5, 0.2, 0.01, 2e-3]), np.array([1.0, 0.3, 0.1, 0.01, 1e-3])
    got = sampler(lambda theta, key: (theta - mean) / sd**2, 5)(0.0)
    assert np.abs((got.mean(axis=0) - mean) / sd).max() < 0.1
    np.testing.assert_allclose(got.std(axis=0), sd, rtol=0.1)


def test_minibatch_noise_does_not_heat_the_chain():
    """The posterior of a Gaussian mean from 2,000 rows, 20 of which are seen in a step. Without the correction for
    their noise the chain is too wide."""
    import jax

    rng = np.random.default_rng(0)
    z = rng.normal(0.7, 1.0, 2000).astype(np.float32)
    sd = 1 / math.sqrt(1 + len(z))

    def gradient(theta, key):
        i = jax.random.randint(key, (20,), 0, len(z))
        return theta - len(z) * (jax.numpy.asarray(z)[i].mean() - theta)

    run = sampler(gradient, 1)
    got = run(len(z) / (len(z) + 20))
    assert got.mean() == pytest.approx(sd**2 * z.sum(), abs=0.15 * sd)
    assert got.std() == pytest.approx(sd, rel=0.05)
    assert run(0.0).std() > 1.1 * sd


def test_without_hidden_layers_it_is_bayesian_linear_regression(rng):
    """The noise variance is held at its prior's median by leaving it out of the gradient."""
    import jax

    net = bnn.Net(inputs=2, tasks=1, embedding=0, layers=0, spread=1.0)
    x = rng.uniform(-1, 1, (40, 2))
    z = x @ [0.8, -0.4] + 0.3 + 0.1 * rng.standard_normal(40)
    data = (x.astype(np.float32), z.astype(np.float32), np.zeros(40, np.int32), np.ones(40, np.float32))
    free = np.array([1, 1, 1, 0], np.float32)
    gradient = jax.grad(lambda theta: bnn.potential(theta * free, net, *data))
    got = sampler(lambda theta, key: gradient(theta), 4)(0.0)[:, :3]
    basis = np.column_stack([x * 2**-0.5, np.ones(40)])  # weights have the prior variance 1 / fan in, the bias 1
    cov = np.linalg.inv(np.eye(3) + basis.T @ basis / bnn.NOISE_MEDIAN)
    expected = cov @ basis.T @ z / bnn.NOISE_MEDIAN
    assert np.abs((got.mean(axis=0) - expected) / np.sqrt(np.diag(cov))).max() < 0.15
    np.testing.assert_allclose(np.cov(got.T), cov, atol=0.15 * np.diag(cov).max())


def test_prediction_is_the_net_of_the_potential_for_any_number_of_rows(rng):
    net = bnn.Net(inputs=3, tasks=2)
    thetas = rng.standard_normal((3, net.p)).astype(np.float32)
    t = rng.random((bnn.CHUNK + 5, 3))
    f = bnn.predict(thetas, net, t, task=1)
    for i in (0, bnn.CHUNK - 1, bnn.CHUNK, len(t) - 1):
        psi, layers, _ = bnn.unpack(thetas[2], net)
        h = np.concatenate([2 * t[i] - 1, psi[1]])
        for weight, bias in layers[:-1]:
            h = np.tanh(h @ weight + bias)
        assert f[2, i] == pytest.approx((h @ layers[-1][0] + layers[-1][1])[0], abs=1e-5)
    x, task = (2 * t - 1).astype(np.float32), np.ones(len(t), np.int32)
    far = bnn.potential(thetas[2], net, x, f[2] + 1, task, np.ones(len(t), np.float32))
    near = bnn.potential(thetas[2], net, x, f[2], task, np.ones(len(t), np.float32))
    noise = np.exp(bnn.unpack(thetas[2], net)[2][1])
    assert float(far - near) == pytest.approx(0.5 * len(t) / noise, rel=1e-3)


def fitted(x, z, rounds, seed=0):  # -> what was learned before, chains, the states of all but the first rounds
    past = QUICK.learn(History.empty(LINE), seed)
    chains, _ = QUICK._move(past, past.chains, x[:, None], z, 9, (seed, 0))
    thetas = []
    for k in range(rounds):
        chains, some = QUICK._move(past, chains, x[:, None], z, 0, (seed, 1, k))
        thetas.append(some)
    return past, chains, np.concatenate(thetas)


def test_intervals_cover_and_uncertainty_grows_away_from_the_data():
    """sin(6 a) with noise 0.1, seen on [0.2, 0.8] only."""
    rng = np.random.default_rng(1)
    x = rng.uniform(0.2, 0.8, 60)
    past, _, thetas = fitted(x, np.sin(6 * x) + 0.1 * rng.standard_normal(60), rounds=10)
    at = rng.uniform(0.2, 0.8, 500)
    held_out = np.sin(6 * at) + 0.1 * rng.standard_normal(500)
    f = bnn.predict(thetas, past.net, at[:, None])
    noise = np.exp(np.array([bnn.unpack(theta, past.net)[2][0] for theta in thetas])).mean()
    covered = np.abs(held_out - f.mean(axis=0)) <= 1.645 * np.sqrt(f.var(axis=0) + noise)
    assert 0.75 <= covered.mean() <= 0.99
    assert math.sqrt(noise) == pytest.approx(0.1, rel=0.3)
    inside, outside = (
        bnn.predict(thetas, past.net, np.array(a)[:, None]).std(axis=0) for a in ([0.4, 0.6], [0.0, 1.0])
    )
    assert outside.min() > 2 * inside.max()


def test_one_round_is_enough_to_learn_the_newest_trial():
    """A first value far from the others moves the prediction there, in one round, most of the way."""
    rng = np.random.default_rng(2)
    x = rng.uniform(0.0, 0.5, 12)
    z = np.sin(6 * x)
    past, chains, thetas = fitted(x, z, rounds=5)
    here = np.array([[0.9]])
    before = bnn.predict(thetas, past.net, here).mean()
    x, z = np.append(x, 0.9), np.append(z, before + 1.0)
    after = []
    for k in range(20):
        chains, thetas = QUICK._move(past, chains, x[:, None], z, 0, (3, k))
        after.append(bnn.predict(thetas, past.net, here).mean() - before)
    in_the_end = np.mean(after[5:])
    assert in_the_end > 0.3
    assert after[0] > 0.75 * in_the_end


def old_runs(rng, n=40, shift=0.0):
    u = rng.random((n, 1))
    return Task(f"shift {shift}", u, np.cos(4 * (u[:, 0] - 0.7 - shift)))


def test_old_runs_point_to_their_optimum_before_the_first_trial(rng):
    history = History(LINE, (old_runs(rng), old_runs(rng, shift=0.02)))
    first = Optimizer(LINE, history, n_trials=10, method=replace(QUICK, beta0=1e-6)).ask()
    assert first.params["a"] == pytest.approx(0.71, abs=0.15)
    assert math.isfinite(first.predicted.sd)


def test_many_rows_and_many_trials_are_seen_in_minibatches(rng):
    history = History(LINE, (old_runs(rng, 5000),), target=old_runs(rng, 200, shift=0.1))
    optimizer = Optimizer(LINE, history, n_trials=3, method=QUICK)
    assert len(optimizer.view().u) > bnn.BATCH
    assert optimizer.ask().params["a"] == pytest.approx(0.8, abs=0.2)


def test_without_blackjax_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "blackjax", None)
    with pytest.raises(UserError, match=r"mt-bohamiann needs blackjax.*: pip install 'jumbo-bo\[baselines\]'"):
        Optimizer(LINE, method=QUICK)
