"""Pretrained nets kept in a folder: made once, shared by every process that has the same old runs.

A file is named by a hash of the old runs and of how they are learned, so it is never out of date. Two processes that
start at once: one learns, the other waits for its file.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path

from jumbo_bo.data.history import History
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.learning.net_file import FORMAT
from jumbo_bo.learning.training import Pretraining, resolve
from jumbo_bo.paths import at_home

try:
    import fcntl
except ImportError:  # Windows: two processes may learn the same net, the result is the same file
    fcntl = None  # type: ignore[assignment]


def default_folder() -> Path:
    """$JUMBO_CACHE, or jumbo-bo in the user's cache folder."""
    if own := os.environ.get("JUMBO_CACHE"):
        return Path(at_home(own))
    return Path(at_home(os.environ.get("XDG_CACHE_HOME") or "~/.cache")) / "jumbo-bo"


def learned(
    history: History, options: str | Pretraining, seed: int, folder: Path | None, progress: bool = False
) -> FeatureNet:
    """The net of these old runs, from the folder when it is there. A folder that cannot be used costs only time."""
    if folder is None:
        return _learn(history, options, seed, progress)
    path = _path(history, options, seed, folder)
    with _alone(path.with_suffix(".lock")):
        if (net := kept(history, options, seed, folder)) is not None:  # perhaps made by another process just now
            return net
        net = _learn(history, options, seed, progress)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            net.save(path)
        except OSError as error:
            warnings.warn(
                f"the pretrained net could not be kept in {folder} ({error}); it is learned again next time",
                stacklevel=3,
            )
    return net


def kept(history: History, options: str | Pretraining, seed: int, folder: Path) -> FeatureNet | None:
    """The net in the folder, None when it is not there or damaged."""
    path = _path(history, options, seed, folder)
    try:
        return FeatureNet.load(path, history.space) if path.exists() else None
    except (ValueError, OSError) as error:
        warnings.warn(f"{error}; it is learned again", stacklevel=3)
        return None


def _path(history: History, options: str | Pretraining, seed: int, folder: Path) -> Path:
    text = json.dumps([FORMAT, history.fingerprint, asdict(resolve(options)), seed], sort_keys=True)
    return folder / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.safetensors"


def _learn(history: History, options: str | Pretraining, seed: int, progress: bool) -> FeatureNet:
    from jumbo_bo.learning.pretrain import pretrain  # imports jax

    return pretrain(history, options, seed, progress)


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Waits until no other process holds the lock. The system frees it when its holder dies, however it dies."""
    file = None
    if fcntl is not None:
        with suppress(OSError):  # a folder that cannot be written to: no lock, and no file to protect
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = lock.open("w")
            fcntl.flock(file, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if file is not None:
            file.close()
