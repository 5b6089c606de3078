"""A table of old runs -> which columns are parameters, with what ranges, which one is the objective, which the task.

Every guess is explained, as it is written to a file that a person reads and corrects.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from fnmatch import fnmatchcase
from typing import Any, Literal

import numpy as np
import polars as pl
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.frames import closest
from jumbo_bo.data.readers import FORMATS, files_of, first_line
from jumbo_bo.errors import UserError
from jumbo_bo.space.axes import Array, as_numbers
from jumbo_bo.space.space import Space

Direction = Literal["minimize", "maximize"]


def _words(text: str) -> set[str]:
    return set(text.split())


LOWER = _words("loss error err mse rmse mae mape nll cost regret perplexity latency crossentropy wer deviance")
HIGHER = _words("accuracy acc auc auroc f1 score reward yield precision recall r2 iou bleu throughput profit")
NEUTRAL = _words("value values objective metric result y output")
UNMISTAKABLE = _words("mse rmse mae mape nll accuracy auc auroc f1 r2 perplexity")  # wherever it stands in a name
TASKS = ("task", "dataset", "problem", "experiment", "study", "project")  # the first one found is taken
BOOKKEEPING = _words(  # as the last word of a name
    "id uuid guid hash run trial number index idx row name state status timestamp datetime date created started "
    "finished ended duration runtime elapsed seed user host hostname path comment comments notes"
)
TIMES = _words("datetime timestamp created started finished")  # as the first one
MEASURED = _words("train training fit eval test wall inference"), _words("time seconds minutes hours s ms")
PREFIXES = ("params_", "params.", "config/", "config.", "hparams/", "hparams.")  # Optuna, MLflow, Ray and W&B tables
MOST_CHOICES = 20
MOST_LEVELS = 10  # distinct numbers, each seen several times, are choices
ORDERS = 100.0  # high / low from which a log scale is considered
LARGEST_COUNT = 10**12  # a larger integer is an identifier


@dataclass(frozen=True)
class Guess:
    space: Space
    objective: str
    direction: Direction
    task: str | None
    rename: Mapping[str, str]  # column -> parameter
    notes: Mapping[str, str]  # column -> what it was taken for and why

    @property
    def columns(self) -> dict[str, Any]:
        """Options for a reader of the same table."""
        given = {"task": self.task, "rename": dict(self.rename)}
        return {"objective": self.objective, "direction": self.direction} | {k: v for k, v in given.items() if v}


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
) -> Guess:
    """What is not given is guessed from names and values; `ignore` may have patterns like 'u_*'."""
    columns = _Columns(list(frame.columns))
    for role, name in (("objective", objective), ("task", task)):
        if name is not None and name not in columns.left:
            raise UserError(
                f"there is no column {name!r}{closest(name, frame.columns)}; pass --{role} one of "
                f"{', '.join(frame.columns)}"
            )
    for pattern in ignore:
        hit = [c for c in columns.left if fnmatchcase(c, pattern) and c not in (objective, task)]
        if not any(fnmatchcase(c, pattern) for c in frame.columns):
            raise UserError(
                f"--ignore {pattern} is no column{closest(pattern, frame.columns)}; "
                f"the columns are {', '.join(frame.columns)}"
            )
        for column in hit:
            columns.take(column, "left out, as asked")
    objective, direction = _objective(frame, columns, objective, direction)
    task = _task(frame, columns, task)
    rename = _prefixed(columns)
    space, notes = guess_space(frame.select(columns.left).rename(rename))
    back = {new: old for old, new in rename.items()}
    notes = columns.notes | {back.get(name, name): why for name, why in notes.items()}
    return Guess(space, objective, direction, task, rename, {c: notes[c] for c in frame.columns})


def guess_space(frame: pl.DataFrame, ignore: Iterable[str] = ()) -> tuple[Space, dict[str, str]]:
    """The parameters among the columns, and for every column what it was taken for and why."""
    skip = set(ignore)
    found: dict[str, BaseDistribution] = {}
    notes: dict[str, str] = {}
    for column in frame.columns:
        if column in skip:
            continue
        made, notes[column] = _parameter(frame[column])
        if made is not None:
            found[column] = made
    if not found:
        reasons = "".join(f"\n  {column}: {why}" for column, why in notes.items())
        raise UserError(f"no column looks like a parameter; write [space] by hand{reasons}")
    return Space(found), notes


def read_table(files: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> pl.DataFrame:
    """All rows of all files, one below the other. Of a column with numbers in one file and text in another: text."""
    frames = []
    for file in files_of(files):
        if not file.exists():
            raise UserError(f"{file} does not exist; the folder looked in was {file.absolute().parent}")
        if file.stat().st_size == 0:
            raise UserError(f"{file} is empty; delete it or leave it out")
        try:
            frames.append(FORMATS[file.suffix.lower()][1](file).collect())
        except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError) as error:
            raise UserError(f"{file} cannot be read as {file.suffix[1:].upper()}: {first_line(error)}") from error
    if not any(frame.height for frame in frames):
        raise UserError("the files have no rows, so nothing can be guessed; without old runs: `jumbo init`")
    try:
        return pl.concat(frames, how="diagonal_relaxed")
    except pl.exceptions.PolarsError:
        return pl.concat([frame.cast(pl.String) for frame in frames], how="diagonal")


def words(column: str) -> list[str]:
    """'validLoss', 'valid_loss' -> valid, loss"""
    return re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column).lower())


def _objective(
    frame: pl.DataFrame, columns: _Columns, name: str | None, direction: Direction | None
) -> tuple[str, Direction]:
    numeric = [c for c in columns.left if _is_numeric(frame[c])]
    results = [c for c in numeric if _is_result(c)]
    if name is None:
        exact = [c for c in results if len(words(c)) == 1]
        several = exact or results
        if len(several) != 1:
            found = f"{', '.join(several)} look like results" if several else "no column has a name like loss or score"
            raise UserError(
                f"which column is the objective? {found}; pass --objective one of {', '.join(several or numeric)}"
            )
        name, how = several[0], "the objective, by its name"
    else:
        how = "the objective, as asked"
    if direction is None:
        known = set(words(name))
        direction = "maximize" if known & HIGHER and not known & LOWER else "minimize"
        sure = bool(known & (HIGHER | LOWER))
        how += f"; {'larger' if direction == 'maximize' else 'smaller'} is better"
        how += "" if sure else " (assumed: pass --maximize if not)"
    columns.take(name, how)
    for other in results:
        if other != name:
            columns.take(other, f"left out: looks like another result (--objective {other} to use it)")
    return name, direction


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
        what = f"the task, by its name: {n} of them" if i == 0 else f"left out: could be the task (--task {column})"
        columns.take(column, what)
    return found[0] if found else None


def _prefixed(columns: _Columns) -> dict[str, str]:
    """Tables of trackers mark the parameters; then nothing else is one."""
    for prefix in PREFIXES:
        marked = [c for c in columns.left if c.startswith(prefix) and c != prefix]
        if not marked:
            continue
        for column in [c for c in columns.left if c not in marked]:
            columns.take(column, f"left out: does not begin with {prefix!r} as the parameters do")
        return {c: c.removeprefix(prefix) for c in marked}
    return {}


def _parameter(cells: pl.Series) -> tuple[BaseDistribution | None, str]:
    """The distribution, None when the column is no parameter, and why."""
    cells = cells.fill_nan(None) if cells.dtype.is_float() else cells  # pandas writes NaN for an empty cell
    column, filled = cells.name, cells.drop_nulls()
    parts = words(column)
    if filled.is_empty():
        return None, "left out: it is empty"
    if filled.dtype.is_temporal() or filled.dtype.is_nested() or filled.dtype in (pl.Object, pl.Binary):
        return None, f"left out: {'a time' if filled.dtype.is_temporal() else 'neither a number nor text'}"
    distinct = filled.unique(maintain_order=True).to_list()
    if len(distinct) == 1:
        return None, f"left out: it is always {distinct[0]!r}"
    if column.startswith(("Unnamed:", "_")) or not column or {*parts[-1:]} & BOOKKEEPING or {*parts[:1]} & TIMES:
        return None, "left out: it looks like bookkeeping"
    gaps = f"; {cells.null_count():,} rows have none" if cells.null_count() else ""
    if {str(v).lower() for v in distinct} == {"true", "false"}:
        return CategoricalDistribution((False, True)), f"yes or no{gaps}"
    v = as_numbers(distinct)
    if _is_numeric(filled):
        odd = [d for d, x in zip(distinct, v, strict=True) if not abs(x) < math.inf]
        gaps += f"; {odd[0]!r} is no usable number" if odd else ""
        v = v[np.isfinite(v)]
        if all(group & set(parts) for group in MEASURED):
            return None, "left out: looks like a time that was measured"
        if len(v) and v.min() > 1e9 and {"time", "date", "start", "end", "at"} & set(parts):
            return None, "left out: a time"
        made, why = _numeric(v, len(filled))
    else:
        made, why = _text(filled, [str(d) for d in distinct])
    return made, why + (gaps if made else "")


def _is_numeric(cells: pl.Series) -> bool:
    """Also text that nearly always spells a number: one 'auto' or 'diverged' does not make a category."""
    if cells.dtype == pl.String:
        filled = cells.drop_nulls().str.strip_chars()
        return 0 < len(filled) * 0.9 <= filled.cast(pl.Float64, strict=False).count()
    return cells.dtype.is_numeric()


def _text(cells: pl.Series, distinct: list[str]) -> tuple[BaseDistribution | None, str]:
    if all(re.match(r"\d{4}-\d\d-\d\d", text) for text in distinct):
        return None, "left out: a time"
    if len(distinct) > MOST_CHOICES or len(distinct) > max(2, len(cells) / 2):
        return None, f"left out: text with {len(distinct):,} different values in {len(cells):,} rows"
    return CategoricalDistribution(sorted(distinct)), f"{len(distinct)} different texts"


def _numeric(v: Array, n: int) -> tuple[BaseDistribution | None, str]:  # v: the different values, n: rows
    v = np.unique(v)  # '1' and '1.0' are the same
    if len(v) < 2:
        return None, "left out: only one usable number"
    low, high = float(v[0]), float(v[-1])
    whole = bool(np.all(v == np.rint(v)))
    if whole and max(-low, high) > LARGEST_COUNT:
        return None, "left out: numbers this large look like identifiers"
    run = whole and high - low + 1 == len(v)
    if run and len(v) == n and n > MOST_LEVELS:
        return None, "left out: it counts the rows"
    seen = f"{low:.3g} to {high:.3g} in the old runs"
    if len(v) <= MOST_LEVELS and n >= 3 * len(v) and not run:
        choices = [int(x) if whole else float(x) for x in v]
        return CategoricalDistribution(choices), f"{len(v)} different numbers, in their order"
    log = _is_log(v)
    a, b = nice(low, high, log, whole)
    try:
        made: BaseDistribution = IntDistribution(int(a), int(b), log=log) if whole else FloatDistribution(a, b, log=log)
        Space({"x": made})
    except ValueError:
        return None, f"left out: {seen}, too wide a range"
    return made, seen + (", a log scale fits" if log else "")


def _is_log(v: Array) -> bool:
    """Positive, over two orders of magnitude, and the median nearer to the middle on a log scale."""
    low, middle, high = float(v[0]), float(np.median(v)), float(v[-1])
    if low <= 0 or high < ORDERS * low:
        return False
    linear = (middle - low) / (high - low)
    log = math.log(middle / low) / math.log(high / low)
    return abs(log - 0.5) < abs(linear - 0.5)


def nice(low: float, high: float, log: bool, whole: bool) -> tuple[float, float]:
    """Round bounds around the data that a person would write. They reach 0 only when the data nearly do.

    >>> nice(1.3e-5, 0.087, log=True, whole=False)
    (1e-05, 0.1)
    >>> nice(0.0213, 0.9734, log=False, whole=False)
    (0.02, 1.0)
    >>> nice(17, 498, log=False, whole=True)
    (17.0, 500.0)
    """
    a, b = Decimal(repr(low)), Decimal(repr(high))
    unit = _one_two_five((b - a) / 10, ROUND_FLOOR)

    def rounded(bound: Decimal, rounding: str) -> Decimal:
        if _is_short(bound, log, whole):
            return bound
        if log:
            return _one_two_five(bound, rounding)
        near = (bound / unit).to_integral_value(rounding) * unit
        reaches_zero = near * bound <= 0 and (whole or abs(bound) > (b - a) / 50)
        return bound.quantize(Decimal(1).scaleb(bound.adjusted()), rounding) if reaches_zero else near

    return float(rounded(a, ROUND_FLOOR)), float(rounded(b, ROUND_CEILING))


def _is_short(value: Decimal, log: bool, whole: bool) -> bool:
    """Round as it is: 0.05, 64, 512."""
    digits = len(value.normalize().as_tuple().digits)
    power_of_two = whole and value > 0 and int(value) & (int(value) - 1) == 0
    return power_of_two or digits <= (1 if log and not whole else 2)


def _one_two_five(value: Decimal, rounding: str) -> Decimal:
    steps = [Decimal(m).scaleb(value.adjusted()) for m in (1, 2, 5, 10)]
    return max(s for s in steps if s <= value) if rounding == ROUND_FLOOR else min(s for s in steps if s >= value)
