from pathlib import Path

import pytest
from widgets import STUDY, TRAIN


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a study and its program."""
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path
