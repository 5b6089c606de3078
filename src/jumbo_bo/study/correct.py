"""A correction of a guess, typed as the guess is shown: 'T = 20 to 95 (integer, step 5)', 'gpu = no'."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.frames import closest
from jumbo_bo.errors import UserError, brief, first_line
from jumbo_bo.space.space import Space
from jumbo_bo.space.values import as_numbers, spelling
from jumbo_bo.study.guess import Direction, Guess, guess
from jumbo_bo.study.table import Table

HOW = "no, parameter, objective, task, minimize, maximize, a range like 1e-5 to 0.1 (log), or choices like 16 | 32"
NOT = ("no", "-", "ignore", "none")


@dataclass(frozen=True)
class Wishes:
    """What a person has said about the columns; the rest is guessed."""

    objective: str | None = None
    task: str | None = None
    direction: Direction | None = None
    ignore: tuple[str, ...] = ()
    keep: Mapping[str, BaseDistribution | None] = field(default_factory=dict)

    def guess(self, table: Table) -> Guess:
        return guess(table.frame, self.objective, self.task, self.direction, self.ignore, table.rows, self.keep)


def corrected(wishes: Wishes, frame: pl.DataFrame, guessed: Guess, text: str) -> Wishes:
    """`text` is COLUMN = WHAT; an error says what it could be."""
    column, equals, what = (part.strip() for part in _parts(text, frame.columns))
    if not equals or not what:
        raise UserError(f"write COLUMN = WHAT, where WHAT is {HOW}")
    if column not in frame.columns:
        raise UserError(f"there is no column {brief(column)}{closest(column, frame.columns)}")
    said = what.lower()
    free = replace(
        wishes,
        task=None if wishes.task == column else wishes.task,
        ignore=tuple(name for name in wishes.ignore if name != column),
        keep={name: dist for name, dist in wishes.keep.items() if name != column},
    )
    goal = re.fullmatch(r"(objective)?[, ]*(minimize|maximize)?", said)
    if goal and (goal[1] or goal[2]):
        said_so: Any = goal[2]  # one of the two
        kept = guessed.direction if column == guessed.objective else None
        return replace(free, objective=column, direction=said_so or kept)
    if column == guessed.objective:
        raise UserError(f"{column} is the objective; first say which column is it instead: OTHER = objective")
    if said in NOT:
        return replace(free, ignore=(*free.ignore, column))
    if said == "task":
        return replace(free, task=column)
    dist = None if said in ("parameter", "yes") else _distribution(frame[column], what)
    return replace(free, keep={**free.keep, column: dist})


def _parts(text: str, columns: Sequence[str]) -> tuple[str, str, str]:
    """A name may have an equals sign too."""
    for name in sorted(columns, key=len, reverse=True):
        if re.match(rf"\s*{re.escape(name)}\s*=", text):
            return text.strip()[: len(name)], "=", text.partition(name)[2].partition("=")[2]
    return text.partition("=")


def _distribution(cells: pl.Series, what: str) -> BaseDistribution:
    if ", when " in what:
        raise UserError(
            "leave out 'when ...': it follows from the rows without a value; you can change it in study.toml"
        )
    try:
        made = _choices(cells, what) if "|" in what else _range(cells, what)
        Space({"x": made})
    except ValueError as error:
        raise UserError(f"{what} cannot be used: {first_line(error)}") from None
    return made


def _choices(cells: pl.Series, what: str) -> BaseDistribution:
    """As the column has them: numbers, yes or no, or text."""
    parts = [part.strip() for part in what.split("|")]
    bare = [
        part[1:-1] if part[:1] in ("'", '"') and part[-1:] == part[:1] and len(part) > 1 else part for part in parts
    ]
    if {text.lower() for text in bare} <= {"true", "false"}:
        return CategoricalDistribution((False, True))
    numbers = as_numbers(bare)
    if all(map(math.isfinite, numbers)) and bare == parts:
        return CategoricalDistribution([int(x) if x == int(x) else float(x) for x in sorted(numbers)])
    seen = {spelling(cell) for cell in cells.drop_nulls().unique()}
    for text in bare:  # a new one is welcome, a misspelt one is not
        if spelling(text) not in seen and (meant := closest(text, sorted(seen))):
            raise UserError(f"{cells.name} is never {brief(text)}{meant}")
    return CategoricalDistribution(bare)


def _range(cells: pl.Series, what: str) -> BaseDistribution:
    found = re.fullmatch(r"(\S+)\s+to\s+([^\s,(]+)(.*)", what)
    if not found:
        raise UserError(f"{brief(what)} is not understood; write {HOW}")
    low, high = (_number(text) for text in found.group(1, 2))
    details = re.sub(r"[,=()]", " ", found[3]).lower().split()
    step = _number(details[details.index("step") + 1]) if "step" in details[:-1] else None
    rest = [word for i, word in enumerate(details) if word != "step" and details[i - 1 : i] != ["step"]]
    if unknown := [word for word in rest if word not in ("log", "integer", "int", "float")]:
        raise UserError(f"{brief(unknown[0])} is not understood; after a range stand integer, log or step 5")
    log, whole = "log" in rest, "." not in found[1] + found[2] and _is_whole(cells)
    if not low < high:
        raise UserError(f"{what} has no room between {low:g} and {high:g}")
    if log and (low <= 0 or step is not None):
        raise UserError(f"{what} is not possible: a log scale starts above 0 and has no step")
    if {"int", "integer"} & set(rest) or (whole and "float" not in rest):
        if not all(x == int(x) for x in (low, high, step or 1)):
            raise UserError(f"{what} has a number that is not whole")
        return IntDistribution(int(low), int(high), log=log, step=int(step or 1))
    return FloatDistribution(low, high, log=log, step=step)


def _is_whole(cells: pl.Series) -> bool:
    v = as_numbers(cells.drop_nulls().unique().to_list())
    return all(math.isfinite(x) and x == int(x) for x in v)


def _number(text: str) -> float:
    value = float(as_numbers([text])[0])
    if not math.isfinite(value):
        raise UserError(f"{brief(text)} is not a number")
    return value
