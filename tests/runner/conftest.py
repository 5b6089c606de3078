from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from small_study import PYTHON, SPACE, write_objective

from jumbo_bo.runner import coordinator
from jumbo_bo.study.job import Job
from jumbo_bo.study.study_file import StudyFile


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
