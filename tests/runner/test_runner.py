"""`jumbo run` without its command line: retries, what a restart finds, storages in trouble."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import FrozenTrial, TrialState

from jumbo_bo.data.storage import opened
from jumbo_bo.errors import UserError
from jumbo_bo.runner import coordinator, supervise
from jumbo_bo.runner.attempt import attempts, prepare
from jumbo_bo.runner.book import RUNNER, Book, opened_book, runner
from jumbo_bo.runner.coordinator import Ending, Running
from jumbo_bo.runner.engines import Local, OnRay
from jumbo_bo.runner.run import run
from jumbo_bo.space.space import Space
from jumbo_bo.study.job import Job
from jumbo_bo.study.study_file import StudyFile
from waiting import wait_for

SPACE = Space({"x": FloatDistribution(0.0, 1.0), "kind": CategoricalDistribution(("a", "b"))})
PYTHON = (sys.executable, "-I", "-S")

# Prints a value that a test can recompute, and leaves a line in `log` at its start.
OBJECTIVE = """
import json, os, sys, time
params = json.load(sys.stdin)
with open("log", "a") as log:
    log.write(json.dumps(params) + "\\n")
{body}
print(json.dumps({{"value": params.get("x", 0.0)}}))
"""


class Log:
    """A watcher that remembers, and can do something at every tick."""

    def __init__(self, at_tick: Callable[[Sequence[Running]], None] | None = None) -> None:
        self.notes: list[str] = []
        self.done: list[FrozenTrial] = []
        self.at_tick = at_tick

    def note(self, text: str) -> None:
        self.notes.append(text)

    def finished(self, trial: FrozenTrial, best: FrozenTrial | None) -> None:
        self.done.append(trial)

    def tick(self, running: Sequence[Running], finished: int, limit: int) -> None:
        if self.at_tick is not None:
            self.at_tick(running)


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StudyFile:
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(coordinator, "SHORTEST", 0.01)
    write_objective(tmp_path)
    job = Job((*PYTHON, "objective.py"), "json", workers=2)
    # A journal is opened much faster than a database; what is about SQLite says so.
    return StudyFile(tmp_path / "study.toml", "small", SPACE, "small.journal", method="random", trials=4, job=job)


@pytest.fixture
def sqlite_study(study: StudyFile) -> StudyFile:
    return replace(study, storage="sqlite:///study.db")


def write_objective(folder: Path, body: str = "") -> None:
    (folder / "objective.py").write_text(OBJECTIVE.format(body=body))


def evaluated(study: StudyFile) -> list[dict[str, Any]]:
    """The parameters of every start of the command."""
    log = study.folder / "log"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def stored(study: StudyFile) -> list[FrozenTrial]:
    with opened(study.address) as storage:
        return optuna.load_study(study_name=study.name, storage=storage).get_trials()


def new_study(study: StudyFile, directions: Sequence[str] = ("minimize",)) -> optuna.Study:
    """Made with plain Optuna."""
    with opened(study.address) as storage:
        return optuna.create_study(study_name=study.name, storage=storage, directions=directions)


def start_trial(study: StudyFile, x: float = 0.25) -> FrozenTrial:
    """A running trial, as a killed `jumbo run` leaves it. The runs folder gets its id here."""
    study.runs.mkdir(exist_ok=True)
    (study.runs / "id").write_text('"mine"')
    with opened_book(study) as book:
        return book.add(TrialState.RUNNING, {"x": x, "kind": "a"}, {RUNNER: {"folder": "mine", "run": "first"}})


def evaluate(folder: Path, wait: bool = True) -> None:
    """What a `jumbo run` that was killed then has started."""
    engine = Local()
    engine.start(folder)
    if wait:
        wait_for((folder / "result.json").exists)
    engine.close()


# Whole runs


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
    assert (folder / "model").exists()
    assert json.loads((folder / "params.json").read_text()) == params


def test_workers_run_side_by_side(study: StudyFile) -> None:
    write_objective(study.folder, "time.sleep(0.2)")
    most = 0

    def count(running: Sequence[Running]) -> None:
        nonlocal most
        most = max(most, len(running))

    run(replace(study, job=replace(study.job, workers=3)), 6, Log(count))
    assert most == 3


def test_a_failed_attempt_is_tried_again(study: StudyFile) -> None:
    write_objective(study.folder, "if os.environ['JUMBO_FOLDER'].endswith('-1'): sys.exit('no GPU is free')")
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
    run(replace(study, job=replace(study.job, timeout=1.0)), 2, Log())
    trials = stored(study)
    assert trials[1].state == TrialState.COMPLETE
    assert trials[0].state == TrialState.FAIL
    assert "time limit of 1 s" in trials[0].user_attrs["error"]


def test_a_broken_command_ends_the_run(study: StudyFile) -> None:
    write_objective(study.folder, "import no_such_module")
    with pytest.raises(
        UserError, match=r"5 trials in a row have failed.*No module named 'no_such_module'.*run this again"
    ):
        run(study, 20, Log())
    assert sum(t.state == TrialState.FAIL for t in stored(study)) == 5

    write_objective(study.folder)
    assert run(study, 8, Log()).finished == 8, "mended: the failures from before do not count"


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


# What a killed process leaves


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


def test_trials_of_another_machine_are_left_alone(study: StudyFile) -> None:
    with opened_book(study) as book:
        theirs = {RUNNER: {"folder": "theirs", "run": "1"}}
        book.add(TrialState.RUNNING, {"x": 0.5, "kind": "a"}, theirs)
    ending = run(study, 3, Log())
    assert (ending.reason, ending.finished) == ("elsewhere", 2)
    assert [t.state.name for t in stored(study)] == ["RUNNING", "COMPLETE", "COMPLETE"]


def test_a_trial_finished_by_somebody_else(study: StudyFile) -> None:
    write_objective(study.folder, "time.sleep(0.5)")

    def interfere(running: Sequence[Running]) -> None:
        if running and running[0].trial.number == 0:
            with opened(study.address) as storage:
                other = optuna.load_study(study_name=study.name, storage=storage)
                if other.trials[0].state == TrialState.RUNNING:
                    other.tell(0, 99.0)

    watch = Log(interfere)
    run(replace(study, job=replace(study.job, workers=1)), 2, watch)
    assert stored(study)[0].value == 99.0, "stays as it was stored"
    assert any("trial 0 was finished by another process" in note for note in watch.notes)


def test_interrupt_stops_and_the_next_run_repeats(study: StudyFile) -> None:
    write_objective(study.folder, "time.sleep(30 * (not os.path.exists('quick')))")

    def interrupt(running: Sequence[Running]) -> None:
        if len(running) == 2 and len(evaluated(study)) == 2:
            raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run(study, 4, Log(interrupt))
    assert time.monotonic() - start < 20
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

    def start(self, folder: Path) -> None:
        pass

    def alive(self, folder: Path) -> bool:
        return False

    def close(self) -> None:
        pass


def test_attempts_that_vanish_again_and_again(study: StudyFile) -> None:
    ending = run(study, 1, Log(), Nowhere())
    trial = stored(study)[0]
    assert trial.state == TrialState.FAIL
    assert "disappeared 6 times" in trial.user_attrs["error"]
    assert ending.best is None


# The study is not what the file says


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"direction": "maximize"}, "has direction minimize, but .*study.toml says maximize"),
        ({"space": Space({"x": FloatDistribution(0.0, 2.0)})}, r"x: was 0.0 to 1.0, now 0.0 to 2.0; kind: gone"),
    ],
)
def test_changed_study_file(study: StudyFile, change: dict[str, Any], message: str) -> None:
    run(study, 1, Log())
    with pytest.raises(UserError, match=message):
        run(replace(study, **change), 2, Log())
    assert len(stored(study)) == 1


def test_a_study_of_other_parameters(study: StudyFile) -> None:
    with opened(study.address) as storage:
        other = optuna.create_study(storage=storage, study_name=study.name)
        other.optimize(lambda trial: trial.suggest_float("a", 0, 1), n_trials=2)
    with pytest.raises(
        UserError, match=r"none of the 2 trials of the study 'small' .* has 'a' .* give this one a new name"
    ):
        run(study, 3, Log())
    assert len(stored(study)) == 2
    assert evaluated(study) == []


def test_study_with_two_objectives(study: StudyFile) -> None:
    new_study(study, ["minimize", "maximize"])
    with pytest.raises(UserError, match="has direction minimize and maximize"):
        run(study, 1, Log())


# Storage in trouble


def test_a_locked_storage_is_waited_for(sqlite_study: StudyFile, monkeypatch: pytest.MonkeyPatch) -> None:
    study = sqlite_study
    monkeypatch.setattr("jumbo_bo.runner.book.BUSY", 100)
    monkeypatch.setattr("optuna.storages._rdb.storage.time.sleep", lambda _: None)
    locked = threading.Event()

    def lock(_: Sequence[Running]) -> None:
        if not locked.is_set():
            locked.set()
            held = sqlite3.connect(study.folder / "study.db", check_same_thread=False)
            held.execute("begin exclusive")
            threading.Timer(2.0, held.close).start()

    watch = Log(lock)
    assert run(study, 4, watch).finished == 4
    assert any("database is locked" in note for note in watch.notes)
    assert len(evaluated(study)) == 4


def test_a_storage_that_is_gone(sqlite_study: StudyFile, monkeypatch: pytest.MonkeyPatch) -> None:
    study = sqlite_study
    monkeypatch.setattr(coordinator, "PATIENCE", 1.0)
    write_objective(study.folder, "time.sleep(1.0)")
    database, aside = study.folder / "study.db", study.folder / "aside"

    def steal(running: Sequence[Running]) -> None:
        if len(running) == 2 and not aside.exists():
            database.rename(aside)

    watch = Log(steal)
    with pytest.raises(OSError, match=r"study.db is gone; put it back"):
        run(study, 4, watch)
    assert any("running trials continue" in note for note in watch.notes)
    aside.rename(database)
    ending: Ending = run(study, 4, Log())
    assert ending.finished == 4
    assert len(evaluated(study)) == 4, "what was running is not repeated"


def test_a_deleted_study(sqlite_study: StudyFile) -> None:
    study = sqlite_study

    def delete(running: Sequence[Running]) -> None:
        with opened(study.address) as storage:
            optuna.delete_study(study_name=study.name, storage=storage)

    with pytest.raises(UserError, match="the study 'small' was deleted"):
        run(study, 4, Log(delete))


# Ray


def test_ray_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"pip install 'jumbo-bo\[ray\]'"):
        OnRay()
