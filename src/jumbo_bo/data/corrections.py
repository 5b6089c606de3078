"""What was corrected in an Optuna study: another value for a trial, trials that do not count, or that count again.

A finished trial cannot be changed in a storage, and nothing is ever deleted. A correction is a user attribute of the
study with a key of its own, so processes that correct it at the same moment lose nothing of each other:

    correction 000003 9f86d081  {"what": "replaced", "trials": [7], "value": 0.71, "was": 7.1,
                                 "when": "2026-05-04T16:20:05+02:00", "why": "comma in the wrong place"}

The number counts the corrections; the digits after it are random. Of several corrections of a trial the last one holds.
Everything that reads a study sees it as these attributes say.
"""

from __future__ import annotations

import copy
import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Literal

from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

KEY = "correction "
FORGOTTEN = "forgotten"  # user attribute of a study of earlier versions: numbers of forgotten trials
CORRECTED = "corrected"  # user attribute of a trial as it is read: the sentences about it

What = Literal["replaced", "forgotten", "restored"]


@dataclass(frozen=True)
class Correction:
    what: What
    trials: tuple[int, ...]
    when: str  # ISO 8601
    why: str = ""
    value: float | None = None  # of replaced ones, what it is now; None: failed
    was: float | None = None  # and what it was

    def __str__(self) -> str:
        """Without the numbers of the trials."""
        done = f"{shown(self.was)} replaced by {shown(self.value)}" if self.what == "replaced" else self.what
        why = f": {self.why}" if self.why else ""
        return f"{done} on {self.when[:16].replace('T', ' ')}{why}"


@dataclass(frozen=True)
class Corrections:
    """All of a study, in order."""

    entries: tuple[Correction, ...]
    before: frozenset[int] = frozenset()  # forgotten before the first of them

    @cached_property
    def forgotten(self) -> frozenset[int]:
        """The numbers of the trials that are as if they had never been."""
        numbers = set(self.before)
        for entry in self.entries:
            if entry.what == "forgotten":
                numbers.update(entry.trials)
            elif entry.what == "restored":
                numbers.difference_update(entry.trials)
        return frozenset(numbers)

    def of(self, number: int) -> list[Correction]:
        return [entry for entry in self.entries if number in entry.trials]

    def applied(self, trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
        """All trials, also the forgotten ones, each with the value that holds. Those without a correction are the same
        objects."""
        touched = {number for entry in self.entries for number in entry.trials}
        return [self._applied(t) if t.number in touched else t for t in trials]

    def counting(self, trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
        """Those that are not forgotten, each with the value that holds."""
        return self.applied(t for t in trials if t.number not in self.forgotten)

    def _applied(self, trial: FrozenTrial) -> FrozenTrial:
        entries, made = self.of(trial.number), copy.copy(trial)
        made._user_attrs = {**trial.user_attrs, CORRECTED: [str(entry) for entry in entries]}
        replaced = [entry for entry in entries if entry.what == "replaced"]
        if replaced:
            value = replaced[-1].value
            made.state = TrialState.FAIL if value is None else TrialState.COMPLETE
            made.values = None if value is None else [value]
        return made


NOTHING = Corrections(())


def corrections_in(attributes: Mapping[str, Any]) -> Corrections:
    """Those among the user attributes of a study."""
    found = [(key, kept) for key, kept in sorted(attributes.items()) if key.startswith(KEY)]
    entries = [_entry(kept) for _, kept in found]
    return Corrections(tuple(entry for entry in entries if entry), frozenset(attributes.get(FORGOTTEN, ())))


def corrections(storage: BaseStorage, study_id: int) -> Corrections:
    return corrections_in(storage.get_study_user_attrs(study_id))


def record(storage: BaseStorage, study_id: int, entries: Sequence[Correction]) -> None:
    """Each is there from now on, or not at all."""
    n = sum(key.startswith(KEY) for key in storage.get_study_user_attrs(study_id))
    for turn, entry in enumerate(entries, n + 1):
        key = f"{KEY}{turn:06d} {secrets.token_hex(4)}"
        storage.set_study_user_attr(study_id, key, asdict(entry) | {"trials": list(entry.trials)})


def now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")


def shown(value: float | None) -> str:
    return "failed" if value is None or math.isnan(value) else f"{value:.6g}"


def _entry(kept: Any) -> Correction | None:
    """None for an attribute of that name that is not ours."""
    try:
        return Correction(**{**kept, "trials": tuple(kept["trials"])})
    except (TypeError, KeyError):
        return None
