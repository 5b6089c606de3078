"""Tables of any length, read batch by batch -> each task's numbers and a report of what could not be used.

Notation
    u       (n, d) configurations in [0, 1], see space/space.py
    y       (n,)   objective, larger is better; the direction is flipped here and nowhere later
    code    (n,)   index of each row's task
    key     (n,)   a random number of each row, see sample.py

Every row is checked and counted. Once more than `most_rows` are held, rows without a fault that the sample does not
want are only counted; all others are encoded, so the rules for them are the same in every table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np

from jumbo_bo.data.cells import NO_TASK, Codes, Faults, Mask, objective, parameter, plain, task_codes, without_nan
from jumbo_bo.data.frames import Columns, Frame, Source, chosen, closest
from jumbo_bo.data.sample import Sample, by_task
from jumbo_bo.data.summary import Dropped, Report
from jumbo_bo.errors import InputError
from jumbo_bo.extras import later
from jumbo_bo.space.space import Array, Space

if TYPE_CHECKING:
    import polars as pl
else:
    pl = later("polars")  # a slow import, and with a cached net nobody needs it

# More do not help: training looks at 1.28 million rows per net. With 0.1, 1, 2 and 4 million rows the nets explain
# 0.918, 0.921, 0.922 and 0.920 of the variance of three functions in 12 dimensions (benchmarks/rows.py --quality).
MOST_ROWS = 2_000_000
MOST_NUMBERS = 50_000_000  # ... and no more than this in u, so that a wide space needs no more memory
FAILED_SHARE = 10  # one in so many may be a run that failed
BATCH = 100_000  # rows; larger ones fall out of the processor's cache
KEYS = 2**32 - 1  # the seed of the keys; parameters that a table lacks use their index


class TaskRows(NamedTuple):
    name: str
    u: Array
    y: Array
    failed: Array  # (f, d)
    of: tuple[int, int]  # rows with and without a value that these were drawn from


class Collector:
    """Tables in, tasks out. No usable row is not an error here: other tables may have some."""

    def __init__(self, space: Space, columns: Columns, batch: int = BATCH) -> None:
        self.space, self.columns, self.batch = space, columns, batch
        most = columns.most_rows or min(MOST_ROWS, MOST_NUMBERS // space.d)
        self._rows, self._failed = Sample(space.d, most), Sample(space.d, max(1, most // FAILED_SHARE), best=False)
        self._names: dict[str, int] = {}  # of all tasks
        self.reports: list[Report] = []

    def read(self, frame: Frame, source: Source, seen: Callable[[int], None] = lambda n: None) -> None:
        """All rows of a table; `seen` is told the length of each batch."""
        table = _Table(frame, self.space, self.columns, source)
        for rows in batches(table.frame, self.batch):
            self._add(table, rows)
            seen(rows.height)
        if source.failed:
            code = self._everywhere(table)[np.full(len(source.failed), table.names[source.task])]
            self._failed.add(code, table.keys.random(len(code)), np.zeros(len(code)), np.vstack(source.failed))
        self.reports.append(table.report())

    def tasks(self) -> Iterator[TaskRows]:
        """Of a task that has no row with a value nothing is kept."""
        n = len(self._names)
        of = [np.pad(sample.counts, (0, n - len(sample.counts))).tolist() for sample in (self._rows, self._failed)]
        code, y, u = self._rows.rows()
        lost, _, failed = self._failed.rows()
        parts = zip(self._names, by_task(code, n), by_task(lost, n), *of, strict=True)
        for name, rows, bad, n_rows, n_failed in parts:
            if len(rows):
                its = u[rows], y[rows], failed[bad]
                for array in its:
                    array.setflags(write=False)  # so that a task need not copy it
                yield TaskRows(name, *its, (n_rows, n_failed))

    def _add(self, table: _Table, rows: pl.DataFrame) -> None:
        batch = table.batch(rows)
        code = self._everywhere(table)[batch.code]
        if self._rows.full:
            good, y = plain(rows, self.space, self.columns.task, self.columns.objective)
            idle = good & ~self._rows.wanted(code, batch.key, table.sign * y)
            self._rows.count(code[idle])
            batch, code = batch.only(np.flatnonzero(~idle)), code[~idle]
        y, u, ok, failed = table.parse(batch)
        self._rows.add(*_where(ok, code, batch.key, y, u))
        if failed.any():
            self._failed.add(*_where(failed, code, batch.key, np.zeros(len(code)), u))

    def _everywhere(self, table: _Table) -> Codes:
        """A table's code of a task -> the code it has here."""
        return np.array([self._names.setdefault(name, len(self._names)) for name in table.names], dtype=np.int64)


class _Batch(NamedTuple):
    rows: pl.DataFrame
    number: Codes  # in the table
    code: Codes  # of the task, as the table counts them
    key: Array
    noise: dict[int, Array]  # by parameter: those that the table lacks

    def only(self, index: Codes) -> _Batch:
        noise = {i: values[index] for i, values in self.noise.items()}
        return _Batch(self.rows[index], self.number[index], self.code[index], self.key[index], noise)


class _Table:
    """One table: its columns, and what has been found in the rows so far."""

    def __init__(self, frame: Frame, space: Space, columns: Columns, source: Source) -> None:
        self.space, self.columns, self.source = space, columns, source
        self.frame, self.used, self.extra = chosen(frame, space, columns, source)
        self.sign = -1.0 if columns.direction == "minimize" else 1.0
        self.fill = columns.fill or {}
        self.names: dict[str, int] = {} if columns.task is not None else {source.task: 0}
        seed = crc32(source.task.encode())
        self.keys = np.random.default_rng([seed, KEYS])
        # Noise, so that the net learns to ignore the parameter; a constant would pull suggestions towards it.
        # Another for each source: late rows are often the better ones, and must not share their noise.
        lacking = [i for i, name in enumerate(space.names) if name not in self.used and name not in self.fill]
        self.noise = {i: np.random.default_rng([seed, i]) for i in lacking}
        self._n = 0  # rows so far
        self._read: Codes = np.zeros(len(self.names), np.int64)  # by task
        self._dropped: dict[tuple[int, int], Dropped] = {}  # by task and fault

    def batch(self, rows: pl.DataFrame) -> _Batch:
        """The next rows, counted."""
        code: Codes = np.zeros(rows.height, np.int64)
        if self.columns.task is not None:
            code = task_codes(without_nan(rows.select(self.columns.task)).to_series(), self.names)
        counts = np.bincount(code, minlength=len(self.names))
        counts[: len(self._read)] += self._read
        self._read = counts
        number = np.arange(self._n, self._n + rows.height)
        self._n += rows.height
        noise = {i: generator.random(rows.height) for i, generator in self.noise.items()}
        return _Batch(rows, number, code, self.keys.random(rows.height), noise)

    def parse(self, batch: _Batch) -> tuple[Array, Array, Mask, Mask]:
        """y (n,), u (n, d), which rows can be used and which ones failed (n,). One without a value has failed."""
        rows = without_nan(batch.rows)
        faults = Faults(rows, batch.number, self.source)
        if self.columns.task is not None:
            faults.add(rows[self.columns.task].is_null().to_numpy(), self.columns.task, "empty", "the name of a task")
        named = faults.code == 0
        y = objective(rows[self.columns.objective], faults) * self.sign
        failed = named & (faults.code > 0)
        u = np.empty((rows.height, self.space.d))
        for i, (name, axis) in enumerate(zip(self.space.names, self.space.axes, strict=True)):
            if name in self.used:
                u[:, i] = parameter(rows[name], axis, self.space.distributions[name], faults)
            else:
                u[:, i] = axis.encode([self.fill[name]])[0] if name in self.fill else axis.snap(batch.noise[i])
        ok = faults.code == 0
        if self.columns.on_bad_rows == "error" and not ok.all():
            raise InputError(f'{faults.example(int(np.argmin(ok)))}; drop the row or pass on_bad_rows="skip"')
        self._drop(faults, batch.code)
        return y, u, ok, failed & np.isfinite(u).all(axis=1) if failed.any() else failed

    def _drop(self, faults: Faults, code: Codes) -> None:
        bad, base = np.flatnonzero(faults.code), len(faults.reasons) + 1
        pairs, first, count = np.unique(code[bad] * base + faults.code[bad], return_index=True, return_counts=True)
        for pair, i, n in zip(pairs.tolist(), bad[first].tolist(), count.tolist(), strict=True):
            task, fault = divmod(pair, base)
            known = self._dropped.get((task, fault)) or Dropped(faults.reason(fault), 0, faults.example(i))
            self._dropped[task, fault] = replace(known, count=known.count + n)

    def report(self) -> Report:
        order = sorted(self.names, key=lambda name: name == NO_TASK)  # otherwise as they were found
        read = {name: int(self._read[self.names[name]]) for name in order}
        dropped: dict[str, tuple[Dropped, ...]] = {}
        name_of = {code: name for name, code in self.names.items()}
        for task, fault in sorted(self._dropped, key=lambda pair: (name_of[pair[0]] == NO_TASK, pair)):
            dropped[name_of[task]] = (*dropped.get(name_of[task], ()), self._dropped[task, fault])
        if skipped := self.source.skipped:
            read[self.source.task] += sum(d.count for d in skipped)
            dropped[self.source.task] = (*skipped, *dropped.get(self.source.task, ()))
        return Report(self.source.name, self.columns.direction, read, dropped, self._missing(), self.extra)

    def _missing(self) -> dict[str, str]:
        out = {}
        for name in self.space.names:
            if name not in self.used:
                how = repr(self.fill[name]) if name in self.fill else "random values"
                out[name] = f"filled with {how}{closest(name, self.extra, ' (closest column: {!r})')}"
        return out


def batches(frame: Frame, size: int) -> Iterator[pl.DataFrame]:
    if isinstance(frame, pl.DataFrame):
        yield from frame.iter_slices(size)
    else:
        yield from frame.collect_batches(chunk_size=size)


def _where(mask: Mask, *arrays: Any) -> tuple[Any, ...]:
    return arrays if mask.all() else tuple(array[mask] for array in arrays)
