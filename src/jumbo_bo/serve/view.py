"""What the pages show, read from the study and put into words. The templates only place it, and escape it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from optuna.trial import FrozenTrial

from jumbo_bo.explain import Prediction, in_digits
from jumbo_bo.report.rows import Row, rows, spent, text
from jumbo_bo.runner.answers import suggestion_of
from jumbo_bo.runner.book import BY, best
from jumbo_bo.runner.reporting import seen
from jumbo_bo.runner.state import Status, status
from jumbo_bo.serve.desk import Desk, state_of, version
from jumbo_bo.study.study_file import StudyFile

PAGE = 100  # trials on one page: 115 kB of HTML with two parameters


@dataclass(frozen=True)
class Study:
    """What every page shows of it."""

    file: StudyFile
    version: str
    lead: str
    best: str
    notes: tuple[str, ...]
    running: tuple[int, ...]  # by `jumbo run`


@dataclass(frozen=True)
class Open:
    """An experiment that waits for its result."""

    number: int
    settings: tuple[tuple[str, str], ...]
    expected: str
    low: str
    high: str
    why: str
    since: str


@dataclass(frozen=True)
class Finished:
    row: Row
    settings: tuple[tuple[str, str], ...]
    value: str
    quantities: tuple[str, ...]  # one for each limit
    is_best: bool
    by: str
    when: str
    was: str  # for the form that corrects it

    @property
    def can_be_corrected(self) -> bool:
        return self.row.state in ("done", "failed", "pruned")


def of_study(desk: Desk) -> tuple[Study, list[FrozenTrial]]:
    """And the open trials."""
    with desk.book() as book:
        found = status(book.file, book.kept(), book.corrections())
        now = version(desk.path, book.all_trials(), book.corrections().forgotten)
    return _study(found, now), list(found.open)


def of_trials(desk: Desk, page: int) -> tuple[Study, list[Finished], int]:
    """The finished trials of one page, the newest first, and how many pages there are."""
    with desk.book() as book:
        corrected = book.corrections()
        found, its = status(book.file, book.kept(), corrected), seen(book)
        now = version(desk.path, its.trials, corrected.forgotten)
        top = best(its.kept.trials, book.file)
    ended = sorted((t for t in its.trials if t.state.is_finished()), key=lambda t: -t.number)
    chosen = ended[(page - 1) * PAGE : page * PAGE]
    made = rows(chosen, found.file.space, found.file.direction, its.left_out, found.file.limits)
    trials = {t.number: t for t in chosen}
    shown_rows = [_finished(row, trials[row.number], found.file, top) for row in reversed(made)]
    return _study(found, now), shown_rows, max(1, math.ceil(len(ended) / PAGE))


def open_one(trial: FrozenTrial, file: StudyFile) -> Open:
    said = suggestion_of(trial)
    predicted: dict[str, Any] = said["predicted"] or {}
    mean, low, high = "", "", ""
    if predicted.get("low") is not None and predicted.get("high") is not None:
        mean, low, high = in_digits(Prediction(predicted["mean"], math.nan, predicted["low"], predicted["high"]))
    elif predicted:
        mean = f"{predicted['mean']:.4g}"
    since = "" if trial.datetime_start is None else spent((datetime.now() - trial.datetime_start).total_seconds())
    return Open(trial.number, _settings(trial.params, file), mean, low, high, said["why"] or "", since)


def _study(found: Status, now: str) -> Study:
    file, top = found.file, found.best
    words = {"fail": "failed" if found.finished else "failed, not counted", "running": "open or running"}
    counts = ", ".join(f"{n} {words.get(state, state)}" for state, n in found.counts.items()) or "no trial yet"
    said = f"{found.finished} of {file.trials} trials finished ({counts}), looking for the "
    said += f"{'lowest' if file.direction == 'minimize' else 'highest'} value."
    if top is not None and top.value is not None:
        settings = ", ".join(f"{name}={value}" for name, value in _settings(top.params, file))
        so_far = f"Best so far: {text(top.value)} in trial {top.number} ({settings})"
    else:
        none = file.limits and any(t.value is not None for t in found.last)
        so_far = f"No trial meets the limits yet: {', '.join(map(str, file.limits))}" if none else ""
    notes = [str(found.kept)] if found.kept.changes else []
    return Study(file, now, said, so_far, tuple(notes), tuple(t.number for t in found.running))


def _finished(row: Row, trial: FrozenTrial, file: StudyFile, top: FrozenTrial | None) -> Finished:
    quantities = []
    for limit in file.limits:
        value = row.quantities.get(limit.name, math.nan)
        missed = "" if math.isnan(value) or limit.met(value) else f", not {limit.beyond(value)}"
        quantities.append("" if math.isnan(value) else f"{text(value)}{missed}")
    return Finished(
        row,
        _settings(row.params, file),
        "" if math.isnan(row.value) else text(row.value),
        tuple(quantities),
        top is not None and top.number == row.number,
        str(trial.user_attrs.get(BY, "")),
        "" if trial.datetime_complete is None else f"{trial.datetime_complete:%Y-%m-%d %H:%M}",
        state_of(trial),
    )


def _settings(params: Any, file: StudyFile) -> tuple[tuple[str, str], ...]:
    """In the order of the study file; others, of an earlier space, after them."""
    names: Sequence[str] = [
        *(n for n in file.space.names if n in params),
        *(n for n in params if n not in file.space.names),
    ]
    return tuple((name, text(params[name])) for name in names)
