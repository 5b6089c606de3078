"""What the old tasks tell of failures: one model of success for all of them together (models/success.py)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jumbo_bo.data.history import Task
from jumbo_bo.models.success import MOST_ROWS, TYPICAL, Success, fit
from jumbo_bo.space.space import Array, Space


def learn_success(space: Space, tasks: Sequence[Task], seed: int) -> Success | None:
    """From a sample of all old runs, with and without a value. None when no run failed."""
    if not any(len(task.failed) for task in tasks):
        return None
    good, bad = (np.vstack([getattr(task, part) for task in tasks]) for part in ("u", "failed"))
    ok = np.arange(len(good) + len(bad)) < len(good)
    rng = np.random.default_rng([seed, 5])
    if any(task.sampled for task in tasks):
        share = _stands_for(tasks)
        rows = rng.choice(len(ok), min(2 * MOST_ROWS, len(ok)), replace=False, p=share / share.sum())
    else:
        rows = rng.permutation(len(ok))[: 2 * MOST_ROWS]
    if ok[rows].all():  # failures are so rare that none was drawn
        return None
    x = space.transform(np.vstack([good, bad])[rows])
    return fit(x, ok[rows], np.full(len(rows), TYPICAL), space.groups)


def _stands_for(tasks: Sequence[Task]) -> Array:  # -> (n + f,)
    """How many old runs each row is a sample of: failed ones and others are not drawn at the same rate."""
    kept = [*(len(task.y) for task in tasks), *(len(task.failed) for task in tasks)]
    of = [*(task.of[0] for task in tasks), *(task.of[1] for task in tasks)]
    return np.repeat(np.divide(of, np.maximum(kept, 1)), kept)
