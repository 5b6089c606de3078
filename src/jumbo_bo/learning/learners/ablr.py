"""Adaptive Bayesian linear regression: one net, and on its features one linear regression per task, trained together.

V. Perrone, R. Jenatton, M. Seeger, C. Archambeau, 'Scalable Hyperparameter Transfer Learning', NeurIPS 2018.

Notation
    x, z        (n_t, D), (n_t,)  2 T(u) - 1 and the standardised values of task t = 1 ... K
    Phi_t       (n_t, W)  outputs of the net's last tanh layer;  z_t ~ N(Phi_t w_t, I / beta_t), w_t ~ N(0, I / alpha_t)
    r_t, M_t    beta_t / alpha_t, and I + r_t Phi_t^T Phi_t (W, W)
    params      (p + 2 K,)  all weights of the net, then log alpha_t, log beta_t per task

    -log p(z_t) = n_t/2 log(2 pi / beta_t) + beta_t/2 (|z_t|^2 - r_t z_t^T Phi_t M_t^-1 Phi_t^T z_t) + 1/2 log|M_t|

The rows enter only through Phi^T Phi, Phi^T z and |z|^2. These are summed chunk by chunk, and so is the gradient: time
is linear in the rows, and beside the rows themselves memory does not grow with them. The net is so small that its
gradient by hand is faster than compiled code would be ready.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from jumbo_bo.learning.features import Layers, layers_of
from jumbo_bo.models.blr import PRIOR_SD, prior_median

Array = npt.NDArray[np.float64]
Sizes = tuple[int, ...]  # D, then the width of each tanh layer

CHUNK = 1024  # rows whose activations stay in the processor's cache
SQUARE = 0.25  # usual square of an output of the last layer
PATIENCE = 20  # steps without a better prediction of the rows left out


class TaskRows(NamedTuple):
    """Of one task. The net computes in the precision of x, what is summed is double."""

    x: Array
    z: Array

    def chunks(self) -> Iterator[TaskRows]:
        return (TaskRows(self.x[i : i + CHUNK], self.z[i : i + CHUNK]) for i in range(0, len(self.z), CHUNK))


class Sums(NamedTuple):
    """What the rows of each task add up to."""

    gram: Array  # (K, W, W) Phi^T Phi
    product: Array  # (K, W) Phi^T z
    square: Array  # (K,) |z|^2
    n: Array  # (K,)


def initial(sizes: Sizes, n_tasks: int, rng: np.random.Generator) -> Array:  # -> params
    parts: list[Array] = []
    for fan_in, fan_out in pairwise(sizes):
        parts += [rng.normal(scale=fan_in**-0.5, size=fan_in * fan_out), np.zeros(fan_out)]
    return np.concatenate([*parts, np.tile(prior_median(SQUARE * sizes[-1]), n_tasks)])


def fit(
    params: Array, data: Sequence[TaskRows], sizes: Sizes, decay: float, steps: int, left_out: Sequence[TaskRows] = ()
) -> Array:  # -> params
    """At most `steps` of L-BFGS from `params` on `loss`.

    With rows left out, the result is the iterate that predicts them best, log p(left out | data) = log p(both) -
    log p(data): thousands of weights overfit even a marginal likelihood."""
    median, sd = np.tile(prior_median(SQUARE * sizes[-1]), len(data)), np.tile(PRIOR_SD, len(data))
    free = [(None, None)] * (len(params) - len(median))
    bounds = free + list(zip(median - 4 * sd, median + 4 * sd, strict=True))
    judged = any(len(z) for _, z in left_out)
    best, lowest, since = params, math.inf, 0

    def look(params: Array) -> None:
        nonlocal best, lowest, since
        missed = _missed(params, data, left_out, sizes) if judged else -math.inf
        since += 1
        if missed < lowest or not judged:
            best, lowest, since = params.copy(), missed, 0
        if since == PATIENCE:
            raise StopIteration

    options = {"maxiter": steps, "maxcor": 20}
    known = (data, sizes, decay)
    minimize(loss, params, known, jac=True, method="L-BFGS-B", bounds=bounds, callback=look, options=options)
    return best


def loss(params: Array, data: Sequence[TaskRows], sizes: Sizes, decay: float) -> tuple[float, Array]:
    """Sum over the tasks of negative log marginal likelihoods, and its gradient. alpha_t and beta_t have log-normal
    priors, the weights normal ones of variance 1 / (decay * fan-in)."""
    theta, net = theta_of(params, len(data)), layers_of(params, sizes)
    value, d_theta, d_gram, d_product = _evidences(theta, _sums(net, data))
    gradient = [[decay * len(weight) * weight, np.zeros_like(bias)] for weight, bias in net]
    for rows, of_gram, of_product in zip(data, d_gram, d_product, strict=True):
        for x, z in rows.chunks():
            inputs = _activations(net, x)
            phi = inputs.pop()
            d = 2 * phi @ of_gram.astype(x.dtype) + np.outer(z, of_product).astype(x.dtype)
            for (weight, _), parts, a in zip(reversed(net), reversed(gradient), reversed(inputs), strict=True):
                d *= 1 - phi**2  # tanh
                parts[0] += a.T @ d
                parts[1] += d.sum(axis=0)
                d, phi = d @ weight.T.astype(x.dtype), a
    pull = (theta - prior_median(SQUARE * sizes[-1])) / PRIOR_SD
    penalty = np.sum(pull**2) + decay * sum(len(weight) * np.sum(weight**2) for weight, _ in net)
    flat = [part.ravel() for parts in gradient for part in parts]
    return float(value.sum() + 0.5 * penalty), np.concatenate([*flat, (d_theta + pull / PRIOR_SD).ravel()])


def evidences(params: Array, data: Sequence[TaskRows], sizes: Sizes) -> Array:  # -> (K,)
    """Negative log marginal likelihood of each task."""
    return _evidences(theta_of(params, len(data)), _sums(layers_of(params, sizes), data))[0]


def _missed(params: Array, data: Sequence[TaskRows], left_out: Sequence[TaskRows], sizes: Sizes) -> float:
    """-log p(left out | data), all tasks together."""
    theta, net = theta_of(params, len(data)), layers_of(params, sizes)
    known, more = _sums(net, data), _sums(net, left_out)
    both = Sums(*(a + b for a, b in zip(known, more, strict=True)))
    return float(np.sum(_evidences(theta, both)[0] - _evidences(theta, known)[0]))


def _evidences(theta: Array, sums: Sums) -> tuple[Array, Array, Array, Array]:
    """-> values (K,) and their derivatives by theta (K, 2), gram (K, W, W) and product (K, W)."""
    gram, product, square, n = sums
    beta, r = np.exp(theta[:, 1]), np.exp(theta[:, 1] - theta[:, 0])
    matrix = np.eye(gram.shape[1]) + r[:, None, None] * gram
    inverse = np.linalg.inv(matrix)
    v = np.einsum("kij,kj->ki", inverse, product)
    explained = np.sum(product * v, axis=1)
    residual = beta * (square - r * explained)
    value = 0.5 * (n * np.log(2 * np.pi / beta) + residual + np.linalg.slogdet(matrix)[1])
    d_matrix = 0.5 * (inverse + (beta * r)[:, None, None] * v[:, :, None] * v[:, None, :])
    d_r = np.sum(d_matrix * gram, axis=(1, 2)) - 0.5 * beta * explained
    d_theta = np.stack([-r * d_r, r * d_r + 0.5 * (residual - n)], axis=1)
    return value, d_theta, r[:, None, None] * d_matrix, -(beta * r)[:, None] * v


def _sums(net: Layers, data: Sequence[TaskRows]) -> Sums:
    k, width = len(data), len(net[-1][1])
    gram, product = np.zeros((k, width, width)), np.zeros((k, width))
    for task, rows in enumerate(data):
        for x, z in rows.chunks():
            phi = _activations(net, x)[-1].astype(float)
            gram[task] += phi.T @ phi
            product[task] += phi.T @ z
    return Sums(gram, product, np.array([z @ z for _, z in data]), np.array([len(z) for _, z in data]))


def _activations(net: Layers, x: Array) -> list[Array]:  # (n, D) -> x, then the output of each layer
    made = [x]
    for weight, bias in net:
        made.append(np.tanh(made[-1] @ weight.astype(x.dtype) + bias.astype(x.dtype)))
    return made


def features(params: Array, sizes: Sizes, t: Array) -> Array:  # T(u) (m, D) -> Phi (m, W), in the precision of t
    return _activations(layers_of(params, sizes), 2 * t - 1)[-1]


def theta_of(params: Array, n_tasks: int) -> Array:  # -> (K, 2) log alpha_t, log beta_t
    return params[len(params) - 2 * n_tasks :].reshape(n_tasks, 2)
