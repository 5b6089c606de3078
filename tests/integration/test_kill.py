"""`jumbo run`, killed with SIGKILL twenty times: no finished trial is lost, and none is evaluated again."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

from jumbo_bo.runner.supervise import held

pytestmark = pytest.mark.integration

KILLS, TRIALS, WORKERS = 20, 40, 4

STUDY = f"""
name = "killed"
trials = {TRIALS}
method = "random"

[space]
x = {{ type = "float", low = 0.0, high = 1.0 }}
n = {{ type = "int", low = 1, high = 8 }}

[objective]
command = ["{sys.executable}", "-I", "-S", "objective.py"]
input = "json"
workers = {WORKERS}
"""

# One write per line with O_APPEND: lines of processes that are killed or run side by side are whole.
OBJECTIVE = """
import json, os, random, sys, time
params = json.load(sys.stdin)
log = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
def note(what):
    os.write(log, (json.dumps([what, params]) + "\\n").encode())
note("start")
time.sleep(random.Random(json.dumps(params)).uniform(0.2, 0.6))
note("end")
print(json.dumps({"value": params["x"] * params["n"]}))
"""


def start(folder: Path, limit: int) -> subprocess.Popen[bytes]:
    code = "from jumbo_bo.cli import main; main()"
    command = [sys.executable, "-c", code, "run", "study.toml", "--trials", str(limit)]
    with (folder / "output").open("ab") as output:
        return subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)


def family(folder: Path) -> list[int]:
    """Every supervisor and command of this study."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            line = (process / "cmdline").read_bytes()
            home = os.readlink(process / "cwd")
        except OSError:  # no process, or no longer one
            continue
        supervisor = b"supervise.py" in line and str(folder).encode() in line
        if supervisor or (b"objective.py" in line and home == str(folder)):
            found.append(int(process.name))
    return found


def kill(pids: list[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def finished(folder: Path) -> dict[int, tuple[str, float | None, str]]:
    """Number -> state, value and parameters of the trials in the storage."""
    try:
        study = optuna.load_study(study_name="killed", storage=f"sqlite:///{folder}/study.db")
    except KeyError:  # killed before it made the study
        return {}
    ended = [t for t in study.get_trials() if t.state.is_finished()]
    return {t.number: (t.state.name, t.value, key(t.params)) for t in ended}


def with_result(folder: Path) -> set[str]:
    """Parameters of the attempts that have a result."""
    results = (folder / "killed.runs").glob("trial-*/attempt-*/result.json")
    return {key(json.loads((path.parent / "params.json").read_text())) for path in results}


def evaluations(folder: Path, what: str) -> Counter[str]:
    log = folder / "log"
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    return Counter(key(params) for event, params in lines if event == what)


def key(params: dict[str, float]) -> str:
    return json.dumps(params, sort_keys=True)


def wait_until_at_work(folder: Path, process: subprocess.Popen[bytes], starts: int) -> None:
    """Until it holds the lock of its folder and that many evaluations have begun: counted in what it does, not in
    seconds, the moment is as good on a busy machine."""
    lock, deadline = folder / "killed.runs" / "lock", time.monotonic() + 60
    while not (lock.exists() and held(lock)) or evaluations(folder, "start").total() < starts:
        assert process.poll() is None, (folder / "output").read_text()
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="finds the processes to kill in /proc")
def test_twenty_kills(tmp_path: Path) -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "objective.py").write_text(OBJECTIVE)
    rng = random.Random(20)
    limit = TRIALS
    hit: Counter[bool] = Counter()
    before: dict[int, tuple[str, float | None, str]] = {}  # what the storage had at the last kill
    done: set[str] = set()  # configurations that were stored or had a result then
    starts: Counter[str] = Counter()  # evaluations begun until then
    for i in range(KILLS):
        if len(before) >= limit - 2 * WORKERS:  # a fast machine: there must be something left to kill
            limit += 2 * WORKERS
        process = start(tmp_path, limit)
        wait_until_at_work(tmp_path, process, starts.total() + rng.randrange(4))
        time.sleep(rng.uniform(0.0, 0.25))
        whole, others = i % 2 == 1, family(tmp_path)
        hit[whole] += bool(others)
        kill([process.pid, *(others if whole else [])])
        assert process.wait() == -signal.SIGKILL, (tmp_path / "output").read_text()
        # Without its coordinator a supervisor may still finish: what it has done by the next start is looked at then.
        now, has_result, started = finished(tmp_path), with_result(tmp_path), evaluations(tmp_path, "start")
        assert now.items() >= before.items(), "a finished trial was lost or changed"
        assert not (started - starts).keys() & done, "a finished configuration was evaluated again"
        done = has_result | {params for _, _, params in now.values()}
        before, starts = now, started
    assert min(hit[False], hit[True]) > KILLS // 5, "too few kills have met a running command; the test shows nothing"

    process = start(tmp_path, limit)
    assert process.wait(100) == 0, (tmp_path / "output").read_text()
    assert not (evaluations(tmp_path, "start") - starts).keys() & done
    assert finished(tmp_path).items() >= before.items()
    trials = optuna.load_study(study_name="killed", storage=f"sqlite:///{tmp_path}/study.db").get_trials()
    assert Counter(t.state for t in trials) == {TrialState.COMPLETE: limit}
    assert all(t.value == t.params["x"] * t.params["n"] for t in trials)
    assert len({key(t.params) for t in trials}) == limit
    assert with_result(tmp_path) == {key(t.params) for t in trials}
