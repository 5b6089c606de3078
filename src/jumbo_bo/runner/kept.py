"""The trials of a study whose space has changed: which of them count, and what the others are good for.

A finished trial whose parameters lie inside the present space counts like any other. One that lacks a new parameter has
the `default` of that in study.toml. Without one, and when a parameter of it is gone, it was measured on a problem much
like the present one: it becomes an old run. Outside of a range there is no place for it: it is not used.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial

from jumbo_bo.data.history import History
from jumbo_bo.data.readers import from_trials
from jumbo_bo.data.spaces import Spaces, is_of
from jumbo_bo.errors import brief
from jumbo_bo.space.space import Space
from jumbo_bo.studies import known_params
from jumbo_bo.study.study_file import StudyFile, space_changes

EARLIER = "earlier space"


@dataclass(frozen=True)
class Kept:
    trials: tuple[FrozenTrial, ...]  # those that count, and those without a result
    old_runs: tuple[FrozenTrial, ...] = ()
    unused: tuple[tuple[int, str], ...] = ()  # number and what is wrong
    why: str = ""  # of the first old run
    changes: tuple[str, ...] = ()  # of the space, in words

    def __str__(self) -> str:
        """What was kept as what."""
        n, old, lost = sum(t.state.is_finished() for t in self.trials), len(self.old_runs), len(self.unused)
        said = [f"{n} of {n + old + lost} finished trials {'counts' if n == 1 else 'count'} as before"]
        if old:
            said.append(f"{old} {'is an old run' if old == 1 else 'are old runs'} of the same problem ({self.why})")
        if lost:
            number, problem = self.unused[0]
            said.append(f"{lost} {'is' if lost == 1 else 'are'} not used (trial {number}: {problem})")
        return f"The space has changed ({'; '.join(self.changes)}): {', '.join(said)}"

    @property
    def left_out(self) -> dict[int, str]:
        """Number -> word, of those that do not count."""
        return dict.fromkeys([*(t.number for t in self.old_runs), *(number for number, _ in self.unused)], "earlier")

    def to_json(self) -> dict[str, Any]:
        return {
            "changes": list(self.changes),
            "old_runs": [t.number for t in self.old_runs],
            "unused": [{"trial": number, "problem": problem} for number, problem in self.unused],
        }


class Judged(NamedTuple):
    trial: FrozenTrial  # as it counts
    use: Literal["trial", "old run", "none"] = "trial"
    why: str = ""


class Sorter:
    """Sorts the trials of a study. A finished trial is looked at once, as it never changes."""

    def __init__(self, file: StudyFile, spaces: Spaces) -> None:
        self.space, self.spaces, self.defaults = file.space, spaces, file.defaults
        self.gone = spaces.names - set(file.space.names)
        before = [r for r in spaces.records if not is_of(r, file.space)]
        self.changed = bool(before)
        self.changes = tuple(space_changes(before[-1], file.space)) if before else ()
        self._known: dict[int, tuple[FrozenTrial, Judged]] = {}  # finished trials, and what was found

    def sort(self, trials: Iterable[FrozenTrial]) -> Kept:
        if not self.changed:
            return Kept(tuple(map(self.spaces.read, trials)))
        found = [self._looked_up(t) for t in trials]
        counting, old = ([j for j in found if j.use == use] for use in ("trial", "old run"))
        unused = tuple((j.trial.number, j.why) for j in found if j.use == "none")
        why = old[0].why if old else ""
        return Kept(tuple(j.trial for j in counting), tuple(j.trial for j in old), unused, why, self.changes)

    def seen(self, trial: FrozenTrial) -> FrozenTrial:
        """As it is shown: with its parameters' own names, and the defaults of those that it lacks."""
        return self._looked_up(trial).trial if self.changed else self.spaces.read(trial)

    def _looked_up(self, trial: FrozenTrial) -> Judged:
        known, judged = self._known.get(trial.number, (None, None))
        if judged is None or known is not trial:
            judged = self._judged(self.spaces.read(trial))
            if trial.state.is_finished():
                self._known[trial.number] = trial, judged
        return judged

    def _judged(self, trial: FrozenTrial) -> Judged:
        known = known_params(trial)
        if not trial.state.is_finished() or not known:
            return Judged(trial)
        active = self.space.active({**self.defaults, **known})
        for name, axis in zip(self.space.names, self.space.axes, strict=True):
            if name in known and name in active and not np.isfinite(axis.encode([known[name]])[0]):
                return Judged(trial, "none", f"{name!r} is {brief(known[name])}, expected {axis.describe()}")
        if gone := [name for name in trial.params if name in self.gone]:
            return Judged(trial, "old run", f"trial {trial.number} has {gone[0]!r}, which is gone")
        lacking = [name for name in active if name not in known]
        if unknown := [name for name in lacking if name not in self.defaults]:
            return Judged(trial, "old run", f"trial {trial.number} has no {unknown[0]!r}, which has no default")
        return Judged(_with(trial, {n: self.defaults[n] for n in lacking}, self.space) if lacking else trial)


def old_runs(file: StudyFile, trials: Sequence[FrozenTrial]) -> History | None:
    """Trials that are old runs, as one task. A parameter that they lack gets its default, or random values."""
    parts = []
    for names in sorted({tuple(sorted(t.params)) for t in trials}):
        group = [t for t in trials if tuple(sorted(t.params)) == names]
        fill = {name: value for name, value in file.defaults.items() if name not in names}
        parts.append(from_trials(group, f"{file.name}, {EARLIER}", file.space, file.direction, fill=fill))
    found = History.combine(*parts) if parts else None
    return found if found is not None and found.tasks else None


def _with(trial: FrozenTrial, params: Mapping[str, Any], space: Space) -> FrozenTrial:
    made = copy.copy(trial)
    made._params = {**trial.params, **params}
    added: dict[str, BaseDistribution] = {name: space.distributions[name] for name in params}
    made._distributions = {**trial.distributions, **added}
    return made
