"""Correcting a study: another value for a finished trial, trials that are forgotten, and those that count again.

Optuna keeps finished trials as they are; what is corrected stands beside them (data/corrections.py), and everything
here that reads the study follows it. All is checked before anything is written.

A trial that tries the configuration of a failed one again has the number of that one as its user attribute `retry of`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from optuna import Study
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState, create_trial

from jumbo_bo.data.corrections import Correction, Corrections, corrections, now, record
from jumbo_bo.errors import InputError, brief
from jumbo_bo.space.space import Params, Space
from jumbo_bo.studies import WHY, configuration, known_params, value

RETRY_OF = "retry of"


def replace_value(study: Study, number: int, value: float | None, reason: str = "") -> None:
    """From now on this is the value of a finished trial of an Optuna study. None or NaN: it failed."""
    replace_values(study._storage, study._study_id, {number: value}, reason)


def forget_trials(study: Study, numbers: Iterable[int], reason: str) -> None:
    """Finished trials of an Optuna study are as if they had never been."""
    forget(study._storage, study._study_id, numbers, reason)


def restore_trials(study: Study, numbers: Iterable[int], reason: str = "") -> None:
    """Forgotten trials of an Optuna study count again."""
    restore(study._storage, study._study_id, numbers, reason)


def corrected_trials(study: Study) -> list[FrozenTrial]:
    """The trials of an Optuna study with the values that hold, without the forgotten ones."""
    return corrections(study._storage, study._study_id).counting(study.get_trials(deepcopy=False))


def forget_failed(study: Study) -> list[int]:
    """Forgets the failed trials of an Optuna study and enqueues their parameters again: for an objective that was
    broken and has been mended. Returns the numbers of the forgotten trials.

    A trial that failed before it had a parameter says nothing about the search space and stays as it is."""
    return retry_failed(study._storage, study._study_id)


def replace_values(
    storage: BaseStorage, study_id: int, values: Mapping[int, float | None], why: str = ""
) -> list[Correction]:
    """By number of the trial. What was written."""
    if len(storage.get_study_directions(study_id)) > 1:
        raise InputError("the study has several goals; a value can be replaced only in one with a single goal")
    known = corrections(storage, study_id)
    trials = _finished(storage, study_id, known, values)
    entries = []
    for number, y in values.items():
        if number in known.forgotten:
            raise InputError(f"trial {number} is {_why_forgotten(known, number)}; restore it first")
        was = value(trials[number])
        entries.append(Correction("replaced", (number,), now(), why, _new(number, y), None if math.isnan(was) else was))
    record(storage, study_id, entries)
    return entries


def forget(storage: BaseStorage, study_id: int, numbers: Iterable[int], why: str) -> None:
    """Trials with these numbers are as if they had never been, for everybody who reads the study."""
    chosen, known = sorted(set(numbers)), corrections(storage, study_id)
    _finished(storage, study_id, known, chosen)
    if again := [n for n in chosen if n in known.forgotten]:
        raise InputError(f"trial {again[0]} is {_why_forgotten(known, again[0])} already")
    record(storage, study_id, [Correction("forgotten", tuple(chosen), now(), why)])


def restore(storage: BaseStorage, study_id: int, numbers: Iterable[int], why: str = "") -> None:
    """Forgotten trials count again."""
    chosen, known = sorted(set(numbers)), corrections(storage, study_id)
    _finished(storage, study_id, known, chosen)
    if others := [n for n in chosen if n not in known.forgotten]:
        raise InputError(f"trial {others[0]} is not forgotten; nothing to restore")
    record(storage, study_id, [Correction("restored", tuple(chosen), now(), why)])


def retry_failed(storage: BaseStorage, study_id: int, space: Space | None = None) -> list[int]:
    """Forgets the failed trials and enqueues their parameters, in two steps; a process that is killed in between leaves
    what the next call completes. With a space, trials that are no point of it stay failed: they would fail again."""
    numbers = enqueue_failed(storage, study_id, space)
    if numbers:
        record(storage, study_id, [Correction("forgotten", tuple(numbers), now(), "failed, and tried again")])
    return numbers


def enqueue_failed(storage: BaseStorage, study_id: int, space: Space | None = None) -> list[int]:
    """The numbers of the failed trials. Each that has not been tried again is now enqueued."""
    trials = storage.get_all_trials(study_id, deepcopy=False)
    tried = {number for t in trials for number in _retries(t)}
    failed = [t for t in corrections(storage, study_id).counting(trials) if t.state == TrialState.FAIL]
    found = {t.number: known_params(t) if space is None else configuration(t, space) for t in failed}
    usable = {number: params for number, params in found.items() if params}
    for number, params in usable.items():
        if number not in tried:
            _enqueue(storage, study_id, number, params)
    return list(usable)


def _enqueue(storage: BaseStorage, study_id: int, number: int, params: Params) -> None:
    user = {RETRY_OF: number, WHY: f"Another try of trial {number}, which failed."}
    fixed = {"fixed_params": params}  # as Study.enqueue_trial does
    template = create_trial(state=TrialState.WAITING, system_attrs=fixed, user_attrs=user)
    storage.create_new_trial(study_id, template_trial=template)


def _retries(trial: FrozenTrial) -> list[int]:
    """Numbers of the trials that this one tries again: ours, or those of Optuna's callback for trials without a
    heartbeat."""
    ours = trial.user_attrs.get(RETRY_OF)
    return [*trial.system_attrs.get("retry_history", ()), *([] if ours is None else [ours])]


def _finished(
    storage: BaseStorage, study_id: int, known: Corrections, numbers: Iterable[int]
) -> dict[int, FrozenTrial]:
    """Trials that can be corrected, with the values that hold."""
    trials = {t.number: t for t in known.applied(storage.get_all_trials(study_id, deepcopy=False))}
    for number in numbers:
        if isinstance(number, bool) or number not in trials:
            has = f"it has 0 to {max(trials)}" if trials else "it has none"
            raise InputError(f"there is no trial {brief(number)} in this study; {has}")
        if not trials[number].state.is_finished():
            state = "running" if trials[number].state == TrialState.RUNNING else "waiting"
            raise InputError(f"trial {number} is still {state}; it can be corrected once it has a result")
    return trials


def _new(number: int, y: Any) -> float | None:
    """The value that replaces another."""
    try:
        found = math.nan if y is None else float(y)
    except OverflowError:  # a whole number beyond all floats
        found = math.inf
    except (TypeError, ValueError):
        raise InputError(
            f"the value of trial {number} is {brief(y)}, expected a number, or None if it failed"
        ) from None
    if math.isinf(found):
        raise InputError(f"the value of trial {number} is {found}, expected a finite number, or None if it failed")
    return None if math.isnan(found) else found


def _why_forgotten(known: Corrections, number: int) -> str:
    last = next((e for e in reversed(known.of(number)) if e.what == "forgotten"), None)
    return "forgotten" if last is None else str(replace(last, why="")) + (f" ({last.why})" if last.why else "")
