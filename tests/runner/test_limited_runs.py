"""Limits in a study file: checked, printed by the command, told by a person, kept for Optuna, shown in the report."""

from __future__ import annotations

import json
import math
from pathlib import Path

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial

from jumbo_bo.data.history import History
from jumbo_bo.data.limits import Limit
from jumbo_bo.errors import UserError
from jumbo_bo.explain import Explanation, Prediction
from jumbo_bo.known import Remembered
from jumbo_bo.report import page
from jumbo_bo.report.rows import best as best_row
from jumbo_bo.report.rows import rows
from jumbo_bo.runner import people, supervise
from jumbo_bo.runner.answers import suggestion_of
from jumbo_bo.runner.attempt import outcome
from jumbo_bo.runner.book import best, opened_book
from jumbo_bo.runner.build import build_optimizer
from jumbo_bo.runner.state import status
from jumbo_bo.space.space import Space
from jumbo_bo.studies import NUMBERS, follow
from jumbo_bo.study.job import Job
from jumbo_bo.study.study_file import StudyFile, load

STUDY = """
name = "fast"
trials = 6
[space]
x = { type = "float", low = 0, high = 1 }
[limits]
latency_ms = { max = 20 }
purity = { min = 95, max = 99 }
"""
LIMITS = (Limit("latency_ms", high=20.0), Limit("purity", 95.0, 99.0))
JOB = Job(("train",), value="loss", limited=("latency_ms", "purity"))


@pytest.fixture
def study(tmp_path: Path) -> StudyFile:
    (tmp_path / "study.toml").write_text(STUDY)
    return load(tmp_path / "study.toml")


def test_limits_are_read(study: StudyFile) -> None:
    assert study.limits == LIMITS
    assert study.job.limited == ()  # a person measures


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ("latency_ms = 20", "limits.latency_ms is 20, expected a table"),
        ("latency_ms = { most = 20 }", "unknown key 'most'"),
        ('latency_ms = { max = "20" }', "limits.latency_ms.max is '20', expected a number"),
        ("latency_ms = { }", "limits.latency_ms: .* allow everything"),
        ("latency_ms = { min = 3, max = 2 }", "the smaller one first"),
        ("x = { max = 2 }", "limits.x is a parameter"),
    ],
)
def test_wrong_limits(tmp_path: Path, wrong: str, problem: str) -> None:
    (tmp_path / "study.toml").write_text(STUDY.replace("latency_ms = { max = 20 }", wrong))
    with pytest.raises(UserError, match=problem):
        load(tmp_path / "study.toml")


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ('{"loss": 1, "latency_ms": 18, "purity": 96.5}', {"latency_ms": 18.0, "purity": 96.5}),
        ('{"loss": 1, "latency_ms": null, "purity": NaN, "other": 1}', {}),
        ('{"loss": 1, "latency_ms": Infinity, "purity": 96}', {"purity": 96.0}),
        ('{"loss": 1, "latency_ms": 18}', 'has no "purity", which is a goal or has a limit'),
        ('{"loss": 1, "latency_ms": "18", "purity": 96}', '"latency_ms" is not a number'),
        ('{"loss": 1, "latency_ms": true, "purity": 96}', '"latency_ms" is not a number'),
        ("0.5", 'no JSON line like {"loss": 0.5, "latency_ms": 0.5, "purity": 0.5}; its last line was 0.5'),
    ],
)
def test_what_the_command_measured(tmp_path: Path, printed: str, expected: dict[str, float] | str) -> None:
    (tmp_path / "stdout").write_text(printed)
    result = {"exit": 0, "error": None, "timed_out": False, "stopped": False, "seconds": 1.0}
    supervise.write(tmp_path / "result.json", result)
    end = outcome(tmp_path, JOB)
    assert end is not None
    if isinstance(expected, dict):
        assert (end.value, end.error, end.measured) == (1.0, None, expected)
    else:
        assert end.value is None
        assert expected in str(end.error)


def test_a_person_tells_what_was_measured(study: StudyFile) -> None:
    lines = [
        {"params": {"x": 0.1}, "value": 1.0, "measured": {"latency_ms": 25, "purity": 96}},
        {"params": {"x": 0.2}, "value": 2.0, "measured": {"latency_ms": 15, "purity": 96}},
        {"params": {"x": 0.3}, "value": 1.5, "measured": {"latency_ms": 15}},
    ]
    with opened_book(study) as book:
        people.tell(book, people.parse(map(json.dumps, lines)))
        trials = book.trials()
        top = best(trials, study)
        assert top is not None
        assert top.value == 2.0
        assert trials[0].constraints == {"latency_ms": 5.0, "purity": -1.0}
        assert trials[0].user_attrs["measured"] == {"latency_ms": 25.0, "purity": 96.0}
        optimizer = follow(build_optimizer(study, 6, lambda text: None), trials)
        assert optimizer.best is not None
        assert optimizer.best.value == 2.0
        with pytest.raises(UserError, match=r"line 1: measured has 'latency', but .*; did you mean 'latency_ms'"):
            people.tell(book, people.parse(['{"params": {"x": 0.1}, "value": 1, "measured": {"latency": 2}}']))
        assert len(book.trials()) == 3
    found = optuna.load_study(study_name="fast", storage=study.address)
    assert found.trials[0].constraints["latency_ms"] == 5.0


def test_old_runs_that_are_kept_say_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second process does not read the files again, and suggests the same."""
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path / "cache"))
    lines = ["task,x,value,latency_ms"]
    for task, shift in (("a", 0.0), ("b", 0.1), ("new", 0.05)):
        n = 5 if task == "new" else 20
        lines += [f"{task},{i / n},{(i / n - 0.7 - shift) ** 2},{30 * i / n if i % 4 else ''}" for i in range(n)]
    (tmp_path / "old.csv").write_text("\n".join(lines))
    entry = '[[history]]\nfiles = "old.csv"\ntask = "task"\ntarget = "new"\n'
    (tmp_path / "study.toml").write_text(STUDY + entry)
    study = load(tmp_path / "study.toml")
    first, second = (build_optimizer(study, 6, lambda text: None) for _ in range(2))
    assert isinstance(first.history, History)
    assert isinstance(second.history, Remembered)
    assert set(second.history.limits) == {"latency_ms", "purity"}
    assert [t.measured for t in first._trials] == [t.measured for t in second._trials]
    assert [t.measured for t in first._trials if t.measured] != []
    assert first.ask() == second.ask()


def test_measured_on_the_command_line() -> None:
    assert people.measured_of(["latency_ms=18.2", "a=b=3"]) == {"latency_ms": 18.2, "a=b": 3.0}
    for wrong in ("latency_ms", "=3", "q=", "q=x"):
        with pytest.raises(UserError, match="expected"):
            people.measured_of([wrong])


def test_an_open_trial_gets_what_was_measured(study: StudyFile) -> None:
    with opened_book(study) as book:
        (trial,) = people.ask(book, 1, lambda text: None)
        measured = {"latency_ms": 19.0, "purity": 97.0}
        people.tell(book, [people.Entry("", trial.number, None, 0.5, measured)])
        printed = [suggestion_of(t) for t in people.ask(book, 1, lambda text: None)]
        assert printed[0]["limits"].keys() == {"latency_ms <= 20", "95 <= purity <= 99"}
        people.parse([json.dumps(printed[0] | {"value": 1.0})])
        assert status(study, book.kept()).to_json()["last"][0]["measured"] == measured
        told, _ = book.trials()
        assert told.user_attrs["measured"] == measured
        assert told.constraints == {"latency_ms": -1.0, "purity": -2.0}


def test_the_report_shows_limits() -> None:
    predicted = Prediction(1.0, 0.1, 0.8, 1.2)
    numbers = {"old": math.nan, "new": 0.0, "trust": None, "beta": None, "inside_gate": None, "nearest": ()}
    reasons = Explanation("Why.", predicted, limits={"latency_ms <= 20": 0.75}, **numbers)
    trials = []
    for i, (value, latency) in enumerate([(1.0, 25.0), (2.0, 15.0), (1.5, 30.0), (1.8, 18.0)]):
        made = create_trial(
            state=TrialState.COMPLETE,
            value=value,
            params={"x": i / 10},
            distributions={"x": FloatDistribution(0, 1)},
            user_attrs={"measured": {"latency_ms": latency}, NUMBERS: reasons.to_json() | {"params": {"x": i / 10}}},
        )
        made.number = i
        trials.append(made)
    space, limit = Space({"x": FloatDistribution(0, 1)}), Limit("latency_ms", high=20.0)
    found = rows(trials, space, "minimize", limits=(limit,))
    assert [row.met for row in found] == [False, True, False, True]
    top = best_row(found)
    assert top is not None
    assert top.number == 3
    text = page("fast", space, "minimize", trials, limits=(limit,))
    assert "2 of 4 trials meet it. Of the 4 whose chance was said before they ran, 3.0 were expected to; 2 do." in text
    assert text.count('<span class="quiet">missed</span>') == 2
    assert '"does not meet the limits"' in text
    assert "limit-0" not in page("fast", space, "minimize", trials)
