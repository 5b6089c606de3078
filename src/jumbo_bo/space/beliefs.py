"""What a user believes of some parameters, such as 'lr is about 1e-3', as a weight of every configuration.

Notation
    v       value of a parameter, m what it is about
    s       how far off it may well be: z = log(v / m) / log(factor) or (v - m) / within
    pi      weight of a value, at most 1: (1 - WRONG) exp(-z^2 / 2) + WRONG, of a choice 1 or 1 / odds
    log_pi  (m, b) logarithms, a column for each belief

A score is multiplied by pi^(c / t) at trial t, as in pi-BO (Hvarfner et al., ICLR 2022), so a belief fades as trials
come in. Two things are ours, so that a wrong one does not hurt for long. WRONG is the share of the weight that is the
same everywhere. And each belief counts by its own weight of the best trial so far: when a trial far from what is
believed is the best, the belief is as good as dropped (`methods.base.View.credence`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jumbo_bo.errors import InputError, brief
from jumbo_bo.space.axes import Array, Axis, Continuous, Nominal, Ordinal
from jumbo_bo.space.space import Space
from jumbo_bo.space.values import as_numbers

WRONG = 0.02
FACTOR, WITHIN, ODDS = 3.0, 0.1, 4.0  # unless said otherwise; WITHIN as a share of the range


@dataclass(frozen=True)
class Belief:
    """See `about`."""

    value: Any
    factor: float | None = None
    within: float | None = None
    odds: float | None = None


def about(value: Any, *, factor: float | None = None, within: float | None = None, odds: float | None = None) -> Belief:
    """A parameter's best value is probably about this one.

    factor  two in three such guesses are right up to this factor; 3 for parameters on a log scale
    within  or up to this difference; a tenth of the range for other numbers
    odds    of a choice: how many times as likely it is as any other one; 4
    """
    return Belief(value, factor, within, odds)


@dataclass(frozen=True)
class Beliefs:
    """All of a space, checked."""

    space: Space
    of: Mapping[str, Belief]

    def __post_init__(self) -> None:
        for name in self.of:
            if name not in self.space.distributions:
                raise InputError(f"beliefs name {brief(name)}; the parameters are {list(self.space.names)}")
        object.__setattr__(self, "of", {name: self._checked(name) for name in self.space.names if name in self.of})

    def log_pi(self, u: Array) -> Array:  # (m, d) -> (m, b)
        there = self.space.there(u)  # of a parameter that does not exist nothing is believed
        places = [(self.space.names.index(name), belief) for name, belief in self.of.items()]
        weights = [np.where(there[:, i], _weights(self.space.axes[i], b, u[:, i]), 1.0) for i, b in places]
        return np.asarray(np.log(np.stack(weights, axis=1)))

    def placed(self, point: Array) -> Array:  # (d,) -> (d,)
        """The point with the values that are believed to be best."""
        moved = np.array(point)
        for name, belief in self.of.items():
            i = self.space.names.index(name)
            moved[i] = self.space.axes[i].encode([belief.value])[0]
        return moved

    def _checked(self, name: str) -> Belief:
        axis, given = self.space.axes[self.space.names.index(name)], self.of[name]
        belief = given if isinstance(given, Belief) else about(given)
        u = axis.encode([belief.value])[0]
        if not np.isfinite(u):
            raise InputError(f"the belief about {name!r} is {brief(belief.value)}, expected {axis.describe()}")
        kinds = ("odds",) if isinstance(axis, Nominal) else ("factor", "within")
        said = [kind for kind in ("factor", "within", "odds") if getattr(belief, kind) is not None]
        if len(said) > 1 or not set(said) <= set(kinds):
            found = " and ".join(said)
            raise InputError(f"the belief about {name!r} has {found}, expected {' or '.join(kinds)}, or none of them")
        least = 0.0 if said == ["within"] else 1.0
        for kind in said:
            number = getattr(belief, kind)
            if isinstance(number, bool) or not isinstance(number, int | float) or not least < number < math.inf:
                raise InputError(
                    f"the belief about {name!r} has {kind} {brief(number)}, expected a number above {least:g}"
                )
        if belief.factor is not None and not _lowest(axis) > 0:
            raise InputError(f"the belief about {name!r} has a factor, but the range is not above 0; use within")
        value = axis.decode(float(u))
        if said:
            return Belief(value, belief.factor, belief.within, belief.odds)
        if isinstance(axis, Nominal):
            return Belief(value, odds=ODDS)
        if getattr(axis, "log", False):
            return Belief(value, factor=FACTOR)
        return Belief(value, within=WITHIN * max(_highest(axis) - _lowest(axis), 1e-300))


def _weights(axis: Axis, belief: Belief, u: Array) -> Array:  # (m,) -> (m,)
    if isinstance(axis, Nominal):
        assert belief.odds is not None
        chosen = axis.snap(u) == axis.encode([belief.value])[0]
        return np.asarray(np.where(chosen, 1.0, 1.0 / belief.odds))
    v, m = _numbers(axis, u), float(belief.value)
    if belief.factor is not None:
        z = np.log(v / m) / math.log(belief.factor)
    else:
        assert belief.within is not None
        z = (v - m) / belief.within
    pi: Array = (1.0 - WRONG) * np.exp(-0.5 * z**2) + WRONG
    return pi


def _numbers(axis: Axis, u: Array) -> Array:
    """The values, as `decode` has them, up to rounding."""
    if isinstance(axis, Continuous):
        a, b = axis._ends()
        w = a + np.clip(u, 0.0, 1.0) * (b - a)
        return np.asarray(np.exp(w) if axis.log else w)
    assert isinstance(axis, Ordinal)
    level = axis._cell(u)
    if axis.choices is not None:
        table = as_numbers(axis.choices)
        return np.asarray(table[level.astype(int)])
    return np.asarray(axis.low + level * axis.step)


def _lowest(axis: Axis) -> float:
    return float(_numbers(axis, np.zeros(1))[0])


def _highest(axis: Axis) -> float:
    return float(_numbers(axis, np.ones(1))[0])
