"""One parameter of a search space: its values <-> [0, 1], and its columns of T(u).

Notation
    value   what the user sees
    u       (m,) in [0, 1], what an optimizer moves
    i       (m,) level of an ordinal or nominal parameter: 0, 1, ...
    T(u)    (m, width) the snapped representation the models see

Integers, stepped floats and numeric choices are *ordinal* (one column, the rank or the log position); other choices
are *nominal* (one-hot). A continuous value is rounded to 12 digits (of its range; on a log scale, of itself), so that
whatever `decode` produces, `encode` and `decode` give back exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.errors import InputError, brief
from jumbo_bo.space.values import LARGEST_INT, as_numbers, is_number, same, spelling

Array = npt.NDArray[np.float64]

DIGITS = 12
MAX_STEPS = 10**13  # beyond this, float64 cannot tell neighbouring steps (or log integers) apart
NARROW = 1.01  # a log range with high / low below this is treated as linear: the same scale, without lost digits
EPS = float(np.finfo(float).epsneg)  # distance from 1.0 to the float before it


class Axis(Protocol):
    """One parameter. `encode` marks what it cannot place: NaN for not understood, -inf/+inf for out of range."""

    @property
    def levels(self) -> int | None: ...  # number of values, None when continuous
    @property
    def width(self) -> int: ...  # columns in T(u)
    def encode(self, values: Sequence[Any]) -> Array: ...  # (n,) values -> (n,) u
    def decode(self, u: float) -> Any: ...
    def snap(self, u: Array) -> Array: ...  # (m,) -> (m,) centre of the cell u falls in
    def transform(self, u: Array) -> Array: ...  # (m,) -> (m, width)
    def describe(self) -> str: ...


@dataclass(frozen=True)
class Continuous:
    low: float
    high: float
    log: bool
    levels: ClassVar[None] = None
    width: ClassVar[int] = 1

    def encode(self, values: Sequence[Any] | Array) -> Array:
        v = as_numbers(values)
        inside = (v >= self.low) & (v <= self.high)
        if not inside.all():
            u = np.full(len(v), np.nan)
            u[inside] = self.encode(v[inside])
            return _mark_outside(u, v, self.low, self.high)
        a, b = self._ends()
        # 0 and 1 are kept for the ends themselves, which decode to themselves whatever their digits.
        u = ((np.log(v) if self.log else v) - a) / (b - a)
        u = np.minimum(np.maximum(u, EPS), 1 - EPS)  # of few numbers faster than np.clip
        u[v == self.low] = 0.0
        u[v == self.high] = 1.0
        return u

    def decode(self, u: float) -> float:
        if u <= 0:
            return self.low
        if u >= 1:
            return self.high
        a, b = self._ends()
        w = a + u * (b - a)
        if self.log:
            value = float(f"{math.exp(w):.{DIGITS - 1}e}")
        else:
            value = round(w, DIGITS - math.ceil(math.log10(b - a))) + 0.0  # never -0.0
        return min(max(value, self.low), self.high)

    def snap(self, u: Array) -> Array:
        return np.clip(u, 0.0, 1.0)

    def transform(self, u: Array) -> Array:
        return self.snap(u)[:, None]

    def describe(self) -> str:
        return f"a number in [{self.low:.12g}, {self.high:.12g}]"

    def _ends(self) -> tuple[float, float]:
        return (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)


@dataclass(frozen=True)
class Ordinal:
    """`levels` ordered numbers: low, low + step, ... or the sorted `choices`; `log` spaces integers by their log."""

    levels: int
    low: float = 0.0
    step: float = 1.0
    log: bool = False
    integer: bool = True
    choices: tuple[Any, ...] | None = None
    width: ClassVar[int] = 1

    def encode(self, values: Sequence[Any]) -> Array:
        v = as_numbers(values)
        low, high = float(self._value(0)), float(self._value(self.levels - 1))
        index = np.full(len(v), np.nan)
        if self.choices is None:
            near = (v > low - self.step / 2) & (v < high + self.step / 2)
            i = (v[near] - low) / self.step
            rounding = 1e-8 + 4 * EPS * (np.abs(v[near]) + abs(low)) / self.step
            index[near] = np.where(np.abs(i - np.rint(i)) <= rounding, np.rint(i), np.nan)
        else:
            table = np.asarray(self.choices, dtype=float)
            place = np.clip(np.searchsorted(table, v), 0, self.levels - 1)
            index = np.where(table[place] == v, place.astype(float), np.nan)
        return _mark_outside(self._centre(index), v, low, high)

    def decode(self, u: float) -> Any:
        return self._value(int(self._cell(np.array([u]))[0]))

    def snap(self, u: Array) -> Array:
        return self._centre(self._cell(u))

    def transform(self, u: Array) -> Array:
        i = self._cell(u)
        if self.levels == 1:
            return np.zeros((len(u), 1))
        if self.log:
            return (np.log1p(i / self.low) / math.log1p((self.levels - 1) / self.low))[:, None]
        return (i / (self.levels - 1))[:, None]

    def describe(self) -> str:
        if self.choices is not None:
            return f"one of {list(self.choices)}"
        kind = "an integer" if self.integer else "a number"
        step = "" if self.integer and self.step == 1 else f" in steps of {self.step:g}"
        return f"{kind} in [{self.low:.12g}, {self._value(self.levels - 1):.12g}]{step}"

    def _value(self, i: int) -> Any:
        if self.choices is not None:
            return self.choices[i]
        if self.integer:
            return int(self.low) + i * int(self.step)
        return float(Decimal(str(self.low)) + i * Decimal(str(self.step)))  # 0.1 + 2 * 0.1 is 0.3

    def _cell(self, u: Array) -> Array:
        if not self.log:
            return np.clip(np.floor(u * self.levels), 0, self.levels - 1)
        a, b = self._log_ends()
        return np.clip(np.rint(np.exp(a + u * (b - a))) - self.low, 0, self.levels - 1)

    def _centre(self, i: Array) -> Array:
        if not self.log:
            return (i + 0.5) / self.levels
        a, b = self._log_ends()
        return (np.log(self.low + i) - a) / (b - a)

    def _log_ends(self) -> tuple[float, float]:
        return math.log(self.low - 0.5), math.log(self.low + self.levels - 0.5)


@dataclass(frozen=True)
class Nominal:
    """Unordered choices; in T(u) one column each (one-hot)."""

    choices: tuple[Any, ...]

    @property
    def levels(self) -> int:
        return len(self.choices)

    @property
    def width(self) -> int:
        return len(self.choices)

    def encode(self, values: Sequence[Any]) -> Array:
        # Files give text: '32' or 'true' finds the choice it spells when no choice matches as it is.
        exact: dict[Any, float] = {same(c): i for i, c in enumerate(self.choices)}
        spelled: dict[str, float] = {spelling(c): i for i, c in enumerate(self.choices)}

        def find(value: Any) -> float:
            try:
                return exact[same(value)]
            except (KeyError, TypeError):  # TypeError: a list, which cannot be looked up
                return spelled.get(spelling(value), math.nan)

        return self._centre(np.array([find(v) for v in values], dtype=float))

    def decode(self, u: float) -> Any:
        return self.choices[int(self._cell(np.array([u]))[0])]

    def snap(self, u: Array) -> Array:
        return self._centre(self._cell(u))

    def transform(self, u: Array) -> Array:
        columns = np.zeros((len(u), self.width))
        columns[np.arange(len(u)), self._cell(u).astype(int)] = 1.0
        return columns

    def describe(self) -> str:
        return f"one of {list(self.choices)}"

    def _cell(self, u: Array) -> Array:
        return np.clip(np.floor(u * self.levels), 0, self.levels - 1)

    def _centre(self, i: Array) -> Array:
        return (i + 0.5) / self.levels


def centres(axis: Axis) -> Array:  # -> (levels,)
    """u of every value of a finite axis, in order."""
    if not isinstance(axis, Ordinal | Nominal):
        raise TypeError(f"{axis} is continuous: it has no levels")
    return axis._centre(np.arange(axis.levels, dtype=float))


def axis_of(name: str, dist: BaseDistribution) -> Axis:
    """The axis of an Optuna distribution; `name` is for error messages."""
    match dist:
        case FloatDistribution(low=low, high=high) if not math.isfinite(high - low):
            raise InputError(f"{name!r} has the range {low} to {high}; use finite bounds less than 1.7e308 apart")
        case FloatDistribution(low=low, high=high) if low == high:
            return Ordinal(1, choices=(low,))
        case FloatDistribution(low=low, high=high, step=float(step)):
            _check_steps(name, low, high, step)
            return Ordinal(round((high - low) / step) + 1, low, step, integer=False)
        case FloatDistribution(low=low, high=high, log=log):
            return Continuous(low, high, log and high > NARROW * low)
        case IntDistribution(low=low, high=high, step=step, log=log):
            _check_steps(name, low, high, step)
            return Ordinal((high - low) // step + 1, low, step, log=log)
        case CategoricalDistribution(choices=choices):
            _check_choices(name, choices)
            if all(is_number(c) for c in choices):
                return Ordinal(len(choices), choices=tuple(sorted(choices)))
            return Nominal(tuple(choices))
    raise TypeError(f"{name!r} is {dist!r}; expected an Optuna Float-, Int- or CategoricalDistribution")


def _check_steps(name: str, low: float, high: float, step: float) -> None:
    if max(abs(low), abs(high)) > MAX_STEPS * step:
        raise InputError(
            f"{name!r} has the range {low} to {high} in steps of {step}, too fine for 64-bit numbers "
            f"(at most {MAX_STEPS:.0e} steps from 0); use a larger step or a float without step"
        )
    if isinstance(high, int) and max(abs(low), abs(high)) > LARGEST_INT:
        raise InputError(
            f"{name!r} has the range {brief(low)} to {brief(high)}, beyond the whole numbers up to 2^53 = "
            f"{LARGEST_INT:,} that a storage keeps exactly; use a larger unit, or a float"
        )


def _check_choices(name: str, choices: Sequence[Any]) -> None:
    for c in choices:
        if not isinstance(c, bool | int | float | str | tuple | None):
            raise TypeError(
                f"{name!r} has the choice {brief(c)}; expected None, bool, int, float, str or a tuple of them"
            )
    if len({same(c) for c in choices}) < len(choices):
        raise InputError(f"{name!r} has duplicate choices: {brief(list(choices))}")


def _mark_outside(u: Array, v: Array, low: float, high: float) -> Array:
    u = np.where(np.isnan(u) & (v < low), -np.inf, u)
    return np.where(np.isnan(u) & (v > high), np.inf, u)
