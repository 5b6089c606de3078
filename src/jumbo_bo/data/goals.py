"""Several goals: names and directions, and the trials of an Optuna study that has them.

The first goal is what a study with one goal calls the value. The others are kept like quantities that are measured with
every trial, so everything that reads trials with one value reads these as well.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from optuna import Study
from optuna.trial import FrozenTrial

from jumbo_bo.data.frames import closest
from jumbo_bo.data.history import History
from jumbo_bo.errors import InputError, brief

MEASURED = "measured"  # user attribute of a trial: quantity -> value
Values = Mapping[str, float | None] | Sequence[float | None]  # of the goals, by name or in their order
EXAMPLE = '{"loss": "minimize", "time": "minimize"}'


@dataclass(frozen=True)
class Goal:
    name: str
    direction: Literal["minimize", "maximize"] = "minimize"

    @property
    def sign(self) -> float:
        """Of its values, so that larger is better."""
        return 1.0 if self.direction == "maximize" else -1.0


class FrontTrial(NamedTuple):
    params: Mapping[str, Any]
    values: dict[str, float]


def goals_of(directions: Mapping[str, Any], names: Iterable[str] = ()) -> tuple[Goal, ...]:
    """`names` are those of the parameters."""
    if not isinstance(directions, Mapping) or len(directions) < 2:
        raise InputError(
            f"direction is {brief(directions)}, expected two goals or more, such as {EXAMPLE}; "
            "for one goal pass 'minimize' or 'maximize'"
        )
    taken = set(names)
    for name, direction in directions.items():
        if not isinstance(name, str) or not name or name in taken:
            wrong = "is a parameter" if name in taken else "is not a name"
            raise InputError(f"direction: {brief(name)} {wrong}; goals are what is measured")
        if direction not in ("minimize", "maximize"):
            raise InputError(f"the direction of {name!r} is {brief(direction)}, expected 'minimize' or 'maximize'")
    return tuple(Goal(name, direction) for name, direction in directions.items())


def told_values(values: Any, goals: Sequence[Goal]) -> dict[str, float]:
    """The value of every goal. NaN for one that was not measured or is not finite."""
    names = [goal.name for goal in goals]
    if isinstance(values, Mapping):
        for name in values:
            if name not in names:
                raise InputError(f"value has {brief(name)}, but the goals are {', '.join(names)}{closest(name, names)}")
        if lacking := [name for name in names if name not in values]:
            raise InputError(f"value has no {lacking[0]!r}; the goals are {', '.join(names)}. None: not measured")
        found = dict(values)
    elif isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"value is {brief(values)}, expected one for each of {', '.join(names)}, such as a dict")
    else:
        listed = list(values)
        if len(listed) != len(names):
            n = f"{len(listed)} {'value' if len(listed) == 1 else 'values'}"
            raise InputError(f"there are {n} for {len(names)} goals ({', '.join(names)})")
        found = dict(zip(names, listed, strict=True))
    return {name: _number(name, found[name]) for name in names}


def _number(name: str, value: Any) -> float:
    try:
        number = math.nan if value is None else float(value)
    except OverflowError:  # a whole number beyond all floats
        return math.nan
    except (TypeError, ValueError):
        raise InputError(f"the value of {name!r} is {brief(value)}, expected a number, or None") from None
    return number if math.isfinite(number) else math.nan


def names_in(study: Study) -> list[str]:
    """What the goals of an Optuna study are called: as it says, else as in its data frames."""
    return list(study.metric_names or [f"values_{k}" for k in range(len(study.directions))])


def in_place(history: History, names: Sequence[str]) -> History:
    """Old runs whose further goals have no names: those of the same place."""
    as_named = {f"values_{k}": name for k, name in enumerate(names) if name not in history.limits}
    limits = {as_named.get(name, name): its for name, its in history.limits.items()}
    return history if list(limits) == list(history.limits) else replace(history, limits=limits)


def as_one(trial: FrozenTrial, names: Sequence[str]) -> FrozenTrial:
    """The trial as if its first goal were its value, and the others were measured with it."""
    values = trial.values
    if values is None or len(names) < 2 or len(values) != len(names):
        return trial
    made = copy.copy(trial)
    kept, others = trial.user_attrs.get(MEASURED), dict(zip(names[1:], values[1:], strict=True))
    also = {name: q for name, q in kept.items() if name not in others} if isinstance(kept, dict) else {}
    made._user_attrs = {**trial.user_attrs, MEASURED: {**others, **also}}
    made.values = values[:1]
    return made
