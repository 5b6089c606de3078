"""What the best old settings would give on the new problem: what somebody would have who copied them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from jumbo_bo.data.history import History
from jumbo_bo.data.task import Task
from jumbo_bo.errors import InputError
from jumbo_bo.space.space import Params

if TYPE_CHECKING:
    from jumbo_bo.optimizer import Optimizer

MOST = 500  # old tasks whose best settings are looked at


class OldBest(NamedTuple):
    """In the user's units of the new problem."""

    task: str
    params: Params
    value: float  # measured or expected
    low: float  # 90 % interval of what a trial would show; a measured value itself
    high: float
    measured: bool  # tried on the new problem, as a trial or in its old data


def old_best(optimizer: Optimizer) -> OldBest | None:
    """Of the best settings of each old task, those that are best here: whoever copies settings will hardly do better.
    None without old runs, or when a model is needed and the method has none."""
    found = list(_candidates(optimizer))
    if not found:
        return None
    sign = -1.0 if optimizer.direction == "minimize" else 1.0
    return max(found, key=lambda old: sign * old.value)


def _candidates(optimizer: Optimizer) -> Iterator[OldBest]:
    history = optimizer.history
    if not isinstance(history, History):
        return
    if history.target is not None and len(history.target.y):
        params, value = _best(history, history.target)
        yield OldBest(history.target.name, params, value, value, value, True)
    tasks = [(t.name, _best(history, t)[0]) for t in history.tasks[:MOST] if len(t.y)]
    tried = {optimizer.space.encode(params).tobytes(): value for params, value in optimizer.told}
    unknown: list[tuple[str, Params]] = []
    for name, params in tasks:
        value = tried.get(optimizer.space.encode(params).tobytes(), math.nan)
        if math.isfinite(value):
            yield OldBest(name, params, value, value, value, True)
        else:
            unknown.append((name, params))
    try:
        expected = optimizer.predict([params for _, params in unknown]) if unknown else []
    except InputError:  # a method without a model
        return
    for (name, params), p in zip(unknown, expected, strict=True):
        yield OldBest(name, params, p.mean, p.low, p.high, False)


def _best(history: History, task: Task) -> tuple[Params, float]:
    i = int(np.argmax(task.y))
    return history.space.decode(task.u[i]), history.sign(task.name) * float(task.y[i])
