"""`jumbo run`, `ask`, `tell`, `status`, `dashboard`: what is shown, exit codes, mistakes that lose nothing."""

from __future__ import annotations

import io
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import optuna
import pytest
from optuna.trial import FrozenTrial, TrialState
from rich.console import Console
from typer.testing import CliRunner, Result

from jumbo_bo import cli
from jumbo_bo.cli import run as view
from jumbo_bo.data.storage import opened
from jumbo_bo.runner.book import RUNNER, opened_book
from jumbo_bo.runner.coordinator import Running
from jumbo_bo.study.study_file import load

STUDY = f"""
name = "widgets"
trials = 4
method = "random"
storage = "study.journal"

[space]
lr = {{ type = "float", low = 1e-5, high = 0.1, log = true }}
units = {{ type = "int", low = 16, high = 64, step = 16 }}

[objective]
command = ["{sys.executable}", "-I", "-S", "train.py"]
input = "json"
value = "loss"
"""
TRAIN = """
import json, os, sys, time
params = json.load(sys.stdin)
time.sleep(60 * os.path.exists("slow"))
print(json.dumps({"loss": params["lr"] * params["units"]}))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def jumbo(*arguments: str, given: str | None = None) -> Result:
    environment = {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}
    result = CliRunner().invoke(cli.app, list(arguments), input=given, env=environment)
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def stored() -> list[FrozenTrial]:
    with opened(load("study.toml").address) as storage:
        return optuna.load_study(study_name="widgets", storage=storage).get_trials()


def lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("run", ["jumbo run study.toml --trials 100", "kill -9", "Exit codes", "JUMBO_FOLDER", "local|ray"]),
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
    shown = re.findall(r"^trial (\d): \S+, best so far \S+, \d+\.\d s\. \S", result.output, re.M)
    assert sorted(shown) == ["0", "1", "2", "3"]
    best = min(trials, key=lambda t: t.value or 0.0)
    for text in ("Done: 4 trials", f"in trial {best.number}", f"lr = {best.params['lr']}", "jumbo report study.toml"):
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
    assert "go on" not in result.output
    asked = jumbo("ask", "study.toml")
    assert asked.exit_code == 1
    assert "all 8 configurations are tried or open" in asked.output


def test_run_with_a_broken_command(folder: Path) -> None:
    (folder / "train.py").write_text("raise SystemExit('no data')")
    result = jumbo("run", "study.toml", "--trials", "3")
    assert result.exit_code == 1
    assert result.output.count("exit code 1: no data") == 3
    assert "None of them has a value" in result.output
    result = jumbo("run", "study.toml", "--trials", "30")
    assert result.exit_code == 1
    assert "5 trials in a row have failed" in result.output
    assert "Last results" in (status := jumbo("status", "study.toml").output)
    assert "fail. the command failed with exit code 1: no data" in status


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
    for command in ("run", "ask", "status"):
        result = jumbo(command, "study.toml")
        assert result.exit_code == 1
        assert "lr: was 1e-05 to 0.1 (log), now 1e-05 to 0.5 (log)" in result.output
        assert "new name" in result.output
    assert len(stored()) == 1


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    code = "from jumbo_bo.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


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
    assert "another `jumbo run` is at work" in second.output
    process.send_signal(number)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Finished trials are kept" in output
    assert "Continue with: jumbo run study.toml" in output
    assert [t.state for t in stored()] == [TrialState.RUNNING]
    assert "Interrupted, goes on with `jumbo run study.toml`:\n  trial 0" in jumbo("status", "study.toml").output

    (folder / "slow").unlink()
    assert jumbo("run", "study.toml").exit_code == 0
    assert [t.state for t in stored()] == [TrialState.COMPLETE] * 4


def test_live_line_fits_the_terminal() -> None:
    file = io.StringIO()
    screen = Console(file=file, force_terminal=True, width=60, height=10, color_system=None)
    trial = optuna.trial.create_trial(value=0.5, user_attrs={"why": "because " * 20, "seconds": 2.0})
    trial.number = 7
    with view.Progress(screen) as progress:
        progress.tick([Running(trial, Path(), time.time() - 200)] * 9, 3, 50)
        progress.finished(trial, trial)
    text = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", file.getvalue())
    assert "3 of 50 trials done; running: 7 (3 min)" in text
    assert "trial 7: 0.5000, best so far 0.5000, 2.0 s. because" in text
    shown = [line for line in re.split(r"[\r\n]", text) if line.strip()]
    assert max(map(len, shown)) <= 60
    assert sum("because" in line for line in shown) == 1, "a line per trial"


# ask and tell


def test_a_lab_day(folder: Path) -> None:
    asked = jumbo("ask", "study.toml", "-n", "2")
    assert asked.exit_code == 0
    first, second = lines(asked.stdout)
    assert (first["trial"], second["trial"]) == (0, 1)
    assert set(first["params"]) == {"lr", "units"}
    assert first["params"] != second["params"]
    assert first["why"]
    assert lines(jumbo("ask", "study.toml", "--again").stdout) == [first, second]
    assert "Open, to be told" in jumbo("status", "study.toml").output

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
        ('{"trial": 9, "value": 1}', "line 2: there is no trial 9; open are 0, 1"),
        ('{"trial": 2, "value": 1}', "line 2: trial 2 has the value 0.25 already, which stays as it is"),
        ('{"trial": 3, "value": 1}', "line 2: trial 3 has the state FAIL already"),
        ('{"trial": 0, "value": 1}', "line 2: trial 0 is told twice, also in line 1"),
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
        ('{"trial": 1, "params": {"lr": 0.01, "units": 32}, "value": 1}', "line 2: trial 1 was asked with {"),
        ("trial 1: 0.5", "line 2: not JSON"),
        ("[1, 0.5]", "line 2: [1, 0.5] is no JSON object"),
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
        (["7", "1"], "there is no trial 7; open are 0"),
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
    assert "1 of 2 trials are finished; the others run on other machines" in ended.output
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
