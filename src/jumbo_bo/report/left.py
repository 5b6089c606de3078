"""What is left to gain, for the summary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from optuna.trial import FrozenTrial

from jumbo_bo.errors import InputError
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.report.rows import Row, best
from jumbo_bo.studies import remaining
from jumbo_bo.wording import beats, in_words

SMALL = 0.01  # of the way from the median trial to the best: a gain for studies that name none


def left(
    rows: Sequence[Row], trials: Sequence[FrozenTrial], optimizer: Optimizer | None, gain: float | None
) -> tuple[str, str] | None:
    """The chance and what it is of; None when nobody knows. Without an optimizer that was told the trials, it is what
    was kept with the last of them."""
    top = best(rows)
    if top is None:
        return None
    if optimizer is None:
        kept = remaining(trials)
        return kept and (in_words(kept.chance), f"that any configuration {beats(kept.gain)}, at trial {kept.trial}")
    share = ""
    if gain is None:
        gain = SMALL * abs(float(np.median([row.value for row in rows if row.measured])) - top.value)
        share = f" ({SMALL:.0%} of the way from the median trial to the best)" if gain else ""
    try:
        chance = optimizer.remaining(gain)
    except InputError:  # a method without a model
        return None
    return in_words(chance), f"that any configuration {beats(gain)}{share}"
