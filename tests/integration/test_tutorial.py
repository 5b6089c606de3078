"""The tutorial, followed to the letter: a fresh environment, `pip install .` of what is committed, then every block."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path

import optuna
import pytest

import test_docs

pytestmark = pytest.mark.integration


def test_tutorial_in_a_new_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, environment, folder = tmp_path / "source", tmp_path / "environment", tmp_path / "mine"
    folder.mkdir()
    copy = ["git", "clone", "--quiet", "--depth", "1", f"file://{test_docs.REPO}", source]
    if subprocess.run(copy, capture_output=True, check=False).returncode:
        pytest.skip("needs git and the repository of this checkout")
    venv.create(environment, with_pip=True)
    programs = environment / "bin"
    install = [programs / "pip", "install", "--quiet", "--disable-pip-version-check", "."]
    done = subprocess.run(install, cwd=source, capture_output=True, text=True, check=False)
    if any(words in done.stderr for words in ("No matching distribution", "Connection", "Temporary failure")):
        pytest.skip("needs a network, to install the package and what it needs")
    assert done.returncode == 0, done.stderr
    for name in [name for name in os.environ if name.startswith("PYTHON")]:
        monkeypatch.delenv(name)
    page = source / "docs" / "tutorial.md"
    test_docs.run_page(page, folder, lambda code: test_docs.bash(code, folder, programs))

    study = optuna.load_study(study_name="fourth", storage=f"sqlite:///{folder}/study.db")
    assert len([t for t in study.get_trials() if t.state.name == "COMPLETE"]) == 25
    assert study.trials[0].value < 0.13, "the first trial already knows the old runs"
    assert study.best_value < 0.11
    assert (folder / "report.html").stat().st_size > 100_000
