"""What values of parameters are as numbers and as text, whatever a person or a file may call a value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from optuna.distributions import BaseDistribution, FloatDistribution

from jumbo_bo.errors import brief

Array = npt.NDArray[np.float64]

LARGEST_INT = 2**53  # Optuna's storages keep parameters as 64-bit floats


def is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) if isinstance(value, float) else abs(value) <= LARGEST_INT


def same(value: Any) -> tuple[str, Any]:
    """1, True and '1' are different choices; 1 and 1.0 are the same number."""
    return ("number" if is_number(value) else type(value).__name__, value)


def spelling(value: Any) -> str:
    """How a choice is recognised in a text file: '32.0' is 32, 'true' is True."""
    text = spelled(value)
    number = _number(text)
    return str(number) if math.isfinite(number) else text.lower() if text in ("True", "False") else text


def spelled(value: Any) -> str:
    """As text that can be written to a file."""
    try:
        return str(value).encode(errors="backslashreplace").decode()  # half of a pair of surrogates is no character
    except (ValueError, RecursionError):  # too many digits, or too many levels
        return brief(value)


def plain(value: float, digits: int) -> str:
    """So many digits, without an exponent where the number is short without one.

    >>> [plain(x, 2) for x in (116.8, -98765.0, 0.00012, 3.2e9, math.inf)]
    ['120', '-99000', '0.00012', '3.2e+09', 'inf']
    """
    text = f"{value:.{digits}g}"
    return f"{float(text):.0f}" if "e+" in text and abs(value) < 1e6 else text


def in_digits(value: float, finest: float | None = None) -> str:
    """For people: four digits, or as many as tell differences of `finest` apart, and whole numbers whole.

    >>> [in_digits(x) for x in (0.136925859735, 48213.7, 5.26096548782e-05, 0.5)]
    ['0.1369', '48214', '5.261e-05', '0.5']
    >>> in_digits(1000.123456, finest=0.01)
    '1000.12'
    """
    if not (value and math.isfinite(value)):
        return f"{value:g}"
    digits = 4
    if finest is not None and 0 < finest < abs(value):
        digits = max(digits, min(1 + math.floor(math.log10(abs(value))) - math.floor(math.log10(finest)), 12))
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in text and abs(value) < 1e9 else text


def shown(value: Any, dist: BaseDistribution) -> str:
    """A parameter's value for people: no finer than a thousandth of its range."""
    if not isinstance(dist, FloatDistribution) or not is_number(value):
        return spelled(value)
    return in_digits(float(value), dist.step or (None if dist.log else (dist.high - dist.low) / 1000))


def as_numbers(values: Sequence[Any] | Array) -> Array:
    """Floats, NaN for what is not a number. Text that spells a number counts."""
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        return np.array([_number(v) for v in values], dtype=float)
    return numbers if numbers.ndim == 1 else np.full(len(values), np.nan)  # a list is not a number


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
