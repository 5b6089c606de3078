"""Where a learning curve ends: local Bayesian linear regression of the final value on the curve so far, with priors
from old curves. C. M. Bishop, 'Pattern Recognition and Machine Learning', Springer 2006, Exercises 3.12 to 3.14.

Notation
    x           (4,)    a curve so far, see `so_far`; rows X (n, 4) and their final values y (n,)
    m, P        (4,), (4, 4)    w | s2 ~ N(m, s2 P^-1)
    a, b        s2 ~ inverse gamma(a, b)
    strength    how many curves of the new problem all old curves together count as; 0: as none

Values are in units of the problem: the best final value is 0, the median one about -1 (`units` of data/curves.py). One
regression for each strength, averaged by how probable each makes the final values that are known of the new problem:
old curves that mislead predict them badly, and lose their weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp, stdtr

Array = npt.NDArray[np.float64]

STRENGTHS = (0.0, 3.0, 10.0, 30.0, 100.0)
# Measured by benchmarks/curves_predicted.py on the development tasks, seeds 100 to 102, without old curves (with them):
# as it is the score is -0.199 (-0.204). Before any curve, a final value half way between the median and the last value;
# with the last value -0.205 (-0.210), with the median -0.246 (-0.223). Curves whose last value is further away than
# REACH count less; when all count the same -0.207 (-0.213). The other constants were not measured.
MEAN, SPREAD, NOISE = np.array([-0.5, 0.5, 0.0, 0.0]), np.array([1.0, 0.5, 1.0, 0.5]), 0.5
REACH = 1.0
RECENT = 2 / 3  # of the way so far; the values after it are averaged
LEAST = 1e-9  # of b: numbers that are all the same leave no noise
FAR = 1e6  # ends of an interval, in the units of the problem


class Line(NamedTuple):
    """A regression, as what is believed of its weights and of its noise."""

    m: Array
    P: Array
    a: float
    b: float

    def told(self, x: Array, y: Array, w: Array) -> Line:  # (n, 4), (n,), (n,) how much each counts
        P = self.P + (x * w[:, None]).T @ x
        m = np.linalg.solve(P, self.P @ self.m + x.T @ (w * y)).astype(float)
        square = float((w * y) @ y + self.m @ self.P @ self.m - m @ P @ m)
        return Line(m, P, self.a + float(w.sum()) / 2, max(self.b + square / 2, LEAST))

    def evidence(self, after: Line) -> float:
        """log p(y), up to what is the same for all lines, where `after` has been told y."""
        volume = 0.5 * float(np.linalg.slogdet(self.P)[1] - np.linalg.slogdet(after.P)[1])
        noise = self.a * math.log(self.b) - after.a * math.log(after.b)
        return volume + noise + float(gammaln(after.a) - gammaln(self.a))

    def student(self, x: Array) -> tuple[float, float, float]:  # (4,) -> mean, scale, degrees of freedom
        doubt = 1.0 + float(x @ np.linalg.solve(self.P, x))
        return float(x @ self.m), math.sqrt(self.b / self.a * doubt), 2 * self.a


NOTHING = Line(MEAN, np.diag((NOISE / SPREAD) ** 2).astype(float), 1.0, NOISE**2)


@dataclass(frozen=True, eq=False)
class Ending:
    """Student distributions, averaged."""

    weights: Array  # (k,)
    means: Array
    scales: Array
    freedom: Array

    def above(self, y: float) -> float:
        """The chance that the final value is above this one."""
        return float(self.weights @ stdtr(self.freedom, (self.means - y) / self.scales))

    def quantile(self, share: float) -> float:
        found: float = brentq(lambda y: 1.0 - share - self.above(y), -FAR, FAR)
        return found

    @property
    def trust(self) -> float:
        """Share of the regressions that know the old curves."""
        return 1.0 - float(self.weights[0])


def so_far(at: Array, values: Array, until: float) -> Array:  # (m,) increasing, (m,) -> (4,)
    """1, the recent values, how far they are above those half way, how far they are below the best one."""
    there = at <= until * (1 + 1e-9)
    recent = values[there & (at > RECENT * until)]
    end, half = np.interp([until, until / 2], at, values)
    last = float(recent.mean()) if len(recent) else float(end)
    return np.array([1.0, last, last - half, max(float(np.max(values[there], initial=last)) - last, 0.0)])


def ending(x: Array, X: Array, y: Array, old: Sequence[tuple[Array, Array]] = ()) -> Ending:
    """Of a curve like x, after the curves of this problem (X, y) and those of each old one. Each old problem counts the
    same."""
    near = [_near(x, rows) for rows, _ in old]
    before = []
    for strength in STRENGTHS if old else STRENGTHS[:1]:
        line = NOTHING
        for (rows, ends), w in zip(old if strength else (), near, strict=False):
            line = line.told(rows, ends, w * strength / len(old) / max(float(w.sum()), 1.0))
        before.append(line)
    after = [line.told(X, y, _near(x, X)) for line in before]
    evidence = np.array([line.evidence(then) for line, then in zip(before, after, strict=True)])
    mean, scale, freedom = np.array([line.student(x) for line in after]).T
    return Ending(np.exp(evidence - logsumexp(evidence)), mean, scale, freedom)


def _near(x: Array, rows: Array) -> Array:  # (4,), (n, 4) -> (n,)
    close: Array = np.exp(-0.5 * ((rows[:, 1] - x[1]) / REACH) ** 2)
    return close
