"""What the trackers share: runs with parameters, metrics and labels -> History.

Each task is read as a source of its own: experiments of one store differ in their parameters, and one that never had a
parameter must not lose its rows because another has it.
"""

from __future__ import annotations

import glob
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl
from optuna.distributions import CategoricalDistribution

from jumbo_bo.data.cells import NO_TASK
from jumbo_bo.data.files import PathLike
from jumbo_bo.data.frames import Columns, Source, closest, text_or_typed
from jumbo_bo.data.history import History, checked, from_source, with_limits
from jumbo_bo.data.summary import Dropped, some
from jumbo_bo.errors import InputError, MissingFile, brief
from jumbo_bo.inputs import from_json
from jumbo_bo.paths import at_home
from jumbo_bo.space.space import Array, Space
from jumbo_bo.space.values import spelled

# Reasons that speak against a configuration. A run that was killed, or whose machine was lost, says nothing about it.
FAILURES = ("run failed", "trial failed")
OUTCOME = "(outcome)"  # column that stands in for the value of a failed run


@dataclass(frozen=True)
class Run:
    place: str  # where a person finds it
    params: Mapping[str, Any]
    metrics: Mapping[str, Any]
    labels: Mapping[str, Any]  # what can name its task
    unusable: str = ""  # why it is left out, for example 'run failed'


def to_history(source: str, runs: Sequence[Run], space: Space, columns: Columns, label: str) -> History:
    """The history of the runs; `label` names their tasks unless `columns.task` does."""

    def read(its: Columns) -> History | None:
        known = any(its.objective in run.metrics for run in runs)
        return _to_history(source, runs, space, its, label) if known else None

    return with_limits(_to_history(source, runs, space, columns, label), columns, read)


def _to_history(source: str, runs: Sequence[Run], space: Space, columns: Columns, label: str) -> History:
    if not runs:
        raise InputError(f"{source}: no runs; to start without old runs use History.empty(space)")
    key = columns.task or label
    _check(source, runs, space, columns, key)
    tasks: dict[str, list[Run]] = {}
    for run in (_judged(_renamed(source, run, columns.rename or {}), space, columns.objective, key) for run in runs):
        name = run.labels.get(key)
        tasks.setdefault(NO_TASK if name is None else str(name), []).append(run)
    reasons = Counter(run.unusable for mine in tasks.values() for run in mine)
    if not reasons[""]:
        params = sorted({p for run in runs for p in run.params})
        why = ", ".join(f"{n:,} x {reason}" for reason, n in reasons.items() if reason)
        hint = f"; their parameters are {params}, map them with rename=" if params else ""
        raise InputError(f"{source}: none of {len(runs):,} runs can be used: {why}{hint}")
    parts = [_task(source, name, mine, space, columns) for name, mine in tasks.items()]
    return checked(History.combine(*parts), columns)


def flat(nested: Mapping[str, Any], separator: str, prefix: str = "") -> dict[str, Any]:
    """{'opt': {'beta': 0.9}} -> {'opt.beta': 0.9}. A list becomes text that spells a choice which is a tuple."""
    out: dict[str, Any] = {}
    for key, value in nested.items():
        name = spelled(f"{prefix}{key}")
        if isinstance(value, Mapping):
            out |= flat(value, separator, f"{name}{separator}")
        else:
            out[name] = spelled(tuple(value)) if isinstance(value, list) else value
    return out


def entries(path: PathLike | Iterable[PathLike]) -> list[Path]:
    """Existing files and folders: a path, a glob, or a list of both."""
    found: list[Path] = []
    for entry in [path] if isinstance(path, str | os.PathLike) else path:
        text = at_home(entry)
        if os.path.exists(text):
            found.append(Path(text))
        elif glob.has_magic(text):
            found += [Path(f) for f in sorted(glob.glob(text, recursive=True))]
        else:
            raise MissingFile(f"{text} does not exist; looked from {os.getcwd()}")
    if not found:
        raise MissingFile(f"nothing matches {path!r}; looked from {os.getcwd()}")
    return list(dict.fromkeys(found))


def parsed(text: str, place: str) -> Any:
    try:
        return from_json(text)
    except ValueError as error:
        raise InputError(f"{place}: not JSON ({error}); correct or delete it") from error


def mapping(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f'{place}: expected an object like {{"lr": 0.1}}, got {brief(value, 40)}')
    return value


def _check(source: str, runs: Sequence[Run], space: Space, columns: Columns, key: str) -> None:
    """Names that no run knows are typos."""
    metrics = sorted({m for run in runs for m in run.metrics})
    if metrics and columns.objective not in metrics:
        hint = closest(columns.objective, metrics)
        raise InputError(
            f"{source}: no run has the metric {columns.objective!r}{hint}; pass objective= one of {metrics}"
        )
    if not any(run.labels.get(key) is not None for run in runs):
        labels = sorted({name for run in runs for name in run.labels})
        raise InputError(f"{source}: no run has {key!r}{closest(key, labels)}; pass task= one of {labels}")
    if key.removeprefix("params.") in space.names:
        raise InputError(f"task={key!r} is also a parameter of the space; it cannot be both")
    params = sorted({p for run in runs for p in run.params})
    for old, new in (columns.rename or {}).items():
        if params and old not in params and new not in params:
            hint = closest(old, params)
            raise InputError(
                f"{source}: rename={{{old!r}: {new!r}}}, but no run has such a parameter{hint}; they have {params}"
            )


def _renamed(source: str, run: Run, rename: Mapping[str, str]) -> Run:
    params = dict(run.params)
    for old, new in rename.items():
        if old not in params:
            continue
        value = params.pop(old)
        if value is not None and params.get(new) is not None:
            raise InputError(f"{source} {run.place}: rename maps {old!r} to {new!r}, but it has both")
        params[new] = params.get(new) if value is None else value
    return replace(run, params=params)


def _task(source: str, name: str, runs: Sequence[Run], space: Space, columns: Columns) -> History:
    usable = [run for run in runs if not run.unusable]
    left_out: dict[str, list[Run]] = {}  # reason -> runs
    for run in runs:
        if run.unusable:
            left_out.setdefault(run.unusable, []).append(run)
    where = f"{source} {name!r}"
    skipped = tuple(Dropped(why, len(out), f"{where} {out[0].place}") for why, out in left_out.items())
    objective = f"metric {columns.objective}"  # MLflow allows a parameter of the same name
    table = _parameters(usable, space, columns)
    table.append(text_or_typed(objective, [run.metrics[columns.objective] for run in usable]))
    options = replace(columns, task=None, objective=objective, rename=None)
    places, failed = [run.place for run in usable], _failed(runs, space, columns)
    return from_source(pl.DataFrame(table), space, options, Source(where, name, places.__getitem__, skipped, failed))


def _failed(runs: Sequence[Run], space: Space, columns: Columns) -> tuple[Array, ...]:
    """Configurations of runs that failed, as far as they are points of the space."""
    failed = [run for run in runs if run.unusable in FAILURES and any(name in run.params for name in space.names)]
    if not failed:
        return ()
    table = [*_parameters(failed, space, columns), pl.Series(OUTCOME, [0.0] * len(failed))]
    options = replace(columns, task=None, objective=OUTCOME, rename=None, target=None, on_bad_rows="skip")
    read = from_source(pl.DataFrame(table), space, options, Source("failed runs", "failed"))
    return tuple(u for task in (*read.tasks, *read.constant) for u in task.u)


def _judged(run: Run, space: Space, objective: str, key: str) -> Run:
    """The run, with the first reason for which it cannot be used."""
    why = run.unusable
    if not why and run.labels.get(key) is None:
        why = f"run has no {key!r}"
    elif not why and run.metrics.get(objective) is None:
        why = f"run has no metric {objective!r}"
    elif not why and not any(name in run.params for name in space.names):
        why = f"run has none of the parameters {some([repr(name) for name in space.names])}"
    return replace(run, unusable=why)


def _parameters(runs: Sequence[Run], space: Space, columns: Columns) -> list[pl.Series]:
    """A column for each parameter that some run has. `fill` also counts for single runs made before it existed."""
    fill, dists = columns.fill or {}, space.distributions
    nullable = {n for n, d in dists.items() if isinstance(d, CategoricalDistribution) and None in d.choices}
    names = dict.fromkeys(p for run in runs for p, v in run.params.items() if v is not None or p in nullable)
    roles = {columns.objective, (columns.task or "").removeprefix("params.")} - set(space.names)
    values = {p: [run.params.get(p) for run in runs] for p in (names if runs else space.names) if p not in roles}
    return [text_or_typed(p, [fill.get(p) if v is None else v for v in column]) for p, column in values.items()]
