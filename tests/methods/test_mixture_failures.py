from __future__ import annotations

import math

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.learning.failures import learn_success
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.learning.training import Pretraining
from jumbo_bo.methods import JumboMixture
from jumbo_bo.methods.averaging import feasible
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

SPACE = Space(
    {
        "lr": FloatDistribution(1e-5, 1.0, log=True),
        "width": FloatDistribution(0, 1),
        "kind": CategoricalDistribution(["a", "b"]),
    }
)
QUICK = JumboMixture(preset=Pretraining(members=1, max_epochs=60, n_u=16))


def loss(lr, width, kind, best=-3.0):
    """Diverges from 0.03 on."""
    return math.nan if lr > 0.03 else (math.log10(lr) - best) ** 2 + (width - 0.4) ** 2 + 0.1 * (kind == "a")


def old_runs(*best, n=60):
    rng = np.random.default_rng(0)
    tasks = []
    for k, at in enumerate(best):
        u = SPACE.sample(rng, n)
        y = np.array([-loss(**SPACE.decode(row), best=at) for row in u])
        tasks.append(Task(f"task {k}", u[np.isfinite(y)], y[np.isfinite(y)], u[~np.isfinite(y)]))
    return History(SPACE, tuple(tasks))


def played(history, trials, objective=loss, seed=0):
    optimizer = Optimizer(SPACE, history, n_trials=20, method=QUICK, seed=seed)
    for _ in range(trials):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, objective(**suggestion.params))
    return optimizer


def failures(optimizer):
    return sum(math.isnan(value) for _, value in optimizer.told)


def test_failures_are_not_values():
    optimizer = played(None, 12)
    view = optimizer.view()
    assert 0 < len(view.failed) == failures(optimizer)
    assert len(view.u) == len(view.z) == 12 - len(view.failed)
    assert len(view.taken) == 12
    assert view.t == 13


def test_old_failures_keep_new_trials_from_failing():
    """The optimum of the new problem is at a learning rate of 0.01, next to where trainings diverge."""
    new = {"objective": lambda **params: loss(**params, best=-2.0)}
    wise = played(old_runs(-2.2, -2.0, -1.8), 10, **new)
    assert failures(wise) <= 2
    assert wise.best.value < 0.02


def test_a_suggestion_says_how_likely_it_succeeds():
    optimizer = played(None, 10)
    suggestion = optimizer.ask()
    assert 0 < suggestion.explanation.success < 1
    assert ("Chance of success" in suggestion.why) == (suggestion.explanation.success < 0.95)
    whole = played(None, 5, lambda lr, width, kind: width)
    assert whole.ask().explanation.success is None


def test_nothing_changes_as_long_as_nothing_fails():
    whole = played(None, 6, lambda lr, width, kind: width)
    assert whole.recipe.success(whole.view()) is None


def test_a_program_that_always_fails_is_tried_in_different_places():
    optimizer = played(None, 8, lambda **params: math.nan)
    u = np.array([SPACE.encode(params) for params, _ in optimizer.told])
    apart = np.abs(u[:, None] - u[None]).max(axis=2)[np.triu_indices(8, 1)]
    assert apart.min() > 0.05
    known = played(old_runs(-3.2, -3.0, -2.8), 4, lambda **params: math.nan)
    assert "your 4 trials failed" in known.ask().why


def test_the_probability_of_success_multiplies_the_improvement():
    blocks = {"x": np.array([[0.0], [1.0], [1.0]])}
    scores = feasible(lambda b: np.array([0.0, 0.5, -30.0]), lambda x: np.where(x[:, 0] > 0.5, 0.5, 0.9))(blocks)
    np.testing.assert_allclose(scores, [math.log(0.9), 0.5 + math.log(0.5), -30.0])


def test_a_resumed_study_suggests_the_same():
    optimizer = played(old_runs(-3.2, -3.0), 8)
    resumed = optimizer.restarted()
    for params, value in optimizer.told:
        resumed.tell(params, value)
    assert resumed.ask().params == optimizer.ask().params


def test_old_failures_are_saved_with_the_net(tmp_path):
    optimizer = played(old_runs(-3.2, -3.0), 0)
    assert optimizer.net.success is not None
    optimizer.net.save(tmp_path / "net.safetensors")
    again = FeatureNet.load(tmp_path / "net.safetensors", SPACE)
    x = SPACE.transform(SPACE.sample(np.random.default_rng(1), 20))
    prior = np.full(20, 0.9)
    np.testing.assert_array_equal(again.success.probability(x, prior), optimizer.net.success.probability(x, prior))


def test_a_batch_from_a_table_after_a_failure():
    """A table is scored in parts, some of them empty, while trials are pending."""
    grid = Space({"a": IntDistribution(0, 49), "b": IntDistribution(0, 49)})
    optimizer = Optimizer(grid, seed=0)
    for i in range(8):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, math.nan if i == 5 else abs(suggestion.params["a"] - 20) + suggestion.params["b"])
    batch = optimizer.ask_many(6)
    assert len({tuple(s.params.values()) for s in batch}) == 6
    assert all(0 < s.explanation.success <= 1 for s in batch)


def test_old_runs_without_a_failure_have_no_model_of_success():
    history = old_runs(-3.2, -3.0)
    assert learn_success(SPACE, [Task(t.name, t.u, t.y) for t in history.tasks], 0) is None


@pytest.mark.parametrize("method", ["gp-ucb", "jumbo-joint"])
def test_other_methods_take_a_failure_for_the_worst_value(method):
    optimizer = Optimizer(SPACE, method=method)
    optimizer.tell(SPACE.decode([0.1, 0.1, 0.1]), 1.0)
    optimizer.tell(SPACE.decode([0.2, 0.2, 0.9]), 3.0)
    optimizer.fail(SPACE.decode([0.3, 0.3, 0.1]))
    view = optimizer.view()
    assert view.z[2] == view.z[1]
    assert len(view.failed) == 0
