from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.learning.training import Pretraining
from jumbo_bo.methods import JumboMixture
from jumbo_bo.methods.averaging import average, improvement
from jumbo_bo.models.gp import posterior
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.search.acquisition import log_expected_improvement
from jumbo_bo.space.space import Space

SPACE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})
QUICK = JumboMixture(preset=Pretraining(members=1, max_epochs=60, n_u=16))
THREE = replace(QUICK, one_of=True)


def loss(a, b, centre=0.3):
    return (a - centre) ** 2 + (b - 0.6) ** 2


def old_runs(*centres, sign=1.0, n=60):
    rng = np.random.default_rng(0)
    tasks = []
    for k, centre in enumerate(centres):
        u = SPACE.sample(rng, n)
        tasks.append(Task(f"task {k}", u, -sign * loss(*u.T, centre)))
    return History(SPACE, tuple(tasks))


def played(history, trials, seed=0, **options):
    optimizer = Optimizer(SPACE, history, n_trials=20, method=QUICK, seed=seed, **options)
    for _ in range(trials):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, loss(**suggestion.params))
    return optimizer


def weights(optimizer):
    """Of the models with the old runs, and of the one without."""
    gps = optimizer.recipe.models(optimizer.view())
    return sum(w for w, gp in gps if gp.kernel.mean), sum(w for w, gp in gps if gp.kernel.mean is None)


def test_weights_are_the_prior_times_the_likelihood_of_the_trials():
    optimizer = played(old_runs(0.2, 0.4, 0.35), 4)
    view = optimizer.view()
    models = QUICK.models(view)
    likelihoods = [view.fit(gp.kernel).log_likelihood for _, gp in models]
    known, alone = (math.exp(value - max(likelihoods)) for value in likelihoods)
    assert [w for w, _ in models] == pytest.approx([2 * known / (2 * known + alone), alone / (2 * known + alone)])


def test_every_old_task_may_be_the_one_that_the_new_problem_is_like():
    gps = THREE.models(played(old_runs(0.2, 0.4, 0.35), 4).view())
    assert {gp.kernel.mean for _, gp in gps} == {"m", "heads", None}
    # Prior weights: a third each; of the second, a third for every old task.
    density = np.array([math.exp(gp.log_likelihood) / (3 if gp.kernel.mean == "heads" else 1) for _, gp in gps])
    np.testing.assert_allclose([w for w, _ in gps], density / density.sum())


def test_of_old_tasks_of_mixed_relevance_the_one_that_fits_has_the_say():
    rng = np.random.default_rng(3)
    others = [SPACE.sample(rng, 60) for _ in range(4)]
    tasks = [Task(f"wave {k}", u, np.sin((5 + k) * u).sum(axis=1)) for k, u in enumerate(others)]
    good = old_runs(0.3).tasks[0]
    optimizer = played(History(SPACE, (*tasks[:2], good, *tasks[2:])), 0)
    for u in SPACE.sample(rng, 6):
        params = SPACE.decode(u)
        optimizer.tell(params, loss(**params))
    shares = {gp.kernel.column: w for w, gp in THREE.models(optimizer.view()) if gp.kernel.mean == "heads"}
    assert max(shares, key=shares.get) == 2
    assert shares[2] > 0.9 * sum(shares.values())


def waves(n=60):
    """Old tasks that agree with each other, and have nothing to do with the new one."""
    rng = np.random.default_rng(0)
    points = [SPACE.sample(rng, n) for _ in range(3)]
    return History(SPACE, tuple(Task(f"wave {k}", u, np.sin(12 * u).sum(axis=1)) for k, u in enumerate(points)))


def test_old_runs_that_fit_gain_weight_and_old_runs_of_something_else_lose_it():
    assert weights(played(old_runs(0.25, 0.3, 0.35), 6))[0] > 2 / 3
    assert weights(played(waves(), 10))[0] < 0.1


def test_old_runs_upside_down_are_of_use():
    upside_down = played(old_runs(0.25, 0.3, 0.35, sign=-1.0), 8)
    assert weights(upside_down)[0] > 2 / 3
    assert upside_down.best.value < 0.01


def test_the_old_runs_find_the_optimum_at_once():
    good = played(old_runs(0.25, 0.3, 0.35), 3)
    assert good.best.value < 0.005


def test_misleading_old_runs_cost_trials_but_not_the_optimum():
    assert played(waves(), 20).best.value < 0.005


def test_the_average_is_that_of_the_mixture():
    optimizer = played(old_runs(0.2, 0.4), 3)
    view = optimizer.view()
    gps = THREE.models(view)
    assert len(gps) == 4
    at = view.domain.featurise(SPACE.sample(np.random.default_rng(1), 5))
    rng, draws = np.random.default_rng(2), 400_000
    samples = [n.mean + n.sd * rng.standard_normal((draws, 5)) for n in (posterior(gp, at) for _, gp in gps)]
    w = np.array([weight for weight, _ in gps])
    sample = np.choose(rng.choice(len(gps), draws, p=w)[:, None], samples)
    mean, sd = average(gps, at)
    np.testing.assert_allclose(mean, sample.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(sd, sample.std(axis=0), rtol=0.01)
    noise = sum(w * gp.noise for w, gp in gps)
    np.testing.assert_allclose(average(gps, at, noise=True).sd ** 2, sd**2 + noise)
    each = [np.maximum(drawn - 0.4, 0.0).mean(axis=0) for drawn in samples]
    heard = [1 - np.sqrt(gp.noise / (s.var(axis=0) + gp.noise)) for (_, gp), s in zip(gps, samples, strict=True)]
    expected = [w @ each, w @ (np.array(each) * heard)]
    found = [np.exp(improvement(gps, 0.4, may_repeat)(at)) for may_repeat in (False, True)]
    np.testing.assert_allclose(found, expected, rtol=0.02, atol=1e-4)


def test_the_first_trial_improves_on_the_best_average_of_the_old_tasks():
    optimizer = Optimizer(SPACE, old_runs(0.1, 0.3, 0.5), n_trials=20, method=QUICK, candidates=CANDIDATES)
    view = optimizer.view()
    at = view.domain.blocks
    kernel = QUICK.models(view)[0][1].kernel
    (level, slope, dev, x), median = kernel.terms, kernel.priors[0]
    sd = np.sqrt(
        math.exp(median[1]) * at["m"][:, 0] ** 2
        + math.exp(median[2]) * np.sum(at["dev"] ** 2, axis=1)
        + math.exp(median[3])
    )
    score = log_expected_improvement(at["m"][:, 0], sd, at["m"].max())
    assert [t.block for t in (level, slope, dev, x)] == ["1", "m", "dev", "x"]
    assert optimizer.ask().params == CANDIDATES[int(np.argmax(score))]


def test_the_first_interval_knows_how_far_the_levels_of_the_old_tasks_lie_apart():
    """In units of their spread: eight tasks on the same level, and eight that differ by a thousand times it."""
    rng = np.random.default_rng(0)
    points = [SPACE.sample(rng, 40) for _ in range(8)]
    shown = []
    for apart in (0.0, 200.0):
        tasks = [Task(f"task {k}", u, -loss(*u.T) - 500.0 + apart * k) for k, u in enumerate(points)]
        first = Optimizer(SPACE, History(SPACE, tuple(tasks)), n_trials=20, method=QUICK).ask().predicted
        shown.append(first.high - first.low)
    assert shown[0] < 1.0
    assert shown[1] > 1000.0


CANDIDATES = [{"a": a / 10, "b": b / 10} for a in range(11) for b in range(11)]


def test_without_old_runs_it_spreads_three_points_and_then_searches():
    optimizer = played(None, 20)
    assert optimizer.suggestions[0].why.startswith("Initial point 1 of 3")
    assert weights(optimizer) == (0.0, 1.0)
    assert optimizer.best.value < 0.002


@pytest.mark.parametrize("prior", [0.0, 1.0, -1.0, math.nan])
def test_a_prior_weight_that_no_trial_could_change_is_refused(prior):
    with pytest.raises(ValueError, match=r"prior is .*, expected a weight between 0 and 1"):
        Optimizer(SPACE, method=JumboMixture(prior=prior))


def test_one_old_task():
    optimizer = played(old_runs(0.35), 5)
    assert optimizer.best.value < 0.01


def test_a_batch_is_spread():
    optimizer = Optimizer(SPACE, old_runs(0.2, 0.4), n_trials=20, method=QUICK)
    points = np.array([[s.params["a"], s.params["b"]] for s in optimizer.ask_many(4)])
    apart = np.abs(points[:, None] - points).max(axis=2)[~np.eye(4, dtype=bool)]
    assert apart.min() > 0.01


def test_the_explanation_is_that_of_the_average():
    optimizer = played(old_runs(0.25, 0.3, 0.35), 5)
    suggestion = optimizer.ask()
    view = optimizer.view()
    assert suggestion.explanation.beta is None
    assert 0.0 <= suggestion.explanation.trust <= 1.0
    pending = view.domain.featurise(view.pending)
    mean = average(QUICK.models(view), pending).mean[0]
    known = average(QUICK.models(view), view.domain.featurise(view.u)).mean
    parts = suggestion.explanation.old + suggestion.explanation.new
    assert parts == pytest.approx(mean - known.mean(), abs=1e-6)


def test_choices_only():
    space = Space({"c": CategoricalDistribution(["p", "q"]), "d": CategoricalDistribution(["r", "s", "t"])})
    rng = np.random.default_rng(0)
    u = space.sample(rng, 30)
    x = space.transform(u)
    history = History(space, (Task("old", u, x[:, 0] + x[:, -1]), Task("older", u, x[:, 0] - x[:, -1])))
    optimizer = Optimizer(space, history, "maximize", 6, QUICK)
    tried = set()
    for _ in range(6):
        suggestion = optimizer.ask()
        tried.add(tuple(suggestion.params.values()))
        optimizer.tell(suggestion, float(suggestion.params["c"] == "p"))
    assert len(tried) == 6
