"""A folder for what was learned that others use as well, and may have put anything into."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import pytest
from test_cache import SMALL, runs, same

from jumbo_bo.learning import cache
from jumbo_bo.paths import whole


@pytest.fixture
def held(tmp_path: Path) -> Path:
    """The folder of a net that is kept, and whose lock somebody else holds for ever."""
    cache.learned(SMALL, runs(), 0, tmp_path)
    (lock,) = tmp_path.glob("*.lock")
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield tmp_path


def test_what_is_kept_is_read_while_somebody_holds_the_lock(held: Path) -> None:
    start = time.monotonic()
    assert cache.learned(SMALL, runs(), 0, held) is not None
    assert time.monotonic() - start < 100


def test_who_waits_says_so_and_then_learns_as_well(
    held: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (file,) = held.glob("*.safetensors")
    kept = cache.kept(SMALL, runs(), 0, held)
    file.unlink()
    monkeypatch.setattr(cache, "PATIENCE", 1.0)
    monkeypatch.setattr("jumbo_bo.waiting.SHORT", 0.02)
    assert same(cache.learned(SMALL, runs(), 0, held), kept)
    said = capsys.readouterr().err
    assert said.startswith("Waiting for another process that learns from the same old runs, and holds ")
    assert said.rstrip().endswith("(at most 1 s, then this one learns as well) ...")
    assert file.exists()


def test_a_link_in_place_of_the_lock_leaves_its_target_alone(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    folder = tmp_path / "cache"
    folder.mkdir()
    lock = cache.place(SMALL, runs(), 0, folder).with_suffix(".lock")
    lock.symlink_to(precious)
    assert cache.learned(SMALL, runs(), 0, folder) is not None
    assert precious.read_text() == "mine"
    assert cache.kept(SMALL, runs(), 0, folder) is not None  # learned and kept, without a lock


def test_a_link_in_place_of_the_file_is_replaced_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    folder = tmp_path / "cache"
    folder.mkdir()
    file = cache.place(SMALL, runs(), 0, folder)
    file.symlink_to(precious)
    with pytest.warns(UserWarning, match="learning from the old runs again"):
        cache.learned(SMALL, runs(), 0, folder)
    assert precious.read_text() == "mine"
    assert not file.is_symlink()


def test_a_pipe_in_place_of_the_lock_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(cache.place(SMALL, runs(), 0, tmp_path).with_suffix(".lock"))
    assert cache.learned(SMALL, runs(), 0, tmp_path) is not None


def test_nobody_can_foresee_where_a_new_file_is_written(tmp_path: Path) -> None:
    names = set()
    for _ in range(2):
        with whole(tmp_path / "file") as part:
            names.add(part.name)
            assert part.exists()  # made by us alone, so it is no link
            part.write_text("new")
    assert len(names) == 2
    assert (tmp_path / "file").read_text() == "new"
    assert oct((tmp_path / "file").stat().st_mode & 0o777) == oct(0o666 & ~_umask())
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
