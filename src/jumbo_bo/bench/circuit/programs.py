"""Runs a program in a folder with a time limit. Nothing is left running, whatever happens."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from jumbo_bo.errors import UserError

ONE_THREAD = {"OMP_NUM_THREADS": "1"}


class Failed(Exception):
    """This design cannot be evaluated: a failed trial, not a mistake of the user."""


def run(command: Sequence[str], folder: Path, timeout: float) -> str:
    """What the program printed."""
    program = command[0]
    require(program)
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **ONE_THREAD},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,  # a group of its own, which can be ended as a whole
    )
    try:
        output, _ = process.communicate(timeout=timeout)
    except BaseException as reason:  # also Ctrl-C: nothing lives on
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(reason, subprocess.TimeoutExpired):
            raise Failed(f"{program} did not finish within {timeout:g} s") from None
        raise
    if process.returncode < 0:
        raise Failed(f"{program} was killed by {signal.Signals(-process.returncode).name}: {tail(output)}")
    return output


def require(program: str) -> None:
    """Its Debian package has its name."""
    if shutil.which(program) is None:
        raise UserError(f"the program {program} is missing; run: apt-get install --no-install-recommends {program}")


def tail(output: str, characters: int = 400) -> str:
    """The end of what a program printed, on one line."""
    return " ".join(output.split())[-characters:]
