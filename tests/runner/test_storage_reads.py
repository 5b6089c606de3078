"""What `jumbo run` asks of a database: counted, not timed."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from optuna.distributions import IntDistribution
from optuna.storages import RDBStorage
from small_study import Log, stored

from jumbo_bo.runner.run import run
from jumbo_bo.space.space import Space
from jumbo_bo.study.study_file import StudyFile

FIRST, MORE = 6, 10


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often trials are read, and how many come back."""
    read, counts = RDBStorage._get_trials, Counter[str]()

    def counted(*args: Any, **options: Any) -> Any:
        found = read(*args, **options)
        counts.update(reads=1, trials=len(found))
        return found

    monkeypatch.setattr(RDBStorage, "_get_trials", counted)
    return counts


@pytest.mark.parametrize("finite", [False, True])
def test_three_reads_per_trial_of_what_is_new(sqlite_study: StudyFile, asked: Counter[str], finite: bool) -> None:
    if finite:
        object.__setattr__(sqlite_study, "space", Space({"x": IntDistribution(0, 99), "kind": IntDistribution(0, 1)}))
    object.__setattr__(sqlite_study.job, "workers", 1)
    run(sqlite_study, FIRST, Log())
    asked.clear()
    run(sqlite_study, FIRST + MORE, Log())
    # When a trial has ended, before the next one is decided, and after: has nobody else taken the same?
    start = 2  # all trials, once, and before the end
    assert asked["reads"] <= 3 * MORE + start
    # Each read returns the running trial and the one that has just ended, not the others.
    assert asked["trials"] <= 2 * asked["reads"] + FIRST
    assert len(stored(sqlite_study)) == FIRST + MORE
