"""`jumbo run`, `status`, `dashboard`: what is shown, exit codes, mistakes that lose nothing."""

from __future__ import annotations

import json
import re
import signal
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from optuna.trial import TrialState
from widgets import STUDY, jumbo, started, stored

from waiting import wait_for


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            "run",
            [
                "jumbo run study.toml --trials 100",
                "kill -9",
                "--retry-failed",
                "Exit codes",
                "JUMBO_FOLDER",
                "local|ray",
            ],
        ),
        ("ask", ["jumbo ask study.toml -n 4", "--again", "jumbo tell"]),
        ("tell", ["jumbo tell study.toml 3 0.71", '{"trial": 3, "value": 0.71}', "--failed", "results.jsonl"]),
        ("status", ["jumbo status study.toml --json"]),
        ("dashboard", ["jumbo dashboard study.toml --port 8081", "Only this machine"]),
    ],
)
def test_help(command: str, expected: list[str]) -> None:
    result = jumbo(command, "--help")
    assert result.exit_code == 0
    text = " ".join(re.sub(r"[│╭╮╰╯─]", " ", result.output).split())
    assert [words for words in expected if words not in text] == []


# run


@pytest.mark.parametrize("storage", ["sqlite:///study.db", "study.journal"])
def test_run_shows_every_trial_and_ends_with_the_best(folder: Path, storage: str) -> None:
    (folder / "study.toml").write_text(STUDY.replace("study.journal", storage))
    result = jumbo("run", "study.toml")
    assert result.exit_code == 0, result.output
    trials = stored()
    assert [t.state for t in trials] == [TrialState.COMPLETE] * 4
    line = r"^trial (\d): \S+, (?:the best so far|best so far \S+), \d+\.\d s: lr=\S+, units=\d\d\n  \S"
    shown = re.findall(line, result.output, re.M)
    assert sorted(shown) == ["0", "1", "2", "3"]
    best = min(trials, key=lambda t: t.value or 0.0)
    for text in (
        "Done: 4 trials",
        f"in trial {best.number}",
        f"lr = {best.params['lr']:.4g}\n",
        "jumbo report study.toml",
    ):
        assert text in result.output
    assert "--trials 8" in result.output

    again = jumbo("run", "study.toml")
    assert again.exit_code == 0
    assert not re.search(r"^trial \d", again.output, re.M)
    assert jumbo("run", "study.toml", "--trials", "5").exit_code == 0
    assert len(stored()) == 5


def test_run_ends_when_the_space_is_used_up(folder: Path) -> None:
    (folder / "study.toml").write_text(
        STUDY.replace("low = 1e-5, high = 0.1, log = true", "low = 0.1, high = 0.2, step = 0.1")
    )
    result = jumbo("run", "study.toml", "--trials", "100")
    assert result.exit_code == 0
    assert "All 8 configurations of the space have been tried" in result.output
    assert "continue with more trials" not in result.output
    asked = jumbo("ask", "study.toml")
    assert asked.exit_code == 1
    assert "all 8 configurations have been tried or are open" in asked.output


def test_run_with_a_broken_command(folder: Path) -> None:
    (folder / "train.py").write_text("raise SystemExit('no data')")
    result = jumbo("run", "study.toml", "--trials", "3")
    assert result.exit_code == 1
    assert result.output.count("exit code 1: no data") == 4, "for each trial, and once more at the end"
    assert "3 trials in a row have failed" in result.output
    result = jumbo("run", "study.toml", "--trials", "30")
    assert result.exit_code == 1
    assert "5 trials in a row have failed" in result.output
    assert "Mend the command, then: jumbo run study.toml --retry-failed" in " ".join(result.output.split())
    assert "Last results" in (status := jumbo("status", "study.toml").output)
    assert "widgets: 0 of 4 trials finished (8 failed, not counted)" in status
    assert "fail. the command failed with exit code 1: no data" in status


def test_run_again_once_the_command_is_mended(folder: Path) -> None:
    whole = (folder / "train.py").read_text()
    (folder / "train.py").write_text("import no_such_module")
    assert jumbo("run", "study.toml").exit_code == 1
    broken = [t.params for t in stored()]
    (folder / "train.py").write_text(whole)
    result = jumbo("run", "study.toml", "--retry-failed")
    assert result.exit_code == 0, result.output
    assert "4 failed trials are forgotten and tried again" in result.output
    assert "Another try of trial 0, which failed." in result.output
    assert "Done: 4 trials are finished." in result.output
    assert [t.params for t in stored()[4:]] == broken
    status = jumbo("status", "study.toml").output
    assert "widgets: 4 of 4 trials finished (4 complete, 4 forgotten)" in status
    assert "fail." not in status
    found = json.loads(jumbo("status", "study.toml", "--json").stdout)
    assert (found["finished"], found["counts"]) == (4, {"complete": 4, "forgotten": 4})
    told = jumbo("tell", "study.toml", "0", "0.5")
    assert told.exit_code == 1
    assert "trial 0 is forgotten; restore it first (`jumbo forget study.toml 0 --restore`)" in told.output
    again = jumbo("run", "study.toml", "--retry-failed")
    assert "There is no failed trial to try again" in again.output
    assert len(stored()) == 8


@pytest.mark.parametrize(
    ("arguments", "code", "expected"),
    [
        (["run"], 2, "Missing argument 'STUDY'"),
        (["run", "other.toml"], 1, "other.toml"),
        (["run", "study.toml", "--trials", "0"], 2, "--trials"),
        (["run", "study.toml", "--engine", "slurm"], 2, "'local', 'ray'"),
        (["run", "study.toml", "--address", "auto"], 1, "add --engine ray"),
        (["status", "study.toml"], 1, "start with `jumbo run`"),
        (["ask", "study.toml", "--again"], 1, "start with `jumbo run`"),
        (["ask", "study.toml", "-n", "0"], 2, "-n"),
    ],
)
def test_mistakes_are_explained(folder: Path, arguments: list[str], code: int, expected: str) -> None:
    result = jumbo(*arguments)
    assert result.exit_code == code
    assert expected in " ".join(result.output.replace("│", " ").split())


def test_changed_space(folder: Path) -> None:
    jumbo("run", "study.toml", "--trials", "1")
    (folder / "study.toml").write_text(STUDY.replace("high = 0.1", "high = 0.5"))
    for command in ("status", "ask", "status"):
        result = jumbo(command, "study.toml")
        assert result.exit_code == 0
        said = " ".join(result.output.split())
        assert "The space has changed (lr: was 1e-05 to 0.1 (log), now 1e-05 to 0.5 (log))" in said
        assert "1 of 1 finished trials counts as before" in said
    assert "has changed" not in jumbo("ask", "study.toml").output  # said once
    assert len(stored()) == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_continues(folder: Path, number: signal.Signals) -> None:
    (folder / "slow").touch()
    process = started(folder, "run", "study.toml")
    wait_for((folder / "widgets.runs" / "trial-0000" / "attempt-1" / "stdout").exists)
    status = jumbo("status", "study.toml").output
    assert "1 running" in status
    assert re.search(r"^Running:\n  trial 0, for \d+ s: lr=", status, re.M)
    second = jumbo("run", "study.toml")
    assert second.exit_code == 1
    assert "another `jumbo run` is already running" in second.output
    process.send_signal(number)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 130
    assert "Finished trials are kept" in output
    assert "Resume with: jumbo run study.toml" in output
    assert [t.state for t in stored()] == [TrialState.RUNNING]
    assert "Interrupted; resume with `jumbo run study.toml`:\n  trial 0" in jumbo("status", "study.toml").output

    (folder / "slow").unlink()
    assert jumbo("run", "study.toml").exit_code == 0
    assert [t.state for t in stored()] == [TrialState.COMPLETE] * 4


# status and dashboard


def test_status_as_json(folder: Path) -> None:
    jumbo("run", "study.toml", "--trials", "2")
    jumbo("ask", "study.toml")
    found = json.loads(jumbo("status", "study.toml", "--json").stdout)
    trials = stored()
    best = min(trials[:2], key=lambda t: t.value or 0.0)
    assert (found["name"], found["finished"], found["trials"]) == ("widgets", 2, 4)
    assert found["counts"] == {"running": 1, "complete": 2}
    assert (found["best"]["trial"], found["best"]["value"], found["best"]["params"]) == (
        best.number,
        best.value,
        best.params,
    )
    assert [t["trial"] for t in found["open"]] == [2]
    assert (found["running"], found["interrupted"]) == ([], [])
    assert {t["trial"] for t in found["last"]} == {0, 1}
    assert found["storage"].endswith("study.journal")


def test_status_of_another_name(folder: Path) -> None:
    jumbo("run", "study.toml", "--trials", "1")
    (folder / "study.toml").write_text(STUDY.replace("widgets", "gadgets"))
    result = jumbo("status", "study.toml")
    assert result.exit_code == 1
    assert "there is no study 'gadgets'" in result.output
    assert "it has 'widgets'" in result.output


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, list[str]]]:
    """A stand-in for optuna-dashboard; the real one is in tests/integration."""
    calls: list[tuple[str, int, list[str]]] = []

    def run_server(storage: Any, host: str, port: int) -> None:
        if port == 80:
            raise PermissionError(13, "Permission denied")
        calls.append((host, port, [s.study_name for s in storage.get_all_studies()]))

    module = ModuleType("optuna_dashboard")
    module.run_server = run_server  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "optuna_dashboard", module)
    return calls


def test_dashboard_is_for_this_machine_only(folder: Path, served: list[tuple[str, int, list[str]]]) -> None:
    jumbo("ask", "study.toml")
    result = jumbo("dashboard", "study.toml", "--port", "8123")
    assert result.exit_code == 0
    assert "http://127.0.0.1:8123/dashboard" in result.output
    assert served == [("127.0.0.1", 8123, ["widgets"])]
    busy = jumbo("dashboard", "study.toml", "--port", "80")
    assert busy.exit_code == 1
    assert "port 80 cannot be used (Permission denied); try --port 81" in busy.output


def test_dashboard_is_not_installed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jumbo("ask", "study.toml")
    monkeypatch.setitem(sys.modules, "optuna_dashboard", None)
    result = jumbo("dashboard", "study.toml")
    assert result.exit_code == 1
    assert "pip install 'jumbo-bo[dashboard]'" in result.output
