"""`jumbo tell --replace` and `jumbo forget`: what they do, what is shown, mistakes that change nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from optuna.trial import TrialState
from widgets import STUDY, jumbo, stored

from jumbo_bo.runner.book import opened_book
from jumbo_bo.study.study_file import load

POINT = {"lr": 0.01, "units": 32}


@pytest.fixture
def told(folder: Path) -> Path:
    """Three finished trials, a failed one, an open one."""
    with opened_book(load("study.toml")) as book:
        for y in (0.5, 20.0, 0.75):
            book.add(TrialState.COMPLETE, POINT, {}, y)
        book.add(TrialState.FAIL, POINT, {})
        book.add(TrialState.RUNNING, POINT, {})
    return folder


def status() -> dict[str, object]:
    return dict(json.loads(jumbo("status", "study.toml", "--json").stdout))


def test_a_value_is_replaced(told: Path) -> None:
    result = jumbo("tell", "study.toml", "1", "0.2", "--replace", "--reason", "comma")
    assert result.exit_code == 0, result.output
    assert "trial 1: 20 replaced by 0.2" in result.output
    assert "Best so far: 0.2000 in trial 1" in result.output
    assert jumbo("tell", "study.toml", "0", "--failed", "--replace").exit_code == 0
    assert jumbo("tell", "study.toml", "3", "-1", "--replace").exit_code == 0
    assert [t.value for t in stored()] == [0.5, 20.0, 0.75, None, None]
    found = status()
    assert found["counts"] == {"complete": 3, "fail": 1, "running": 1}
    assert [(e["trials"], e["was"], e["value"], e["why"]) for e in found["corrections"]] == [  # type: ignore[attr-defined]
        ([1], 20.0, 0.2, "comma"),
        ([0], 0.5, None, ""),
        ([3], None, -1.0, ""),
    ]
    shown = jumbo("status", "study.toml").output
    assert "Best (minimize): -1.000 in trial 3" in shown
    assert "trial 0: 0.5 replaced by failed on" in shown


def test_trials_are_forgotten_and_restored(told: Path) -> None:
    result = jumbo("forget", "study.toml", "3", "0", "--reason", "the pump leaked")
    assert result.exit_code == 0, result.output
    assert "trials 0, 3: forgotten" in result.output
    assert "Best so far: 0.7500 in trial 2" in result.output
    assert status()["counts"] == {"complete": 2, "running": 1, "forgotten": 2}
    assert "trials 0, 3: forgotten on " in jumbo("status", "study.toml").output
    refused = jumbo("tell", "study.toml", "0", "3", "--replace")
    assert refused.exit_code == 1
    assert "(the pump leaked); restore it first" in refused.output
    assert "trial 0: counts again" in jumbo("forget", "study.toml", "0", "--restore").output
    assert status()["counts"] == {"complete": 3, "running": 1, "forgotten": 1}


def test_the_report_has_the_corrections(told: Path) -> None:
    jumbo("tell", "study.toml", "0", "77.5", "--replace", "--reason", "comma")
    jumbo("forget", "study.toml", "1", "--reason", "the pump leaked")
    assert jumbo("report", "study.toml").exit_code == 0
    page = (told / "report.html").read_text()
    assert "Corrected: 0.5 replaced by 77.5 on" in page
    assert ": the pump leaked." in page
    assert ">77.5<" in page


LINES = '{"trial": 0, "value": 1}\n'
OWN = LINES + json.dumps({"params": POINT, "value": 1})
OTHER = LINES + '{"trial": 1, "params": {"lr": 0.1, "units": 16}, "value": 1}'


@pytest.mark.parametrize(
    ("arguments", "given", "expected"),
    [
        (("tell", "9", "1", "--replace"), None, "there is no trial 9 in this study; it has 0 to 4"),
        (("tell", "4", "1", "--replace"), None, "trial 4 has no result yet; leave out --replace"),
        (("tell", "0", "high", "--replace"), None, "the value is 'high', expected a number"),
        (("tell", "0", "inf", "--replace"), None, "the value is inf; for an experiment without a result use --failed"),
        (("tell", "0", "--replace"), None, "give either a value or --failed"),
        (("tell", "4", "1", "--reason", "comma"), None, "--reason is for a result that is replaced; add --replace"),
        (("tell", "--replace"), LINES + '{"trial": 4, "value": 1}', "line 2: trial 4 has no result yet"),
        (("tell", "--replace"), LINES + LINES, "line 2: trial 0 appears twice; the other is in line 1"),
        (
            ("tell", "--replace"),
            LINES + json.dumps({"params": POINT, "value": 1}),
            "line 2: only a trial with a number",
        ),
        (
            ("tell", "--replace"),
            LINES + '{"trial": 1, "params": {"lr": 0.1, "units": 16}, "value": 1}',
            "suggested with",
        ),
        (("forget", "0"), None, "say why, for example: jumbo forget study.toml 0 --reason"),
        (("forget", "0", "9", "--reason", "odd"), None, "there is no trial 9"),
        (("forget", "4", "--reason", "odd"), None, "trial 4 is still running"),
        (("forget", "0", "--restore"), None, "trial 0 is not forgotten"),
    ],
)
def test_a_mistake_changes_nothing(told: Path, arguments: tuple[str, ...], given: str | None, expected: str) -> None:
    result = jumbo(arguments[0], "study.toml", *arguments[1:], given=given)
    assert result.exit_code == 1
    assert expected in " ".join(result.output.split())
    assert status()["corrections"] == []


def test_a_running_study_takes_a_correction_up(folder: Path) -> None:
    """The trial that a correction removes is made up for."""
    assert jumbo("run", "study.toml").exit_code == 0
    jumbo("forget", "study.toml", "2", "--reason", "odd")
    again = jumbo("run", "study.toml")
    assert "Done: 4 trials are finished." in again.output
    assert len(stored()) == 5


def test_the_next_suggestion_follows_the_corrected_study(folder: Path) -> None:
    (folder / "study.toml").write_text(STUDY.replace('"random"', '"gp-ucb"'))
    wrong = folder / "wrong.toml"
    wrong.write_text(STUDY.replace('"random"', '"gp-ucb"').replace('"widgets"', '"wrong"'))
    for i in range(5):
        jumbo("ask", "study.toml")
        jumbo("ask", str(wrong))
        jumbo("tell", "study.toml", str(i), str(0.1 * i))
        jumbo("tell", str(wrong), str(i), str(0.1 * i))
        if i == 3:  # the fifth suggestion has seen the wrong value
            jumbo("tell", str(wrong), "0", "9", "--replace")
            jumbo("tell", str(wrong), "0", "0", "--replace")
    assert jumbo("ask", "study.toml").stdout == jumbo("ask", str(wrong)).stdout
