"""The spaces that a study has had. A study may go on in another space; it keeps a record of each.

    space                          user attribute of the study: the first one, parameter -> its distribution as JSON,
                                   with the condition under which it exists as "when", if there is one
    space changed 000001 9f86d081  {"space": the next one, "stored as": names, "when": ISO 8601}

Optuna does not let a parameter become another kind of distribution, or get another choice, within one study. Such a
parameter is stored under another name ("stored as"), and has its own again when the study is read.
"""

from __future__ import annotations

import copy
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    check_distribution_compatibility,
    distribution_to_json,
    json_to_distribution,
)
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial

from jumbo_bo.data.corrections import now
from jumbo_bo.space.space import Space

SPACE, CHANGED, WHEN = "space", "space changed ", "when"

Record = Mapping[str, str]


@dataclass(frozen=True)
class Spaces:
    """All that a study has had, the present one last."""

    records: tuple[Record, ...]
    stored_as: Mapping[str, str]  # parameter -> its name in the storage, where that is another: of the present space
    own_names: Mapping[str, str]  # the other way round, of all spaces

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(name for record in self.records for name in record)

    def read(self, trial: FrozenTrial) -> FrozenTrial:
        """With its parameters' own names."""
        if not any(name in self.own_names for name in trial.params):
            return trial
        made = copy.copy(trial)
        made._params = {self.own_names.get(name, name): value for name, value in trial.params.items()}
        made._distributions = {self.own_names.get(name, name): dist for name, dist in trial.distributions.items()}
        return made


def record_of(space: Space) -> dict[str, str]:
    return {name: _record(dist, space.conditions.get(name)) for name, dist in space.distributions.items()}


def _record(dist: BaseDistribution, when: str | None) -> str:
    text = distribution_to_json(dist)
    return text if when is None else json.dumps({**json.loads(text), WHEN: when})


def distributions_in(record: Record) -> dict[str, BaseDistribution]:
    return {name: json_to_distribution(text) for name, text in record.items()}


def conditions_in(record: Record) -> dict[str, str]:
    return {name: found[WHEN] for name, text in record.items() if WHEN in (found := json.loads(text))}


def is_of(record: Record, space: Space) -> bool:
    """Whether the space is the recorded one. The order of parameters does not matter."""
    return distributions_in(record) == space.distributions and conditions_in(record) == space.conditions


def spaces_in(attributes: Mapping[str, Any]) -> Spaces:
    """Those that the user attributes of a study tell of."""
    first = attributes.get(SPACE)
    changes = [kept for key, kept in sorted(attributes.items()) if key.startswith(CHANGED)]
    records = ([] if first is None else [first]) + [kept["space"] for kept in changes]
    names = {stored: own for kept in changes for own, stored in kept["stored as"].items()}
    return Spaces(tuple(records), changes[-1]["stored as"] if changes else {}, names)


def keep(storage: BaseStorage, study_id: int, space: Space) -> Spaces:
    """From now on this is the study's space."""
    known = spaces_in(storage.get_study_user_attrs(study_id))
    if not known.records:
        storage.set_study_user_attr(study_id, SPACE, record_of(space))
    elif not is_of(known.records[-1], space):
        trials = storage.get_all_trials(study_id, deepcopy=False)
        kept = {"space": record_of(space), "stored as": _stored_as(trials, space, known), "when": now()}
        key = f"{CHANGED}{len(known.records):06d} {secrets.token_hex(4)}"
        storage.set_study_user_attr(study_id, key, kept)
    return spaces_in(storage.get_study_user_attrs(study_id))


def _stored_as(trials: Iterable[FrozenTrial], space: Space, known: Spaces) -> dict[str, str]:
    """Parameters that Optuna would not store under their own name."""
    stored: dict[str, BaseDistribution] = {}
    for trial in trials:
        for name, dist in trial.distributions.items():
            stored.setdefault(name, dist)
    taken = (set(space.names) | known.names) - set(known.own_names)
    found = {name: _free(name, dist, stored, taken - {name}) for name, dist in space.distributions.items()}
    return {name: other for name, other in found.items() if other != name}


def _free(name: str, dist: BaseDistribution, stored: Mapping[str, BaseDistribution], taken: set[str]) -> str:
    for n in count(1):
        candidate = name if n == 1 else f"{name} [{n}]"
        if candidate not in taken and (candidate not in stored or _compatible(stored[candidate], dist)):
            return candidate
    raise AssertionError  # there is always another number


def _compatible(a: BaseDistribution, b: BaseDistribution) -> bool:
    try:
        check_distribution_compatibility(a, b)
    except ValueError:
        return False
    return True
