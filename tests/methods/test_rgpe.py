"""RGPE: the ranking loss by hand, leave-one-out by brute force, weights and limits."""

import math
from itertools import permutations

import numpy as np
import pytest
from optuna.distributions import FloatDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.learning.row_gp import best_and_others
from jumbo_bo.methods import GPUCB, RGPE
from jumbo_bo.methods.rgpe import draw, loo_ranking_loss, mix, rank_weights, ranking_loss, stack_weights
from jumbo_bo.methods.task_gps import TaskGPs, joint, learn_tasks
from jumbo_bo.models.gp import build, covariance, posterior
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

PLANE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})


def target(u):
    return np.sin(5 * u[:, 0]) + (u[:, 1] - 0.3) ** 2


def history(*functions, n=50):
    rng = np.random.default_rng(0)
    points = [rng.random((n, 2)) for _ in functions]
    return History(
        PLANE, tuple(Task(f"old {i}", u, f(u)) for i, (u, f) in enumerate(zip(points, functions, strict=True)))
    )


def noise(u):
    return np.random.default_rng(5).standard_normal(len(u))


def told(recipe, old, n, seed=0):
    optimizer = Optimizer(PLANE, old, "maximize", 20, recipe, seed)
    for u in np.random.default_rng(1).random((n, 2)):
        optimizer.tell({"a": u[0], "b": u[1]}, float(target(u[None])[0]))
    return optimizer


@pytest.fixture(scope="module")
def small():
    """A GP of seven points with fixed hyperparameters, and noise that matters."""
    rng = np.random.default_rng(3)
    x = rng.random((7, 2))
    kernel = cold_kernel(PLANE)
    return build(kernel, np.log([1.0, 0.4, 0.6, 0.05]), {"x": x}, rng.standard_normal(7))


def test_ranking_loss_by_hand():
    # One pair in the wrong order counts in both directions: (2, 1, 3) against (1, 2, 3) swaps one pair.
    f = np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 3.0], [3.0, 2.0, 1.0]])
    assert list(ranking_loss(f, np.array([10.0, 20.0, 30.0]))) == [0, 2, 6]


@pytest.mark.parametrize("order", list(permutations(range(4)))[::5])
def test_ranking_loss_is_twice_the_number_of_discordant_pairs(order):
    y, f = np.arange(4.0), np.array(order, dtype=float)
    discordant = sum((f[i] - f[j]) * (y[i] - y[j]) < 0 for i in range(4) for j in range(i))
    assert ranking_loss(f[None], y)[0] == 2 * discordant


def test_leave_one_out_loss_equals_models_fitted_without_the_trial(small):
    """Expected loss, from the joint posterior of seven GPs of six points each."""
    x, y = small.blocks["x"], small.y
    expected = 0.0
    for j in range(7):
        rest = np.arange(7) != j
        mean, cov = joint(build(small.kernel, small.theta, {"x": x[rest]}, y[rest]), {"x": x})
        for k in np.flatnonzero(rest):
            sd = math.sqrt(cov[j, j] + cov[k, k] - 2 * cov[j, k])
            below = 0.5 * math.erfc((mean[j] - mean[k]) / sd / math.sqrt(2))  # P(f_j < f_k)
            expected += 1 - below if y[j] < y[k] else below
    loss = loo_ranking_loss(small, np.random.default_rng(0), 20_000)
    assert loss.mean() == pytest.approx(expected, rel=0.01)


def test_joint_posterior_agrees_with_the_pointwise_one_and_is_what_is_drawn(small):
    blocks = {"x": np.random.default_rng(4).random((3, 2))}
    mean, cov = joint(small, blocks)
    normal = posterior(small, blocks)
    np.testing.assert_allclose(mean, normal.mean)
    np.testing.assert_allclose(np.diag(cov), normal.sd**2)
    drawn = draw(mean, cov, np.random.default_rng(0).standard_normal((40_000, 3)))
    np.testing.assert_allclose(np.cov(drawn.T), cov, atol=0.01)
    assert cov.shape == covariance(small.kernel, small.theta, blocks, blocks).shape


def test_weights_are_shares_of_wins_with_ties_shared_and_bad_models_dropped():
    losses = np.array([[1.0, 4.0, 1.0, 1.0], [9.0, 9.0, 9.0, 0.0], [1.0, 2.0, 3.0, 4.0]])
    # Model 1 wins once, but its median 9 is above all losses of the target.
    np.testing.assert_allclose(rank_weights(losses), [(0.5 + 1 + 1) / 4, 0, (0.5 + 1) / 4])
    np.testing.assert_allclose(rank_weights(losses, dilution=1.0), rank_weights(losses))


def test_an_identical_old_task_gets_the_weight_and_noise_none():
    recipe = RGPE()
    optimizer = told(recipe, history(target, noise), 6)
    view = optimizer.view()
    w = recipe.weigh(view, view.fit(cold_kernel(PLANE)))
    assert w[0] > 0.8
    assert w[1] < 0.05
    assert w.sum() == pytest.approx(1.0)


def test_with_few_trials_the_old_models_share_the_weight():
    optimizer = told(RGPE(), history(target, noise), 2)
    view = optimizer.view()
    np.testing.assert_allclose(RGPE().weigh(view, view.fit(cold_kernel(PLANE))), [0.5, 0.5, 0.0])
    assert "equally weighted" in optimizer.ask().why


def test_first_suggestion_is_near_the_optimum_of_an_identical_old_task():
    first = told(RGPE(), history(target), 0).ask().params
    best = target(np.random.default_rng(0).random((2000, 2))).max()
    assert target(np.array([[first["a"], first["b"]]]))[0] > best - 0.1


def test_old_models_alone_do_not_propose_the_same_spot_again():
    batch = [s.params for s in told(RGPE(), history(target), 0).ask_many(4)]
    points = np.array([[p["a"], p["b"]] for p in batch])
    apart = np.abs(points[:, None] - points).max(axis=2) + np.eye(4)
    assert apart.min() >= 0.05


def test_all_weight_on_the_target_is_its_own_gp(small):
    blocks = {"x": np.random.default_rng(4).random((5, 2)), "old_mean": np.ones((5, 2)), "old_sd": np.ones((5, 2))}
    mixed, alone = mix(np.array([0.0, 0.0, 1.0]), small)(blocks), posterior(small, blocks)
    np.testing.assert_allclose(mixed.mean, alone.mean)
    np.testing.assert_allclose(mixed.sd, alone.sd)
    half = mix(np.array([0.5, 0.0, 0.5]), small)(blocks)
    np.testing.assert_allclose(half.mean, 0.5 + 0.5 * alone.mean)
    np.testing.assert_allclose(half.sd, np.sqrt(0.25 + 0.25 * alone.sd**2))


def test_without_old_runs_it_is_gp_ucb():
    rgpe, plain = told(RGPE(), None, 4), told(GPUCB(), None, 4)
    assert rgpe.ask().params == plain.ask().params


def test_large_tasks_are_represented_by_their_best_and_a_sample():
    task = Task("old", np.random.default_rng(0).random((300, 2)), np.arange(300.0))
    rows = best_and_others(task, 90, np.random.default_rng(0))
    assert len(set(rows)) == 90
    assert set(range(270, 300)) <= set(rows)
    learned = learn_tasks(TaskGPs, History(PLANE, (task,)), 90, 0)
    assert len(learned.gps[0].y) == 90


def test_stacking_gives_the_truth_all_weight():
    rng = np.random.default_rng(0)
    y = rng.standard_normal(12)
    means = np.column_stack([rng.standard_normal(12), y, -y])
    np.testing.assert_allclose(stack_weights(means, y), [0, 1, 0], atol=1e-8)


def test_stacking_finds_a_known_mixture():
    means = np.random.default_rng(0).standard_normal((15, 4))
    true = np.array([0.2, 0.0, 0.5, 0.3])
    np.testing.assert_allclose(stack_weights(means, means @ true), true, atol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_stacking_is_the_best_point_of_a_fine_simplex(seed):
    rng = np.random.default_rng(seed)
    means, y = rng.standard_normal((6, 3)) + 0.5, rng.standard_normal(6)
    w = stack_weights(means, y)
    assert w.sum() == pytest.approx(1.0)
    assert w.min() >= 0.0
    steps = 200
    grid = np.array([(i, j, steps - i - j) for i in range(steps + 1) for j in range(steps + 1 - i)]) / steps
    errors = np.linalg.norm(y[:, None] - means @ grid.T, axis=0)
    assert np.linalg.norm(y - means @ w) <= errors.min() + 1e-12
    np.testing.assert_allclose(w, grid[errors.argmin()], atol=2 / steps)


def test_stacking_judges_the_target_by_trials_it_has_not_seen():
    """The target's GP nearly repeats its trials; left out they say how little it knows."""
    recipe = RGPE(weights="stacking")
    view = told(recipe, history(target, noise), 6).view()
    gp = view.fit(cold_kernel(PLANE))
    w = recipe.weigh(view, gp)
    assert w[0] > 0.5
    assert w[1] < 0.1
    repeated = np.hstack([view.domain.featurise(view.u)["old_mean"], posterior(gp, gp.blocks).mean[:, None]])
    assert stack_weights(repeated, view.z)[-1] > w[-1]


def test_more_models_than_trials_can_be_stacked():
    rng = np.random.default_rng(0)
    w = stack_weights(rng.standard_normal((3, 50)), rng.standard_normal(3))
    assert w.sum() == pytest.approx(1.0)
    assert np.isfinite(w).all()
