"""A net that was learned for other ranges: the same parameters, with other ends or steps.

Notation
    t, s    (m, D)  T(u) of the same configurations in the old space and in the new one
    t = s * stretch + shift, column by column, as both are positions on the same scale

Nothing is learned again: the first layer of the net and the length scales of the GPs change, so that for every
configuration of both spaces the same is predicted as before. Beyond the old ranges it is an extrapolation.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from jumbo_bo.errors import InputError
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.space.axes import Axis, Continuous, Nominal, Ordinal
from jumbo_bo.space.space import Space

Array = npt.NDArray[np.float64]


def moved(net: FeatureNet, old: Space, new: Space) -> FeatureNet:
    """The net for the new space. `old` is the one it was learned for."""
    if net.space_fingerprint != old.fingerprint:
        raise InputError("the net was not learned for the old space that was passed")
    if old.names != new.names:
        raise InputError(f"the new space has the parameters {list(new.names)}, the net knows {list(old.names)}")
    if old.conditions or new.conditions:
        raise InputError("a net for a space with conditions serves that space alone; learn from the old runs again")
    scale = np.array([_scale(*axes) for axes in zip(old.names, old.axes, new.axes, strict=True)])
    stretch, shift = scale[list(old.groups)].T  # (D,)
    (weight, bias), *rest = net.layers  # of 2 t - 1
    first = stretch[:, None] * weight, bias + (stretch + 2.0 * shift - 1.0) @ weight
    shorter = np.log(scale[:, 0])

    def lengths(theta: Array) -> Array:  # (..., p): those on x stand last, before the noise
        theta = theta.copy()
        theta[..., -1 - old.d : -1] -= shorter
        return theta

    def points(x: Array) -> Array:
        return np.ascontiguousarray((x - shift) / stretch)

    gps = {task: replace(gp, x=points(gp.x), theta=lengths(gp.theta)) for task, gp in net.gps.items()}
    success = net.success
    if success is not None:
        success = replace(success, x=points(success.x), theta=lengths(success.theta))
    return replace(
        net,
        space_fingerprint=new.fingerprint,
        layers=(first, *rest),
        gps=gps,
        priors={name: np.stack([lengths(medians), sds]) for name, (medians, sds) in net.priors.items()},
        success=success,
    )


def _scale(name: str, old: Axis, new: Axis) -> tuple[float, float]:
    """Stretch and shift of one parameter."""
    if old == new:
        return 1.0, 0.0
    before, after = _ends(old), _ends(new)
    if before is None or after is None:
        raise InputError(f"{name!r} has other choices than the net knows; learn from the old runs again")
    if before[2] != after[2]:
        raise InputError(f"{name!r} has a log scale in one space and not in the other; learn from the old runs again")
    if before[0] == before[1]:
        raise InputError(f"{name!r} had one value only, so the net knows nothing of others; learn from old runs again")
    width = before[1] - before[0]
    return (after[1] - after[0]) / width or 1.0, (after[0] - before[0]) / width  # one value stands at 0 in T(u)


def _ends(axis: Axis) -> tuple[float, float, bool] | None:
    """Of T(u) = 0 and 1, and whether they are logarithms; None for choices."""
    if isinstance(axis, Nominal) or (isinstance(axis, Ordinal) and axis.choices is not None):
        return None
    assert isinstance(axis, Continuous | Ordinal)
    low = float(axis.low)
    high = float(axis.high) if isinstance(axis, Continuous) else low + (axis.levels - 1) * float(axis.step)
    return (math.log(low), math.log(high), True) if axis.log else (low, high, False)
