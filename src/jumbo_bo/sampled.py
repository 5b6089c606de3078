"""What a sampler searches, and the old runs it learns from, out of the forms in which both are passed to it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from jumbo_bo.constraints import in_excess
from jumbo_bo.data.goals import in_place, names_in
from jumbo_bo.data.history import History
from jumbo_bo.data.limits import Limits
from jumbo_bo.data.readers import from_study
from jumbo_bo.errors import InputError
from jumbo_bo.learning.past import Past
from jumbo_bo.space.space import Space
from jumbo_bo.space.structure import Seen, learned_space


def space_and_history(
    history: History | Past | None,
    search_space: Space | Mapping[str, BaseDistribution] | None,
    sources: Sequence[Study],
    limits: Limits | None,
) -> tuple[Space | None, History | Past | None]:
    if not (history is None or isinstance(history, History | Past)):
        raise TypeError(f"history is a {type(history).__name__}, expected a History (see read_history) or a Past")
    space = search_space if search_space is None or isinstance(search_space, Space) else Space(search_space)
    if isinstance(history, Past):
        if space is None:
            kind = type(history).__name__
            raise InputError(f"a {kind} does not know its parameters; pass the space it was made for as search_space=")
        if history.space_fingerprint != space.fingerprint:
            raise InputError("history was learned for another search space; learn from the old runs again for this one")
        if sources:
            raise InputError(
                "source_studies cannot be added to what was learned before; pass all old runs as a History"
            )
        return space, history
    if history is not None:
        _check_same(history.space, search_space or history.space)
        space = history.space  # the same parameters, perhaps in another order
        history = in_excess(history, limits)
    if sources:
        space = space or _shared(sources)
        old = from_study(sources, space)
        history = old if history is None else history + old
    return space, history


def _check_same(made_for: Space, asked: Space | Mapping[str, BaseDistribution]) -> None:
    there, here = made_for.distributions, asked.distributions if isinstance(asked, Space) else asked
    if isinstance(asked, Space) and there == here and made_for.conditions != asked.conditions:
        raise InputError(
            f"history was made for other conditions: {dict(made_for.conditions)} there and {dict(asked.conditions)} "
            "here; read the old runs again with this search space"
        )
    if there != here:
        name = next(name for name in {**there, **here} if there.get(name) != here.get(name))
        raise InputError(
            f"history was made for another search space: {name!r} is {there.get(name, 'missing')} there and "
            f"{here.get(name, 'missing')} here; read the old runs again with this search space"
        )


def _shared(sources: Sequence[Study]) -> Space:
    """The parameters of the finished trials of all studies, each with one range, and the conditions of those that not
    all have."""
    finished = TrialState.COMPLETE, TrialState.PRUNED
    seen = [seen_in(s.get_trials(deepcopy=False), finished) for s in sources]
    shared = learned_space(seen) if all(seen) else None
    if shared is None:
        names = ", ".join(repr(s.study_name) for s in sources)
        raise InputError(f"the trials of {names} share no parameter with the same range; pass search_space=")
    return shared


def goals_in(study: Study, history: History | Past | None) -> tuple[dict[str, str], History | Past | None]:
    """The goals of a study that has several, and the old runs with what they know of each under its name. Where one
    side has no names, goals are the same that have the same place."""
    if len(study.directions) < 2:
        return {}, history
    known = list(history.limits) if isinstance(history, History) else []
    names, plain = names_in(study), [f"values_{k}" for k in range(len(study.directions))]
    if study.metric_names is None and len(known) >= len(plain) - 1:
        names = [plain[0], *known[: len(plain) - 1]]
    goals = {name: direction.name.lower() for name, direction in zip(names, study.directions, strict=True)}
    if isinstance(history, History):
        history = in_place(history, names)
    return goals, history


def seen_in(trials: Iterable[FrozenTrial], states: Container[TrialState]) -> list[Seen]:
    return [Seen(t.params, t.distributions) for t in trials if t.state in states]
