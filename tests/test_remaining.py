"""What is left to gain: known answers, calibration on functions from the model's own prior, and no side effects."""

import math

import numpy as np
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.errors import InputError
from jumbo_bo.methods import METHODS
from jumbo_bo.models.gp import covariance
from jumbo_bo.models.population import alone
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space
from jumbo_bo.wording import in_words, sentence

GRID = Space({"x": IntDistribution(0, 4), "kind": CategoricalDistribution(["a", "b"])})
SQUARE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})


def loss(params):
    return (params["x"] - 3) ** 2 + (params["kind"] == "b")


def told(n, space=GRID, value=loss, **options):
    optimizer = Optimizer(space, **options)
    for _ in range(n):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, value(suggestion.params))
    return optimizer


def bowl(params):
    return (params["a"] - 0.3) ** 2 + (params["b"] - 0.6) ** 2


def test_everything_is_left_before_the_first_value_and_nothing_after_the_last():
    optimizer = Optimizer(GRID)
    assert optimizer.remaining() == 1.0
    suggestion = optimizer.ask()
    assert optimizer.remaining(5.0) == 1.0
    optimizer.fail(suggestion)
    assert optimizer.remaining() == 1.0
    optimizer.tell({"x": 0, "kind": "a"}, math.nan)
    assert optimizer.remaining() == 1.0
    assert told(10).remaining() == 0.0


def test_failed_configurations_are_not_left():
    optimizer = Optimizer(GRID)
    for x in range(5):
        for kind in "ab":
            optimizer.tell({"x": x, "kind": kind}, math.nan if kind == "b" else float(x))
    assert optimizer.remaining() == 0.0


def test_what_fails_is_not_left():
    """Values rise with a, up to where all trials fail."""
    optimizer = Optimizer(SQUARE, direction="maximize", seed=1)
    for a in (0.0, 0.2, 0.4, 0.48):
        for b in (0.2, 0.8):
            optimizer.tell({"a": a, "b": b}, a)
    tempting = optimizer.remaining(0.1)
    for a in (0.52, 0.55, 0.6, 0.7, 0.8, 0.9, 1.0):
        for b in (0.1, 0.5, 0.9):
            optimizer.tell({"a": a, "b": b}, math.nan)
    assert tempting > 0.9
    assert optimizer.remaining(0.1) < 0.3
    optimizer.forget()
    assert optimizer.remaining(0.1) == tempting


def test_one_trial_says_little():
    optimizer = Optimizer(SQUARE)
    optimizer.tell({"a": 0.5, "b": 0.5}, 1.0)
    assert 0.9 < optimizer.remaining() <= 1.0
    assert optimizer.remaining(gain=100.0) < optimizer.remaining(gain=1.0) < optimizer.remaining()


def test_larger_gains_are_less_likely_and_the_search_uses_them_up():
    few, many = told(6, SQUARE, bowl), told(25, SQUARE, bowl)
    assert few.remaining(0.001) > 0.5
    assert many.remaining(0.001) < 0.05
    chances = [few.remaining(gain) for gain in (0.0, 0.003, 0.03, 0.3)]
    assert chances == sorted(chances, reverse=True)
    assert chances[-1] < 0.05


def test_only_what_is_listed_can_be_left():
    """The best of the space is not among the candidates."""
    candidates = [{"a": a, "b": 0.0} for a in np.linspace(0, 1, 12)]
    optimizer = told(11, SQUARE, bowl, candidates=candidates)
    assert optimizer.remaining(0.01) < 0.05
    optimizer.tell(optimizer.ask(), 1.0)
    assert optimizer.remaining() == 0.0


def test_a_constant_objective():
    optimizer = told(8, value=lambda _: 2.0)
    assert 0.0 <= optimizer.remaining(0.01) <= 1.0
    assert told(10, value=lambda _: 2.0).remaining() == 0.0


def test_pending_trials_are_not_tried():
    """All but one were told, and that one is being tried: what it will show is as open as before."""
    optimizer = told(9)
    before = optimizer.remaining()
    optimizer.ask()
    assert optimizer.remaining() == before > 0.0


def test_minimize_and_maximize_agree():
    down, up = told(7, SQUARE, bowl), told(7, SQUARE, lambda p: -bowl(p), direction="maximize")
    assert down.remaining(0.01) == up.remaining(0.01)


def test_gains_are_in_the_users_units():
    """A thousand times the objective, a thousand times the gain."""
    one = told(7, SQUARE, lambda p: 10 + bowl(p))
    thousand = told(7, SQUARE, lambda p: 1000 * (10 + bowl(p)))
    assert one.remaining(0.01) == pytest.approx(thousand.remaining(10.0), abs=0.01)
    # Positive losses of several magnitudes are seen on a logarithmic scale: none can be lower than 0.
    magnitudes = told(7, SQUARE, lambda p: math.exp(10 * bowl(p)))
    assert magnitudes.remaining(gain=max(value for _, value in magnitudes.told)) == 0.0


def test_noise_leaves_more_to_gain():
    """The same best value, seen once with noise and once without: noise may have flattered it."""
    rng, u = np.random.default_rng(0), SQUARE.sample(np.random.default_rng(1), 40)
    quiet, noisy = Optimizer(SQUARE), Optimizer(SQUARE)
    for params in map(SQUARE.decode, u):
        quiet.tell(params, bowl(params))
        noisy.tell(params, bowl(params) + 0.2 * rng.normal())
    assert quiet.remaining(0.02) < 0.1 < noisy.remaining(0.02)


def test_suggestions_stay_the_same_to_the_bit():
    left, right = told(6, SQUARE, bowl), told(6, SQUARE, bowl)
    chance = left.remaining(0.01)
    for _ in range(5):
        a, b = left.ask(), right.ask()
        assert a == b
        left.tell(a, bowl(a.params))
        right.tell(b, bowl(b.params))
        left.remaining()
    assert chance == told(6, SQUARE, bowl).remaining(0.01)


def test_old_runs_help_to_know_that_nothing_is_left():
    u = SQUARE.sample(np.random.default_rng(0), 60)
    values = np.array([bowl(SQUARE.decode(row)) for row in u])
    history = History(SQUARE, tuple(Task(f"old {k}", u, -values - 0.1 * k) for k in range(3)), direction="minimize")
    assert Optimizer(SQUARE, history).remaining() == 1.0
    assert told(4, SQUARE, bowl, history=history).remaining(0.05) < told(4, SQUARE, bowl).remaining(0.05)


@pytest.mark.parametrize("gain", [-0.1, math.nan, math.inf])
def test_a_gain_is_a_number_from_zero_on(gain):
    with pytest.raises(InputError, match="gain is"):
        told(1).remaining(gain)


def test_methods_without_a_joint_model_say_so():
    """No model at all, and one of single points only."""
    for method in ("random", "mt-ablr"):
        with pytest.raises(InputError, match=f"{method} has no model that could predict values"):
            told(1, method=method).remaining()


@pytest.mark.parametrize("method", ["gp-ucb", "jumbo", "jumbo-printed", "jumbo-joint", "empirical-gp", "hyperbo"])
def test_methods_with_gps_have_it(method):
    assert method in METHODS
    assert told(10, method=method).remaining() == 0.0
    assert 0.0 <= told(4, method=method).remaining(0.5) <= 1.0


@pytest.mark.parametrize("searched", [True, False])
def test_chances_come_true_for_functions_from_the_prior(searched):
    """Tables of 200 points, drawn from the model's prior with hyperparameters near its medians; 10 to 20 trials, by the
    search itself or at random. In each third of the cases, sorted by their chance, its average must be within three
    binomial standard errors of the share in which something better was left."""
    cases = np.array([_prior_case(seed, searched) for seed in range(45)])
    for part in np.array_split(cases[np.argsort(cases[:, 0])], 3):
        chance, left = part.mean(axis=0)
        assert abs(chance - left) < 3 * math.sqrt(max(chance * (1 - chance), 0.02) / len(part))
    assert cases[:, 0].std() > 0.1, "a constant would tell nothing"


def _prior_case(seed, searched):
    rng, kernel = np.random.default_rng([7, seed]), alone(SQUARE)
    u = rng.random((200, 2))
    median, sd = kernel.priors
    theta = median + 0.3 * sd * rng.standard_normal(len(sd))
    blocks = {"1": np.ones((200, 1)), "x": SQUARE.transform(u)}
    root = np.linalg.cholesky(covariance(kernel, theta, blocks, blocks) + 1e-9 * np.eye(200))
    f = 100 + root @ rng.standard_normal(200)  # values of both signs or near 0 would be warped
    y = f + math.exp(theta[-1] / 2) * rng.standard_normal(200)
    candidates = [SQUARE.decode(row) for row in u]
    row_of = {tuple(params.values()): i for i, params in enumerate(candidates)}
    optimizer, tried = Optimizer(SQUARE, direction="maximize", candidates=candidates, seed=seed), []
    order = rng.permutation(200)
    for k in range(rng.integers(10, 21)):
        i = row_of[tuple(optimizer.ask().params.values())] if searched else order[k]
        optimizer.tell(candidates[i], y[i])
        tried.append(i)
    gain = float(rng.choice([0.0, 0.1, 0.3]))
    return optimizer.remaining(gain), np.delete(f, tried).max() - f[tried].max() > gain


def test_words():
    assert sentence(0.01, 0.123) == "Chance that any configuration beats the best by more than 0.01: 12%"
    assert sentence(0.0, 0.5) == "Chance that any configuration beats the best: 50%"
    assert (in_words(0.0), in_words(0.004), in_words(0.006), in_words(1.0)) == (
        "less than 1%",
        "less than 1%",
        "1%",
        "more than 99%",
    )
