"""MF-GP-UCB: the rule of zeta by hand, the limits of zeta, and the choice of the old task."""

import math

import numpy as np
import pytest
from optuna.distributions import IntDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.methods import GPUCB, MFGPUCB
from jumbo_bo.methods.mf_gp_ucb import TIE, Line, closest_task, fit_line, lower_of, widen
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.search.acquisition import ucb
from jumbo_bo.space.space import Space

GRID = Space({"a": IntDistribution(0, 19), "b": IntDistribution(0, 9)})


def target(u):
    return np.sin(5 * u[:, 0]) + (u[:, 1] - 0.3) ** 2


def history(*functions, n=60):
    rng = np.random.default_rng(0)
    points = [GRID.sample(rng, n) for _ in functions]
    return History(
        GRID, tuple(Task(f"old {i}", u, f(u)) for i, (u, f) in enumerate(zip(points, functions, strict=True)))
    )


def told(old, n, recipe=None):
    optimizer = Optimizer(GRID, old, "maximize", 30, recipe or MFGPUCB())
    for u in GRID.sample(np.random.default_rng(1), n):
        optimizer.tell(GRID.decode(u), float(target(u[None])[0]))
    return optimizer


def test_zeta_doubles_until_it_covers_the_largest_difference():
    assert widen(0.1, np.array([])) == 0.1
    assert widen(0.1, np.array([0.05, -0.1])) == 0.1
    assert widen(0.1, np.array([0.05, -0.11])) == pytest.approx(0.2)
    assert widen(0.1, np.array([0.7, 0.3])) == pytest.approx(0.8)
    assert widen(math.inf, np.array([0.7])) == math.inf


def test_infinite_zeta_is_exactly_gp_ucb():
    optimizer = told(history(target), 5)
    view = optimizer.view()
    free, plain = MFGPUCB(zeta0=math.inf)(view), GPUCB()(view)
    assert free.best.index == plain.best.index
    assert free.best.score == plain.best.score


def test_phi_is_the_smaller_bound():
    view = told(history(target), 5).view()
    blocks, beta, zeta = view.domain.blocks, 4.0, 0.3
    phi_2 = ucb(view.model(cold_kernel(GRID)).predict, beta)
    mean, sd = blocks["old_mean"][:, 0], blocks["old_sd"][:, 0]
    phi_1 = 0.5 + 2.0 * (mean + 2.0 * sd) + zeta
    phi = lower_of(phi_2, 0, Line(0.5, 2.0), zeta, beta)(blocks)
    np.testing.assert_allclose(phi, np.minimum(phi_1, phi_2(blocks)) + TIE * mean)


def test_an_exact_lower_fidelity_with_zeta_zero_never_scores_above_it():
    view = told(history(target), 3).view()
    blocks = dict(view.domain.blocks)
    truth = target(view.domain.u)
    blocks |= {"old_mean": truth[:, None], "old_sd": np.zeros((len(truth), 1))}
    phi = lower_of(ucb(view.model(cold_kernel(GRID)).predict, 9.0), 0, Line(0.0, 1.0), 0.0, 9.0)(blocks)
    assert np.all(phi <= truth + TIE * np.abs(truth))


def test_line_recovers_shift_and_slope_and_starts_at_the_identity():
    x = np.random.default_rng(0).standard_normal(2000)
    assert fit_line(x, 0.5 + 1.7 * x) == pytest.approx(Line(0.5, 1.7), abs=0.01)
    assert fit_line(np.zeros(0), np.zeros(0)) == Line(0.0, 1.0)


def test_an_inverted_old_task_is_ignored():
    optimizer = told(history(lambda u: -target(u)), 12)
    view = optimizer.view()
    choice = MFGPUCB()(view)
    assert "contradict" in choice.note
    assert choice.best.index == GPUCB()(view).best.index


def test_old_task_is_chosen_by_the_others_then_by_the_trials():
    agreement = np.array([0.1, 0.9, 0.3])
    z = np.arange(5.0)
    means = np.stack([z, -z, np.zeros(5)], axis=1)
    assert closest_task(means[:4], z[:4], agreement, 5) == 1
    assert closest_task(means, z, agreement, 5) == 0
    old = told(history(target, lambda u: np.random.default_rng(2).standard_normal(len(u)), target), 0).past
    assert np.argmin(old.agreement) == 1


def test_first_suggestion_is_good_for_an_identical_old_task():
    first = told(history(target), 0).ask()
    values = target(GRID.grid())
    assert target(GRID.encode(first.params)[None])[0] > np.quantile(values, 0.9)
    assert "'old 0'" in first.why
