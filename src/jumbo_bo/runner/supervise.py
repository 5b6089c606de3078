"""Runs the command of one attempt and writes down how it ended, whatever becomes of the process that asked for it.

It is a process of its own (`python supervise.py FOLDER LOCK`) and imports the standard library only, so it starts in
a few milliseconds and outlives a killed `jumbo run`. It starts a second one, the recorder, which starts the command.
When either of the two is killed, the other one still learns how the command ended:

    supervisor ── recorder ── command      the recorder waits for the command; the supervisor ends it when it has to
                  recorder ── command      the recorder writes down how it ended; that counts when there is nothing else
    supervisor ────────────── command      the command becomes the supervisor's child (on Linux)

Files in the folder of an attempt
    job.json        what to run: command, folder, stdin, environment, timeout
    lock            held while one of the three lives; the system frees it, however they die
    stop            when it appears, the command is ended
    stdout, stderr  what the command printed
    ended.json      how the command ended, as the recorder saw it
    result.json     the same, and whether it was stopped or has timed out; each appears at once, complete and on disk
    files           for the command's own files ($JUMBO_FOLDER)
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

POLL = 0.1  # seconds
GRACE = 5.0  # seconds between asking a command to end and killing it
FULL_DISK = 600.0  # seconds that a result waits for space on a full disk
_PR_SET_CHILD_SUBREAPER = 36


def supervise(folder: Path, lock: int) -> None:
    """Returns when the command has ended and its result is written."""
    start, job = time.monotonic(), json.loads((folder / "job.json").read_text())
    job |= {name: os.path.abspath(job[name]) for name in ("folder", "stdin")}
    os.chdir(folder)  # another folder that takes its place and its name is not this one
    folder = Path()
    _adopt_orphans()
    told, tell = os.pipe()
    recorder = os.fork()
    if recorder == 0:
        try:
            os.setsid()  # who kills the supervisor's group leaves it alone
            _record(folder, job, lock, tell, start)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(tell)
    timeout = job["timeout"] or float("inf")
    with os.fdopen(told) as pipe:
        stopped, timed_out, code = _wait(recorder, pipe, folder, start + timeout)
    try:
        ended = json.loads((folder / "ended.json").read_text())
    except FileNotFoundError:
        if code is None:
            return  # nobody knows how it ended
        ended = {"exit": code, "error": None, "seconds": time.monotonic() - start}
    timed_out = timed_out and ended["seconds"] >= timeout  # it may have ended at the last moment
    _write_patiently(folder / "result.json", ended | {"timed_out": timed_out, "stopped": stopped})


def _record(folder: Path, job: dict[str, Any], lock: int, tell: int, start: float) -> None:
    """Starts the command, tells its number, and writes down how it ended."""
    ended: dict[str, Any] = {"exit": None, "error": None}
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
                pass_fds=(lock,),  # who looks at the lock waits for the command, even when nobody else is left
            )
        except (OSError, ValueError) as error:
            ended["error"] = str(error)
        else:
            with suppress(BrokenPipeError):  # no supervisor any more
                os.write(tell, f"{process.pid}\n".encode())
            ended["exit"] = _exit_code(process)
        os.fsync(out.fileno())  # the value is in there
    _write_patiently(folder / "ended.json", ended | {"seconds": time.monotonic() - start})


def _exit_code(process: subprocess.Popen[bytes]) -> int:
    """Of a command that has ended. Where the system can do that, it stays there to be asked once more: should the
    recorder be killed before it has written this down, the supervisor asks."""
    if not hasattr(os, "waitid"):  # macOS
        return process.wait()
    found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert found is not None
    return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status


def _wait(recorder: int, pipe: TextIO, folder: Path, deadline: float) -> tuple[bool, bool, int | None]:
    """Whether the command was stopped and whether it has timed out, and its exit code when the recorder is gone.

    The recorder's end of the pipe is closed when it ends, however it does."""
    command, stopped, timed_out, kill = int(pipe.readline() or 0), False, False, float("inf")
    orphaned, code = False, None
    while True:
        if orphaned:
            time.sleep(POLL)
            try:
                ended, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:  # not on this system, or it was never started
                break
            if ended and command in (0, ended):
                code = os.waitstatus_to_exitcode(status)
                break
        elif select.select([pipe], [], [], POLL)[0]:
            os.waitpid(recorder, 0)
            if (folder / "ended.json").exists():
                break
            orphaned = True
        now = time.monotonic()
        if now >= kill:
            _signal(command, signal.SIGKILL)
            kill = float("inf")
        elif not (stopped or timed_out):
            # Nobody waits for a command whose folder was deleted.
            stopped = (folder / "stop").exists() or not (folder / "job.json").exists()
            timed_out = now >= deadline
            if stopped or timed_out:
                _signal(command, signal.SIGTERM)
                kill = now + GRACE
    if stopped or timed_out:
        _signal(command, signal.SIGKILL)  # what the command has left behind
    return stopped, timed_out, code


def _adopt_orphans() -> None:
    """Makes the command our child when the recorder is killed. Only Linux can do that."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _signal(command: int, number: int) -> None:
    if command:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(command, number)


def _write_patiently(path: Path, value: Any) -> None:
    """A full disk may have space again in a moment, and what has been computed is worth waiting for."""
    deadline = time.monotonic() + FULL_DISK
    while True:
        try:
            return write(path, value)
        except FileNotFoundError:  # somebody deleted the folder
            raise
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(1.0)


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
    """Looked at without writing: not everybody who looks may."""
    try:
        lock = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


if __name__ == "__main__":
    supervise(Path(sys.argv[1]), int(sys.argv[2]))
