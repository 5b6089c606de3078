"""Help, version and completion of the command line."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner, Result

from jumbo_bo import cli


def jumbo(*arguments: str) -> Result:
    return CliRunner().invoke(cli.app, list(arguments), env={"COLUMNS": "100", "TERM": "dumb", "NO_COLOR": "1"})


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--help"], ["old runs", "jumbo demo", "jumbo bench fcnet-dt"]),
        (["demo", "--help"], ["Example: jumbo demo", "protein|parkinsons|naval|slice", "Ctrl-C"]),
        (["bench", "--help"], ["jumbo bench", "fcnet-dt", "report", "Examples"]),
        (["bench", "fcnet-dt", "--help"], ["jumbo bench fcnet-dt", "--methods", "Example"]),
    ],
)
def test_help(arguments: list[str], expected: list[str]) -> None:
    result = jumbo(*arguments)
    assert result.exit_code == 0
    assert [text for text in expected if text not in result.output] == []


@pytest.mark.parametrize("command", [c.name or c.callback.__name__ for c in cli.app.registered_commands])
def test_every_command_has_examples(command: str) -> None:
    assert re.search(rf"Examples?:.*jumbo {command}", jumbo(command, "--help").output, re.DOTALL)


def test_version_and_bare_command() -> None:
    assert re.fullmatch(r"jumbo-bo \d\S*\n", jumbo("--version").output)
    assert "Commands" in jumbo().output


def test_help_loads_no_numerical_library() -> None:
    code = (
        "import sys; from jumbo_bo.cli import app; app(['--help'], standalone_mode=False); "
        "sys.exit(bool({'numpy', 'optuna', 'jax', 'polars'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("line", "expected"),
    [("jumbo ru", "run"), ("jumbo run study.toml --work", "--workers"), ("jumbo init --k", "--keep")],
)
def test_completion_in_a_shell(line: str, expected: str) -> None:
    asked = {"_JUMBO_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    command = [sys.executable, "-c", "from jumbo_bo.cli import main; main()"]
    done = subprocess.run(command, env=os.environ | asked, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [expected]
