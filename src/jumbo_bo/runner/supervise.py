"""Runs the command of one attempt and writes down how it ended, whatever becomes of the process that asked for it.

It is a process of its own (`python supervise.py FOLDER LOCK`) and imports the standard library only, so it starts in
a few milliseconds and outlives a killed `jumbo run`.

Files in the folder of an attempt
    job.json        what to run: command, folder, stdin, environment, timeout
    lock            held while the supervisor or its command lives; the system frees it, however they die
    stop            when it appears, the command is ended
    stdout, stderr  what the command printed
    result.json     how the command ended; it appears at once, complete and on disk
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

POLL = 0.1  # seconds
GRACE = 5.0  # seconds between asking a command to end and killing it


def supervise(folder: Path, lock: int) -> None:
    """Returns when the command has ended and its result is written."""
    start, job = time.monotonic(), json.loads((folder / "job.json").read_text())
    result: dict[str, Any] = {"exit": None, "error": None, "timed_out": False, "stopped": False}
    with (
        open(job["stdin"], "rb") as stdin,
        (folder / "stdout").open("wb") as out,
        (folder / "stderr").open("wb") as err,
    ):
        try:
            process = subprocess.Popen(
                job["command"],
                cwd=job["folder"],
                env={**os.environ, **job["environment"]},
                stdin=stdin,
                stdout=out,
                stderr=err,
                start_new_session=True,  # a group of its own, which can be ended as a whole
                pass_fds=(lock,),  # who looks at the lock waits for the command, even when the supervisor is killed
            )
        except (OSError, ValueError) as error:
            result["error"] = str(error)
        else:
            _wait(process, folder / "stop", start + (job["timeout"] or float("inf")), result)
        os.fsync(out.fileno())  # the value is in there
    write(folder / "result.json", result | {"seconds": time.monotonic() - start})


def _wait(process: subprocess.Popen[bytes], stop: Path, deadline: float, result: dict[str, Any]) -> None:
    while True:
        with suppress(subprocess.TimeoutExpired):
            result["exit"] = process.wait(POLL)
            return
        result["stopped"], result["timed_out"] = stop.exists(), time.monotonic() >= deadline
        if result["stopped"] or result["timed_out"]:
            break
    _signal(process, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)
    _signal(process, signal.SIGKILL)  # also what the command has left behind
    result["exit"] = process.wait()


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def write(path: Path, value: Any) -> None:
    """JSON that is there as a whole or not at all, even after a power failure."""
    new = path.with_name(f"{path.name}.new")
    with new.open("w") as file:
        json.dump(value, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def take(path: Path, wait: bool = False) -> int | None:
    """The lock as an open file, None when another process holds it. It is held until the last copy is closed."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def held(path: Path) -> bool:
    lock = take(path)
    if lock is not None:
        os.close(lock)
    return lock is None


if __name__ == "__main__":
    supervise(Path(sys.argv[1]), int(sys.argv[2]))
