"""The report of a study file: what is read of the study, and the page that is made of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from optuna.trial import FrozenTrial

from jumbo_bo.report import page
from jumbo_bo.report.verdict import Stop
from jumbo_bo.runner.book import Book
from jumbo_bo.runner.build import build_optimizer
from jumbo_bo.runner.kept import Kept
from jumbo_bo.studies import follow
from jumbo_bo.study.study_file import StudyFile
from jumbo_bo.transfer import transfer


class Seen(NamedTuple):
    """Of a study, at one moment."""

    trials: list[FrozenTrial]
    kept: Kept
    left_out: dict[int, str]  # number -> why


def seen(book: Book) -> Seen:
    trials, kept = book.all_trials(), book.kept()
    return Seen(trials, kept, dict.fromkeys(book.corrections().forgotten, "forgotten") | kept.left_out)


def report_of(file: StudyFile, its: Seen, note: Callable[[str], None], old_runs: bool = True) -> str:
    """The page. Without the old runs it is made faster, and lacks what needs the model."""
    about = file.name, file.space, file.direction, its.trials
    several = file.limits, file.goals, file.reference
    if not old_runs:
        return page(*about, None, None, None, its.left_out, *several)
    optimizer = build_optimizer(file, file.trials, note, whole=True, earlier=its.kept.old_runs)
    optimizer = follow(optimizer, its.kept.trials)
    stop = Stop(file.stop.gain, file.stop.chance) if file.stop else None
    moved = None if file.goals else transfer(optimizer)  # of several goals, each has its own
    return page(*about, optimizer, moved, stop, its.left_out, *several)
