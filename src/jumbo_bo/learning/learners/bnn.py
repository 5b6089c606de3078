"""A Bayesian neural net over all tasks at once, sampled by scale-adapted stochastic gradient HMC.

Springenberg, Klein, Falkner, Hutter: Bayesian Optimization with Robust Bayesian Neural Networks (NeurIPS 2016).

Notation
    x, z, k (n, D), (n,), (n,)  2 T(u) - 1, warped objective, task; task 0 is the new one
    psi     (K + 1, E)          embedding of each task; the net sees [x, psi_k]
    theta   (p,)                psi, all weights and the log noise variances, each divided by the sd of its prior
    U       -log p(theta, z | x), so of theta'theta / 2 from the prior and the Gaussian likelihood of the rows
    g       (p,)                unbiased estimate of grad U: of N old rows B are drawn, the new ones are all in it
    V, tau  (p,)                running average of g^2 over about tau steps; adapted during burn-in, then frozen
    P       (p,)                preconditioner V^-1/2, the inverse mass of the paper's sampler

The paper's sampler is plain SGHMC in other coordinates. With theta = P^1/2 q and unit mass, BlackJAX's step is
    q += eps r,   r += -eps P^1/2 g - eps a r + N(0, 2 eps a - eps^2 b),
so v = eps P^1/2 r, by which theta moves, obeys
    v += -eps^2 P g - eps a v + N(0, 2 eps^3 a P - eps^4 b P).
That is the paper's update with eps a = FRICTION and b = P V, its estimate of the variance of P^1/2 g, so eps^4 b P is
eps^4. Ours differs in three ways, each of them tested against closed forms:
(1) Only the share N / (N + B) of V is noise of the minibatch. The rest is the spread of grad U itself under the
    posterior, by Fisher's identity B / N as large.
(2) P = min(V^-1/2, FRICTION / (eps^2 V)), so that eps^2 P V <= FRICTION: the variance above stays positive, where the
    paper's does not for V > (2 FRICTION / eps^2)^2 = 10^6, which a thousand rows exceed.
(3) b has a^2 added: the variance of r is then 1 and not 1 / (1 - FRICTION / 2), the error of Euler's friction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from blackjax.sgmcmc.diffusions import sghmc

Array = npt.NDArray[np.float64]
Array32 = npt.NDArray[np.float32]
Gradient = Callable[[Any, Any], Any]  # theta (p,), key -> g (p,)

STEP = 1e-2  # eps, with FRICTION as in the paper
FRICTION = 0.05
WINDOW = (300.0, 1_000.0)  # bounds of tau: a shorter one sees a single swing of the chain, a longer one its arrival
FASTEST = 8.0  # r is standard normal: never reached unless V is still far too small
BATCH = 64  # old rows per step, and new rows as well
CHUNK = 1_024  # rows predicted at once: they stay in the cache
NOISE_MEDIAN, NOISE_SPREAD = 1e-2, 1.0  # log-normal prior of the noise variance


class Chain(NamedTuple):
    theta: Any  # (p,)
    momentum: Any  # (p,) r
    window: Any  # (p,) tau
    mean: Any  # (p,) of g over the window
    square: Any  # (p,) V


class Padded(NamedTuple):
    """Rows of all tasks; some may only fill up."""

    x: Any  # (n, D) float32
    z: Any  # (n,) float32
    task: Any  # (n,) int32
    n: Any  # () float32, rows that count; the others are padding


class Net(NamedTuple):
    inputs: int  # D
    tasks: int  # K + 1
    embedding: int = 5
    units: int = 50
    layers: int = 3
    spread: float = 1.5  # prior sd of a weight, times sqrt(fan in)
    apart: float = 0.5  # prior sd of psi

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.inputs + self.embedding, *[self.units] * self.layers, 1)

    @property
    def p(self) -> int:
        return sum((a + 1) * b for a, b in pairwise(self.sizes)) + self.tasks * (self.embedding + 1)


def start(theta: Any) -> Chain:
    nothing, one = jnp.zeros_like(theta), jnp.ones_like(theta)
    return Chain(theta, nothing, WINDOW[0] * one, nothing, one)


def move(gradient: Gradient, chain: Chain, key: Any, share: float, adapt: Any) -> Chain:
    """One step. `share` of V is the variance of g given theta: 0 for an exact gradient."""
    theta, r, tau, mean, v = chain
    of_minibatch, of_noise = jax.random.split(key)
    # At the point where the step leads to: explicit Euler, the gradient at the old one, adds energy at each step.
    g = gradient(theta + STEP * jnp.sqrt(_preconditioner(v)) * r, of_minibatch)
    now = jnp.where(adapt, jnp.maximum(v, g**2 / 25), v)  # a gradient out of all proportion, as at first, moves little
    p = _preconditioner(now)
    a = FRICTION / STEP
    step = sghmc(a, share * p * now + a**2)  # not blackjax.sghmc: its kernel draws r anew and keeps a minibatch
    q, r = step(of_noise, theta / jnp.sqrt(p), r, -jnp.sqrt(p) * g, STEP)
    r = jnp.clip(r, -FASTEST, FASTEST)
    rate = jnp.where(adapt, 1 / tau, 0.0)
    tau = jnp.where(adapt, tau + 1 - tau * mean**2 / v, tau)
    mean, v = mean + rate * (g - mean), jnp.maximum(v + rate * (g**2 - v), 1.0)  # the prior's curvature is 1
    return Chain(jnp.sqrt(p) * q, r, jnp.clip(tau, *WINDOW), mean, v)


def _preconditioner(v: Any) -> Any:
    return jnp.minimum(v**-0.5, FRICTION / STEP**2 / v)


def sample(
    gradient: Gradient, chain: Chain, key: Any, share: Any, adapt: Any, states: int, thin: int
) -> tuple[Chain, Any]:  # -> the chain after its last step, (states, p)
    """`states` states, `thin` steps apart. While V adapts the chain moves to the posterior but is not yet a sample."""

    def leg(chain: Chain, key: Any) -> tuple[Chain, Any]:
        keys = jax.random.split(key, thin)
        chain = jax.lax.scan(lambda c, k: (move(gradient, c, k, share, adapt), None), chain, keys)[0]
        return chain, chain.theta

    return jax.lax.scan(leg, chain, jax.random.split(key, states))


def unpack(theta: Any, net: Net) -> tuple[Any, Any, Any]:
    """psi (K + 1, E), [(weight, bias), ...] and the log noise variance of each task (K + 1,)."""
    layers, at = [], net.tasks * net.embedding
    psi = theta[:at].reshape(net.tasks, net.embedding) * np.asarray(net.apart, theta.dtype)
    for fan_in, fan_out in pairwise(net.sizes):
        end = at + fan_in * fan_out
        weight = theta[at:end].reshape(fan_in, fan_out) * np.asarray(net.spread * fan_in**-0.5, theta.dtype)
        layers.append((weight, theta[end : end + fan_out]))
        at = end + fan_out
    return psi, layers, math.log(NOISE_MEDIAN) + NOISE_SPREAD * theta[at:]


def potential(theta: Any, net: Net, x: Any, z: Any, task: Any, weight: Any) -> Any:
    """U up to a constant, each row counted `weight` times."""
    psi, layers, log_noise = unpack(theta, net)
    h = jnp.concatenate([x, psi[task]], axis=1)
    for matrix, bias in layers[:-1]:
        h = jnp.tanh(h @ matrix + bias)
    matrix, bias = layers[-1]
    error = (h @ matrix + bias)[:, 0] - z
    fit = jnp.sum(weight * (error**2 * jnp.exp(-log_noise[task]) + log_noise[task]))
    return 0.5 * (jnp.sum(theta**2) + fit)


def _draw(rows: Padded, key: Any) -> tuple[Any, Any, Any, Any]:  # -> x, z, task, weight
    """All rows where they are few, else BATCH of them, each standing for n / BATCH."""
    size = len(rows.z)
    if size <= BATCH:
        return rows.x, rows.z, rows.task, (jnp.arange(size) < rows.n).astype(jnp.float32)
    i = jax.random.randint(key, (BATCH,), 0, rows.n.astype(jnp.int32))
    return rows.x[i], rows.z[i], rows.task[i], jnp.full(BATCH, rows.n / BATCH, jnp.float32)


# The matrices are small: a second thread would only burn CPU time.
@partial(
    jax.jit,
    static_argnames=("net", "states", "thin"),
    compiler_options={"xla_cpu_multi_thread_eigen": False, "xla_backend_optimization_level": 1},
)
def _run(chains: Chain, keys: Any, net: Net, old: Padded, new: Padded, adapt: Any, states: int, thin: int) -> Any:
    def gradient(theta: Any, key: Any) -> Any:
        drawn = (_draw(rows, k) for rows, k in zip((old, new), jax.random.split(key), strict=True))
        return jax.grad(potential)(theta, net, *map(jnp.concatenate, zip(*drawn, strict=True)))

    noise = sum(rows.n**2 / BATCH for rows in (old, new) if len(rows.z) > BATCH)
    share = noise / (noise + old.n + new.n + 1)
    run = partial(sample, gradient, share=share, adapt=adapt, states=states, thin=thin)
    return jax.vmap(run)(chains, keys)


def run(
    chains: Chain, seed: Sequence[int], net: Net, old: Padded, new: Padded, adapt: bool, states: int, thin: int
) -> tuple[Chain, Array32]:  # c chains -> the same later, (c, states, p)
    """One round of every chain, each on its own, all given the same rows."""
    keys = jax.random.split(jax.random.key(np.random.default_rng(seed).integers(2**31)), len(chains.theta))
    chains, thetas = _run(chains, keys, net, old, new, adapt, states, thin)
    return chains, np.asarray(thetas)


def from_prior(net: Net, c: int, seed: Sequence[int]) -> Chain:
    theta = np.random.default_rng(seed).standard_normal((c, net.p)).astype(np.float32)
    theta[:, -net.tasks :] = -math.log(NOISE_MEDIAN) / NOISE_SPREAD  # noise variance 1: gentle gradients at first
    return start(jnp.asarray(theta))


def rows(t: Array, z: Array, task: npt.ArrayLike, at_least: int = 0) -> Padded:
    """T(u) (n, D), z (n,), tasks (n,). With `at_least` they are padded to it or, beyond, to a power of two: few sizes
    are ever compiled."""
    n = len(z)
    pad = max(at_least, 1 << (n - 1).bit_length()) - n if at_least else 0
    x = np.pad(2 * t - 1, ((0, pad), (0, 0))).astype(np.float32)
    return Padded(x, np.pad(z, (0, pad)).astype(np.float32), np.pad(task, (0, pad)).astype(np.int32), np.float32(n))


def predict(thetas: Array32, net: Net, t: Array, task: int = 0) -> Array32:  # (S, p), T(u) (m, D) -> (S, m)
    """f of each net."""
    psi, layers, _ = zip(*(unpack(theta, net) for theta in thetas), strict=True)
    stack = [tuple(np.stack(part) for part in zip(*pairs, strict=True)) for pairs in zip(*layers, strict=True)]
    (first, shift), *rest = [(w, b[:, None]) for w, b in stack]
    shift = shift + np.stack(psi)[:, task, None] @ first[:, net.inputs :]  # the same for all rows
    f = np.empty((len(thetas), len(t)), np.float32)
    for i in range(0, len(t), CHUNK):
        h = np.ascontiguousarray(2 * t[i : i + CHUNK] - 1, np.float32) @ first[:, : net.inputs] + shift
        for weight, bias in rest:
            h = np.tanh(h, out=h) @ weight
            h += bias
        f[:, i : i + CHUNK] = h[..., 0]
    return f


def noise(thetas: Array32, net: Net, task: int = 0) -> float:  # (S, p) ->
    """Variance of one observation, the average of what the nets say."""
    return float(np.mean([np.exp(unpack(theta, net)[2][task]) for theta in thetas]))
