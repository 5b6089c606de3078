"""`jumbo run`: one process per runs folder."""

from __future__ import annotations

import os
import shutil
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from jumbo_bo.errors import UserError
from jumbo_bo.learning.elsewhere import trained_by
from jumbo_bo.runner.book import opened_book
from jumbo_bo.runner.checked import check_packages
from jumbo_bo.runner.coordinator import Coordinator, Ending, Watcher
from jumbo_bo.runner.engines import Engine, Local
from jumbo_bo.runner.place import folder_id
from jumbo_bo.runner.supervise import held, take, write
from jumbo_bo.study.study_file import StudyFile

LOOKED_AT = 10.0  # seconds for others who look at the lock; a moment, unless the machine is overloaded


def run(
    file: StudyFile, limit: int, watch: Watcher, engine: Engine | None = None, retry_failed: bool = False
) -> Ending:
    """Until the study has `limit` finished trials. An interrupt stops the running attempts; the next run repeats
    them."""
    if not file.job.command:
        raise UserError(
            f"{file.path} does not say how to evaluate a trial; add [objective] with a command, or evaluate by hand "
            f"with `jumbo ask {file.path}` and `jumbo tell {file.path}`"
        )
    if engine is None:
        _check_command(file)
    check_packages(file)
    with _alone(file) as folder_id, opened_book(file) as book:
        if book.news:
            watch.note(str(book.kept()))
        if retry_failed:
            watch.note(_retried(len(book.retry_failed())))
        engine = engine or Local()
        coordinator = Coordinator(book, engine, limit, watch, folder_id)
        try:
            with trained_by(engine.each):
                return coordinator.run()
        except (KeyboardInterrupt, UserError):
            coordinator.stop()
            raise
        finally:  # when the storage is gone, what runs goes on; the next run finds its results
            engine.close()


def _retried(n: int) -> str:
    if n == 0:
        return "There is no failed trial to try again"
    return f"{n} failed {'trials are' if n > 1 else 'trial is'} forgotten and tried again"


@contextmanager
def _alone(file: StudyFile) -> Iterator[str]:
    """The id of the runs folder, which no other process may run in meanwhile."""
    file.runs.mkdir(parents=True, exist_ok=True)
    path, deadline = file.runs / "lock", time.monotonic() + LOOKED_AT
    while (lock := take(path)) is None:
        if held(path) or time.monotonic() > deadline:
            raise UserError(
                f"another `jumbo run` is already running in {file.runs}; wait for it (`jumbo status {file.path}` shows "
                "its progress), or stop it first. For more trials at once, start it with --workers"
            )
        time.sleep(0.05)  # nobody runs; `jumbo status` looks at it at this moment
    try:
        known = folder_id(file.runs)
        if known is None:
            known = uuid.uuid4().hex
            write(file.runs / "id", known)
        yield known
    finally:
        os.close(lock)


def _check_command(file: StudyFile) -> None:
    program = file.job.command[0]
    found = (file.folder / program).exists() if os.sep in program else shutil.which(program) is not None
    if not found and "{" not in program:
        raise UserError(f"{file.path}: the command {program!r} does not exist; check [objective] command")
