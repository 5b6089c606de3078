"""Files of old runs: which ones a path means, and how each kind is opened.

A file is a Path, or the address of one elsewhere, as text: Polars reads those itself, patterns included.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from jumbo_bo.data.frames import Frame, text_or_typed
from jumbo_bo.errors import InputError, MissingFile, first_line
from jumbo_bo.extras import later
from jumbo_bo.inputs import check_regular, from_json, text_of
from jumbo_bo.paths import at_home

if TYPE_CHECKING:
    import polars as pl
else:
    pl = later("polars")  # a slow import, and with a cached net nobody needs it

PathLike = str | os.PathLike[str]
File = Path | str

FIRST_ROW = {".csv": 2, ".tsv": 2, ".parquet": 0, ".jsonl": 1, ".ndjson": 1}  # as a person counts: the header is row 1
SEPARATOR = {".csv": ",", ".tsv": "\t"}
GUESSED_FROM = 10_000  # rows of a CSV file whose types are guessed first
LINES = 2_000  # of JSONL read at once
MOST_COLUMNS = 10_000
SMALL = 1_000_000  # bytes; the types of a smaller file are found at once


def files_of(path: PathLike | Iterable[PathLike]) -> list[File]:
    if isinstance(path, str | os.PathLike):
        path = [path]
    files: list[File] = []
    for entry in path:
        text = at_home(entry)
        if "://" in text:
            files.append(text)
            continue
        if os.path.isdir(text):
            raise InputError(
                f"{text} is a folder; pass a glob of its files, for example {os.path.join(text, '*.csv')!r}"
            )
        found = [text]
        if glob.has_magic(text) and not os.path.exists(text):
            found = sorted(glob.glob(text, recursive=True))
            if not found:
                raise MissingFile(f"no files match {text!r}; looked from {os.getcwd()}")
        files += [Path(f) for f in found]
    if not files:
        raise InputError("no files given; to start without old runs use History.empty(space)")
    for file in files:
        known = [".csv", ".tsv", ".parquet"] if isinstance(file, str) else list(FIRST_ROW)
        if (kind := _kind(file)) not in known:
            raise InputError(
                f"{file} has an unknown file type {kind!r}; expected one of {', '.join(known)}, or use from_frame"
            )
    return list(dict.fromkeys(files))


def task_names(files: Sequence[File]) -> list[str]:
    """Stems; when two files share one, paths below the folder they have in common."""
    stems = [PurePosixPath(f).stem if isinstance(f, str) else f.stem for f in files]
    if len(set(stems)) == len(stems):
        return stems
    if any(isinstance(f, str) for f in files):
        return [str(f) for f in files]
    paths = [Path(f).absolute() for f in files]
    common = os.path.commonpath([path.parent for path in paths])
    return [path.relative_to(common).as_posix() for path in paths]


@contextmanager
def readable(file: File) -> Iterator[None]:
    """Errors of others while reading it are shown as one line that names it."""
    if isinstance(file, Path):
        check_regular(file)
        if file.stat().st_size == 0:
            raise InputError(f"{file} is empty; delete it or leave it out")
    try:
        yield
    except InputError:
        raise
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, UnicodeError) as error:
        raise InputError(f"{file} cannot be read as {_kind(file)[1:].upper()}: {first_line(error)}") from error


def scan(file: File) -> Frame:
    """The table in it; CSV and Parquet are read only where and when they are needed."""
    kind, here = _kind(file), isinstance(file, Path)
    if kind == ".parquet":
        return pl.scan_parquet(file, glob=not here)
    if kind in SEPARATOR:
        opened = partial(pl.scan_csv, file, separator=SEPARATOR[kind], glob=not here)
        large = isinstance(file, Path) and file.stat().st_size > SMALL
        return opened(schema=_guessed(opened) if large else opened(infer_schema_length=None).collect_schema())
    return _read_jsonl(Path(file))


def row_in(file: File, i: int) -> str:
    """Where a person finds a row."""
    return f"row {i + FIRST_ROW[_kind(file)]}"


def count_rows(files: Iterable[File]) -> int | None:
    """Without reading them, or at the speed of the disk; None where that is not possible."""
    total = 0
    for file in files:
        if _kind(file) == ".parquet":
            rows = pl.scan_parquet(file)
        elif _kind(file) in SEPARATOR and isinstance(file, Path):
            rows = pl.scan_csv(file, infer_schema=False, glob=False)
        else:
            return None
        try:
            total += rows.select(pl.len()).collect().item()
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):  # said when its turn comes
            return None
    return total


def _kind(file: File) -> str:
    return PurePosixPath(file).suffix.lower()


def _guessed(opened: Callable[..., pl.LazyFrame]) -> pl.Schema:
    """The columns' types in a CSV file. The whole file decides: 'auto' may first appear in row 5000. Types guessed
    from the first rows are right when all others can be read with them: finding out takes half the time."""
    guess = opened(infer_schema_length=GUESSED_FROM).collect_schema()
    text = [name for name, dtype in guess.items() if dtype == pl.String]
    floats = [name for name, dtype in guess.items() if dtype.is_float()]
    others = [name for name in guess if name not in text and name not in floats]
    try:
        first = opened(schema=guess).select(text).head(GUESSED_FROM).collect()
        finite = pl.col(floats).is_finite().all()  # 'nan' or 'Infinity' can be read as a number, but is taken for text
        rest = opened(schema=guess).select(finite, pl.col(others).null_count()).collect(engine="streaming")
        if all(rest.select(floats).row(0)) and not any(column.null_count() == len(column) for column in first):
            return guess
    except pl.exceptions.PolarsError:
        pass
    return opened(infer_schema_length=None).collect_schema()


def _read_jsonl(file: Path) -> pl.DataFrame:
    """In parts: the time that Polars takes grows with the square of the number of keys, and lists and objects inside a
    row take it minutes. Those are left to Python."""
    parts: list[pl.DataFrame] = []
    kinds: dict[str, set[Any]] = {}  # of each column
    with file.open("rb") as lines:
        while part := list(islice(lines, LINES)):
            data = b"".join(part)
            try:
                if data.count(b"{") > len(part) or b"[" in data:
                    return _python_jsonl(file)
                parts.append(pl.read_ndjson(BytesIO(data), infer_schema_length=None))
            except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
                return _python_jsonl(file)
            for name, kind in parts[-1].schema.items():
                kinds.setdefault(name, set()).add(kind)
            _check_width(file, kinds)
    if any(len(found - {pl.Null}) > 1 and not found <= {pl.Null, pl.Int64, pl.Float64} for found in kinds.values()):
        return _python_jsonl(file)
    return pl.concat(parts, how="diagonal_relaxed")


def _check_width(file: Path, names: Collection[str]) -> None:
    """A cell of each key in each row could be far more than the file is long."""
    if len(names) > MOST_COLUMNS:
        raise InputError(
            f"{file} has more than {MOST_COLUMNS:,} different keys; write one object per run, with its keys"
        )


def _python_jsonl(file: Path) -> pl.DataFrame:
    """Slower, but takes the NaN and Infinity that Python's json module writes, and knows the line of an error."""
    return of_lines(file, text_of(file))


def of_lines(file: Path, text: str) -> pl.DataFrame:
    """One run per line, of a file or of its first lines."""
    rows: list[dict[str, Any]] = []
    for i, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = from_json(line)
        except ValueError as error:
            raise InputError(f"{file} line {i}: not JSON ({error}); correct or delete the line") from error
        if not isinstance(row, dict):
            raise InputError(f'{file} line {i}: expected an object like {{"lr": 0.1, "value": 1.5}}, got {line[:40]!r}')
        rows.append(row)
    names = dict.fromkeys(name for row in rows for name in row)
    _check_width(file, names)
    return pl.DataFrame([text_or_typed(name, [row.get(name) for row in rows]) for name in names])
