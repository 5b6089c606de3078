"""What an optimizer is given, in the forms a notebook has it: a dict for the space, a table for the old runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from jumbo_bo.data.frames import Roles, to_polars
from jumbo_bo.data.history import History
from jumbo_bo.errors import InputError, UserError
from jumbo_bo.known import Remembered
from jumbo_bo.learning.past import Past
from jumbo_bo.space.space import Space

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

LOOKED_AT = 10_000  # rows, for a guess


def given(
    space: Space | Mapping[str, BaseDistribution], history: Any, direction: str | Mapping[str, str], columns: Roles
) -> tuple[Space, History | Past | Remembered | None]:
    """`columns` are for a table: those that are not named are guessed as `jumbo init` does. Several directions name
    their columns."""
    space = space if isinstance(space, Space) else Space(space)
    if history is None or isinstance(history, History | Past | Remembered):
        if columns:
            raise InputError(
                f"{', '.join(f'{name}=' for name in columns)} say what the columns of a table are, and history is "
                f"{'not given' if history is None else f'a {type(history).__name__}'}; leave them out, or pass a table"
            )
        return space, history
    try:
        table = to_polars(history)
    except TypeError as error:
        raise TypeError(f"history: {error}, History.from_frame or from_study for other old runs") from None
    first = next(iter(direction.items())) if isinstance(direction, Mapping) else (columns.get("objective"), direction)
    known: dict[str, Any] = {"direction": direction} | _guessed(table, *first, columns) | dict(columns)
    if isinstance(direction, Mapping):
        known.pop("objective", None)
    return space, History.from_frame(table, space, source="the table of old runs", **known)


def _guessed(table: Any, objective: str | None, direction: str, columns: Roles) -> dict[str, Any]:
    """The objective and the task, unless both are given."""
    if objective is not None and "task" in columns:
        return {}
    from jumbo_bo.study.guess import guess  # needs Polars, which is slow to import

    try:
        found = guess(table.lazy().head(LOOKED_AT).collect(), objective, columns.get("task"))
    except UserError as error:
        if objective is not None:
            return {}  # without a task all rows are one
        words = str(error).replace("--objective ", "objective=").replace("--task ", "task=")
        raise InputError(f"the columns of the old runs are not clear: {words}") from None
    if objective is None and (found.direction, direction) == ("maximize", "minimize"):
        raise InputError(
            f"the objective of the old runs seems to be {found.objective!r}, of which larger is better, and direction "
            f"is 'minimize'; pass direction='maximize', or objective={found.objective!r} if smaller is better"
        )
    return {"objective": found.objective, "task": found.task}
