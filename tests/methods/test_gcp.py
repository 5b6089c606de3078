"""The Gaussian copula process against scipy, closed forms and the properties its paper states."""

import dataclasses
import functools
import math

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from scipy.stats import norm

from jumbo_bo.data.history import History, Task
from jumbo_bo.learning.learners.copula import fit_prior
from jumbo_bo.methods import GCP, Surrogate
from jumbo_bo.methods.gcp import (
    PRIOR,
    SIGMA_FLOOR,
    CopulaPrior,
    in_units_of_z,
    normal_scores,
    predicted,
    residual_gp,
    thompson,
)
from jumbo_bo.models import gp as gps
from jumbo_bo.models.kernel import cold_kernel, covariance
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.search.acquisition import ucb
from jumbo_bo.search.argmax import Finite
from jumbo_bo.space.space import Space

SPACE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})
GRID = Space({"a": IntDistribution(0, 9), "b": CategoricalDistribution(["x", "y", "z"])})


def loss(params):
    b = params["b"] if isinstance(params["b"], float) else "xyz".index(params["b"]) / 3
    return (params["a"] / (1 if isinstance(params["a"], float) else 9) - 0.7) ** 2 + 0.3 * b + 0.2


def old_runs(space, n=80):
    u = space.sample(np.random.default_rng(7), n)
    y = np.array([-loss(space.decode(row)) for row in u])
    return History(space, (Task("old", u, y), Task("scaled", u[::2], 1e4 * y[::2] ** 3)))


@functools.cache
def prior_of(space):
    return GCP().learn(old_runs(space), 0)


class Learned(GCP):
    """Learns only once."""

    def learn(self, history, seed):
        return prior_of(history.space)


def told(space, n, history=None, value=loss, recipe=None, **options):
    optimizer = Optimizer(space, history, n_trials=20, method=recipe or Learned(), **options)
    for _ in range(n):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, value(suggestion.params))
    return optimizer


def test_scores_of_a_known_sample():
    """Six values: delta = 1 / (4 * 6^(1/4) * sqrt(pi log 6)) = 0.0673, below 1/12, so nothing is cut."""
    y = np.array([3.0, -1.0, 7.0, 3.0, 1e300, 0.0])
    assert normal_scores(y) == pytest.approx(norm.ppf(np.array([3.0, 0.5, 4.5, 3.0, 5.5, 1.5]) / 6), abs=1e-12)


def test_scores_of_many_values_are_winsorised():
    y = np.random.default_rng(0).permutation(1000.0 * np.arange(1000))
    delta = 1 / (4 * 1000**0.25 * math.sqrt(math.pi * math.log(1000)))
    s = normal_scores(y)
    assert s.max() == pytest.approx(norm.ppf(1 - delta))
    assert s.min() == pytest.approx(norm.ppf(delta))
    inner = np.abs(s) < s.max() - 1e-9
    assert np.mean(~inner) == pytest.approx(2 * delta, abs=2e-3)
    assert s[inner] == pytest.approx(norm.ppf((y[inner] / 1000 + 0.5) / 1000))


@pytest.mark.parametrize("y", [[], [5.0], [2.0, 2.0, 2.0]], ids=["none", "one", "equal"])
def test_values_that_say_nothing_score_zero(y):
    assert normal_scores(np.array(y)) == pytest.approx(np.zeros(len(y)))


@pytest.mark.parametrize("space", [SPACE, GRID], ids=["continuous", "finite"])
@pytest.mark.parametrize("history", [True, False], ids=["old runs", "no old runs"])
@pytest.mark.parametrize("recipe", [Learned(), Learned("prior")], ids=["gcp", "cts"])
def test_no_monotone_map_of_the_objective_changes_a_suggestion(space, history, recipe):
    """The property that gives the method its name. The last map falls, so it is maximised."""
    old = old_runs(space) if history else None
    plain = [s.params for s in told(space, 9, old, recipe=recipe).suggestions]
    for value, direction in [
        (lambda p: math.exp(20 * loss(p)), "minimize"),
        (lambda p: loss(p) ** 3 - 5, "minimize"),
        (lambda p: 1 / loss(p), "maximize"),
    ]:
        other = told(space, 9, old, value, recipe, direction=direction)
        assert [s.params for s in other.suggestions] == plain


def test_old_tasks_also_count_by_rank():
    bent = History(SPACE, tuple(Task(t.name, t.u, np.arctan(t.y / 1e5)) for t in old_runs(SPACE).tasks))
    for a, b in zip(prior_of(SPACE).layers, GCP().learn(bent, 0).layers, strict=True):
        assert np.array_equal(a[0], b[0])


def test_likelihood_training_recovers_mean_and_scale():
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (3000, 2)).astype(np.float32)
    mu, sigma = np.sin(2 * x[:, 0]), 0.2 + 0.3 * (x[:, 1] + 1)
    layers = fit_prior(x, mu + sigma * rng.standard_normal(len(x)), SIGMA_FLOOR, 0)
    blocks = CopulaPrior(layers=layers, space_fingerprint="", tasks=(), warps=()).blocks((x.astype(float) + 1) / 2)
    assert np.sqrt(np.mean((blocks["mu"][:, 0] - mu) ** 2)) < 0.1
    assert np.mean(np.abs(np.log(blocks["sigma"][:, 0] / sigma))) < 0.12


def test_without_rows_to_validate_on_the_prior_stays_standard_normal():
    u = SPACE.sample(np.random.default_rng(0), 6)
    history = History(SPACE, (Task("few", u, u[:, 0]), Task("one", u[:1], np.ones(1))))
    blocks = GCP().learn(history, 0).blocks(u)
    assert blocks["mu"] == pytest.approx(np.zeros((6, 1)), abs=1e-7)
    assert blocks["sigma"] == pytest.approx(np.ones((6, 1)), abs=1e-6)


def test_noise_alone_teaches_no_prior():
    """Nothing does better on the rows held out than mean 0 and scale 1."""
    rng = np.random.default_rng(0)
    history = History(SPACE, (Task("noise", SPACE.sample(rng, 300), rng.standard_normal(300)),))
    blocks = GCP().learn(history, 0).blocks(rng.random((500, 2)))
    assert np.abs(blocks["mu"]).max() < 0.5
    assert blocks["sigma"].min() > 0.7


def test_prediction_is_that_of_a_gp_with_prior_mean_and_scale():
    """mu + sigma GP(r) is a GP with mean mu(x), covariance sigma(x) k(x, x') sigma(x'), noise sigma(x)^2 s."""
    view = told(SPACE, 12, old_runs(SPACE)).view()
    gp = residual_gp(view)
    here, new = view.domain.featurise(view.u), view.domain.featurise(SPACE.sample(np.random.default_rng(2), 20))

    def k(a, b):
        return a["sigma"] * covariance(gp.kernel, gp.theta, a, b) * b["sigma"].T

    noisy = k(here, here) + np.diag(here["sigma"][:, 0] ** 2 * gp.noise)
    weights = np.linalg.solve(noisy, k(here, new))
    mean = new["mu"][:, 0] + (normal_scores(view.z) - here["mu"][:, 0]) @ weights
    var = np.diag(k(new, new)) - np.sum(k(here, new) * weights, axis=0)
    assert predicted(gp, new).mean == pytest.approx(mean, abs=1e-6)
    assert predicted(gp, new).sd == pytest.approx(np.sqrt(var), abs=1e-6)
    assert ucb(functools.partial(predicted, gp), 4.0)(new) == pytest.approx(mean + 2 * np.sqrt(var), abs=1e-6)


def test_without_old_runs_it_is_a_plain_gp_on_the_scores():
    view = told(SPACE, 10).view()
    blocks = view.domain.featurise(view.u)
    plain = gps.fit(cold_kernel(SPACE), blocks, normal_scores(view.z))
    new = view.domain.featurise(SPACE.sample(np.random.default_rng(2), 20))
    assert residual_gp(view).theta == pytest.approx(plain.theta)
    assert ucb(functools.partial(predicted, residual_gp(view)), 9.0)(new) == pytest.approx(
        gps.posterior(plain, new).mean + 3 * gps.posterior(plain, new).sd
    )


def test_thompson_picks_in_proportion():
    """Two configurations, scores N(0, 1) and N(1, 2^2): the second is better with probability Phi(1 / sqrt(5))."""
    view = told(SPACE, 0).view()
    u = np.array([[0.2, 0.2], [0.8, 0.8]])

    def featurise(rows):
        second = (rows[:, :1] > 0.5).astype(float)
        return {"x": rows, "mu": second, "sigma": 1 + second}

    view = dataclasses.replace(view, past=object(), domain=Finite(u, featurise))
    picks = [thompson(dataclasses.replace(view, t=t)).best.index for t in range(2000)]
    assert np.mean(picks) == pytest.approx(norm.cdf(1 / math.sqrt(5)), abs=0.03)


def value_of(view, score):
    return in_units_of_z(view, Surrogate(lambda _: score, lambda _: score)).predict({})


def test_an_observation_is_less_certain_than_the_function():
    """By the noise of the residuals times sigma, as the scores of the trials were divided by it."""
    view = told(SPACE, 8, old_runs(SPACE)).view()
    gp, new = residual_gp(view), view.domain.featurise(SPACE.sample(np.random.default_rng(2), 5))
    extra = predicted(gp, new, gp.noise).sd ** 2 - predicted(gp, new).sd ** 2
    assert extra == pytest.approx(gp.noise * new["sigma"][:, 0] ** 2)
    surrogate = GCP().surrogate(view)
    assert (surrogate.observed(new).sd > surrogate.predict(new).sd).all()


def test_predictions_are_mapped_back_by_rank():
    """Also where the scores of the best are cut off: the value of a score is the quantile of that probability."""
    z = np.random.default_rng(0).permutation(np.linspace(-2, 3, 200) ** 3)
    view = dataclasses.replace(told(SPACE, 0).view(), z=z)
    s = norm.ppf((np.arange(200) + 0.5) / 200)
    there = value_of(view, gps.Normal(s, np.full(200, 0.1)))
    assert there.mean == pytest.approx(np.sort(z))
    assert there.sd.min() > 0
    beyond = value_of(view, gps.Normal(s[-1:] + 1, np.array([1e-3])))
    slope = np.ptp(z) / np.ptp(s)
    assert beyond.mean == pytest.approx(z.max() + slope)
    assert beyond.sd == pytest.approx(1e-3 * slope)


def test_one_value_gives_no_units_to_predict_in():
    assert in_units_of_z(told(SPACE, 1).view(), PRIOR) is None
    assert in_units_of_z(told(SPACE, 3, value=lambda p: math.nan).view(), PRIOR) is None


def test_a_draw_says_what_it_goes_by():
    drawn = told(GRID, 4, old_runs(GRID), recipe=Learned("prior")).suggestions[-1]
    assert "random draw from what the old runs predict. Explo" in drawn.why
    assert drawn.predicted.low <= drawn.predicted.mean <= drawn.predicted.high


def test_the_first_trials_follow_the_old_runs():
    """Far better than chance, by a random draw, and different from seed to seed."""
    first = [told(GRID, 1, old_runs(GRID), seed=s).suggestions[0].params for s in range(8)]
    chance = [loss(GRID.decode(u)) for u in GRID.grid()]
    assert np.mean([loss(p) for p in first]) < np.quantile(chance, 0.25)
    assert len({tuple(p.values()) for p in first}) > 1
