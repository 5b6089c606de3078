"""Thousands of trials: what is approximated, against the exact result."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from optuna.distributions import FloatDistribution, IntDistribution

from jumbo_bo.methods.averaging import improvement
from jumbo_bo.methods.base import View
from jumbo_bo.methods.mixture import JumboMixture
from jumbo_bo.models.gp import build, expected, extend, hallucinate, joint_posterior, optimistic, posterior
from jumbo_bo.models.kernel import Kernel, Term, covariance, term_sums
from jumbo_bo.models.population import alone
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.search.argmax import Finite
from jumbo_bo.space.space import Space
from jumbo_bo.trials import THINNED, Fits, Trial, Trials

SPACE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})
TABLE = Space({"a": IntDistribution(0, 59), "b": IntDistribution(0, 59)})
KERNEL = alone(SPACE)
CLOSE = {"rtol": 1e-7, "atol": 1e-7}  # factors of matrices with condition numbers up to 1e6


def featurise(u):
    return {"1": np.ones((len(u), 1)), "x": u}


def value(u, rng):
    return float(np.sum((u - 0.3) ** 2) + 0.1 * np.sin(9 * u).sum() + 0.05 * rng.standard_normal())


def told(n):
    rng = np.random.default_rng(0)
    rows = [Trial(u, SPACE.decode(u), -value(u, rng)) for u in rng.random((n, 2))]
    return Trials(tuple(rows), 0, 2)


def study(n, space=SPACE):
    optimizer, rng = Optimizer(space, seed=3), np.random.default_rng(7)
    for u in space.sample(rng, n):
        optimizer.tell(space.decode(u), value(u, rng))
    return optimizer


@pytest.mark.parametrize("new", [0, 1, 40])
def test_a_factor_that_grew_is_the_one_built_anew(new):
    trials = told(340)
    n = len(trials) - new
    theta = Fits().gp(featurise, trials, KERNEL).theta
    base = build(KERNEL, theta, featurise(trials.u[:n]), np.zeros(n))
    grown, fresh = extend(base, featurise(trials.u[n:]), trials.z), build(KERNEL, theta, featurise(trials.u), trials.z)
    np.testing.assert_allclose(grown.chol, fresh.chol, **CLOSE)
    np.testing.assert_allclose(grown.root @ fresh.chol, np.eye(len(trials)), atol=1e-6)
    assert grown.log_likelihood == pytest.approx(fresh.log_likelihood, rel=1e-6)
    at = featurise(np.random.default_rng(1).random((50, 2)))
    for a, b in zip(joint_posterior(grown, at), joint_posterior(fresh, at), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_pending_trials_of_many_keep_the_mean_and_shrink_the_variance():
    gp = Fits().gp(featurise, told(400), KERNEL)
    at, pending = (featurise(np.random.default_rng(k).random((30, 2))) for k in (1, 2))
    before, after = posterior(gp, at), posterior(hallucinate(gp, pending), at)
    np.testing.assert_allclose(after.mean, before.mean, atol=1e-6)
    assert (after.sd <= before.sd + 1e-9).all()
    assert (after.sd < 0.95 * before.sd).any()


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_sums_over_a_kernel_matrix_are_those_of_the_whole(precision):
    rng = np.random.default_rng(0)
    a, b, alpha = rng.random((500, 2)), rng.random((700, 2)).astype(precision), rng.standard_normal(500)
    for term in (Term("x", "linear", (0, 0)), Term("x", "matern52", (0, 1))):
        theta = np.log([0.5, 0.3, 0.7])[: term.n_params]
        kernel = Kernel((term,))
        whole = alpha @ covariance(kernel, np.append(theta, 0.0), {"x": a}, {"x": b.astype(float)})
        sums = term_sums(term, theta, alpha, a, b)
        assert sums.dtype == precision
        np.testing.assert_allclose(sums, whole, atol=1e-9 if precision == np.float64 else 1e-3)


def test_the_optimistic_bound_has_the_mean_and_no_smaller_doubt():
    for n in (50, 400):
        gp = Fits().gp(featurise, told(n), KERNEL)
        at = featurise(np.random.default_rng(4).random((300, 2)))
        exact, bound = posterior(gp, at), optimistic(gp, at, 32)
        np.testing.assert_allclose(bound.mean, exact.mean, atol=1e-6)
        np.testing.assert_allclose(expected(gp, at), exact.mean, atol=1e-6)
        assert (bound.sd >= exact.sd - 1e-9).all()
        assert (bound.sd > 1.05 * exact.sd).any()


def test_a_table_is_searched_exactly_where_a_bound_allows_it():
    gp = Fits().gp(featurise, told(200), KERNEL)
    table = Finite(TABLE.grid(), featurise)
    score, none = improvement([(1.0, gp)], float(gp.y.max())), np.zeros((0, 2))
    for taken in (none, table.u[np.argsort(-score(table.blocks))[:700]]):
        bound = improvement([(1.0, gp)], float(gp.y.max()), predict=partial(optimistic, first=32))
        bounds = bound(table.rough).astype(float)
        asked = []

        def counted(blocks, asked=asked):
            asked.append(len(blocks["x"]))
            return score(blocks)

        whole = table.argmax(score, np.random.default_rng(0), none, taken)
        some = table.argmax(counted, np.random.default_rng(0), none, taken, bounds=bounds)
        assert some.index == whole.index
        assert sum(asked) < len(table.u)
        scores = score(table.blocks)
        good = scores > scores.max() - 10.0  # where single precision is good for two digits
        np.testing.assert_array_less(scores[good] - 1e-2, bounds[good])  # still bounds


@pytest.fixture
def thinned(monkeypatch):
    """Past 300 trials in place of 1,000, so that the tests are quick."""
    monkeypatch.setattr("jumbo_bo.trials.EVERY", 300)


def test_up_to_a_thousand_trials_every_one_is_followed_by_a_fit():
    trials = told(1015)
    assert [trials.first(n).fitted for n in (1, 300, 301, 999, 1000, 1009, 1010, 1015)] == [
        *(1, 300, 301, 999, 1000, 1000),
        *(1010, 1010),
    ]


def test_of_many_trials_fits_are_few_and_a_resumed_study_makes_the_same_gp(thinned):
    trials, fits = told(700), Fits()
    numbers = {n: trials.first(n).fitted for n in range(290, 701)}
    assert all(numbers[n] == n for n in range(290, 301))
    assert all(n - n // THINNED <= numbers[n] <= n for n in numbers)
    assert len(set(numbers.values())) < 120
    for n in range(500, 520):
        lived = fits.gp(featurise, trials.first(n), KERNEL)
    resumed = Fits().gp(featurise, trials.first(519), KERNEL)
    np.testing.assert_array_equal(lived.theta, resumed.theta)
    np.testing.assert_array_equal(lived.chol, resumed.chol)
    np.testing.assert_array_equal(lived.alpha, resumed.alpha)


def test_another_scale_of_the_values_is_another_fit(thinned):
    few = told(305)
    wide = [Trial(t.u, t.params, t.y * (1.0 if i < 303 else 1e3)) for i, t in enumerate(few.rows)]
    shifted = [Trial(t.u, t.params, -1e-3 * 10.0 ** (i % 7)) for i, t in enumerate(few.rows)]
    assert few.fitted == 303
    assert Trials(tuple(wide), 0, 2).fitted == 303  # a few diverged values do not change the scale
    assert (
        Trials((*shifted[:-1], Trial(few.u[0], few.rows[0].params, 5.0)), 0, 2).fitted == 305
    )  # no logarithm any more


def test_a_model_of_very_many_trials_is_close_to_that_of_all():
    trials = told(1500)
    few, every = Fits(500).gp(featurise, trials, KERNEL), Fits().gp(featurise, trials, KERNEL)
    known = trials.known(500)
    assert len(few.y) == len(known) == len(set(known)) == 500 + len(trials) - trials.fitted
    np.testing.assert_array_equal(few.theta, every.theta)
    at = featurise(np.random.default_rng(5).random((200, 2)))
    (mean, sd), (exact_mean, exact_sd) = posterior(few, at), posterior(every, at)
    assert np.sqrt(np.mean(((mean - exact_mean) / sd) ** 2)) < 1.2  # off by what it says itself
    assert (sd >= exact_sd - 1e-9).all()


class Some(JumboMixture):
    most_trials = 320


def test_what_was_left_out_is_asked_near_the_suggestion():
    exact, some = study(420), Optimizer(SPACE, method=Some(), seed=3)
    for params, y in exact.told:
        some.tell(params, y)
    view: View = some.view()
    assert len(view.unknown) == 420 - len(some._finished().known(320)) > 50
    score = improvement(exact.recipe.models(exact.view()), max(exact.view().z), may_repeat=True)

    def worth(suggestion):
        return float(score(featurise(SPACE.encode(suggestion.params)[None]))[0])

    assert worth(some.ask()) > worth(exact.ask()) - 0.5


@pytest.mark.parametrize("space", [SPACE, TABLE])
def test_a_resumed_study_of_many_trials_suggests_the_same(space, thinned):
    optimizer = study(312, space)
    rng = np.random.default_rng(0)
    for _ in range(3):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, value(space.encode(suggestion.params), rng))
    resumed = optimizer.restarted()
    for params, y in optimizer.told:
        resumed.tell(params, y)
    assert optimizer.ask().params == resumed.ask().params
    assert optimizer.ask().params == resumed.ask().params  # with one pending


def test_sixty_four_at_once_are_distinct_and_good():
    optimizer = study(150, TABLE)
    batch = optimizer.ask_many(64)
    points = np.array([TABLE.encode(s.params) for s in batch])
    assert len(np.unique(points, axis=0)) == 64
    rng = np.random.default_rng(0)
    anywhere = [value(u, rng) for u in TABLE.sample(rng, 1000)]
    assert np.mean([value(u, rng) for u in points]) < np.quantile(anywhere, 0.4)


def test_one_by_one_is_the_same_as_at_once():
    first, second = study(150, TABLE), study(150, TABLE)
    batch = first.ask_many(5)
    pending = [second.ask().params for _ in range(5)]
    assert [s.params for s in batch] == pending
    third = study(150, TABLE)
    assert third.ask(running=pending[:4]).params == pending[4]  # bounds of another number of pending ones are not kept
