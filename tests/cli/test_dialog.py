"""`jumbo init` on a terminal: the guess is accepted or corrected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from optuna.distributions import IntDistribution
from tables import jumbo, paint, said
from typer.testing import CliRunner, Result

from jumbo_bo import cli
from jumbo_bo.cli import dialog
from jumbo_bo.study.study_file import load


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    here = paint(tmp_path)
    monkeypatch.chdir(here)
    return here


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """As on a terminal, with these answers."""
    monkeypatch.setattr(dialog, "possible", lambda screen: True)

    def answered(answers: str, *arguments: str) -> Result:
        result = CliRunner().invoke(cli.app, list(arguments), input=answers, env={"COLUMNS": "100", "NO_COLOR": "1"})
        assert "Traceback" not in result.output
        return result

    return answered


def test_a_guess_is_accepted_or_corrected(folder: Path, asked: Callable[..., Result]) -> None:
    answers = "?\nrunid = no\nunits = 16 to 512 (step 16)\nrun_id = parameter\nloss = maximize\n\n"
    result = asked(answers, "init", "runs/alpha.csv")
    assert result.exit_code == 0
    study = load("study.toml")
    assert study.space.distributions["units"] == IntDistribution(16, 512, step=16)
    assert "run_id" in study.space.names
    assert study.direction == "maximize"
    text = said(result)
    for words in (
        "To correct a line, type for example: run_id = parameter",
        "choices gpu = no",
        "there is no column 'runid'; did you mean 'run_id'?",
        "units 16 to 512 (integer, step 16) as asked",
        "loss objective as asked; larger is better",
        "Wrote study.toml",
    ):
        assert words in text
    assert text.count("lr 1e-05 to 0.1 (log)") == 1, "what has not changed is not shown again"


@pytest.mark.parametrize("answers", ["q\n", "no\n", "", "units = no\n"])
def test_nothing_is_written_without_a_yes(folder: Path, asked: Callable[..., Result], answers: str) -> None:
    result = asked(answers, "init", "runs/alpha.csv")
    assert result.exit_code == 0
    assert "Nothing was written." in result.output
    assert not (folder / "study.toml").exists()


def test_the_objective_is_asked_for(folder: Path, asked: Callable[..., Result]) -> None:
    (folder / "lab.csv").write_text("a,b,strength\n" + "".join(f"{i},{i * i % 7},{i % 5}\n" for i in range(40)))
    assert jumbo("init", "lab.csv", "--yes").exit_code == 1, "a script gets an error"
    result = asked("strenght\nstrength\ny\n", "init", "lab.csv")
    assert "Which column is the result that you want to improve? One of a, b, strength" in said(result)
    assert "There is no column 'strenght'; did you mean 'strength'?" in said(result)
    assert load("study.toml").old_runs[0].options["objective"] == "strength"
    (folder / "study.toml").unlink()
    assert "Nothing was written" in asked("q\n", "init", "lab.csv").output


def test_yes_asks_nothing(folder: Path, asked: Callable[..., Result]) -> None:
    result = asked("", "init", "runs/alpha.csv", "--yes")
    assert "Is this right?" not in result.output
    assert load("study.toml").name == "alpha"
