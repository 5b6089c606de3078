"""What an objective, an operator or a crash may leave behind, and what the study makes of it."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from optuna.trial import TrialState
from small_study import PYTHON, Log, evaluate, evaluated, start_trial, stored, until, write_objective

from jumbo_bo.errors import UserError
from jumbo_bo.runner import supervise
from jumbo_bo.runner.attempt import attempts, prepare
from jumbo_bo.runner.book import opened_book
from jumbo_bo.runner.coordinator import MOST_LOST, Running
from jumbo_bo.runner.run import run
from jumbo_bo.runner.state import status
from jumbo_bo.study.job import Job
from jumbo_bo.study.study_file import StudyFile


@pytest.mark.parametrize("name", ["result.json", "stop", "lock", "job.json", "ended.json", "stdout"])
def test_the_command_has_a_folder_of_its_own(study: StudyFile, name: str) -> None:
    own = f"os.path.join(os.environ['JUMBO_FOLDER'], {name!r})"
    write_objective(study.folder, f"open({own}, 'w').write('{{}}'); time.sleep(0.3)")
    assert run(study, 2, Log()).finished == 2
    assert [t.value for t in stored(study)] == [t.params["x"] for t in stored(study)]
    assert len(evaluated(study)) == 2
    assert all((attempts(study.runs, t)[0] / "files" / name).read_text() == "{}" for t in stored(study))


@pytest.mark.parametrize("digits", [400, 5000])
def test_a_huge_integer_is_a_failed_trial(study: StudyFile, digits: int) -> None:
    code = f"import os; print('1' + '0' * {digits} if os.environ['JUMBO_TRIAL'] == '0' else 0.5)"
    file = replace(study, job=Job((*PYTHON, "-c", code)))
    for limit in (2, 3):  # also with what the first run has left
        assert run(file, limit, Log()).finished == limit
    assert [t.state.name for t in stored(study)] == ["FAIL", "COMPLETE", "COMPLETE"]
    assert "not a finite number: 1000" in stored(study)[0].user_attrs["error"]


def test_a_foreign_result_of_an_older_version_is_no_result(study: StudyFile) -> None:
    """Commands used to write into the supervisor's folder."""
    trial = start_trial(study)
    (prepare(study, trial) / "result.json").write_text('{"accuracy": 0.9}')
    assert run(study, 1, Log()).finished == 1
    assert [t.value for t in stored(study)] == [0.25]


class Stopped:
    """Whatever is started was stopped, and not by us."""

    each = None

    def start(self, folder: Path) -> None:
        ended = {"exit": -15, "error": None, "timed_out": False, "stopped": True, "seconds": 0.1}
        (folder / "stdout").touch()
        (folder / "stderr").touch()
        supervise.write(folder / "result.json", ended)

    def alive(self, folder: Path) -> bool:
        return False

    def close(self) -> None:
        pass


def test_a_command_that_is_always_stopped_is_given_up(study: StudyFile) -> None:
    with pytest.raises(UserError, match=rf"disappeared {MOST_LOST + 1} times"):
        run(study, 1, Log(), Stopped())
    assert len(attempts(study.runs, stored(study)[0])) == MOST_LOST + 1


# Finished work


def test_a_command_whose_supervisor_was_killed_is_finished(study: StudyFile) -> None:
    write_objective(study.folder, until("killed"))
    killed: list[int] = []

    def sabotage(running: Sequence[Running]) -> None:
        if evaluated(study) and not killed:
            line = f"supervise.py\0{running[0].folder}\0".encode()
            found = [int(p.parent.name) for p in Path("/proc").glob("[0-9]*/cmdline") if line in read(p)]
            killed.append(min(found))  # the recorder was started by the supervisor
            os.kill(killed[0], signal.SIGKILL)
            (study.folder / "killed").touch()

    assert run(replace(study, job=replace(study.job, workers=1)), 2, Log(sabotage)).finished == 2
    assert killed
    assert len(evaluated(study)) == 2, "none was run again"
    assert [t.value for t in stored(study)] == [t.params["x"] for t in stored(study)]


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:  # no longer there
        return b""


def test_a_command_that_ends_well_while_it_is_stopped_is_finished(study: StudyFile) -> None:
    patient = "import signal; signal.signal(signal.SIGTERM, lambda *_: open('asked', 'w')); open('ready', 'w')"
    write_objective(study.folder, f"{patient}\n{until('asked')}")

    def interrupt(running: Sequence[Running]) -> None:
        if (study.folder / "ready").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(replace(study, job=replace(study.job, workers=1)), 1, Log(interrupt))
    assert [t.state for t in stored(study)] == [TrialState.RUNNING]
    assert run(study, 1, Log()).finished == 1
    assert len(evaluated(study)) == 1
    assert [t.value for t in stored(study)] == [t.params["x"] for t in stored(study)]


# The runs folder


def interrupted(study: StudyFile) -> None:
    write_objective(study.folder, until("quick"))

    def interrupt(running: Sequence[Running]) -> None:
        if len(running) == 2 and len(evaluated(study)) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(study, 4, Log(interrupt))
    (study.folder / "quick").touch()


def test_trials_of_a_deleted_runs_folder_are_started_again(study: StudyFile) -> None:
    interrupted(study)
    before = stored(study)
    shutil.rmtree(study.runs)
    with opened_book(study, create=False) as book:
        found = status(study, book.kept())
    assert (len(found.running), len(found.interrupted)) == (0, 2)
    ending = run(study, 4, Log())
    assert (ending.reason, ending.finished) == ("budget", 4)
    assert [t.state for t in stored(study)] == [TrialState.COMPLETE] * 4
    assert [t.params for t in stored(study)[:2]] == [t.params for t in before]


def test_a_runs_folder_deleted_under_a_run(study: StudyFile) -> None:
    write_objective(study.folder, until("quick"))

    def delete(running: Sequence[Running]) -> None:
        if len(running) == 2 and len(evaluated(study)) == 2 and study.runs.exists():
            shutil.rmtree(study.runs)

    with pytest.raises(UserError, match=r"small.runs was deleted or replaced while .* jumbo run"):
        run(study, 4, Log(delete))
    (study.folder / "quick").touch()
    assert run(study, 4, Log()).finished == 4
    assert [t.state for t in stored(study)] == [TrialState.COMPLETE] * 4


def test_an_attempt_of_the_last_version_is_continued(study: StudyFile) -> None:
    """No place in the study, no files folder, and only the supervisor's result."""
    trial = start_trial(study)
    folder = prepare(study, trial)
    evaluate(folder)
    (folder / "files").rmdir()
    (folder / "ended.json").unlink()
    assert run(study, 2, Log()).finished == 2
    assert stored(study)[0].value == 0.25
    assert len(evaluated(study)) == 2
