"""Bounds on weighted sums of parameters, in the unit cube: points are moved onto them, along them, and to steps there.

Notation
    u       (m, d) points of the unit cube; a parameter with steps may be between two of them ('relaxed')
    x(u)    (m, d) the numbers that they stand for
    c       (r, d) weights; low <= c x <= high (r,), up to tol (r,)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from jumbo_bo.space.axes import Array, Axis, Continuous, Ordinal, centres
from jumbo_bo.space.constraints import TOLERANCE, Rule

Mask = npt.NDArray[np.bool_]

SWEEPS = 50  # over all sums, until each of them holds
HALVINGS = 50
SHRINKAGES = 15  # of a step of the walk that leaves the region


@dataclass(frozen=True, eq=False)
class Sums:
    axes: tuple[Axis, ...]
    c: Array
    low: Array
    high: Array
    tol: Array

    @classmethod
    def of(cls, rules: Sequence[Rule], names: Sequence[str], axes: tuple[Axis, ...]) -> Sums:
        parts = [part for rule in rules for part in rule.sums]
        c = np.array([[part.c.get(name, 0.0) for name in names] for part in parts]).reshape(len(parts), len(names))
        ends = [_ends(axis) for axis in axes]
        both = [numbers(axis, np.array(end)) for axis, end in zip(axes, ends, strict=True)]
        largest = np.abs(both).max(axis=1)
        goals = np.array([[part.low, part.high] for part in parts]).reshape(-1, 2)
        known = np.where(np.isfinite(goals), np.abs(goals), 0.0).max(axis=1, initial=0.0)
        tol = TOLERANCE * np.maximum((np.abs(c) * largest).max(axis=1, initial=0.0), known)
        margin = 2 * tol * np.array([part.strict for part in parts], dtype=bool)
        return cls(axes, c, goals[:, 0] + margin, goals[:, 1] - margin, tol)

    def __len__(self) -> int:
        return len(self.c)

    @cached_property
    def first(self) -> Array:  # (d,) u of the smallest value
        return np.array([_ends(axis)[0] for axis in self.axes])

    @cached_property
    def last(self) -> Array:
        return np.array([_ends(axis)[1] for axis in self.axes])

    @cached_property
    def stepped(self) -> Mask:  # (d,)
        return np.array([axis.levels is not None for axis in self.axes])

    @cached_property
    def used(self) -> Mask:  # (d,)
        used: Mask = (self.c != 0).any(axis=0)
        return used

    @cached_property
    def equal(self) -> Mask:  # (r,) equations
        same: Mask = np.asarray(self.low == self.high)
        return same

    @cached_property
    def _line(self) -> tuple[Array, Array, list[int]]:
        """x at u = 0 and its slope, of the columns where x is a straight line; the used columns where it is not."""
        base, slope, bent = np.zeros(len(self.axes)), np.zeros(len(self.axes)), []
        for i in np.flatnonzero(self.used):
            axis, ends = self.axes[i], np.array([self.first[i], self.last[i]])
            a, b = numbers(axis, ends)
            if ends[1] > ends[0]:
                slope[i] = (b - a) / (ends[1] - ends[0])
            base[i] = a - slope[i] * ends[0]
            if getattr(axis, "log", False) or getattr(axis, "choices", None) is not None:
                bent.append(int(i))
        return base, slope, bent

    def x(self, u: Array) -> Array:  # (m, d) -> (m, d), 0 for a column that no sum uses
        base, slope, bent = self._line
        x: Array = base + slope * u
        for i in bent:
            x[:, i] = numbers(self.axes[i], u[:, i])
        return x

    def outside(self, u: Array) -> Array:  # (m, d) -> (m, r) by how much, beyond the tolerance
        total = self.x(u) @ self.c.T
        beyond: Array = np.maximum(np.maximum(self.low - total, total - self.high) - self.tol, 0.0)
        return beyond

    def hold(self, u: Array) -> Mask:  # (m, d) -> (m,)
        if not len(self):
            return np.ones(len(u), bool)
        return np.asarray((self.outside(u) <= 0).all(axis=1))

    def range_of(self, row: int) -> tuple[float, float]:
        """The smallest and the largest total that the ranges of the parameters allow."""
        ends = self.x(np.vstack([self.first, self.last])) * self.c[row]
        return float(ends.min(axis=0).sum()), float(ends.max(axis=0).sum())

    def slide(self, u: Array, movable: Mask, sweeps: int = SWEEPS) -> Array:
        """One sum after the other is moved to the nearest total that it may have: all movable parameters by the same
        distance times their influence, as far as their ranges go. For one sum of straight lines that is the projection
        onto it, wherever no range ends."""
        u = np.clip(u, self.first, self.last)
        for _ in range(sweeps):
            moved = False
            for row in range(len(self)):
                total = self.x(u) @ self.c[row]
                goal = np.clip(total, self.low[row], self.high[row])
                off = np.abs(total - goal) > self.tol[row] / 1000
                if off.any():
                    u[off] = self._onto(row, u[off], goal[off], movable)
                    moved = True
            if not moved or len(self) == 1:
                break
        return u

    def _onto(self, row: int, u: Array, goal: Array, movable: Mask) -> Array:
        way = self.c[row] * self._line[1] * movable
        if not way.any():
            return u
        way /= np.abs(way).max()
        reach = 1.0 / np.abs(way[way != 0]).min()

        def total(step: Array) -> Array:
            moved: Array = self.x(np.clip(u + step[:, None] * way, self.first, self.last)) @ self.c[row]
            return moved

        a, b = np.full(len(u), -reach), np.full(len(u), reach)
        for _ in range(HALVINGS):
            middle = (a + b) / 2
            below = total(middle) < goal
            a, b = np.where(below, middle, a), np.where(below, b, middle)
        at_a, at_b = total(a), total(b)
        share = np.divide(goal - at_a, at_b - at_a, out=np.zeros(len(u)), where=at_b > at_a)
        step = a + np.clip(share, 0.0, 1.0) * (b - a)
        found: Array = np.clip(u + step[:, None] * way, self.first, self.last)
        return found

    def settle(self, u: Array) -> Array:
        """Near u, all sums hold and all steps are kept, wherever that is found."""
        relaxed = self.slide(u, np.ones(len(self.axes), bool))
        if not self.stepped.any():
            return relaxed
        u = relaxed.copy()
        for i in np.flatnonzero(self.stepped):
            u[:, i] = self.axes[i].snap(u[:, i])
        return self.slide(self._rounded(u, relaxed), ~self.stepped)

    def _rounded(self, u: Array, relaxed: Array) -> Array:
        """Parameters with steps go up or down by one step, one after the other, until the others can do the rest.
        Among moves that help as much, the one that stays closest to the relaxed point is made."""
        columns = np.flatnonzero(self.stepped & self.used & (self.last > self.first))
        if not len(columns):
            return u
        smooth = self.x(np.vstack([self.first, self.last]))[:, ~self.stepped]
        parts = smooth[:, None, :] * self.c[:, ~self.stepped]  # (2, r, .)
        low, high = self.low - parts.max(axis=0).sum(axis=1), self.high - parts.min(axis=0).sum(axis=1)
        size = np.maximum(self.tol / TOLERANCE, np.finfo(float).tiny)

        def lacking(total: Array) -> Array:  # (..., r) -> (...)
            beyond = np.maximum(np.maximum(low - total, total - high) - self.tol, 0.0)
            return np.asarray((beyond / size).sum(axis=-1))

        weights = self.c * self.stepped
        for _ in range(4 * len(columns) + 4):
            rows = np.flatnonzero(lacking(self.x(u) @ weights.T) > 0)
            if not len(rows):
                break
            here, x = u[rows], self.x(u[rows])
            total, lack = x @ weights.T, lacking(x @ weights.T)
            best, gain, place = np.full(len(rows), -np.inf), np.full(len(rows), -1), np.zeros(len(rows))
            for i in columns:
                level = _level(self.axes[i], here[:, i])
                for step in (-1, 1):
                    there = _centre(self.axes[i], level + step)
                    change = numbers(self.axes[i], there) - x[:, i]
                    less = lack - lacking(total + change[:, None] * self.c[:, i])
                    away = np.abs(there - relaxed[rows, i]) - np.abs(here[:, i] - relaxed[rows, i])
                    value = np.where(less > 1e-12, less / np.abs(lack) - away, -np.inf)
                    better = value > best
                    best[better], gain[better], place[better] = value[better], i, there[better]
            can = gain >= 0
            if not can.any():
                break
            u[rows[can], gain[can]] = place[can]
        return u

    def walk(self, u: Array, rng: np.random.Generator, steps: int, among: Array | None = None) -> Array:
        """Relaxed points, each moved at random within the region; after many steps they are spread evenly over it. The
        directions are differences of points of the region, which have its shape, and others parallel to equations.

        Hit-and-run (Smith, Operations Research 32, 1984), with the interval shrunk where it leaves the region (Neal,
        'Slice sampling', 2003)."""
        plane = self._parallel
        for k in range(steps):
            others = u if among is None else among
            if k % 2 and len(others) > 1:
                ways = others[rng.integers(len(others), size=len(u))] - others[rng.integers(len(others), size=len(u))]
            else:
                ways = rng.standard_normal(u.shape) @ plane
            u = self._moved(u, ways, rng)
        return u

    def _moved(self, u: Array, ways: Array, rng: np.random.Generator) -> Array:
        still = np.abs(ways) < 1e-12
        safe = np.where(still, 1.0, ways)
        ends = np.stack([(self.first - u) / safe, (self.last - u) / safe])
        least = np.where(still, -np.inf, ends.min(axis=0)).max(axis=1)
        most = np.where(still, np.inf, ends.max(axis=0)).min(axis=1)
        todo = np.flatnonzero(np.isfinite(least) & np.isfinite(most) & (most > least))
        a, b, u = least.copy(), most.copy(), u.copy()
        start, everywhere = u.copy(), np.ones(len(self.axes), bool)
        for _ in range(SHRINKAGES):
            if not len(todo):
                break
            t = a[todo] + rng.random(len(todo)) * (b[todo] - a[todo])
            there = np.clip(start[todo] + t[:, None] * ways[todo], self.first, self.last)
            if self._line[2] and self.equal.any():
                there = self.slide(there, everywhere, 1)
            inside = self.hold(there)
            u[todo[inside]] = there[inside]
            left, back = todo[~inside], t[~inside] < 0
            a[left], b[left] = np.where(back, t[~inside], a[left]), np.where(back, b[left], t[~inside])
            todo = left
        return u

    @cached_property
    def _parallel(self) -> Array:  # (d, d)
        """Onto directions that change no equation."""
        rows = (self.c * self._line[1])[self.equal]
        free = np.diag((self.last > self.first).astype(float))
        return free - np.linalg.pinv(rows @ free) @ (rows @ free) if len(rows) else free


def _ends(axis: Axis) -> tuple[float, float]:
    """u of the smallest and of the largest value. Of text: all of [0, 1]."""
    if not isinstance(axis, Ordinal):
        return 0.0, 1.0
    a, b = axis._centre(np.array([0.0, axis.levels - 1.0]))
    return float(a), float(b)


def numbers(axis: Axis, u: Array) -> Array:  # (m,) -> (m,)
    """The number at u; between two steps, a number between the two."""
    if isinstance(axis, Continuous):
        a, b = axis._ends()
        w: Array = a + u * (b - a)
        return np.asarray(np.exp(w)) if axis.log else w
    if not isinstance(axis, Ordinal):
        return np.zeros(len(u))
    if axis.choices is not None:
        return np.asarray(np.interp(u, centres(axis), np.asarray(axis.choices, dtype=float)))
    if axis.log:
        a, b = axis._log_ends()
        return np.asarray(np.exp(a + u * (b - a)))
    return np.asarray(axis.low + axis.step * (u * axis.levels - 0.5), dtype=float)


def _level(axis: Axis, u: Array) -> Array:
    assert isinstance(axis, Ordinal)
    return axis._cell(u)


def _centre(axis: Axis, level: Array) -> Array:
    assert isinstance(axis, Ordinal)
    centre: Array = axis._centre(np.clip(level, 0, axis.levels - 1))
    return centre
