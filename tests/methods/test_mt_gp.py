"""MT-GP: the coregionalised GP against dense formulas and its limits; the rows it refuses."""

import math

import numpy as np
import pytest
from optuna.distributions import IntDistribution
from scipy.stats import multivariate_normal

from jumbo_bo.data.history import History, Task
from jumbo_bo.methods import GPUCB, MTGP
from jumbo_bo.methods.mt_gp import last_refit
from jumbo_bo.models import gp, icm
from jumbo_bo.models.kernel import LogNormal, Term
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

TERM = Term("x", "matern52", (0, 1), length=LogNormal(0.5, 1.0))
LENGTH = np.log([0.4, 0.7])
GRID = Space({"a": IntDistribution(0, 39), "b": IntDistribution(0, 29)})  # large enough to be screened in float32


def rows(*sizes, seed=0):
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    task = np.repeat(np.arange(len(sizes)), sizes)
    return icm.LabelledRows(rng.random((n, 2)), task, rng.standard_normal(n))


def phi_of(root, noise):
    return np.concatenate([LENGTH, np.asarray(root, dtype=float)[np.tril_indices(len(root))], np.log(noise)])


def single(x, y, variance, noise):
    theta = np.concatenate([[math.log(variance)], LENGTH, [math.log(noise)]])
    return gp.build(gp.Kernel((TERM,)), theta, {"x": x}, y)


def target(u):
    return np.sin(5 * u[:, 0]) + (u[:, 1] - 0.3) ** 2


def history(*functions, n=40):
    rng = np.random.default_rng(0)
    points = [GRID.sample(rng, n) for _ in functions]
    return History(
        GRID, tuple(Task(f"old {i}", u, f(u)) for i, (u, f) in enumerate(zip(points, functions, strict=True)))
    )


def told(old, n, recipe=None):
    optimizer = Optimizer(GRID, old, "maximize", 30, recipe or MTGP())
    for u in GRID.sample(np.random.default_rng(1), n):
        optimizer.tell(GRID.decode(u), float(target(u[None])[0]))
    return optimizer


def test_evidence_equals_the_dense_normal_density_and_its_gradient_finite_differences():
    data, prior = rows(9, 7, 6), icm.Prior(TERM, 3, offset=0.8)
    rng = np.random.default_rng(2)
    phi = prior.normal[0] + 0.3 * rng.standard_normal(len(prior.normal[0]))
    evidence = icm.Evidence(prior, data)
    p = prior.split(phi)
    distance = np.sqrt((((data.x[:, None] - data.x) / np.exp(p.log_length)) ** 2).sum(axis=2))
    matern = (1 + math.sqrt(5) * distance + 5 / 3 * distance**2) * np.exp(-math.sqrt(5) * distance)
    cov = np.array([[p.b[i, j] for j in data.task] for i in data.task]) * matern + np.diag(p.noise[data.task])
    cov[16:, 16:] += 0.8
    value, gradient = evidence(phi)
    assert value == pytest.approx(multivariate_normal(np.zeros(22), cov).logpdf(data.y))
    step = 1e-5 * np.eye(len(phi))
    numeric = [(evidence(phi + s)[0] - evidence(phi - s)[0]) / 2e-5 for s in step]
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-6)


def test_diagonal_b_is_a_gp_of_the_target_alone():
    data, prior = rows(12, 8), icm.Prior(TERM, 2, offset=0.0)
    model = icm.build(prior, phi_of(np.diag([1.3, 0.8]), [0.02, 0.05]), data)
    x = np.random.default_rng(5).random((30, 2))
    alone = gp.posterior(single(data.x[12:], data.y[12:], 0.64, 0.05), {"x": x})
    np.testing.assert_allclose(icm.posterior(model, x), alone, atol=1e-10)


def test_b_of_ones_is_one_gp_of_all_rows():
    data, prior = rows(12, 8), icm.Prior(TERM, 2, offset=0.0)
    model = icm.build(prior, phi_of([[1, 0], [1, 0]], [0.05, 0.05]), data)
    x = np.random.default_rng(5).random((30, 2))
    pooled = gp.posterior(single(data.x, data.y, 1.0, 0.05), {"x": x})
    np.testing.assert_allclose(icm.posterior(model, x), pooled, atol=1e-8)


def test_offset_is_an_unknown_level_of_the_target():
    """With a wide one, shifting the target's values shifts its predictions and nothing else."""
    data, prior = rows(12, 8), icm.Prior(TERM, 2, offset=1e5)
    shifted = data._replace(y=data.y + 3.0 * (data.task == 1))
    phi, x = prior.normal[0], np.random.default_rng(5).random((30, 2))
    here, there = (icm.posterior(icm.build(prior, phi, d), x).mean for d in (data, shifted))
    np.testing.assert_allclose(there - here, 3.0, atol=1e-3)


def test_saved_part_of_the_variance_changes_nothing():
    data, prior = rows(12, 9, 8), icm.Prior(TERM, 3)
    phi, x = prior.normal[0], np.random.default_rng(5).random((30, 2))
    before = icm.build(prior, phi, data.first(22))  # one trial of the target
    model = icm.build(prior, phi, data)
    saved = icm.posterior(model, x, icm.explained_by_old(before, x))
    np.testing.assert_allclose(saved, icm.posterior(model, x), atol=1e-10)
    rough = icm.posterior(model, x.astype(np.float32))
    assert rough.mean.dtype == rough.sd.dtype == np.float32
    np.testing.assert_allclose(rough, saved, atol=1e-4)


def test_fit_finds_out_which_old_task_is_like_the_target_and_which_is_inverted():
    rng = np.random.default_rng(0)
    x = rng.random((90, 2))
    task = np.repeat([0, 1, 2], 30)
    y = np.where(task == 1, -target(x), target(x))
    prior = icm.Prior(TERM, 3)
    b = prior.split(icm.fit(prior, icm.LabelledRows(x, task, y))).b
    rho = b[:2, 2] / np.sqrt(np.diag(b)[:2] * b[2, 2])
    assert rho[0] > 0.9
    assert rho[1] < -0.8


def test_prior_correlation_is_that_of_the_option():
    prior = icm.Prior(TERM, 4, correlation=0.6)
    np.testing.assert_allclose(prior.split(prior.normal[0]).b, np.full((4, 4), 0.6) + 0.4 * np.eye(4))


def test_refits_are_frequent_at_first():
    assert [last_refit(n, 10) for n in (0, 2, 3, 5, 6, 9, 10, 19, 20)] == [0, 0, 3, 3, 6, 6, 10, 10, 20]


def test_learns_from_an_inverted_old_task():
    optimizer = told(history(lambda u: -target(u), n=60), 10)
    values = target(GRID.grid())
    assert target(GRID.encode(optimizer.ask().params)[None])[0] > np.quantile(values, 0.9)


def test_without_old_runs_it_is_gp_ucb():
    assert told(None, 4).ask().params == told(None, 4, GPUCB()).ask().params


def test_too_many_rows_are_refused_with_a_way_out():
    old = history(target, n=2001)
    with pytest.raises(ValueError, match=r"at most 2,000, but there are 2,001; .*rgpe.*frame\.sample\(2000"):
        Optimizer(GRID, old, method="mt-gp")
    assert Optimizer(GRID, old, method=MTGP(most_rows=2001)).n_trials is None
