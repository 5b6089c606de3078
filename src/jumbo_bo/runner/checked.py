"""A study file against the study in its storage: whether both are about the same."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import optuna
from optuna.exceptions import ExperimentalWarning
from optuna.storages import BaseStorage

from jumbo_bo.data.spaces import keep, spaces_in
from jumbo_bo.data.storage import shown
from jumbo_bo.errors import UserError
from jumbo_bo.extras import require
from jumbo_bo.methods import METHODS
from jumbo_bo.studies import configuration, unused
from jumbo_bo.study.study_file import StudyFile


def check_packages(file: StudyFile) -> None:
    """What the method needs is installed: known before a file is made."""
    require(f"method = {file.method!r}", *METHODS[file.method].needs)


def check_study(file: StudyFile, storage: BaseStorage, create: bool) -> bool:
    """Whether its space has changed."""
    known = [s.study_name for s in storage.get_all_studies()]
    if not create and file.name not in known:
        others = f"; it has {', '.join(map(repr, sorted(known)[:5]))}" if known else ""
        raise UserError(
            f"there is no study {file.name!r} in {shown(file.address)} yet{others}. Start it with "
            f"`jumbo run {file.path}` or `jumbo ask {file.path}`"
        )
    if file.name in known:  # without a write: who only looks may not be allowed to
        study = optuna.load_study(storage=storage, study_name=file.name)
    else:
        directions = [goal.direction for goal in file.goals] or [file.direction]
        study = optuna.create_study(storage=storage, study_name=file.name, directions=directions, load_if_exists=True)
        if file.goals:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ExperimentalWarning)
                study.set_metric_names(file.names)
    _check_goals(file, study)
    before = spaces_in(study.user_attrs).records
    if not before:
        _check_foreign(file, study)
    after = keep(storage, study._study_id, file.space).records if create else before
    return 0 < len(before) < len(after)


def _check_goals(file: StudyFile, study: optuna.Study) -> None:
    wanted = [goal.direction for goal in file.goals] or [file.direction]
    known = [d.name.lower() for d in study.directions]
    names = study.metric_names if file.goals else None
    if known != wanted or names not in (None, file.names):
        there, here = _goals(known, names), _goals(wanted, file.names if names else None)
        raise UserError(
            f"the study {file.name!r} in {shown(file.address)} has direction {there}, but {file.path} says {here}. "
            "Change it back, or give the study a new name"
        )


def _goals(directions: Sequence[str], names: Sequence[str] | None) -> str:
    known = names or [""] * len(directions)
    return " and ".join(f"{d} {name}".strip() for d, name in zip(directions, known, strict=True))


def _check_foreign(file: StudyFile, study: optuna.Study) -> None:
    """A study made by another program is welcome when its trials are points of the space."""
    decided = [t for t in study.get_trials(deepcopy=False) if t.params]
    if decided and all(configuration(t, file.space) is None for t in decided):
        number, problem = next(iter(unused(decided, file.space)), (decided[0].number, "other parameters"))
        raise UserError(
            f"none of the {len(decided)} trials of the study {file.name!r} in {shown(file.address)} fits this "
            f"space: trial {number} has {', '.join(map(repr, decided[0].params))} ({problem}). That is a different "
            "study; give this one a new name"
        )
