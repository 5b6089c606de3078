"""Known constraints in Optuna studies."""

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.samplers import PartialFixedSampler

from jumbo_bo.data.history import History
from jumbo_bo.errors import InputError
from jumbo_bo.sampler import JumboSampler
from jumbo_bo.space.space import Space

PARTS = {name: FloatDistribution(0, 1) for name in "abc"}
TEXTS = ["a + b + c == 1", "a <= 0.5"]


def objective(trial):
    p = {name: trial.suggest_float(name, 0, 1) for name in "abc"}
    return (p["a"] - 0.9) ** 2 + p["c"]


@pytest.mark.parametrize(
    "arguments",
    [
        {"search_space": PARTS, "constraints": TEXTS},
        {"search_space": Space(PARTS, constraints=TEXTS)},
        {"history": History.empty(Space(PARTS)), "search_space": Space(PARTS, constraints=TEXTS)},
        {"history": History.empty(Space(PARTS, constraints=TEXTS))},
        {"history": History.empty(Space(PARTS)), "constraints": TEXTS},
    ],
)
def test_every_trial_meets_the_constraints(arguments):
    study = optuna.create_study(sampler=JumboSampler(method="gp-ucb", seed=0, **arguments))
    study.optimize(objective, n_trials=6)
    for trial in study.trials:
        assert sum(trial.params.values()) == pytest.approx(1, abs=1e-9)
        assert trial.params["a"] <= 0.5 + 1e-9


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_what_is_fixed_is_completed():
    sampler = JumboSampler(search_space=PARTS, constraints=TEXTS, method="gp-ucb", seed=0)
    study = optuna.create_study(sampler=PartialFixedSampler({"b": 0.75}, sampler))
    study.enqueue_trial({"a": 0.125})
    study.optimize(objective, n_trials=3)
    assert study.trials[0].params["a"] == 0.125
    for trial in study.trials:
        assert trial.params["b"] == 0.75
        assert sum(trial.params.values()) == pytest.approx(1, abs=1e-9)


def test_an_enqueued_trial_that_breaks_a_constraint_is_learned_from():
    study = optuna.create_study(sampler=JumboSampler(search_space=PARTS, constraints=TEXTS, method="gp-ucb", seed=0))
    study.enqueue_trial({"a": 1.0, "b": 1.0, "c": 1.0})
    study.optimize(objective, n_trials=3)
    assert study.trials[0].params == {"a": 1.0, "b": 1.0, "c": 1.0}
    assert len(study.sampler._optimizer.told) == 2
    assert study.sampler._optimizer.told[0][0] == {"a": 1.0, "b": 1.0, "c": 1.0}


def test_what_cannot_work_is_refused_at_once():
    with pytest.raises(InputError, match="pass search_space="):
        JumboSampler(constraints=TEXTS)
    with pytest.raises(InputError, match="given twice"):
        JumboSampler(search_space=Space(PARTS, constraints=TEXTS), constraints=TEXTS)
    with pytest.raises(InputError, match="never met at the same time"):
        JumboSampler(search_space=PARTS, constraints=["a + b <= 0.5", "a + b >= 0.6"])
