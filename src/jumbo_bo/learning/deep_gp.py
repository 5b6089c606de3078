"""A GP on the features of a net, with net, mean and kernel in one flat vector: what `fsbo` and `hyperbo` learn.

Notation
    t       (m, D)  T(u); the net sees 2 t - 1
    h       (m, W)  the net's outputs, W = D without a net
    mean    (m,)    h w + c with w (W,) and a number c; c alone when the mean is constant
    theta   (G + 2,) log variance, log length scales (G = W, or one for all), log noise variance, as in models/kernel.py
    params  (p,)    the net's layers one after the other, w if there is one, c, theta

    z(x) = mean(x) + f(x) + noise,  f ~ GP(0, matern52(h, h'))

Trained in learners/deep_kernel.py; here everything is plain numpy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from jumbo_bo.learning.features import layers_of
from jumbo_bo.learning.past import Past
from jumbo_bo.models.gp import GP, Kernel, Term, build

Array = npt.NDArray[np.float64]

CHUNK = 8_192  # rows per forward pass: they stay in the processor's cache


class Shape(NamedTuple):
    """What `params` holds."""

    sizes: tuple[int, ...]  # D, then the width of each layer; (D,) alone: no net
    tanh: bool  # after every layer; False: rectified units, and a last layer without
    linear: bool  # mean linear in h; False: constant
    ard: bool  # a length scale per feature; False: one

    @property
    def n_theta(self) -> int:
        return 2 + (self.sizes[-1] if self.ard else 1)

    @property
    def n_net(self) -> int:
        return sum((a + 1) * b for a, b in pairwise(self.sizes))


class Parts(NamedTuple):
    layers: Any
    weight: Any  # (W,), or (0,) when the mean is constant
    level: Any  # ()
    theta: Any


def parts(params: Any, shape: Shape) -> Parts:  # (p,) of numpy or jax
    end = len(params) - shape.n_theta
    return Parts(layers_of(params, shape.sizes), params[shape.n_net : end - 1], params[end - 1], params[end:])


def features(params: Array, shape: Shape, t: Array) -> Array:  # (m, D) -> (m, W), in the precision of t
    layers = parts(params.astype(t.dtype), shape).layers
    h = np.empty((len(t), shape.sizes[-1]), t.dtype)
    for start in range(0, len(t), CHUNK):
        x = 2 * t[start : start + CHUNK] - 1
        for i, (weight, bias) in enumerate(layers):
            x = x @ weight
            x += bias
            if shape.tanh:
                np.tanh(x, out=x)
            elif i < len(layers) - 1:
                np.maximum(x, 0, out=x)
        h[start : start + CHUNK] = x
    return h


def deep_blocks(params: Array, shape: Shape, t: Array) -> dict[str, Array]:  # (m, D) -> deep (m, W), prior (m, 1)
    h, (_, weight, level, _) = features(params, shape, t), parts(params.astype(t.dtype), shape)
    mean = h @ weight[:, None] + level if shape.linear else np.full((len(t), 1), level)
    return {"deep": h, "prior": mean}


def kernel_of(shape: Shape, *more: Term) -> Kernel:
    """matern52(deep) with the mean in block 'prior'."""
    width = shape.sizes[-1]
    groups = tuple(range(width)) if shape.ard else (0,) * width
    return Kernel((Term("deep", "matern52", groups), *more), mean="prior")


def conditioned(params: Array, shape: Shape, t: Array, z: Array) -> GP:  # (n, D), (n,) ->
    return build(kernel_of(shape), parts(params, shape).theta, deep_blocks(params, shape, t), z)


@dataclass(frozen=True, eq=False)
class DeepGP(Past):
    params: Array
    shape: Shape
    steps: int  # after which the rows held out were predicted best; 0: nothing was learned

    @property
    def empty(self) -> bool:
        return self.steps == 0

    def blocks(self, t: Array) -> Mapping[str, Array]:  # (m, D) -> deep (m, W), prior (m, 1)
        return deep_blocks(self.params, self.shape, t)

    @property
    def theta(self) -> Array:
        theta: Array = parts(self.params, self.shape).theta
        return theta

    def gp(self, t: Array, z: Array) -> GP:  # (n, D), (n,) ->
        """Of a task with these values."""
        return conditioned(self.params, self.shape, t, z)
