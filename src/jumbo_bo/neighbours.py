"""What lies next to a suggestion: good old runs, and trials that it would repeat."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.history import History
from jumbo_bo.space.space import Params, Space
from jumbo_bo.trials import Trial

Array = npt.NDArray[np.float64]

WITNESSES = 5_000  # good old runs looked through for the nearest ones, of all tasks together
NEAREST = 3
SAME = 0.01  # of a parameter's range: a trial this close in all of them may be one that is repeated


class OldRun(NamedTuple):
    """A good old run near a suggestion."""

    task: str
    params: Params
    value: float  # in the units of its task
    distance: float  # average over the parameters, as a share of each one's range; another choice counts 1


@dataclass(frozen=True)
class Witnesses:
    """The good rows of every old task, few enough to look through at every suggestion."""

    space: Space
    u: Array  # (w, d)
    t: Array  # (w, D)
    task: tuple[str, ...]  # (w,)
    value: Array  # (w,) in the units of the task


def witnesses(history: History) -> Witnesses:
    """Of every task the best tenth, at most 200 rows and fewer when there are many tasks."""
    most = max(1, min(200, WITNESSES // max(1, len(history.tasks))))
    u, task, value = [np.zeros((0, history.space.d))], [], [np.zeros(0)]
    for t in history.tasks[:WITNESSES]:
        n = min(most, max(1, len(t.y) // 10), len(t.y))
        best = np.argpartition(-t.y, n - 1)[:n] if n else np.zeros(0, dtype=int)
        u.append(t.u[best])
        task += [t.name] * n
        value.append(history.sign(t.name) * t.y[best])
    points = np.vstack(u)
    return Witnesses(history.space, points, history.space.transform(points), tuple(task), np.concatenate(value))


def nearest(known: Witnesses | None, u: Array, n: int = NEAREST) -> tuple[OldRun, ...]:  # (d,) ->
    """The good old runs closest to a point, one per configuration and task."""
    if known is None or len(known.u) == 0:
        return ()
    distance = _apart(known.space, known.t, u).mean(axis=1)
    found: dict[tuple[str, bytes], OldRun] = {}
    for i in np.argsort(distance, kind="stable"):
        key = known.task[i], known.t[i].tobytes()
        if key not in found:
            params = known.space.decode(known.u[i])
            found[key] = OldRun(known.task[i], params, float(known.value[i]), float(distance[i]))
        if len(found) == n:
            break
    return tuple(found.values())


def _apart(space: Space, t: Array, u: Array) -> Array:  # (w, D), (d,) -> (w, d)
    """How far in each parameter, as a share of its range; another choice counts 1."""
    starts = np.flatnonzero(np.diff(space.groups, prepend=-1))
    return np.asarray(np.maximum.reduceat(np.abs(t - space.transform(u[None])), starts, axis=1))


def repeated(space: Space, u: Array, told: Sequence[Trial]) -> int | None:  # (d,) ->
    """The closest trial with a value that is as good as the same in every parameter."""
    if not told:
        return None
    far = _apart(space, space.transform(np.array([t.u for t in told])), u).max(axis=1)
    far[[math.isnan(t.y) for t in told]] = math.inf
    closest = int(np.argmin(far))
    return closest if far[closest] <= SAME else None
