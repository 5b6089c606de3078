"""The table of old runs that columns are guessed from: all rows, or of very many a sample that shows what all have.

Every row is looked at, batch by batch. A sample drawn at random would miss what is rare, so the first row with each
value of a column that has few, and the rows with a column's smallest and largest number, are added to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from jumbo_bo.data.files import File, files_of, readable, scan
from jumbo_bo.data.frames import Frame
from jumbo_bo.data.stream import batches
from jumbo_bo.errors import UserError

PathLike = str | os.PathLike[str]
Rows = npt.NDArray[np.intp]

MOST_ROWS = 100_000  # that a guess is made from, beside those with something rare
FEW = 1_000  # different values of a column up to which each is in the sample: also the names of tasks
BATCH = 2**17  # rows looked at at once


class Table(NamedTuple):
    frame: pl.DataFrame
    rows: int  # in the files


def read_table(files: PathLike | Iterable[PathLike], most: int = MOST_ROWS) -> Table:
    """The rows of all files, one below the other. Of a column with numbers in one file and text in another: text."""
    opened = []
    for file in files_of(files):
        with readable(file):
            frame = scan(file)
            opened.append((file, frame, int(frame.lazy().select(pl.len()).collect().item())))
    if not (rows := sum(height for _, _, height in opened)):
        raise UserError(
            "the files have no rows, so nothing can be guessed; to start without old runs, run `jumbo init` on its own"
        )
    drawn = None if rows <= most else np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
    return Table(_stacked(list(_parts([(file, frame) for file, frame, _ in opened], drawn))), rows)


def _parts(opened: Sequence[tuple[File, Frame]], drawn: Rows | None) -> Iterator[pl.DataFrame]:
    """All rows, or those drawn and the rare ones, in their order."""
    columns: dict[str, _Column] = {}
    start = 0
    for file, frame in opened:
        with readable(file):
            if drawn is None:
                yield frame.lazy().collect()
                continue
            for batch in batches(frame, BATCH):
                here = drawn[slice(*np.searchsorted(drawn, (start, start + batch.height)))] - start
                rare = [columns.setdefault(cells.name, _Column()).new_in(cells) for cells in batch]
                yield batch[np.unique(np.concatenate([here, *rare]))]
                start += batch.height


class _Column:
    """What has been seen of a column so far."""

    def __init__(self) -> None:
        self.values: set[Any] | None = set()  # None: too many
        self.low, self.high = np.inf, -np.inf

    def new_in(self, cells: pl.Series) -> Rows:
        """Rows with a value not seen before, as long as there are few, and with a number beyond those seen."""
        if cells.dtype.is_nested() or cells.dtype in (pl.Object, pl.Binary):
            return np.zeros(0, np.intp)
        cells = cells.fill_nan(None) if cells.dtype.is_float() else cells
        return np.array([*self._unseen(cells), *self._beyond(cells)], np.intp)

    def _unseen(self, cells: pl.Series) -> list[int]:
        if self.values is None:
            return []
        first = pl.DataFrame({"value": cells}).with_row_index().drop_nulls().unique("value", keep="first")
        if first.height > FEW:
            self.values = None
            return []
        new = [(i, value) for i, value in first.iter_rows() if value not in self.values]
        self.values.update(value for _, value in new)
        if len(self.values) > FEW:
            self.values = None
            return []
        return [i for i, _ in new]

    def _beyond(self, cells: pl.Series) -> list[int]:
        if not (cells.dtype.is_numeric() or cells.dtype == pl.String):
            return []
        text = cells.str.strip_chars() if cells.dtype == pl.String else cells
        numbers = text.cast(pl.Float64, strict=False).to_frame("value")
        finite = numbers.select(pl.when(pl.col("value").is_finite()).then("value")).to_series()
        least, most = finite.arg_min(), finite.arg_max()
        if least is None or most is None:
            return []
        found = [i for i, new in ((least, finite[least] < self.low), (most, finite[most] > self.high)) if new]
        self.low, self.high = min(self.low, finite[least]), max(self.high, finite[most])
        return found


def _stacked(frames: list[pl.DataFrame]) -> pl.DataFrame:
    try:
        return pl.concat(frames, how="diagonal_relaxed")
    except pl.exceptions.PolarsError:
        return pl.concat([frame.cast(pl.String) for frame in frames], how="diagonal")
