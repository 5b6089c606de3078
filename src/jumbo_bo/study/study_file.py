"""study.toml: everything `jumbo run`, `ask`, `tell`, `status` and `report` need to know about a study.

`load` checks all of it at once. A mistake is an error that names the file, the key, what was found and what to write.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from jumbo_bo.data.goals import Goal, in_place
from jumbo_bo.data.history import History
from jumbo_bo.data.limits import Limit
from jumbo_bo.data.spaces import conditions_in, distributions_in
from jumbo_bo.data.storage import checked, located, sqlite_file
from jumbo_bo.errors import InputError, UserError
from jumbo_bo.methods import DEFAULT, METHODS
from jumbo_bo.paths import at_home
from jumbo_bo.space.beliefs import Belief
from jumbo_bo.space.space import Params, Space
from jumbo_bo.study import toml
from jumbo_bo.study.goals import goals_in
from jumbo_bo.study.job import Job, job_of
from jumbo_bo.study.old_runs import DIRECTION, OldRuns, files, old_runs_of, read
from jumbo_bo.study.stock import stock

TABLES = ("history", "objective", "constraints")  # keys that are not fields of `StudyFile`
OTHERS = ("path", "old_runs", "job", "defaults", "beliefs", "reference")  # fields that are no keys
UNSAFE = re.compile(r'^[.~ ]|[/\\:*?"<>|]')  # in the name of a folder


@dataclass(frozen=True)
class Stop:
    """`jumbo run` ends when a gain larger than `gain` is less likely than `chance`."""

    gain: float  # in the units of the objective
    chance: float = 0.05


@dataclass(frozen=True)
class StudyFile:
    path: Path
    name: str
    space: Space
    storage: str = "sqlite:///study.db"  # as written; see `address`
    direction: Literal["minimize", "maximize"] = "minimize"
    trials: int = 50
    method: str = DEFAULT
    seed: int = 0
    old_runs: tuple[OldRuns, ...] = ()
    job: Job = Job(())
    stop: Stop | None = None
    bounds: tuple[float, float] | None = None  # what values are possible
    candidates: str | None = None  # a file with the configurations to choose from; see `listed`
    limits: tuple[Limit, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)  # parameter -> its value in trials from before it was one
    beliefs: Mapping[str, Belief] = field(default_factory=dict)  # parameter -> what it is probably about
    goals: tuple[Goal, ...] = ()  # where there are several; `direction` is that of the first
    reference: Mapping[str, float] = field(default_factory=dict)  # goal -> the worst value that is still of use

    @property
    def names(self) -> list[str]:
        """Of several goals."""
        return [goal.name for goal in self.goals]

    @property
    def quantities(self) -> tuple[Goal | Limit, ...]:
        """What is measured beside the value, and has a model of its own."""
        return (*self.goals[1:], *self.limits)

    @property
    def folder(self) -> Path:
        return self.path.absolute().parent

    @property
    def runs(self) -> Path:
        """Where every trial leaves its files."""
        return self.folder / f"{self.name}.runs"

    @property
    def address(self) -> str:
        """The storage, wherever the command is started from."""
        return located(self.storage, self.folder)

    @cached_property
    def listed(self) -> list[Params] | None:
        """The configurations to choose from; None: the whole space."""
        if self.candidates is None:
            return None
        try:
            return stock(self.folder / at_home(self.candidates), self.space)
        except UserError as error:
            raise UserError(f"{self.path}, candidates: {error}") from error

    @property
    def n_configurations(self) -> int | None:
        """That there are to try; None when they cannot be counted."""
        return self.space.cardinality if self.listed is None else len(self.listed)

    def history(self) -> History | None:
        """The old runs of all sources, None when the file names none."""
        parts, names = [], [one.name for one in self.quantities]
        for i, source in enumerate(self.old_runs, 1):
            try:
                parts.append(in_place(read(source, self.space, self.direction, self.folder, names), self.names))
            except (UserError, OSError, UnicodeDecodeError) as error:
                raise UserError(f"{self.path}, {_numbered(i, self.old_runs)} ({source.kind}): {error}") from error
        try:
            return History.combine(*parts) if parts else None
        except UserError as error:  # two targets
            raise UserError(f"{self.path}, history: {error}") from error

    def old_files(self) -> tuple[Path, ...]:
        """All files that the old runs are in; none when some are elsewhere, such as in a database on a server."""
        parts = [files(source, self.folder) for source in self.old_runs]
        return tuple(path for part in parts for path in part) if all(parts) else ()


def load(path: str | os.PathLike[str]) -> StudyFile:
    file = Path(at_home(path))
    top = toml.read(file)
    own = [f.name for f in fields(StudyFile) if f.name not in OTHERS]
    top.only(*own, *TABLES)
    name = top.take("name", NAME)
    storage = top.take("storage", toml.TEXT, StudyFile.storage)
    try:
        _check_kept(storage)
    except UserError as error:
        raise top.error(f"storage: {error}") from None
    space = toml.space(top)
    entries = top.values.get("history", [])
    entries = [entries] if isinstance(entries, dict) else entries  # [history] is as good as [[history]]
    if not (isinstance(entries, list) and all(isinstance(e, dict) for e in entries)):
        raise top.wrong("history", 'tables: [[history]] and below it files = "runs/*.csv"')
    limits = tuple(_limits(top.table("limits"), space)) if "limits" in top.values else ()
    goals, reference = goals_in(top, space)
    value, names = goals[0].name if goals else None, [*(g.name for g in goals[1:]), *(limit.name for limit in limits)]
    old_runs = tuple(
        old_runs_of(toml.Table(file, _numbered(i, entries), entry), space, names, value)
        for i, entry in enumerate(entries, 1)
    )
    return StudyFile(
        file,
        name,
        space,
        storage,
        goals[0].direction if goals else top.take("direction", DIRECTION, StudyFile.direction),
        top.take("trials", toml.whole(1), StudyFile.trials),
        top.take("method", toml.one_of(*METHODS), StudyFile.method),
        top.take("seed", toml.whole(0), StudyFile.seed),
        old_runs,
        job_of(top.table("objective"), space, names, [g.name for g in goals]) if "objective" in top.values else Job(()),
        _stop(top.table("stop")) if "stop" in top.values else None,
        tuple(top.take("bounds", toml.RANGE)) if "bounds" in top.values else None,
        top.take("candidates", toml.TEXT, None),
        limits,
        toml.defaults(top, space),
        toml.beliefs(top, space),
        goals,
        reference,
    )


def space_changes(record: Mapping[str, str], space: Space) -> list[str]:
    """What is different now, a line for each parameter. Their order does not matter."""
    was, now = distributions_in(record), space.distributions
    when = conditions_in(record)
    changed = [
        f"{name}: was {span(was[name], when.get(name))}, now {span(dist, space.conditions.get(name))}"
        if name in was
        else f"{name}: new"
        for name, dist in now.items()
        if name not in was or was[name] != dist or when.get(name) != space.conditions.get(name)
    ]
    return changed + [f"{name}: gone" for name in was if name not in now]


def span(dist: BaseDistribution, when: str | None = None) -> str:
    """A parameter's values in words."""
    if when is not None:
        return f"{span(dist)}, when {when}"
    if isinstance(dist, CategoricalDistribution):
        return " | ".join(map(repr, dist.choices))
    assert isinstance(dist, FloatDistribution | IntDistribution)
    details = {
        "integer": isinstance(dist, IntDistribution),
        "log": dist.log,
        f"step {dist.step}": dist.step not in (None, 1),
    }
    said = ", ".join(word for word, holds in details.items() if holds)
    return f"{dist.low} to {dist.high} ({said})" if said else f"{dist.low} to {dist.high}"


def _stop(table: toml.Table) -> Stop:
    table.only(*(f.name for f in fields(Stop)))
    return Stop(float(table.take("gain", toml.NOT_NEGATIVE)), table.take("chance", toml.SHARE, Stop.chance))


def _limits(table: toml.Table, space: Space) -> Iterator[Limit]:
    for name in table.values:
        its = table.table(name)
        its.only("min", "max")
        low, high = its.take("min", toml.NUMBER, -math.inf), its.take("max", toml.NUMBER, math.inf)
        if name in space.names:
            raise table.error(f"{its.name} is a parameter; limits are for what is measured")
        try:
            yield Limit(name, float(low), float(high))
        except InputError as error:
            raise table.error(f"{its.name}: {error}") from None


def _check_kept(address: str) -> None:
    url = checked(address)
    if url is not None and url.get_backend_name() == "sqlite" and sqlite_file(url) is None:
        raise UserError(f"{address!r} would be lost when the process ends; write sqlite:///study.db")


def _is_name(value: Any) -> bool:  # also of a folder, see StudyFile.runs
    return toml.is_text(value) and len(value) <= 100 and value.isprintable() and not UNSAFE.search(value)


NAME = toml.Check(_is_name, 'text that can name a folder, for example "widgets"')


def _numbered(i: int, several: Sequence[object]) -> str:
    return f"history {i}" if len(several) > 1 else "history"
