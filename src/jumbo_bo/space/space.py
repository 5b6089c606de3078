"""The search space: parameters <-> unit cube, and the representation T(u) the models see.

Notation
    params  dict name -> value, what the user sees
    u       (m, d) in [0, 1], one coordinate per parameter, what an optimizer moves
    T(u)    (m, D) the snapped, one-hot representation (paper, 'Dealing with Categorical Variables in HPO')
    groups  (D,)   which parameter each column of T(u) belongs to

Parameters are Optuna distributions; `axes.py` says how each kind is encoded. One with a condition is in `params` only
where that holds; elsewhere its coordinate is a fixed one, see `conditions.py`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, distribution_to_json

from jumbo_bo.errors import InputError, brief
from jumbo_bo.space.axes import Array as Array
from jumbo_bo.space.axes import Axis as Axis
from jumbo_bo.space.axes import axis_of, centres
from jumbo_bo.space.conditions import Conditions, Mask, conditions_of, product, record

Params = dict[str, Any]

GRID_LIMIT = 200_000


def placed(name: str, axis: Axis, value: Any) -> float:
    u = float(axis.encode([value])[0])
    if not math.isfinite(u):
        raise InputError(f"{name!r} is {brief(value)}, expected {axis.describe()}")
    return u


@dataclass(frozen=True, eq=False)
class Space:
    """Named parameters, each an Optuna distribution.

    >>> from optuna.distributions import FloatDistribution
    >>> Space({"lr": FloatDistribution(1e-5, 1e-1, log=True)}).decode([0.5])
    {'lr': 0.001}

    `conditions` says of a parameter when it exists, such as {"max_depth": "booster == 'gbtree'"}.
    """

    distributions: Mapping[str, BaseDistribution]
    conditions: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.distributions:
            raise InputError("a space needs at least one parameter, got none")
        object.__setattr__(self, "distributions", dict(self.distributions))
        _ = self.axes  # builds and checks every parameter
        _ = self._conditions
        object.__setattr__(self, "conditions", record(self.conditions, self.distributions))

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        return tuple(axis_of(name, dist) for name, dist in self.distributions.items())

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(self.distributions)

    @property
    def d(self) -> int:
        return len(self.axes)

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """Parameter index of each column of T(u)."""
        return tuple(i for i, axis in enumerate(self.axes) for _ in range(axis.width))

    @cached_property
    def _conditions(self) -> Conditions | None:
        return conditions_of(self.names, self.axes, self.conditions) if self.conditions else None

    @cached_property
    def cardinality(self) -> int | None:
        """Number of configurations, None when a parameter is continuous."""
        levels = [axis.levels for axis in self.axes]
        if None in levels:
            return None
        product = math.prod(n for n in levels if n is not None)
        counted = None if self._conditions is None else self._conditions.cardinality
        return product if counted is None else counted

    @cached_property
    def fingerprint(self) -> str:
        """Changes with any change of a name, a distribution or the order of parameters."""
        parts: list[Any] = [(name, distribution_to_json(dist)) for name, dist in self.distributions.items()]
        text = json.dumps([*parts, dict(self.conditions)] if self.conditions else parts)
        return hashlib.sha256(text.encode()).hexdigest()

    def encode(self, params: Mapping[str, Any]) -> Array:  # -> (d,)
        """One configuration as u. A missing, unknown or impossible value is an error that names it; the value of a
        parameter that does not exist there is ignored."""
        active = self.active(params)
        self._check_names(params, active)
        u = np.empty(self.d) if self._conditions is None else self._conditions.rest.copy()
        for i, (name, axis) in enumerate(zip(self.names, self.axes, strict=True)):
            if name in active:
                u[i] = placed(name, axis, params[name])
        return u

    def decode(self, u: Sequence[float] | Array) -> Params:  # (d,) ->
        params = {name: axis.decode(float(x)) for name, axis, x in zip(self.names, self.axes, u, strict=True)}
        if self._conditions is None:
            return params
        there = self._conditions.there(np.asarray(u, dtype=float)[None])[0]
        return {name: params[name] for name, here in zip(self.names, there, strict=True) if here}

    def active(self, params: Mapping[str, Any]) -> tuple[str, ...]:
        """The parameters that this configuration has, or must have, whatever else is among `params`."""
        if self._conditions is None:
            return self.names
        u = np.full((1, self.d), math.nan)
        for i, (name, axis) in enumerate(zip(self.names, self.axes, strict=True)):
            if name in params:
                u[0, i] = axis.encode([params[name]])[0]
        return tuple(name for name, here in zip(self.names, self.there(u)[0], strict=True) if here)

    def present(self, params: Mapping[str, Any]) -> Params:
        """`params` without values of parameters that do not exist there."""
        if self._conditions is None:
            return dict(params)
        active = self.active(params)
        return {name: value for name, value in params.items() if name in active or name not in self.distributions}

    def checked(self, params: Mapping[str, Any]) -> Params:
        """Some values of one configuration, as `decode` would give them."""
        self._check_names(params, ())
        found = {}
        for name, axis in zip(self.names, self.axes, strict=True):
            if name in params:
                found[name] = axis.decode(placed(name, axis, params[name]))
        return found

    def there(self, u: Array) -> Mask:  # (m, d) -> (m, d)
        """Which parameters exist at each point. NaN is a value that is not known."""
        return np.ones(u.shape, dtype=bool) if self._conditions is None else self._conditions.there(u)

    @cached_property
    def order(self) -> Sequence[int]:
        """The parameters by index, those that decide whether others exist before those."""
        return range(self.d) if self._conditions is None else self._conditions.order

    def exists(self, i: int, u: Array, there: Mask) -> Mask:  # (m, d), (m, d) -> (m,)
        """Column i of `there`, of which the columns before it in `order` are known."""
        if self._conditions is None or self.names[i] not in self.conditions:
            return np.ones(len(u), dtype=bool)
        return self._conditions.exists(i, u, there)

    def deciding(self, name: str) -> tuple[str, ...]:
        """The parameters that the condition of this one speaks of."""
        i = self.names.index(name)
        return () if self._conditions is None or name not in self.conditions else self._conditions.formulas[i].names

    def rest(self, u: Array, there: Mask) -> Array:  # (m, d), (m, d) -> (m, d)
        """With the coordinates of parameters that do not exist where they belong."""
        return u if self._conditions is None else self._conditions.rested(u, there)

    def snap(self, u: Array) -> Array:  # (m, d) -> (m, d)
        """Moves every coordinate to the centre of its cell; continuous ones stay."""
        snapped = np.clip(u, 0.0, 1.0)  # all that continuous parameters need, at once
        for i, axis in self._stepped:
            snapped[:, i] = axis.snap(u[:, i])
        return snapped if self._conditions is None else self.rest(snapped, self.there(snapped))

    def transform(self, u: Array) -> Array:  # (m, d) -> (m, D)
        """T(u) of the paper: snapped, ordinals scaled to [0, 1], nominals one-hot."""
        if not self._stepped:
            return self.snap(u)
        columns = np.hstack([axis.transform(u[:, i]) for i, axis in enumerate(self.axes)])
        return columns if self._conditions is None else self._conditions.transformed(columns, self.there(u))

    @cached_property
    def _stepped(self) -> tuple[tuple[int, Axis], ...]:
        return tuple((i, axis) for i, axis in enumerate(self.axes) if axis.levels is not None)

    def grid(self) -> Array:  # -> (N, d)
        """Every configuration of a finite space, last parameter fastest."""
        n = self.cardinality
        if n is None:
            raise InputError("the space has a continuous parameter, so it has no grid; use sample()")
        if n > GRID_LIMIT:
            raise InputError(f"the space has {n:,} configurations, more than the {GRID_LIMIT:,} a grid may hold")
        if self._conditions is not None:
            return self._conditions.grid()
        return product([centres(axis) for axis in self.axes])

    def sample(self, rng: np.random.Generator, n: int) -> Array:  # -> (n, d)
        return self.snap(rng.random((n, self.d)))

    def _check_names(self, params: Mapping[str, Any], active: Sequence[str]) -> None:
        wrong = {
            "missing": [name for name in active if name not in params],
            "unknown": [name for name in params if name not in self.distributions],
        }
        if any(wrong.values()):
            found = ", ".join(f"{what} {names}" for what, names in wrong.items() if names)
            raise InputError(f"parameters do not match the space ({found}); it has {list(self.names)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Space) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)
