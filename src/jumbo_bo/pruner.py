"""JumboPruner: stops trials of an Optuna study that will hardly become the best, as learning curves tell.

The pruner keeps no state that matters. Each decision follows from the old curves and the trials in the storage, so all
processes and threads decide alike. The study is read only when a trial is judged, which is after 1, 2, 3, 4, 6, 8, 12,
16, ... reports.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from optuna import Study
from optuna.pruners import BasePruner
from optuna.trial import FrozenTrial, TrialState

from jumbo_bo.data.corrections import corrections
from jumbo_bo.data.curves import Curve, Curves, Steps, curve_of, finite, from_studies, sign_of, steps_of, units
from jumbo_bo.data.warp import Warp
from jumbo_bo.errors import InputError
from jumbo_bo.models.endings import Array, ending, so_far

EXPECTED = "expected"  # user attribute of a pruned trial: an `Expected`
MOST_KEPT = 200  # steps for which the old curves are kept as rows
SOONEST = 1e-3  # of the way; steps before the first one of the finished trials count as this


class Expected(NamedTuple):
    """The final value of a running trial."""

    value: float  # median, in the user's units
    low: float  # nine of ten final values should fall between `low` and `high`
    high: float
    chance: float  # that it is better than the best one so far


class JumboPruner(BasePruner):
    """Prunes a trial when it is much less likely to become the best one than a trial nobody knows anything about.

    curves            old curves, see `read_curves`
    source_studies    old Optuna studies with intermediate values, used in addition
    share             after n trials the next one is the best with chance 1 / (n + 1), as far as anyone knows. A trial
                      is pruned when its chance is below this share of that
    n_startup_trials  complete trials before any is pruned; None: 1 with old curves, 3 without
    """

    def __init__(
        self,
        curves: Curves | None = None,
        *,
        source_studies: Study | Iterable[Study] = (),
        share: float = 0.5,
        n_startup_trials: int | None = None,
    ) -> None:
        if not (curves is None or isinstance(curves, Curves)):
            raise TypeError(f"curves is a {type(curves).__name__}, expected Curves (see read_curves)")
        if not 0 < share <= 1:
            raise InputError(f"share is {share}, expected a number above 0 and at most 1")
        if n_startup_trials is not None and n_startup_trials < 1:
            raise InputError(f"n_startup_trials is {n_startup_trials}, expected at least 1, or None")
        sources = [source_studies] if isinstance(source_studies, Study) else list(source_studies)
        tasks = [*(curves.tasks.values() if curves else ()), *from_studies(sources).tasks.values()]
        self._old = [_Task.of(task) for task in tasks]
        self._share = share
        self._startup = n_startup_trials or (1 if self._old else 3)
        self._rows: dict[float, list[tuple[Array, Array]]] = {}

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        if not is_due(len(trial.intermediate_values)):
            return False
        trials = _counting(study)
        if self._has_diverged(trial, trials):
            return True
        expected = self._expect(study, trial, trials)
        n = sum(t.state in (TrialState.COMPLETE, TrialState.PRUNED) for t in trials)
        if expected is None or expected.chance >= self._share / (n + 1):
            return False
        study._storage.set_trial_user_attr(trial._trial_id, EXPECTED, expected._asdict())
        return True

    def expect(self, study: Study, trial: FrozenTrial) -> Expected | None:
        """The final value that the trial will probably reach; None while too little is known."""
        return self._expect(study, trial, _counting(study))

    def _has_diverged(self, trial: FrozenTrial, trials: Sequence[FrozenTrial]) -> bool:
        """Its last value is no number, in a study where that has never happened to a complete trial."""
        if trial.last_step is None or np.isfinite(trial.intermediate_values[trial.last_step]):
            return False
        complete = [t for t in trials if t.state == TrialState.COMPLETE and t.intermediate_values]
        return len(complete) >= self._startup and all(
            np.isfinite([*t.intermediate_values.values()]).all() for t in complete
        )

    def _expect(self, study: Study, trial: FrozenTrial, trials: Sequence[FrozenTrial]) -> Expected | None:
        sign, (step, values) = sign_of(study), finite(trial.intermediate_values)
        best = max((sign * t.value for t in trials if t.value is not None and _may_be_best(t)), default=None)
        known = [t for t in trials if curve_of(t, sign) is not None]
        if best is None or not known or not len(step):
            return None
        usual = np.median([steps_of(finite(t.intermediate_values)[0]) for t in known], axis=0)
        steps = Steps(*map(float, usual))
        until = float(np.clip(steps.at(step[-1:])[0], SOONEST, 1.0))
        curves = [c for t in known if (c := curve_of(t, sign, steps)) is not None]
        warp = units(np.array([c.end for c in curves]), [task.warp for task in self._old])
        rows, ends = _Task(warp, [c.within(warp) for c in curves]).rows(until)
        if len(ends) < self._startup:
            return None
        found = ending(so_far(steps.at(step), warp(sign * values), until), rows, ends, self._old_rows(until))
        z = np.array([found.quantile(share) for share in (0.05, 0.5, 0.95)])
        middle = warp.inverse(z[1])
        beyond = (warp.straighten(middle) - warp.centre) / warp.scale - z[1]  # what was squashed, see warp.py
        low, value, high = sorted(sign * np.array([*warp.straight(z[[0, 2]] + beyond), middle]))
        return Expected(float(value), float(low), float(high), found.above(float(warp(np.array(best)))))

    def _old_rows(self, until: float) -> list[tuple[Array, Array]]:
        if until not in self._rows:
            if len(self._rows) >= MOST_KEPT:
                self._rows = {}
            self._rows[until] = [task.rows(until) for task in self._old]
        return self._rows[until]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_rows": {}}


class _Task(NamedTuple):
    """The curves of a problem, in its units."""

    warp: Warp
    curves: Sequence[Curve]

    @classmethod
    def of(cls, curves: Sequence[Curve]) -> _Task:
        warp = units(np.array([c.end for c in curves]))
        return cls(warp, [c.within(warp) for c in curves])

    def rows(self, until: float) -> tuple[Array, Array]:  # -> X (n, 4), y (n,)
        """Of those that have begun by then."""
        begun = [c for c in self.curves if c.at[0] <= until * (1 + 1e-9)]
        rows = [so_far(c.at, c.values, until) for c in begun]
        return np.array(rows).reshape(-1, 4), np.array([c.end for c in begun])


def is_due(n: int) -> bool:
    """Whether a trial is judged after so many reports: 1, 2, 3, 4, 6, 8, 12, 16, 24, ..."""
    while n > 4 and n % 2 == 0:
        n //= 2
    return 0 < n < 4 or n == 4


def _may_be_best(trial: FrozenTrial) -> bool:
    """Complete, and it meets its constraints."""
    return (
        trial.state == TrialState.COMPLETE
        and math.isfinite(trial.value or 0.0)
        and all(excess <= 0 for excess in trial.constraints.values())
    )


def _counting(study: Study) -> list[FrozenTrial]:
    return corrections(study._storage, study._study_id).counting(study.get_trials(deepcopy=False))
