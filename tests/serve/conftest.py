from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from people_of_a_lab import STUDY, Lab


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a study."""
    monkeypatch.setenv("JUMBO_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


@pytest.fixture
def lab(folder: Path) -> Iterator[Lab]:
    """Its page, with somebody at work in the background."""
    made = Lab(folder / "study.toml")
    made.work.start()
    yield made
    made.work.stop()
    while not made.work.ended(1.0):
        pass
