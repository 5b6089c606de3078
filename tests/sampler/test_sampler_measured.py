"""Constraints of Optuna studies: `Trial.set_constraint`, those of source studies, and quantities in old runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import create_trial
from sampled import SMALL

from jumbo_bo.constraints import Constraints, in_excess
from jumbo_bo.data.history import History, Task
from jumbo_bo.methods import JumboMixture
from jumbo_bo.sampler import JumboSampler
from jumbo_bo.space.space import Space

QUICK = JumboMixture(preset=SMALL)
SPACE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})


def objective(trial: optuna.Trial, shift: float = 0.0) -> float:
    a, b = trial.suggest_float("a", 0, 1), trial.suggest_float("b", 0, 1)
    trial.set_constraint("late", 10 * (a + b - 1) + shift)
    return (a - 0.7) ** 2 + (b - 0.7) ** 2


def old_study(shift: float = 0.3) -> optuna.Study:
    study = optuna.create_study(study_name="old", sampler=optuna.samplers.RandomSampler(seed=1))
    study.optimize(lambda trial: objective(trial, shift), 40)
    return study


def test_constraints_that_trials_set_are_kept() -> None:
    study = optuna.create_study(sampler=JumboSampler(search_space=SPACE, method=QUICK, seed=0, cache=None))
    study.optimize(objective, 14)
    assert study.best_value < 0.2
    assert study.best_trial.constraints["late"] <= 0
    assert "late" not in study.trials[0].user_attrs["why"]
    assert all("Meets late <= 0 with " in t.user_attrs["why"] for t in study.trials[3:])


def test_constraints_of_old_studies_count_from_the_first_trial() -> None:
    sampler = JumboSampler(source_studies=[old_study()], method=QUICK, seed=0, cache=None)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, 6)
    assert "Meets late <= 0 with " in study.trials[0].user_attrs["why"]
    assert any(t.constraints["late"] <= 0 for t in study.trials[:4])
    assert study.best_value < 0.2


def test_which_constraints_count() -> None:
    old, made = old_study(), []
    constraints = Constraints.of({"q": (None, 20.0)}, SPACE, [old])
    assert constraints.now([]) == {"q": (None, 0.0), "late": (None, 0.0)}
    for found in ({}, {"c": 1.0}):
        params = {"a": 0.5, "b": 0.5}
        made.append(create_trial(value=1.0, params=params, distributions=SPACE.distributions, constraints=found))
    assert constraints.now(made[:1]) == {"q": (None, 0.0)}, "the study itself sets none"
    assert constraints.now(made) == {"q": (None, 0.0), "c": (None, 0.0)}
    assert Constraints.of(None, SPACE, []).now([]) is None


@pytest.mark.parametrize("limit", [(None, 20.0), (10.0, None), (10.0, 20.0)])
def test_old_runs_become_distances_to_the_limit(rng: np.random.Generator, limit: tuple[float | None, float | None]):
    u, q = SPACE.sample(rng, 30), rng.uniform(0, 30, 30)
    history = History(SPACE, (Task("t", u, -q),))
    history = replace(history, limits={"q": history})
    found = -in_excess(history, {"q": limit}).limits["q"].tasks[0].y
    low, high = limit
    inside = (q >= (-np.inf if low is None else low)) & (q <= (np.inf if high is None else high))
    assert np.array_equal(found <= 0, inside)
    ends = [end for end in limit if end is not None]
    assert np.abs(found) == pytest.approx(np.min([np.abs(q - end) for end in ends], axis=0))
