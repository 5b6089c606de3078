"""Net, mean and kernel of a GP, trained together by the marginal likelihood of batches of old rows, and tuned to new
trials from there.

M. Wistuba, J. Grabocka, 'Few-Shot Bayesian Optimization with Deep Kernel Surrogates', ICLR 2021: one task per step.
Z. Wang et al., 'Pre-trained Gaussian Processes for Bayesian Optimization', JMLR 2024: several, their NLL objective.

Notation (learning/deep_gp.py has the model)
    x, z    (b, D), (b,)  2 T(u) - 1 and the standardised values of a batch of one task
    w       (b,)          1, or 0 for a row that only fills the batch up
    K~      (b, b)        covariance of the batch, noise included; the identity where w = 0

    nll = ((z - mean)' K~^-1 (z - mean) + log|K~| + sum(w) log 2 pi) / 2

A step moves along the gradient of the average nll of its batches, per row. All in double precision.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax
from jax.scipy.linalg import cho_solve

from jumbo_bo.data.history import History
from jumbo_bo.learning import training
from jumbo_bo.learning.deep_gp import Shape, parts
from jumbo_bo.learning.training import ROUND, Array32
from jumbo_bo.models.threads import one_thread

Array = npt.NDArray[np.float64]

HELD_OUT = 0.2  # share of each task's rows that tell when to stop
VALIDATION = 16  # batches of them
PATIENCE = 0.3  # share of all steps without a better validation loss
GP_RATE = 10.0  # mean and theta learn so much faster than the net: they have few numbers, which must travel far
VARIANCE, LENGTH, NOISE = (1e-2, 1e2), (1e-2, 1e3), (1e-4, 1.0)  # bounds
NOISE_START = 1e-2
PADDED = 64  # trials are filled up to a power of two of at least this, so that few sizes are ever compiled

_ADAM = optax.scale_by_adam()


class TaskSample(NamedTuple):
    x: Array32  # (n, D)
    z: Array  # (n,)


class Batch(NamedTuple):
    x: Any  # (..., b, D)
    z: Any  # (..., b)
    w: Any  # (..., b)


class Plan(NamedTuple):
    tasks: int  # per step
    rows: int  # b
    steps: int
    rate: float
    stretch: float = 1.0  # the values of a batch are scaled by up to this, and by its inverse
    shift: float = 0.0  # and moved by up to this


def rows_of(history: History) -> list[TaskSample]:
    return [
        TaskSample((2 * history.space.transform(task.u) - 1).astype(np.float32), task.z)
        for task in history.tasks
        if len(task.z)
    ]


def initial(shape: Shape, rng: np.random.Generator) -> Array:  # -> params
    out: list[Array] = []
    for fan_in, fan_out in pairwise(shape.sizes):
        spread = math.sqrt((1 if shape.tanh else 2) / fan_in)
        out += [rng.normal(scale=spread, size=fan_in * fan_out), np.zeros(fan_out)]
    length = math.log(math.sqrt(shape.sizes[-1]))
    theta = [0.0, *[length] * (shape.n_theta - 2), math.log(NOISE_START)]
    return np.concatenate([*out, np.zeros(shape.sizes[-1] * shape.linear), [0.0], theta])


def meta_train(data: Sequence[TaskSample], shape: Shape, plan: Plan, seed: int) -> tuple[Array, int]:
    """The params with the lowest nll of the rows held out, and the number of steps that led there. Too few rows to
    tell learning from memorising: the params it starts with, and 0 steps. The same seed gives the same params."""
    rng = np.random.default_rng([seed, 4])
    learned, held_out = _split(data, rng)
    params = best = initial(shape, rng)
    if not held_out or plan.steps < 1:
        return best, 0
    n_steps = ROUND * math.ceil(plan.steps / ROUND)
    rates = plan.rate * training.rate_factors("cosine", n_steps).astype(float)
    valid = next(_batches(held_out, plan._replace(stretch=1.0, shift=0.0), rng, VALIDATION))
    best_loss, best_step = math.inf, 0
    with jax.enable_x64(True), one_thread():
        state: Any = (params, _moments(params))
        size = min(plan.tasks, len(learned))
        for step, batch in zip(range(0, n_steps + 1, ROUND), _batches(learned, plan, rng, ROUND * size), strict=False):
            batches = Batch(*(a.reshape(ROUND, size, *a.shape[1:]) for a in batch))
            after, loss = _round(state, batches, rates[step : step + ROUND], valid, shape)
            if float(loss) < best_loss:
                best, best_loss, best_step = np.asarray(state[0]), float(loss), step
            elif step - best_step > PATIENCE * n_steps:
                break
            state = after
    return best, best_step


def tune(params: Array, shape: Shape, rows: TaskSample, steps: int, rate: float) -> Array:  # -> params
    """So many steps of Adam on the nll of these rows; of the params on the way, those with the lowest."""
    n = len(rows.z)
    if n == 0 or steps == 0:
        return params
    size = max(PADDED, 1 << (n - 1).bit_length())
    with jax.enable_x64(True), one_thread():
        made = _tuned(params, _filled(rows, np.arange(n), size), np.full(steps, rate), shape)
        return np.asarray(made)


# The matrices are small: a second thread would only burn CPU time.
@partial(jax.jit, static_argnames="shape", compiler_options={"xla_cpu_multi_thread_eigen": False})
def _round(state: Any, batches: Batch, rates: Any, valid: Batch, shape: Shape) -> Any:
    """ROUND steps of Adam -> the state after them, and the validation loss of the state *before* them."""

    def step(state: Any, given: Any) -> Any:
        batch, rate = given
        return _moved(state, jax.grad(loss)(state[0], shape, batch), rate, shape), None

    after, _ = jax.lax.scan(step, state, (batches, rates))
    return after, loss(state[0], shape, valid)


@partial(jax.jit, static_argnames="shape", compiler_options={"xla_cpu_multi_thread_eigen": False})
def _tuned(params: Any, batch: Batch, rates: Any, shape: Shape) -> Any:
    def step(carry: Any, rate: Any) -> Any:
        state, best, lowest = carry
        value, gradient = jax.value_and_grad(nll)(state[0], shape, *batch)
        best, lowest = jnp.where(value < lowest, state[0], best), jnp.minimum(value, lowest)
        return (_moved(state, gradient / jnp.sum(batch.w), rate, shape), best, lowest), None

    start = (params, optax.ScaleByAdamState(jnp.zeros((), jnp.int32), jnp.zeros_like(params), jnp.zeros_like(params)))
    (state, best, lowest), _ = jax.lax.scan(step, (start, params, jnp.inf), rates)
    return jnp.where(nll(state[0], shape, *batch) < lowest, state[0], best)


def _moved(state: Any, gradient: Any, rate: Any, shape: Shape) -> Any:
    params, adam = state
    direction, adam = _ADAM.update(gradient, adam)
    faster = np.ones(len(params))
    faster[shape.n_net :] = GP_RATE
    params = params - rate * faster * direction
    bounds = np.log([VARIANCE, *[LENGTH] * (shape.n_theta - 2), NOISE])
    theta = jnp.clip(params[-shape.n_theta :], bounds[:, 0], bounds[:, 1])
    return jnp.concatenate([params[: -shape.n_theta], theta]), adam


def loss(params: Any, shape: Shape, batch: Batch) -> Any:
    """The average nll of several batches, per row of a full one: a small task counts less than a large one, by its
    rows."""
    each = jax.vmap(nll, in_axes=(None, None, 0, 0, 0))(params, shape, *batch)
    return jnp.mean(each) / batch.z.shape[-1]


def nll(params: Any, shape: Shape, x: Any, z: Any, w: Any) -> Any:  # (b, D), (b,), (b,) -> ()
    layers, weight, level, theta = parts(params, shape)
    for i, (matrix, bias) in enumerate(layers):
        x = x @ matrix + bias
        if shape.tanh:
            x = jnp.tanh(x)
        elif i < len(layers) - 1:
            x = jax.nn.relu(x)
    residual = w * (z - level - (x @ weight if shape.linear else 0.0))
    filled = jnp.diag(w * jnp.exp(theta[-1]) + 1 - w)
    cov = w[:, None] * w * matern52(x * jnp.exp(-theta[1:-1]), theta[0]) + filled
    return _gaussian(cov, residual) + 0.5 * math.log(2 * math.pi) * jnp.sum(w)


def matern52(h: Any, log_variance: Any) -> Any:  # (b, W) / length scales -> (b, b)
    length = jnp.sum(h**2, axis=1)
    square = length[:, None] + length - 2 * h @ h.T
    r = jnp.sqrt(5 * jnp.maximum(square, 1e-20))  # the root has no slope at 0, the kernel has
    return jnp.exp(log_variance - r) * (1 + r + r**2 / 3)


@jax.custom_vjp
def _gaussian(cov: Any, r: Any) -> Any:  # (b, b), (b,) -> ()
    """(r' cov^-1 r + log|cov|) / 2. Its gradient needs the inverse only, not the derivative of a factorisation."""
    return _with_inverse(cov, r)[0]


def _with_inverse(cov: Any, r: Any) -> Any:
    root = jnp.linalg.cholesky(cov)
    inverse = cho_solve((root, True), jnp.eye(len(r)))
    alpha = inverse @ r
    return 0.5 * r @ alpha + jnp.sum(jnp.log(jnp.diag(root))), (inverse, alpha)


def _slopes(kept: Any, g: Any) -> Any:
    inverse, alpha = kept
    return 0.5 * g * (inverse - jnp.outer(alpha, alpha)), g * alpha


_gaussian.defvjp(_with_inverse, _slopes)


def _split(data: Sequence[TaskSample], rng: np.random.Generator) -> tuple[list[TaskSample], list[TaskSample]]:
    """What is learned from, and what is held out of each task of at least five rows."""
    learned, held_out = [], []
    for x, z in data:
        order, k = rng.permutation(len(z)), int(HELD_OUT * len(z))
        learned.append(TaskSample(x[order[k:]], z[order[k:]]))
        if k:
            held_out.append(TaskSample(x[order[:k]], z[order[:k]]))
    enough = sum(len(z) for _, z in data) >= training.SPLIT_FROM
    return learned, held_out if enough else []


def _batches(data: Sequence[TaskSample], plan: Plan, rng: np.random.Generator, n: int) -> Iterator[Batch]:
    """n batches at a time, for ever. Every task comes as often as any other."""
    for tasks in training.stream(rng, len(data), n):
        made = []
        for k in tasks:
            size = min(plan.rows, len(data[k].z))
            x, z, w = _filled(data[k], rng.choice(len(data[k].z), size, replace=False), plan.rows)
            z = z * plan.stretch ** rng.uniform(-1, 1) + w * plan.shift * rng.uniform(-1, 1)
            made.append(Batch(x, z, w))
        yield Batch(*(np.stack(a) for a in zip(*made, strict=True)))


def _filled(rows: TaskSample, index: npt.NDArray[np.int64], size: int) -> Batch:
    """These rows and, up to `size`, empty ones."""
    x, z, w = np.zeros((size, rows.x.shape[1])), np.zeros(size), np.zeros(size)
    n = len(index)
    x[:n], z[:n], w[:n] = rows.x[index], rows.z[index], 1.0
    return Batch(x, z, w)


def _moments(params: Array) -> Any:
    return optax.ScaleByAdamState(np.zeros((), np.int32), np.zeros_like(params), np.zeros_like(params))
