"""ScaML-GP: prior and posterior by conditioning the joint Gaussian of all tasks, the gradient, and the weights."""

import math

import numpy as np
import pytest
from optuna.distributions import FloatDistribution
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from jumbo_bo.data.history import History, Task
from jumbo_bo.methods.scaml_gp import SumEvidence, WeightedSum, residual_kernel, weighted_sum
from jumbo_bo.methods.task_gps import joint
from jumbo_bo.models.gp import build, covariance
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

PLANE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})
THETA = np.log([0.3, 0.5, 0.4, 0.7, 0.02])  # level, size and lengths of the residual, noise
W = np.array([0.8, 0.0, 1.7])


def features(x):
    return {"1": np.ones((len(x), 1)), "x": x}


@pytest.fixture(scope="module")
def old():
    """Three old tasks with few rows, so that their covariances matter."""
    kernel, rng = cold_kernel(PLANE), np.random.default_rng(0)
    made = []
    for k in range(3):
        x = rng.random((5 + k, 2))
        made.append(build(kernel, np.log([1.0 + k, 0.4, 0.3 + 0.2 * k, 0.05]), features(x), rng.standard_normal(5 + k)))
    return tuple(made)


@pytest.fixture(scope="module")
def trials():
    rng = np.random.default_rng(1)
    return features(rng.random((6, 2))), rng.standard_normal(6)


def model(old, trials, w=W):
    return WeightedSum(old, w, residual_kernel(PLANE), THETA, *trials)


def at(old, x):
    """Blocks as a domain has them."""
    normals = [gp.predict(features(x)) for gp in old]
    return features(x) | {
        "old_mean": np.stack([normal.mean for normal in normals], axis=1),
        "old_sd": np.stack([normal.sd for normal in normals], axis=1),
    }


def everything(old, w, x):
    """Mean zero and covariance of all old rows, then of f at x, before any row or trial is seen."""
    sizes = [len(gp.y) for gp in old]
    ends = np.cumsum([0, *sizes])
    cov = np.zeros((ends[-1] + len(x), ends[-1] + len(x)))
    cov[ends[-1] :, ends[-1] :] = covariance(residual_kernel(PLANE), THETA, features(x), features(x))
    for k, gp in enumerate(old):
        rows = slice(ends[k], ends[k + 1])
        cov[rows, rows] = covariance(gp.kernel, gp.theta, gp.blocks, gp.blocks) + gp.noise * np.eye(sizes[k])
        cov[rows, ends[-1] :] = w[k] * covariance(gp.kernel, gp.theta, gp.blocks, features(x))
        cov[ends[-1] :, rows] = cov[rows, ends[-1] :].T
        cov[ends[-1] :, ends[-1] :] += w[k] ** 2 * covariance(gp.kernel, gp.theta, features(x), features(x))
    return np.concatenate([gp.y for gp in old]), cov


def conditioned(y, cov):
    """What is left of a Gaussian when its first values are known."""
    n = len(y)
    gain = np.linalg.solve(cov[:n, :n], cov[:n, n:]).T
    return gain @ y, cov[n:, n:] - gain @ cov[:n, n:]


def test_before_the_first_trial_it_is_the_weighted_sum_of_the_old_tasks(old):
    x = np.random.default_rng(2).random((4, 2))
    found = model(old, (features(x[:0]), np.zeros(0))).predict(at(old, x))
    normals = [joint(gp, features(x)) for gp in old]
    residual = covariance(residual_kernel(PLANE), THETA, features(x), features(x))
    np.testing.assert_allclose(found.mean, sum(w * mean for w, (mean, _) in zip(W, normals, strict=True)))
    cov = residual + sum(w**2 * cov for w, (_, cov) in zip(W, normals, strict=True))
    np.testing.assert_allclose(found.sd**2, np.diag(cov))
    # The same from the joint Gaussian of all tasks, conditioned on the old rows.
    mean, cov = conditioned(*everything(old, W, x))
    np.testing.assert_allclose(found.mean, mean)
    np.testing.assert_allclose(found.sd**2, np.diag(cov))


def test_posterior_equals_conditioning_the_joint_gaussian_on_old_rows_and_trials(old, trials):
    x = np.random.default_rng(2).random((4, 2))
    blocks, y = trials
    rows, cov = everything(old, W, np.vstack([blocks["x"], x]))
    n = len(rows)
    cov[n : n + 6, n : n + 6] += math.exp(THETA[-1]) * np.eye(6)
    mean, cov = conditioned(np.concatenate([rows, y]), cov)
    found = model(old, trials).predict(at(old, x))
    np.testing.assert_allclose(found.mean, mean, rtol=1e-8)
    np.testing.assert_allclose(found.sd**2, np.diag(cov), rtol=1e-8)


def test_single_precision_is_close(old, trials):
    blocks = at(old, np.random.default_rng(2).random((40, 2)))
    exact = model(old, trials).predict(blocks)
    rough = model(old, trials).predict({name: block.astype(np.float32) for name, block in blocks.items()})
    assert rough.mean.dtype == np.float32
    np.testing.assert_allclose(rough.mean, exact.mean, atol=1e-4)
    np.testing.assert_allclose(rough.sd, exact.sd, atol=1e-3)


def test_evidence_is_the_density_of_the_trials_and_the_priors(old, trials):
    blocks, y = trials
    kernel = residual_kernel(PLANE)
    normals = [joint(gp, blocks) for gp in old]
    mean = sum(w * mean for w, (mean, _) in zip(W, normals, strict=True))
    cov = covariance(kernel, THETA, blocks, blocks) + math.exp(THETA[-1]) * np.eye(6)
    cov += sum(w**2 * cov for w, (_, cov) in zip(W, normals, strict=True))
    pull = (THETA - kernel.priors[0]) / kernel.priors[1]
    expected = -multivariate_normal(mean, cov).logpdf(y) + W.sum() + 0.5 * pull @ pull
    value, gradient = SumEvidence(old, kernel, blocks, y)(np.concatenate([W, THETA]))
    assert value == pytest.approx(expected)
    evidence = SumEvidence(old, kernel, blocks, y)
    numeric = approx_fprime(np.concatenate([W, THETA]), lambda p: evidence(p)[0], 1e-7)
    np.testing.assert_allclose(gradient, numeric, atol=1e-4)


def wave(u):
    return np.sin(5 * u[:, 0]) + (u[:, 1] - 0.3) ** 2


def noise(u):
    return np.random.default_rng(5).standard_normal(len(u))


def told(functions, n, method="scaml-gp", value=wave):
    rng = np.random.default_rng(0)
    points = [rng.random((40, 2)) for _ in functions]
    tasks = [Task(f"old {i}", u, f(u)) for i, (u, f) in enumerate(zip(points, functions, strict=True))]
    past = History(PLANE, tuple(tasks)) if tasks else None
    optimizer = Optimizer(PLANE, past, "maximize", 20, method)
    for u in np.random.default_rng(1).random((n, 2)):
        optimizer.tell({"a": u[0], "b": u[1]}, float(value(u[None])[0]))
    return optimizer


def test_the_same_problem_gets_the_weight_and_noise_and_its_opposite_none():
    view = told([wave, noise, lambda u: -wave(u)], 8).view()
    w = weighted_sum(view).w
    assert w[0] > 0.5
    assert w[1] < 0.2
    assert w[2] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("n", [0, 2])
def test_with_few_trials_the_old_tasks_weigh_alike(n):
    optimizer = told([wave, noise], n)
    np.testing.assert_allclose(weighted_sum(optimizer.view()).w, [0.5, 0.5])
    assert "equally weighted" in optimizer.ask().why


def test_old_tasks_that_only_mislead_get_no_weight():
    optimizer = told([lambda u: -wave(u)], 6)
    assert weighted_sum(optimizer.view()).w == pytest.approx([0.0], abs=1e-6)
    assert "no weight" in optimizer.ask().why


def test_a_pending_trial_narrows_the_prediction_there_and_keeps_its_mean():
    optimizer = told([wave], 5)
    suggestion = optimizer.ask()  # its prediction was made before it was pending
    (pending,) = optimizer.predict([suggestion.params])
    assert pending.sd < 0.9 * suggestion.predicted.sd
    assert pending.mean == pytest.approx(suggestion.predicted.mean, abs=0.01)


def test_without_old_runs_it_is_gp_ucb():
    assert told([], 4).ask().params == told([], 4, "gp-ucb").ask().params
