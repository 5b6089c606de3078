"""Rows that arrive in any order and number -> a bounded random sample of each task, the same however they are batched.

Notation
    code    (n,)   index of each row's task
    key     (n,)   a random number of each row, drawn from its source and its number there
    y       (n,)   objective, larger is better
    u       (n, d) configurations in [0, 1]
    cap     rows a task may keep: small tasks keep all of theirs, large ones share what is left

Up to `most` rows nothing is left out. Of a task with more than `cap` rows the best ones stay (they are shown as reasons
for a suggestion), the worst one stays (so the range of values is exact), and of the others those with the smallest
keys: a uniform sample. As more rows arrive the cap only falls, so a row that was left out never has to come back.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

BEST = 200  # of a task; as many as explain.py looks through
BEST_SHARE = 100  # ... and at most one in so many of its rows, as the best ones alone would bend its scale
LEAST = 3  # rows that every task may keep: the best, the worst and another


def water_level(counts: Codes, most: int) -> float:
    """The cap: with it the tasks keep `most` rows in all. Infinite when they have no more than that."""
    if counts.sum() <= most:
        return math.inf
    ordered = np.sort(counts)
    before = np.concatenate([[0], np.cumsum(ordered)[:-1]])  # rows of the tasks that are smaller
    share = (most - before) // np.arange(len(ordered), 0, -1)  # of each task from here on, if all of those are cut
    return max(LEAST, int(share[np.argmax(ordered > share)]))


def by_task(code: Codes, n: int) -> list[npt.NDArray[np.intp]]:
    """For each of n tasks the rows it has, in their order."""
    small = code.astype(np.min_scalar_type(n))  # up to 16 bits are sorted by radix: ten times faster
    order = np.argsort(small, kind="stable")
    return np.split(order, np.searchsorted(small[order], np.arange(1, n))) if n else []


class Sample:
    """Grows by `add`; `wanted` says beforehand which rows can still matter."""

    def __init__(self, d: int, most: int, best: bool = True) -> None:
        self.d, self.most, self.best = d, most, best
        self.counts: Codes = np.zeros(0, np.int64)  # rows offered, by task
        self.full = False  # some rows were left out
        self._held, self._limit = 0, 2 * most  # sorting out looks at all rows: not after every batch
        self._parts: list[tuple[Codes, Array, Array, Array]] = []  # code, key, y, u, as they arrived
        self._bars = _bars(0)

    def wanted(self, code: Codes, key: Array, y: Array) -> Mask:
        """False: a row like this would be left out."""
        self._grow(code)
        if not self.full:
            return np.ones(len(code), bool)
        bar, top, top_key, low, low_key = self._bars[:, code]
        wanted: Mask = key < bar
        if self.best:
            wanted |= (y > top) | ((y == top) & (key < top_key)) | (y < low) | ((y == low) & (key < low_key))
        return wanted

    def count(self, code: Codes) -> None:
        """Rows that were not wanted."""
        self._grow(code)
        self.counts += np.bincount(code, minlength=len(self.counts))

    def add(self, code: Codes, key: Array, y: Array, u: Array) -> None:
        self.count(code)
        if self.full:
            wanted = self.wanted(code, key, y)
            code, key, y, u = code[wanted], key[wanted], y[wanted], u[wanted]
        if len(code):
            self._parts.append((code, key, y, u))
            self._held += len(code)
        if self._held > self._limit:
            self._sort_out()

    def rows(self) -> tuple[Codes, Array, Array]:  # -> code, y, u
        """What is kept, in the order in which it arrived."""
        self._sort_out()
        if not self._parts:
            return np.zeros(0, np.int64), np.zeros(0), np.zeros((0, self.d))
        code, _, y, u = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        self._parts.clear()
        return code, y, u

    def _grow(self, code: Codes) -> None:
        new = int(code.max(initial=-1)) + 1 - len(self.counts)
        if new > 0:
            self.counts = np.concatenate([self.counts, np.zeros(new, np.int64)])
            self._bars = np.hstack([self._bars, _bars(new)])

    def _sort_out(self) -> None:
        cap = water_level(self.counts, self.most)
        if cap == math.inf or not self._parts:
            return
        code, key, y = (np.concatenate([part[i] for part in self._parts]) for i in range(3))
        keep = np.ones(len(code), bool)
        rows_of = by_task(code, len(self.counts))
        for k in np.flatnonzero(self.counts > cap):
            rows = rows_of[k]
            chosen, self._bars[:, k] = _choose(key[rows], y[rows], int(cap), self.best)
            keep[rows] = chosen
        stops = np.cumsum([len(part[0]) for part in self._parts])[:-1]
        masks = np.split(keep, stops)
        for i, (part, mask) in enumerate(zip(self._parts, masks, strict=True)):  # one by one: u is large
            self._parts[i] = (part[0][mask], part[1][mask], part[2][mask], part[3][mask])
        self._parts = [part for part in self._parts if len(part[0])]
        self._held, self.full = int(keep.sum()), True
        self._limit = 2 * max(self.most, self._held)


def _bars(n: int) -> Array:  # -> (5, n): a row is wanted below the first, above the next two or below the last two
    return np.repeat([[math.inf], [-math.inf], [math.inf], [math.inf], [math.inf]], n, axis=1)


def _choose(key: Array, y: Array, cap: int, best: bool) -> tuple[Mask, tuple[float, ...]]:
    """The rows of one task that stay, and its bars."""
    keep, at_random, ends = np.zeros(len(key), bool), cap, (-math.inf, math.inf, math.inf, math.inf)
    if best:
        top = _first(-y, key, max(1, min(BEST, cap // BEST_SHARE)))
        keep[top] = True
        (low,) = _first(np.where(keep, math.inf, y), key, 1)
        keep[low] = True
        at_random = cap - len(top) - 1
        ends = (y[top[-1]], key[top[-1]], y[low], key[low])
    rest, bar = np.flatnonzero(~keep), math.inf
    if at_random < len(rest):
        bar = float(np.partition(key[rest], at_random)[at_random])
        rest = rest[key[rest] < bar]
    keep[rest] = True
    return keep, (bar, *ends)


def _first(value: Array, key: Array, n: int) -> Codes:  # -> (n,)
    """The n rows of the smallest value, in order; of equal ones those with the smallest keys."""
    near = np.flatnonzero(value <= np.partition(value, n - 1)[n - 1])
    return near[np.lexsort((key[near], value[near]))[:n]]
