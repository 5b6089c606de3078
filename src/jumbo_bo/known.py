"""What suggestions need of the old runs: little, however many rows there are.

`Known` takes it from the old runs, from what was learned from them, or from a file that was kept of both (`Kept`). With
such a file a process does not read the old runs again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from jumbo_bo.data.history import History
from jumbo_bo.data.states import State, look_again
from jumbo_bo.data.warp import Warp
from jumbo_bo.learning import cache
from jumbo_bo.learning.past import Past
from jumbo_bo.methods.base import Recipe
from jumbo_bo.neighbours import Witnesses, witnesses
from jumbo_bo.space.space import Space
from jumbo_bo.trials import Trial, old_trials

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Kept(Past):
    """As a file: `Remembered` without what was learned, which has a file of its own."""

    files: tuple[State, ...]  # of the old runs
    learned: str | None  # the file of what was learned; None: nothing to learn from
    target_u: Array  # (n, d) old data of the target, as the optimizer takes it
    target_y: Array  # (n,)
    near_u: Array  # (w, d) `Witnesses`
    near_task: tuple[str, ...]
    near_value: Array  # (w,)


class Remembered(NamedTuple):
    """Old runs that were read and learned from earlier. `Optimizer` takes it in place of a history."""

    kept: Kept
    past: Past | None

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.kept.tasks


class Known:
    def __init__(
        self, history: History | Past | Remembered | None, recipe: Recipe, space: Space, seed: int, folder: Path | None
    ) -> None:
        self.history, self.recipe, self.space, self.seed, self.folder = history, recipe, space, seed, folder

    @property
    def trials(self) -> list[Trial]:
        """Old data of the target."""
        if isinstance(self.history, Remembered):
            kept = self.history.kept
            return [Trial(u, self.space.decode(u), float(y)) for u, y in zip(kept.target_u, kept.target_y, strict=True)]
        return old_trials(self.space, self.history.target if isinstance(self.history, History) else None, self.seed)

    @cached_property
    def warps(self) -> tuple[Warp, ...]:
        """How the old tasks' values are distributed."""
        if self.history is None or not self.recipe.old_scale:
            return ()
        if isinstance(self.history, History):
            return tuple(t.warp for t in self.history.tasks)
        return self.history.kept.warps if isinstance(self.history, Remembered) else self.history.warps

    @cached_property
    def witnesses(self) -> Witnesses | None:
        if not self.recipe.learns:
            return None
        if isinstance(self.history, Remembered):
            kept = self.history.kept
            return Witnesses(
                self.space, kept.near_u, self.space.transform(kept.near_u), kept.near_task, kept.near_value
            )
        return witnesses(self.history) if isinstance(self.history, History) else None

    def learn(self) -> Past | None:
        """None when there are no old runs, when the method does not look at them, or when nothing could be learned."""
        if self.recipe.learns is None or self.history is None:
            return None
        if isinstance(self.history, History):
            found = cache.learned(self.recipe, self.history, self.seed, self.folder) if self.history.tasks else None
        else:
            found = self.history.past if isinstance(self.history, Remembered) else self.history
        return None if found is None or found.empty else found


def keep(place: Path, files: Sequence[State], history: History, recipe: Recipe, seed: int) -> None:
    """Writes what `remembered` will find. Not when a file has changed since: it is unclear what was read then."""
    if look_again(files, [Path(state.path) for state in files]) is None:
        return
    learns = history.tasks and recipe.learns is not None
    learned = cache.place(recipe, history, seed, place.parent).name if learns else None
    place.parent.mkdir(parents=True, exist_ok=True)
    kept_of(history, files, learned, seed).save(place)


def kept_of(history: History, files: Sequence[State], learned: str | None, seed: int) -> Kept:
    target, near = old_trials(history.space, history.target, seed), witnesses(history)
    return Kept.of(
        history,
        files=tuple(files),
        learned=learned,
        target_u=np.array([t.u for t in target]).reshape(len(target), history.space.d),
        target_y=np.array([t.y for t in target]),
        near_u=near.u,
        near_task=near.task,
        near_value=near.value,
    )


def remembered(place: Path, paths: Sequence[Path], recipe: Recipe, space: Space) -> Remembered | None:
    """What was kept of these files; None when there is nothing, or when they are not what they were."""
    try:
        kept = Kept.load(place, space) if place.exists() else None
        files = None if kept is None else look_again(kept.files, paths)
        if kept is None or files is None:
            return None
        kind = recipe.learns
        past = None if kept.learned is None or kind is None else kind.load(place.with_name(kept.learned), space)
        if files != kept.files:  # as fresh as can be: next time they need not be opened
            replace(kept, files=files).save(place)
    except (ValueError, OSError):  # damaged, deleted, of another version, or no access: the old runs are still there
        return None
    return Remembered(kept, past)
