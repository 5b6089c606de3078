"""One column of a table -> a parameter with its range, or why it is not one."""

from __future__ import annotations

import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np
import polars as pl
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.errors import brief
from jumbo_bo.space.space import Space
from jumbo_bo.space.values import Array, as_numbers


def words(column: str) -> list[str]:
    """'validLoss', 'valid_loss' -> valid, loss"""
    return re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column).lower())


BOOKKEEPING = set(  # as the last word of a name
    words(
        "id uuid guid hash run trial number index idx row name state status timestamp datetime date created started "
        "finished ended duration runtime elapsed seed user host hostname path comment comments notes"
    )
)
TIMES = set(words("datetime timestamp created started finished"))  # as the first one
MEASURED = set(words("train training fit eval test wall inference")), set(words("time seconds minutes hours s ms"))
MOST_CHOICES = 20
MOST_LEVELS = 10  # distinct numbers, each seen several times, are choices
ORDERS = 100.0  # high / low from which a log scale is considered
LARGEST_COUNT = 10**12  # a larger integer is an identifier


def parameter(cells: pl.Series, rows: int | None = None) -> tuple[BaseDistribution | None, str]:
    """The distribution, None when the column is not a parameter, and why. `rows`: of the whole column, if these cells
    are a sample of it."""
    cells = cells.fill_nan(None) if cells.dtype.is_float() else cells  # pandas writes NaN for an empty cell
    column, filled = cells.name, cells.drop_nulls()
    parts = words(column)
    if filled.is_empty():
        return None, "left out: it is empty"
    if filled.dtype.is_temporal() or filled.dtype.is_nested() or filled.dtype in (pl.Object, pl.Binary):
        return None, f"left out: {'a time' if filled.dtype.is_temporal() else 'neither a number nor text'}"
    distinct = filled.unique(maintain_order=True).to_list()
    if len(distinct) == 1:
        return None, f"left out: it is always {brief(distinct[0])}"
    if column.startswith(("Unnamed:", "_")) or not column or {*parts[-1:]} & BOOKKEEPING or {*parts[:1]} & TIMES:
        return None, "left out: it looks like bookkeeping"
    gaps = f"; {cells.null_count():,} rows have none" if cells.null_count() else ""
    if {str(v).lower() for v in distinct} == {"true", "false"}:
        return CategoricalDistribution((False, True)), f"yes or no{gaps}"
    v = as_numbers(distinct)
    if is_numeric(filled):
        odd = [d for d, x in zip(distinct, v, strict=True) if not abs(x) < math.inf]
        gaps += f"; {brief(odd[0])} is not a usable number" if odd else ""
        v = v[np.isfinite(v)]
        if all(group & set(parts) for group in MEASURED):
            return None, "left out: looks like a measured time"
        if len(v) and v.min() > 1e9 and {"time", "date", "start", "end", "at"} & set(parts):
            return None, "left out: a time"
        made, why = _numeric(v, len(filled), rows or len(cells))
    else:
        made, why = _text(filled, [str(d) for d in distinct])
    return made, why + (gaps if made else "")


def is_numeric(cells: pl.Series) -> bool:
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
    return CategoricalDistribution(sorted(distinct)), f"{len(distinct)} different text values"


def _numeric(v: Array, n: int, rows: int) -> tuple[BaseDistribution | None, str]:
    # v: the different values among n; rows: of the whole column
    v = np.unique(v)  # '1' and '1.0' are the same
    if len(v) < 2:
        return None, "left out: only one usable number"
    low, high = float(v[0]), float(v[-1])
    whole = bool(np.all(v == np.rint(v)))
    if whole and max(-low, high) > LARGEST_COUNT:
        return None, "left out: numbers this large look like identifiers"
    run = whole and high - low + 1 == len(v)
    if whole and len(v) == n and n > MOST_LEVELS and (run or high - low + 1 == rows):
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
