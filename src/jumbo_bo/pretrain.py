"""Learning from the old runs, once: the multi-headed net and, with old data of the target, Eq. 1 of the paper.

Notation
    x       (n, D)  2 T(u) - 1, what the net sees
    z, w    (n, K)  warped objective of each old task, and its weight (0: not observed there)
    phi     (p,)    all weights of the net, one flat vector (one Adam update instead of ten: twice as fast)
    theta   (2, 3)  log variance, log lengthscale, log noise variance of the warm and of the cold GP
    D^f     old data of the target: T(u) (n_f, D) and z (n_f,)

    L(phi, theta) = MSE(phi) + NLL_warm(phi, theta_w) / n_f + NLL_cold(theta_c) / n_f          (Eq. 1)
    MSE(phi) = 1/K sum_k [ sum_i w_ik (g_k(x_i) - z_ik)^2 / sum_i w_ik ]

Each head is averaged over its own rows, so a task with few rows is not drowned by one with many. The warm GP sees h
standardised over a fixed set of training rows; the same rows standardise the block `h` of the result, so theta_w holds
for that block exactly. theta_c is in units of T(u), the block `x`. As printed, NLL_warm is a function of theta_w: by
default it leaves phi alone, and `deep_kernel=True` lets it shape phi. Measured on FCNet (old task: 3 epochs, D^f: 10 or
30 rows after 100 epochs), shaping phi made the warm GP overconfident and the heads worse on all three datasets.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax
import scipy.linalg  # noqa: F401 (jax borrows its LAPACK: loaded here, the thread limit below reaches it)
from threadpoolctl import threadpool_limits

from jumbo_bo.features import SD_FLOOR, Array, FeatureNet
from jumbo_bo.history import History, Task

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # read when a GPU is first used
logging.getLogger("jax._src.xla_bridge").setLevel(logging.ERROR)  # no advice about accelerators that are not there

Array32 = npt.NDArray[np.float32]
Index = npt.NDArray[np.int64]
Report = Callable[[int, float], None]  # steps done, loss

ROUND = 50  # minibatches per compiled call; the validation loss is looked at in between
WARM_UP = 100  # steps until the learning rate is reached
MIN_STEPS = 1_000  # a handful of rows also needs this many
REFERENCE = 1_024  # rows whose statistics standardise the blocks
MAX_VALIDATION = 4_096
SPLIT_FROM = 10  # rows; with fewer there is no validation set and training runs to its end
MAX_TARGET = 500  # rows of D^f in the GP likelihoods
THETA_RATE = 0.1  # paper, 'Details of training the Gaussian Process hyper-parameters': 100 Adam steps at 0.1
THETA_LOW = np.log([1e-3, 1e-2, 1e-3])  # a few rows alone would drive the noise to zero
THETA_HIGH = np.log([1e3, 1e2, 1e1])
THETA_START = np.log([1.0, 1.0, 1e-2])
ATTEMPTS = 3  # learning rates tried when the loss stops being finite, each a tenth of the last


@dataclass(frozen=True)
class Pretraining:
    """Size of the net and how it is trained. The defaults were chosen among some fifty settings by held-out R2 and CPU
    time on FCNet histories of 600 to 50,000 rows."""

    n_l: int = 3  # hidden layers
    n_u: int = 32  # units per hidden layer
    n_z: int = 4  # latent features
    dropout: float = 0.0
    learning_rate: float = 1e-2
    batch_size: int = 128
    max_epochs: int = 100
    max_steps: int = 40_000  # ends training of very large histories before max_epochs
    patience: int = 60  # epochs without a better validation loss
    schedule: str = "cosine"  # or "constant"; both start with a warm-up
    deep_kernel: bool = False  # the warm GP's likelihood shapes the features too, not only theta_w
    weight_decay: float = 250.0  # divided by the number of training rows, as a fixed prior on the weights would be

    def __post_init__(self) -> None:
        for name in ("n_l", "n_u", "n_z", "batch_size", "max_epochs", "max_steps", "patience"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} is {value!r}, expected an integer of at least 1")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout!r}, expected a number in [0, 1)")
        if not 0 < self.learning_rate < math.inf:
            raise ValueError(f"learning_rate is {self.learning_rate!r}, expected a positive number, e.g. 1e-2")
        if not 0 <= self.weight_decay < math.inf:
            raise ValueError(f"weight_decay is {self.weight_decay!r}, expected a number of at least 0")
        if self.schedule not in ("cosine", "constant"):
            raise ValueError(f"schedule is {self.schedule!r}, expected 'cosine' or 'constant'")


_PAPER: dict[str, Any] = {"schedule": "constant", "weight_decay": 0.0}
PRESETS: dict[str, Pretraining] = {
    "default": Pretraining(),
    # Paper, 'Pre-training Details'; it gives no number of epochs, ours suffice for its learning rates.
    "hpo": Pretraining(learning_rate=5e-5, max_epochs=3_000, patience=500, **_PAPER),
    "circuit": Pretraining(
        n_u=200, n_z=32, dropout=0.5, learning_rate=3e-4, batch_size=64, max_epochs=300, patience=60, **_PAPER
    ),
}


class _Rows(NamedTuple):
    x: Any  # (m, D) float32
    z: Any  # (m, K) float32
    w: Any  # (m, K) float32, scaled so that the sum of w (g - z)^2 over the rows, divided by m, is the MSE


class _Target(NamedTuple):
    """D^f, and the rows that standardise h."""

    t: Any  # (n_f, D) float64
    z: Any  # (n_f,) float64
    reference: Any  # (r, D) float32


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


class _Data(NamedTuple):
    rows: _Rows  # all n rows; w as in history.wide()
    train: Index
    valid: Index  # empty: no early stopping
    target: _Target | None


def pretrain(
    history: History, options: Pretraining | str = "default", seed: int = 0, progress: bool = False
) -> FeatureNet:
    """The net that has learned the old tasks of `history`. The same seed gives the same weights.

    Without old tasks the target's own old data are the one head. `progress` shows a bar when run in a terminal.
    """
    chosen = _resolve(options)
    tasks = tuple(t for t in history.tasks if len(t.y)) or tuple(t for t in [history.target] if t and len(t.y))
    if not tasks:
        raise ValueError(
            "nothing to learn from: the history has no old task and no old data of the target; "
            "add rows to it, or optimize without a history"
        )
    data = _prepare(history, tasks, seed)
    n_steps = _n_steps(chosen, len(data.train))
    rate = chosen.learning_rate
    with (
        _bar(progress, n_steps, chosen.batch_size / len(data.train)) as report,
        jax.enable_x64(True) if data.target else nullcontext(),  # float64 for the GP terms; the net stays float32
        threadpool_limits(1),  # LAPACK on a few hundred rows: a second thread mostly waits
    ):
        for _ in range(ATTEMPTS):
            trained = _train(data, chosen, rate, seed, report)
            if trained is not None:
                return _finish(history, tasks, data, chosen, seed, trained)
            rate /= 10
    raise ValueError(
        f"pretraining diverged: the loss is not finite even at learning_rate={10 * rate:g}; "
        "pass a lower learning_rate or a smaller net in Pretraining(...)"
    )


def _resolve(options: Pretraining | str) -> Pretraining:
    if isinstance(options, Pretraining):
        return options
    if options not in PRESETS:
        raise ValueError(f"options is {options!r}, expected Pretraining(...) or one of {list(PRESETS)}")
    return PRESETS[options]


def _prepare(history: History, tasks: tuple[Task, ...], seed: int) -> _Data:
    rng = np.random.default_rng([seed, 0])
    space, target = history.space, history.target
    u, z64, w64 = replace(history, tasks=tasks, target=None).wide()
    z, w = z64.astype(np.float32), w64.astype(np.float32)
    x = np.empty((len(u), len(space.groups)), np.float32)
    for start in range(0, len(u), 65_536):  # T(u) in pieces: a million rows are never held in float64
        part = slice(start, start + 65_536)
        x[part] = 2 * space.transform(u[part]) - 1
    train, valid = _split(w, rng)
    data = _Data(_Rows(x, z, w), train, valid, None)
    if target is None or len(target.y) < 2:
        return data
    chosen = np.sort(rng.permutation(len(target.y))[:MAX_TARGET])
    df = _Target(space.transform(target.u[chosen]), target.z[chosen], x[_reference(train)])
    return data._replace(target=df)


def _split(w: Array32, rng: np.random.Generator) -> tuple[Index, Index]:
    """80 % to train on, 20 % (at most MAX_VALIDATION) to stop by. Every task keeps a row to train on."""
    order = rng.permutation(len(w))
    n_valid = min(len(w) // 5, MAX_VALIDATION) if len(w) >= SPLIT_FROM else 0
    valid, train = order[:n_valid], order[n_valid:]
    lost = ~w[train].any(axis=0)
    back = w[valid][:, lost].any(axis=1)
    return np.concatenate([train, valid[back]]), valid[~back]


def _reference(train: Index) -> Index:
    return train[:REFERENCE]  # `train` is in random order


def _sizes(data: _Data, options: Pretraining) -> tuple[int, ...]:
    return (data.rows.x.shape[1], *[options.n_u] * options.n_l, options.n_z, data.rows.z.shape[1])


def _n_steps(options: Pretraining, n: int) -> int:
    steps = max(MIN_STEPS, math.ceil(options.max_epochs * n / options.batch_size))
    return ROUND * math.ceil(min(steps, options.max_steps) / ROUND)


def _groups(target: _Target | None, n_steps: int, deep_kernel: bool) -> int:
    """How often per round the GP terms are evaluated: at every step when phi follows them, or when they cost little.
    With 500 rows one evaluation takes 40 ms; theta alone needs a few hundred."""
    if target is None:
        return 1
    small, short = len(target.z) <= 100, n_steps <= 10_000
    if deep_kernel or (small and short):
        return ROUND
    return 5 if small or short else 1


class _Trained(NamedTuple):
    phi: Array32
    theta: Array
    info: dict[str, Any]


def _train(data: _Data, options: Pretraining, rate: float, seed: int, report: Report) -> _Trained | None:
    """The weights with the lowest validation loss; None when the loss stopped being finite."""
    rng = np.random.default_rng([seed, 1])
    n, n_steps = len(data.train), _n_steps(options, len(data.train))
    x, z, w = data.rows
    sizes = _sizes(data, options)
    spec = _Spec(sizes, options.dropout, options.deep_kernel)
    scale = _head_scale(w[data.train])
    valid = _padded(data.rows, data.valid if len(data.valid) else data.train)
    factor = _schedule(options.schedule, n_steps)
    decay = np.float32(min(1.0, options.weight_decay / n))
    phi, theta = _initial(rng, sizes), np.array([THETA_START, THETA_START])
    state = _State(phi, theta, _moments(phi), _moments(theta), jax.random.key(seed) if options.dropout else None)
    best, best_loss, best_step = state, math.inf, 0
    groups = _groups(data.target, n_steps, options.deep_kernel)
    for step, index in zip(range(0, n_steps + 1, ROUND), _stream(rng, n, ROUND * options.batch_size), strict=False):
        i = data.train[index]
        rows = _Rows(*(a.reshape(groups, -1, options.batch_size, a.shape[1]) for a in (x[i], z[i], w[i] * scale)))
        now = factor[step : step + ROUND].reshape(groups, -1)
        after, *losses = _round(state, (rows, rate * now, THETA_RATE * now), valid, data.target, decay, spec)
        train_loss, loss = (float(value) for value in losses)
        if not (math.isfinite(train_loss) and math.isfinite(loss)):
            return None
        report(step, loss)
        if loss < best_loss or not len(data.valid):
            best, best_loss, best_step = state, loss, step
        elif step - best_step > max(MIN_STEPS / 2, options.patience * n / options.batch_size):
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
    return _Trained(np.asarray(best.phi), np.asarray(best.theta), info)


_ADAM = optax.scale_by_adam()


# The matrices are small: a second thread would only burn CPU time.
@partial(jax.jit, static_argnames="spec", compiler_options={"xla_cpu_multi_thread_eigen": False})
def _round(state: _State, batches: Any, valid: _Rows, target: _Target | None, decay: Any, spec: _Spec) -> Any:
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


def _mse(phi: Any, rows: _Rows, spec: _Spec, key: Any = None) -> Any:
    layers = _layers(phi, spec.sizes)
    weight, bias = layers[-1]
    g = _latent(layers, rows.x, spec.dropout, key) @ weight + bias
    return jnp.sum(rows.w * (g - rows.z) ** 2) / rows.x.shape[0]


def _gp_terms(phi: Any, theta: Any, target: _Target, spec: _Spec) -> Any:
    layers = _layers(phi if spec.deep_kernel else jax.lax.stop_gradient(phi), spec.sizes)
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


def _layers(phi: Any, sizes: tuple[int, ...]) -> Any:
    layers, start = [], 0
    for fan_in, fan_out in pairwise(sizes):
        end = start + fan_in * fan_out
        layers.append((phi[start:end].reshape(fan_in, fan_out), phi[end : end + fan_out]))
        start = end + fan_out
    return tuple(layers)


def _initial(rng: np.random.Generator, sizes: tuple[int, ...]) -> Array32:
    parts: list[Array] = []
    for fan_in, fan_out in pairwise(sizes):
        parts += [rng.normal(scale=fan_in**-0.5, size=fan_in * fan_out), np.zeros(fan_out)]
    return np.concatenate(parts).astype(np.float32)


def _moments(params: Any) -> optax.ScaleByAdamState:
    """What Adam's init gives, without compiling anything for it."""
    return optax.ScaleByAdamState(np.zeros((), np.int32), np.zeros_like(params), np.zeros_like(params))


def _schedule(name: str, n_steps: int) -> Array32:  # -> (n_steps + ROUND,) in [0, 1]
    step = np.arange(n_steps + ROUND)
    warm_up = np.minimum(1.0, (step + 1) / WARM_UP)
    cosine = 0.5 + 0.5 * np.cos(np.pi * np.minimum(1.0, step / n_steps)) if name == "cosine" else 1.0
    return (warm_up * cosine).astype(np.float32)


def _head_scale(w: Array32) -> Array32:  # (m, K) -> (K,)
    """Makes w * scale, summed over the rows and divided by m, an average over each head's rows and over the heads."""
    total = w.sum(axis=0, dtype=np.float64)
    present = max(1, np.count_nonzero(total))
    scale: Array = np.divide(len(w), present * total, out=np.zeros_like(total), where=total > 0)
    return scale.astype(np.float32)


def _padded(rows: _Rows, index: Index) -> _Rows:
    """These rows, filled up with rows of weight zero to a power of two, so that few sizes are ever compiled."""
    m, size = len(index), max(256, 1 << (len(index) - 1).bit_length())
    w = rows.w[index] * _head_scale(rows.w[index]) * np.float32(size / m)
    return _Rows(*(np.pad(a, ((0, size - m), (0, 0))) for a in (rows.x[index], rows.z[index], w)))


def _stream(rng: np.random.Generator, n: int, size: int) -> Iterator[Index]:
    """Shuffled epochs one after the other, cut into equal pieces: no padding, no shape that depends on n."""
    left = np.empty(0, np.int64)
    while True:
        if len(left) < size:
            epochs = np.tile(np.arange(n), (math.ceil((size - len(left)) / n), 1))
            left = np.concatenate([left, rng.permuted(epochs, axis=1).ravel()])
        yield left[:size]
        left = left[size:]


@contextmanager
def _bar(wanted: bool, n_steps: int, epochs_per_step: float) -> Iterator[Report]:
    if not wanted:
        yield lambda step, loss: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    text = "epoch {task.fields[epoch]:.0f}  validation loss {task.fields[loss]:.4f}"
    columns = (TextColumn("learning from old runs"), BarColumn(), TextColumn(text), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task("", total=n_steps, epoch=0.0, loss=math.nan)
        yield lambda step, loss: bar.update(task, completed=step, epoch=step * epochs_per_step, loss=loss)


def _finish(
    history: History, tasks: tuple[Task, ...], data: _Data, options: Pretraining, seed: int, trained: _Trained
) -> FeatureNet:
    x, z, w = data.rows
    layers = _layers(trained.phi.astype(np.float64), _sizes(data, options))
    net = FeatureNet.standardised(
        layers,
        reference=_t(x[_reference(data.train)]),
        tasks=tuple(t.name for t in tasks),
        warps=tuple(t.warp for t in tasks),
        space_fingerprint=history.space.fingerprint,
        theta={} if data.target is None else {"warm": trained.theta[0], "cold": trained.theta[1]},
    )
    valid = data.valid
    r2 = _r2(net.predictions(_t(x[valid])), z[valid], w[valid]) if len(valid) else [None] * len(tasks)
    return replace(
        net,
        info={
            **trained.info,
            "rows": len(x),
            "validation_r2": dict(zip(net.tasks, r2, strict=True)),
            "options": asdict(options),
            "seed": seed,
            "history": history.fingerprint,
        },
    )


def _t(x: Array32) -> Array:
    return (x.astype(np.float64) + 1) / 2


def _r2(g: Array, z: Array32, w: Array32) -> list[float | None]:  # (m, K) each -> K values
    """Share of the variance explained, per task; None where fewer than two rows or no variance can tell."""
    out: list[float | None] = []
    for k in range(z.shape[1]):
        seen = w[:, k] > 0
        actual = z[seen, k].astype(np.float64)
        spread = float(np.sum((actual - actual.mean()) ** 2)) if seen.sum() > 1 else 0.0
        out.append(1 - float(np.sum((g[seen, k] - actual) ** 2)) / spread if spread > 1e-12 else None)
    return out
