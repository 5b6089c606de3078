"""The search space: parameters <-> unit cube, and the representation T(u) the models see.

Notation
    params  dict name -> value, what the user sees
    u       (m, d) in [0, 1], one coordinate per parameter, what an optimizer moves
    T(u)    (m, D) the snapped, one-hot representation (paper, 'Dealing with Categorical Variables in HPO')
    groups  (D,)   which parameter each column of T(u) belongs to

Parameters are Optuna distributions; `axes.py` says how each kind is encoded. One with a condition is in `params` only
where that holds; elsewhere its coordinate is a fixed one, see `conditions.py`. Constraints say which configurations are
suggested (`region.py`); they do not change how configurations are encoded, nor what is learned from old runs.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, distribution_to_json

from jumbo_bo.errors import InputError, brief
from jumbo_bo.space.axes import Array as Array
from jumbo_bo.space.axes import Axis as Axis
from jumbo_bo.space.axes import axis_of, centres
from jumbo_bo.space.conditions import Conditions, Mask, conditions_of, count_of, product, record
from jumbo_bo.space.constraints import Predicate, checked, identity, name_of, rules_of
from jumbo_bo.space.region import Region
from jumbo_bo.space.region import checked as reachable

Params = dict[str, Any]

GRID_LIMIT = 200_000


def placed(name: str, axis: Axis, value: Any) -> float:
    u = float(axis.encode([value])[0])
    if not math.isfinite(u):
        raise InputError(f"{name!r} is {brief(value)}, expected {axis.describe()}")
    return u


@dataclass(frozen=True, eq=False)
class Space:
    """Named parameters, each an Optuna distribution, and what their values have to meet together.

    constraints     texts such as "x_a + x_b <= 1", or functions of the configuration that return True or False

    >>> from optuna.distributions import FloatDistribution
    >>> Space({"lr": FloatDistribution(1e-5, 1e-1, log=True)}).decode([0.5])
    {'lr': 0.001}

    `conditions` says of a parameter when it exists, such as {"max_depth": "booster == 'gbtree'"}.
    """

    distributions: Mapping[str, BaseDistribution]
    conditions: Mapping[str, str] = field(default_factory=dict)
    constraints: Sequence[str | Predicate] = ()

    def __post_init__(self) -> None:
        if not self.distributions:
            raise InputError("a space needs at least one parameter, got none")
        object.__setattr__(self, "distributions", dict(self.distributions))
        _ = self.axes  # builds and checks every parameter
        _ = self._conditions
        object.__setattr__(self, "conditions", record(self.conditions, self.distributions))
        object.__setattr__(self, "constraints", checked(self.constraints))
        if self.constraints and self.conditions:
            raise InputError("a space with conditions cannot have constraints; leave out one of the two")
        _ = self._region  # checks that something meets the constraints

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
    def _region(self) -> Region | None:
        """Where the constraints hold; None without any."""
        if not self.constraints:
            return None
        rules = rules_of(self.constraints, dict(zip(self.names, self.axes, strict=True)))
        return reachable(Region(self.names, self.axes, rules))

    def allows(self, params: Mapping[str, Any]) -> bool:
        """Whether a configuration of the space meets all constraints."""
        return not self.broken(params)

    def broken(self, params: Mapping[str, Any]) -> list[str]:
        """The constraints that a configuration of the space does not meet, as they were written."""
        return [] if self._region is None else self._region.broken(self.snapped(self.encode(params)[None])[0])

    def allowed(self, u: Array) -> Mask:  # (m, d) -> (m,)
        """Which points meet all constraints."""
        return np.ones(len(u), bool) if self._region is None else self._region.allowed(self.snapped(u))

    @property
    def constraint_texts(self) -> list[str]:
        """As they were written; of a function its name."""
        return [c if isinstance(c, str) else name_of(c) for c in self.constraints]

    @cached_property
    def unconstrained(self) -> Space:
        """The same parameters alone."""
        return Space(self.distributions) if self.constraints else self

    @cached_property
    def cardinality(self) -> int | None:
        """Number of configurations, None when a parameter is continuous. Those that meet the constraints, unless they
        are too many to be counted: then those of the ranges."""
        if self._region is not None and self._region.grid is not None:
            return len(self._region.grid)
        return count_of(self.axes, self._conditions)

    def count(self, fixed: Mapping[str, Any]) -> int | None:
        """The same of the configurations with these values, where they exist."""
        if self.constraints:
            return self._holding(fixed).cardinality
        axes = tuple(axis_of(name, dist) for name, dist in self._held(fixed).items())
        return count_of(axes, None if self._conditions is None else replace(self._conditions, axes=axes))

    @cached_property
    def fingerprint(self) -> str:
        """Changes with any change of a name, a distribution, a condition or the order of parameters. What was learned
        from old runs fits any constraints, so they are no part of it."""
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
        """Moves every point to a configuration that may be tried: each coordinate to the centre of its cell, continuous
        ones stay; and on to where the constraints hold."""
        return self.snapped(u) if self._region is None else self._region.nearest(u)

    def snapped(self, u: Array) -> Array:  # (m, d) -> (m, d)
        """The same for each coordinate alone, whatever the constraints say."""
        snapped = np.clip(u, 0.0, 1.0)  # all that continuous parameters need, at once
        for i, axis in self._stepped:
            snapped[:, i] = axis.snap(u[:, i])
        return snapped if self._conditions is None else self.rest(snapped, self.there(snapped))

    def transform(self, u: Array) -> Array:  # (m, d) -> (m, D)
        """T(u) of the paper: snapped, ordinals scaled to [0, 1], nominals one-hot."""
        if not self._stepped:
            return self.snapped(u)
        columns = np.hstack([axis.transform(u[:, i]) for i, axis in enumerate(self.axes)])
        return columns if self._conditions is None else self._conditions.transformed(columns, self.there(u))

    @cached_property
    def _stepped(self) -> tuple[tuple[int, Axis], ...]:
        return tuple((i, axis) for i, axis in enumerate(self.axes) if axis.levels is not None)

    def grid(self) -> Array:  # -> (N, d)
        """Every configuration of a finite space, last parameter fastest. Of one with constraints, those that meet
        them."""
        n = self.cardinality
        if n is None:
            raise InputError("the space has a continuous parameter, so it has no grid; use sample()")
        if n > GRID_LIMIT:
            raise InputError(f"the space has {n:,} configurations, more than the {GRID_LIMIT:,} a grid may hold")
        if self._region is not None and self._region.grid is not None:
            return self._region.grid
        if self._conditions is not None:
            return self._conditions.grid()
        return product([centres(axis) for axis in self.axes])

    def sample(self, rng: np.random.Generator, n: int) -> Array:  # -> (n, d)
        """Configurations that may be tried, drawn at random."""
        return self.snap(rng.random((n, self.d))) if self._region is None else self._region.sample(rng, n)

    def completions(self, fixed: Params, rng: np.random.Generator, n: int) -> list[Params]:
        """At most n configurations with these values of some parameters that meet the constraints, drawn at random."""
        space = self._holding(fixed)
        few = space.cardinality is not None and space.cardinality <= n
        found = [space.decode(u) | fixed for u in (space.grid() if few else space.sample(rng, n))]
        return [found[i] for i in rng.permutation(len(found))]

    def _held(self, fixed: Mapping[str, Any]) -> dict[str, BaseDistribution]:
        return {n: CategoricalDistribution([fixed[n]]) if n in fixed else d for n, d in self.distributions.items()}

    def _holding(self, fixed: Mapping[str, Any]) -> Space:
        try:
            return Space(self._held(fixed), constraints=self.constraints)
        except InputError as error:
            raise InputError(f"{brief(dict(fixed))} cannot be completed to a configuration: {error}") from None

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
        return isinstance(other, Space) and self.fingerprint == other.fingerprint and self._said == other._said

    @cached_property
    def _said(self) -> tuple[str, ...]:
        return tuple(map(identity, self.constraints))

    def __hash__(self) -> int:
        return hash(self.fingerprint)
