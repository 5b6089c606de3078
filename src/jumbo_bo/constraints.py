"""Constraints of an Optuna study as limits: what `Trial.set_constraint` sets has to be at most 0.

Optuna knows how far a trial is from meeting a constraint, old runs know the quantity itself. They meet in the distance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from optuna import Study
from optuna.trial import FrozenTrial, TrialState

from jumbo_bo.data.history import History, Task
from jumbo_bo.data.limits import Limit, Limits, limits_of
from jumbo_bo.space.space import Space

MET = (None, 0.0)


@dataclass(frozen=True)
class Constraints:
    given: tuple[str, ...]  # of quantities in old runs from elsewhere
    old: tuple[str, ...]  # of the source studies

    @classmethod
    def of(cls, limits: Limits | None, space: Space, sources: Sequence[Study]) -> Constraints:
        old = (name for study in sources for name in _set_in(study.get_trials(deepcopy=False)))
        return cls(tuple(limit.name for limit in limits_of(limits, space.names)), tuple(dict.fromkeys(old)))

    def now(self, trials: Sequence[FrozenTrial]) -> Limits | None:
        """Those that the study's own complete trials have set; before the first one, those of the source studies."""
        complete = [t for t in trials if t.state == TrialState.COMPLETE]
        names = dict.fromkeys([*self.given, *(sorted(_set_in(complete)) if complete else self.old)])
        return dict.fromkeys(names, MET) or None


def in_excess(history: History, limits: Limits | None) -> History:
    """With the limited quantities as distances to their limits, as constraints have them."""
    found = limits_of(limits, history.space.names)
    return replace(history, limits={**history.limits, **_excesses(history, found)})


def _excesses(history: History, limits: Iterable[Limit]) -> Mapping[str, History]:
    made = {}
    for limit in limits:
        if (its := history.limits.get(limit.name)) is not None:
            tasks, target, constant = (
                tuple(_excess(its, t, limit) for t in part)
                for part in (its.tasks, [its.target] if its.target else [], its.constant)
            )
            made[limit.name] = History(its.space, tasks, target[0] if target else None, "minimize", constant)
    return made


def _excess(its: History, task: Task, limit: Limit) -> Task:
    values = its.sign(task.name) * task.y
    return Task(task.name, task.u, -np.maximum(limit.low - values, values - limit.high))


def _set_in(trials: Iterable[FrozenTrial]) -> set[str]:
    return {name for t in trials for name in t.constraints}
