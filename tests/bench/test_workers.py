from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from jumbo_bo.bench.workers import serve, workers


def jobs(job: dict[str, Any]) -> None:
    """What the workers of these tests do."""
    print("printed, and no answer")
    match job["do"]:
        case "write":
            Path(job["to"]).write_text(f"{os.getpid()} {os.environ['OMP_NUM_THREADS']}")
        case "raise":
            raise ValueError("not today")
        case "die":
            print("last words", file=sys.stderr, flush=True)
            os._exit(3)


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    return Path(__file__).stem


def test_a_worker_does_one_job_after_the_other(module: str, tmp_path: Path) -> None:
    with workers(module) as do:
        for name in ("first", "second"):
            assert do({"do": "write", "to": str(tmp_path / name)}) is None
        first, second = ((tmp_path / name).read_text() for name in ("first", "second"))
    assert first == second
    assert first.split()[0] != str(os.getpid())
    assert first.split()[1] == "1"


def test_a_job_that_raises_is_told_and_the_worker_goes_on(module: str, tmp_path: Path) -> None:
    with workers(module) as do:
        do({"do": "write", "to": str(tmp_path / "before")})
        error = do({"do": "raise"})
        assert error is not None
        assert error.splitlines()[-1] == "ValueError: not today"
        do({"do": "write", "to": str(tmp_path / "after")})
    assert (tmp_path / "before").read_text() == (tmp_path / "after").read_text()


def test_a_worker_that_dies_takes_one_job_with_it(module: str, tmp_path: Path) -> None:
    with workers(module) as do:
        error = do({"do": "die"})
        assert error is not None
        assert error.endswith("last words")
        assert do({"do": "write", "to": str(tmp_path / "after")}) is None


def test_workers_end_with_their_user(module: str, tmp_path: Path) -> None:
    with workers(module) as do:
        do({"do": "write", "to": str(tmp_path / "done")})
        process = int((tmp_path / "done").read_text().split()[0])
        os.kill(process, 0)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)
    pytest.fail("the worker is still there")


if __name__ == "__main__":
    serve(jobs)
