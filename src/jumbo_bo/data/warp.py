"""A monotone, invertible map of an objective to about zero mean and unit scale.

Notation
    y       (n,) objective, larger is better
    r       (n,) log-magnitude of y when that fits the data, y otherwise
    z       (n,) = squash((r - centre) / scale), what nets and GPs are trained on

A loss between 1e-5 and 4e7 and an accuracy between 0 and 1 become comparable. `squash` is the identity within three
scales and logarithmic beyond, so one diverged run cannot flatten all others; nothing is cut off, so ranks stay.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jumbo_bo.errors import InputError

Array = npt.NDArray[np.float64]

KNEE = 3.0  # scales from the centre where squash leaves the identity
LOSS_RATIO = 2.0  # positive losses spanning more than this (5 % to 95 % quantile) are seen on a log scale
GAIN_RATIO = 100.0  # positive gains need a wider span: a logarithm would hide differences at the top
HUGE, TINY = 1e100, 1e-300  # everything beyond is as good as infinite or zero; keeps all arithmetic finite
DIVERGED = 30.0  # a worst value that widens the standard deviation this much is a diverged run; not measured
# So are losses a thousand times larger than all others, and ten standard deviations away; neither measured.
APART, APART_SPREADS = math.log(1e3), 10.0
PRIOR_WEIGHT = 2.0  # how many observations the old tasks' scale counts for; not measured


@dataclass(frozen=True)
class Warp:
    sign: int  # +1 / -1: r = sign * log(sign * y); 0: r = y
    centre: float
    scale: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.centre) and math.isfinite(self.scale) and self.scale > 0):
            raise InputError(f"a warp needs a finite centre and a positive scale, got {self}")

    def __call__(self, y: Array) -> Array:
        z = (self.straighten(np.asarray(y, dtype=float)) - self.centre) / self.scale
        over = np.maximum(np.abs(z) - KNEE, 0.0)
        return np.where(over > 0, np.sign(z) * (KNEE + np.log1p(over)), z)

    def inverse(self, z: Array) -> Array:
        z = np.asarray(z, dtype=float)
        over = np.minimum(np.maximum(np.abs(z) - KNEE, 0.0), 700.0)
        return self.straight(np.where(over > 0, np.sign(z) * (KNEE + np.expm1(over)), z))

    def straight(self, z: Array) -> Array:
        """The inverse as if nothing had been squashed. For the ends of an interval: undone twice over, by `squash` and
        by the logarithm, a modest doubt would reach from 1e-77 to 1e69."""
        with np.errstate(over="ignore"):
            r = np.clip(self.centre + self.scale * z, -HUGE, HUGE)
        if self.sign == 0:
            return r
        return self.sign * np.exp(np.clip(self.sign * r, -700.0, 700.0))

    def straighten(self, y: Array) -> Array:
        """r."""
        if self.sign == 0:
            return np.clip(y, -HUGE, HUGE)
        # A value of the other sign counts as TINY: better than all losses, or worse than all gains.
        return self.sign * np.log(np.clip(self.sign * y, TINY, 1 / TINY))


def fit_warp(y: Array, like: Sequence[Warp] = ()) -> Warp:
    """The warp of these values. With `like` (the old tasks' warps) a few values suffice: the form is shared when the
    signs allow it, and the scale is pulled towards theirs."""
    y = np.clip(np.asarray(y, dtype=float), -1 / TINY, 1 / TINY)
    sign = _common_sign(y, like)
    r = Warp(sign, 0.0, 1.0).straighten(y)
    size = float(np.max(np.abs(r), initial=0.0))
    alike = [w for w in like if w.sign == sign]
    if sign == 0 and size > 0:  # without a logarithm a scale has units: one far above all values has others
        alike = [w for w in alike if w.scale <= 10 * size]
    prior = float(np.median([w.scale for w in alike])) if alike else 0.0
    if len(r) == 0:
        return Warp(sign, float(np.median([w.centre for w in alike])) if alike else 0.0, prior or 1.0)
    smallest = max(1e-12 * size, 1 / HUGE)  # below is rounding: the values are constant
    centre, spread = _centre_and_spread(r, sign)
    if alike:
        spread = math.sqrt((PRIOR_WEIGHT * prior**2 + (len(r) - 1) * spread**2) / (PRIOR_WEIGHT + len(r) - 1))
    return Warp(sign, centre, spread if spread > smallest else 1.0)


def _centre_and_spread(r: Array, sign: int) -> tuple[float, float]:
    """Mean and standard deviation, with the values cut at the 5 % and 95 % quantiles. Tighter quantiles would be
    those of the cluster that an optimizer leaves around its best point, and would blow that cluster up."""
    r = _without_diverged(np.sort(r), sign)
    core = np.clip(r, *np.quantile(r, (0.05, 0.95)))
    return float(np.mean(core)), float(np.std(core, ddof=1)) if len(r) > 1 else 0.0


def _without_diverged(r: Array, sign: int) -> Array:  # sorted, worst first
    """Leaves out up to a tenth of the values, at least one, as long as the worst dwarfs the spread of all others; of
    losses on a log scale also fewer than half that are a world apart from the others."""
    if sign == -1:
        r = r[_world_apart(r) :]
    for _ in range(max(1, len(r) // 10)):
        if len(r) < 4:
            break
        rest = float(np.std(r[1:]))
        if rest == 0 or np.std(r) < DIVERGED * rest:
            break
        r = r[1:]
    return r


def _world_apart(r: Array) -> int:  # sorted, worst first
    """How many of the worst are followed by a gap that is wide as it is, and wide for the spread of those after it."""
    gaps = np.diff(r)[: max(0, min((len(r) - 1) // 2, len(r) - 4))]  # the others are more, and at least four
    wide = np.flatnonzero(gaps > APART)[::-1]
    return next((int(i) + 1 for i in wide if gaps[i] > APART_SPREADS * np.std(r[i + 1 :])), 0)


def _common_sign(y: Array, like: Sequence[Warp]) -> int:
    signs = {w.sign for w in like}
    if len(signs) == 1:
        sign = signs.pop()
        if sign == 0 or np.all(sign * y > 0):
            return sign
    if len(y) == 0:
        return 0
    for sign, ratio in ((-1, LOSS_RATIO), (1, GAIN_RATIO)):
        if np.all(sign * y > 0):
            low, high = np.quantile(sign * y, (0.05, 0.95))
            return sign if high > ratio * low else 0
    return 0
