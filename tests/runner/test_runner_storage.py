"""Storages of `jumbo run` in trouble: another study than the file says, locked, gone, deleted."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import replace

import optuna
import pytest
from small_study import Log, evaluated, new_study, stored, write_objective

from jumbo_bo.data.storage import opened
from jumbo_bo.errors import UserError
from jumbo_bo.runner import coordinator
from jumbo_bo.runner.coordinator import Ending, Running
from jumbo_bo.runner.run import run
from jumbo_bo.study.study_file import StudyFile

# The study is not what the file says


def test_changed_study_file(study: StudyFile) -> None:
    run(study, 1, Log())
    with pytest.raises(UserError, match=r"has direction minimize, but .*study.toml says maximize"):
        run(replace(study, direction="maximize"), 2, Log())
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
