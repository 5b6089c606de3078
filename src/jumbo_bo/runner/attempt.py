"""The files of a trial's attempts, RUNS/trial-0007/attempt-1/..., and what they say.

An attempt is one start of the command. `supervise.py` says what each file is for; params.json is there for people, and
for the command's standard input when it wants JSON. The command's own files go into a folder of their own, so that it
cannot overwrite any of these by accident.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial

from jumbo_bo.runner.book import runner
from jumbo_bo.runner.supervise import write
from jumbo_bo.study.job import Job, render
from jumbo_bo.study.study_file import StudyFile

TAIL = 1 << 20  # bytes of the output that are looked through for the value
QUOTED = 200  # characters of it that an error shows
SETTLED = 5.0  # seconds within which a living supervisor adds its own result to the recorder's


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended. Neither value nor error: it was stopped, and says nothing about the configuration."""

    value: float | None
    error: str | None
    seconds: float
    measured: Mapping[str, float] = field(default_factory=dict)  # limited quantities


def prepare(file: StudyFile, trial: FrozenTrial) -> Path:
    """The folder of the trial's next attempt, with everything needed to run it."""
    parent = file.runs / f"trial-{trial.number:04d}"
    parent.mkdir(parents=True, exist_ok=True)
    folder = parent / f"attempt-{1 + max(map(_number, _folders(parent)), default=0)}"
    own = folder / "files"
    own.mkdir(parents=True)
    params = {name: trial.params[name] for name in file.space.active(trial.params)}
    write(folder / "params.json", params)
    job = {
        "run": runner(trial)["run"],
        "command": render(file.job, params),
        "folder": str(file.folder),
        "stdin": str(folder / "params.json") if file.job.input == "json" else os.devnull,
        "environment": {"JUMBO_TRIAL": str(trial.number), "JUMBO_FOLDER": str(own)},
        "timeout": file.job.timeout,
    }
    write(folder / "job.json", job)
    return folder


def attempts(runs: Path, trial: FrozenTrial) -> list[Path]:
    """Folders of the trial's attempts, oldest first. Those of another study of the same name are not among them."""
    found = sorted(_folders(runs / f"trial-{trial.number:04d}"), key=_number)
    return [folder for folder in found if _read(folder / "job.json").get("run") == runner(trial)["run"]]


def outcome(folder: Path, job: Job, alive: bool = False) -> Outcome | None:
    """None when there is no result, and if nobody is at work (`alive`) there will be none."""
    result = _result(folder, alive)
    if result is None:
        return None
    try:
        value, measured = _value(folder, result, job)
        return Outcome(value, None, result["seconds"], measured)
    except (ValueError, OSError) as error:
        if result["stopped"]:  # before it had a value
            return Outcome(None, None, result["seconds"])
        return Outcome(None, f"{error}; see {folder}", result["seconds"])


def _result(folder: Path, alive: bool) -> dict[str, Any] | None:
    """How the command ended: as the supervisor wrote, or, when that one was killed, the recorder. Something else that
    has the name of such a file is no result."""
    found = _read(folder / "result.json")
    if not found and not (alive and _is_new(folder / "ended.json")):
        found = {"timed_out": False, "stopped": (folder / "stop").exists()} | _read(folder / "ended.json")
    return found if found.keys() >= {"exit", "error", "seconds", "timed_out", "stopped"} else None


def _is_new(path: Path) -> bool:
    """The supervisor will have the last word in a moment."""
    return path.exists() and abs(time.time() - path.stat().st_mtime) < SETTLED  # the clock may have been set back


def failures(folders: list[Path], job: Job) -> int:
    ends = [outcome(folder, job) for folder in folders]
    return sum(end is not None and end.error is not None for end in ends)


def _value(folder: Path, result: dict[str, Any], job: Job) -> tuple[float, dict[str, float]]:
    """The value that the command printed, and what it measured. A ValueError says what is wrong instead, and what to
    do."""
    if result["error"]:
        raise ValueError(f"the command could not be started ({result['error']})")
    if result["timed_out"]:
        raise ValueError(f"stopped after the time limit of {job.timeout:g} s (timeout in study.toml)")
    if result["exit"] != 0:
        how = f"exit code {result['exit']}" if result["exit"] > 0 else f"signal {-result['exit']}"
        raise ValueError(f"the command failed with {how}{_quoted(_lines(folder / 'stderr'), ': ')}")
    lines = _lines(folder / "stdout")
    for i, line in enumerate(reversed(lines)):
        found = _json(line)
        if isinstance(found, dict) and job.value in found:
            return _checked(found[job.value], line), _measured(found, job, line)
        if (
            i == 0 and not job.limited and isinstance(found, int | float)
        ):  # alone a number may be anything, except at the end
            return _checked(found, line), {}
    last = _quoted(lines, "; its last line was ") or "; it printed nothing"
    wanted = ", ".join(f'"{name}": 0.5' for name in (job.value, *job.limited))
    raise ValueError(f"the command printed no JSON line like {{{wanted}}}{last}")


def _measured(found: dict[str, Any], job: Job, line: str) -> dict[str, float]:
    """null and NaN: not measured this time. A name that is missing may be misspelt, and then nothing would ever meet
    the limit."""
    measured = {}
    for name in job.limited:
        if name not in found:
            raise ValueError(
                f'the line with the value has no "{name}", which is a goal or has a limit: {_short(line)}; print null '
                "if it was not measured"
            )
        value = found[name]
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ValueError(f'"{name}" is not a number: {_short(line)}')
        if value is not None and math.isfinite(value):
            measured[name] = float(value)
        elif name in job.goals:
            raise ValueError(f'"{name}" has no value, and it is a goal: {_short(line)}')
    return measured


def _checked(value: Any, line: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"the value that the command printed is not a finite number: {_short(line)}")
    return float(value)


def _json(line: str) -> Any:
    try:
        return json.loads(line, parse_int=float)  # of any number of digits
    except (ValueError, RecursionError):
        return None


def _lines(path: Path) -> list[str]:
    """The last lines that are not empty."""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
        text = file.read().decode(errors="replace")
    return [line.strip() for line in text.splitlines() if line.strip()]


def _quoted(lines: list[str], before: str) -> str:
    return f"{before}{_short(lines[-1])}" if lines else ""


def _short(line: str) -> str:
    return line if len(line) <= QUOTED else f"{line[:QUOTED]} ..."


def _read(path: Path) -> dict[str, Any]:
    """Empty when it is not there, or not what we wrote."""
    try:
        found = json.loads(path.read_text())
    except (FileNotFoundError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _folders(parent: Path) -> list[Path]:
    return [folder for folder in parent.glob("attempt-*") if folder.name.partition("-")[2].isdecimal()]


def _number(folder: Path) -> int:
    return int(folder.name.partition("-")[2])
