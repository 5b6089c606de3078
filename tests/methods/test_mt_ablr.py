"""The objective of MT-ABLR against dense normal distributions, and what the recipe does with old runs."""

import tracemalloc

import numpy as np
import pytest
from optuna.distributions import FloatDistribution
from scipy.stats import multivariate_normal

from jumbo_bo.data.history import History, Task
from jumbo_bo.learning.features import layers_of
from jumbo_bo.learning.learners import ablr
from jumbo_bo.methods import MTABLR
from jumbo_bo.models.blr import PRIOR_SD, prior_median
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

SIZES = (3, 8, 8, 6)
SPACE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})


@pytest.fixture
def problem():
    """Three tasks of unequal size; the second needs several chunks."""
    rng = np.random.default_rng(0)
    data = [ablr.TaskRows(rng.uniform(-1, 1, (n, 3)), rng.normal(size=n)) for n in (5, 2 * ablr.CHUNK + 50, 0, 9)]
    start = ablr.initial(SIZES, 4, rng)
    return data, start + 0.1 * rng.normal(size=len(start))


def dense(rows, params, theta):
    """-log p(z) from the n x n covariance."""
    phi = ablr.features(params, SIZES, (rows.x + 1) / 2)
    cov = phi @ phi.T / np.exp(theta[0]) + np.eye(len(rows.z)) / np.exp(theta[1])
    return -multivariate_normal(np.zeros(len(rows.z)), cov).logpdf(rows.z) if len(rows.z) else 0.0


def test_marginal_likelihoods_are_those_of_dense_normals(problem):
    data, params = problem
    expected = [dense(rows, params, theta) for rows, theta in zip(data, ablr.theta_of(params, 4), strict=True)]
    np.testing.assert_allclose(ablr.evidences(params, data, SIZES), expected, rtol=1e-9, atol=1e-12)


def test_loss_is_their_sum_with_the_priors_and_its_gradient_is_right(problem):
    data, params = problem
    value, gradient = ablr.loss(params, data, SIZES, 0.5)
    pull = (ablr.theta_of(params, 4) - prior_median(ablr.SQUARE * 6)) / PRIOR_SD
    weights = sum(len(w) * np.sum(w**2) for w, _ in layers_of(params, SIZES))
    expected = ablr.evidences(params, data, SIZES).sum() + 0.5 * np.sum(pull**2) + 0.25 * weights
    assert value == pytest.approx(expected, rel=1e-12)
    for i in np.random.default_rng(1).permutation(len(params))[:40].tolist() + list(
        range(len(params) - 8, len(params))
    ):
        step = 1e-5 * (np.arange(len(params)) == i)
        numeric = (ablr.loss(params + step, data, SIZES, 0.5)[0] - ablr.loss(params - step, data, SIZES, 0.5)[0]) / 2e-5
        assert gradient[i] == pytest.approx(numeric, rel=1e-5, abs=1e-4)


def test_single_precision_gives_nearly_the_same(problem):
    data, params = problem
    rough = [rows._replace(x=rows.x.astype(np.float32)) for rows in data]
    exact, near = ablr.loss(params, data, SIZES, 1.0), ablr.loss(params, rough, SIZES, 1.0)
    assert near[0] == pytest.approx(exact[0], rel=1e-5)
    assert np.linalg.norm(near[1] - exact[1]) < 1e-3 * np.linalg.norm(exact[1])


def test_memory_does_not_grow_with_the_rows():
    params = ablr.initial(SIZES, 1, np.random.default_rng(0))

    def peak(n):
        data = [ablr.TaskRows(np.zeros((n, 3), np.float32), np.zeros(n))]
        tracemalloc.start()
        ablr.loss(params, data, SIZES, 1.0)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(64 * ablr.CHUNK) < 1.1 * peak(2 * ablr.CHUNK)


def quality(u, shift=0.0):
    return -((u[:, 0] - 0.3 - shift) ** 2) - 0.5 * (u[:, 1] - 0.7) ** 2


def old_runs(n=200, tasks=2):
    rng = np.random.default_rng(3)
    return History(SPACE, tuple(Task(f"old {k}", u := rng.random((n, 2)), quality(u, 0.05 * k)) for k in range(tasks)))


def best_after(trials, history, seed):
    optimizer = Optimizer(SPACE, history, "maximize", trials, "mt-ablr", seed)
    for _ in range(trials):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, float(quality(np.array([list(suggestion.params.values())]))[0]))
    return optimizer.best.value


def test_training_stops_at_the_iterate_that_predicts_rows_left_out_best():
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (120, 3))
    z = np.sin(2 * x[:, 0]) + x[:, 1] + 0.3 * rng.normal(size=120)
    whole, part, left_out = ablr.TaskRows(x, z), ablr.TaskRows(x[:90], z[:90]), ablr.TaskRows(x[90:], z[90:])
    start = ablr.initial(SIZES, 1, rng)

    def missed(params):
        return float((ablr.evidences(params, [whole], SIZES) - ablr.evidences(params, [part], SIZES))[0])

    stopped = ablr.fit(start, [part], SIZES, 0.0, 150, [left_out])
    ended = ablr.fit(start, [part], SIZES, 0.0, 150)
    assert missed(stopped) < missed(start)
    assert missed(stopped) < missed(ended)
    assert ablr.loss(ended, [part], SIZES, 0.0)[0] < ablr.loss(stopped, [part], SIZES, 0.0)[0]


def test_old_runs_of_similar_tasks_help():
    helped = [best_after(12, old_runs(), seed) for seed in range(3)]
    alone = [best_after(12, None, seed) for seed in range(3)]
    assert np.mean(helped) > np.mean(alone)


@pytest.mark.parametrize("history", [old_runs(1, 1), old_runs(2, 3)], ids=["one row", "three tasks of two rows"])
def test_hardly_any_old_rows(history):
    assert np.isfinite(best_after(5, history, 0))


def test_learning_is_reproducible():
    first, again, other = (MTABLR(most=5).learn(old_runs(), seed).params for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
