"""Which runs folder a trial is evaluated in, and what becomes of it when that folder is deleted."""

from __future__ import annotations

import hashlib
import json
import socket
from pathlib import Path

from optuna.trial import FrozenTrial

from jumbo_bo.errors import UserError
from jumbo_bo.runner.book import runner
from jumbo_bo.study.study_file import StudyFile


def folder_id(runs: Path) -> str | None:
    """The id of a runs folder, which its first run has given it. None: there is none."""
    try:
        return str(json.loads((runs / "id").read_text()))
    except (FileNotFoundError, ValueError):
        return None


def check_folder(file: StudyFile, known: str) -> None:
    """The folder is still the one with this id."""
    if folder_id(file.runs) != known:
        raise UserError(
            f"the folder {file.runs} was deleted or replaced while this run was at work in it; finished trials are "
            f"kept in the study. To start the others again: jumbo run {file.path}"
        )


def place_of(file: StudyFile) -> str:
    """Where the runs folder is, on which machine: the same for another folder there after this one was deleted. The
    folder around it has a number of its own, as two machines may have the same name."""
    around = file.runs.parent.stat()
    text = f"{socket.gethostname()} {around.st_dev} {around.st_ino} {file.runs.absolute()}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def is_here(trial: FrozenTrial, folder_id: str | None, place: str) -> bool:
    """Whether the trial is evaluated in the runs folder with this id, or was in one that is no longer there."""
    mark = runner(trial)
    return bool(mark) and (mark["folder"] == folder_id or mark.get("place") == place)
