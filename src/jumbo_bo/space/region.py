"""Where the constraints hold: points of the unit cube drawn there, and moved there.

A finite region is listed as far as it has at most MOST rows. Otherwise points are drawn at random where many of the
cube's are allowed; along the sums where that is too rare, as in a mixture, whose fractions sum to one.

Notation
    u       (m, d) points of the unit cube
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from jumbo_bo.errors import InputError, brief
from jumbo_bo.space.axes import Array, Axis
from jumbo_bo.space.constraints import Rule
from jumbo_bo.space.grid import grid_of
from jumbo_bo.space.sums import Sums

Mask = npt.NDArray[np.bool_]
Decode = Callable[[Array], dict[str, Any]]

DRAWN = 4_096  # points of the cube that are tried first
ENOUGH = 400  # of them: then that is how points are drawn
KEPT = 512  # points of the region that others are moved towards
LONG, SHORT = 120, 20  # steps of the walk: at first, and for every later draw
INWARDS = 0.7  # from where the walk starts: at the edges it would be slow
ROUNDS = 40  # of further draws where few are allowed
TOWARDS = (0.7, 0.4, 0.15)  # of the way from a point of the region


@dataclass(frozen=True, eq=False)
class Region:
    names: tuple[str, ...]
    axes: tuple[Axis, ...]
    rules: tuple[Rule, ...]

    @cached_property
    def sums(self) -> Sums:
        return Sums.of(self.rules, self.names, self.axes)

    @cached_property
    def asked(self) -> tuple[Rule, ...]:
        """The rules that are no sums."""
        return tuple(rule for rule in self.rules if not rule.sums)

    def cells(self, u: Array) -> Array:
        """Every parameter at a value of its own, whatever the constraints say."""
        u = np.clip(u, 0.0, 1.0)
        for i in np.flatnonzero(self.sums.stepped):
            u[:, i] = self.axes[i].snap(u[:, i])
        return u

    def allowed(self, u: Array) -> Mask:  # (m, d) -> (m,)
        """Of points at values."""
        ok = self.sums.hold(u)
        for rule in self.asked:
            rows = np.flatnonzero(ok)
            ok[rows] = self._ask(rule, u[rows])
        return ok

    def broken(self, u: Array) -> list[str]:  # (d,)
        """The constraints that do not hold at a point, as they were written."""
        return [rule.text for rule in self.rules if not Region(self.names, self.axes, (rule,)).allowed(u[None])[0]]

    def _ask(self, rule: Rule, u: Array) -> Mask:
        columns = [self.names.index(name) for name in rule.names]
        part, back = np.unique(u[:, columns], axis=0, return_inverse=True)
        axes = [self.axes[i] for i in columns]
        return np.array(
            [
                rule.holds({name: a.decode(float(x)) for name, a, x in zip(rule.names, axes, row, strict=True)})
                for row in part
            ],
            dtype=bool,
        )[back.reshape(-1)]

    @cached_property
    def grid(self) -> Array | None:  # (N, d)
        """All of a finite region; None when it is continuous, or too large to be listed."""
        if not self.sums.stepped.all():
            return None
        return grid_of(self.axes, self.names, self.sums, self.asked, self._ask)

    @cached_property
    def _cube(self) -> Array:
        """Allowed points among some drawn from the whole cube."""
        u = self.cells(np.random.default_rng(0).random((DRAWN, len(self.axes))))
        return u[self.allowed(u)]

    @cached_property
    def _relaxed(self) -> Array:
        """Where the sums hold, between steps too."""
        rng, d = np.random.default_rng(1), len(self.axes)
        seeds = self.sums.slide(rng.random((KEPT, d)), np.ones(d, bool))
        seeds = seeds[self.sums.hold(seeds)]
        if len(seeds) < d + 1:
            seeds = np.vstack([seeds, corners(self.sums)])
        if not len(seeds):
            return seeds
        inner = self.sums.slide(seeds.mean(axis=0) + INWARDS * (seeds - seeds.mean(axis=0)), np.ones(d, bool))
        seeds = np.vstack([inner[self.sums.hold(inner)], seeds])
        return self.sums.walk(seeds[np.arange(KEPT) % len(seeds)], rng, LONG)

    @cached_property
    def points(self) -> Array:  # (N, d)
        """Points of the region, spread over it: all of a grid. None: nothing meets the constraints, as far as known."""
        if self.grid is not None:
            return self.grid
        if len(self._cube) >= ENOUGH or (len(self._cube) and not len(self.sums)):
            return self._cube[:KEPT]
        rng, found, n = np.random.default_rng(2), [self._cube[:0]], 0
        for _ in range(ROUNDS):
            u = self._draw(rng, KEPT)
            u = u[self.allowed(u)]
            found.append(u)
            n += len(u)
            if n >= KEPT or (n == 0 and not len(self._relaxed) and len(self.sums)):
                break
        return np.vstack(found)[:KEPT]

    def _draw(self, rng: np.random.Generator, n: int) -> Array:
        """Points at values, most of them allowed where only sums forbid."""
        d = len(self.axes)
        if not len(self.sums) or len(self._cube) >= ENOUGH:
            return self.cells(rng.random((n, d)))
        known = self._relaxed
        if not len(known):
            return known
        u = self.sums.walk(known[rng.integers(len(known), size=n)], rng, SHORT, known)
        free = ~self.sums.used
        u[:, free] = rng.random((n, int(free.sum())))
        return self.sums.settle(u)

    def sample(self, rng: np.random.Generator, n: int) -> Array:  # -> (n, d)
        """Spread evenly over the region, at random."""
        if self.grid is not None:
            return self.grid[rng.integers(len(self.grid), size=n)]
        found, have = [self.points[:0]], 0
        for _ in range(ROUNDS):
            if have >= n:
                break
            u = self._draw(rng, max(n, 64))
            found.append(u[self.allowed(u)])
            have += len(found[-1])
        else:
            found.append(self.points[rng.integers(len(self.points), size=max(0, n - have))])
        return np.vstack(found)[:n]

    def nearest(self, u: Array) -> Array:  # (m, d) -> (m, d)
        """The same points where they are allowed. Others are moved along the sums, then towards known points of the
        region, until they are."""
        moved = self.cells(u)
        left = np.flatnonzero(~self.allowed(moved))
        if not len(left):
            return moved
        goals = self._known_near(np.clip(u[left], 0.0, 1.0))
        for share in (1.0, *TOWARDS):
            there = goals + share * (u[left] - goals)
            there = self.sums.settle(there) if len(self.sums) else self.cells(there)
            ok = self.allowed(there)
            moved[left[ok]] = there[ok]
            left, goals = left[~ok], goals[~ok]
            if not len(left):
                return moved
        moved[left] = goals
        return moved

    def _known_near(self, u: Array) -> Array:
        """The closest of some points of the region."""
        some = self.points[np.linspace(0, len(self.points) - 1, min(KEPT, len(self.points))).astype(int)]
        apart = ((u[:, None] - some) ** 2).sum(axis=-1)
        near: Array = some[apart.argmin(axis=1)]
        return near


def checked(region: Region) -> Region:
    """Refuses constraints that nothing meets."""
    if len(region.points):
        return region
    for rule in region.rules:
        alone = Region(region.names, region.axes, (rule,))
        if not len(alone.points):
            raise InputError(f"the constraint {brief(rule.text)} is met by no configuration{_why(alone)}")
    needed = list(region.rules)
    for rule in region.rules:
        fewer = [other for other in needed if other is not rule]
        if not len(Region(region.names, region.axes, tuple(fewer)).points):
            needed = fewer
    texts = ", ".join(brief(rule.text) for rule in needed)
    raise InputError(f"the constraints {texts} are never met at the same time; change one of them, or widen the space")


def _why(alone: Region) -> str:
    for row, part in enumerate(part for rule in alone.rules for part in rule.sums):
        low, high = alone.sums.range_of(row)
        if part.low > high or part.high < low or (part.strict and (part.low == high or part.high == low)):
            goal, words = (
                (part.low, ("at least ", "above ")) if part.low >= high else (part.high, ("at most ", "below "))
            )
            side = "" if part.low == part.high else words[part.strict]
            found = " + ".join(f"{w:g} {n}" if w != 1 else n for n, w in part.c.items())
            return f": {found} lies between {low:.12g} and {high:.12g}, and would have to be {side}{goal:.12g}"
    if alone.grid is not None:
        return ", although the ranges would allow it: the steps or choices of its parameters miss it"
    if alone.asked:
        return f" among {DRAWN:,} that were drawn at random"
    return ""


def corners(sums: Sums) -> Array:  # -> (k, d)
    """Extreme points of a region that is hard to hit, by linear programs; none when it is empty."""
    from scipy.optimize import linprog

    d, rng = len(sums.axes), np.random.default_rng(3)
    line = np.flatnonzero(sums.used)
    ends = sums.x(np.vstack([sums.first, sums.last]))[:, line]
    c = sums.c[:, line]
    low, high = sums.low, sums.high
    rows = np.vstack([c[np.isfinite(high)], -c[np.isfinite(low)]])
    limits = np.concatenate([high[np.isfinite(high)], -low[np.isfinite(low)]])
    size = np.maximum(np.ptp(ends, axis=0), np.finfo(float).tiny)
    found = []
    for _ in range(2 * d):
        answer = linprog(rng.standard_normal(len(line)) / size, rows, limits, bounds=ends.T)
        if answer.x is None:
            return np.zeros((0, d))
        u = rng.random(d)
        u[line] = [_place(sums, int(i), x) for i, x in zip(line, answer.x, strict=True)]
        found.append(u)
    u = np.array(found)
    mixed = np.vstack([u, rng.dirichlet(np.ones(len(u)), 4 * d) @ u])
    mixed = sums.slide(mixed, np.ones(d, bool))
    return mixed[sums.hold(mixed)]


def _place(sums: Sums, i: int, x: float) -> float:
    """u of a number, by halving."""
    a, b = sums.first[i], sums.last[i]
    u = np.tile(sums.first, (1, 1))
    for _ in range(60):
        u[0, i] = (a + b) / 2
        a, b = (u[0, i], b) if sums.x(u)[0, i] < x else (a, u[0, i])
    return float((a + b) / 2)
