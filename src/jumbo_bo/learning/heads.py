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
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from jumbo_bo.data.history import Task
from jumbo_bo.learning.features import Layers, latent, side_by_side
from jumbo_bo.learning.row_gp import MANY
from jumbo_bo.space.space import Space

Array = npt.NDArray[np.float64]

FEW = 100  # tasks are never sampled
MOST_CELLS = 100_000_000  # of the matrix (rows, tasks): 2.5 GB while it is made
# Of a member's sample: so many tasks, and more until there are so many rows. On 10,000 tasks of 50 rows
# (benchmarks/tasks.py) the R2 was 0.81 with 5,000 rows and 0.79 with 10,000, which took 1.5 times as long.
LEAST_TASKS, LEAST_ROWS = 30, 5_000
SAMPLE_ROWS = 1_000  # at most, of one task
HEAD_ROWS = 500  # at most, of one task, that its head is learned from
AT_ONCE = 500  # tasks that the prior is learned from, and whose heads are solved at once
FOLDS = 5
ITERATIONS = 10
JITTER = 1e-6  # of the prior's variances, for features that are the same
ROUNDING = 1e-12


class Moments(NamedTuple):
    a: Array
    b: Array
    zz: Array


class Prior(NamedTuple):
    mu: Array  # (P,)
    c: Array  # (P, P)
    s: float


def too_many(tasks: Sequence[Task]) -> bool:
    """Whether the heads are learned here, and not with the features."""
    k, n = len(tasks), sum(len(t.y) for t in tasks)
    if k > MANY or k <= FEW or n * k <= MOST_CELLS:
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
    """One net of all members with a head per task, and the R2 of every task, on rows its head had not seen."""
    some = [tasks[k] for k in rng.permutation(len(tasks))[:AT_ONCE]]
    prior = learn_prior(whole(_folds(members, space, some, rng)))
    w: list[Array] = []
    r2: list[float | None] = []
    for start in range(0, len(tasks), AT_ONCE):
        folds = _folds(members, space, tasks[start : start + AT_ONCE], rng)
        w.append(posterior(prior, whole(folds))[0])
        r2 += left_out_r2(prior, folds)
    inner = side_by_side([(*layers[:-1], (layers[-1][0][:, :1], layers[-1][1][:1])) for layers in members])[:-1]
    heads = np.vstack(w)
    return (*inner, (heads[:, :-1].T, heads[:, -1])), r2


def _folds(members: Sequence[Layers], space: Space, tasks: Sequence[Task], rng: np.random.Generator) -> list[Moments]:
    """The rows of each task in FOLDS parts."""
    k, p = len(tasks), 1 + sum(len(layers[-1][0]) for layers in members)
    folds = [Moments(np.empty((k, p, p)), np.empty((k, p)), np.empty(k)) for _ in range(FOLDS)]
    for k, task in enumerate(tasks):
        rows = rng.permutation(len(task.y))[:HEAD_ROWS]
        t, z = space.transform(task.u[rows]), task.z[rows]
        phi = np.hstack([*(latent(layers, t) for layers in members), np.ones((len(t), 1))])
        for i, fold in enumerate(folds):
            x, y = phi[i::FOLDS], z[i::FOLDS]
            fold.a[k], fold.b[k], fold.zz[k] = x.T @ x, x.T @ y, y @ y
    return folds


def whole(folds: Sequence[Moments]) -> Moments:
    return Moments(*(np.sum(parts, axis=0) for parts in zip(*folds, strict=True)))


def learn_prior(m: Moments) -> Prior:
    """The prior under which the values of these tasks are likely: expectation maximisation."""
    k, p = m.b.shape
    prior, rows = Prior(np.zeros(p), np.eye(p), 0.1), m.a[:, -1, -1].sum()
    for _ in range(ITERATIONS):
        w, v = posterior(prior, m)
        mu = w.mean(axis=0)
        c = v.mean(axis=0) + (w - mu).T @ (w - mu) / k
        s = float((_missed(w, m) + np.einsum("kij,kij->k", v, m.a)).sum() / rows)
        prior = Prior(mu, c + JITTER * np.eye(p), max(s, JITTER))
    return prior


def posterior(prior: Prior, m: Moments) -> tuple[Array, Array]:  # -> mean (K, P), covariance (K, P, P) of w
    precision = np.linalg.inv(prior.c)
    v: Any = np.linalg.inv(precision + m.a / prior.s)
    return np.einsum("kij,kj->ki", v, precision @ prior.mu + m.b / prior.s), v


def left_out_r2(prior: Prior, folds: Sequence[Moments]) -> list[float | None]:  # -> K values
    """Share of the variance explained, per task, when each fold is predicted from the others; None where fewer than two
    rows or no variance can tell."""
    every = whole(folds)
    others = (Moments(*(x - y for x, y in zip(every, fold, strict=True))) for fold in folds)
    missed = np.sum([_missed(posterior(prior, o)[0], f) for o, f in zip(others, folds, strict=True)], axis=0)
    n = every.a[:, -1, -1]
    spread = every.zz - every.b[:, -1] ** 2 / np.maximum(n, 1)
    known = (n > 1) & (spread > ROUNDING * every.zz)
    return [1 - float(m) / float(s) if ok else None for m, s, ok in zip(missed, spread, known, strict=True)]


def _missed(w: Array, m: Moments) -> Array:  # -> (K,) sum of (z - phi w)^2
    return np.asarray(m.zz - 2 * np.einsum("ki,ki->k", w, m.b) + np.einsum("ki,kij,kj->k", w, m.a, w, optimize=True))
