"""An Optuna study as the optimizer sees it: what is finished, what is running, what comes next.

The study is the truth. The optimizer is a function of what it was told, so any process can be told the study's trials
and suggest the next one; nothing else has to be kept, locked or sent around.

Every suggestion is kept with its trial, as two user attributes: `why` is the sentence, `jumbo` the numbers behind it
(`Explanation.to_json`) and the whole suggested configuration.

A finished trial cannot be changed or deleted in a storage, but it can be corrected (correct.py). What is read here is
the study as it was corrected.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from jumbo_bo.data.corrections import corrections
from jumbo_bo.data.goals import as_one
from jumbo_bo.data.readers import measured, outcome
from jumbo_bo.space.space import Params, Space

if TYPE_CHECKING:  # who only looks at a study does not load the models
    from jumbo_bo.explain import Explanation
    from jumbo_bo.optimizer import Optimizer, Suggestion

Result = tuple[Params, float, dict[str, float]]  # tried, its value, measured with it
Read = Callable[[], Sequence[FrozenTrial]]  # `remembered`: the trials as they are in the storage now

WHY, NUMBERS = "why", "jumbo"
REMAINING = "remaining"  # {"gain", "chance"} when the trial was started, in studies with a stopping rule
DECIDING = 60.0  # seconds: a running trial without parameters this old has lost its process
MOST_DECIDING = 2  # of them whose choice is computed here as well; more share the configurations
MOST_SHARES = 6  # refusals, each of which halves the share
WAIT, WAITS = 0.01, 50  # seconds, and how often, for a later trial to give way


class Remaining(NamedTuple):
    """What was left to gain when a trial was started."""

    gain: float  # in the user's units
    chance: float  # of a larger one
    trial: int


def suggest(
    optimizer: Optimizer, trials: Sequence[FrozenTrial], number: int, refused: int = 0
) -> tuple[Optimizer, Suggestion]:
    """The optimizer after following the study, and its suggestion for trial `number`.

    Other processes may be deciding earlier trials at this moment. What the first ones will choose can be computed here
    as well, so that all do not choose the same. When there are more, or when another process was faster (`refused`
    times), each takes the best of a share of the configurations.
    """
    optimizer = follow(optimizer, trials)
    others = [t for t in trials if not t.state.is_finished() and t.number != number]  # running, or enqueued
    found = [configuration(t, optimizer.space) for t in others]
    running = [params for params in found if params is not None]
    deciding = [t.number < number for t in others if _is_deciding(t)]
    if refused or sum(deciding) > MOST_DECIDING:
        shares = 1 << (len(deciding).bit_length() + refused)  # no fewer than processes
        return optimizer, optimizer.ask(running, (number % shares, shares))
    suggestion = optimizer.ask(running)
    for _ in range(sum(deciding)):
        suggestion = optimizer.ask()
    return optimizer, suggestion


def follow(optimizer: Optimizer, trials: Iterable[FrozenTrial]) -> Optimizer:
    """The optimizer, told all finished trials in the order they finished."""
    finished = sorted((t for t in trials if t.state.is_finished()), key=lambda t: (t.datetime_complete, t.number))
    followed = _followed.get(optimizer)
    if followed is not None and followed.leads_to(finished, optimizer.told):
        results = _results(finished[len(followed.trials) :], optimizer.space)
    else:
        results = _results(finished, optimizer.space)
        if not _starts_with(results, optimizer.told):  # a trial was corrected, or another clock is late
            optimizer = optimizer.restarted()
        results = results[len(optimizer.told) :]
    for params, y, found in results:
        optimizer.hear(params, y, found)
    _followed[optimizer] = _Followed(finished, optimizer.told)
    return optimizer


class _Followed(NamedTuple):
    """How far an optimizer has followed a study. Storages return the same object for a finished trial, as it never
    changes; only one that was corrected is made anew."""

    trials: list[FrozenTrial]
    told: list[tuple[Params, float]]

    def leads_to(self, trials: Sequence[FrozenTrial], told: Sequence[tuple[Params, float]]) -> bool:
        """Whether all that is left to do is to tell the trials after these."""
        if len(self.trials) > len(trials) or len(self.told) != len(told):
            return False
        same = all(a is b or a == b for a, b in zip(self.trials, trials, strict=False))
        return same and all(a is b for (a, _), (b, _) in zip(self.told, told, strict=True))


_followed: WeakKeyDictionary[Optimizer, _Followed] = WeakKeyDictionary()


def _results(finished: Iterable[FrozenTrial], space: Space) -> list[Result]:
    return [(params, value(t), measured(t)) for t in finished if (params := configuration(t, space)) is not None]


def decide(
    optimizer: Optimizer, read: Read, number: int, store: Callable[[dict[str, Any]], None]
) -> tuple[Optimizer, Suggestion]:
    """The optimizer after following the study, and a suggestion for trial `number` that no other process has taken.
    `store` writes what is kept with the trial, for the others to see at once.

    In a finite space there is such a configuration until SpaceExhausted is raised. Of several trials that want the same
    one the first keeps it. What was known to be taken is suggested only where floats are too few; then it is kept."""
    for refused in count():
        trials = list(read())
        optimizer, suggestion = suggest(optimizer, trials, number, min(refused, MOST_SHARES))
        store(attributes(suggestion))
        known = any(t.number != number and _has(t, suggestion.params) for t in trials)
        if known or may_keep(suggestion.params, read, number):
            break
    return optimizer, suggestion


def may_keep(params: Params, read: Read, number: int) -> bool:
    """Whether trial `number` may keep the configuration that it has just stored. Another process may have stored the
    same one at the same time. Then the later trial gives way, and the earlier one waits until it did; if that one turns
    out to be decided, it was the first to look, and the earlier one gives way after all."""
    for _ in range(WAITS):
        rivals = [t for t in read() if t.number != number and _has(t, params)]
        if any(t.number < number or _is_decided(t) for t in rivals):
            return False
        if not rivals:
            return True
        time.sleep(WAIT)
    return False  # its process is gone, or slow


def _has(trial: FrozenTrial, params: Params) -> bool:
    known = known_params(trial)
    return all(name in known and known[name] == value for name, value in params.items())


def _is_decided(trial: FrozenTrial) -> bool:
    return trial.state is not TrialState.RUNNING or bool(trial.params) or "fixed_params" in trial.system_attrs


def remembered(storage: BaseStorage, study_id: int, goals: Sequence[str] = ()) -> list[FrozenTrial]:
    """All trials of the study but the forgotten ones, as they were corrected; of several goals, see `as_one`."""
    trials = corrections(storage, study_id).counting(storage.get_all_trials(study_id, deepcopy=False))
    return [as_one(t, goals) for t in trials] if goals else trials


def configuration(trial: FrozenTrial, space: Space) -> Params | None:
    """The trial's point of the space; None when it has none (not decided yet, out of range, other parameters).
    A suggested parameter that the objective never asked for keeps its suggested value."""
    known = known_params(trial)
    try:
        params = {name: known[name] for name in space.active(known)}
        space.encode(params)
    except (KeyError, ValueError):
        return None
    return params


def broken(trial: FrozenTrial, space: Space) -> list[str]:
    """The constraints of the space that its configuration does not meet."""
    params = configuration(trial, space) if space.constraints else None
    return [] if params is None else space.broken(params)


def unused(trials: Iterable[FrozenTrial], space: Space) -> list[tuple[int, str]]:
    """Number and problem of every finished trial that has parameters but is no point of the space."""
    found = []
    for trial in trials:
        known = known_params(trial)
        if trial.state.is_finished() and known:
            try:
                space.encode({name: known[name] for name in space.names if name in known})
            except ValueError as error:
                found.append((trial.number, str(error)))
    return found


def value(trial: FrozenTrial) -> float:
    """NaN means failed."""
    return math.nan if (found := outcome(trial)[0]) is None else float(found)


def attributes(suggestion: Suggestion) -> dict[str, Any]:
    """What is kept with the trial."""
    return {WHY: suggestion.why, NUMBERS: suggestion.explanation.to_json() | {"params": suggestion.params}}


def remaining(trials: Iterable[FrozenTrial]) -> Remaining | None:
    """Of the last trial that has it."""
    for trial in sorted(trials, key=lambda t: -t.number):
        kept = trial.user_attrs.get(REMAINING)
        if isinstance(kept, dict) and {"gain", "chance"} <= set(kept):
            return Remaining(float(kept["gain"]), float(kept["chance"]), trial.number)
    return None


def explanation(trial: FrozenTrial) -> Explanation | None:
    """Why the trial was suggested; None when it was not suggested by jumbo-bo."""
    from jumbo_bo.explain import Explanation

    kept = trial.user_attrs.get(NUMBERS)
    return None if kept is None else Explanation.from_json(kept)


def known_params(trial: FrozenTrial) -> Params:
    """Values suggested, then enqueued, then asked for by the objective."""
    suggested = trial.user_attrs.get(NUMBERS, {}).get("params", {})
    return {**suggested, **trial.system_attrs.get("fixed_params", {}), **trial.params}


def _is_deciding(trial: FrozenTrial, seconds: float = DECIDING) -> bool:
    """Started a moment ago, and neither its suggestion nor a parameter is known yet."""
    if trial.state != TrialState.RUNNING or trial.datetime_start is None or known_params(trial):
        return False
    return datetime.now() - trial.datetime_start < timedelta(seconds=seconds)


def _starts_with(results: Sequence[Result], told: Sequence[tuple[Params, Any]]) -> bool:
    def same(a: Result, b: tuple[Params, Any]) -> bool:
        values = list(b[1].items()) if isinstance(b[1], dict) else [("", b[1])]  # of several goals, or one
        (_, first), *others = values
        return a[0] == b[0] and (
            math.isnan(first) if not math.isfinite(a[1]) else a[1] == first and all(a[2].get(n) == v for n, v in others)
        )

    return len(told) <= len(results) and all(map(same, results, told))
