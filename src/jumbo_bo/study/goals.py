"""[goals] in study.toml: several goals instead of `direction`, checked."""

from __future__ import annotations

from collections.abc import Mapping

from jumbo_bo.data.goals import Goal, goals_of
from jumbo_bo.errors import InputError
from jumbo_bo.space.space import Space
from jumbo_bo.study import toml
from jumbo_bo.study.old_runs import DIRECTION

FOR_ONE = {
    "direction": "the goals have directions of their own; leave it out",
    "bounds": "it is for a single goal; leave it out",
    "stop": "what is left to gain is computed for a single goal only; leave it out",
}


def goals_in(top: toml.Table, space: Space) -> tuple[tuple[Goal, ...], Mapping[str, float]]:
    """The goals, and the worst values that are still of use, where they are given."""
    if "goals" not in top.values:
        return (), {}
    table = top.table("goals")
    for key, why in FOR_ONE.items():
        if key in top.values:
            raise top.error(f"{key}: there are several goals, and {why}")
    for name in table.values:
        if name in top.values.get("limits", {}):
            raise top.error(f"goals.{name} has a limit as well; write its end as the reference of the goal instead")
    directions, reference = {}, {}
    for name, value in table.values.items():
        if isinstance(value, dict):
            its = table.table(name)
            its.only("direction", "reference")
            directions[name] = its.take("direction", DIRECTION)
            if "reference" in its.values:
                reference[name] = float(its.take("reference", toml.NUMBER))
        else:
            directions[name] = table.take(name, DIRECTION)
    if len(directions) < 2:
        raise table.error('goals has fewer than two; for one goal write direction = "minimize" and [objective] value')
    try:
        return goals_of(directions, space.names), reference
    except InputError as error:
        raise table.error(f"goals: {error}") from None
