"""What a process may try while others decide at the same moment."""

from datetime import datetime

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from jumbo_bo import studies
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.search.argmax import SpaceExhausted
from jumbo_bo.space.space import Space

GRID = Space({"a": IntDistribution(0, 2), "c": CategoricalDistribution(["p", "q"])})


def running(number, params=None):
    stored = {} if params is None else {studies.NUMBERS: {"params": params}}
    trial = create_trial(state=TrialState.RUNNING, user_attrs=stored)
    trial.number, trial.datetime_start = number, datetime.now()
    return trial


def optimizer(space, method="gp-ucb"):
    return Optimizer(space, method=method, n_trials=20, seed=3)


def test_a_taken_configuration_is_never_kept():
    """However often another trial was faster."""
    params, stored, tries = [{"a": a, "c": c} for a in range(3) for c in "pq"], [], 0

    def read():
        """Each configuration is taken the moment after it was stored, except the last one."""
        return [running(i, configuration) for i, configuration in enumerate(stored[: len(params) - 1])]

    def store(attributes):
        nonlocal tries
        stored.append(attributes[studies.NUMBERS]["params"])
        tries += 1

    _, suggestion = studies.decide(optimizer(GRID), read, 99, store)
    assert tries == 6
    assert stored[-1] == suggestion.params
    assert all(suggestion.params != other for other in stored[:-1])
    stored += [suggestion.params]
    with pytest.raises(SpaceExhausted):
        studies.decide(optimizer(GRID), lambda: [running(i, p) for i, p in enumerate(params)], 99, store)


def test_many_that_decide_at_once_choose_differently():
    """Thirty processes that see the same study, and none of them what another one has just chosen."""
    space = Space({"a": IntDistribution(0, 39), "b": IntDistribution(0, 49)})
    undecided = [running(i) for i in range(30)]
    found = [studies.suggest(optimizer(space), undecided, i)[1].params for i in range(30)]
    assert len({tuple(params.values()) for params in found}) >= 28


@pytest.mark.parametrize("method", ["random", "gp-ucb"])
def test_where_floats_are_few_a_configuration_is_tried_again_rather_than_none(method):
    """A range without steps that has only nine floats: what was known to be taken is suggested all the same."""
    space = Space({"x": FloatDistribution(1e15, 1e15 + 1)})
    trials = [running(i, {"x": 1e15 + i / 8}) for i in range(9)]
    reads = iter(range(200))  # no endless loop

    def read():
        next(reads)
        return trials

    _, suggestion = studies.decide(optimizer(space, method), read, 9, lambda _: None)
    assert 1e15 <= suggestion.params["x"] <= 1e15 + 1
