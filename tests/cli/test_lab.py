"""`jumbo ask` and `jumbo tell`: what is shown, exit codes, mistakes that lose nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState
from widgets import STUDY, jumbo, lines, stored

from jumbo_bo.data.storage import opened
from jumbo_bo.runner.book import RUNNER, opened_book
from jumbo_bo.study.study_file import load


def test_a_lab_day(folder: Path) -> None:
    asked = jumbo("ask", "study.toml", "-n", "2")
    assert asked.exit_code == 0
    first, second = lines(asked.stdout)
    assert (first["trial"], second["trial"]) == (0, 1)
    assert set(first["params"]) == {"lr", "units"}
    assert first["params"] != second["params"]
    assert first["why"]
    assert lines(jumbo("ask", "study.toml", "--again").stdout) == [first, second]
    assert "Open, waiting for a result" in jumbo("status", "study.toml").output

    told = jumbo("tell", "study.toml", "0", "-0.71")
    assert told.exit_code == 0
    assert "trial 0: -0.7100, stored" in told.output
    assert "Best so far: -0.7100 in trial 0 (lr=" in told.output
    failed = jumbo("tell", "study.toml", "1", "--failed")
    assert failed.exit_code == 0
    assert "trial 1: failed, stored" in failed.output
    nothing = jumbo("ask", "study.toml", "--again")
    assert (nothing.exit_code, nothing.stdout) == (0, "")
    assert "No experiment is open" in nothing.stderr

    several = (
        '{"params": {"lr": 0.01, "units": 32}, "value": 0.4}\n\n{"params": {"lr": 0.1, "units": 16}, "failed": true}\n'
    )
    assert jumbo("tell", "study.toml", given=several).exit_code == 0
    trials = stored()
    assert [(t.state.name, t.value) for t in trials] == [
        ("COMPLETE", -0.71),
        ("FAIL", None),
        ("COMPLETE", 0.4),
        ("FAIL", None),
    ]
    assert trials[2].params == {"lr": 0.01, "units": 32}


def test_what_ask_printed_can_be_told(folder: Path) -> None:
    """A program may add a value to each line of `jumbo ask` and send it back."""
    asked = [line | {"value": 1.5} for line in lines(jumbo("ask", "study.toml", "-n", "3").stdout)]
    result = jumbo("tell", "study.toml", given="\n".join(map(json.dumps, asked)))
    assert result.exit_code == 0, result.output
    assert [t.value for t in stored()] == [1.5] * 3


def test_prediction_of_a_suggestion(folder: Path) -> None:
    (folder / "study.toml").write_text(STUDY.replace('"random"', '"gp-ucb"'))
    for i in range(4):
        (line,) = lines(jumbo("ask", "study.toml").stdout)
        jumbo("tell", "study.toml", str(i), str(0.1 * i))
    assert set(line["predicted"]) == {"mean", "sd", "low", "high"}
    assert line["predicted"]["low"] < line["predicted"]["mean"] < line["predicted"]["high"]


GOOD = '{"trial": 0, "value": 0.5}'


@pytest.fixture(scope="module")
def busy_study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with two open trials, a finished, a failed one and one of a `jumbo run`."""
    folder = tmp_path_factory.mktemp("busy")
    (folder / "study.toml").write_text(STUDY)
    with opened_book(load(folder / "study.toml")) as book:
        for i, user in enumerate([{}, {}, {}, {}, {RUNNER: {"folder": "there", "run": "1"}}]):
            trial = book.add(TrialState.RUNNING, {"lr": 0.01 * (i + 1), "units": 16}, user)
            if i in (2, 3):
                book.finish(trial, 0.25 if i == 2 else None, {})
    return folder / "study.journal"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('{"trial": 9, "value": 1}', "line 2: there is no trial 9; open trials: 0, 1"),
        ('{"trial": 2, "value": 1}', "line 2: trial 2 already has the value 0.25. If that is wrong, add --replace"),
        ('{"trial": 3, "value": 1}', "line 2: trial 3 already has the state FAIL"),
        ('{"trial": 0, "value": 1}', "line 2: trial 0 appears twice; the other is in line 1"),
        ('{"trial": 4, "value": 1}', "line 2: trial 4 is evaluated by `jumbo run`"),
        ('{"trial": 1, "value": "high"}', "line 2: the value is 'high', expected a number"),
        (
            '{"trial": 1, "value": NaN}',
            'line 2: the value is nan; for an experiment without a result write "failed": true',
        ),
        ('{"trial": 1, "value": null}', "line 2: the value is None, expected a number"),
        ('{"trial": 1, "value": true}', "line 2: the value is True, expected a number"),
        ('{"trial": 1}', 'line 2: give either a "value" or "failed": true'),
        ('{"trial": 1, "value": 1, "failed": true}', "line 2: give either"),
        ('{"trial": "1", "value": 1}', "line 2: 'trial' is '1', expected the number"),
        ('{"value": 1}', "line 2: neither 'trial' nor 'params'"),
        ('{"trial": 1, "vlaue": 1}', "line 2: unknown key 'vlaue'; expected trial, params, value, failed"),
        (
            '{"params": {"lr": 0.01, "unit": 32}, "value": 1}',
            "line 2: parameters do not match the space (missing ['units']",
        ),
        ('{"params": {"lr": 5, "units": 32}, "value": 1}', "line 2: 'lr' is 5, expected a number in [1e-05, 0.1]"),
        (
            '{"params": {"lr": 0.01, "units": 33}, "value": 1}',
            "line 2: 'units' is 33, expected an integer in [16, 64] in steps",
        ),
        ('{"params": 3, "value": 1}', "line 2: 'params' is 3, expected an object"),
        ('{"trial": 1, "params": {"lr": 0.01, "units": 32}, "value": 1}', "line 2: trial 1 was suggested with {"),
        ("trial 1: 0.5", "line 2: not JSON"),
        ("[1, 0.5]", "line 2: [1, 0.5] is not a JSON object"),
    ],
)
def test_a_wrong_line_loses_nothing(folder: Path, busy_study: Path, given: str, expected: str) -> None:
    shutil.copy(busy_study, folder)
    before = [(t.state, t.value, t.params) for t in stored()]
    result = jumbo("tell", "study.toml", given=f"{GOOD}\n{given}\n")
    assert result.exit_code == 1
    assert expected in " ".join(result.output.split())
    assert [(t.state, t.value, t.params) for t in stored()] == before, "not even the good line is stored"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["0"], "give either a value or --failed"),
        (["0", "0.5", "--failed"], "give either a value or --failed"),
        (["0", "high"], "the value is 'high', expected a number"),
        (["0", "nan"], "use --failed"),
        (["0", "--faild"], "the value is '--faild', expected a number"),
        (["7", "1"], "there is no trial 7; open trials: 0"),
        (["--failed"], "which trial? For example: jumbo tell study.toml 3 0.71"),
    ],
)
def test_wrong_arguments_lose_nothing(folder: Path, arguments: list[str], expected: str) -> None:
    jumbo("ask", "study.toml")
    result = jumbo("tell", "study.toml", *arguments)
    assert result.exit_code == 1
    assert expected in result.output
    assert [t.state for t in stored()] == [TrialState.RUNNING]


def test_tell_before_the_first_ask(folder: Path) -> None:
    result = jumbo("tell", "study.toml", "0", "1.0")
    assert result.exit_code == 1
    assert not (folder / "study.journal").exists()
    assert jumbo("tell", "study.toml", given='{"params": {"lr": 0.01, "units": 32}, "value": 1}').exit_code == 0
    assert "Best so far: 1.000 in trial 0" in jumbo("tell", "study.toml", given="").output


def test_giving_up_a_trial_of_a_run_that_is_gone(folder: Path) -> None:
    with opened_book(load("study.toml")) as book:
        book.add(TrialState.RUNNING, {"lr": 0.01, "units": 16}, {RUNNER: {"folder": "there", "run": "1"}})
    ended = jumbo("run", "study.toml", "--trials", "2")
    assert ended.exit_code == 0
    assert "1 of 2 trials are finished; the others are running on other machines" in ended.output
    assert jumbo("tell", "study.toml", "0", "--failed").exit_code == 0
    assert "Done: 2 trials" in jumbo("run", "study.toml", "--trials", "2").output


def test_ask_that_was_killed_while_deciding(folder: Path) -> None:
    with opened_book(load("study.toml")) as book:
        book.reserve({})
    assert jumbo("ask", "study.toml", "--again").stdout == ""
    refused = jumbo("tell", "study.toml", "0", "1.0")
    assert refused.exit_code == 1
    assert "trial 0 has no parameters yet" in refused.output
    assert [line["trial"] for line in lines(jumbo("ask", "study.toml").stdout)] == [1]
    assert jumbo("tell", "study.toml", "0", "--failed").exit_code == 0


def test_enqueued_trial_cannot_be_told(folder: Path) -> None:
    jumbo("ask", "study.toml")
    with opened("study.journal") as storage:
        optuna.load_study(study_name="widgets", storage=storage).enqueue_trial({"lr": 0.01, "units": 16})
    result = jumbo("tell", "study.toml", "1", "0.5")
    assert result.exit_code == 1
    assert "trial 1 is enqueued" in result.output
