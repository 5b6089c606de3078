"""The trials of a study as the report shows them. Nothing is assumed about who made them: what is missing stays a gap.

Notation
    value   in the user's units; NaN: not finished, failed, or not finite
    u       (d,) place of each parameter on its axis, NaN where it has none
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from jumbo_bo.data.corrections import CORRECTED
from jumbo_bo.data.goals import Goal
from jumbo_bo.data.limits import Limit, met
from jumbo_bo.data.readers import measured
from jumbo_bo.explain import Explanation
from jumbo_bo.space.space import Array, Space
from jumbo_bo.studies import WHY, broken, explanation, value

WORDS = {
    TrialState.COMPLETE: "done",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "waiting",
}

NOTHING: Mapping[int, str] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Row:
    number: int
    state: str  # one of WORDS, or "forgotten", or "earlier": of an earlier space
    value: float
    params: Mapping[str, Any]
    u: Array
    why: str  # the sentence of the suggestion, or why the trial failed
    reasons: Explanation | None
    improved: bool  # better than every trial before it, of those that meet the constraints and the limits
    seconds: float = math.nan  # that it took; NaN: not finished, or not known
    quantities: Mapping[str, float] = field(default_factory=dict)  # measured, those with limits
    met: bool = True  # all limits
    allowed: bool = True  # by the constraints

    @property
    def measured(self) -> bool:
        """Ran to its end and gave a number; a pruned trial did not."""
        return self.state == "done"


def rows(
    trials: Sequence[FrozenTrial],
    space: Space,
    direction: str,
    left_out: Mapping[int, str] = NOTHING,
    limits: Sequence[Limit] = (),
    goals: Sequence[Goal] = (),
) -> list[Row]:
    """With several goals, the value is that of the first, and the others are among the quantities."""
    wanted = {*(limit.name for limit in limits), *(goal.name for goal in goals)}
    found, best = [], math.nan
    for trial in sorted(trials, key=lambda t: t.number):
        y = value(trial)
        y = y if math.isfinite(y) else math.nan
        state = "failed" if trial.state == TrialState.COMPLETE and math.isnan(y) else WORDS[trial.state]
        state = left_out.get(trial.number, state)
        quantities = {name: q for name, q in measured(trial).items() if name in wanted}
        meets, outside = met(limits, quantities), broken(trial, space)
        better = state == "done" and not (y >= best if direction == "minimize" else y <= best)
        improved = better and meets and not outside
        best = y if improved else best
        reasons = _reasons(trial)
        params = {**_suggested(trial), **trial.system_attrs.get("fixed_params", {}), **trial.params}
        if trial.state != TrialState.WAITING:  # an enqueued one may lack the parameters that decide
            params = space.present(params)
        said = [str(trial.user_attrs[key]) for key in (WHY, "error") if key in trial.user_attrs]
        said += [f"It does not meet {', '.join(outside)}."] if outside else []
        said += [f"Corrected: {text}." for text in trial.user_attrs.get(CORRECTED, ())]
        u, took = _place(params, space), _seconds(trial)
        row = Row(
            trial.number, state, y, params, u, " ".join(said), reasons, improved, took, quantities, meets, not outside
        )
        found.append(row)
    return found


def best(found: Sequence[Row]) -> Row | None:
    return next((row for row in reversed(found) if row.improved), None)


def number(value: float) -> str:
    return f"{value:.4g}"


def spent(seconds: float) -> str:
    """A time as a person would say it.

    >>> spent(0.25), spent(42.3), spent(754), spent(3 * 3600 + 20 * 60), spent(200_000)
    ('0.25 s', '42 s', '13 min', '3 h 20 min', '2 d 8 h')
    """
    if seconds < 60:
        return f"{seconds:.2g} s" if seconds < 9.5 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(round(seconds / 3600), 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def counted(n: int, word: str) -> str:
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"


def text(value: Any) -> str:
    """A parameter's value: short, but never so short that another value looks the same in practice."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def clip(words: str, width: int) -> str:
    return words if len(words) <= width else f"{words[: width - 1]}…"


def _seconds(trial: FrozenTrial) -> float:
    if trial.datetime_start is None or trial.datetime_complete is None:
        return math.nan
    return max(0.0, (trial.datetime_complete - trial.datetime_start).total_seconds())


def _reasons(trial: FrozenTrial) -> Explanation | None:
    try:
        return explanation(trial)
    except (KeyError, TypeError, ValueError, AttributeError):  # an attribute of the same name that is not ours
        return None


def _suggested(trial: FrozenTrial) -> dict[str, Any]:
    """A parameter that the objective never asked for keeps its suggested value, as in studies.configuration."""
    kept = trial.user_attrs.get("jumbo")
    params = kept.get("params") if isinstance(kept, Mapping) else None
    return dict(params) if isinstance(params, Mapping) else {}


def _place(params: Mapping[str, Any], space: Space) -> Array:  # -> (d,)
    u = np.full(space.d, math.nan)
    for i, (name, axis) in enumerate(zip(space.names, space.axes, strict=True)):
        if name in params:
            u[i] = axis.encode([params[name]])[0]
    return np.where(np.isfinite(u), u, math.nan)
