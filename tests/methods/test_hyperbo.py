"""HyperBO against the GP that its tasks were drawn from, and what stays fixed."""

import functools

import numpy as np
import pytest

import plane
from jumbo_bo.data.history import History, Task
from jumbo_bo.methods import GPUCB, HyperBO
from jumbo_bo.methods.hyperbo import PretrainedGP
from jumbo_bo.models import gp as gps
from jumbo_bo.models.kernel import covariance
from jumbo_bo.optimizer import Optimizer
from plane import SPACE, value

QUICK = HyperBO(steps=1_000, rows=32)


def history():
    return plane.old_runs(0.1)


@functools.cache
def learned():
    return QUICK.learn(history(), 0)


def told(n, past=None, recipe=QUICK, **options):
    return plane.told(n, learned() if past is None else past, recipe, **options)


def test_the_posterior_is_that_of_the_pretrained_prior_and_an_unknown_level():
    """Written out: mean m(x), covariance k(h, h') + offset, both as the old runs left them."""
    view = told(8).view()
    gp, past = QUICK.gp(view), view.past
    here, new = view.domain.featurise(view.u), view.domain.featurise(SPACE.sample(np.random.default_rng(2), 20))
    matern = gps.Kernel((gps.ard("deep", 8),))

    def k(a, b):
        return covariance(matern, past.theta, a, b) + QUICK.offset

    noisy = k(here, here) + np.exp(past.theta[-1]) * np.eye(8)
    weights = np.linalg.solve(noisy, k(here, new))
    mean = new["prior"][:, 0] + (view.z - here["prior"][:, 0]) @ weights
    var = np.diag(k(new, new)) - np.sum(k(here, new) * weights, axis=0)
    predicted = QUICK.surrogate(view).predict(new)
    # The noise is at least 1e-4 of the variance, so solving loses about six of sixteen digits.
    assert predicted.mean == pytest.approx(mean, abs=1e-7)
    assert predicted.sd == pytest.approx(np.sqrt(var), abs=1e-6)
    assert gp.noise == pytest.approx(np.exp(past.theta[-1]))


def test_no_trial_changes_mean_or_kernel():
    few, many = (QUICK.gp(told(n).view()) for n in (2, 12))
    assert np.array_equal(few.theta, many.theta)


def test_a_shift_of_all_values_shifts_the_prediction():
    """The target's scale starts at its own trials: what they share says nothing about where they are good."""
    view = told(10).view()
    new = view.domain.featurise(SPACE.sample(np.random.default_rng(2), 20))
    loose = HyperBO(offset=1e4)

    def mean(z):
        blocks = view.domain.featurise(view.u)
        gp = loose.gp(view)
        return gps.build(gp.kernel, gp.theta, blocks, z).predict(new).mean

    assert mean(view.z + 0.7) - mean(view.z) == pytest.approx(np.full(20, 0.7), abs=1e-3)


def test_the_first_trial_is_where_the_old_tasks_were_good_on_average():
    first = told(1).suggestions[0]
    chance = [value(SPACE.decode(u)) for u in SPACE.sample(np.random.default_rng(3), 500)]
    assert value(first.params) < np.quantile(chance, 0.1)


def test_it_finds_the_optimum_of_a_related_task():
    optimizer = told(12)
    chance = [value(SPACE.decode(u)) for u in SPACE.sample(np.random.default_rng(3), 2_000)]
    assert optimizer.best.value < np.quantile(chance, 0.01)


def test_saved_and_loaded_it_suggests_the_same(tmp_path):
    learned().save(tmp_path / "past.safetensors")
    loaded = PretrainedGP.load(tmp_path / "past.safetensors", SPACE)
    assert [s.params for s in told(4, loaded).suggestions] == [s.params for s in told(4).suggestions]


def test_without_old_runs_or_with_too_few_rows_it_is_gp_ucb():
    few = History(SPACE, (Task("few", np.full((4, 2), 0.5), np.arange(4.0)),))
    assert QUICK.learn(few, 0).empty
    plain = Optimizer(SPACE, None, n_trials=20, method=GPUCB())
    for _ in range(5):
        suggestion = plain.ask()
        plain.tell(suggestion, value(suggestion.params))
    none = told(5, History.empty(SPACE))
    assert [s.params for s in none.suggestions] == [s.params for s in plain.suggestions]
    assert len(told(5, few).suggestions) == 5
