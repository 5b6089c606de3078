"""Text from elsewhere on the screen: nothing in it is obeyed by a terminal, and no secret is shown."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from rich.table import Table
from typer.testing import CliRunner, Result

from jumbo_bo.cli import app, view

ESCAPE = "\x1b[2J\x1b]0;owned\x07\x9b31m"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path / "cache"))
    return tmp_path


def invoked(*arguments: str) -> Result:
    result = CliRunner().invoke(app, list(arguments))
    assert not set(result.output + result.stderr) & set("\x1b\x07\x9b\r"), result.output
    return result


def test_a_console_prints_no_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = view.console()
    screen.file = io.StringIO()
    table = Table(f"a{ESCAPE}")
    table.add_row(f"b{ESCAPE}")
    screen.print(f"c{ESCAPE}", style="red")
    screen.print(table)
    text = screen.file.getvalue()
    assert not set(text) & set("\x1b\x07\x9b")
    assert "c\\x1b[2J" in text


def test_names_of_columns_cannot_steer_the_terminal(folder: Path) -> None:
    (folder / "runs.csv").write_text(f"lr{ESCAPE},loss\n0.1,1\n0.2,2\n0.3,4\n0.7,3\n")
    assert invoked("init", "runs.csv", "--force").exit_code == 0
    assert "\\x1b" in invoked("import", "study.toml").stdout
    assert invoked("import", "runs.csv").exit_code == 0
    assert "no column" in invoked("import", "runs.csv", "--objective", f"x{ESCAPE}").stderr


def test_what_a_command_prints_cannot_steer_the_terminal(folder: Path) -> None:
    code = f"import sys; print({ESCAPE!r}, file=sys.stderr); sys.exit(3)"
    (folder / "study.toml").write_text(
        'name = "s"\ntrials = 1\nmethod = "random"\n[space]\n'
        'x = { type = "categorical", choices = ["a\\u001b[2J", "b\\u009b31m"] }\n'
        f"[objective]\ncommand = {json.dumps([sys.executable, '-c', code, '{{x}}'])}\n"
    )
    assert "\\x1b[2J" in invoked("run", "study.toml").output
    assert "failed" in invoked("status", "study.toml").output
    asked = invoked("ask", "study.toml")
    assert json.loads(asked.stdout)["params"]["x"] in ("a\x1b[2J", "b\x9b31m")


@pytest.mark.parametrize(
    "storage",
    [
        "postgresql+psycopg://me:hunter2@127.0.0.1:1/db",
        "postgresql+psycopg://127.0.0.1:1/db?user=me&password=hunter2",
        "postgresql+nothing://127.0.0.1:1/db?password=hunter2",
        "nothing://me:hunter2@127.0.0.1:port/db",
    ],
)
def test_a_password_is_not_shown(folder: Path, storage: str) -> None:
    (folder / "study.toml").write_text(
        f'name = "s"\nstorage = "{storage}"\n[space]\nx = {{ type = "float", low = 0.0, high = 1.0 }}\n'
    )
    for command in ("status", "ask"):
        result = invoked(command, "study.toml")
        assert result.exit_code == 1
        assert "hunter2" not in result.output
        assert "127.0.0.1" in result.stderr
