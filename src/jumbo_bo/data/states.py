"""Files of old runs: are they still what they were when they were read?

A file is taken as unchanged when its size, times and inode are the same, without opening it; otherwise its content
decides. Times have a granularity (4 ms on Linux, 2 s on FAT), so a file that was changed shortly before it was read
could change again and look the same: its content is compared as well. What remains unseen is a change by somebody who
sets the clock back, or on a network drive whose clock is more than RACY behind.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

RACY = 2_000_000_000  # nanoseconds; the coarsest times of a common file system


class State(NamedTuple):
    """A file at a moment."""

    path: str
    stamp: tuple[int, ...]  # size, inode and times of change of content and of anything else, in nanoseconds
    seen: int  # when, in nanoseconds
    digest: str  # of its content

    @property
    def settled(self) -> bool:
        """Whether a later change cannot have the same stamp."""
        return max(self.stamp[2:]) < self.seen - RACY


def look(paths: Iterable[Path]) -> tuple[State, ...]:
    """The files as they are now; an OSError when one cannot be read."""
    return tuple(_state(path) for path in paths)


def look_again(known: Sequence[State], paths: Iterable[Path]) -> tuple[State, ...] | None:
    """None when one has changed, is gone, or is new; else the files as they are now. They are the same as before unless
    some had to be opened."""
    now = [str(path) for path in paths]
    if now != [state.path for state in known]:
        return None
    found = []
    for state in known:
        same = state.settled and _stamp(state.path) == state.stamp
        found.append(state if same else _state(Path(state.path)))
        if found[-1].digest != state.digest:
            return None
    return tuple(found)


def _state(path: Path) -> State:
    if not path.is_file():
        raise FileNotFoundError(f"{path} is no file")  # opening a pipe would wait for somebody to write to it
    seen, stamp = time.time_ns(), _stamp(path)
    with path.open("rb") as file:
        return State(str(path), stamp, seen, hashlib.file_digest(file, "sha256").hexdigest())


def _stamp(path: str | Path) -> tuple[int, ...]:
    found = os.stat(path)
    return found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns
