"""An objective that was broken: its failures are forgotten and their parameters tried again."""

import math

import optuna
import pytest
from optuna.storages import InMemoryStorage, RetryHeartbeatStaleTrialCallback
from optuna.trial import TrialState, create_trial
from sampled import SPACE, f, objective

from jumbo_bo import JumboSampler, forget_failed, studies
from jumbo_bo.data.corrections import corrections_in


@pytest.fixture(params=["memory", "sqlite"])
def storage(request, tmp_path):
    return InMemoryStorage() if request.param == "memory" else f"sqlite:///{tmp_path}/study.db"


def sampler():
    return JumboSampler(search_space=SPACE, method="gp-ucb", seed=0, n_trials=20)


def broken(trial):
    objective(trial)
    raise ImportError


def study_with_failures(storage, n=4):
    study = optuna.create_study(storage=storage, study_name="mended", sampler=sampler())
    study.optimize(broken, n_trials=n, catch=ImportError)
    return study


def test_the_mended_objective_gets_the_same_parameters_again(storage):
    study = study_with_failures(storage)
    before = [t.params for t in study.trials]
    assert forget_failed(study) == [0, 1, 2, 3]
    assert [t.state for t in study.trials[4:]] == [TrialState.WAITING] * 4
    assert forget_failed(study) == []
    study.optimize(objective, n_trials=5)
    assert [t.params for t in study.trials[4:8]] == before
    assert [t.value for t in study.trials[4:8]] == [f(params) for params in before]
    assert len(study.trials) == 9


def test_the_failures_teach_nothing(storage):
    """The next suggestion is that of a study which has only the trials after them."""
    study = study_with_failures(storage)
    forget_failed(study)
    study.optimize(objective, n_trials=4)
    spared = optuna.create_study(sampler=sampler())
    for trial in study.trials[4:]:
        spared.add_trial(trial)
    assert study.ask(SPACE).params == spared.ask(SPACE).params
    assert not any(math.isnan(y) for _, y in study.sampler._optimizer.told)


def test_another_process_sees_what_is_forgotten(tmp_path):
    """A sampler that has already learned from the failures starts over."""
    url = f"sqlite:///{tmp_path}/study.db"
    study = study_with_failures(url)
    study.ask(SPACE)
    assert len(study.sampler._optimizer.told) == 4
    other = optuna.load_study(study_name="mended", storage=url)
    assert forget_failed(other) == [0, 1, 2, 3]
    assert corrections_in(other.user_attrs).forgotten == {0, 1, 2, 3}
    study.sampler.sample_relative(study, study.trials[4], SPACE)
    assert study.sampler._optimizer.told == []


def test_values_that_the_objective_never_asked_for_come_again_too():
    """It broke after the first of its two parameters."""
    study = optuna.create_study(sampler=sampler())
    with pytest.raises(ImportError):
        study.optimize(half, n_trials=1)
    suggested = study.trials[0].user_attrs[studies.NUMBERS]["params"]
    forget_failed(study)
    study.optimize(objective, n_trials=1)
    assert study.trials[1].params == suggested


def half(trial):
    trial.suggest_float("x", -5, 5)
    raise ImportError


def test_only_failed_trials_with_parameters():
    study = optuna.create_study()
    point = {"params": {"x": 1.0, "n": 2}, "distributions": SPACE}
    study.add_trial(create_trial(value=1.0, **point))
    study.add_trial(create_trial(state=TrialState.PRUNED, **point))
    study.add_trial(create_trial(state=TrialState.FAIL))
    study.add_trial(create_trial(state=TrialState.RUNNING, **point))
    assert forget_failed(study) == []
    assert len(study.trials) == 4


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_what_optuna_tries_again_is_not_enqueued_twice():
    study = optuna.create_study()
    point = {"params": {"x": 1.0, "n": 2}, "distributions": SPACE}
    study.add_trial(create_trial(state=TrialState.FAIL, **point))
    RetryHeartbeatStaleTrialCallback()(study, study.trials[0])
    assert forget_failed(study) == [0]
    assert [t.state for t in study.trials] == [TrialState.FAIL, TrialState.WAITING]
