"""The pretrained model of the old tasks, frozen: features h and old-task predictions g of any point, in plain numpy.

Notation
    t       (m, D)    T(u) in [0, 1]; the net sees 2 t - 1
    h       (m, n_z)  h_phi(T(u)), the latent features (paper, Figure 'NN Architecture')
    g       (m, K)    the linear heads: one prediction per old task, in that task's warped units
    layers  ((W, b), ...)  n_l hidden tanh layers, the tanh layer to n_z features, the linear heads
    gps     GPs on the rows of small tasks, which share in the prediction of their task (row_gp.py)

    dev     (m, K)    the heads' deviation from their average, as models/population.py uses it
    heads   (m, K)    the heads as they are; with more than 64, those of 64 tasks

`blocks` gives h and g standardised, as the kernels use them. With more than eight old tasks, g becomes its first eight
principal components; with more than 64, so does dev. Without GPs all heads are linear in h, so that they never vary in
more than n_z directions. With many tasks (row_gp.MANY) these are found in h, and a point costs the same however many
heads there are; up to there the blocks are those of the heads one by one, to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import block_diag

from jumbo_bo.errors import InputError
from jumbo_bo.learning.past import Past
from jumbo_bo.learning.row_gp import MANY, RowGP, blend
from jumbo_bo.models.success import Success

Array = npt.NDArray[np.float64]
Layers = tuple[tuple[Array, Array], ...]

MAX_G = 8  # columns of the g block
MAX_DEV = 64  # columns of the blocks dev and heads: a bound on memory, 0.5 MB each per 1,000 points
SD_FLOOR = 1e-3  # a feature that hardly varies stays small instead of turning its rounding errors into a signal
CHUNK = 16_384  # rows per forward pass, so that a large table needs little memory


@dataclass(frozen=True, eq=False)
class FeatureNet(Past):
    """Nets side by side with one head per old task, GPs on the rows of small tasks, and how both become blocks. `tasks`
    and `warps` are those of the K heads."""

    layers: Layers
    h_mean: Array  # (n_z,)
    h_sd: Array  # (n_z,)
    g_basis: Array  # (K, min(K, 8)); the identity up to eight tasks. With many, at most n_z columns
    g_mean: Array  # (min(K, 8),)
    g_sd: Array  # (min(K, 8),)
    theta: Mapping[str, Array] = field(default_factory=dict)  # Eq. 1: "warm", "cold" -> (3,), on the blocks h and x
    info: Mapping[str, Any] = field(default_factory=dict)  # how it was trained: losses, steps, seconds
    members: int = 1  # nets side by side in `layers`
    gps: Mapping[str, RowGP] = field(default_factory=dict)  # task -> a GP that has a share in its prediction
    # (K, 64) with more than 64 tasks, else empty; with many, n_z + 1
    dev_basis: Array = field(default_factory=lambda: np.zeros((0, 0)))
    priors: Mapping[str, Array] = field(default_factory=dict)  # "alone", "population" -> (2, p), see priors.py
    success: Success | None = None  # where old runs failed; None: nowhere

    def __post_init__(self) -> None:
        freeze: dict[str, Any] = {
            name: _frozen(getattr(self, name)) for name in ("h_mean", "h_sd", "g_basis", "g_mean", "g_sd", "dev_basis")
        }
        freeze["layers"] = tuple((_frozen(w), _frozen(b)) for w, b in self.layers)
        freeze |= {name: {key: _frozen(v) for key, v in getattr(self, name).items()} for name in ("theta", "priors")}
        for name, value in freeze.items():
            object.__setattr__(self, name, value)
        _check(self)

    @classmethod
    def standardised(cls, layers: Layers, reference: Array, **rest: Any) -> FeatureNet:
        """The net whose blocks have zero mean and unit variance over these rows T(u), (r, D)."""
        h, (weight, bias) = latent(layers, reference), layers[-1]
        if _all_linear(len(bias), rest.get("gps", {})):
            basis, dev_basis = _linear_components(h, weight, bias)
            g = h @ (weight @ basis) + bias @ basis
        else:
            heads = blend(h @ weight + bias, rest["tasks"], rest.get("gps", {}), reference)
            basis, dev_basis = np.eye(heads.shape[1]), np.zeros((0, 0))
            if heads.shape[1] > MAX_G:
                basis = _components(np.cov(heads, rowvar=False, bias=True), MAX_G)
            if heads.shape[1] > MAX_DEV:
                dev = deviations(heads)[1]
                dev_basis = _components(dev.T @ dev, MAX_DEV)
            g = heads @ basis
        (h_mean, h_sd), (g_mean, g_sd) = _standardisation(h), _standardisation(g)
        rest |= {"h_mean": h_mean, "h_sd": h_sd, "g_mean": g_mean, "g_sd": g_sd}
        return cls(layers=layers, g_basis=basis, dev_basis=dev_basis, **rest)

    @property
    def n_inputs(self) -> int:
        return int(self.layers[0][0].shape[0])

    @property
    def n_z(self) -> int:
        return int(self.layers[-1][0].shape[0])

    @property
    def unlearned(self) -> tuple[str, ...]:
        """Old tasks that could not be predicted. They have no head, unless there is no other task."""
        return tuple(self.info.get("unlearned", ()))

    @property
    def empty(self) -> bool:
        """Nothing was learned: no head predicts its task."""
        return set(self.tasks) <= set(self.unlearned)

    def features(self, t: Array) -> Array:  # (m, D) -> (m, n_z)
        """The raw latent features, each in (-1, 1)."""
        out = np.empty((len(t), self.n_z))
        for rows in _chunks(len(t)):
            out[rows] = latent(self.layers, t[rows])
        return out

    def predictions(self, t: Array) -> Array:  # (m, D) -> (m, K)
        """What each old task would have given, in its standardised, warped units (larger is better)."""
        return self._heads(self.features(t), t)

    def blocks(self, t: Array) -> dict[str, Array]:
        # (m, D) -> {"h": (m, n_z), "g": (m, min(K, 8)), "m": (m, 1), "dev", "heads": (m, min(K, 64))}
        """`m` is the average prediction of the old tasks, in their standardised, warped units. One task has no dev."""
        h = np.empty((len(t), self.n_z))
        for rows in _chunks(len(t)):
            h[rows] = self._quick_features(t[rows])
        mean, heads, g, dev = self._directions(h, t)
        h, g = (h - self.h_mean) / self.h_sd, (g - self.g_mean) / self.g_sd
        return {"h": h, "g": g, "m": mean, "dev": dev, "heads": heads}

    def _directions(self, h: Array, t: Array) -> Sequence[Array]:  # (m, n_z), (m, D) -> (m, 1), (m, .), ...
        """Average of the heads, some of them, the components of all, those of their deviations."""
        some = _spread(len(self.tasks))
        if _all_linear(len(self.tasks), self.gps):
            weight, bias = self._few_heads
            return np.split(h @ weight + bias, np.cumsum([1, len(some), self.g_mean.size]), axis=1)
        heads = self._heads(h, t)
        mean, dev = deviations(heads)
        return mean, heads[:, some], heads @ self.g_basis, dev @ self.dev_basis if self.dev_basis.size else dev

    @cached_property
    def _few_heads(self) -> tuple[Array, Array]:
        """What `_directions` returns, as heads."""
        k, heads = len(self.tasks), np.vstack(self.layers[-1])
        dev = (self.dev_basis - self.dev_basis.mean(axis=0)) / math.sqrt(k - 1)
        few = np.hstack([heads.mean(1, keepdims=True), heads[:, _spread(k)], heads @ self.g_basis, heads @ dev])
        return few[:-1], few[-1]

    def _heads(self, h: Array, t: Array) -> Array:  # (m, n_z), (m, D) -> (m, K)
        weight, bias = self.layers[-1]
        return blend(h @ weight + bias, self.tasks, self.gps, t)

    def _quick_features(self, t: Array) -> npt.NDArray[np.float32]:  # (m, D) -> (m, n_z)
        """`features` in single precision and member by member: a search asks for them thousands of times."""
        (weight, bias), *inner = self._quick_layers
        x = np.asarray(t, np.float32)
        x = np.tanh(x @ weight + bias)
        x = x.reshape(len(x), self.members, -1).transpose(1, 0, 2)
        for weight, bias in inner:
            x = np.tanh(x @ weight + bias)  # (members, m, .)
        features: npt.NDArray[np.float32] = x.transpose(1, 0, 2).reshape(len(t), self.n_z)
        return features

    @cached_property
    def _quick_layers(self) -> list[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]]:
        """The first layer for inputs in [0, 1]; of the others the blocks on the diagonal, (members, in, out)."""
        (weight, bias), *inner = self.layers[:-1]
        quick = [((2.0 * weight).astype(np.float32), (bias - weight.sum(axis=0)).astype(np.float32))]
        for weight, bias in inner:
            rows, columns = np.array(weight.shape) // self.members
            blocks = [weight[i * rows :][:rows, i * columns :][:, :columns] for i in range(self.members)]
            quick.append((np.stack(blocks).astype(np.float32), bias.reshape(self.members, 1, -1).astype(np.float32)))
        return quick


def _standardisation(values: Array) -> tuple[Array, Array]:  # (m, p) -> mean (p,), sd (p,)
    """The floor is added in the square, so that Eq. 1 can differentiate through the same formula."""
    return values.mean(axis=0), np.sqrt(values.var(axis=0) + SD_FLOOR**2)


def deviations(heads: Array) -> tuple[Array, Array]:  # (m, K) -> m (m, 1), dev (m, K), (m, 0) for one task
    """Their average, and columns whose products are their sample covariance around it."""
    mean, tasks = heads.mean(axis=1, keepdims=True), heads.shape[1]
    return mean, (heads - mean) / math.sqrt(tasks - 1) if tasks > 1 else heads[:, :0]


def _components(moments: Array, most: int) -> Array:  # (K, K) -> (K, most)
    """Principal directions of the heads, each turned so that more of it is better for the old tasks together."""
    return _turned(np.linalg.eigh(moments)[1][:, ::-1][:, :most])


def _turned(basis: Array) -> Array:  # (K, p) -> (K, p)
    return np.asarray(basis * np.where(basis.sum(axis=0) < 0, -1.0, 1.0))


def _spread(tasks: int) -> npt.NDArray[np.intp]:
    return np.unique(np.linspace(0, tasks - 1, min(tasks, MAX_DEV)).astype(int))


def _all_linear(tasks: int, gps: Mapping[str, RowGP]) -> bool:
    return tasks > MANY and not gps


def _linear_components(h: Array, weight: Array, bias: Array) -> tuple[Array, Array]:  # -> g_basis, dev_basis
    """As `_components` of the heads h weight + bias, without a matrix of all pairs of tasks."""

    def components(x: Array, heads: Array, most: int) -> Array:  # (r, p), (p, K) -> (K, min(p, most)), of x heads
        q, r = np.linalg.qr(heads.T)
        return _turned(q @ _components(r @ x.T @ x @ r.T, most))

    all_of_it = np.vstack([weight, bias])
    dev = all_of_it - all_of_it.mean(axis=1, keepdims=True)
    one = np.ones((len(h), 1))
    return components(h - h.mean(axis=0), weight, MAX_G), components(np.hstack([h, one]), dev, MAX_DEV)


def side_by_side(members: Sequence[Layers]) -> Layers:
    """One net that is several: their features one after the other, their predictions averaged."""
    if len(members) == 1:
        return members[0]
    first, *between, last = zip(*members, strict=True)
    return (
        (np.hstack([w for w, _ in first]), np.concatenate([b for _, b in first])),
        *((block_diag(*[w for w, _ in layer]), np.concatenate([b for _, b in layer])) for layer in between),
        (np.vstack([w for w, _ in last]) / len(members), np.mean([b for _, b in last], axis=0)),
    )


def layers_of(phi: Any, sizes: Sequence[int]) -> Any:  # (p,) -> Layers
    """The layers in one flat vector of weights, of numpy or jax: matrix and bias of the first, of the second, ..."""
    layers, start = [], 0
    for fan_in, fan_out in pairwise(sizes):
        end = start + fan_in * fan_out
        layers.append((phi[start:end].reshape(fan_in, fan_out), phi[end : end + fan_out]))
        start = end + fan_out
    return tuple(layers)


def latent(layers: Layers, t: Array) -> Array:  # (m, D) -> (m, n_z)
    x = 2.0 * np.asarray(t, dtype=float) - 1.0
    for weight, bias in layers[:-1]:
        x = np.tanh(x @ weight + bias)
    return x


def _chunks(m: int) -> Iterator[slice]:
    return (slice(start, start + CHUNK) for start in range(0, m, CHUNK))


def _frozen(values: Any) -> Array:
    array = np.array(values, dtype=np.float64, order="C")  # as safetensors writes it
    array.setflags(write=False)
    return array


def _check(net: FeatureNet) -> None:
    if len(net.layers) < 3:
        raise InputError(f"a net has a hidden, a latent and an output layer, this one has {len(net.layers)} layers")
    for name, array, shape in _shapes(net):
        if array.shape != shape:
            raise InputError(f"{name} has shape {array.shape}, expected {shape}")
        if not np.isfinite(array).all():
            raise InputError(f"{name} has a value that is not finite")
    for name, gp in net.gps.items():
        if name not in net.tasks or not 0 <= gp.weight <= 1:
            raise InputError(f"a GP of task {name!r} with weight {gp.weight}; its tasks are {list(net.tasks)}")
    if net.members < 1 or any(width % net.members for width in (net.n_z, *(bias.size for _, bias in net.layers[:-1]))):
        raise InputError(f"its layers cannot hold {net.members} nets side by side")
    if len(net.warps) != len(net.tasks):
        raise InputError(f"{len(net.warps)} warps for {len(net.tasks)} tasks")
    if (net.h_sd <= 0).any() or (net.g_sd <= 0).any():
        raise InputError("a standard deviation is not positive")


def _shapes(net: FeatureNet) -> Iterator[tuple[str, Array, tuple[int, ...]]]:
    """Every array with its name and the shape it must have."""
    n_tasks, n_g = len(net.tasks), min(len(net.tasks), MAX_G)
    n_dev = MAX_DEV
    if _all_linear(n_tasks, net.gps):
        n_g, n_dev = min(net.n_z, MAX_G), min(net.n_z + 1, MAX_DEV)
    width = net.layers[0][0].shape[0] if net.layers[0][0].ndim else 0
    for i, (weight, bias) in enumerate(net.layers):
        out = n_tasks if i == len(net.layers) - 1 else bias.size
        yield from ((f"layer {i}", weight, (width, out)), (f"the bias of layer {i}", bias, (out,)))
        width = bias.size
    yield from ((name, getattr(net, name), (net.n_z,)) for name in ("h_mean", "h_sd"))
    yield from ((name, getattr(net, name), (n_g,)) for name in ("g_mean", "g_sd"))
    yield "g_basis", net.g_basis, (n_tasks, n_g)
    if net.dev_basis.size:
        yield "dev_basis", net.dev_basis, (n_tasks, n_dev)
    yield from ((f"the prior {name!r}", prior, (2, prior.size // 2)) for name, prior in net.priors.items())
    yield from ((f"theta of the {name} GP", theta, (3,)) for name, theta in net.theta.items())
    for name, gp in net.gps.items():
        n, of = gp.alpha.size, f"of the GP of task {name!r}"
        yield from ((f"x {of}", gp.x, (n, net.n_inputs)), (f"alpha {of}", gp.alpha, (n,)))
        yield f"theta {of}", gp.theta, (max(gp.groups) + 3,)
