"""`jumbo serve` before it serves: what is missing or not allowed is said, and nothing is made."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from widgets import jumbo, stored


def test_what_it_needs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "waitress", None)
    result = jumbo("serve", "study.toml")
    assert result.exit_code == 1
    said = " ".join(result.output.split())
    assert said == "jumbo serve: this needs waitress, which is not installed; run: pip install 'jumbo-bo[serve]'"


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
def test_other_machines_stay_out(folder: Path, host: str) -> None:
    result = jumbo("serve", "study.toml", "--host", host)
    assert result.exit_code == 1
    assert f"--host {host} lets other machines in" in result.output
    assert not (folder / "study.journal").exists()


def test_several_goals_have_no_page(folder: Path) -> None:
    space = '[space]\nx = { type = "float", low = 0, high = 1 }'
    goals = '[goals]\nstrength = "maximize"\nprice = "minimize"'
    (folder / "study.toml").write_text(f'name = "alloy"\n{space}\n{goals}\n')
    result = jumbo("serve", "study.toml")
    assert result.exit_code == 1
    assert "study.toml has several goals" in result.output
    assert not (folder / "study.journal").exists()


def test_no_study(folder: Path) -> None:
    result = jumbo("serve", "other.toml")
    assert result.exit_code == 1
    assert "jumbo serve: other.toml does not exist" in result.output


def test_why_an_experiment_failed(folder: Path) -> None:
    jumbo("ask", "study.toml")
    result = jumbo("tell", "study.toml", "0", "--failed", "--reason", "the tube burst")
    assert result.exit_code == 0
    (trial,) = stored()
    assert trial.user_attrs["error"] == "the tube burst"
    assert "the tube burst" in jumbo("status", "study.toml").output
    assert "add --replace" in jumbo("tell", "study.toml", "0", "1", "--reason", "why").output
