"""What the commands load in a fresh process: counted in modules, not in seconds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

STUDY = """
name = "quick"
storage = "STORAGE"
[space]
x = { type = "float", low = 0.0, high = 1.0 }
[[history]]
files = "old.csv"
[stop]
gain = 0.01
"""
SHOW = """
import sys
from jumbo_bo.cli import main
try:
    main()
finally:
    print("loaded:", *sys.modules, file=sys.stderr)
"""
SLOW = {"alembic", "cma", "jax", "polars", "scipy.stats", "torch"}
MODELS = {"scipy", "safetensors", "jumbo_bo.optimizer", "jumbo_bo.models.gp", "jumbo_bo.methods.base"}


@pytest.fixture(scope="module", params=["sqlite:///study.db", "study.journal"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with one result and one open experiment, and what was learned in the cache."""
    made = tmp_path_factory.mktemp("quick")
    rows = [f"{i / 20},{(i / 20 - 0.3) ** 2}" for i in range(20)]
    (made / "old.csv").write_text("\n".join(["x,value", *rows]) + "\n")
    (made / "study.toml").write_text(STUDY.replace("STORAGE", request.param))
    for command in (("ask",), ("tell", "0", "0.5"), ("ask",)):
        loaded(made, *command)
    return made


def loaded(folder: Path, command: str, *more: str) -> set[str]:
    """The modules of a process, which succeeds."""
    run = subprocess.run(
        [sys.executable, "-c", SHOW, command, "study.toml", *more],
        cwd=folder,
        env=os.environ | {"JUMBO_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return set(run.stderr.partition("loaded:")[2].split())


@pytest.mark.parametrize("command", [("status",), ("status", "--json"), ("ask", "--again")])
def test_looking_at_a_study_loads_no_model(folder: Path, command: tuple[str, ...]) -> None:
    assert not loaded(folder, *command) & (SLOW | MODELS)


def test_a_suggestion_from_the_cache_does_not_load_what_reads_or_learns(folder: Path) -> None:
    found = loaded(folder, "ask")
    assert "jumbo_bo.models.gp" in found
    assert not found & SLOW


def test_a_changed_file_is_read(folder: Path) -> None:
    text = (folder / "old.csv").read_text()
    with (folder / "old.csv").open("a") as file:
        file.write("0.51,0.1\n")
    assert "polars" in loaded(folder, "ask")
    (folder / "old.csv").write_text(text)


def test_a_journal_needs_no_database(folder: Path) -> None:
    journal = (folder / "study.journal").exists()
    assert ("sqlalchemy" in loaded(folder, "status")) is not journal
