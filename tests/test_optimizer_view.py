"""What a recipe sees of the trials and of the old runs, and what the old runs say."""

import re
from dataclasses import replace

import numpy as np

from bowl import SPACE, told, value
from jumbo_bo.data.history import History, Task
from jumbo_bo.learning.pretrain import PRESETS, Pretraining, pretrain
from jumbo_bo.methods.jumbo_printed import warm_kernel
from jumbo_bo.models import gp as gps
from jumbo_bo.models.kernel import cold_kernel
from jumbo_bo.optimizer import Optimizer


def old_task(name, n=40, seed=0, shift=0.0):
    u = SPACE.sample(np.random.default_rng(seed), n)
    return Task(name, u, np.array([-value(SPACE.decode(row)) - shift for row in u]))


def test_what_a_recipe_sees():
    optimizer = told(5)
    optimizer.fail(optimizer.ask())
    running = optimizer.ask()
    view = optimizer.view()
    assert (len(view.u), len(view.z), len(view.pending), view.t, view.horizon) == (6, 6, 1, 8, 20)
    np.testing.assert_array_equal(view.u, [SPACE.encode(params) for params, _ in optimizer.told])
    np.testing.assert_array_equal(view.taken[-1], SPACE.encode(running.params))
    u, z = view.earlier(4)
    np.testing.assert_array_equal(u, view.u[:4])
    np.testing.assert_array_equal(np.argsort(z), np.argsort(view.z[:4]))
    kept = [view.kept("once", lambda: object()), optimizer.view().kept("once", lambda: object())]
    assert kept[0] is kept[1]
    assert optimizer.restarted().view().kept("once", lambda: None) is None
    kernel = cold_kernel(SPACE)
    assert view.fit(kernel, adam=True).theta[0] == 0.0  # the paper's fit leaves the amplitude at 1
    assert view.fit(kernel).theta[0] != 0.0
    assert (optimizer.direction, optimizer.n_trials, optimizer.seed) == ("minimize", 20, 0)


def test_a_view_is_a_snapshot():
    """What was asked of it before a tell and after is the same, also when other models were fitted in between."""
    optimizer = told(6)
    view, kernel = optimizer.view(), cold_kernel(SPACE)
    before = view.fit(kernel)
    optimizer.tell({"x": 0.9, "n": 5}, 100.0)
    other = cold_kernel(SPACE, per_parameter=False)
    optimizer.view().fit(other)
    after = view.fit(kernel)
    assert len(after.y) == len(view.z) == 6
    np.testing.assert_array_equal(after.theta, before.theta)
    np.testing.assert_array_equal(after.y, before.y)
    assert len(optimizer.view().fit(kernel).y) == 7
    # Hyperparameters belong to a kernel, whoever asks.
    assert len(optimizer.view().fit(other).theta) == len(other.priors[0]) != len(after.theta)


def test_chains_start_anew_after_the_same_trials_as_fits(monkeypatch):
    """Every ten trials, counted from the first that is no old data of the target."""
    history = History(SPACE, (), target=old_task("new", n=4, seed=1))
    optimizer = Optimizer(SPACE, history, n_trials=30, method="gp-ucb")
    chains, fits, fit = [], [], gps.best_theta

    def step(n, before):
        if before is None:
            chains.append(n)
        return n

    def spy(kernel, blocks, y, starts=(), options=None):
        if not options:
            fits.append(len(y))
        return fit(kernel, blocks, y, starts, options)

    monkeypatch.setattr(gps, "best_theta", spy)
    for i in range(12):
        optimizer.view().chain("test", step)
        optimizer.view().fit(cold_kernel(SPACE))
        optimizer.tell({"x": i / 12, "n": 1}, 1.0)
    assert chains == fits == [4, 14]


def test_old_data_of_the_target_counts_as_observed():
    history = History(SPACE, (old_task("a"),), target=old_task("new", n=6, seed=1))
    optimizer = Optimizer(SPACE, history, n_trials=10)
    optimizer.history = history
    assert len(optimizer.view().u) == 6
    assert optimizer.view().t == 1
    assert optimizer.best is None
    assert "6 trials" in optimizer.ask().why


def test_hyperparameters_of_eq_1_are_a_start_of_the_fits(monkeypatch):
    """Old data of the target gave them; one length scale stands for all."""
    history = History(SPACE, (old_task("a"),), target=old_task("new", n=6, seed=1))
    optimizer = Optimizer(SPACE, history, n_trials=10, method="jumbo-printed")
    optimizer.past = pretrain(history, replace(PRESETS["hpo"], max_steps=200))
    starts, limits, fit = [], [], gps.best_theta

    def spy(kernel, blocks, y, given=(), options=None):
        starts.append([np.asarray(start) for start in given])
        limits.append((options or {}).get("maxiter"))
        return fit(kernel, blocks, y, given, options)

    monkeypatch.setattr(gps, "best_theta", spy)
    optimizer.recipe.models(optimizer.view())
    warm, cold = (optimizer.net.theta[name] for name in ("warm", "cold"))
    (median, from_warm), (_, from_cold) = starts
    np.testing.assert_array_equal(from_warm, warm)
    np.testing.assert_array_equal(from_cold, [cold[0], cold[1], cold[1], cold[2]])
    np.testing.assert_array_equal(median, warm_kernel(optimizer.view(), "h").priors[0])
    assert not np.allclose(median, from_warm)
    # Between two searches from scratch, a fit starts where the last one ended.
    optimizer.tell({"x": 0.5, "n": 2}, 0.3)
    optimizer.recipe.models(optimizer.view())
    assert [len(given) for given in starts] == [2, 2, 1, 1]
    assert limits == [None, None, 10, 10]


def test_much_old_data_of_the_target_is_thinned_but_keeps_the_best():
    target = old_task("new", n=1000, seed=1)
    optimizer = Optimizer(SPACE, History(SPACE, (), target=target), method="gp-ucb")
    kept = optimizer.view()
    assert len(kept.u) == 300
    order = np.argsort(-target.y)

    def is_kept(row):
        return (target.u[row] == kept.u).all(axis=1).any()

    assert all(is_kept(row) for row in order[:100])  # the best third
    assert 0.1 < np.mean([is_kept(row) for row in order[100:]]) < 0.4  # and a sample of the rest


def test_a_net_and_the_history_it_came_from_suggest_the_same():
    history = History(SPACE, (old_task("a"), old_task("b", seed=1, shift=3.0)))
    a = Optimizer(SPACE, history, n_trials=10)
    b = Optimizer(SPACE, pretrain(history, seed=0), n_trials=10)
    for _ in range(3):
        first, second = a.ask(), b.ask()
        assert (first.params, first.why, first.predicted) == (second.params, second.why, second.predicted)
        assert len(first.explanation.nearest) == 3  # only a history remembers its runs
        assert second.explanation.nearest == ()
        a.tell(first, value(first.params))
        b.tell(second, value(second.params))


def test_why_tells_what_old_runs_and_new_trials_say():
    net = pretrain(History(SPACE, (old_task("a"),)), Pretraining(max_steps=200))
    optimizer = Optimizer(SPACE, net, n_trials=10)
    assert "no trials yet. First trial: expected" in optimizer.ask().why
    optimizer.tell(optimizer.suggestions[0], value(optimizer.suggestions[0].params))
    second = optimizer.ask()
    assert "your one trial" in second.why
    optimizer.tell(second, value(second.params))
    text = optimizer.ask().why
    assert text.startswith("Old runs rate this ")
    assert "your 2 trials" in text
    assert re.search(r"Explo(r|it)ing: expected \S+ \(90%: \S+ to \S+\)\.$", text)
