"""Trials of a study with several goals: which of them no other one beats, and what the latest ones added to that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from optuna.trial import FrozenTrial, TrialState

from jumbo_bo.data.goals import Goal
from jumbo_bo.data.limits import Limit, met
from jumbo_bo.data.readers import measured
from jumbo_bo.search.front import hypervolume, reference, undominated
from jumbo_bo.space.space import Space
from jumbo_bo.studies import broken

Array = npt.NDArray[np.float64]


def values_of(trial: FrozenTrial, goals: Sequence[Goal]) -> dict[str, float]:
    """Of a trial as `data.goals.as_one` has it; empty without a value of every goal."""
    also = measured(trial)
    if trial.state != TrialState.COMPLETE or trial.value is None or any(g.name not in also for g in goals[1:]):
        return {}
    return {goals[0].name: trial.value, **{goal.name: also[goal.name] for goal in goals[1:]}}


def oriented(values: Sequence[Mapping[str, float]], goals: Sequence[Goal]) -> Array:  # -> (n, k), larger is better
    return np.array([[goal.sign * row[goal.name] for goal in goals] for row in values]).reshape(len(values), len(goals))


def front(
    trials: Sequence[FrozenTrial], goals: Sequence[Goal], space: Space, limits: Sequence[Limit] = ()
) -> list[FrozenTrial]:
    """The trials that no other one beats in all goals, of those that meet the constraints and the limits; the best in
    the first goal comes first."""
    some = counting(trials, goals, space, limits)
    return [some[i] for i in unbeaten([values_of(t, goals) for t in some], goals)]


def unbeaten(rows: Sequence[Mapping[str, float]], goals: Sequence[Goal]) -> list[int]:
    """Those that no other one beats, the best in the first goal first."""
    f = oriented(rows, goals)
    kept: list[int] = np.flatnonzero(undominated(f)).tolist() if len(f) else []
    return sorted(kept, key=lambda i: -float(f[i, 0]))


def counting(
    trials: Sequence[FrozenTrial], goals: Sequence[Goal], space: Space, limits: Sequence[Limit] = ()
) -> list[FrozenTrial]:
    """Those that may be on the front."""
    some = [t for t in trials if values_of(t, goals) and not broken(t, space)]
    return [t for t in some if met(limits, measured(t))]


def volumes(rows: Sequence[Mapping[str, float]], goals: Sequence[Goal], given: Mapping[str, float]) -> list[float]:
    """The volume that the trials dominate after each of them, as a share of that after the last one. Where no reference
    is given, it is inferred from all of them."""
    f = oriented(rows, goals)
    if len(f) == 0:
        return []
    worst = np.array([goal.sign * given.get(goal.name, np.nan) for goal in goals])
    r = np.where(np.isnan(worst), reference(f), worst)
    found = [hypervolume(f[:n][undominated(f[:n])], r) for n in range(1, len(f) + 1)]
    return [volume / found[-1] if found[-1] else 0.0 for volume in found]
