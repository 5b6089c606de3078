"""The optimizer of a study file. Old runs in files are read once and then only when they have changed."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from optuna.trial import FrozenTrial

import jumbo_bo
from jumbo_bo.data.history import History
from jumbo_bo.data.states import State, look
from jumbo_bo.errors import UserError
from jumbo_bo.known import Remembered, keep, remembered
from jumbo_bo.learning import cache
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.learning.past_file import FORMAT
from jumbo_bo.learning.training import JUDGED_FROM
from jumbo_bo.methods import METHODS, Recipe
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.pareto import ParetoOptimizer
from jumbo_bo.quantities import quantity_history
from jumbo_bo.runner.kept import old_runs
from jumbo_bo.study.study_file import StudyFile
from jumbo_bo.wording import learned

READING = 1  # to be raised when the same files would be read differently, or something else is kept of them


def build_optimizer(
    file: StudyFile,
    limit: int,
    note: Callable[[str], None],
    whole: bool = False,
    earlier: Sequence[FrozenTrial] = (),
) -> Optimizer:
    """Reads the old runs and learns from them, which takes a while the first time. `whole`: with all rows of the old
    runs, not only what suggestions need of them. `earlier`: trials of the study itself that are old runs by now."""
    folder, recipe, paths = cache.default_folder(), METHODS[file.method], _paths(file)
    own = old_runs(file, earlier)
    place = folder / f"{_key(file, own)}.runs"
    history: History | Remembered | None = None
    if paths and not whole:
        history = _remembered(place, paths, recipe, file)
    files: tuple[State, ...] = ()
    if history is None:
        with suppress(OSError):  # reading them will say it better
            files = look(paths)
        history = _combined(file.history(), own, recipe, note)
        for goal in file.goals[1:]:
            if history is not None and quantity_history(history, goal) is None:
                note(f"The old runs do not have {goal.name!r}: it is learned from the new trials alone")
    optimizer = Optimizer(
        file.space,
        history,
        {goal.name: goal.direction for goal in file.goals} or file.direction,
        limit,
        file.method,
        file.seed,
        candidates=file.listed,
        cache=folder,
        bounds=file.bounds or (None, None),
        limits={limit.name: limit.ends for limit in file.limits} or None,
        beliefs=file.beliefs,
    )
    if isinstance(optimizer, ParetoOptimizer):
        optimizer.reference = dict(file.reference)
    if isinstance(history, History):
        _learn(optimizer, history, note)
        if files:
            with suppress(OSError):  # a cache that cannot be used costs only time
                for each in file.quantities:
                    its = quantity_history(history, each) or History.empty(file.space)
                    keep(_place_of(place, each.name), files, its, recipe, file.seed)
                keep(place, files, history, recipe, file.seed)
    return optimizer


def _remembered(place: Path, paths: Sequence[Path], recipe: Recipe, file: StudyFile) -> Remembered | None:
    """What was kept of the old runs, all of it or nothing."""
    known = remembered(place, paths, recipe, file.space)
    limits = {x.name: remembered(_place_of(place, x.name), paths, recipe, file.space) for x in file.quantities}
    if known is None or None in limits.values():
        return None
    return known._replace(limits={name: its for name, its in limits.items() if its is not None})


def _place_of(place: Path, name: str) -> Path:
    """Of a limited quantity."""
    return place.with_name(f"{place.stem}-{hashlib.sha256(name.encode()).hexdigest()[:8]}{place.suffix}")


def _learn(optimizer: Optimizer, history: History, note: Callable[[str], None]) -> None:
    if history.tasks and optimizer.recipe.learns is not None and optimizer.cache is not None:
        if cache.kept(optimizer.recipe, history, optimizer.seed, optimizer.cache) is None:
            note(f"Learning from {history.n_rows:,} old runs (done once, then cached) ...")
            start, past = time.monotonic(), optimizer.past
            how_well = "" if past is not None else "Nothing predicts them, so they are not used."
            if isinstance(past, FeatureNet):
                judged = {t.name for t in history.tasks if len(t.y) >= JUDGED_FROM}
                r2 = {name: value for name, value in past.info["validation_r2"].items() if name in judged}
                how_well = learned(r2, past.unlearned)
            note(f"Learned in {time.monotonic() - start:.0f} s. {how_well}".rstrip())
        _ = optimizer.past


def _paths(file: StudyFile) -> tuple[Path, ...]:
    """Empty when there are no old runs, or not only files. What is wrong with them is said when they are read."""
    try:
        return file.old_files()
    except (UserError, OSError):
        return ()


def _combined(
    history: History | None, own: History | None, recipe: Recipe, note: Callable[[str], None]
) -> History | None:
    if own is None:
        return history
    both = own if history is None else history + own
    try:
        recipe.check(both)
    except UserError as error:
        note(f"The study's trials in an earlier space are not used as old runs: {error}")
        return history
    return both


def _key(file: StudyFile, own: History | None) -> str:
    """By all that decides how files are read and what is learned from them."""
    sources = [[source.kind, source.where, dict(source.options)] for source in file.old_runs]
    learning = METHODS[file.method].learning
    limits = [[one.name, one.direction] for one in file.quantities]
    study = [str(file.folder), file.direction, file.method, file.seed, file.space.fingerprint]
    told = [READING, FORMAT, jumbo_bo.__version__, study, learning, sources]
    told += [*([own.fingerprint] if own else []), *([limits] if limits else [])]
    text = json.dumps(told, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
