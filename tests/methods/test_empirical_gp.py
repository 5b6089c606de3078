"""The empirical GP: its posterior by hand from the sample covariance, one old task, none, and what it explains."""

import math

import numpy as np
import pytest
from optuna.distributions import FloatDistribution
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Matern

from jumbo_bo.data.history import History, Task
from jumbo_bo.methods import EmpiricalGP
from jumbo_bo.methods.empirical_gp import Population, population_kernel
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

PLANE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})


def shifted(centre):
    return lambda u: -((u[:, 0] - centre) ** 2) - 0.5 * (u[:, 1] - 0.4) ** 2


def history(*functions, n=40):
    points = [np.random.default_rng(i).random((n, 2)) for i in range(len(functions))]
    return History(
        PLANE, tuple(Task(f"old {i}", u, f(u)) for i, (u, f) in enumerate(zip(points, functions, strict=True)))
    )


FAMILY = history(*(shifted(c) for c in (0.1, 0.35, 0.6, 0.85)))


def told(old, n, method="empirical-gp"):
    optimizer = Optimizer(PLANE, old, "maximize", 20, method)
    for u in np.random.default_rng(9).random((n, 2)):
        optimizer.tell({"a": u[0], "b": u[1]}, float(shifted(0.5)(u[None])[0]))
    return optimizer


def test_posterior_equals_a_dense_gp_whose_prior_is_the_sample_covariance():
    optimizer = told(FAMILY, 6)
    view = optimizer.view()
    gp = view.fit(population_kernel(view))
    level, scale, size, *lengths, noise = np.exp(gp.theta)
    points = np.random.default_rng(3).random((5, 2))
    x = np.vstack([view.u, points])
    # In single precision a product depends on its shape: here the shapes are those of the model.
    g = np.vstack([optimizer.past.means(part) for part in (view.u, points)])  # (11, 4)
    prior = level + scale * np.cov(g) + size * Matern(lengths, nu=2.5)(x)
    k, cross, here = prior[:6, :6] + noise * np.eye(6), prior[6:, :6], prior[6:, 6:]
    mean = g.mean(axis=1)
    found = gp.predict(view.domain.featurise(points))
    np.testing.assert_allclose(found.mean, mean[6:] + cross @ np.linalg.solve(k, view.z - mean[:6]), atol=1e-5)
    np.testing.assert_allclose(found.sd**2, np.diag(here - cross @ np.linalg.solve(k, cross.T)), atol=1e-5)


def test_the_blocks_are_average_and_covariance_of_the_tasks():
    learned = EmpiricalGP().learn(FAMILY, 0)
    t = np.random.default_rng(0).random((7, 2))
    blocks = learned.blocks(t)
    g = np.stack([gp.predict({"x": t}).mean for gp in learned.gps], axis=1)
    np.testing.assert_allclose(blocks["m"][:, 0], g.mean(axis=1), atol=1e-4)
    np.testing.assert_allclose(blocks["dev"] @ blocks["dev"].T, np.cov(g), atol=1e-4)


def test_what_was_learned_can_be_kept(tmp_path):
    learned = EmpiricalGP().learn(FAMILY, 0)
    learned.save(tmp_path / "population.safetensors")
    again = Population.load(tmp_path / "population.safetensors", PLANE)
    t = np.random.default_rng(0).random((7, 2))
    np.testing.assert_array_equal(again.blocks(t)["dev"], learned.blocks(t)["dev"])


def test_a_member_of_the_family_is_recognised_from_few_trials():
    """Between the centres of the old tasks, where no old task has its optimum."""
    grid = np.random.default_rng(1).random((400, 2))
    missed = {}
    for method in ("empirical-gp", "gp-ucb"):
        optimizer = told(FAMILY, 5, method)
        predicted = [p.mean for p in optimizer.predict([{"a": a, "b": b} for a, b in grid])]
        missed[method] = math.sqrt(np.mean((np.array(predicted) - shifted(0.5)(grid)) ** 2))
    assert missed["empirical-gp"] < 0.5 * missed["gp-ucb"]


def test_one_old_task_has_no_covariance_but_is_the_prior_mean():
    optimizer = told(history(shifted(0.5)), 0)
    view = optimizer.view()
    kernel = population_kernel(view)
    assert [term.block for term in kernel.terms] == ["1", "x"]
    first = optimizer.ask()
    assert cdist([[first.params["a"], first.params["b"]]], [[0.5, 0.4]])[0, 0] < 0.1


def test_an_explanation_splits_into_old_and_new():
    suggestion = told(FAMILY, 6).ask()
    assert math.isfinite(suggestion.explanation.old)
    assert math.isfinite(suggestion.explanation.new)
    assert suggestion.explanation.trust > 0.5
    assert suggestion.why.startswith("Old runs rate this")


def test_without_old_runs_it_is_gp_ucb():
    assert told(None, 4).ask().params == told(None, 4, "gp-ucb").ask().params


@pytest.mark.parametrize("n", [0, 1, 8])
def test_twin_tasks_leave_the_covariance_zero(n):
    suggestion = told(history(shifted(0.2), shifted(0.2)), n).ask()
    assert math.isfinite(suggestion.predicted.mean)
