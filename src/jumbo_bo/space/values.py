"""What values of parameters are as numbers and as text, whatever a person or a file may call a value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

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
