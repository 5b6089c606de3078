"""The stopping rule: when a run ends because little is left to gain, and what is kept and shown of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from small_study import PYTHON, Log, evaluated, new_study, stored, write_objective

from jumbo_bo.errors import UserError
from jumbo_bo.runner.book import opened_book
from jumbo_bo.runner.kept import Kept
from jumbo_bo.runner.people import ask
from jumbo_bo.runner.run import run
from jumbo_bo.runner.state import status
from jumbo_bo.runner.stopping import FEWEST
from jumbo_bo.studies import REMAINING, remaining
from jumbo_bo.study.job import Job
from jumbo_bo.study.study_file import Stop, StudyFile


@pytest.fixture
def one(study: StudyFile) -> StudyFile:
    """One worker, a method with a model, an objective that is best at x = 0."""
    return replace(study, method="gp-ucb", job=Job((*PYTHON, "objective.py"), "json"))


def test_a_run_ends_when_little_is_left(one: StudyFile) -> None:
    file = replace(one, stop=Stop(0.2, 0.3))
    ending = run(file, 40, Log())
    assert ending.reason == "stopped"
    assert FEWEST <= ending.finished < 40
    assert ending.chance < 0.3
    trials = stored(file)
    kept = [t.user_attrs[REMAINING] for t in trials]
    assert kept[0] == {"gain": 0.2, "chance": 1.0}
    assert all(entry["chance"] >= 0.3 for entry in kept[FEWEST:])

    again = run(file, 40, Log())
    assert (again.reason, again.finished, again.chance) == ("stopped", ending.finished, ending.chance)
    assert len(evaluated(file)) == ending.finished
    assert run(replace(file, stop=None), ending.finished + 1, Log()).reason == "budget"


def test_a_few_trials_come_first(one: StudyFile) -> None:
    assert run(replace(one, stop=Stop(1e6)), 40, Log()).finished == FEWEST


def test_failed_trials_say_nothing_about_the_gain(one: StudyFile) -> None:
    write_objective(one.folder, "if params['kind'] == 'a': sys.exit(1)")
    ending = run(replace(one, stop=Stop(1e6)), 30, Log())
    assert ending.reason == "stopped"
    assert sum(t.value is not None for t in stored(one)) == FEWEST


def test_enqueued_trials_are_still_made(one: StudyFile) -> None:
    made = new_study(one)
    for x in (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7):
        made.enqueue_trial({"x": x, "kind": "a"})
    ending = run(replace(one, stop=Stop(1e6)), 40, Log())
    assert (ending.reason, ending.finished) == ("stopped", 7)


def test_without_a_rule_nothing_is_kept(one: StudyFile) -> None:
    run(one, 2, Log())
    assert all(REMAINING not in t.user_attrs for t in stored(one))
    assert status(one, Kept(tuple(stored(one)))).to_json()["remaining"] is None


def test_a_method_without_a_model_is_refused_before_the_first_trial(study: StudyFile) -> None:
    with pytest.raises(UserError, match=r"\[stop\] needs a model: random has no model"):
        run(replace(study, stop=Stop(0.1)), 4, Log())
    assert evaluated(study) == []


def test_status_shows_the_last_one_and_asking_keeps_it(one: StudyFile) -> None:
    file = replace(one, stop=Stop(0.01))
    run(file, 3, Log())
    with opened_book(file) as book:
        (asked,) = ask(book, 1, lambda _: None)
    found = remaining(stored(file))
    assert found is not None
    assert (found.gain, found.trial) == (0.01, asked.number)
    shown = json.loads(json.dumps(status(file, Kept(tuple(stored(file)))).to_json()["remaining"]))
    assert shown == {"gain": 0.01, "chance": found.chance, "trial": asked.number}


def test_only_our_own_attribute_is_read(one: StudyFile, tmp_path: Path) -> None:
    made = new_study(one)
    made.enqueue_trial({"x": 0.1, "kind": "a"}, user_attrs={REMAINING: "3 minutes"})
    assert remaining(stored(one)) is None
