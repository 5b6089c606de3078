"""What an optimizer cannot work with is refused before anything is learned, tried or forgotten."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from jumbo_bo.data.history import History
from jumbo_bo.data.limits import Limit, Limits, ends_of, limits_of
from jumbo_bo.errors import InputError, brief
from jumbo_bo.extras import require
from jumbo_bo.known import Remembered
from jumbo_bo.learning.past import Past
from jumbo_bo.methods import DEFAULT, METHODS, Recipe, name_of
from jumbo_bo.space.constraints import Predicate
from jumbo_bo.space.space import Space
from jumbo_bo.suggestion import Suggestion
from jumbo_bo.trials import Trial

FAILED = math.nan


def checked_direction(direction: Any) -> Literal["minimize", "maximize"]:
    if direction not in ("minimize", "maximize"):
        raise InputError(f"direction is {direction!r}, expected 'minimize' or 'maximize'")
    return "minimize" if direction == "minimize" else "maximize"


def checked_recipe(
    method: str | Recipe,
    space: Space,
    history: History | Past | Remembered | None,
    n_trials: int | None,
) -> Recipe:
    """The recipe of the method, which can work with the other arguments."""
    if n_trials is not None and n_trials < 1:
        raise InputError(f"n_trials is {n_trials}, expected at least 1, or None if the budget is unknown")
    if isinstance(method, str) and method not in METHODS:
        raise InputError(f"method is {method!r}, expected one of {', '.join(METHODS)}")
    recipe: Recipe = METHODS[method] if isinstance(method, str) else method
    _check_history(recipe, method if isinstance(method, str) else name_of(method), space, history)
    return recipe


def checked_bounds(bounds: tuple[float | None, float | None]) -> tuple[float, float]:
    """With infinities in place of None."""
    try:
        ends = ends_of(bounds)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"bounds are {brief(bounds)}, expected two numbers such as (0, 100), or None for one"
        ) from None
    if not ends[0] < ends[1]:
        raise InputError(f"bounds are {bounds!r}, expected the smaller one first")
    return ends


def told_number(value: Any) -> float:
    """A value as it is told; NaN for one that is not finite."""
    try:
        number = float(value)
    except OverflowError:  # a whole number beyond all floats
        return FAILED
    except (TypeError, ValueError):
        raise TypeError(f"value is {brief(value)}, expected a number; use fail() for a trial without one") from None
    return number if math.isfinite(number) else FAILED


def checked_limits(limits: Limits | None, space: Space, recipe: Recipe) -> tuple[Limit, ...]:
    """With a method that keeps them."""
    found = limits_of(limits, space.names)
    if found and not recipe.keeps_limits:
        raise InputError(f"{name_of(recipe)} knows no limits; leave method out to use {DEFAULT!r}, which does")
    return found


def _check_history(recipe: Recipe, name: str, space: Space, history: History | Past | Remembered | None) -> None:
    require(name, *recipe.needs)
    if isinstance(history, Remembered):  # checked when it was read
        made_for = history.kept.space_fingerprint
    elif isinstance(history, Past):
        made_for, wanted = history.space_fingerprint, recipe.learns
        if wanted is not None and not isinstance(history, wanted):
            raise InputError(
                f"{name} learns a {wanted.__name__} from the old runs, and history is a {type(history).__name__}; "
                "pass their History"
            )
    else:
        made_for = space.fingerprint if history is None else history.space.fingerprint
        recipe.check(history or History.empty(space))
    if made_for != space.fingerprint:
        raise InputError("history is for another space; read the old runs again with this one")


def not_pending(suggestion: Suggestion, suggestions: Sequence[Suggestion]) -> InputError:
    known = any((s.number, s.params) == (suggestion.number, suggestion.params) for s in suggestions)
    problem = "was already told or failed" if known else "is not from this optimizer"
    repeat = "to report a repeat, call tell(suggestion.params, value)"
    return InputError(f"suggestion {suggestion.number} {problem}; {repeat}")


def told_once(space: Space, told: Sequence[Trial], configuration: Suggestion | Mapping[str, Any]) -> int:
    """Where the configuration is among the trials."""
    (point,) = told_points(space, told, [configuration], "replaced")
    found = [i for i, t in enumerate(told) if t.u.tobytes() == point]
    if len(found) > 1:
        raise InputError(
            f"{told[found[0]].params} was told {len(found)} times, so it is not clear "
            "which one is meant; forget() the configuration and tell the right values"
        )
    return found[0]


def told_points(
    space: Space,
    told: Sequence[Trial],
    configurations: Iterable[Suggestion | Mapping[str, Any]],
    purpose: str = "forgotten",
) -> set[bytes]:
    """The points of the configurations, each of which was told."""
    if isinstance(configurations, Suggestion | Mapping):
        raise InputError("expected a list of configurations; put this one into brackets")
    known, found = {t.u.tobytes() for t in told}, set()
    for configuration in configurations:
        params = configuration.params if isinstance(configuration, Suggestion) else configuration
        point = space.encode(params).tobytes()
        if point not in known:
            raise InputError(f"{dict(params)} was never told, so it cannot be {purpose}; nothing was changed")
        found.add(point)
    return found


def constrained(space: Space | None, asked: Any, constraints: Sequence[str | Predicate]) -> Space | None:
    """The space with the constraints, wherever they were given."""
    if space is None:
        if constraints:
            raise InputError("constraints need parameters whose ranges are known; pass search_space= as well")
        return None
    given = asked.constraints if isinstance(asked, Space) else space.constraints
    if constraints and given:
        raise InputError("constraints were given twice; leave out constraints=, or those of the space")
    wanted = Space(space.distributions, space.conditions, constraints or given)
    return space if space == wanted else wanted
