"""Bayesian linear regression in its primal form: the cost is linear in the number of rows.

C. M. Bishop, 'Pattern Recognition and Machine Learning', Springer 2006, Sections 3.3 and 3.5.

Notation
    phi     (n, W)  features of n rows, then y (n,) their values
    w       (W,)    weights, w ~ N(0, I / alpha);  y ~ N(phi w, I / beta)
    theta   (2,)    log alpha, log beta
    r       beta / alpha
    root    (W, W)  with root root^T = (alpha I + beta phi^T phi)^-1, the posterior covariance of w
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import cholesky, solve_triangular

from jumbo_bo.models.map import maximum_a_posteriori

Array = npt.NDArray[np.float64]

PRIOR_SD = np.array([1.0, 1.5])  # of log alpha and log beta


class BLR(NamedTuple):
    theta: Array
    phi: Array
    y: Array
    mean: Array  # (W,) of w
    root: Array


def prior_median(square: float) -> Array:  # -> theta
    """Before any data the function has a variance of about 1 and the noise one of 0.01, as in kernel.py, where `square`
    is the usual |phi|^2 of a row."""
    return np.log([square, 1e2])


def build(theta: Array, phi: Array, y: Array) -> BLR:
    alpha, beta = np.exp(theta)
    factor = cholesky(alpha * np.eye(phi.shape[1]) + beta * phi.T @ phi, lower=True)
    root = solve_triangular(factor, np.eye(len(factor)), lower=True).T
    return BLR(theta, phi, y, beta * root @ (root.T @ (phi.T @ y)), root)


def fit(phi: Array, y: Array) -> BLR:
    """Maximum a posteriori alpha and beta, under log-normal priors."""
    median = prior_median(float(np.mean(np.sum(phi**2, axis=1)) + 1e-3) if len(y) else phi.shape[1])
    return build(maximum_a_posteriori(Evidence(phi, y), median, PRIOR_SD), phi, y)


def posterior(model: BLR, phi: Array) -> tuple[Array, Array]:  # (m, W) -> mean (m,), sd (m,) without noise
    """Computed in the precision of `phi`."""
    spread = phi @ model.root.astype(phi.dtype)
    return phi @ model.mean.astype(phi.dtype), np.sqrt(np.einsum("ij,ij->i", spread, spread))


def hallucinate(model: BLR, phi: Array) -> BLR:
    """Conditions on pending points as if their posterior mean had been observed: mean stays, variance shrinks."""
    y = np.concatenate([model.y, phi @ model.mean])
    return build(model.theta, np.vstack([model.phi, phi]), y)


class Evidence:
    """log p(y | theta) and its gradient. The rows are only seen once; each call costs O(W)."""

    def __init__(self, phi: Array, y: Array) -> None:
        eigenvalues, basis = np.linalg.eigh(phi.T @ phi)
        self.eigenvalues = np.maximum(eigenvalues, 0.0)
        self.square = (basis.T @ (phi.T @ y)) ** 2
        self.n, self.total = len(y), float(y @ y)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        alpha, beta = np.exp(theta)
        r = beta / alpha
        shrink = 1.0 / (1.0 + r * self.eigenvalues)
        residual = beta * (self.total - r * float(self.square @ shrink))
        value = 0.5 * (self.n * math.log(beta / (2 * math.pi)) + float(np.log(shrink).sum()) - residual)
        used = r * float(self.eigenvalues @ shrink)  # effective number of weights (Bishop, Eq. 3.91)
        explained = beta * r * float(self.square @ shrink**2)  # alpha |mean|^2
        return value, 0.5 * np.array([used - explained, self.n - used - residual + explained])
