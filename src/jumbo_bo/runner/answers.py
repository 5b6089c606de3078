"""What commands answer to programs: the shapes of --json, which the tools of `jumbo mcp` return as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from optuna.trial import FrozenTrial

from jumbo_bo.data.corrections import Correction
from jumbo_bo.data.goals import MEASURED, Goal
from jumbo_bo.errors import UserError
from jumbo_bo.fronts import front, values_of
from jumbo_bo.runner.book import ERROR, SECONDS, Book, best
from jumbo_bo.studies import NUMBERS, WHY, broken


def trial_of(trial: FrozenTrial, goals: Sequence[Goal] = ()) -> dict[str, Any]:
    told = {key: trial.user_attrs[key] for key in (WHY, SECONDS, ERROR, MEASURED) if key in trial.user_attrs}
    return {
        "trial": trial.number,
        "state": trial.state.name.lower(),
        "value": (values_of(trial, goals) or None) if goals else trial.value,
        "params": trial.params,
        "started": _iso(trial.datetime_start),
        **told,
    }


def suggestion_of(trial: FrozenTrial) -> dict[str, Any]:
    """What a person, or a program of theirs, needs to know of a suggestion. 'predicted' is None without a model."""
    numbers = trial.user_attrs.get(NUMBERS, {})
    predicted = numbers.get("predicted") or {}
    known = predicted if predicted.get("mean") is not None else None
    if goals := numbers.get("goals"):
        known = {name: one["predicted"] for name, one in goals.items()}
    said = {"trial": trial.number, "params": trial.params, "why": trial.user_attrs.get(WHY), "predicted": known}
    return said | ({"limits": numbers["limits"]} if numbers.get("limits") else {})


def told(book: Book, trials: Sequence[FrozenTrial]) -> dict[str, Any]:
    """Results that were stored."""
    stored = []
    for trial in trials:
        lacking = broken(trial, book.file.space)
        stored.append(trial_of(trial, book.file.goals) | ({"does_not_meet": lacking} if lacking else {}))
    return {"stored": stored, **_best(book)}


def corrected(book: Book, entries: Sequence[Correction]) -> dict[str, Any]:
    """Values that were replaced, trials that were forgotten or that count again."""
    return {"corrections": [asdict(entry) for entry in entries], **_best(book)}


def explained(book: Book, number: int) -> dict[str, Any]:
    """A trial and the numbers behind its suggestion: 'predicted', 'trust', old runs close by."""
    trial = next((trial for trial in book.all_trials() if trial.number == number), None)
    if trial is None:
        raise UserError(f"there is no trial {number}; `jumbo status {book.file.path}` shows those there are")
    numbers = trial.user_attrs.get(NUMBERS)
    if numbers is None:
        raise UserError(f"trial {number} was not suggested by jumbo, so there is no reason for it")
    return trial_of(trial, book.file.goals) | {"reasons": numbers}


def _best(book: Book) -> dict[str, Any]:
    """Or the front, with several goals."""
    file, trials = book.file, book.trials()
    if file.goals:
        return {"front": [trial_of(t, file.goals) for t in front(trials, file.goals, file.space, file.limits)]}
    top = best(trials, file)
    return {"best": None if top is None else trial_of(top)}


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="seconds")
