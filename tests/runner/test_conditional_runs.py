"""`jumbo run`, `ask` and `tell` where some parameters exist only under a condition."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna.trial import TrialState
from small_study import Log, evaluated, new_study, stored

from jumbo_bo.errors import UserError
from jumbo_bo.report.rows import rows
from jumbo_bo.runner.book import opened_book
from jumbo_bo.runner.people import ask, parse, tell
from jumbo_bo.runner.run import run
from jumbo_bo.space.space import Space
from jumbo_bo.study.study_file import StudyFile

SPACE = Space(
    {"kind": CategoricalDistribution(("a", "b")), "x": FloatDistribution(0.0, 1.0), "k": FloatDistribution(0.0, 1.0)},
    {"k": "kind == 'b'"},
)


@pytest.fixture
def conditional(study: StudyFile) -> StudyFile:
    return replace(study, space=SPACE, trials=8)


def test_the_command_gets_what_exists(conditional: StudyFile) -> None:
    plain = new_study(conditional)
    plain.enqueue_trial({"kind": "a"})
    plain.enqueue_trial({"kind": "b", "k": 0.5})
    plain.enqueue_trial({"kind": "a", "x": 0.25, "k": 0.75})
    plain.enqueue_trial({"k": 0.125})
    run(conditional, 8, Log())
    found = evaluated(conditional)
    assert len(found) == 8
    for params in found:
        assert SPACE.active(params) == tuple(params)
    trials = stored(conditional)
    assert all(t.state == TrialState.COMPLETE and SPACE.active(t.params) == tuple(t.params) for t in trials)
    assert trials[0].params["kind"] == "a"
    assert (trials[1].params["kind"], trials[1].params["k"]) == ("b", 0.5)
    assert trials[2].params == {"kind": "a", "x": 0.25}
    assert trials[3].params.get("k", 0.125) == 0.125
    for row in rows(trials, SPACE, "minimize"):
        assert [name for name, u in zip(SPACE.names, row.u, strict=True) if u == u] == list(row.params)


def test_people_are_asked_for_what_exists(conditional: StudyFile, tmp_path: Path) -> None:
    with opened_book(conditional) as book:
        for trial in ask(book, 6, lambda text: None):
            assert SPACE.active(trial.params) == tuple(trial.params)
        told = tell(book, parse(['{"params": {"kind": "a", "x": 0.5, "k": 3}, "value": 1}']))
        assert told[0].params == {"kind": "a", "x": 0.5}
        with pytest.raises(UserError, match=r"missing \['k'\]"):
            tell(book, parse(['{"params": {"kind": "b", "x": 0.5}, "value": 1}']))
