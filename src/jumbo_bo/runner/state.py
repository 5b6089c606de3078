"""`jumbo status`: how far a study is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from jumbo_bo.data.corrections import NOTHING, Correction, Corrections
from jumbo_bo.data.storage import shown
from jumbo_bo.fronts import counting, front, values_of, volumes
from jumbo_bo.runner.answers import trial_of
from jumbo_bo.runner.book import best, n_counted, runner
from jumbo_bo.runner.kept import Kept
from jumbo_bo.runner.people import is_open
from jumbo_bo.runner.place import folder_id, is_here, place_of
from jumbo_bo.studies import Remaining, remaining
from jumbo_bo.study.study_file import StudyFile

LAST = 5
ALL = Kept(())


@dataclass(frozen=True)
class Status:
    file: StudyFile
    counts: dict[str, int]  # state, or forgotten -> trials
    finished: int  # of the budget
    best: FrozenTrial | None
    running: tuple[FrozenTrial, ...]  # by `jumbo run`, here or on another machine
    interrupted: tuple[FrozenTrial, ...]  # begun by a `jumbo run` of this folder that is no longer there
    open: tuple[FrozenTrial, ...]  # asked for, not told
    last: tuple[FrozenTrial, ...]  # finished, the newest first
    remaining: Remaining | None = None
    corrections: tuple[Correction, ...] = ()
    kept: Kept = ALL  # what counts, where the space has changed
    front: tuple[FrozenTrial, ...] = ()  # of several goals
    gained: float | None = None  # share of the volume dominated by the trials that the last ones added

    def to_json(self) -> dict[str, Any]:
        goals = self.file.goals
        return {
            "name": self.file.name,
            "storage": shown(self.file.address),
            "direction": {goal.name: goal.direction for goal in goals} or self.file.direction,
            "trials": self.file.trials,
            "finished": self.finished,
            "counts": self.counts,
            "best": None if self.best is None else trial_of(self.best),
            **({"front": [trial_of(t, goals) for t in self.front], "gained": self.gained} if goals else {}),
            "running": [trial_of(t, goals) for t in self.running],
            "interrupted": [trial_of(t, goals) for t in self.interrupted],
            "open": [trial_of(t, goals) for t in self.open],
            "last": [trial_of(t, goals) for t in self.last],
            "remaining": None if self.remaining is None else self.remaining._asdict(),
            "corrections": [asdict(entry) for entry in self.corrections],
            "earlier_space": self.kept.to_json() if self.kept.changes else None,
        }


def status(file: StudyFile, kept: Kept, corrected: Corrections = NOTHING) -> Status:
    trials = kept.trials
    counts = {state.name.lower(): sum(t.state == state for t in trials) for state in TrialState}
    counts["forgotten"] = len(corrected.forgotten)
    ended = sorted((t for t in trials if t.state.is_finished()), key=lambda t: (t.datetime_complete, t.number))
    begun = [t for t in trials if t.state == TrialState.RUNNING and runner(t)]
    interrupted = _interrupted(file, begun)
    return Status(
        file,
        {state: n for state, n in counts.items() if n},
        n_counted(trials),
        best(trials, file),
        tuple(t for t in begun if t not in interrupted),
        tuple(interrupted),
        tuple(filter(is_open, trials)),
        tuple(reversed(ended[-LAST:])),
        remaining(trials),
        corrected.entries,
        kept,
        tuple(front(trials, file.goals, file.space, file.limits)) if file.goals else (),
        _gained(file, trials) if file.goals else None,
    )


def _gained(file: StudyFile, trials: Sequence[FrozenTrial]) -> float | None:
    """By the last trials that may be on the front; None where these are all."""
    some = sorted(counting(trials, file.goals, file.space, file.limits), key=lambda t: (t.datetime_complete, t.number))
    found = volumes([values_of(t, file.goals) for t in some], file.goals, file.reference)
    return 1.0 - found[-1 - LAST] if len(found) > LAST else None


def _interrupted(file: StudyFile, begun: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Those that no `jumbo run` is at work on, as none is in the runs folder here."""
    if sys.platform == "win32":  # which has no such folder
        return []
    from jumbo_bo.runner.supervise import held

    known, place = folder_id(file.runs), place_of(file)
    return [] if held(file.runs / "lock") else [t for t in begun if is_here(t, known, place)]
