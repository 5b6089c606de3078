"""The finished trials, frozen, and the GPs fitted to them; the pending ones.

Notation
    u       (n, d) what was tried
    y       (n,)   its values, larger is better; NaN: failed
    z       (n,)   the values on the scale the models see
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.history import Task
from jumbo_bo.data.warp import Warp, fit_warp
from jumbo_bo.learning.row_gp import best_and_others
from jumbo_bo.methods.base import FOLLOW_UP, RESTART
from jumbo_bo.models import gp as gps
from jumbo_bo.search.argmax import Featurise
from jumbo_bo.space.space import Params, Space

Array = npt.NDArray[np.float64]

OLD_TARGET_LIMIT = 300  # rows of D^f the exact GPs are conditioned on
MOST_FITTED = 300  # trials that hyperparameters are fitted to, spread over all; the GP itself knows all of them
# Trials up to which hyperparameters are fitted after every one; past them after each hundredth more. With such gaps
# from 300 on, a search in 12 dimensions (seed 100) was at 600 trials where it is at 450 without.
EVERY, THINNED = 1_000, 100
# Trials up to which a fit starts from the one before it. Past them it starts from the last one from scratch and ends
# sooner. From 100 on, a search in 12 dimensions was worse after 160 trials on three of three seeds from 100 on.
CHAINED = 300
CLOSE_ENOUGH = {"ftol": 1e-4}
SAME_SCALE = 0.1  # of the logarithm of the values' scale: more is another scale


@dataclass(frozen=True)
class Trial:
    u: Array
    params: Params
    y: float


@dataclass(frozen=True, eq=False)
class Trials:
    """In the order they were told, after the old data of the target."""

    rows: tuple[Trial, ...]
    old: int  # rows of the target's old data
    d: int
    like: tuple[Warp, ...] = ()  # how the old tasks' values are distributed
    failures: tuple[Trial, ...] = ()  # trials without a value, where they are not among the rows

    @classmethod
    def of(cls, told: Iterable[Trial], old: int, d: int, like: tuple[Warp, ...], apart: bool) -> Trials:
        """With failures among the rows, as bad as the worst, or apart."""
        rows = tuple(told)
        failed = tuple(t for t in rows if apart and math.isnan(t.y))
        return cls(tuple(t for t in rows if not (apart and math.isnan(t.y))), old, d, like, failed)

    def __len__(self) -> int:
        return len(self.rows)

    def first(self, n: int) -> Trials:
        """As they were after n of them: the scale of their values too."""
        return self if n == len(self) else replace(self, rows=self.rows[:n])

    @cached_property
    def u(self) -> Array:
        return np.array([t.u for t in self.rows]).reshape(len(self), self.d)

    @property
    def failed(self) -> Array:
        return np.array([t.u for t in self.failures]).reshape(len(self.failures), self.d)

    @cached_property
    def z(self) -> Array:
        """A failure counts as the worst of them."""
        ok = ~np.isnan(self._y)
        z = np.full(len(self), -1.0)
        if ok.any():
            z[ok] = self.warp(self._y[ok])
            z[~ok] = z[ok].min()
        return z

    @cached_property
    def warp(self) -> Warp:
        return fit_warp(self._y[~np.isnan(self._y)], self.like)

    @cached_property
    def fitted(self) -> int:
        """The number of trials after which hyperparameters were last fitted. Again at once when the scale of the values
        has changed, as they are in its units."""
        if len(self) <= EVERY:
            return len(self)
        last = EVERY
        while last + last // THINNED <= len(self):
            last += last // THINNED
        then, now = self.first(last).warp, self.warp
        same = then.sign == now.sign and abs(math.log(then.scale / now.scale)) < SAME_SCALE
        return last if same else len(self)

    def known(self, most: int | None) -> npt.NDArray[np.intp]:
        """Rows that a GP is conditioned on: those that came after the last fit, and at most so many of the others,
        spread over all. The best are not preferred: that would take good luck for good configurations."""
        n = self.fitted
        rows = np.arange(n) if most is None or n <= most else np.linspace(0, n - 1, most).astype(int)
        return np.concatenate([rows, np.arange(n, len(self))])

    @cached_property
    def _y(self) -> Array:
        return np.array([t.y for t in self.rows])


class Pending:
    """Points that are being tried: some by other processes, then those suggested here, by number."""

    def __init__(self, elsewhere: Iterable[Array] = ()) -> None:
        self._elsewhere = list(elsewhere)
        self._asked: dict[int, tuple[Params, Array]] = {}

    @property
    def points(self) -> list[Array]:
        return [*self._elsewhere, *(u for _, u in self._asked.values())]

    def add(self, number: int, params: Params, u: Array) -> None:
        self._asked[number] = params, u

    def take(self, number: int, params: Params) -> Array | None:
        """The point of a suggestion, which is pending no more; None when it was not."""
        known, u = self._asked.get(number, (None, None))
        if known == params:
            del self._asked[number]
            return u
        return None

    def remove(self, u: Array) -> None:
        """One point equal to this one, if there is one."""
        for i, other in enumerate(self._elsewhere):
            if _same(u, other):
                del self._elsewhere[i]
                return
        for number, (_, other) in self._asked.items():
            if _same(u, other):
                del self._asked[number]
                return


def _same(a: Array, b: Array) -> bool:  # (d,) each
    return np.allclose(a, b, rtol=0.0, atol=1e-9)


def old_trials(space: Space, target: Task | None, seed: int) -> list[Trial]:
    """Old data of the target, as trials; of much of it the best and a sample of the others."""
    if target is None:
        return []
    rows = best_and_others(target, OLD_TARGET_LIMIT, np.random.default_rng(seed))
    return [Trial(target.u[i], space.decode(target.u[i]), float(target.y[i])) for i in rows]


class Fits:
    """Hyperparameters found so far, by kernel and number of trials, and the last GP of each kernel: for one growing
    list of trials. With `most`, a GP knows only some of very many (`Trials.known`)."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._theta: dict[tuple[gps.Kernel, int], Array] = {}
        self._last: dict[gps.Kernel, tuple[int, gps.GP]] = {}
        self._base: dict[gps.Kernel, tuple[int, gps.GP]] = {}

    def gp(
        self, featurise: Featurise, trials: Trials, kernel: gps.Kernel, start: Array | None = None, adam: bool = False
    ) -> gps.GP:
        if adam:
            return gps.fit_adam(kernel, featurise(trials.u), trials.z, start)
        n, known = self._last.get(kernel, (-1, None))
        if known is None or n != len(trials):
            known = self._made(featurise, trials, kernel, start)
            self._last[kernel] = len(trials), known
        return known

    def _made(self, featurise: Featurise, trials: Trials, kernel: gps.Kernel, start: Array | None) -> gps.GP:
        n, rows = trials.fitted, trials.known(self._most)
        some, latest = rows[rows < n], rows[rows >= n]
        if self._base.get(kernel, (-1,))[0] != n:
            theta = self._found(featurise, trials.first(n), kernel, start)
            self._base[kernel] = n, gps.build(kernel, theta, featurise(trials.u[some]), trials.z[some])
        base = self._base[kernel][1]
        return gps.extend(base, featurise(trials.u[latest]), trials.z[rows]) if len(latest) else base

    def _found(self, featurise: Featurise, trials: Trials, kernel: gps.Kernel, start: Array | None) -> Array:
        """Every few trials from scratch, in between from hyperparameters found earlier, so that a resumed study has few
        fits to repeat: of few trials from those after one trial less, of more from the last ones found from scratch.
        Of many trials always from scratch."""
        n = len(trials)
        if (kernel, n) not in self._theta:
            latest = (n - trials.old) % RESTART
            if latest == 0 or n > EVERY:
                starts, options = [kernel.priors[0], *([] if start is None else [start])], {}
            else:
                chained = n <= CHAINED
                earlier = trials.first(n - (1 if chained else latest))
                starts = [self._found(featurise, earlier, kernel, start)]
                options = {"maxiter": FOLLOW_UP} | ({} if chained else CLOSE_ENOUGH)
            rows = np.linspace(0, n - 1, min(n, MOST_FITTED)).astype(int)
            blocks = featurise(trials.u[rows])
            self._theta[kernel, n] = gps.best_theta(kernel, blocks, trials.z[rows], starts, options)
        return self._theta[kernel, n]
