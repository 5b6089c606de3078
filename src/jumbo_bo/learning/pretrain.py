"""Learning from the old runs, once: the multi-headed net and, with old data of the target, Eq. 1 of the paper.

Notation
    x       (n, D)  2 T(u) - 1, what the net sees
    z, w    (n, K)  warped objective of each old task, and its weight (0: not observed there)
    phi     (p,)    all weights of one member, one flat vector (one Adam update instead of ten: twice as fast)
    theta   (2, 3)  log variance, log lengthscale, log noise variance of the warm and of the cold GP
    D^f     old data of the target: T(u) (n_f, D) and z (n_f,)

    L(phi, theta) = MSE(phi) + NLL_warm(phi, theta_w) / n_f + NLL_cold(theta_c) / n_f          (Eq. 1)
    MSE(phi) = 1/K sum_k [ sum_i w_ik (g_k(x_i) - z_ik)^2 / sum_i w_ik ]

Each head is averaged over its own rows, so a task with few rows is not drowned by one with many. The warm GP sees h
standardised over a fixed set of training rows; the same rows standardise the block `h` of the result, so with one
member theta_w holds for that block exactly. theta_c is in units of T(u), the block `x`. Each member has its own L; the
result holds them side by side (`features.side_by_side`), standardised over the first one's rows, with one theta.

As printed, NLL_warm is a function of theta_w: by default it leaves phi alone, and `deep_kernel=True` lets it shape phi.
Measured on FCNet (old task: 3 epochs, D^f: 10 or 30 rows after 100 epochs), shaping phi made the warm GP overconfident
and the heads worse on all three datasets.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import scipy.linalg  # noqa: F401 (jax borrows its LAPACK: loaded here, the thread limit below reaches it)
from threadpoolctl import threadpool_limits

from jumbo_bo.data.history import History
from jumbo_bo.errors import InputError
from jumbo_bo.learning import elsewhere, training
from jumbo_bo.learning.assembly import Trained, assembled, prepared, sizes_of
from jumbo_bo.learning.features import SD_FLOOR, Array, FeatureNet, layers_of
from jumbo_bo.learning.training import PRESETS, ROUND, Array32, Data, Pretraining, Report, Rows, Target

__all__ = ["PRESETS", "Pretraining", "pretrain"]

THETA_RATE = 0.1  # paper, 'Details of training the Gaussian Process hyper-parameters': 100 Adam steps at 0.1
THETA_LOW = np.log([1e-3, 1e-2, 1e-3])  # a few rows alone would drive the noise to zero
THETA_HIGH = np.log([1e3, 1e2, 1e1])
THETA_START = np.log([1.0, 1.0, 1e-2])
ATTEMPTS = 3  # learning rates tried when the loss stops being finite, each a tenth of the last


class _State(NamedTuple):
    phi: Any  # (p,) float32
    theta: Any  # (2, 3) float64
    phi_adam: Any  # Adam's moments
    theta_adam: Any
    key: Any  # of the dropout


class _Spec(NamedTuple):
    """What a compiled round depends on, beside the shapes of its arguments."""

    sizes: tuple[int, ...]  # D, n_u, ..., n_u, n_z, K
    dropout: float
    deep_kernel: bool


def pretrain(
    history: History, options: Pretraining | str = "default", seed: int = 0, progress: bool = False
) -> FeatureNet:
    """The net that has learned the old tasks of `history`. The same seed gives the same weights on the same kind of
    machine; another processor may round differently.

    Without old tasks the target's own old data are the one head. `progress` shows a bar when run in a terminal.
    """
    chosen = training.resolve(options)
    tasks = training.tasks_to_learn(history)
    data = prepared(history, tasks, chosen.members, seed)
    n = len(data[0].rows.x)
    n_steps = training.steps_per_member(chosen, n)
    precise, each = history.target is not None, elsewhere.current()
    with (
        training.progress_bar(progress, n_steps * chosen.members, history.n_rows, not precise) as report,
        _usual(precise),
    ):
        if each is None:
            trained = [
                _train(its, chosen, seed, member, partial(report, member * n_steps)) for member, its in enumerate(data)
            ]
        else:
            found = each(_member, [(its, chosen, seed, member, precise) for member, its in enumerate(data)])
            trained = [Trained(its, *result) for its, result in zip(data, found, strict=True)]
        return assembled(history, tasks, chosen, seed, trained)


@contextmanager
def _usual(precise: bool) -> Iterator[None]:
    """`precise`: float64 for the GP terms; the net stays float32. One thread: a second one mostly waits, and would give
    other last bits."""
    with jax.enable_x64(True) if precise else nullcontext(), threadpool_limits(1):
        yield


def _member(data: Data, options: Pretraining, seed: int, member: int, precise: bool) -> tuple[Any, ...]:
    """In another process: what `Trained` has beside the data, which need not travel back."""
    with _usual(precise):
        return _train(data, options, seed, member, lambda step, loss: None)[1:]


def _train(data: Data, options: Pretraining, seed: int, member: int, report: Report) -> Trained:
    rate = options.learning_rate
    for _ in range(ATTEMPTS):
        trained = _attempt(data, options, rate, (seed, member), report)
        if trained is not None:
            return trained
        rate /= 10
    problem = f"pretraining diverged: the loss is not finite even at learning_rate={10 * rate:g}"
    raise InputError(f"{problem}; pass a lower learning_rate or a smaller net in Pretraining(...)")


def _attempt(data: Data, options: Pretraining, rate: float, seed: tuple[int, int], report: Report) -> Trained | None:
    """The weights with the lowest validation loss; None when the loss stopped being finite."""
    rng = np.random.default_rng([*seed, 1])
    n, n_steps = len(data.train), training.steps_per_member(options, len(data.rows.x))
    x, z, w = data.rows
    sizes = sizes_of(data, options)
    spec = _Spec(sizes, options.dropout, options.deep_kernel)
    scale = training.head_scale(w[data.train])
    valid = training.padded(data.rows, data.valid if len(data.valid) else data.train)
    factor = training.rate_factors(options.schedule, n_steps)
    decay = np.float32(min(1.0, options.weight_decay / n))
    phi, theta = _initial(rng, sizes), np.array([THETA_START, THETA_START])
    state = _State(
        phi, theta, _moments(phi), _moments(theta), jax.random.key(rng.integers(2**31)) if options.dropout else None
    )
    best, best_loss, best_step = state, math.inf, 0
    patience = training.patience_in_steps(options, n)
    groups = training.gp_groups(data.target, n_steps, options.deep_kernel)
    for step, index in zip(
        range(0, n_steps + 1, ROUND), training.stream(rng, n, ROUND * options.batch_size), strict=False
    ):
        i = data.train[index]
        rows = Rows(*(a.reshape(groups, -1, options.batch_size, a.shape[1]) for a in (x[i], z[i], w[i] * scale)))
        now = factor[step : step + ROUND].reshape(groups, -1)
        after, *losses = _round(state, (rows, rate * now, THETA_RATE * now), valid, data.target, decay, spec)
        train_loss, loss = (float(value) for value in losses)
        if not (math.isfinite(train_loss) and math.isfinite(loss)):
            return None
        report(step, loss)
        if loss < best_loss or not len(data.valid):
            best, best_loss, best_step = state, loss, step
        elif step - best_step > patience:
            break
        state = after
    info = {
        "steps": step,
        "best_step": best_step,
        "epochs": step * options.batch_size / n,
        "learning_rate": rate,
        "train_loss": train_loss,
        "validation_loss": best_loss if len(data.valid) else None,
    }
    return Trained(data, np.asarray(best.phi), np.asarray(best.theta), info)


_ADAM = optax.scale_by_adam()


# The matrices are small: a second thread would only burn CPU time.
@partial(jax.jit, static_argnames="spec", compiler_options={"xla_cpu_multi_thread_eigen": False})
def _round(state: _State, batches: Any, valid: Rows, target: Target | None, decay: Any, spec: _Spec) -> Any:
    """ROUND steps of AdamW -> the state after them, their mean loss, the validation loss of the state *before* them.

    The losses are those of Eq. 1. `batches` come in groups; theta moves, and the GP terms are evaluated, once per group
    (so the first group has the GP terms of the validation loss at hand)."""

    def group(state: _State, batches: Any) -> tuple[_State, Any]:
        rows, phi_rates, theta_rates = batches
        gp, gp_phi, theta, theta_adam = 0.0, 0.0, state.theta, state.theta_adam
        if target is not None:
            gp, (gp_phi, d_theta) = jax.value_and_grad(_gp_terms, (0, 1))(state.phi, state.theta, target, spec)
            d_theta, theta_adam = _ADAM.update(d_theta, theta_adam)
            theta = jnp.clip(theta - theta_rates[0] * d_theta, THETA_LOW, THETA_HIGH)

        def step(carry: Any, batch: Any) -> Any:
            phi, adam, key = carry
            rows, rate = batch
            key, now = jax.random.split(key) if spec.dropout else (key, None)
            value, d_phi = jax.value_and_grad(_mse)(phi, rows, spec, now)
            d_phi, adam = _ADAM.update(d_phi + gp_phi, adam)
            return (phi - rate * (d_phi + decay * phi), adam, key), value

        carry, losses = jax.lax.scan(step, (state.phi, state.phi_adam, state.key), (rows, phi_rates))
        phi, phi_adam, key = carry
        return _State(phi, theta, phi_adam, theta_adam, key), (jnp.mean(losses) + gp, gp)

    after, (losses, gp) = jax.lax.scan(group, state, batches)
    return after, jnp.mean(losses), _mse(state.phi, valid, spec) + gp[0]


def _mse(phi: Any, rows: Rows, spec: _Spec, key: Any = None) -> Any:
    layers = layers_of(phi, spec.sizes)
    weight, bias = layers[-1]
    g = _latent(layers, rows.x, spec.dropout, key) @ weight + bias
    return jnp.sum(rows.w * (g - rows.z) ** 2) / rows.x.shape[0]


def _gp_terms(phi: Any, theta: Any, target: Target, spec: _Spec) -> Any:
    layers = layers_of(phi if spec.deep_kernel else jax.lax.stop_gradient(phi), spec.sizes)
    reference = _latent(layers, target.reference)
    sd = jnp.sqrt(jnp.var(reference, axis=0) + SD_FLOOR**2)  # as in features.py
    h = (_latent(layers, (2 * target.t - 1).astype(phi.dtype)) - jnp.mean(reference, axis=0)) / sd
    square = jnp.stack([_square_distance(h.astype(target.t.dtype)), _square_distance(target.t)])
    return jnp.sum(jax.vmap(_nll, (0, None, 0))(square, target.z, theta)) / len(target.z)


def _latent(layers: Any, x: Any, dropout: float = 0.0, key: Any = None) -> Any:  # (m, D) -> (m, n_z)
    for weight, bias in layers[:-2]:
        x = jnp.tanh(x @ weight + bias)
    if key is not None:
        keep = jax.random.bernoulli(key, jnp.float32(1 - dropout), x.shape)
        x = jnp.where(keep, x / (1 - dropout), 0)
    weight, bias = layers[-2]
    return jnp.tanh(x @ weight + bias)


def _square_distance(x: Any) -> Any:  # (n, p) -> (n, n)
    square = jnp.sum(x * x, axis=1)
    return square[:, None] + square[None, :] - 2 * x @ x.T


def _nll(square_distance: Any, z: Any, theta: Any) -> Any:  # (n, n), (n,), (3,) -> ()
    """Negative log marginal likelihood of a zero-mean GP, isotropic Matern-5/2 plus noise."""
    variance, lengthscale, noise = jnp.exp(theta)
    # The floor gives the root a gradient on the diagonal and for repeated rows.
    r = jnp.sqrt(5 * jnp.maximum(square_distance / lengthscale**2, 1e-30))
    k = variance * (1 + r + r * r / 3) * jnp.exp(-r) + noise * jnp.eye(len(z))
    # d NLL / dK = (K^-1 - alpha alpha^T) / 2 in closed form: far cheaper than differentiating the Cholesky factor.
    fixed = jax.lax.stop_gradient(k)
    factor = jnp.linalg.cholesky(fixed)
    inverse = jax.scipy.linalg.cho_solve((factor, True), jnp.eye(len(z)))
    alpha = inverse @ z
    value = 0.5 * z @ alpha + jnp.sum(jnp.log(jnp.diagonal(factor))) + 0.5 * len(z) * math.log(2 * math.pi)
    return value + 0.5 * jnp.sum((inverse - jnp.outer(alpha, alpha)) * (k - fixed))


def _initial(rng: np.random.Generator, sizes: tuple[int, ...]) -> Array32:
    parts: list[Array] = []
    for fan_in, fan_out in pairwise(sizes):
        parts += [rng.normal(scale=fan_in**-0.5, size=fan_in * fan_out), np.zeros(fan_out)]
    return np.concatenate(parts).astype(np.float32)


def _moments(params: Any) -> optax.ScaleByAdamState:
    """What Adam's init gives, without compiling anything for it."""
    return optax.ScaleByAdamState(np.zeros((), np.int32), np.zeros_like(params), np.zeros_like(params))
