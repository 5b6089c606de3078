"""`jumbo run` without its command line: whole runs, retries, limits, enqueued trials."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from optuna.distributions import IntDistribution
from optuna.trial import TrialState
from small_study import PYTHON, Log, evaluated, new_study, stored, write_objective

from jumbo_bo.errors import UserError
from jumbo_bo.runner.book import Book, opened_book, runner
from jumbo_bo.runner.coordinator import Running
from jumbo_bo.runner.engines import OnRay
from jumbo_bo.runner.run import run
from jumbo_bo.space.space import Space
from jumbo_bo.study.job import Job
from jumbo_bo.study.study_file import StudyFile


@pytest.mark.parametrize("storage", ["sqlite:///study.db", "small.journal"])
def test_run_until_the_budget_is_used(study: StudyFile, storage: str) -> None:
    study, watch = replace(study, storage=storage), Log()
    ending = run(study, 4, watch)
    trials = stored(study)
    assert [t.state for t in trials] == [TrialState.COMPLETE] * 4
    assert all(t.value == t.params["x"] and t.user_attrs["why"] and t.user_attrs["seconds"] > 0 for t in trials)
    assert (ending.reason, ending.finished) == ("budget", 4)
    assert ending.best is not None
    assert ending.best.value == min(t.value for t in trials)
    assert sorted(t.number for t in watch.done) == [0, 1, 2, 3]
    assert len(evaluated(study)) == 4

    assert run(study, 4, Log()).reason == "budget"
    assert len(evaluated(study)) == 4, "nothing is left to do"
    assert run(study, 6, Log()).finished == 6
    assert len(evaluated(study)) == 6


def test_parameters_as_arguments_and_the_environment(study: StudyFile) -> None:
    code = "import os, sys; print(sys.argv[1:], sys.stdin.read(), os.environ['JUMBO_TRIAL']); "
    code += "open(os.environ['JUMBO_FOLDER'] + '/model', 'w').close(); print(1)"
    file = replace(study, job=Job((*PYTHON, "-c", code, "--x={x}", "{kind}")))
    run(file, 1, Log())
    folder, params = study.runs / "trial-0000" / "attempt-1", stored(study)[0].params
    assert (folder / "stdout").read_text() == f"['--x={params['x']}', '{params['kind']}']  0\n1\n"
    assert (folder / "files" / "model").exists()
    assert json.loads((folder / "params.json").read_text()) == params


def test_workers_run_side_by_side(study: StudyFile) -> None:
    together = "while sum(1 for _ in open('log')) < 3 and time.monotonic() < end: time.sleep(0.01)"
    write_objective(study.folder, f"end = time.monotonic() + 300\n{together}")
    most = 0

    def count(running: Sequence[Running]) -> None:
        nonlocal most
        most = max(most, len(running))

    run(replace(study, job=replace(study.job, workers=3)), 6, Log(count))
    assert most == 3


def test_a_failed_attempt_is_tried_again(study: StudyFile) -> None:
    write_objective(study.folder, "if os.environ['JUMBO_FOLDER'].endswith('-1/files'): sys.exit('no GPU is free')")
    watch = Log()
    run(replace(study, job=replace(study.job, retries=1)), 2, watch)
    assert [t.state for t in stored(study)] == [TrialState.COMPLETE] * 2
    assert len(evaluated(study)) == 4
    assert sum("exit code 1: no GPU is free" in note and "(1 of 1)" in note for note in watch.notes) == 2


def test_a_failed_trial_says_why_and_the_run_goes_on(study: StudyFile) -> None:
    write_objective(study.folder, "if os.environ['JUMBO_TRIAL'] == '0': sys.exit('boom')")
    ending = run(study, 3, Log())
    trials = stored(study)
    assert [t.state.name for t in trials] == ["FAIL", "COMPLETE", "COMPLETE"]
    assert "exit code 1: boom" in trials[0].user_attrs["error"]
    assert "trial-0000" in trials[0].user_attrs["error"]
    assert ending.finished == 3


def test_time_limit(study: StudyFile) -> None:
    write_objective(study.folder, "time.sleep(60 * (os.environ['JUMBO_TRIAL'] == '0'))")
    run(replace(study, job=replace(study.job, timeout=3.0)), 2, Log())
    trials = stored(study)
    assert trials[1].state == TrialState.COMPLETE
    assert trials[0].state == TrialState.FAIL
    assert "time limit of 3 s" in trials[0].user_attrs["error"]


def test_a_broken_command_ends_the_run(study: StudyFile) -> None:
    write_objective(study.folder, "import no_such_module")
    message = r"5 trials in a row have failed.* command is broken.*No module named 'no_such_module'.*Mend the command"
    with pytest.raises(UserError, match=message):
        run(study, 20, Log())
    assert sum(t.state == TrialState.FAIL for t in stored(study)) == 5

    write_objective(study.folder)
    assert run(study, 8, Log()).finished == 8, "mended: failures of an earlier run do not end this one"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ((), "add \\[objective\\] with a command"),
        (("no-such-program",), "'no-such-program' does not exist"),
        (("./x",), "'./x'"),
    ],
)
def test_no_command(study: StudyFile, command: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        run(replace(study, job=replace(study.job, command=command)), 2, Log())


def test_every_configuration_of_a_finite_space_once(study: StudyFile) -> None:
    space = Space({"x": IntDistribution(1, 5)})
    ending = run(replace(study, space=space), 50, Log())
    assert (ending.reason, ending.finished) == ("exhausted", 5)
    assert sorted(p["x"] for p in evaluated(study)) == [1, 2, 3, 4, 5]


def test_enqueued_trials_come_first(study: StudyFile) -> None:
    created = new_study(study)
    created.enqueue_trial({"x": 0.5, "kind": "b"})
    created.enqueue_trial({"x": 0.125})  # the rest is chosen
    created.enqueue_trial({"x": 7.0})
    created.enqueue_trial({"y": 1})
    run(replace(study, job=replace(study.job, workers=1)), 5, Log())
    trials = stored(study)
    assert [t.state.name for t in trials] == ["COMPLETE", "COMPLETE", "FAIL", "FAIL", "COMPLETE"]
    assert trials[0].params == {"x": 0.5, "kind": "b"}
    assert trials[1].params["x"] == 0.125
    assert "'x' is 7.0, expected a number in [0, 1]" in trials[2].user_attrs["error"]
    assert "unknown ['y']" in trials[3].user_attrs["error"]
    assert [p["x"] for p in evaluated(study)][:2] == [0.5, 0.125]


def test_of_two_machines_one_gets_an_enqueued_trial(sqlite_study: StudyFile) -> None:
    study = sqlite_study
    new_study(study).enqueue_trial({"x": 0.5, "kind": "b"})
    ours, theirs = {"folder": "a", "run": "1"}, {"folder": "b", "run": "2"}
    with opened_book(study) as book, opened_book(study) as late:
        waiting, *_ = late.trials()
        assert book.claim(waiting, ours)
        assert not late.claim(waiting, theirs), "it looked at the study before"
        assert runner(*book.trials()) == ours
        book.finish(waiting, 1.0, {})
        assert not late.claim(waiting, theirs)


def test_killed_while_claiming_an_enqueued_trial(study: StudyFile, monkeypatch: pytest.MonkeyPatch) -> None:
    new_study(study).enqueue_trial({"x": 0.5})

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Book, "complete", killed)
        with pytest.raises(KeyboardInterrupt):
            run(study, 1, Log())
    assert stored(study)[0].state == TrialState.RUNNING
    run(study, 1, Log())
    assert [t.value for t in stored(study)] == [0.5]


def test_ray_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"pip install 'jumbo-bo\[ray\]'"):
        OnRay()
