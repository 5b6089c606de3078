"""What a sampler searches, and the old runs it learns from, out of the forms in which both are passed to it."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from optuna import Study
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import FrozenTrial, TrialState

from jumbo_bo.constraints import in_excess
from jumbo_bo.data.goals import in_place, names_in
from jumbo_bo.data.history import History
from jumbo_bo.data.limits import Limits
from jumbo_bo.data.readers import from_study
from jumbo_bo.data.storage import JOURNALS, opened
from jumbo_bo.errors import InputError, brief, masked
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


class Suggested(dict[str, Any]):
    """Suggested values. Optuna takes one that is `in` here only if the objective asks for exactly the choices that the
    search space has, else it stops; of others it asks the sampler, with the choices that the objective has."""

    def __init__(self, params: Mapping[str, Any], space: Mapping[str, BaseDistribution]) -> None:
        super().__init__({name: value for name, value in params.items() if name in space})
        self._choices = {name for name, dist in space.items() if isinstance(dist, CategoricalDistribution)}

    def __contains__(self, name: object) -> bool:
        return name not in self._choices and super().__contains__(name)


def other_choices(
    name: str, asked: CategoricalDistribution, space: Space | None, trials: Iterable[FrozenTrial]
) -> str | None:
    """What is to be said when the objective has other choices than the search space, or an earlier trial."""
    before = next((t for t in trials if name in t.distributions), None)
    if before is not None and before.distributions[name] != asked:
        raise InputError(
            f"{name!r} has the choices {_choices(asked)}, and in trial {before.number} it had "
            f"{_choices(before.distributions[name])}, which Optuna does not allow within a study; start another, with "
            "this study among source_studies= and all choices in search_space="
        )
    known = None if space is None else space.distributions.get(name)
    if not isinstance(known, CategoricalDistribution) or known == asked:
        return None
    new = [choice for choice in asked.choices if choice not in known.choices]
    said = f"{', '.join(map(repr, new))} will not be suggested" if new else "some suggestions are replaced by chance"
    return (
        f"{name!r} is requested with the choices {_choices(asked)}, and the search space has {_choices(known)}: "
        f"{said}; pass search_space= with the choices of the objective. This message is shown once."
    )


def _choices(dist: BaseDistribution) -> str:
    return brief(getattr(dist, "choices", dist))


def studies_of(given: object) -> list[Study]:
    """What was passed as `source_studies`. An error says what to write in place of a name or an address."""
    if given is None or isinstance(given, Study):
        return [] if given is None else [given]
    several = list(given) if isinstance(given, Iterable) and not isinstance(given, str | Path) else [given]
    if wrong := [each for each in several if not isinstance(each, Study)]:
        raise InputError(f"source_studies is {brief(wrong[0])}, expected {_expected(wrong[0])}")
    return [each for each in several if isinstance(each, Study)]


def _expected(given: object) -> str:
    load = "source_studies=[optuna.load_study(study_name={name}, storage={storage})"
    text = str(given) if isinstance(given, str | Path) else None
    if text is None:
        return "an optuna study or a list of them; load one with optuna.load_study(study_name=..., storage=...)"
    if "://" not in text and not text.endswith(JOURNALS):
        return f"a study, not its name; write {load.format(name=repr(text), storage='...')}]"
    with opened(text, create=False) as storage:
        names = sorted(study.study_name for study in storage.get_all_studies())
    where = repr(masked(text)) if "://" in text else f"jumbo_bo.open_storage({text!r})"
    return f"studies, not a storage; write {load.format(name='name', storage=where)} for name in {names}]"
