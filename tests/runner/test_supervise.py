"""The process that runs one trial's command, and the value read from what the command printed."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from jumbo_bo.runner import supervise
from jumbo_bo.runner.attempt import outcome
from jumbo_bo.runner.engines import Local
from jumbo_bo.study.job import Job
from waiting import wait_for

PYTHON = (sys.executable, "-I", "-S")


def prepared(tmp_path: Path, command: Sequence[str], **job: Any) -> Path:
    folder = tmp_path / "attempt-1"
    folder.mkdir()
    spec = {"command": list(command), "folder": str(tmp_path), "stdin": os.devnull, "environment": {}, "timeout": None}
    supervise.write(folder / "job.json", spec | job)
    return folder


def supervised(
    tmp_path: Path,
    command: Sequence[str],
    grace: float = supervise.GRACE,
    stop: bool = False,
    stubborn: bool = False,
    **job: Any,
) -> tuple[dict[str, Any], Path]:
    folder = prepared(tmp_path, command, **job)
    if stop:
        (folder / "stop").touch()
    lock = supervise.take(folder / "lock")
    assert lock is not None
    code = f"import runpy; s = runpy.run_path({supervise.__file__!r}); s['supervise'].__globals__['GRACE'] = {grace}; "
    if stubborn:
        code += "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "  # inherited, so from the start on
    code += f"import pathlib; s['supervise'](pathlib.Path({str(folder)!r}), {lock})"
    try:
        subprocess.run([*PYTHON, "-c", code], check=True, pass_fds=(lock,))
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
def test_the_whole_group_is_ended(tmp_path: Path, how: str) -> None:
    # The command ignores SIGTERM, and so does a child of it.
    child = "import time; time.sleep(300)"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-I', '-S', '-c', {child!r}], close_fds=0)"
    start, limit = time.monotonic(), 0.5 if how == "timeout" else None
    result, folder = supervised(
        tmp_path, [*PYTHON, "-c", code], grace=0.2, stop=how == "stop", stubborn=True, timeout=limit
    )
    assert time.monotonic() - start < 200
    assert (result["timed_out"], result["stopped"]) == (how == "timeout", how == "stop")
    assert result["exit"] == -signal.SIGKILL
    wait_for(lambda: not supervise.held(folder / "lock"))  # the child holds a copy, until the system has cleaned up


def test_command_that_cannot_be_started(tmp_path: Path) -> None:
    result, _ = supervised(tmp_path, ["./no-such-program"])
    assert result["exit"] is None
    assert "no-such-program" in result["error"]


# Ends when it is told to, by a file `go`.
UNTIL_GO = """
import os, time
print("up", flush=True)
end = time.monotonic() + 300
while not os.path.exists("go") and time.monotonic() < end:
    time.sleep(0.02)
print(0.25)
"""
SLOW = [*PYTHON, "-c", UNTIL_GO]
JOB = Job(("train",), value="loss")


@pytest.fixture
def engine() -> Iterator[Local]:
    made = Local()
    yield made
    made.close()


def started(engine: Local, folder: Path) -> int:
    """The number of the supervisor once the command is at work."""
    engine.start(folder)
    assert engine.alive(folder)
    wait_for(lambda: (folder / "stdout").exists() and bool((folder / "stdout").read_text()))
    return engine._children[0].pid


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def kill(engine: Local, *pids: int) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    with suppress(subprocess.TimeoutExpired):
        engine._children[0].wait(0.1)


def test_the_recorder_outlives_the_supervisor(tmp_path: Path, engine: Local) -> None:
    """The command goes on, is waited for, and its result counts."""
    folder, before = prepared(tmp_path, SLOW), time.monotonic()
    supervisor, up = started(engine, folder), time.monotonic()
    kill(engine, supervisor)
    assert engine.alive(folder)
    assert outcome(folder, JOB, alive=True) is None
    shortest = time.monotonic() - up
    (tmp_path / "go").touch()
    wait_for(lambda: not engine.alive(folder))
    assert not (folder / "result.json").exists()
    end = outcome(folder, JOB)
    assert end is not None
    assert (end.value, end.error) == (0.25, None)
    assert shortest < end.seconds < time.monotonic() - before


linux = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds the recorder in /proc")


@linux
def test_the_supervisor_outlives_the_recorder(tmp_path: Path, engine: Local) -> None:
    folder = prepared(tmp_path, SLOW)
    supervisor = started(engine, folder)
    kill(engine, *children(supervisor))
    (tmp_path / "go").touch()
    wait_for((folder / "result.json").exists)
    assert not (folder / "ended.json").exists()
    end = outcome(folder, JOB)
    assert end is not None
    assert (end.value, end.error) == (0.25, None)


@linux
@pytest.mark.parametrize(("end", "code"), [("print(0.25)", 0), ("os._exit(3)", 3), ("os.kill(os.getpid(), 9)", -9)])
def test_a_recorder_killed_before_it_wrote_leaves_the_exit_code(
    tmp_path: Path, engine: Local, end: str, code: int
) -> None:
    folder = prepared(tmp_path, [*PYTHON, "-c", f"import os; print('up', flush=True); {end}"])
    (folder / "ended.json.new").mkdir()  # so that it cannot, and tries again and again
    supervisor = started(engine, folder)
    (recorder,) = children(supervisor)
    wait_for(lambda: all("Z" in _state(command) for command in children(recorder)))
    kill(engine, recorder)
    wait_for((folder / "result.json").exists)
    assert json.loads((folder / "result.json").read_text())["exit"] == code


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@linux
def test_without_a_recorder_the_command_can_still_be_stopped(tmp_path: Path, engine: Local) -> None:
    folder = prepared(tmp_path, [*PYTHON, "-c", "import time; print('up', flush=True); time.sleep(60)"])
    supervisor = started(engine, folder)
    kill(engine, *children(supervisor))
    (folder / "stop").touch()
    wait_for((folder / "result.json").exists)
    result = json.loads((folder / "result.json").read_text())
    assert (result["stopped"], result["exit"]) == (True, -signal.SIGTERM)
    wait_for(lambda: not engine.alive(folder))


def test_another_folder_in_the_place_of_a_deleted_one_gets_nothing(tmp_path: Path, engine: Local) -> None:
    """Its command is ended, and how it ended is not taken for a result of the new one."""
    folder = prepared(tmp_path, SLOW)
    started(engine, folder)
    shutil.rmtree(folder)
    prepared(tmp_path, SLOW)
    assert engine._children[0].wait(100) is not None
    assert [path.name for path in folder.iterdir()] == ["job.json"]


@linux
def test_lock_lives_as_long_as_the_command(tmp_path: Path, engine: Local) -> None:
    """Also when nobody is left to write down how it ended: it is waited for, and what it printed proves nothing."""
    folder = prepared(tmp_path, SLOW)
    supervisor = started(engine, folder)
    kill(engine, *children(supervisor), supervisor)
    assert engine.alive(folder)
    (tmp_path / "go").touch()
    wait_for(lambda: not engine.alive(folder))
    assert outcome(folder, JOB) is None


def test_a_command_that_has_its_value_when_it_is_stopped_is_finished(tmp_path: Path) -> None:
    code = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit()); print(0.5, flush=True); "
    _, folder = supervised(tmp_path, [*PYTHON, "-c", code + "time.sleep(60)"], stop=True)
    end = outcome(folder, JOB)
    assert end is not None  # it may also have been stopped before it had printed anything
    assert (end.value, end.error) == (0.5 if (folder / "stdout").read_text() else None, None)


@pytest.mark.parametrize(("exit_code", "value"), [(0, 0.5), (1, None), (-15, None)])
def test_stopped_counts_only_without_a_value(tmp_path: Path, exit_code: int, value: float | None) -> None:
    (tmp_path / "stdout").write_text("0.5\n")
    (tmp_path / "stderr").touch()
    result = {"exit": exit_code, "error": None, "timed_out": False, "stopped": True, "seconds": 1.0}
    supervise.write(tmp_path / "result.json", result)
    end = outcome(tmp_path, JOB)
    assert end is not None
    assert (end.value, end.error) == (value, None)


def test_a_living_supervisor_has_the_last_word(tmp_path: Path) -> None:
    (tmp_path / "stdout").write_text("0.5\n")
    supervise.write(tmp_path / "ended.json", {"exit": 0, "error": None, "seconds": 1.0})
    assert outcome(tmp_path, JOB, alive=True) is None
    for other in (time.time() - 60, time.time() + 3600):  # it does not come; the clock was set back meanwhile
        os.utime(tmp_path / "ended.json", (other, other))
        for alive in (True, False):
            end = outcome(tmp_path, JOB, alive)
            assert end is not None
            assert end.value == 0.5


@pytest.mark.parametrize("found", ['{"accuracy": 0.9}', "[1, 2]", "0.5", "{", "", "[" * 100_000])
def test_something_else_with_the_name_of_a_result_is_none(tmp_path: Path, found: str) -> None:
    (tmp_path / "result.json").write_text(found)
    assert outcome(tmp_path, JOB) is None


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
        ('{"loss": 1' + "0" * 400 + "}", 'not a finite number: {"loss": 1000'),
        ("1" + "0" * 400, "not a finite number: 1000"),
        ("9" * 5000, "not a finite number: 9999"),
        ('{"loss": 12345678901234567891}', 12345678901234567891.0),
    ],
    ids=range(20),
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
