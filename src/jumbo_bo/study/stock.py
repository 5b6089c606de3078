"""`candidates` in study.toml: a table of the configurations to choose from, such as what is in stock."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jumbo_bo.data.files import files_of, readable, row_in, scan
from jumbo_bo.data.frames import closest
from jumbo_bo.errors import InputError
from jumbo_bo.extras import later
from jumbo_bo.space.space import Params, Space

if TYPE_CHECKING:
    import polars as pl
else:
    pl = later("polars")


def stock(path: Path, space: Space) -> list[Params]:
    """The configurations in a CSV, TSV, Parquet or JSONL file that meet the constraints, each once. A column for each
    parameter; others are ignored."""
    (file,) = files_of([path])
    with readable(file):
        found = scan(file)
        frame = found.collect() if isinstance(found, pl.LazyFrame) else found
    for name in space.names:
        if name not in frame.columns:
            raise InputError(f"{path} has no column {name!r}{closest(name, frame.columns)}; it has {frame.columns}")
    rows: dict[bytes, Params] = {}
    for i, row in enumerate(frame.select(space.names).iter_rows(named=True)):
        try:
            u = space.encode(row)
        except InputError as error:
            raise InputError(f"{path} {row_in(file, i)}: {error}; correct the row, or widen the space") from None
        rows.setdefault(u.tobytes(), space.decode(u))
    if not rows:
        raise InputError(f"{path} has no rows; leave candidates out to choose from the whole space")
    allowed = [params for params in rows.values() if space.allows(params)]
    if not allowed:
        first = next(iter(rows.values()))
        raise InputError(f"{path}: no row meets the constraints; the first does not meet {space.broken(first)[0]!r}")
    return allowed
