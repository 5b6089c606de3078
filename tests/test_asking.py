"""What a user believes and what is held at a value, in suggestions."""

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import PartialFixedSampler

from bowl import SPACE, told, value
from jumbo_bo import JumboSampler, about
from jumbo_bo.errors import InputError
from jumbo_bo.methods.base import FADE
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.search.argmax import SpaceExhausted
from jumbo_bo.space.beliefs import Beliefs
from jumbo_bo.space.space import Space

METHODS = ("gp-ucb", "jumbo-mixture")
GRID = Space({"a": IntDistribution(0, 2), "c": CategoricalDistribution(["p", "q"])})


def believing(beliefs, method="gp-ucb", n=0, space=SPACE):
    optimizer = Optimizer(space, method=method, n_trials=20, beliefs=beliefs)
    for _ in range(n):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, value(suggestion.params))
    return optimizer


@pytest.mark.parametrize("method", METHODS)
def test_the_first_suggestion_is_where_the_best_is_believed(method):
    for x in (0.1, 0.5, 0.9):
        optimizer = believing({"x": about(x, within=0.02), "n": about(4, within=0.4)}, method)
        params = optimizer.ask().params
        assert params == {"x": x, "n": 4}


@pytest.mark.parametrize("method", METHODS)
def test_a_score_is_weighed_by_what_is_believed(method):
    """Where nothing else speaks for either side, suggestions go to the believed one."""
    flat = Space({"x": FloatDistribution(0, 1)})
    found = []
    for x in (0.2, 0.8):
        optimizer = Optimizer(flat, method=method, beliefs={"x": about(x, within=0.1)}, n_trials=20)
        for at in (0.5, 0.0, 1.0, x):
            optimizer.tell({"x": at}, (at - 0.5) ** 2 * 0 - (at == x))
        found.append(optimizer.ask())
    assert found[0].params["x"] < 0.5 < found[1].params["x"]
    assert "Your belief about x counts." in found[0].why


def test_the_power_fades_and_a_belief_that_the_best_trial_contradicts_is_dropped():
    optimizer = believing({"x": about(0.9, within=0.05), "n": about(2, within=1)}, n=0)
    np.testing.assert_allclose(optimizer.view().credence, [FADE, FADE])
    optimizer.tell({"x": 0.9, "n": 1}, 1.0)
    np.testing.assert_allclose(
        optimizer.view().credence,
        FADE / 2 * np.exp(optimizer.beliefs.log_pi(SPACE.encode({"x": 0.9, "n": 1})[None])[0]),
    )
    optimizer.tell({"x": 0.1, "n": 2}, 0.5)
    power = optimizer.view().credence
    assert power[0] < 0.03 * FADE / 3
    assert power[1] == pytest.approx(FADE / 3)
    optimizer.tell({"x": 0.9, "n": 2}, 0.1)  # the belief was right after all
    np.testing.assert_allclose(optimizer.view().credence, [FADE / 4, FADE / 4])


@pytest.mark.parametrize("method", METHODS)
def test_a_wrong_belief_is_overcome(method):
    optimizer = believing({"x": about(0.95, within=0.02), "n": about(5, within=0.5)}, method, n=16)
    best = optimizer.best
    assert best.value < 0.02
    assert abs(best.params["x"] - 0.3) < 0.15
    assert "belief" not in optimizer.ask().why


def test_beliefs_are_followed_by_copies_and_saved_nowhere():
    optimizer = believing({"x": 0.7}, n=4)
    fresh = optimizer.restarted()
    for params, y in optimizer.told:
        fresh.tell(params, y)
    assert fresh.ask().params == optimizer.ask().params
    assert told(4).ask().params != optimizer.suggestions[-1].params


def test_methods_that_cannot_use_beliefs_say_so():
    with pytest.raises(InputError, match="random cannot use beliefs; jumbo-mixture and gp-ucb can"):
        Optimizer(SPACE, method="random", beliefs={"x": 0.5})
    with pytest.raises(InputError, match="beliefs name 'y'"):
        JumboSampler(search_space=SPACE, beliefs={"y": 0.5})
    assert Optimizer(SPACE, method="random", beliefs={}).beliefs is None


def test_the_sampler_has_beliefs():
    study = optuna.create_study(
        sampler=JumboSampler(search_space=SPACE, method="gp-ucb", seed=0, beliefs={"x": about(0.8, within=0.01)})
    )
    assert study.ask(dict(SPACE.distributions)).params["x"] == 0.8


@pytest.mark.parametrize("method", METHODS)
def test_held_parameters_and_the_others_are_searched(method):
    optimizer = Optimizer(SPACE, method=method, n_trials=20)
    for i in range(8):
        suggestion = optimizer.ask(fixed={"n": 4} if i % 2 else None)
        assert suggestion.params["n"] == 4 or i % 2 == 0
        optimizer.tell(suggestion, value(suggestion.params))
    exact = 0.1 + 0.2
    assert optimizer.ask(fixed={"x": exact}).params["x"] == exact
    batch = [optimizer.ask(fixed={"n": 2}).params["x"] for _ in range(3)]
    assert len(set(batch)) == 3  # each knows of the ones before it


def test_a_held_suggestion_changes_no_other():
    plain, other = told(6), told(6)
    held = other.ask(fixed={"n": 5})
    other.fail(held)
    other.forget([held])
    assert [plain.ask().params for _ in range(2)] == [other.ask().params for _ in range(2)]


def test_held_in_a_finite_space_and_among_candidates():
    optimizer = Optimizer(GRID, method="gp-ucb")
    seen = []
    for _ in range(3):
        suggestion = optimizer.ask(fixed={"c": "q"})
        seen.append(suggestion.params)
        optimizer.tell(suggestion, 1.0)
    assert sorted(p["a"] for p in seen) == [0, 1, 2]
    assert {p["c"] for p in seen} == {"q"}
    with pytest.raises(SpaceExhausted):
        optimizer.ask(fixed={"c": "q"})
    listed = Optimizer(SPACE, method="gp-ucb", candidates=[{"x": 0.1 * i, "n": 1 + i % 3} for i in range(10)])
    for _ in range(3):
        params = listed.ask(fixed={"n": 3}).params
        assert params in listed.candidates
        assert params["n"] == 3
    assert listed.restarted(listed.candidates).ask(fixed={"x": 0.5, "n": 3}).params == listed.candidates[5]
    with pytest.raises(InputError, match=r"none of the candidates has \{'n': 5\}"):
        listed.ask(fixed={"n": 5})


def test_what_cannot_be_held():
    optimizer = told(2)
    for fixed, words in (
        ({"m": 4}, "fixed names 'm'.*; the parameters are"),
        ({"n": 9}, r"fixed sets 'n' to 9, expected an integer in \[1, 5\]"),
    ):
        with pytest.raises(InputError, match=words):
            optimizer.ask(fixed=fixed)
    assert len(optimizer.view().pending) == 0


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_beliefs_and_what_optuna_holds():
    """PartialFixedSampler and enqueued trials hold parameters; the belief is about the others too."""
    beliefs = {"x": about(0.8, within=0.01)}
    sampler = JumboSampler(search_space=SPACE, method="gp-ucb", seed=0, beliefs=beliefs)
    study = optuna.create_study(sampler=PartialFixedSampler({"n": 4}, sampler))
    first = study.ask(dict(SPACE.distributions))
    assert first.params["n"] == 4
    assert abs(first.params["x"] - 0.8) < 0.1  # of the configurations that are looked at the closest one
    study.enqueue_trial({"n": 2})
    assert study.ask(dict(SPACE.distributions)).params["n"] in (2, 4)


def test_a_block_of_beliefs_for_every_configuration():
    optimizer = believing({"n": about(2, within=1)})
    u = SPACE.sample(np.random.default_rng(0), 5)
    np.testing.assert_array_equal(
        optimizer.view().domain.featurise(u)["belief"], Beliefs(SPACE, {"n": about(2, within=1)}).log_pi(u)
    )
    assert "belief" not in told(0).view().domain.featurise(u)
