"""What made a result: commit, versions, command and date."""

from __future__ import annotations

import importlib.metadata
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def stamp(command: str, packages: Sequence[str] = ("numpy", "jax", "jumbo-bo")) -> dict[str, Any]:
    """What made a result. The commit is that of the source tree this package is run from, if it is one."""
    versions = {"python": platform.python_version()}
    for name in packages:
        versions[name] = importlib.metadata.version(name)
    commit, dirty = _commit()
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return {"commit": commit, "dirty": dirty, "versions": versions, "command": command, "date": date}


def _commit() -> tuple[str, bool]:
    package = Path(__file__).resolve().parents[1]
    root = package.parents[1]

    def git(*words: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    top = git("rev-parse", "--show-toplevel")
    if top is None or Path(top).resolve() / "src" / "jumbo_bo" != package:
        return "none (installed package)", False  # a surrounding repository is somebody else's
    # Results are written while runs go on: only the source decides whether the commit tells the truth.
    return git("rev-parse", "HEAD") or "none (no commit yet)", bool(git("status", "--porcelain", "--", "src"))
