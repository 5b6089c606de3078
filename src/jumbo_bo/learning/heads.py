"""The heads of many old tasks: each member learns from a sample of the tasks, then all tasks share the features.

Notation
    phi     (n, P)      features h of all members side by side, and a column of ones; z (n,) values of one task
    a, b    (K, P, P), (K, P)  phi^T phi and phi^T z of each task;  zz (K,) z^T z
    w       (K, P)      weights and bias of each task's head

    w_k ~ N(mu, C),  z = phi w_k + noise,  noise ~ N(0, s)

A matrix of all rows and all tasks would not fit in memory, and a net with thousands of heads learns poor features in
the steps it has: each head is seen too rarely. What the features have to be, some tasks tell as well as all of them.
Given the features a head has a closed form, and the common prior, learned from the tasks themselves (expectation
maximisation; Gelman et al., 'Bayesian Data Analysis', 2013, Section 15), lets a task of five rows be like the others.
The cost is linear in the rows and in the tasks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from jumbo_bo.data.history import Task
from jumbo_bo.learning.features import Layers, latent, side_by_side
from jumbo_bo.learning.row_gp import MANY
from jumbo_bo.space.space import Space

Array = npt.NDArray[np.float64]

MOST_CELLS = 20_000_000  # of the matrix (rows, tasks): 0.6 GB while it is made
# Of a member's sample: so many tasks, and more until there are so many rows.
LEAST_TASKS, LEAST_ROWS = 30, 10_000
SAMPLE_ROWS = 1_000  # at most, of one task
HEAD_ROWS = 500  # at most, of one task, that its head is learned from
PRIOR_TASKS = 1_000  # at most, that the prior is learned from
ITERATIONS = 10
JITTER = 1e-6  # of the prior's variances, for features that are the same


class Moments(NamedTuple):
    a: Array
    b: Array
    zz: Array


class Prior(NamedTuple):
    mu: Array  # (P,)
    c: Array  # (P, P)
    s: float


def too_many(tasks: Sequence[Task]) -> bool:
    """Whether the heads are learned here. Up to LEAST_TASKS a sample would be all of them."""
    k, n = len(tasks), sum(len(t.y) for t in tasks)
    if k > MANY or k <= LEAST_TASKS or n * k <= MOST_CELLS:
        return k > MANY
    return pl.DataFrame(np.vstack([t.u for t in tasks])).n_unique() * k > MOST_CELLS


def sample(tasks: Sequence[Task], rng: np.random.Generator) -> tuple[Task, ...]:
    """Some of the tasks, and of each some rows: few enough for a matrix of them."""
    chosen: list[Task] = []
    rows = 0
    for k in rng.permutation(len(tasks))[:MANY]:
        if len(chosen) >= LEAST_TASKS and rows >= LEAST_ROWS:
            break
        task = tasks[k]
        some = np.sort(rng.permutation(len(task.y))[:SAMPLE_ROWS])
        chosen.append(Task(task.name, task.u[some], task.y[some]))
        rows += len(some)
    return tuple(chosen)


def common_heads(
    members: Sequence[Layers], space: Space, tasks: Sequence[Task], rng: np.random.Generator
) -> tuple[Layers, list[float | None]]:
    """One net of all members with a head per task, and the R2 of every task on a fifth of its rows, held out. The heads
    returned are learned from these too; the prior is not."""
    train, held = _moments(members, space, tasks, rng)
    prior = learn_prior(Moments(*(part[rng.permutation(len(tasks))[:PRIOR_TASKS]] for part in train)))
    r2 = held_out_r2(posterior(prior, train), held)
    w = posterior(prior, Moments(*(x + y for x, y in zip(train, held, strict=True))))
    inner = side_by_side([(*layers[:-1], (layers[-1][0][:, :1], layers[-1][1][:1])) for layers in members])[:-1]
    return (*inner, (np.ascontiguousarray(w[:, :-1].T), w[:, -1].copy())), r2


def _moments(
    members: Sequence[Layers], space: Space, tasks: Sequence[Task], rng: np.random.Generator
) -> tuple[Moments, Moments]:
    """Of the rows to learn from, and of a fifth held out."""
    p = 1 + sum(len(layers[-1][0]) for layers in members)
    both = tuple(Moments(np.empty((len(tasks), p, p)), np.empty((len(tasks), p)), np.empty(len(tasks))) for _ in "ab")
    for k, task in enumerate(tasks):
        rows = rng.permutation(len(task.y))[:HEAD_ROWS]
        t, z = space.transform(task.u[rows]), task.z[rows]
        phi = np.hstack([*(latent(layers, t) for layers in members), np.ones((len(t), 1))])
        cut = len(rows) // 5
        for moments, part in zip(both, (slice(cut, None), slice(cut)), strict=True):
            moments.a[k], moments.b[k], moments.zz[k] = phi[part].T @ phi[part], phi[part].T @ z[part], z[part] @ z[part]
    return both[0], both[1]


def learn_prior(m: Moments) -> Prior:
    """The prior under which the values of these tasks are likely: expectation maximisation."""
    k, p = m.b.shape
    prior, rows = Prior(np.zeros(p), np.eye(p), 0.1), m.a[:, -1, -1].sum()
    for _ in range(ITERATIONS):
        w, v = _posterior(prior, m)
        mu = w.mean(axis=0)
        c = v.mean(axis=0) + (w - mu).T @ (w - mu) / k
        s = float((_missed(w, m) + np.einsum("kij,kij->k", v, m.a)).sum() / rows)
        prior = Prior(mu, c + JITTER * np.eye(p), max(s, JITTER))
    return prior


def posterior(prior: Prior, m: Moments) -> Array:  # -> (K, P)
    """The mean of each task's w, a few tasks at a time."""
    parts = [Moments(*(x[i : i + PRIOR_TASKS] for x in m)) for i in range(0, len(m.zz), PRIOR_TASKS)]
    return np.vstack([_posterior(prior, part)[0] for part in parts])


def _posterior(prior: Prior, m: Moments) -> tuple[Array, Array]:  # -> mean (K, P), covariance (K, P, P)
    precision = np.linalg.inv(prior.c)
    v = np.linalg.inv(precision + m.a / prior.s)
    return np.einsum("kij,kj->ki", v, precision @ prior.mu + m.b / prior.s), v


def _missed(w: Array, m: Moments) -> Array:  # -> (K,) sum of (z - phi w)^2
    return np.asarray(m.zz - 2 * np.einsum("ki,ki->k", w, m.b) + np.einsum("ki,kij,kj->k", w, m.a, w, optimize=True))


def held_out_r2(w: Array, held: Moments) -> list[float | None]:  # -> K values
    """Share of the variance explained, per task; None where fewer than two rows or no variance can tell."""
    n, total = held.a[:, -1, -1], held.b[:, -1]
    spread = held.zz - total**2 / np.maximum(n, 1)
    known = (n > 1) & (spread > 1e-9)
    return [1 - float(m) / float(s) if ok else None for m, s, ok in zip(_missed(w, held), spread, known, strict=True)]
