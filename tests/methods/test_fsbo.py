"""FSBO: its first trials against a search through all sets, and what tuning to the trials does."""

import functools
from itertools import combinations

import numpy as np
import pytest

import plane
from jumbo_bo.data.history import History, Task
from jumbo_bo.learning.deep_gp import conditioned, deep_blocks
from jumbo_bo.methods import FSBO, GPUCB
from jumbo_bo.methods.fsbo import FewShotStart, good_configurations, greedy, regrets
from jumbo_bo.models.gp import hallucinate
from plane import SPACE, value

QUICK = FSBO(steps=1_500)


def history():
    return plane.old_runs(0.3)


@functools.cache
def learned():
    return QUICK.learn(history(), 0)


def told(n, past=None, recipe=QUICK, **options):
    return plane.told(n, learned() if past is None else past, recipe, **options)


def test_each_point_of_the_design_lowers_the_average_regret_the_most():
    regret = np.array([[0.5, 0.5, 0.5], [0.0, 0.9, 0.9], [0.9, 0.0, 0.4], [0.3, 0.8, 0.0]])
    assert greedy(regret, 1) == [3]  # averages 0.5, 0.6, 0.43, 0.37
    assert greedy(regret, 2) == [3, 2]
    assert greedy(regret, 5) == [3, 2, 1]  # the first would bring nothing
    assert greedy(np.ones((4, 3)), 5) == []


def test_the_design_is_nearly_the_best_of_all_sets():
    """A greedy choice removes at least 1 - 1/e of the regret that the best set removes: the gain is submodular."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        regret = rng.random((10, 6))
        chosen = greedy(regret, 3)
        best = min(regret[list(rows)].min(axis=0).mean() for rows in combinations(range(10), 3))
        assert 1 - regret[chosen].min(axis=0).mean() >= (1 - 1 / np.e) * (1 - best)


def test_regrets_of_tried_configurations_are_those_of_the_old_runs():
    """A GP hardly smooths values without noise."""
    tasks = history().tasks
    task = tasks[0]
    found = regrets(learned(), SPACE, tasks, task.u, np.random.default_rng(0))[:, 0]
    wanted = (task.z.max() - task.z) / np.ptp(task.z)
    assert found == pytest.approx(wanted, abs=0.1)
    assert np.corrcoef(found, wanted)[0, 1] > 0.98


def test_the_pool_holds_the_best_of_every_task_once():
    u = SPACE.sample(np.random.default_rng(0), 300)
    tasks = (Task("a", u, u[:, 0]), Task("b", u, u[:, 0]), Task("c", u[:5], u[:5, 1]))
    pool = good_configurations(tasks)
    assert len(np.unique(pool, axis=0)) == len(pool)
    for task in tasks:
        assert (np.abs(pool - task.u[np.argmax(task.y)]).max(axis=1) < 1e-12).any()
    assert len(pool) <= 66 + 5


def test_the_first_trials_are_the_design():
    optimizer = told(len(learned().design))
    tried = np.array([SPACE.encode(s.params) for s in optimizer.suggestions])
    assert 1 <= len(tried) <= QUICK.initial
    assert tried == pytest.approx(learned().design, abs=1e-9)
    chance = [value(SPACE.decode(u)) for u in SPACE.sample(np.random.default_rng(3), 500)]
    assert optimizer.best.value < np.quantile(chance, 0.1)


def test_the_model_is_the_exact_gp_on_the_tuned_features():
    optimizer = told(8)
    optimizer.ask()  # stays pending
    view = optimizer.view()
    params, shape = QUICK.tuned(view), view.past.shape
    gp = conditioned(params, shape, SPACE.transform(view.u), view.z)
    gp = hallucinate(gp, deep_blocks(params, shape, SPACE.transform(view.pending)))
    new = view.domain.featurise(SPACE.sample(np.random.default_rng(2), 20))
    wanted, found = gp.predict(deep_blocks(params, shape, new["x"])), QUICK.surrogate(view)
    assert found.predict(new).mean == pytest.approx(wanted.mean)
    assert found.predict(new).sd == pytest.approx(wanted.sd)
    assert found.observed(new).sd == pytest.approx(np.sqrt(wanted.sd**2 + gp.noise))


def test_tuning_raises_the_likelihood_of_the_trials():
    view = told(10).view()
    x, shape = SPACE.transform(view.u), view.past.shape
    start = conditioned(view.past.params, shape, x, view.z).log_likelihood
    assert conditioned(QUICK.tuned(view), shape, x, view.z).log_likelihood > start + 0.1


def test_without_tuning_the_params_are_those_of_the_old_tasks():
    view = told(8).view()
    assert np.array_equal(FSBO(tuning=0).tuned(view), view.past.params)


def test_the_old_tasks_predict_a_new_one_better_than_an_untrained_net():
    """From eight trials, without tuning."""
    untrained = FSBO(steps=0, layers=QUICK.layers).learn(history(), 0)
    errors = {}
    for name, past in (("trained", learned()), ("untrained", untrained)):
        rng = np.random.default_rng(5)
        missed = []
        for _ in range(20):
            u = SPACE.sample(rng, 208)
            task = Task("new", u, np.array([-value(SPACE.decode(row), 0.3 * rng.normal()) for row in u]))
            t = SPACE.transform(u)
            mean = past.gp(t[:8], task.z[:8]).predict(past.blocks(t[8:])).mean
            missed.append(np.mean((mean - task.z[8:]) ** 2))
        errors[name] = np.mean(missed)
    assert errors["trained"] < 0.7 * errors["untrained"]


def test_saved_and_loaded_it_suggests_the_same(tmp_path):
    learned().save(tmp_path / "past.safetensors")
    loaded = FewShotStart.load(tmp_path / "past.safetensors", SPACE)
    n = len(learned().design) + 3
    assert [s.params for s in told(n, loaded).suggestions] == [s.params for s in told(n).suggestions]


def test_without_old_runs_or_with_too_few_rows_it_is_gp_ucb():
    few = History(SPACE, (Task("few", np.full((4, 2), 0.5), np.arange(4.0)),))
    assert QUICK.learn(few, 0).empty
    plain = told(7, History.empty(SPACE), GPUCB(initial=QUICK.initial))
    none = told(7, History.empty(SPACE))
    assert [s.params for s in none.suggestions] == [s.params for s in plain.suggestions]
    assert len(told(7, few).suggestions) == 7


def test_a_task_without_rows_is_passed_over():
    empty = Task("empty", np.zeros((0, 2)), np.zeros(0))
    assert FSBO(steps=100).learn(History(SPACE, (*history().tasks, empty)), 0).design.shape[1] == 2
    assert QUICK.learn(History(SPACE, (empty,)), 0).empty
