"""JumboSampler in studies with several goals: names, source studies, restarts, mistakes."""

from __future__ import annotations

import optuna
import pytest
from optuna.distributions import FloatDistribution

from jumbo_bo.data.goals import as_one, names_in
from jumbo_bo.data.readers import from_study
from jumbo_bo.errors import InputError
from jumbo_bo.learning.training import Pretraining
from jumbo_bo.methods import JumboMixture
from jumbo_bo.pareto import ParetoOptimizer
from jumbo_bo.sampler import JumboSampler
from jumbo_bo.space.space import Space

pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")  # names of goals

SPACE = {"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)}
QUICK = JumboMixture(preset=Pretraining(members=1, max_epochs=60, n_u=16))
DIRECTIONS = ["minimize", "maximize"]


def objective(trial):
    a, b = (trial.suggest_float(name, 0, 1) for name in "ab")
    return (a - 0.2) ** 2 + b, 5 - (a - 0.8) ** 2 - b


def studied(trials, sampler, names=None, directions=DIRECTIONS, **options):
    study = optuna.create_study(sampler=sampler, directions=directions, **options)
    if names:
        study.set_metric_names(names)
    study.optimize(objective, n_trials=trials)
    return study


@pytest.fixture(scope="module")
def old():
    return studied(40, optuna.samplers.RandomSampler(seed=0), ["cost", "yield"], study_name="old")


def test_it_finds_the_front() -> None:
    study = studied(16, JumboSampler(search_space=SPACE, seed=0))
    at_the_end = [t for t in study.best_trials if t.params["b"] < 0.05]
    assert len(at_the_end) >= 5
    assert min(t.params["a"] for t in at_the_end) < 0.4
    assert max(t.params["a"] for t in at_the_end) > 0.6
    assert "Joins the front with" in study.trials[-1].user_attrs["why"]


@pytest.mark.parametrize("names", [None, ["cost", "yield"], ["other", "names"]])
def test_source_studies_teach_every_goal(old, names) -> None:
    sampler = JumboSampler(search_space=SPACE, source_studies=[old], method=QUICK, seed=0)
    study = studied(3, sampler, names)
    optimizer = sampler._optimizer
    assert isinstance(optimizer, ParetoOptimizer)
    assert optimizer.past is not None
    if names != ["other", "names"]:  # of which the old study knows nothing
        assert all(q.model.past is not None for q in optimizer._others.quantities)
        assert study.trials[0].params["b"] < 0.2
    assert list(optimizer.directions.values()) == DIRECTIONS


def test_another_process_goes_on(old) -> None:
    kwargs = {"search_space": SPACE, "source_studies": [old], "method": QUICK, "seed": 3}
    study = studied(5, JumboSampler(**kwargs))
    again = optuna.create_study(sampler=JumboSampler(**kwargs), directions=DIRECTIONS)
    for trial in study.trials[:4]:
        again.add_trial(trial)
    again.optimize(objective, n_trials=1)
    assert again.trials[4].params == study.trials[4].params


def test_failures_and_three_goals() -> None:
    study = optuna.create_study(sampler=JumboSampler(search_space=SPACE, seed=0), directions=["minimize"] * 3)

    def three(trial):
        values = objective(trial)
        return (*values, float("nan") if trial.number == 2 else trial.params["b"])

    study.optimize(three, n_trials=6)
    assert [t.state.name for t in study.trials].count("FAIL") == 1
    assert len(study.sampler._optimizer.told) == 5  # the last one is not told yet


def test_a_single_goal_still_has_one_value(old) -> None:
    trial = old.trials[0]
    one = as_one(trial, names_in(old))
    assert one.value == trial.values[0]
    assert one.user_attrs["measured"] == {"yield": trial.values[1]}
    assert trial.values == [one.value, trial.values[1]]  # it is a copy
    history = from_study(old, Space(SPACE))
    assert list(history.limits) == ["yield"]
    assert history.n_rows == 40


def test_methods_for_a_single_goal_say_so() -> None:
    study = optuna.create_study(sampler=JumboSampler(search_space=SPACE, method="gp-ucb"), directions=DIRECTIONS)
    with pytest.raises(InputError, match="gp-ucb knows a single goal only"):
        study.optimize(objective, n_trials=1)
