"""Files and Optuna studies -> History. Nothing here unpickles anything.

Without a task column each file is a task, named by its stem, and each study is a task, named by its study name.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import optuna
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from jumbo_bo.data.corrections import corrections_in
from jumbo_bo.data.files import File, PathLike, count_rows, files_of, readable, row_in, scan, task_names
from jumbo_bo.data.frames import Columns, Options, Source, closest, has_column, text_or_typed
from jumbo_bo.data.goals import MEASURED, as_one, names_in
from jumbo_bo.data.history import History, checked, collected, from_source, with_limits
from jumbo_bo.data.reading_bar import reading_bar
from jumbo_bo.data.spaces import spaces_in
from jumbo_bo.data.stream import Collector
from jumbo_bo.data.summary import Dropped
from jumbo_bo.errors import InputError, MissingFile, masked
from jumbo_bo.extras import later
from jumbo_bo.paths import at_home
from jumbo_bo.space.space import Array, Params, Space

if TYPE_CHECKING:
    import polars as pl
else:
    pl = later("polars")  # a slow import, and with a cached net nobody needs it

FAILED = "trial failed"
Result = tuple[FrozenTrial, tuple[float | None, str]]  # its value, or why it has none
OBJECTIVE = "(objective)"  # column of a study's values; cannot collide with a parameter called 'value'


def read_history(path: PathLike | Iterable[PathLike], space: Space, **columns: Unpack[Options]) -> History:
    """Old runs from CSV, TSV, Parquet or JSONL: a file, a glob like 'runs/*.csv', or a list of both. Parquet, CSV and
    TSV may also be elsewhere: 's3://bucket/runs/*.parquet', 'gs://', 'az://', 'https://', whatever Polars reads.

    Options are those of `History.from_frame`: task, objective, direction, target, rename, fill, on_bad_rows, most_rows,
    limits.
    """
    options = Columns.of(columns)
    files = files_of(path)
    names = zip(files, task_names(files), strict=True)
    sources = [(file, Source(str(file), task, partial(row_in, file))) for file, task in names]
    history = checked(_read_files(sources, space, options), options)
    return with_limits(history, options, partial(_read_quantity, sources, space))


def _read_files(sources: Sequence[tuple[File, Source]], space: Space, options: Columns) -> History:
    collector = Collector(space, options)
    with reading_bar(lambda: count_rows([file for file, _ in sources])) as seen:
        for file, source in sources:
            with readable(file):
                collector.read(scan(file), source, seen)
    return collected(collector)


def _read_quantity(sources: Sequence[tuple[File, Source]], space: Space, its: Columns) -> History | None:
    """From the files that have its column."""
    known = []
    for file, source in sources:
        with readable(file):
            if has_column(scan(file), its, its.objective):
                known.append((file, source))
    return _read_files(known, space, its) if known else None


def from_study(
    studies: optuna.Study | Iterable[optuna.Study], space: Space, *, target: str | None = None, **columns: Any
) -> History:
    """Each study is a task with its own direction; `target` names the one that is the new problem itself.

    Pruned trials count with their last intermediate value; failed ones tell where trials fail; unfinished ones are left
    out. Both are counted. Corrected trials count as corrected, forgotten ones not at all. What was measured with the
    trials, or set as their constraints, is read as well. Of several goals the first one is the objective, and the
    others are read like what was measured, by the study's `metric_names`, else as values_1, values_2, ...
    Options: rename, fill, on_bad_rows, as in `History.from_frame`.
    """
    several = [studies] if isinstance(studies, optuna.Study) else list(studies)
    if not several:
        raise InputError("no studies given; to start without old runs use History.empty(space)")
    for name in ("task", "objective", "direction", "limits"):
        if name in columns:
            raise TypeError(f"{name}= is read from the study itself; leave it out")
    options = Columns.of({**columns, "target": target})
    names = _distinct([s.study_name for s in several])
    parts = [_study(study, name, space, options) for study, name in zip(several, names, strict=True)]
    return checked(History.combine(*parts), options)


def measured(trial: FrozenTrial) -> dict[str, float]:
    """What was measured with a trial: as `jumbo` keeps it, else as the constraints that were set, each met up to 0."""
    kept = trial.user_attrs.get(MEASURED)
    found = {**trial.constraints, **(kept if isinstance(kept, dict) else {})}
    return {name: float(value) for name, value in found.items() if isinstance(value, int | float)}


def from_storage(
    storage: str | BaseStorage, space: Space, study_names: Sequence[str] | None = None, **options: Any
) -> History:
    """The studies of an Optuna storage (all of them, or those named). Options as in `from_study`."""
    shown = masked(storage) if isinstance(storage, str) else type(storage).__name__
    if isinstance(storage, str):
        storage = at_home(storage)
        _check_sqlite_file(storage)
    try:
        known = optuna.get_all_study_names(storage)
    except Exception as error:  # SQLAlchemy, a driver or a journal: many kinds, one meaning for the user
        from jumbo_bo.data.storage import cause_of  # loads SQLAlchemy, which is here by now

        raise InputError(f"{shown} cannot be read as an Optuna storage: {cause_of(error)}") from error
    wanted = sorted(known) if study_names is None else list(study_names)
    for name in wanted:
        if name not in known:
            raise InputError(f"{shown} has no study {name!r}{closest(name, known)}; it has {sorted(known)}")
    if not wanted:
        raise InputError(f"{shown} has no studies; to start without old runs use History.empty(space)")
    return from_study([optuna.load_study(study_name=name, storage=storage) for name in wanted], space, **options)


def _study(study: optuna.Study, name: str, space: Space, options: Columns) -> History:
    attributes, direction = study.user_attrs, study.directions[0].name.lower()
    trials, names = corrections_in(attributes).counting(study.get_trials(deepcopy=False)), names_in(study)
    own = [spaces_in(attributes).read(as_one(t, names)) for t in trials]
    return _from_trials(own, f"study {name!r}", name, space, replace(options, direction=direction))


def from_trials(trials: Iterable[FrozenTrial], name: str, space: Space, direction: str, **columns: Any) -> History:
    """Trials as the task of this name. Options as in `from_study`."""
    return _from_trials(list(trials), name, name, space, Columns.of({**columns, "direction": direction}))


def _from_trials(trials: Sequence[FrozenTrial], where: str, name: str, space: Space, options: Columns) -> History:
    """With what was measured with them."""
    history = _table(where, name, [(t, outcome(t)) for t in trials], space, options)
    quantities: dict[str, list[Result]] = {}
    for trial in trials:
        for quantity, number in measured(trial).items():
            quantities.setdefault(quantity, []).append((trial, (number, "")))
    its = replace(options, direction="minimize")
    limits = {q: _table(where, name, found, space, its) for q, found in quantities.items()}
    return replace(history, limits=limits) if limits else history


def _table(where: str, name: str, results: Iterable[Result], space: Space, options: Columns) -> History:
    left_out: dict[str, list[FrozenTrial]] = {}  # by reason
    usable: list[tuple[FrozenTrial, float]] = []
    for trial, (value, reason) in results:
        if value is not None:
            usable.append((trial, value))
        else:
            left_out.setdefault(reason, []).append(trial)
    numbers = [trial.number for trial, _ in usable]
    skipped = tuple(Dropped(why, len(t), f"{where} trial {t[0].number}") for why, t in left_out.items())
    failed = tuple(_points([t.params for t in left_out.get(FAILED, ())], space, options))
    source = Source(where, name, lambda i: f"trial {numbers[i]}", skipped, failed)
    params = dict.fromkeys(p for trial, _ in usable for p in trial.params) if usable else dict.fromkeys(space.names)
    table = [text_or_typed(p, [trial.params.get(p) for trial, _ in usable]) for p in params]
    table.append(pl.Series(OBJECTIVE, [value for _, value in usable], dtype=pl.Float64))
    return from_source(pl.DataFrame(table), space, replace(options, objective=OBJECTIVE), source)


def outcome(trial: FrozenTrial) -> tuple[float | None, str]:
    """The trial's value, or why it has none. A pruned trial counts with the last value it reported."""
    if trial.state == TrialState.COMPLETE:
        return trial.value, "trial has no value"
    if trial.state == TrialState.PRUNED:
        return trial.intermediate_values.get(trial.last_step or 0), "trial was pruned before it reported a value"
    return None, FAILED if trial.state == TrialState.FAIL else "trial is not finished"


def _points(configurations: Iterable[Params], space: Space, options: Columns) -> Iterator[Array]:
    """Those that are points of the space."""
    rename, fill = options.rename or {}, options.fill or {}
    for params in configurations:
        with suppress(ValueError):
            known = {**fill, **{rename.get(name, name): value for name, value in params.items()}}
            yield space.encode({name: known[name] for name in space.names if name in known})


def _distinct(names: Sequence[str]) -> list[str]:
    """Studies of different storages may share a name; each stays its own task."""
    seen: Counter[str] = Counter()
    out = []
    for name in names:
        seen[name] += 1
        out.append(name if seen[name] == 1 else f"{name} #{seen[name]}")
    return out


def _check_sqlite_file(url: str) -> None:
    file = url.removeprefix("sqlite:///").split("?")[0]
    if url.startswith("sqlite:///") and file and not os.path.exists(file):  # Optuna would create it
        raise MissingFile(f"{file} does not exist; check the storage URL {url!r}")
