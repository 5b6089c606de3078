"""A study of Optuna as the optimizer sees it."""

import json
import math
from datetime import datetime, timedelta

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

from jumbo_bo import studies
from jumbo_bo.data.history import History, Task
from jumbo_bo.held import holding
from jumbo_bo.learning.training import Pretraining
from jumbo_bo.methods import JumboJoint
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

SPACE = Space({"x": FloatDistribution(0, 1), "n": IntDistribution(1, 5)})
GRID = Space({"a": IntDistribution(0, 2), "c": CategoricalDistribution(["p", "q"])})
NOON = datetime(2026, 1, 1, 12)


def finished(number, x, value=1.0, minute=None, **options):
    options = {"state": TrialState.COMPLETE, "value": value, "params": {"x": x, "n": 2}} | options
    trial = create_trial(distributions={n: SPACE.distributions[n] for n in options["params"]}, **options)
    trial.number = number
    trial.datetime_complete = NOON + timedelta(minutes=number if minute is None else minute)
    return trial


def running(number, params=None, started=None, **options):
    params = params or {}
    trial = create_trial(
        state=TrialState.RUNNING, params=params, distributions={n: SPACE.distributions[n] for n in params}, **options
    )
    trial.number, trial.datetime_start = number, started or datetime.now()
    return trial


def optimizer(space=SPACE, **options):
    return Optimizer(space, **{"method": "gp-ucb", "n_trials": 20, "seed": 3} | options)


def trials_of(n, rng):
    return [finished(i, float(rng.random()), float(rng.random())) for i in range(n)]


def test_following_step_by_step_is_following_at_once(rng):
    trials = trials_of(14, rng)
    steps = optimizer()
    for n in range(15):
        steps, suggestion = studies.suggest(steps, trials[:n], n)
    at_once, other = studies.suggest(optimizer(), trials, 14)
    assert steps.told == at_once.told
    assert suggestion.params == other.params
    assert suggestion.predicted == other.predicted


def test_following_is_incremental(rng):
    trials = trials_of(5, rng)
    before = studies.follow(optimizer(), trials[:3])
    assert studies.follow(before, trials) is before
    assert len(before.told) == 5


def test_a_trial_that_finished_late_is_told_late():
    trials = [finished(0, 0.1, minute=9), finished(1, 0.2, minute=1), finished(2, 0.3, minute=5)]
    told = studies.follow(optimizer(), trials).told
    assert [params["x"] for params, _ in told] == [0.2, 0.3, 0.1]


def test_a_trial_that_turns_up_in_between_starts_over(rng):
    trials = trials_of(4, rng)
    seen = studies.follow(optimizer(), [trials[0], trials[2], trials[3]])
    again = studies.follow(seen, trials)
    assert again.told == studies.follow(optimizer(), trials).told
    assert again is not seen


def test_a_deleted_trial_starts_over_without_learning_again(rng):
    u = rng.random((20, 2))
    history = History(SPACE, (Task("old", u, -u[:, 0]),))
    method = JumboJoint(preset=Pretraining(members=1, max_epochs=2, n_u=8))
    trials = trials_of(3, rng)
    before = studies.follow(optimizer(history=history, method=method), trials)
    net = before.net
    after = studies.follow(before, trials[1:])
    assert len(after.told) == 2
    assert after.net is net


@pytest.mark.parametrize("changed", [finished(1, 0.3, 9.0), finished(1, 0.35, 2.0)], ids=["value", "parameter"])
def test_a_trial_that_changed_starts_over(changed):
    first, last = finished(0, 0.1, 1.0), finished(2, 0.5, 3.0)
    before = studies.follow(optimizer(), [first, finished(1, 0.3, 2.0)])
    after = studies.follow(before, [first, changed, last])
    assert after is not before
    assert after.told == studies.follow(optimizer(), [first, changed, last]).told
    assert studies.follow(after, [first, changed, last, finished(3, 0.7, 4.0)]) is after  # only new ones: goes on


def test_failures_are_told_as_such_and_do_not_start_over():
    failed = finished(1, 0.3, value=None, state=TrialState.FAIL)
    infinite = finished(2, 0.4, value=math.inf)
    before = studies.follow(optimizer(), [finished(0, 0.2), failed, infinite])
    assert [math.isnan(y) for _, y in before.told] == [False, True, True]
    assert studies.follow(before, [finished(0, 0.2), failed, infinite, finished(3, 0.5)]) is before


def test_value_of_each_kind_of_trial():
    pruned = {"state": TrialState.PRUNED, "value": None}
    assert studies.value(finished(0, 0.1, 4.0)) == 4.0
    assert studies.value(finished(0, 0.1, intermediate_values={0: 9.0, 7: 3.0, 2: 5.0}, **pruned)) == 3.0
    assert math.isnan(studies.value(finished(0, 0.1, **pruned)))
    assert math.isnan(studies.value(finished(0, 0.1, value=None, state=TrialState.FAIL)))


def test_configuration_is_what_was_asked_for_then_enqueued_then_suggested():
    kept = {studies.NUMBERS: {"params": {"x": 0.1, "n": 1}}}
    assert studies.configuration(running(0, user_attrs=kept), SPACE) == {"x": 0.1, "n": 1}
    enqueued = {"fixed_params": {"n": 2}}
    assert studies.configuration(running(0, user_attrs=kept, system_attrs=enqueued), SPACE) == {"x": 0.1, "n": 2}
    asked = running(0, {"n": 3}, user_attrs=kept, system_attrs=enqueued)
    assert studies.configuration(asked, SPACE) == {"x": 0.1, "n": 3}


@pytest.mark.parametrize("params", [{}, {"x": 0.5}])
def test_a_trial_without_all_parameters_has_no_configuration(params):
    assert studies.configuration(running(0, params), SPACE) is None


def test_a_value_out_of_range_or_another_type_is_no_configuration():
    for name, value in (("x", 1.5), ("n", 9), ("x", "far")):
        kept = {studies.NUMBERS: {"params": {"x": 0.5, "n": 2} | {name: value}}}
        assert studies.configuration(running(0, user_attrs=kept), SPACE) is None


def test_unused_trials_are_named_with_their_problem():
    far = finished(3, 0.5, system_attrs={})
    far.params = {"x": 7.0, "n": 2}
    short = finished(4, 0.5, params={"x": 0.5})
    nothing = finished(5, 0.5, value=None, state=TrialState.FAIL, params={})
    other = finished(6, 0.1)
    found = studies.unused([far, short, nothing, other, running(7, {"x": 0.5})], SPACE)
    assert [number for number, _ in found] == [3, 4]
    assert "'x' is 7.0, expected a number in [0, 1]" in found[0][1]
    assert "missing ['n']" in found[1][1]


def test_running_and_waiting_trials_are_pending():
    pending = [{"a": a, "c": c} for a in range(3) for c in "pq"][:-1]
    trials = []
    for i, params in enumerate(pending):
        trial = create_trial(state=TrialState.WAITING, system_attrs={"fixed_params": params})
        trial.number = i
        trials.append(trial)
    _, suggestion = studies.suggest(optimizer(GRID), trials, 5)
    assert suggestion.params == {"a": 2, "c": "q"}


def test_what_an_earlier_trial_is_about_to_choose_is_left_to_it(rng):
    """Trial 3 has just started in one process, trial 4 in another. Each computes its own suggestion."""
    trials = trials_of(3, rng)
    _, third = studies.suggest(optimizer(), [*trials, running(3), running(4)], 3)
    _, alone = studies.suggest(optimizer(), trials, 3)
    _, fourth = studies.suggest(optimizer(), [*trials, running(3), running(4)], 4)
    assert third.params == alone.params
    assert fourth.params != third.params
    decided = running(3, user_attrs={studies.NUMBERS: {"params": third.params}})
    _, later = studies.suggest(optimizer(), [*trials, decided, running(4)], 4)
    assert later.params == fourth.params


def test_a_trial_that_never_decided_is_not_waited_for(rng):
    trials = trials_of(3, rng)
    lost = running(3, started=datetime.now() - timedelta(hours=1))
    _, suggestion = studies.suggest(optimizer(), [*trials, lost], 4)
    assert suggestion.params == studies.suggest(optimizer(), trials, 3)[1].params


def test_an_enqueued_trial_is_not_also_taken_for_a_deciding_one(rng):
    trials = trials_of(3, rng)
    params = {"x": 0.123, "n": 4}
    enqueued = running(3, system_attrs={"fixed_params": params})
    asked = running(3, params)
    suggestions = [studies.suggest(optimizer(), [*trials, trial], 4)[1].params for trial in (enqueued, asked)]
    assert suggestions[0] == suggestions[1]


def test_a_configuration_of_another_trial_is_given_up():
    params = {"x": 0.25, "n": 2}
    kept = {studies.NUMBERS: {"params": params}}

    def may_keep(*trials):
        return studies.may_keep(params, lambda: trials, 1)

    assert may_keep(running(1, user_attrs=kept))  # itself
    assert may_keep(finished(0, 0.5), running(2), running(3, {"n": 2}))
    assert not may_keep(finished(0, 0.25))
    assert not may_keep(running(0, user_attrs=kept))  # an earlier one, however far it is
    assert not may_keep(running(2, params))  # decided
    assert not may_keep(running(2, system_attrs={"fixed_params": params}))


def test_a_later_trial_is_given_time_to_give_way(monkeypatch):
    params = {"x": 0.25, "n": 2}
    undecided = running(2, user_attrs={studies.NUMBERS: {"params": params}})
    for ending, kept in (
        (running(2, user_attrs={studies.NUMBERS: {"params": {"x": 0.5, "n": 2}}}), True),
        (running(2, params), False),
        (undecided, False),  # for ever: its process is gone
    ):
        reads = iter([[undecided], [undecided], *([[ending]] * studies.WAITS)])
        waits = []
        monkeypatch.setattr(studies.time, "sleep", waits.append)
        assert studies.may_keep(params, lambda reads=reads: next(reads), 1) is kept
        assert len(waits) == (studies.WAITS if ending is undecided else 2)


def test_held_parameters_stay_and_the_others_are_searched(rng):
    trials = trials_of(6, rng)
    base = optimizer(candidates=None)
    held = holding(base, {"n": 4}, 6)
    _, suggestion = studies.suggest(held, trials, 6)
    assert suggestion.params["n"] == 4
    assert studies.suggest(holding(base, {"n": 4}, 6), trials, 6)[1].params == suggestion.params
    exact = 0.1 + 0.2  # not what the space would round it to
    assert studies.suggest(holding(base, {"x": exact}, 6), trials, 6)[1].params["x"] == exact


def test_holding_a_finite_space_offers_each_rest_once():
    held = holding(optimizer(GRID), {"c": "q"}, 0)
    assert sorted(c["a"] for c in held.candidates) == [0, 1, 2]
    assert {c["c"] for c in held.candidates} == {"q"}


def test_attributes_survive_a_storage(tmp_path, rng):
    u = rng.random((20, 2))
    history = History(SPACE, (Task("old", u, -u[:, 0]),))
    method = JumboJoint(preset=Pretraining(members=1, max_epochs=2, n_u=8))
    study = optuna.create_study(storage=f"sqlite:///{tmp_path}/s.db")
    for o in (optimizer(history=history, method=method), optimizer(method="random")):  # the second has NaN inside
        trial = study.ask()
        suggestion = o.ask()
        for key, value in studies.attributes(suggestion).items():
            trial.set_user_attr(key, value)
        stored = study.get_trials()[-1]
        assert stored.user_attrs[studies.WHY] == suggestion.why
        assert studies.configuration(stored, SPACE) == suggestion.params
        kept = studies.explanation(stored)
        np.testing.assert_equal(kept.to_json(), suggestion.explanation.to_json())
        assert np.isnan(kept.old) == np.isnan(suggestion.explanation.old)
        json.dumps(stored.user_attrs, allow_nan=False)


def test_a_trial_of_another_sampler_has_no_explanation():
    trial = finished(0, 0.5)
    assert isinstance(trial, FrozenTrial)
    assert studies.explanation(trial) is None
