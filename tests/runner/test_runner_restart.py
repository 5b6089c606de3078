"""What `jumbo run` makes of what a killed process left, and of trials that others hold or finish."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState
from small_study import SPACE, Log, evaluate, evaluated, start_trial, stored, until, write_objective

from jumbo_bo.data.storage import opened
from jumbo_bo.errors import UserError
from jumbo_bo.runner import supervise
from jumbo_bo.runner.attempt import attempts, prepare
from jumbo_bo.runner.book import RUNNER, opened_book
from jumbo_bo.runner.coordinator import Running
from jumbo_bo.runner.run import run
from jumbo_bo.study.study_file import StudyFile


def test_a_result_that_nobody_told_is_told(study: StudyFile) -> None:
    trial = start_trial(study)
    folder = prepare(study, trial)
    evaluate(folder)
    run(study, 1, Log())
    assert stored(study)[0].value == 0.25
    assert len(evaluated(study)) == 1
    assert len(attempts(study.runs, trial)) == 1


def test_a_living_supervisor_is_waited_for(study: StudyFile) -> None:
    write_objective(study.folder, "time.sleep(0.7)")
    trial = start_trial(study)
    evaluate(prepare(study, trial), wait=False)
    run(study, 1, Log())
    assert stored(study)[0].value == 0.25
    assert len(evaluated(study)) == 1


@pytest.mark.parametrize("left", ["nothing", "an empty folder", "a job", "half a result"])
def test_what_has_no_result_is_evaluated(study: StudyFile, left: str) -> None:
    trial = start_trial(study)
    if left == "an empty folder":
        (study.runs / "trial-0000" / "attempt-1").mkdir(parents=True)
    elif left != "nothing":
        folder = prepare(study, trial)
        if left == "half a result":
            (folder / "result.json.new").write_text('{"exit": ')
    run(study, 1, Log())
    assert stored(study)[0].value == 0.25
    assert len(evaluated(study)) == 1


@pytest.mark.parametrize("left", ["nothing", "a suggestion", "half of its parameters"])
def test_killed_while_deciding(study: StudyFile, left: str) -> None:
    study.runs.mkdir()
    (study.runs / "id").write_text('"mine"')
    numbers = {"params": {"x": 0.125, "kind": "b"}}
    with opened_book(study) as book:
        trial = book.reserve({RUNNER: {"folder": "mine", "run": "first"}})
        if left != "nothing":
            book.storage.set_trial_user_attr(trial._trial_id, "jumbo", numbers)
        if left == "half of its parameters":
            book.storage.set_trial_param(trial._trial_id, "x", 0.125, SPACE.distributions["x"])
    run(study, 2, Log())
    trials = stored(study)
    assert [t.state for t in trials] == [TrialState.COMPLETE] * 2
    assert all(set(t.params) == {"x", "kind"} for t in trials)
    assert trials[0].user_attrs["jumbo"]["params"] == trials[0].params
    if left == "half of its parameters":
        assert trials[0].params == numbers["params"]
    assert len(evaluated(study)) == 2


def test_failed_attempts_of_an_earlier_run_count(study: StudyFile) -> None:
    write_objective(study.folder, "sys.exit('boom')")
    trial = start_trial(study)
    folder = prepare(study, trial)
    evaluate(folder)
    with pytest.raises(UserError, match="exit code 1: boom"):
        run(replace(study, job=replace(study.job, retries=1)), 1, Log())
    assert stored(study)[0].state == TrialState.FAIL
    assert len(evaluated(study)) == 2


def test_files_of_a_deleted_study_are_not_taken_for_results(study: StudyFile) -> None:
    run(study, 2, Log())
    (study.folder / "small.journal").unlink()
    (study.folder / "log").unlink()
    run(replace(study, seed=1), 2, Log())
    assert sorted(t.value for t in stored(study)) == sorted(p["x"] for p in evaluated(study))
    assert (study.runs / "trial-0000" / "attempt-2" / "result.json").exists()


def test_one_process_per_folder(study: StudyFile) -> None:
    study.runs.mkdir()
    lock = supervise.take(study.runs / "lock")
    assert lock is not None
    with pytest.raises(UserError, match="another `jumbo run` is already running"):
        run(study, 2, Log())
    os.close(lock)
    assert run(study, 2, Log()).finished == 2


def test_a_run_waits_for_those_who_only_look_at_its_folder(study: StudyFile) -> None:
    """`jumbo status` holds a share of the lock for a moment, which is long on an overloaded machine."""
    study.runs.mkdir()
    with (study.runs / "lock").open("w") as looked_at:
        fcntl.flock(looked_at, fcntl.LOCK_SH)
        looking = threading.Timer(1.5, fcntl.flock, (looked_at, fcntl.LOCK_UN))
        looking.start()
        try:
            assert run(study, 2, Log()).finished == 2
        finally:
            looking.join()


def test_trials_of_another_machine_are_left_alone(study: StudyFile) -> None:
    with opened_book(study) as book:
        theirs = {RUNNER: {"folder": "theirs", "run": "1"}}
        book.add(TrialState.RUNNING, {"x": 0.5, "kind": "a"}, theirs)
    ending = run(study, 3, Log())
    assert (ending.reason, ending.finished) == ("elsewhere", 2)
    assert [t.state.name for t in stored(study)] == ["RUNNING", "COMPLETE", "COMPLETE"]


def test_a_trial_finished_by_somebody_else(study: StudyFile) -> None:
    write_objective(study.folder, until("told"))

    def interfere(running: Sequence[Running]) -> None:
        if running and running[0].trial.number == 0:
            with opened(study.address) as storage:
                other = optuna.load_study(study_name=study.name, storage=storage)
                if other.trials[0].state == TrialState.RUNNING:
                    other.tell(0, 99.0)
            (study.folder / "told").touch()

    watch = Log(interfere)
    run(replace(study, job=replace(study.job, workers=1)), 2, watch)
    assert stored(study)[0].value == 99.0, "stays as it was stored"
    assert any("trial 0 was finished by another process" in note for note in watch.notes)


def test_interrupt_stops_and_the_next_run_repeats(study: StudyFile) -> None:
    write_objective(study.folder, until("quick"))

    def interrupt(running: Sequence[Running]) -> None:
        if len(running) == 2 and len(evaluated(study)) == 2:
            raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(study, 4, Log(interrupt))
    assert time.monotonic() - start < 200
    before = stored(study)
    assert [t.state for t in before] == [TrialState.RUNNING] * 2
    assert all((attempts(study.runs, t)[-1] / "result.json").exists() for t in before), "they have ended"

    (study.folder / "quick").touch()
    assert run(study, 4, Log()).finished == 4
    after = stored(study)
    assert [t.params for t in after[:2]] == [t.params for t in before]
    assert [t.state for t in after] == [TrialState.COMPLETE] * 4
    assert len(evaluated(study)) == 6


class Nowhere:
    """Attempts vanish."""

    each = None

    def start(self, folder: Path) -> None:
        pass

    def alive(self, folder: Path) -> bool:
        return False

    def close(self) -> None:
        pass


def test_attempts_that_vanish_again_and_again(study: StudyFile) -> None:
    with pytest.raises(UserError, match=r"1 trial has failed and none has a value.* disappeared 6 times"):
        run(study, 1, Log(), Nowhere())
    assert [t.state for t in stored(study)] == [TrialState.FAIL]
