from __future__ import annotations

import numpy as np
import pytest
from optuna.distributions import FloatDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.data.warp import Warp
from jumbo_bo.learning import priors
from jumbo_bo.learning.features import deviations
from jumbo_bo.learning.pretrain import pretrain
from jumbo_bo.learning.priors import LEAST_SD, left_out, level_variance, pooled
from jumbo_bo.learning.training import Pretraining
from jumbo_bo.models.population import LEVEL, alone, population
from jumbo_bo.space.space import Space

SPACE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})
SMALL = Pretraining(members=1, max_epochs=30, n_u=16)


def history(functions, noise=0.0, n=60):
    rng = np.random.default_rng(0)
    tasks = []
    for k, f in enumerate(functions):
        u = SPACE.sample(rng, n)
        tasks.append(Task(f"task {k}", u, f(u) + noise * rng.normal(size=n)))
    return History(SPACE, tuple(tasks))


def bowl(centre):
    return lambda u: -((u[:, 0] - centre) ** 2) - (u[:, 1] - 0.5) ** 2


def residual(prior):
    """log variance of what the other tasks do not know, relative to the weak prior."""
    return prior[0, 3] - population(SPACE, 2).priors[0][3]


def test_tasks_that_agree_leave_little_to_learn_and_tasks_that_do_not_leave_much():
    alike = pretrain(history([bowl(0.5)] * 4), SMALL).priors["population"]
    rng = np.random.default_rng(1)
    phases = rng.uniform(0, 6, size=(4, 2))
    apart = pretrain(history([lambda u, p=p: np.sin(9 * u + p).sum(axis=1) for p in phases]), SMALL)
    assert residual(alike) < -0.2
    assert residual(apart.priors["population"]) > residual(alike) + 0.5


def test_noise_is_learned_from_the_old_tasks():
    quiet, loud = (pretrain(history([bowl(0.4), bowl(0.6), bowl(0.5)], noise), SMALL).priors for noise in (0.0, 0.2))
    for model in ("alone", "population"):
        assert loud[model][0, -1] > quiet[model][0, -1] + 2.0


def test_what_is_left_out_is_not_seen():
    old = history([bowl(0.2), bowl(0.5), bowl(0.8)])
    net = pretrain(old, SMALL)
    task = old.tasks[1]
    blocks, z = left_out(SPACE, task, net, np.random.default_rng(3))
    heads = net.predictions(blocks["x"])
    mean, dev = deviations(heads[:, [0, 2]])
    np.testing.assert_allclose(blocks["m"], mean)
    np.testing.assert_allclose(blocks["dev"], dev)
    assert set(z) <= set(task.z)


def test_pooling_is_a_mean_with_the_weak_prior_as_two_more_tasks():
    kernel = alone(SPACE)
    median, sd = kernel.priors
    fits = np.stack([median + 1.0, median + 3.0])
    prior = pooled(kernel, fits)
    np.testing.assert_allclose(prior[0, 1:], median[1:] + 1.0)
    np.testing.assert_allclose(prior[1, 1:], np.sqrt((2 * sd[1:] ** 2 + 0 + 4) / 4))
    np.testing.assert_allclose(prior[:, 0], [median[0], sd[0]])
    many = pooled(kernel, np.tile(median + 1.0, (1000, 1)))
    np.testing.assert_allclose(many[1, 1:], LEAST_SD, atol=0.01)


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_any_number_of_old_tasks(tasks):
    net = pretrain(history([bowl(0.1 * k) for k in range(1, tasks + 1)]), SMALL)
    if tasks == 1:
        assert net.priors == {}
        assert net.blocks(np.zeros((2, 2)))["dev"].shape == (2, 0)
        return
    for name, kernel in (("alone", alone(SPACE)), ("population", population(SPACE, tasks))):
        assert net.priors[name].shape == (2, len(kernel.priors[0]))
        assert (net.priors[name][1] > 0).all()
    if tasks == 2:  # one is left of two: it has no covariance
        assert net.priors["population"][0, 2] == pytest.approx(population(SPACE, 2).priors[0][2])


def test_tasks_of_a_few_rows_tell_nothing():
    assert pretrain(history([bowl(0.4), bowl(0.6)], n=5), SMALL).priors == {}


def test_the_papers_presets_learn_no_priors():
    from jumbo_bo.learning.training import PRESETS

    assert {name for name, preset in PRESETS.items() if preset.priors} == {"default"}


def test_many_tasks_share_64_columns_that_keep_their_covariance():
    rng = np.random.default_rng(0)
    phases = rng.uniform(0, 6, size=(70, 2))
    old = history([lambda u, p=p: np.sin(3 * u + p).sum(axis=1) for p in phases], n=12)
    net = pretrain(old, Pretraining(members=1, max_epochs=5, n_u=8, gp_rows=0, least_r2=None))
    t = SPACE.transform(SPACE.sample(rng, 40))
    dev = net.blocks(t)["dev"]
    assert dev.shape == (40, 64)
    np.testing.assert_allclose(dev @ dev.T, np.cov(net.predictions(t)), atol=1e-4)


def test_the_level_is_as_unsure_as_the_old_tasks_lie_apart():
    far = [Warp(-1, centre, 0.5) for centre in (0.0, 5.0, -5.0)]
    assert level_variance(far) == pytest.approx((2 * LEVEL.variance.median + 2 * 10.0**2) / 5)
    assert level_variance([Warp(-1, 1.0, 0.5)] * 98) == pytest.approx(2 * LEVEL.variance.median / 100)
    # A task on another scale cannot be compared: it says nothing.
    assert level_variance([*far, Warp(0, 1e6, 1.0)]) < LEVEL.variance.median + 1.0


@pytest.mark.parametrize("n", [60, 9])
def test_of_many_tasks_the_covariance_is_kept_in_few_columns(n, monkeypatch):
    old = history([bowl(c) for c in np.linspace(0.1, 0.9, 5)], n=n)
    net = pretrain(old, SMALL)
    whole, z = left_out(SPACE, old.tasks[1], net, np.random.default_rng(3))
    monkeypatch.setattr(priors, "MANY", 4)
    few, same = left_out(SPACE, old.tasks[1], net, np.random.default_rng(3))
    np.testing.assert_array_equal(same, z)
    assert few["dev"].shape == (n, priors.ROWS)  # the same for all tasks
    np.testing.assert_allclose(few["dev"] @ few["dev"].T, whole["dev"] @ whole["dev"].T, atol=1e-12)
