"""The process that runs one trial's command, and the value read from what the command printed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from jumbo_bo.runner import supervise
from jumbo_bo.runner.attempt import outcome
from jumbo_bo.runner.engines import Local
from jumbo_bo.study.job import Job
from waiting import wait_for

PYTHON = (sys.executable, "-I", "-S")


def supervised(tmp_path: Path, command: Sequence[str], **job: Any) -> tuple[dict[str, Any], Path]:
    folder = tmp_path / "attempt-1"
    folder.mkdir()
    spec = {"command": list(command), "folder": str(tmp_path), "stdin": os.devnull, "environment": {}, "timeout": None}
    supervise.write(folder / "job.json", spec | job)
    lock = supervise.take(folder / "lock")
    assert lock is not None
    try:
        supervise.supervise(folder, lock)
    finally:
        os.close(lock)
    return json.loads((folder / "result.json").read_text()), folder


def test_supervisor_keeps_everything_the_command_says(tmp_path: Path) -> None:
    code = "import os, sys; print(os.environ['WHO'], os.getcwd()); sys.stderr.write('oops'); sys.exit(3)"
    result, folder = supervised(tmp_path, [*PYTHON, "-c", code], environment={"WHO": "me"})
    assert (result["exit"], result["error"], result["timed_out"], result["stopped"]) == (3, None, False, False)
    assert (folder / "stdout").read_text() == f"me {tmp_path}\n"
    assert (folder / "stderr").read_text() == "oops"
    assert not supervise.held(folder / "lock")


@pytest.mark.parametrize("how", ["timeout", "stop"])
def test_the_whole_group_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setattr(supervise, "GRACE", 0.2)
    # The command ignores SIGTERM, and so does a child of it.
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    child = f"{stubborn}print('up', flush=True); time.sleep(60)"
    code = (
        f"{stubborn}import subprocess, sys; subprocess.run([sys.executable, '-I', '-S', '-c', {child!r}], close_fds=0)"
    )
    if how == "stop":
        (tmp_path / "attempt-1").mkdir()
        (tmp_path / "attempt-1" / "stop").touch()
        monkeypatch.setattr(Path, "mkdir", lambda *_, **__: None)
    start = time.monotonic()
    result, folder = supervised(tmp_path, [*PYTHON, "-c", code], timeout=0.5 if how == "timeout" else None)
    assert time.monotonic() - start < 20
    assert (result["timed_out"], result["stopped"]) == (how == "timeout", how == "stop")
    assert result["exit"] == -signal.SIGKILL
    for _ in range(100):  # the child holds a copy of the lock, until the system has cleaned up after it
        if not supervise.held(folder / "lock"):
            break
        time.sleep(0.05)
    assert not supervise.held(folder / "lock")


def test_command_that_cannot_be_started(tmp_path: Path) -> None:
    result, _ = supervised(tmp_path, ["./no-such-program"])
    assert result["exit"] is None
    assert "no-such-program" in result["error"]


def test_lock_lives_as_long_as_the_command(tmp_path: Path) -> None:
    """Also when its supervisor is killed: then the command goes on alone, and is waited for."""
    folder = tmp_path / "attempt-1"
    folder.mkdir()
    command = [*PYTHON, "-c", "import time; print('up', flush=True); time.sleep(1.5)"]
    spec = {"command": command, "folder": str(tmp_path), "stdin": os.devnull, "environment": {}, "timeout": None}
    supervise.write(folder / "job.json", spec)
    engine = Local()
    engine.start(folder)
    assert engine.alive(folder)
    wait_for(lambda: (folder / "stdout").exists() and bool((folder / "stdout").read_text()))
    os.kill(engine._children[0].pid, signal.SIGKILL)
    engine._children[0].wait()
    assert engine.alive(folder)
    wait_for(lambda: not engine.alive(folder))
    assert not (folder / "result.json").exists()


# The value


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ('{"loss": 0.5}', 0.5),
        ('epoch 1\n{"loss": 2}\n\n', 2.0),
        ('{"loss": 1}\n{"loss": 0.25}\nsaved model\n', 0.25),
        ('{"loss": 0.25}\n{"done": true}', 0.25),
        ("noise\n-1.5e-3\n", -0.0015),
        ("7\ndone", 'no JSON line like {"loss": 0.5}; its last line was done'),
        ("", "it printed nothing"),
        ('{"accuracy": 0.9}', 'its last line was {"accuracy": 0.9}'),
        ('{"loss": NaN}', 'not a finite number: {"loss": NaN}'),
        ('{"loss": "0.5"}', "not a finite number"),
        ('{"loss": true}', "not a finite number"),
        ('{"loss": null}', "not a finite number"),
        ("Infinity", "not a finite number"),
        ("[" * 100_000, "no JSON line"),
        ("\udcff\udcfe", "no JSON line"),
        ("x" * 3_000_000 + '\n{"loss": 1.0}', 1.0),
    ],
    ids=range(16),
)
def test_value_is_read_from_the_last_json_line(tmp_path: Path, printed: str, expected: float | str) -> None:
    (tmp_path / "stdout").write_bytes(printed.encode(errors="surrogateescape"))
    result = {"exit": 0, "error": None, "timed_out": False, "stopped": False, "seconds": 1.0}
    supervise.write(tmp_path / "result.json", result)
    end = outcome(tmp_path, Job(("train",), value="loss"))
    assert end is not None
    if isinstance(expected, float):
        assert (end.value, end.error) == (expected, None)
    else:
        assert end.value is None
        assert end.error is not None
        assert expected in end.error
        assert len(end.error) < 500
        assert str(tmp_path) in end.error, "says where to look"


def test_the_supervisor_needs_only_the_standard_library() -> None:
    code = f"import runpy, sys; runpy.run_path({supervise.__file__!r}, run_name='x'); print(*sys.modules)"
    loaded = subprocess.run([*PYTHON, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names) - {"__main__"}
