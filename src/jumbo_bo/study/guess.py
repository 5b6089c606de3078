"""A table of old runs -> which columns are parameters, with what ranges, which one is the objective, which the task.

Every guess is explained, as it is written to a file that a person reads and corrects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np
import polars as pl
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.frames import closest
from jumbo_bo.errors import UserError
from jumbo_bo.space.axes import axis_of
from jumbo_bo.space.space import Space
from jumbo_bo.space.structure import split_of
from jumbo_bo.study.column import is_numeric, parameter
from jumbo_bo.study.junk import words

Direction = Literal["minimize", "maximize"]
ENOUGH = 3  # rows with and without a parameter from which a condition is guessed

LOWER = set(words("loss error err mse rmse mae mape nll cost regret perplexity latency crossentropy wer deviance"))
HIGHER = set(words("accuracy acc auc auroc f1 score reward yield precision recall r2 iou bleu throughput profit"))
NEUTRAL = set(words("value values objective metric result y output"))
UNMISTAKABLE = set(words("mse rmse mae mape nll accuracy auc auroc f1 r2 perplexity"))  # wherever it stands in a name
TASKS = ("task", "dataset", "problem", "experiment", "study", "project")  # the first one found is taken
PREFIXES = ("params_", "params.", "config/", "config.", "hparams/", "hparams.")  # Optuna, MLflow, Ray and W&B tables


class Unclear(UserError):
    """Which column is the objective cannot be told."""

    def __init__(self, text: str, candidates: Sequence[str]) -> None:
        super().__init__(text)
        self.candidates = tuple(candidates)


@dataclass(frozen=True)
class Guess:
    space: Space
    objective: str
    direction: Direction
    task: str | None
    rename: Mapping[str, str]  # column -> parameter
    notes: Mapping[str, str]  # column -> what it was taken for and why
    seen: int  # rows that it was made from
    rows: int  # of the table

    @property
    def columns(self) -> dict[str, Any]:
        """Options for a reader of the same table."""
        given = {"task": self.task, "rename": dict(self.rename)}
        return {"objective": self.objective, "direction": self.direction} | {k: v for k, v in given.items() if v}

    @property
    def sample(self) -> str:
        """That not all rows were seen, if so."""
        if self.seen >= self.rows:
            return ""
        return (
            f"Guessed from {self.seen:,} of {self.rows:,} rows: some drawn at random, and those with rare or extreme "
            "values. Counts are those of the sample."
        )


@dataclass
class _Columns:
    """Columns not taken yet; taking one needs a reason."""

    left: list[str]
    notes: dict[str, str] = field(default_factory=dict)

    def take(self, column: str, why: str) -> None:
        self.left.remove(column)
        self.notes[column] = why


def guess(
    frame: pl.DataFrame,
    objective: str | None = None,
    task: str | None = None,
    direction: Direction | None = None,
    ignore: Sequence[str] = (),
    rows: int | None = None,
    keep: Mapping[str, BaseDistribution | None] | None = None,
) -> Guess:
    """What is not given is guessed from names and values. `rows`: of the whole table, if the frame is a sample of it.
    `keep` are columns that are parameters, whatever they look like, None: with a guessed range. It and `ignore` may
    have patterns like 'u_*'."""
    columns = _Columns(list(frame.columns))
    for role, name in (("objective", objective), ("task", task)):
        if name is not None and name not in columns.left:
            raise UserError(
                f"there is no column {name!r}{closest(name, frame.columns)}; pass --{role} one of "
                f"{', '.join(frame.columns)}"
            )
    for pattern in ignore:
        for column in _matching("--ignore", pattern, frame.columns):
            if column in columns.left and column not in (objective, task):
                columns.take(column, "left out, as asked")
    kept: dict[str, BaseDistribution | None] = {}
    for pattern, dist in (keep or {}).items():
        kept |= dict.fromkeys(
            (c for c in _matching("--keep", pattern, columns.left) if c not in (objective, task)), dist
        )
    columns.left = [c for c in columns.left if c not in kept]
    objective, direction = _objective(frame, columns, objective, direction)
    task = _task(frame, columns, task)
    rename = _prefixed(columns, kept)
    left = [c for c in frame.columns if c in columns.left or c in kept]
    kept = {rename.get(name, name): dist for name, dist in kept.items()}
    space, notes = guess_space(frame.select(left).rename(rename), rows=rows, keep=kept)
    back = {new: old for old, new in rename.items()}
    notes = columns.notes | {back.get(name, name): why for name, why in notes.items()}
    notes = {c: notes[c] for c in frame.columns}
    return Guess(space, objective, direction, task, rename, notes, frame.height, rows or frame.height)


def _matching(option: str, pattern: str, columns: Sequence[str]) -> list[str]:
    found = [pattern] if pattern in columns else [c for c in columns if fnmatchcase(c, pattern)]
    if not found:
        raise UserError(
            f"{option} {pattern} matches no column{closest(pattern, columns)}; the columns are {', '.join(columns)}"
        )
    return found


def guess_space(
    frame: pl.DataFrame,
    ignore: Iterable[str] = (),
    rows: int | None = None,
    keep: Mapping[str, BaseDistribution | None] | None = None,
) -> tuple[Space, dict[str, str]]:
    """The parameters among the columns, and for every column what it was taken for and why."""
    skip, keep = set(ignore), keep or {}
    found: dict[str, BaseDistribution] = {}
    notes: dict[str, str] = {}
    for column in frame.columns:
        if column in skip:
            continue
        made, notes[column] = keep.get(column), "as asked"
        if made is None:
            made, notes[column] = parameter(frame[column], rows, wanted=column in keep)
        if made is None and column in keep:
            raise UserError(f"{column} cannot be a parameter: {notes[column].removeprefix('left out: ')}")
        if made is not None:
            found[column] = made
    conditions = guess_conditions(frame, found)
    for column in conditions:
        notes[column] = f"{notes[column].split('; ')[0]}; other rows have none"
    if not found:
        reasons = "".join(f"\n  {column}: {why}" for column, why in notes.items())
        raise UserError(f"no column looks like a parameter; write [space] by hand{reasons}")
    return Space(found, conditions=conditions), notes


def guess_conditions(frame: pl.DataFrame, found: Mapping[str, BaseDistribution]) -> dict[str, str]:
    """Of columns that are empty exactly where another one has certain values, or is empty as well. Choices are
    preferred to whole numbers; other numbers may fit by chance."""
    filled = frame.select(list(found)).fill_nan(None).select(pl.all().is_not_null())
    gaps = {name: (filled[name].sum(), name) for name in found if not filled[name].all()}
    conditions: dict[str, str] = {}
    for name in sorted(gaps, key=lambda name: (-gaps[name][0], name)):  # parents have fewer gaps
        for parent in sorted(found, key=lambda other: isinstance(found[other], IntDistribution)):
            sure = parent != name and (parent not in gaps or parent in conditions)
            if sure and (text := _condition(frame, filled[name], parent, found[parent])) is not None:
                conditions[name] = text
                break
    return conditions


def _condition(frame: pl.DataFrame, there: pl.Series, parent: str, dist: BaseDistribution) -> str | None:
    cells = frame[parent]
    having, lacking = cells.filter(there), cells.filter(~there).drop_nulls()
    if min(len(having), len(lacking)) < ENOUGH or having.null_count() or isinstance(dist, FloatDistribution):
        return None
    with_it, without = (_choices(part.unique(maintain_order=True).to_list(), dist) for part in (having, lacking))
    split = None if with_it is None or without is None else split_of(parent, dist, with_it, without)
    return None if split is None or any(map(split.holds, without or ())) else split.text


def _choices(cells: Sequence[Any], dist: BaseDistribution) -> list[Any] | None:
    """As the space has them; None when some are no value of the parameter."""
    axis = axis_of("x", dist)
    u = axis.encode(cells)
    return [axis.decode(float(x)) for x in u] if np.isfinite(u).all() else None


def _objective(
    frame: pl.DataFrame, columns: _Columns, name: str | None, direction: Direction | None
) -> tuple[str, Direction]:
    numeric = [c for c in columns.left if is_numeric(frame[c])]
    results = [c for c in numeric if _is_result(c)]
    if name is None:
        exact = [c for c in results if len(words(c)) == 1]
        several = exact or results
        if len(several) != 1:
            found = f"{', '.join(several)} look like results" if several else "no column has a name like loss or score"
            raise Unclear(
                f"which column is the objective? {found}; pass --objective one of {', '.join(several or numeric)}",
                several or numeric,
            )
        name, how = several[0], "the objective, by its name"
    else:
        how = "the objective, as asked"
    told = direction_of(name)
    sure = direction is not None or told is not None
    direction = direction or told or "minimize"
    how += f"; {'larger' if direction == 'maximize' else 'smaller'} is better"
    how += "" if sure else " (assumed: pass --maximize if not)"
    columns.take(name, how)
    for other in results:
        if other != name:
            columns.take(other, f"left out: looks like another result (--objective {other} to use it)")
    return name, direction


def direction_of(name: str) -> Direction | None:
    """Of a result, by its name. None: that does not tell."""
    known = set(words(name))
    if known & HIGHER and not known & LOWER:
        return "maximize"
    return "minimize" if known & LOWER else None


def result_and_task(frame: pl.DataFrame, parameters: Collection[str], result: str | None) -> tuple[str, str | None]:
    """Which of the other columns are the objective and the task."""
    columns = _Columns([c for c in frame.columns if c not in parameters])
    objective, _ = _objective(frame, columns, result, None)
    return objective, _task(frame, columns, None)


def _is_result(column: str) -> bool:
    parts = words(column)
    return bool(parts) and (parts[-1] in LOWER | HIGHER | NEUTRAL or bool(UNMISTAKABLE & set(parts)))


def _task(frame: pl.DataFrame, columns: _Columns, name: str | None) -> str | None:
    if name is not None:
        columns.take(name, "the task, as asked")
        return name
    found = []
    for word in TASKS:
        for column in columns.left:
            parts = words(column)
            named = word in parts and parts[-1] in (word, "id", "name")
            if named and frame[column].n_unique() <= frame.height / 2:
                found.append(column)
    for i, column in enumerate(found := list(dict.fromkeys(found))):
        n = frame[column].drop_nulls().n_unique()
        counted = "1 task" if n == 1 else f"{n} tasks"
        what = f"the task, by its name; {counted}" if i == 0 else f"left out: could be the task (--task {column})"
        columns.take(column, what)
    return found[0] if found else None


def _prefixed(columns: _Columns, kept: Iterable[str]) -> dict[str, str]:
    """Tables of trackers mark the parameters; then nothing else is one, unless it is to be kept."""
    for prefix in PREFIXES:
        marked = [c for c in (*columns.left, *kept) if c.startswith(prefix) and c != prefix]
        if not marked:
            continue
        for column in [c for c in columns.left if c not in marked]:
            columns.take(column, f"left out: does not begin with {prefix!r} as the parameters do")
        return {c: short for c in marked if (short := c.removeprefix(prefix)) not in kept}
    return {}
