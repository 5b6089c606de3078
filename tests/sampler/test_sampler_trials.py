"""Trials of every kind in a study of the sampler: failed, pruned, enqueued, conditional, fixed in part."""

import logging
import math

import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial
from sampled import GRID, QUICK, SPACE, f, objective, on_the_grid

from jumbo_bo import JumboSampler, studies


@pytest.fixture
def messages():
    """What the sampler says through Optuna's logger."""
    said = []
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    logger = logging.getLogger("optuna.jumbo_bo")
    logger.addHandler(handler)
    yield said
    logger.removeHandler(handler)


def test_pruned_and_failed_trials_are_used():
    sampler = JumboSampler(search_space=SPACE, method="gp-ucb", seed=0)
    study = optuna.create_study(sampler=sampler)

    def ends_differently(trial):
        y = objective(trial)
        if trial.number == 1:
            raise ZeroDivisionError
        if trial.number == 2:
            trial.report(y + 1, 0)
            trial.report(y + 2, 1)
            raise optuna.TrialPruned
        return y

    study.optimize(ends_differently, n_trials=4, catch=ZeroDivisionError)
    study.ask(SPACE)
    params = [t.params for t in study.trials]
    told = sampler._optimizer.told
    assert [p for p, _ in told] == params[:4]
    assert [y for _, y in told] == pytest.approx([f(params[0]), math.nan, f(params[2]) + 2, f(params[3])], nan_ok=True)


def test_running_and_enqueued_trials_are_pending():
    study = optuna.create_study(sampler=JumboSampler(search_space=GRID, method="random", seed=0))
    study.enqueue_trial({"a": 0, "b": 0, "c": "q"})
    asked = [study.ask() for _ in range(11)]  # the enqueued one is the first
    for trial in asked[1:]:
        on_the_grid(trial)
    found = {tuple(trial.params.values()) for trial in asked[1:]}
    assert len(found) == 10
    assert (0, 0, "q") not in found


def test_trials_outside_the_space_are_counted_once(messages):
    sampler = JumboSampler(search_space=SPACE, method="gp-ucb", seed=0)
    study = optuna.create_study(study_name="mixed", sampler=sampler)
    wide = SPACE | {"x": FloatDistribution(-50, 50)}
    study.add_trial(create_trial(params={"x": 30.0, "n": 2}, distributions=wide, value=1.0))
    study.add_trial(create_trial(params={"n": 2}, distributions={"n": SPACE["n"]}, value=1.0))
    study.add_trial(create_trial(params={"x": 3.0, "n": 2}, distributions=SPACE, value=1.0))
    study.add_trial(create_trial(state=TrialState.FAIL))  # ended before it had a parameter: nothing to use
    study.optimize(objective, n_trials=2)
    assert len(sampler._optimizer.told) == 2  # the third, and the first of the two
    assert len(messages) == 1
    assert "2 finished trials of study 'mixed' are outside the search space" in messages[0]
    assert "trial 0: 'x' is 30.0, expected a number in [-5, 5]" in messages[0]


def test_enqueued_trials_out_of_range_do_not_disturb(messages):
    study = optuna.create_study(sampler=JumboSampler(search_space=SPACE, method="gp-ucb", seed=0))
    study.enqueue_trial({"x": 99.0})
    with pytest.warns(UserWarning, match="out of range"):
        study.optimize(objective, n_trials=1)
    study.optimize(objective, n_trials=2)
    assert study.trials[0].params["x"] == 99.0
    assert ["1 finished trials" in m for m in messages] == [True]


def test_conditional_parameters_are_drawn_at_random_with_one_message(messages):
    def conditional(trial):
        y = objective(trial)
        return y + (trial.suggest_float("p", 0, 1) if trial.number % 2 else trial.suggest_int("q", 0, 9))

    study = optuna.create_study(sampler=JumboSampler(search_space=SPACE, method="gp-ucb", seed=0))
    study.optimize(conditional, n_trials=6)
    assert all(t.state == TrialState.COMPLETE for t in study.trials)
    assert len({t.params.get("p", t.params.get("q")) for t in study.trials}) > 3
    assert len(messages) == 1
    assert "'q' is not in the search space, so it is drawn at random; add it to search_space=" in messages[0]


def test_conditional_parameters_in_the_space_keep_their_suggested_value(messages):
    space = SPACE | {"p": FloatDistribution(0, 1)}
    sampler = JumboSampler(search_space=space, method="gp-ucb", seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda t: objective(t) + (t.suggest_float("p", 0, 1) if t.number % 2 else 0), n_trials=4)
    study.ask(space)
    assert len(sampler._optimizer.told) == 4
    assert not messages


def test_a_narrower_range_in_the_objective_is_said_once(messages):
    study = optuna.create_study(sampler=JumboSampler(search_space=SPACE, method="random", seed=0))
    study.optimize(lambda t: t.suggest_float("x", 4.9, 5) + t.suggest_int("n", 1, 6), n_trials=3)
    assert all(4.9 <= t.params["x"] <= 5 for t in study.trials)
    assert ["'x' is requested with a range that does not contain the suggested value" in m for m in messages] == [True]


def test_without_a_space_the_message_waits_for_the_second_trial(messages):
    study = optuna.create_study(sampler=JumboSampler(seed=0))
    study.optimize(objective, n_trials=2)
    assert not messages
    study.optimize(lambda t: objective(t) + t.suggest_float("late", 0, 1), n_trials=2)
    kinds = ("'late' is in no finished trial yet", "'late' is not in every finished trial with the same range")
    assert [kind in m for kind, m in zip(kinds, messages, strict=True)] == [True, True]
    study.optimize(lambda t: objective(t) + t.suggest_float("later", 0, 1), n_trials=2)
    assert len(messages) == 2


def test_an_exhausted_space_goes_on_at_random(messages):
    study = optuna.create_study(sampler=JumboSampler(search_space={"a": IntDistribution(0, 3)}, seed=0))
    study.optimize(lambda t: t.suggest_int("a", 0, 3), n_trials=8)
    assert sorted(t.params["a"] for t in study.trials[:4]) == [0, 1, 2, 3]
    assert len(study.trials) == 8
    assert len(messages) == 1
    assert "all 4 configurations have been tried or are pending" in messages[0]
    assert "From trial 4 on, parameters are drawn at random" in messages[0]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_partial_fixed_sampler_searches_the_rest(old):
    """The best x is 1 for n = 2; held at n = 5, the search still moves x and never repeats itself."""
    sampler = JumboSampler(source_studies=old, method=QUICK, seed=0, n_trials=6)
    study = optuna.create_study(sampler=optuna.samplers.PartialFixedSampler({"n": 5}, sampler))
    study.optimize(objective, n_trials=6)
    assert {t.params["n"] for t in study.trials} == {5}
    assert len({t.params["x"] for t in study.trials}) == 6
    assert min(abs(t.params["x"] - 1) for t in study.trials) < 0.5
    kept = study.trials[0].user_attrs[studies.NUMBERS]["params"]
    assert kept == study.trials[0].params  # the reason is about the point that was tried


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_held_finite_space_is_tried_once_each(messages):
    sampler = JumboSampler(search_space=GRID, method="gp-ucb", seed=0)
    study = optuna.create_study(sampler=optuna.samplers.PartialFixedSampler({"a": 1}, sampler))
    study.optimize(on_the_grid, n_trials=7)
    assert len({(t.params["b"], t.params["c"]) for t in study.trials[:6]}) == 6
    assert ["all 6 configurations" in m for m in messages] == [True]


def test_an_enqueued_value_is_kept_and_the_rest_fits_it(old):
    study = optuna.create_study(sampler=JumboSampler(source_studies=old, method=QUICK, seed=0))
    study.enqueue_trial({"n": 6})
    study.optimize(objective, n_trials=1)
    (trial,) = study.trials
    assert trial.params["n"] == 6
    assert trial.user_attrs[studies.NUMBERS]["params"] == trial.params


def test_pruners_see_all_their_trials():
    pruner = optuna.pruners.HyperbandPruner(1, 4, 2)
    study = optuna.create_study(sampler=JumboSampler(search_space=SPACE, seed=0), pruner=pruner)

    def reports(trial):
        y = objective(trial)
        for step in range(4):
            trial.report(y + 4 - step, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return y

    study.optimize(reports, n_trials=8)
    assert len({t.params["x"] for t in study.trials}) == 8
