"""`jumbo report`: what is written, what is said, errors that name the fix."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial
from report_pages import Reader
from typer.testing import CliRunner, Result

from jumbo_bo import cli
from jumbo_bo.correct import forget_failed

FILE = """
name = "widgets"
trials = 5
method = "gp-ucb"
storage = "sqlite:///study.db"
[space]
lr = { type = "float", low = 1e-5, high = 0.1, log = true }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(FILE)
    return tmp_path


def stored(folder: Path, name: str = "widgets") -> None:
    made = optuna.create_study(storage=f"sqlite:///{folder}/study.db", study_name=name)
    lr = FloatDistribution(1e-5, 1e-1, log=True)
    for x in (0.001, 0.01):
        made.add_trial(create_trial(params={"lr": x}, distributions={"lr": lr}, value=x))


def command(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, ["report", *arguments])


@pytest.mark.parametrize("options", [(), ("--without-old-runs",)])
def test_command_writes_the_page_and_says_where(folder: Path, options: tuple[str, ...]) -> None:
    stored(folder)
    result = command("study.toml", *options)
    assert result.exit_code == 0, result.output
    assert "report.html" in result.output
    assert "MB" in result.output
    assert "open it in a browser" in result.output
    words = Reader((folder / "report.html").read_text()).words
    assert "in trial 0; 2 trials have a value." in words
    assert ("not read" in words) == bool(options)
    assert command("study.toml", "--output", "friday.html", *options).exit_code == 0
    assert (folder / "friday.html").read_bytes() == (folder / "report.html").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("study.toml",), "does not exist"),
        (("other.toml",), "other.toml"),
        (("study.toml", "--output", "no/where.html"), "create it first"),
        (("study.toml", "--output", "."), "is a folder"),
    ],
)
def test_command_errors_name_the_fix(folder: Path, arguments: tuple[str, ...], reason: str) -> None:
    result = command(*arguments)
    assert result.exit_code == 1
    assert reason in result.output
    assert not (folder / "study.db").exists()
    assert not list(folder.glob("*.html"))


def test_command_on_another_study_says_which_ones_there_are(folder: Path) -> None:
    stored(folder, "gadgets")
    result = command("study.toml")
    assert result.exit_code == 1
    assert "no study 'widgets'" in result.output
    assert "'gadgets'" in result.output


@pytest.mark.parametrize("options", [(), ("--without-old-runs",)])
def test_command_shows_forgotten_trials_as_such(folder: Path, options: tuple[str, ...]) -> None:
    stored(folder)
    made = optuna.load_study(storage=f"sqlite:///{folder}/study.db", study_name="widgets")
    lr = FloatDistribution(1e-5, 1e-1, log=True)
    made.add_trial(create_trial(state=TrialState.FAIL, params={"lr": 0.1}, distributions={"lr": lr}))
    assert forget_failed(made) == [2]
    result = command("study.toml", *options)
    assert result.exit_code == 0, result.output
    words = Reader((folder / "report.html").read_text()).words
    assert "0 failed, 1 waiting, 1 forgotten" in words
