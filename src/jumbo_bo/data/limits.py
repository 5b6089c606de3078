"""Limits on quantities that are measured with every trial, such as latency_ms <= 20 or purity >= 95."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from jumbo_bo.data.frames import closest
from jumbo_bo.errors import InputError, brief

Limits = Mapping[str, tuple[float | None, float | None]]  # name -> lowest and highest value that is allowed


@dataclass(frozen=True)
class Limit:
    name: str
    low: float = -math.inf
    high: float = math.inf

    def __post_init__(self) -> None:
        if not (self.low < self.high and math.inf > self.low and self.high > -math.inf):
            raise InputError(f"the limits of {self.name!r} are {(self.low, self.high)}, expected the smaller one first")
        if math.isinf(self.low) and math.isinf(self.high):
            raise InputError(f"the limits of {self.name!r} allow everything; give the lowest or the highest value")

    def __str__(self) -> str:
        if math.isinf(self.low):
            return f"{self.name} <= {self.high:g}"
        return (
            f"{self.name} >= {self.low:g}" if math.isinf(self.high) else f"{self.low:g} <= {self.name} <= {self.high:g}"
        )

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """As a person writes them."""
        return None if math.isinf(self.low) else self.low, None if math.isinf(self.high) else self.high

    @property
    def direction(self) -> Literal["minimize", "maximize"]:
        """In which its values are read: those that are more likely to meet the limit are larger."""
        return "maximize" if math.isinf(self.high) else "minimize"

    @property
    def sign(self) -> float:
        """Of its values, so that larger is better."""
        return 1.0 if self.direction == "maximize" else -1.0

    def met(self, value: float) -> bool:
        """Not by what was not measured."""
        return self.low <= value <= self.high

    def beyond(self, value: float) -> str:
        """The side of the limit that the value does not keep."""
        return f"<= {self.high:g}" if value > self.high else f">= {self.low:g}"

    def excess(self, value: float) -> float:
        """How far it is from being met; at most 0 when it is, as Optuna wants it."""
        return max(self.low - value, value - self.high)


def ends_of(pair: tuple[float | None, float | None]) -> tuple[float, float]:
    """With infinities in place of None. An error of Python's where these are no two numbers."""
    low, high = pair
    return -math.inf if low is None else float(low), math.inf if high is None else float(high)


def limits_of(limits: Limits | None, names: Iterable[str]) -> tuple[Limit, ...]:
    """`names` are those of the parameters."""
    if limits is None:
        return ()
    if not isinstance(limits, Mapping):
        raise InputError(f'limits are {brief(limits)}, expected a dict such as {{"latency_ms": (None, 20.0)}}')
    taken, found = set(names), []
    for name, pair in limits.items():
        if not isinstance(name, str) or not name or name in taken:
            wrong = "is a parameter" if name in taken else "is not a name"
            raise InputError(f"limits: {brief(name)} {wrong}; limits are for what is measured")
        try:
            low, high = ends_of(pair)
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                f"the limits of {name!r} are {brief(pair)}, expected the lowest and the highest value, None for no "
                "such end, for example (None, 20.0)"
            ) from None
        found.append(Limit(name, low, high))
    return tuple(found)


def checked_measured(measured: Mapping[str, Any] | None, limits: Sequence[Limit]) -> dict[str, float]:
    """What was measured with a trial, of the limited quantities. NaN and None: not measured."""
    known, found = [limit.name for limit in limits], {}
    if not isinstance(measured or {}, Mapping):
        raise InputError(f'measured is {brief(measured)}, expected a dict such as {{"latency_ms": 18.2}}')
    for name, value in (measured or {}).items():
        if name not in known:
            have = f"the limits are on {', '.join(known)}" if known else "there are no limits"
            raise InputError(f"measured has {brief(name)}, but {have}{closest(name, known)}")
        try:
            number = math.nan if value is None else float(value)
        except (TypeError, ValueError, OverflowError):
            raise InputError(f"measured[{name!r}] is {brief(value)}, expected a number, or None") from None
        if math.isfinite(number):
            found[name] = number
    return found


def in_words(limits: Iterable[Limit], measured: Mapping[str, float]) -> str:
    """What a trial measured, with the limits that it does not meet; empty without limits."""
    parts = []
    for limit in limits:
        value = measured.get(limit.name)
        shown = f"{limit.name} {'not measured' if value is None else f'{value:.4g}'}"
        parts.append(shown if value is None or limit.met(value) else f"{shown}, not {limit.beyond(value)}")
    return "; ".join(parts)


def met(limits: Iterable[Limit], measured: Mapping[str, float]) -> bool:
    return all(limit.met(measured.get(limit.name, math.nan)) for limit in limits)
