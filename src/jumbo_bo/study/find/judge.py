"""How well old runs fit a study: which of its parameters they have, what their result is, how alike they are.

What is small enough is read as `jumbo run` would read it, so that the rows that count, and what is wrong, are known and
not guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import polars as pl

from jumbo_bo.data.task import Task
from jumbo_bo.errors import UserError, first_line
from jumbo_bo.space.space import Space
from jumbo_bo.study.find.entries import Finding, placed
from jumbo_bo.study.find.heads import VALUE, Head
from jumbo_bo.study.find.places import about
from jumbo_bo.study.guess import PREFIXES, Unclear, direction_of, result_and_task
from jumbo_bo.study.old_runs import OldRuns, read
from jumbo_bo.study.study_file import StudyFile

READ_BYTES = 50_000_000  # of a file that is read whole: 1 s of CPU time
READ_ROWS = 5_000_000  # of a file: Parquet may have many in few bytes
READ_RUNS = 10_000  # of a study, an experiment or a folder


@dataclass(frozen=True)
class Wanted:
    share: float = 0.5  # of the parameters, at least
    objective: str | None = None  # the column or metric with the result, where there is one of this name


def judged(head: Head, study: StudyFile, wanted: Wanted) -> Finding:
    """From its first rows."""
    parameters = _parameters(head.frame.columns, study.space)
    found = Finding(
        head.kind,
        head.where,
        head.name,
        head.rows,
        head.exact,
        parameters,
        tuple(name for name in study.space.names if name not in parameters),
    )
    if head.problem:
        return replace(found, why_not=head.problem)
    if not head.rows or not head.frame.height:
        return replace(found, why_not="it has no finished runs")
    if not parameters:
        return replace(found, why_not=f"none of the parameters; it has {_some(head.frame.columns)}")
    try:
        objective, task = _roles(head, study, set(parameters.values()), wanted.objective)
    except UserError as error:
        return replace(found, why_not=_without_options(error))
    direction = head.direction or direction_of(objective) or study.direction
    found = replace(found, objective=None if objective == VALUE else objective, direction=direction, task=task)
    found = replace(found, options=_options(head, found))
    if found.share < wanted.share:
        return replace(found, why_not=f"only {len(parameters)} of {len(study.space.names)} parameters")
    inside = _inside(head.frame, parameters, study.space)
    if not inside.any():
        return replace(found, why_not=_outside(head.frame, parameters, study.space))
    return found


def confirmed(found: Finding, size: int, study: StudyFile) -> tuple[Finding, tuple[Task, ...]]:
    """After it was read whole, if it is small enough; and its tasks."""
    most = READ_ROWS if found.kind == "files" else READ_RUNS
    if not found.usable or size > READ_BYTES or found.rows > most:
        return found, ()
    source = OldRuns(cast(Any, found.kind), (placed(found.where, study.folder),), found.options)
    try:
        history = read(source, study.space, study.direction, study.folder)
    except UserError as error:
        return replace(found, why_not=about(found.where, error)), ()
    except (OSError, UnicodeError) as error:
        return replace(found, why_not=f"it cannot be read: {first_line(error)}"), ()
    rows = sum(n for report in history.reports for n in report.read.values())
    tasks = tuple(t for t in (history.target, *history.tasks) if t is not None)
    found = replace(found, used=history.n_usable, rows=rows, exact=True, tasks=tuple(t.name for t in tasks))
    return (found, tasks) if tasks else (replace(found, why_not="all its results are the same"), ())


def _parameters(columns: Sequence[str], space: Space) -> dict[str, str]:
    """Under its own name, with the prefix of a tracker, or as the end of a longer name, if only one ends like that."""
    found = {}
    for name in space.names:
        exact = [column for column in (name, *(f"{prefix}{name}" for prefix in PREFIXES)) if column in columns]
        ends = [column for column in columns if column.endswith((f".{name}", f"/{name}"))]
        if exact or len(ends) == 1:
            found[name] = (exact or ends)[0]
    return found


def _roles(head: Head, study: StudyFile, parameters: set[str], wanted: str | None) -> tuple[str, str | None]:
    """The objective and the task. Names that the study already uses come first."""
    if head.metrics is None:
        frame = head.frame
    else:
        frame = head.metrics
        if VALUE in frame.columns:
            return VALUE, None
        if not frame.columns:
            raise UserError("no run has a result")
        often = [name for name in frame.columns if frame[name].null_count() <= frame.height / 2]
        frame = frame.select(often) if often and wanted not in frame.columns else frame
    used = [str(source.options["objective"]) for source in study.old_runs if "objective" in source.options]
    names = [name for name in (wanted, *used, study.job.value) if name in frame.columns and name not in parameters]
    objective, task = result_and_task(frame, parameters, names[0] if names else None)
    return objective, task if head.metrics is None else None


def _options(head: Head, found: Finding) -> dict[str, Any]:
    options: dict[str, Any] = dict(head.options)
    if found.objective is not None:
        options |= {"objective": found.objective, "direction": found.direction}
    if found.task is not None:
        options["task"] = found.task
    rename = {column: name for name, column in found.parameters.items() if column != name}
    return options | ({"rename": rename} if rename else {})


def _inside(frame: pl.DataFrame, parameters: Mapping[str, str], space: Space) -> Any:  # -> (n,) bool
    """Rows whose values the space has, where they have any."""
    inside = np.ones(frame.height, bool)
    for name, axis in zip(space.names, space.axes, strict=True):
        if name in parameters:
            cells = frame[parameters[name]].to_list()
            fits = np.isfinite(axis.encode(cells))
            inside &= fits | np.array([cell is None for cell in cells], bool)
    return inside


def _outside(frame: pl.DataFrame, parameters: Mapping[str, str], space: Space) -> str:
    """The parameter whose values fit least often, with one of them."""
    alone = {name: _inside(frame, {name: column}, space) for name, column in parameters.items()}
    name = min(alone, key=lambda name: alone[name].mean())
    if alone[name].all():
        return "no row has all its values inside the ranges"
    value = frame[parameters[name]][int(np.argmin(alone[name]))]
    return f"no row is inside the space: {name} is {value!r}, expected {space.axes[space.names.index(name)].describe()}"


def _some(names: Sequence[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def _without_options(error: UserError) -> str:
    if not isinstance(error, Unclear):
        return str(error)
    if len(error.candidates) == 1 or "look like results" not in str(error):
        numbers = _some(error.candidates) or "none"
        return f"no column has a name like a result, such as loss; pass --objective one of its numbers: {numbers}"
    return f"several columns may be the result; pass --objective one of {_some(error.candidates)}"
