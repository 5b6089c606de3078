"""What methods learned from old runs, kept in a folder: learned once, shared by every process with the same old runs.

A file is named by a hash of the old runs and of how they are learned, so it is never out of date. Two processes that
start at once: one learns, the other waits for its file.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from jumbo_bo.data.history import History
from jumbo_bo.inputs import open_alone
from jumbo_bo.learning.past import Past
from jumbo_bo.learning.past_file import FORMAT
from jumbo_bo.paths import at_home
from jumbo_bo.waiting import waiting

try:
    import fcntl
except ImportError:  # Windows: two processes may learn the same, the result is the same file
    fcntl = None  # type: ignore[assignment]


PATIENCE = 600.0  # seconds; the default takes 11 with a hundred million old rows (docs/big.md), some baselines minutes
POLL = 0.2


class Learns(Protocol):
    """The part of a recipe that looks at old runs."""

    @property
    def learns(self) -> type[Past] | None: ...  # what `learn` returns
    @property
    def learning(self) -> object: ...  # all that `learn` depends on beside its arguments, as JSON can write it
    def learn(self, history: History, seed: int) -> Past: ...


def default_folder() -> Path:
    """$JUMBO_CACHE, or jumbo-bo in the user's cache folder."""
    if own := os.environ.get("JUMBO_CACHE"):
        return Path(at_home(own))
    return Path(at_home(os.environ.get("XDG_CACHE_HOME") or "~/.cache")) / "jumbo-bo"


def learned(recipe: Learns, history: History, seed: int, folder: Path | None) -> Past:
    """From the folder when it is there. A folder that cannot be used costs only time."""
    if folder is None:
        return recipe.learn(history, seed)
    path = place(recipe, history, seed, folder)
    if (past := kept(recipe, history, seed, folder)) is not None:
        return past
    with _alone(path.with_suffix(".lock")) as waited:
        if waited and (past := kept(recipe, history, seed, folder)) is not None:  # made by the other process
            return past
        past = recipe.learn(history, seed)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            past.save(path)
        except OSError as error:
            warnings.warn(
                f"what was learned from the old runs could not be kept in {folder} ({error}); "
                "it will be learned again next time",
                stacklevel=3,
            )
    return past


def kept(recipe: Learns, history: History, seed: int, folder: Path) -> Past | None:
    """What is in the folder, None when it is not there or damaged."""
    path, kind = place(recipe, history, seed, folder), recipe.learns
    if kind is None:
        return None
    try:
        return kind.load(path, history.space) if path.exists() else None
    except (ValueError, OSError) as error:
        warnings.warn(f"{error}; learning from the old runs again", stacklevel=3)
        return None


def place(recipe: Learns, history: History, seed: int, folder: Path) -> Path:
    kind = recipe.learns.__name__ if recipe.learns else None
    text = json.dumps([FORMAT, kind, history.fingerprint, recipe.learning, seed], sort_keys=True)
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.safetensors"


@contextmanager
def _alone(lock: Path) -> Iterator[bool]:
    """Waits while another process holds the lock, and tells whether it had to. The system frees it when its holder
    dies, however it dies. One that takes too long is not waited for: both then learn the same."""
    file, waited = None, False
    if fcntl is not None:
        with suppress(OSError):  # a folder that cannot be written to: no lock, and no file to protect
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = open_alone(lock)
            waited = not _taken(file)
            if waited:
                what = f"another process that learns from the same old runs, and holds {lock}"
                with waiting(what, PATIENCE, "then this one learns as well"):
                    end = time.monotonic() + PATIENCE
                    while not _taken(file) and time.monotonic() < end:
                        time.sleep(POLL)
    try:
        yield waited
    finally:
        if file is not None:
            os.close(file)


def _taken(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
