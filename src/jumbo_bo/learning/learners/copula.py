"""The parametric prior of the Gaussian copula process: a net that gives every configuration a normal distribution of
its normal score, trained on all old rows together by maximum likelihood.

Salinas, Shen and Perrone, 'A quantile-based approach for hyperparameter transfer learning', ICML 2020. The net is that
of the authors' released code: three hidden layers of 50 rectified units with dropout 0.1, Adam on minibatches of 64.

Notation
    x       (n, D)  2 T(u) - 1, what the net sees
    z       (n,)    normal scores of the old rows
    phi     (p,)    all weights, one flat vector
    out     (m, 2)  mu, and s with sigma = sigma_of(s)

    loss = mean of log sigma(x) + ((z - mu(x)) / sigma(x))^2 / 2

The last layer starts at zero, so the net starts with mu = 0 and sigma = 1: what normal scores are before anything is
known of the configuration. It is left only for weights that do better on the rows held out.
"""

from __future__ import annotations

import math
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jumbo_bo.learning import training
from jumbo_bo.learning.features import Array, Layers, layers_of
from jumbo_bo.learning.training import ROUND, Array32, Rows

HIDDEN = (50, 50, 50)
DROPOUT = 0.1
BATCH = 64
RATE = 1e-2
EPOCHS, MIN_STEPS, MAX_STEPS = 200, 1_000, 10_000
PATIENCE = 0.2  # share of all steps without a better validation loss

_ADAM = optax.scale_by_adam()


def fit_prior(x: Array32, z: Array, sigma_floor: float, seed: int) -> Layers:  # (n, D), (n,) ->
    """The weights with the lowest loss on the rows held out. The same seed gives the same weights."""
    rng = np.random.default_rng([seed, 2])
    rows = Rows(x, z[:, None].astype(np.float32), np.ones((len(z), 1), np.float32))
    train, valid = training.split(rows.w, rng)
    sizes = (x.shape[1], *HIDDEN, 2)
    phi = best = _initial(rng, sizes, sigma_floor)
    if not len(valid):  # too few rows to tell learning from memorising
        return _numbers(best, sizes)
    held_out = training.padded(rows, valid)
    n_steps = ROUND * math.ceil(min(max(EPOCHS * len(train) / BATCH, MIN_STEPS), MAX_STEPS) / ROUND)
    rates = RATE * training.rate_factors("cosine", n_steps)
    adam = optax.ScaleByAdamState(np.zeros((), np.int32), np.zeros_like(phi), np.zeros_like(phi))
    state: Any = (phi, adam, jax.random.key(rng.integers(2**31)))
    best_loss, best_step = math.inf, 0
    for step, index in zip(range(0, n_steps + 1, ROUND), training.stream(rng, len(train), ROUND * BATCH), strict=False):
        batches = Rows(*(a[train[index]].reshape(ROUND, BATCH, -1) for a in rows))
        after, loss = _round(state, batches, rates[step : step + ROUND], held_out, sizes, sigma_floor)
        if float(loss) < best_loss:
            best, best_loss, best_step = state[0], float(loss), step
        elif step - best_step > PATIENCE * n_steps:
            break
        state = after
    return _numbers(best, sizes)


# The matrices are small: a second thread would only burn CPU time.
@partial(jax.jit, static_argnames=("sizes", "floor"), compiler_options={"xla_cpu_multi_thread_eigen": False})
def _round(state: Any, batches: Rows, rates: Any, held_out: Rows, sizes: tuple[int, ...], floor: float) -> Any:
    """ROUND steps of Adam -> the state after them, and the validation loss of the state *before* them."""

    def step(carry: Any, batch: Any) -> Any:
        phi, adam, key = carry
        rows, rate = batch
        key, now = jax.random.split(key)
        gradient, adam = _ADAM.update(jax.grad(_loss)(phi, rows, sizes, floor, now), adam)
        return (phi - rate * gradient, adam, key), None

    after, _ = jax.lax.scan(step, state, (batches, rates))
    return after, _loss(state[0], held_out, sizes, floor)


def _loss(phi: Any, rows: Rows, sizes: tuple[int, ...], floor: float, key: Any = None) -> Any:
    *hidden, (weight, bias) = layers_of(phi, sizes)
    x = rows.x
    for i, (w, b) in enumerate(hidden):
        x = jax.nn.relu(x @ w + b)
        if key is not None:
            keep = jax.random.bernoulli(jax.random.fold_in(key, i), jnp.float32(1 - DROPOUT), x.shape)
            x = jnp.where(keep, x / (1 - DROPOUT), 0)
    out = x @ weight + bias
    mu, sigma = out[:, :1], floor + jax.nn.softplus(out[:, 1:])
    return jnp.sum(rows.w * (jnp.log(sigma) + 0.5 * ((rows.z - mu) / sigma) ** 2)) / rows.x.shape[0]


def _initial(rng: np.random.Generator, sizes: tuple[int, ...], floor: float) -> Array32:
    parts: list[Array] = []
    for fan_in, fan_out in pairwise(sizes[:-1]):
        parts += [rng.normal(scale=math.sqrt(2 / fan_in), size=fan_in * fan_out), np.zeros(fan_out)]
    last = np.array([0.0, math.log(math.expm1(1 - floor))])  # sigma = 1
    return np.concatenate([*parts, np.zeros(2 * sizes[-2]), last]).astype(np.float32)


def _numbers(phi: Any, sizes: tuple[int, ...]) -> Layers:
    layers: Layers = layers_of(np.asarray(phi, np.float64), sizes)
    return layers
