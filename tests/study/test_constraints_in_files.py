"""constraints in study.toml, and in what the commands show of such a study."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from study_texts import SMALL, error, write
from typer.testing import CliRunner

from jumbo_bo import cli
from jumbo_bo.study.study_file import load

MIXTURE = """
name = "mixture"
method = "gp-ucb"
trials = 4
constraints = ["a + b + c == 1"]

[space]
a = { type = "float", low = 0.0, high = 1.0 }
b = { type = "float", low = 0.0, high = 1.0 }
c = { type = "float", low = 0.0, high = 1.0 }
"""


def jumbo(*arguments: str, given: str | None = None) -> str:
    result = CliRunner().invoke(cli.app, list(arguments), input=given, env={"COLUMNS": "120", "TERM": "dumb"})
    assert result.exit_code == 0, result.output
    return result.output if arguments[0] == "tell" else result.stdout


def test_a_file_with_constraints(tmp_path: Path) -> None:
    space = load(write(tmp_path, MIXTURE)).space
    assert space.constraints == ("a + b + c == 1",)
    assert load(write(tmp_path, SMALL)).space.constraints == ()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('constraints = "x <= 0.5"', "constraints is 'x <= 0.5', expected a list of strings"),
        ('constraints = ["x <= 0.5", "y <= 1"]', "space: 'y <= 1' speaks of 'y', which is no parameter"),
        ('constraints = ["x <= 0.5", "x >= 0.6"]', "space: the constraints 'x <= 0.5', 'x >= 0.6' are never met"),
        ('constraints = ["x >= 2"]', "x lies between 0 and 1, and would have to be at least 2"),
    ],
)
def test_a_wrong_constraint_is_named(tmp_path: Path, line: str, message: str) -> None:
    assert message in error(tmp_path, f"{line}\n{SMALL}")


def test_ask_tell_status_and_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, MIXTURE)
    for line in jumbo("ask", "study.toml", "-n", "3").splitlines():
        params = json.loads(line)["params"]
        assert sum(params.values()) == pytest.approx(1, abs=1e-9)
    assert "does not meet" not in jumbo("tell", "study.toml", "0", "1.5")
    outside = '{"params": {"a": 1.0, "b": 1.0, "c": 0.0}, "value": 0.5}'
    shown = jumbo("tell", "study.toml", given=outside)
    assert "It does not meet a + b + c == 1: it is learned from, and not counted as the best" in shown
    assert "Best so far: 1.500 in trial 0" in shown
    assert json.loads(jumbo("status", "study.toml", "--json"))["best"]["trial"] == 0
    jumbo("report", "study.toml")
    (page,) = tmp_path.glob("*.html")
    text = page.read_text(encoding="utf-8")
    assert "over 3 parameters with a + b + c == 1" in text
    assert "It does not meet a + b + c == 1." in text


def test_constraints_may_change_during_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, MIXTURE)
    jumbo("ask", "study.toml")
    jumbo("tell", "study.toml", "0", "1.5")
    write(tmp_path, MIXTURE.replace('"a + b + c == 1"', '"a + b + c == 2", "a >= 0.5"'))
    params = json.loads(jumbo("ask", "study.toml"))["params"]
    assert sum(params.values()) == pytest.approx(2, abs=1e-9)
    assert json.loads(jumbo("status", "study.toml", "--json"))["finished"] == 1
