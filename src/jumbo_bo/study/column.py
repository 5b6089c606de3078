"""One column of a table -> a parameter with its range, or why it is not one."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from itertools import pairwise

import numpy as np
import polars as pl
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.errors import brief
from jumbo_bo.space.space import Space
from jumbo_bo.space.values import Array, as_numbers, in_digits
from jumbo_bo.study.junk import by_name, by_numbers, by_text

MOST_CHOICES = 20
MOST_LEVELS = 10  # distinct numbers, each seen several times, are choices
ORDERS = 100.0  # high / low from which a log scale is considered
LARGEST_COUNT = 10**12  # a larger integer is an identifier
LARGEST_COMMON = 10**8  # one larger than this as well, unless it is a step or on a log scale
LEAST_STEPPED = 4  # different numbers from which a step is looked for
MOST_STEPS = 100  # of a range; finer ones are how the numbers were rounded
FILLED = 0.75  # share of the steps that were seen, from which few levels are a range in steps
SPARSE = 0.2  # with fewer of them seen, there is no step
DIGITS = 12  # a number has at most; further ones come from computations


def parameter(cells: pl.Series, rows: int | None = None, wanted: bool = False) -> tuple[BaseDistribution | None, str]:
    """The distribution, None when the column is not a parameter, and why. `rows`: of the whole column, if these cells
    are a sample of it. `wanted`: whatever it looks like."""
    cells = cells.fill_nan(None) if cells.dtype.is_float() else cells  # pandas writes NaN for an empty cell
    column, filled = cells.name, cells.drop_nulls()
    if filled.is_empty():
        return None, "left out: it is empty"
    if filled.dtype.is_temporal() or filled.dtype.is_nested() or filled.dtype in (pl.Object, pl.Binary):
        return None, f"left out: {'a time' if filled.dtype.is_temporal() else 'neither a number nor text'}"
    distinct = filled.unique(maintain_order=True).to_list()
    if len(distinct) == 1:
        return None, f"left out: it is always {brief(distinct[0])}"
    numeric = is_numeric(filled)
    if not wanted and (junk := by_name(column, numeric)):
        return None, f"left out: {junk}"
    gaps = f"; {cells.null_count():,} rows have none" if cells.null_count() else ""
    if {str(v).lower() for v in distinct} == {"true", "false"}:
        return CategoricalDistribution((False, True)), f"yes or no{gaps}"
    if not numeric:
        made, why = _text(filled, [str(d) for d in distinct], wanted)
        return made, why + (gaps if made else "")
    v = as_numbers(distinct)
    odd = [d for d, x in zip(distinct, v, strict=True) if not abs(x) < math.inf]
    gaps += f"; {brief(odd[0])} is not a usable number" if odd else ""
    v = np.unique(v[np.isfinite(v)])  # '1' and '1.0' are the same
    if len(v) < 2:
        return None, "left out: only one usable number"
    if not wanted and (junk := _junk(v, filled, rows or len(cells))):
        return None, f"left out: {junk}"
    made, why = _numeric(v, len(filled))
    return made, why + (gaps if made else "")


def is_numeric(cells: pl.Series) -> bool:
    """Also text that nearly always spells a number: one 'auto' or 'diverged' does not make a category."""
    if cells.dtype == pl.String:
        filled = cells.drop_nulls().str.strip_chars()
        return 0 < len(filled) * 0.9 <= filled.cast(pl.Float64, strict=False).count()
    return cells.dtype.is_numeric()


def _text(cells: pl.Series, distinct: list[str], wanted: bool) -> tuple[BaseDistribution | None, str]:
    if not wanted and (junk := by_text(distinct)):
        return None, f"left out: {junk}"
    if not wanted and (len(distinct) > MOST_CHOICES or len(distinct) > max(2, len(cells) / 2)):
        return None, f"left out: text with {len(distinct):,} different values in {len(cells):,} rows"
    return CategoricalDistribution(sorted(distinct)), f"{len(distinct)} different text values"


def _junk(v: Array, cells: pl.Series, rows: int) -> str:
    """Why these numbers are no parameter; v: the different ones, sorted; rows: of the whole column."""
    n, whole = len(cells), _are_whole(v)
    step = _step(v)
    if found := by_numbers(cells.name, float(v[0]), step is not None or _are_levels(v, n)):
        return found
    most = max(-v[0], v[-1])
    if whole and (most > LARGEST_COUNT or (most > LARGEST_COMMON and step is None and not _is_log(v))):
        return "numbers this large look like identifiers"
    if whole and len(v) == n > MOST_LEVELS:
        if v[-1] - v[0] + 1 in (n, rows):
            return "it counts the rows"
        if step is None and _rises(cells):
            return "it rises with every row, as a counter or a time does"
    return ""


def _rises(cells: pl.Series) -> bool:
    return bool(np.all(np.diff(as_numbers(cells.to_list())) > 0))


def _are_whole(v: Array) -> bool:
    return bool(np.all(v == np.rint(v)))


def _are_levels(v: Array, n: int) -> bool:
    return len(v) <= MOST_LEVELS and n >= 3 * len(v)


def _numeric(v: Array, n: int) -> tuple[BaseDistribution | None, str]:  # v: the different values, sorted; n: rows
    whole, step = _are_whole(v), _step(v)
    low, high = (float(x if step is None else _decimal(x)) for x in (v[0], v[-1]))
    run = whole and high - low + 1 == len(v)
    seen = f"{in_digits(low)} to {in_digits(high)} in the old runs"
    steps = 0.0 if step is None else (high - low) / float(step) + 1
    if _are_levels(v, n) and not run and (step is None or len(v) < FILLED * steps):
        choices = [int(x) if whole else float(x) for x in v]
        return CategoricalDistribution(choices), f"{len(v)} different numbers, in their order"
    log = step is None and _is_log(v)
    a, b = nice(low, high, log, whole)
    try:
        made = _range(a, b, log, whole) if step is None else _stepped((low, high), (a, b), step, whole)
        Space({"x": made})
    except ValueError:
        return None, f"left out: {seen}, too wide a range"
    return made, seen + (", a log scale fits" if log else f", in steps of {step.normalize():f}" if step else "")


def _range(low: float, high: float, log: bool, whole: bool) -> BaseDistribution:
    return IntDistribution(int(low), int(high), log=log) if whole else FloatDistribution(low, high, log=log)


def _stepped(seen: tuple[float, float], bounds: tuple[float, float], step: Decimal, whole: bool) -> BaseDistribution:
    """As far towards round bounds as whole steps go."""
    (low, high), (a, b) = map(_decimal, seen), map(_decimal, bounds)
    low, high = low - (low - a) // step * step, high + (b - high) // step * step
    if whole:
        return IntDistribution(int(low), int(high), step=int(step))
    return FloatDistribution(float(low), float(high), step=float(step))


def _step(v: Array) -> Decimal | None:
    """The step of numbers in steps that a person would set, such as 5 of 20, 35, 40, 60. None when there is none; that
    of integers is above 1."""
    if not LEAST_STEPPED <= len(v) <= MOST_STEPS + 1 or _is_geometric(v):
        return None
    exact = [_decimal(x) for x in v]
    last = min(int(x.normalize().as_tuple().exponent) for x in exact)
    if max(x.adjusted() for x in exact) - last > DIGITS:
        return None
    whole = [int(x.scaleb(-last)) for x in exact]
    step = math.gcd(*(b - a for a, b in pairwise(whole)))
    count = (whole[-1] - whole[0]) // step + 1 if step else 0
    if not SPARSE * count <= len(v) <= count <= MOST_STEPS + 1:
        return None
    found = Decimal(step).scaleb(last)
    return None if found == 1 and _are_whole(v) else found


def _decimal(x: float) -> Decimal:
    """0.1 + 0.2 is 0.3."""
    return Decimal(f"{x:.{DIGITS}g}")


def _is_geometric(v: Array) -> bool:
    """Each the same multiple of the one before: 16, 32, 64, 128."""
    return bool(v[0] > 0 and np.ptp(v[1:] / v[:-1]) < 1e-9)


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
