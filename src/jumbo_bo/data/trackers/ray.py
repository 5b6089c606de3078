"""Ray Tune result folders -> History. Reads the JSON and CSV files Tune leaves; Ray need not be installed.

experiment/                         a task
    experiment_state-<time>.json    status of each trial
    <trial>/params.json             its configuration
    <trial>/result.json             one line per report; progress.csv holds the same
    <trial>/error.txt               it failed at least once; a retry may have succeeded
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np

from jumbo_bo.data.files import PathLike
from jumbo_bo.data.frames import Columns
from jumbo_bo.data.history import History
from jumbo_bo.data.summary import some
from jumbo_bo.data.trackers.runs import Run, entries, flat, mapping, parsed, to_history
from jumbo_bo.errors import InputError, first_line
from jumbo_bo.inputs import from_json, text_of
from jumbo_bo.space.space import Space
from jumbo_bo.space.values import as_numbers

UNFINISHED = ("PENDING", "RUNNING", "PAUSED")


def from_ray(
    path: PathLike | Iterable[PathLike], space: Space, *, objective: str = "value", which: str = "last", **columns: Any
) -> History:
    """Each experiment folder is a task: one folder, a folder of several, a glob, or a list of these.

    The value of a trial is its last report, or with which="best" its best one. Nested parameters and metrics are
    joined as Tune shows them: 'opt/beta'. `task` names a parameter that identifies the task.
    """
    if which not in ("last", "best"):
        raise InputError(f'which is {which!r}, expected "last" or "best"')
    options = Columns.of({**columns, "objective": objective})
    given = entries(path)
    folders = [experiment for entry in given for experiment in _experiments(entry)]
    repeated = Counter(folder.name for folder in folders)
    runs: list[Run] = []
    for folder in folders:
        task = folder.name if repeated[folder.name] == 1 else str(folder)
        status = _status(folder)
        runs += [_trial(f, task, status.get(f.name), options, which) for f in _folders(folder) if _is_trial(f)]
    return to_history(some([str(entry) for entry in given]), runs, space, options, "experiment")


def first_trials(experiment: Path, n: int) -> tuple[list[Run], int]:
    """A few trials, and how many there are."""
    trials = [folder for folder in _folders(experiment) if _is_trial(folder)]
    status = _status(experiment)
    return [_trial(f, experiment.name, status.get(f.name), Columns(), "last") for f in trials[:n]], len(trials)


def _experiments(folder: Path) -> list[Path]:
    folder = folder if folder.name else folder.absolute()  # '.' has no name
    if not folder.is_dir():
        raise InputError(f"{folder} is a file; pass the folder of a Tune experiment")
    if _is_trial(folder):
        raise InputError(f"{folder} is a single trial; pass the folder of its experiment, {folder.absolute().parent}")
    if any(map(_is_trial, _folders(folder))):
        return [folder]
    found = [f for f in _folders(folder) if any(map(_is_trial, _folders(f)))]
    if not found:
        raise InputError(
            f"{folder} has no Tune trials; expected folders with params.json or result.json, in it or one level down"
        )
    return found


def _folders(folder: Path) -> list[Path]:
    with os.scandir(folder) as found:
        return sorted(Path(entry.path) for entry in found if entry.is_dir())


def _is_trial(folder: Path) -> bool:
    return (folder / "params.json").exists() or (folder / "result.json").exists()


def _status(experiment: Path) -> dict[str, str]:
    """Trial folder -> status, from the newest state file. Its pickled parts stay the text they are."""
    states = sorted(experiment.glob("experiment_state-*.json"))
    try:
        trials = [from_json(trial) for trial, _ in from_json(text_of(states[-1]))["trial_data"]]
        return {trial["relative_logdir"]: trial["status"] for trial in trials}
    except (LookupError, TypeError, AttributeError, ValueError):  # none, cut off, or of another version of Ray
        return {}


def _trial(folder: Path, task: str, status: str | None, columns: Columns, which: str) -> Run:
    chosen = _chosen(_newest_first(folder), columns, which)
    metrics = flat({k: v for k, v in chosen.items() if k != "config"}, "/")
    file = folder / "params.json"
    config = parsed(text_of(file), str(file)) if file.exists() else chosen.get("config", {})
    params = flat(mapping(config, str(file)), "/")
    unusable = ""
    if status == "ERROR" or (status is None and (folder / "error.txt").exists()):
        unusable = "trial failed"
    elif status in UNFINISHED:
        unusable = "trial is not finished"
    elif not chosen:
        unusable = "trial reported no result"
    return Run(f"trial {folder.name}", params, metrics, {**params, "experiment": task}, unusable)


def _newest_first(folder: Path) -> Iterator[Mapping[str, Any]]:
    """The reports of a trial. Long trials are mostly read for their last one, so the others are not parsed before."""
    file, table = folder / "result.json", folder / "progress.csv"
    if file.exists() and (file.stat().st_size or not file.is_file()):
        lines = text_of(file).split("\n")
        for i in range(len(lines) - 1, 0, -1):  # what follows the last newline was cut off by a crash
            if lines[i - 1].strip():
                place = f"{file} line {i}"
                yield mapping(parsed(lines[i - 1], place), place)
    elif table.exists():
        for row in reversed(_rows(table)):
            yield {name: value or None for name, value in row.items() if name is not None}  # None: more than the header


def _rows(table: Path) -> list[dict[str, Any]]:
    limit = csv.field_size_limit(2**31 - 1)  # usually 131,072 characters, and a configuration may be longer
    try:
        return list(csv.DictReader(StringIO(text_of(table), newline="")))
    except csv.Error as error:
        raise InputError(f"{table} cannot be read as CSV: {first_line(error)}") from error
    finally:
        csv.field_size_limit(limit)


def _chosen(reports: Iterator[Mapping[str, Any]], columns: Columns, which: str) -> Mapping[str, Any]:
    """The report whose metric counts; the last one when none has it, so that an error can name what there is."""
    last: Mapping[str, Any] = {}
    having: list[tuple[Mapping[str, Any], Any]] = []
    for report in reports:
        last = last or report
        value = report[columns.objective] if columns.objective in report else flat(report, "/").get(columns.objective)
        if value is not None:
            having.append((report, value))
            if which == "last":
                break
    if not having:
        return last
    y = as_numbers([value for _, value in having])
    y = np.where(np.isfinite(y), y if columns.direction == "maximize" else -y, -np.inf)
    return having[int(np.argmax(y))][0]
