"""What the loop of `jumbo run` tells those who watch it, and how it ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from optuna.trial import FrozenTrial


class Running(NamedTuple):
    trial: FrozenTrial
    folder: Path
    since: float  # time.time()


class Watcher(Protocol):
    """Who is told what happens."""

    def note(self, text: str) -> None: ...
    def finished(self, trial: FrozenTrial, best: FrozenTrial | None) -> None: ...
    def tick(self, running: Sequence[Running], finished: int, limit: int) -> None: ...


@dataclass(frozen=True)
class Ending:
    """Why the run is over."""

    reason: Literal["budget", "exhausted", "elsewhere", "stopped"]  # elsewhere: what is missing runs on other machines
    finished: int
    best: FrozenTrial | None
    chance: float = math.nan  # stopped: that something better is left
    front: Sequence[FrozenTrial] = ()  # of several goals
    values: int = 0  # trials that have one; the best is None although there are some where none meets the limits
