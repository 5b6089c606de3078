"""Where the sampler's space and old runs come from, and mistakes found when it is made."""

import optuna
import pytest
from optuna.distributions import FloatDistribution
from sampled import QUICK, SMALL, SPACE, objective

from jumbo_bo import JumboSampler, studies
from jumbo_bo.data.readers import from_study
from jumbo_bo.learning.pretrain import pretrain
from jumbo_bo.space.space import Space


def test_space_of_the_history_is_the_search_space(old):
    history = from_study(old, Space(SPACE))
    study = optuna.create_study(sampler=JumboSampler(history, method=QUICK, seed=0))
    assert study.ask().suggest_float("x", -5, 5) == pytest.approx(1, abs=1.5)
    assert "Old runs" in study.trials[0].user_attrs["why"]


def test_order_of_parameters_does_not_matter(old):
    history = from_study(old, Space(SPACE))
    JumboSampler(history, dict(reversed(SPACE.items())))


def test_history_and_studies_are_used_together(old):
    history = from_study(old[0], Space(SPACE))
    sampler = JumboSampler(history, source_studies=old[1], method=QUICK, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.ask(SPACE)
    assert [t.name for t in sampler._optimizer.history.tasks] == ["old-1", "old-22"]


def test_space_of_source_studies_is_what_their_trials_share():
    studies_ = [optuna.create_study(study_name=name) for name in ("one", "two")]
    for study, high in zip(studies_, (1, 2), strict=True):
        for i in range(3):
            trial = study.ask()
            y = trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, high) + trial.suggest_int("k", 1, 1)
            study.tell(trial, y + (trial.suggest_float("z", 0, 1) if i else 0))
    sampler = JumboSampler(source_studies=studies_, method="gp-ucb")
    assert sampler.infer_relative_search_space(studies_[0], None) == {"x": FloatDistribution(0, 1)}


def test_without_any_space_it_is_learned_from_the_study():
    study = optuna.create_study(sampler=JumboSampler(seed=0))
    study.optimize(lambda t: objective(t) + t.suggest_int("one", 1, 1), n_trials=3)
    assert [studies.NUMBERS in t.user_attrs for t in study.trials] == [False, True, True]
    assert study.sampler.infer_relative_search_space(study, None) == dict(sorted(SPACE.items()))


def test_a_net_needs_its_space(old):
    history = from_study(old, Space(SPACE))
    net = pretrain(history, SMALL)
    with pytest.raises(
        ValueError, match="does not know its parameters; pass the space it was made for as search_space="
    ):
        JumboSampler(net)
    with pytest.raises(ValueError, match="history was learned for another search space; learn from the old runs again"):
        JumboSampler(net, {"x": SPACE["x"]})
    with pytest.raises(ValueError, match="source_studies cannot be added to what was learned before"):
        JumboSampler(net, SPACE, source_studies=old)
    optuna.create_study(sampler=JumboSampler(net, SPACE)).optimize(objective, n_trials=2)


def test_mistakes_are_found_when_the_sampler_is_made(old):
    history = from_study(old, Space(SPACE))
    with pytest.raises(ValueError, match=r"'x' is FloatDistribution\(high=5.* there and .*high=4.* here; read the old"):
        JumboSampler(history, SPACE | {"x": FloatDistribution(-5, 4)})
    with pytest.raises(ValueError, match=r"'n' is IntDistribution.* there and missing here"):
        JumboSampler(history, {"x": SPACE["x"]})
    with pytest.raises(TypeError, match="history is a str, expected a History"):
        JumboSampler("runs.csv")
    with pytest.raises(ValueError, match="method is 'best', expected one of"):
        JumboSampler(method="best")
    with pytest.raises(ValueError, match="n_trials is 0"):
        JumboSampler(n_trials=0)
    with pytest.raises(ValueError, match="seed is -1"):
        JumboSampler(seed=-1)
    with pytest.raises(ValueError, match="at least one parameter"):
        JumboSampler(search_space={})
    with pytest.raises(ValueError, match=r"'empty'.* share no parameter with the same range; pass search_space="):
        JumboSampler(source_studies=[*old, optuna.create_study(study_name="empty")])
