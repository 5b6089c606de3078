"""The summary in sentences: the best so far, against what old settings would give, what is left to gain, what to do.

Every number in it is measured or computed; what cannot be computed for a study is left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from optuna.trial import FrozenTrial

from jumbo_bo.errors import InputError
from jumbo_bo.explain import Prediction, in_digits
from jumbo_bo.old_best import OldBest, old_best
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.report.rows import Row, best, number
from jumbo_bo.studies import remaining
from jumbo_bo.wording import in_words

SMALL = 0.01  # of the best value: a gain for studies that name none
CLEAR = 0.1  # of the best value: where all values are closer to each other, per cent of a value mean little
UNLIKELY = (
    0.05  # a chance below which another trial hardly pays; docs/explain.md says how often such a chance came true
)
LIKELY = 0.5
FEWEST = 5  # values before anybody is told to stop, as in the runner


class Stop(NamedTuple):
    gain: float  # in the units of the objective
    chance: float = UNLIKELY


@dataclass(frozen=True)
class Verdict:
    """Sentences; empty where there is nothing to say."""

    best: str
    old: str = ""
    chance: str = ""
    advice: str = ""
    share: str = ""  # the chance on its own, for a card
    of: str = ""  # and what it is of

    @property
    def sentences(self) -> list[str]:
        return [s for s in (self.best, self.old, self.chance, self.advice) if s]


def verdict(
    rows: Sequence[Row],
    trials: Sequence[FrozenTrial],
    direction: str,
    optimizer: Optimizer | None = None,
    stop: Stop | None = None,
) -> Verdict:
    """Without an optimizer that was told the trials, the chance is the one that was kept with the last of them."""
    top = best(rows)
    if top is None:
        return Verdict("No trial has a value yet.")
    values = [row.value for row in rows if row.measured]
    done = f"{len(values):,} trials have" if len(values) != 1 else "1 trial has"
    first = f"Best so far: {number(top.value)}, in trial {top.number}; {done} a value."
    old = _against(top.value, direction, old_best(optimizer)) if optimizer else ""
    chance, of = _left(values, top.value, trials, optimizer, stop)
    if chance is None:
        return Verdict(first, old)
    sentence = f"Chance that any other configuration is {of}: {in_words(chance)}."
    advice = _advice(chance, stop.chance if stop else UNLIKELY, len(values))
    return Verdict(first, old, sentence, advice, in_words(chance), f"that any other configuration is {of}")


def _against(value: float, direction: str, old: OldBest | None) -> str:
    if old is None:
        return ""
    sign = -1.0 if direction == "minimize" else 1.0
    ahead = sign * (value - old.value)
    if old.measured:
        those = f"The best settings of the old runs gave {number(old.value)} here"
    else:
        mean, low, high = in_digits(Prediction(old.value, math.nan, old.low, old.high))
        those = f"The best settings of the old runs are expected to give {mean} here (90%: {low} to {high})"
    if ahead <= 0:
        return f"{those}: no trial is better yet." if old.measured else f"{those}: no trial is as good yet."
    doubt = "" if sign * (value - (old.high if sign > 0 else old.low)) > 0 else ", though that is not certain"
    return f"{those}: the best trial is {_better(value, old.value, ahead)}{doubt}."


def _better(value: float, old: float, ahead: float) -> str:
    """In per cent where these mean something."""
    if min(value, old) > 0 and ahead < 10 * old:
        return f"{100 * ahead / old:.2g}% better"
    return f"better by {number(ahead)}"


def _left(
    values: Sequence[float],
    top: float,
    trials: Sequence[FrozenTrial],
    optimizer: Optimizer | None,
    stop: Stop | None,
) -> tuple[float | None, str]:
    if optimizer is None:
        kept = remaining(trials)
        return (kept.chance, f"{_by(kept.gain)}, at trial {kept.trial}") if kept else (None, "")
    gain, of = (stop.gain, _by(stop.gain)) if stop else worthwhile(values, top)
    try:
        return optimizer.remaining(gain), of
    except InputError:  # a method without a model
        return None, ""


def worthwhile(values: Sequence[float], top: float) -> tuple[float, str]:
    """A gain that may matter, and what it is called. Per cent of the best value, unless all values are about the same
    (temperatures in kelvin) or of both signs."""
    way = abs(float(np.median(values)) - top)
    if (min(values) > 0 or max(values) < 0) and max(values) - min(values) >= CLEAR * abs(top):
        return SMALL * abs(top), f"more than {SMALL:.0%} better"
    share = f" ({SMALL:.0%} of the way from the median trial to the best)" if way else ""
    return SMALL * way, f"{_by(SMALL * way)}{share}"


def _by(gain: float) -> str:
    return f"better by more than {gain:.3g}" if gain else "better"


def _advice(chance: float, limit: float, n: int) -> str:
    if n < FEWEST:
        return "It is too early to stop."
    if chance < limit:
        return "You can stop."
    if chance < LIKELY:
        return f"You can stop, unless a chance of {in_words(chance)} is worth more trials."
    return "It is worth going on."
