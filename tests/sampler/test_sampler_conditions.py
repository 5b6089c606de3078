"""Objectives that ask for a parameter only under a condition."""

import logging

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import PartialFixedSampler

from jumbo_bo.sampler import JumboSampler
from jumbo_bo.space.space import Space

SPACE = Space(
    {
        "booster": CategoricalDistribution(("tree", "linear")),
        "depth": IntDistribution(1, 9),
        "layers": IntDistribution(1, 3),
        "units 1": IntDistribution(1, 9),
        "units 2": IntDistribution(1, 9),
        "alpha": FloatDistribution(0, 1),
    },
    {
        "depth": "booster == 'tree'",
        "layers": "booster == 'tree'",
        "alpha": "booster == 'linear'",
        "units 1": "layers > 1",
        "units 2": "layers > 2",
    },
)


def objective(trial):
    if trial.suggest_categorical("booster", ["tree", "linear"]) == "linear":
        return 5 + trial.suggest_float("alpha", 0, 1)
    value = abs(trial.suggest_int("depth", 1, 9) - 4)
    for i in range(1, trial.suggest_int("layers", 1, 3)):
        value += 0.1 * trial.suggest_int(f"units {i}", 1, 9)
    return value


@pytest.fixture
def messages():
    found = []

    class Keep(logging.Handler):
        def emit(self, record):
            found.append(record.getMessage())

    handler, logger = Keep(), logging.getLogger("optuna.jumbo_bo.sampler")
    logger.addHandler(handler)
    yield found
    logger.removeHandler(handler)


def test_with_conditions_nothing_is_drawn_at_random(messages):
    study = optuna.create_study(sampler=JumboSampler(search_space=SPACE, method="gp-ucb", seed=0))
    study.optimize(objective, n_trials=10)
    assert not messages
    for trial in study.trials:
        assert trial.params == trial.user_attrs["jumbo"]["params"]
        assert SPACE.active(trial.params) == tuple(name for name in SPACE.names if name in trial.params)


def test_conditions_are_learned_from_the_trials(messages):
    study = optuna.create_study(sampler=JumboSampler(method="gp-ucb", seed=0))
    for kind in ("tree", "linear"):
        for layers in (1, 2, 3):
            study.enqueue_trial({"booster": kind, "layers": layers})
    study.optimize(objective, n_trials=12)
    assert study.sampler._found(study).conditions == {
        "depth": "booster == 'tree'",
        "layers": "booster == 'tree'",
        "alpha": "booster == 'linear'",
        "units 1": "layers > 1",
        "units 2": "layers > 2",
    }
    assert sum("is in no finished trial yet" in m for m in messages) == len(messages) == 1
    for trial in study.trials[6:]:
        assert trial.params.items() <= trial.user_attrs["jumbo"]["params"].items()


def test_conditions_are_learned_from_old_studies(messages):
    old = optuna.create_study(study_name="old", sampler=optuna.samplers.RandomSampler(seed=0))
    old.optimize(objective, n_trials=60)
    sampler = JumboSampler(source_studies=old, method="rgpe", seed=0)
    assert sampler._history.n_rows == 60
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=6)
    assert not messages
    assert study.best_value <= 1
    for trial in study.trials:
        assert trial.params == trial.user_attrs["jumbo"]["params"]


def test_a_parameter_that_should_not_exist_is_reported_once(messages):
    wrong = Space(SPACE.distributions, conditions={**SPACE.conditions, "depth": "booster == 'tree' and layers == 1"})
    study = optuna.create_study(sampler=JumboSampler(search_space=wrong, method="random", seed=0))
    study.optimize(objective, n_trials=12)
    assert len(messages) == 1
    assert "'depth' is asked for where its condition (booster == 'tree' and layers == 1) does not hold" in messages[0]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_fixed_values_of_what_may_not_exist():
    sampler = PartialFixedSampler({"depth": 9}, JumboSampler(search_space=SPACE, method="random", seed=0))
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial({"booster": "linear", "alpha": 0.25})
    study.enqueue_trial({"booster": "tree"})
    study.optimize(objective, n_trials=12)
    assert study.trials[0].params == {"booster": "linear", "alpha": 0.25}
    assert study.trials[1].params["booster"] == "tree"
    assert {t.params.get("depth") for t in study.trials} == {None, 9}
    for trial in study.trials:
        assert SPACE.active(trial.params) == tuple(name for name in SPACE.names if name in trial.params)
