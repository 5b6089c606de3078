"""The trials of a study as the report shows them. Nothing is assumed about who made them: what is missing stays a gap.

Notation
    value   in the user's units; NaN: not finished, failed, or not finite
    u       (d,) place of each parameter on its axis, NaN where it has none
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from jumbo_bo.data.corrections import CORRECTED
from jumbo_bo.explain import Explanation
from jumbo_bo.space.space import Array, Space
from jumbo_bo.studies import WHY, explanation, value

WORDS = {
    TrialState.COMPLETE: "done",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "waiting",
}


@dataclass(frozen=True, eq=False)
class Row:
    number: int
    state: str  # one of WORDS, or "forgotten", or "earlier": of an earlier space
    value: float
    params: Mapping[str, Any]
    u: Array
    why: str  # the sentence of the suggestion, or why the trial failed
    reasons: Explanation | None
    improved: bool  # better than every trial before it

    @property
    def measured(self) -> bool:
        """Ran to its end and gave a number; a pruned trial did not."""
        return self.state == "done"


def rows(trials: Sequence[FrozenTrial], space: Space, direction: str, left_out: Mapping[int, str]) -> list[Row]:
    found, best = [], math.nan
    for trial in sorted(trials, key=lambda t: t.number):
        y = value(trial)
        y = y if math.isfinite(y) else math.nan
        state = "failed" if trial.state == TrialState.COMPLETE and math.isnan(y) else WORDS[trial.state]
        state = left_out.get(trial.number, state)
        improved = state == "done" and not (y >= best if direction == "minimize" else y <= best)
        best = y if improved else best
        reasons = _reasons(trial)
        params = {**_suggested(trial), **trial.system_attrs.get("fixed_params", {}), **trial.params}
        corrected = [f"Corrected: {text}." for text in trial.user_attrs.get(CORRECTED, ())]
        why = " ".join([*(str(trial.user_attrs[key]) for key in (WHY, "error") if key in trial.user_attrs), *corrected])
        found.append(Row(trial.number, state, y, params, _place(params, space), why, reasons, improved))
    return found


def best(found: Sequence[Row]) -> Row | None:
    return next((row for row in reversed(found) if row.improved), None)


def number(value: float) -> str:
    return f"{value:.4g}"


def text(value: Any) -> str:
    """A parameter's value: short, but never so short that another value looks the same in practice."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def clip(words: str, width: int) -> str:
    return words if len(words) <= width else f"{words[: width - 1]}…"


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
