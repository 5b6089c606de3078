"""Old runs: K tasks on the unit cube, oriented so that larger is better.

Notation
    u       (n, d) configurations in [0, 1], see space/space.py
    failed  (f, d) configurations without a value: NaN, infinite, missing
    y       (n,)   objective, larger is better
    z       (n,)   = warp(y), comparable between tasks, see warp.py
    tasks   K old tasks (paper: D^(1) ... D^(K)), each with its own inputs
    target  old data of the new problem itself (paper: D^f), or None

frames.py turns a table into these numbers. What it could not use is counted and shown by `summary()`.
"""

from __future__ import annotations

import hashlib
import html
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from jumbo_bo.data import likeness
from jumbo_bo.data.frames import Columns, Frame, Options, Source, check_direction, closest, to_polars
from jumbo_bo.data.stream import Collector
from jumbo_bo.data.summary import Report, notes, some, table
from jumbo_bo.data.task import Task as Task
from jumbo_bo.data.task import merged
from jumbo_bo.errors import InputError, brief, clip
from jumbo_bo.extras import later
from jumbo_bo.space.space import Array, Space

if TYPE_CHECKING:
    import polars as pl
else:
    pl = later("polars")  # a slow import, and with a cached net nobody needs it

TASKS_COMPARED = 40  # by `correlations`


@dataclass(frozen=True, eq=False)
class History:
    """Old runs of related problems.

    >>> from optuna.distributions import FloatDistribution
    >>> frame = pl.DataFrame({"lr": [0.1, 0.2], "loss": [3.0, 1.0]})
    >>> History.from_frame(frame, Space({"lr": FloatDistribution(0, 1)}), objective="loss").tasks[0].y
    array([-3., -1.])
    """

    space: Space
    tasks: tuple[Task, ...]
    target: Task | None = None
    direction: str = "minimize"  # of the user's objective; y is oriented already
    constant: tuple[Task, ...] = ()  # every value the same: nothing to learn, kept out of training
    reports: tuple[Report, ...] = ()

    def __post_init__(self) -> None:
        check_direction(self.direction)
        for t in self._all:
            if t.u.shape[1] != self.space.d:
                raise InputError(f"task {t.name!r} has {t.u.shape[1]} parameters, but the space has {self.space.d}")
        names = [t.name for t in self._all]
        if len(set(names)) < len(names):
            raise InputError(f"two tasks share a name: {sorted(names)}")

    @classmethod
    def from_frame(cls, frame: Any, space: Space, *, source: str = "frame", **columns: Unpack[Options]) -> History:
        """The history in a Polars, pandas or Arrow frame with one row per old run. Options: the fields of `Columns`."""
        options = Columns.of(columns)
        return checked(from_source(to_polars(frame), space, options, Source(source, task=source)), options)

    @classmethod
    def empty(cls, space: Space, direction: str = "minimize") -> History:
        return cls(space, (), direction=direction)

    @classmethod
    def combine(cls, *histories: History) -> History:
        """One history of several; tasks of the same name become one."""
        if not histories:
            raise InputError("nothing to combine; use History.empty(space) to start without old runs")
        space = histories[0].space
        if any(h.space.fingerprint != space.fingerprint for h in histories):
            raise InputError("histories of different spaces cannot be combined; read each again with the same space")
        targets = sorted({h.target.name for h in histories if h.target})
        if len(targets) > 1:
            raise InputError(f"histories have different targets {targets}; only one task can be the new problem")
        tasks = merged(t for h in histories for t in h._all)
        reports = tuple(r for h in histories for r in h.reports)
        return _assemble(space, tasks, targets[0] if targets else None, histories[0].direction, reports)

    def __add__(self, other: History) -> History:
        return History.combine(self, other)

    @property
    def _all(self) -> tuple[Task, ...]:
        return (*([self.target] if self.target else []), *self.tasks, *self.constant)

    @property
    def n_rows(self) -> int:
        """Rows to learn from, those of the target included."""
        return sum(len(t.y) for t in self.tasks) + (len(self.target.y) if self.target else 0)

    @property
    def n_usable(self) -> int:
        """Rows that these are all of, or a sample when there are too many (docs/big.md)."""
        return sum(t.of[0] for t in self.tasks) + (self.target.of[0] if self.target else 0)

    @cached_property
    def n_forbidden(self) -> int:
        """Rows that do not meet the constraints of the space. They are learned from all the same."""
        if not self.space.constraints:
            return 0
        return sum(int((~self.space.allowed(t.u)).sum()) for t in self._all if t not in self.constant)

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of everything that training sees."""
        digest = hashlib.sha256(self.space.fingerprint.encode())
        for kind, t in [*(("task", t) for t in self.tasks), *([("target", self.target)] if self.target else [])]:
            digest.update(f"\n{kind} {len(t.y)} {t.name!r}\n".encode())
            digest.update(t.u.tobytes())
            digest.update(t.y.tobytes())
            digest.update(t.failed.tobytes())
            if t.sampled:
                digest.update(f"\nof {t.of}\n".encode())
        return digest.hexdigest()

    def sign(self, task: str) -> float:
        """+1 when the user's values of this task are maximised, -1 when they are minimised."""
        direction = next((r.direction for r in self.reports if task in r.read), self.direction)
        return -1.0 if direction == "minimize" else 1.0

    def wide(self) -> tuple[Array, Array, Array]:  # -> u (n, d), z (n, K), weight (n, K)
        """Sorted configurations, one column per task. weight: how many rows were averaged, 0 where not observed."""
        k_tasks, names = len(self.tasks), [f"u{i}" for i in range(self.space.d)]
        if k_tasks == 0:
            return np.empty((0, self.space.d)), np.empty((0, 0)), np.empty((0, 0))
        long = pl.DataFrame(np.vstack([t.u for t in self.tasks]), schema=names).with_row_index("row").sort(names)
        u, order = long.select(names).to_numpy(), long["row"].to_numpy()
        new = np.r_[True, np.any(u[1:] != u[:-1], axis=1)]  # sorted, so equal configurations are neighbours
        k = np.repeat(np.arange(k_tasks), [len(t.y) for t in self.tasks])[order]
        cell, n = (np.cumsum(new) - 1) * k_tasks + k, int(new.sum())
        z_rows = np.concatenate([t.z for t in self.tasks])[order]
        weight: Array = np.bincount(cell, minlength=n * k_tasks).astype(float)
        z: Array = np.bincount(cell, weights=z_rows, minlength=n * k_tasks) / np.maximum(weight, 1.0)
        return np.ascontiguousarray(u[new]), z.reshape(n, k_tasks), weight.reshape(n, k_tasks)

    def correlations(self, neighbours: bool = False) -> tuple[tuple[str, ...], Array]:  # -> K names, (K, K)
        """Spearman's rank correlation between tasks, target first, at most TASKS_COMPARED of them: 1 when they agree
        which configurations are good. Measured on configurations that both have tried, NaN where these are too few;
        with `neighbours` such pairs are estimated from configurations that are close to each other."""
        tasks = (*([self.target] if self.target else []), *self.tasks)[:TASKS_COMPARED]
        rho = likeness.on_shared([(t.u, t.y) for t in tasks])
        if neighbours and np.isnan(rho).any():
            near = likeness.of_neighbours([(self.space.transform(t.u), t.y) for t in tasks])
            rho = np.where(np.isnan(rho), near, rho)
        return tuple(t.name for t in tasks), rho

    def summary(self) -> str:
        """A table of the tasks, then dropped rows with an example each, then columns that were missing or ignored."""
        read: Counter[str] = Counter()
        for r in self.reports:
            read.update(r.read)
        target = f", target {self.target.name!r}" if self.target else ""
        tasks = "1 old task" if len(self.tasks) == 1 else f"{len(self.tasks)} old tasks"
        head = f"{tasks}{target}: {self.n_usable:,} rows used"
        head += f" of {read.total():,} read" if self.reports else ""
        total = len({*read, *(t.name for t in self._all)})
        forbidden = self.n_forbidden
        outside = [f"{forbidden:,} of them do not meet the constraints; they are learned from"] if forbidden else []
        few = self.n_rows < self.n_usable
        sample = [f"learning from a random sample of {self.n_rows:,} of them (docs/big.md)"] if few else []
        return "\n".join([head, *outside, *sample, *table(self._table_rows(read), total), *notes(self.reports)])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.summary())}</pre>"

    def _table_rows(self, read: Mapping[str, int]) -> Iterator[tuple[str, ...]]:
        yield "task", "used / read", "values", "scale", "notes"
        for t in self._all:
            n, sign = t.of[0], self.sign(t.name)
            low, high = sorted((sign * float(t.y.min()), sign * float(t.y.max()))) if n else (0.0, 0.0)
            remarks = {
                "target": t is self.target,
                "constant: kept out of training": t.constant and t is not self.target,
                "a single row": n == 1,
                f"a sample of {len(t.y):,}": len(t.y) < n,
                f"{t.repeats:,} repeated": len(t.y) == n and t.repeats > 0,
                f"{t.of[1]:,} failed": t.of[1] > 0,
            }
            used, scale = f"{n:,} / {read.get(t.name, n):,}", "log" if t.warp.sign else "linear"
            said = ", ".join(text for text, holds in remarks.items() if holds)
            yield clip(t.name), used, f"{low:.4g} .. {high:.4g}", scale, said
        for name in sorted(set(read) - {t.name for t in self._all}):
            yield clip(name), f"0 / {read[name]:,}", "", "", "no usable rows"


def from_source(frame: Frame, space: Space, columns: Columns, source: Source) -> History:
    """The history of one source; `checked` refuses one without a usable task, once all sources are in."""
    collector = Collector(space, columns)
    collector.read(frame, source)
    return collected(collector)


def collected(collector: Collector) -> History:
    """The history of all tables that were read."""
    columns = collector.columns
    tasks = [Task(*rows) for rows in collector.tasks()]
    return _assemble(collector.space, tasks, columns.target, columns.direction, tuple(collector.reports))


def checked(history: History, columns: Columns) -> History:
    """The same history when something in it can be used, otherwise an error that says why not."""
    seen = sorted({name for r in history.reports for name in r.read})
    if columns.target is not None and str(columns.target) not in seen:
        raise InputError(
            f"target={brief(columns.target)} is not one of the tasks {seen[:20]}{closest(columns.target, seen)}"
        )
    if history.tasks or history.target:
        return history
    sources = some([r.source for r in history.reports])
    total = sum(sum(r.read.values()) for r in history.reports)
    if total == 0:
        raise InputError(f"{sources}: no rows; to start without old runs use History.empty(space)")
    if history.constant:
        raise InputError(
            f"{sources}: all usable values of {columns.objective!r} are the same within each task, so nothing can be "
            "learned; choose another column with objective= or start with History.empty(space)"
        )
    first = next(d.example for r in history.reports for drops in r.dropped.values() for d in drops)
    raise InputError(
        f"{sources}: none of {total:,} rows can be used; {first}. "
        "Correct the rows, widen the space, or choose other columns with objective=, task= or rename="
    )


def _assemble(space: Space, tasks: Iterable[Task], target: Any, direction: str, reports: tuple[Report, ...]) -> History:
    """Sorted by name, so that neither the order of rows nor of files matters."""
    mine = {t.name: t for t in sorted(tasks, key=lambda t: t.name)}
    new = mine.pop(str(target), None) if target is not None else None
    varied = tuple(t for t in mine.values() if not t.constant)
    constant = tuple(t for t in mine.values() if t.constant)
    return History(space, varied, new, direction, constant, reports)
