"""Two folders, as on two machines, run one study in PostgreSQL; a server that cuts connections is survived."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import optuna
import pytest
from optuna.trial import FrozenTrial, TrialState

from jumbo_bo.data.storage import opened
from jumbo_bo.runner.coordinator import Running
from jumbo_bo.runner.run import run
from jumbo_bo.study.study_file import load

pytestmark = pytest.mark.integration

STUDY = """
name = "{name}"
trials = 30
method = "random"
storage = "{storage}"

[space]
x = {{ type = "int", low = 1, high = 40 }}

[objective]
command = ["{python}", "-I", "-S", "objective.py"]
input = "json"
workers = 2
"""
OBJECTIVE = """
import json, os, sys, time
params = json.load(sys.stdin)
with open("log", "a") as log:
    log.write(json.dumps(params) + "\\n")
end = time.monotonic() + 300
while sum(1 for _ in open("log")) > 4 and not os.path.exists("../go") and time.monotonic() < end:
    time.sleep(0.02)
time.sleep(0.2)
print(params["x"])
"""


def machine(folder: Path, name: str, storage: str) -> Path:
    folder.mkdir()
    (folder / "study.toml").write_text(STUDY.format(name=name, storage=storage, python=sys.executable))
    (folder / "objective.py").write_text(OBJECTIVE)
    return folder


def start(folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", "from jumbo_bo.cli import main; main()", "run", "study.toml"]
    with (folder / "output").open("ab") as output:
        return subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)


def evaluated(folder: Path) -> list[int]:
    log = folder / "log"
    return [json.loads(line)["x"] for line in log.read_text().splitlines()] if log.exists() else []


def stored(name: str, storage: str) -> list[FrozenTrial]:
    with opened(storage) as database:
        return optuna.load_study(study_name=name, storage=database).get_trials()


def test_two_machines_share_a_study(tmp_path: Path, postgresql: str) -> None:
    a, b = (machine(tmp_path / name, "shared", postgresql) for name in ("a", "b"))
    first, second = start(a), start(b)
    deadline = time.monotonic() + 300
    while min(len(evaluated(a)), len(evaluated(b))) < 3:  # neither can do all the work before the other has begun
        assert time.monotonic() < deadline, (a / "output").read_text() + (b / "output").read_text()
        time.sleep(0.02)
    first.kill()
    assert first.wait() == -signal.SIGKILL
    (tmp_path / "go").touch()
    first = start(a)
    assert first.wait(600) == 0, (a / "output").read_text()
    assert second.wait(600) == 0, (b / "output").read_text()

    trials = stored("shared", postgresql)
    assert {t.state for t in trials} == {TrialState.COMPLETE}
    assert 30 <= len(trials) <= 31, "at the very end both may start the last one"
    assert len({t.params["x"] for t in trials}) == len(trials), "none was tried on both machines"
    assert Counter(evaluated(a)) + Counter(evaluated(b)) == Counter(t.params["x"] for t in trials), "each exactly once"


class Vandal:
    """Cuts every connection to the server a few times."""

    def __init__(self, server: str) -> None:
        self.server, self.cuts, self.notes = server.replace("+psycopg", ""), 0, list[str]()

    def note(self, text: str) -> None:
        self.notes.append(text)

    def finished(self, trial: FrozenTrial, best: FrozenTrial | None) -> None:
        if trial.number % 3 == 0:
            import psycopg

            with psycopg.connect(self.server) as connection:
                connection.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity "
                    "where pid <> pg_backend_pid() and datname = current_database()"
                )
            self.cuts += 1

    def tick(self, running: Sequence[Running], finished: int, limit: int) -> None:
        pass


def test_cut_connections_lose_nothing(tmp_path: Path, postgresql: str) -> None:
    folder = machine(tmp_path / "a", "cut", postgresql)
    (tmp_path / "go").touch()
    vandal = Vandal(postgresql)
    assert run(load(folder / "study.toml"), 9, vandal).finished == 9
    assert vandal.cuts == 3
    assert any("The storage is unavailable" in note for note in vandal.notes)
    trials = stored("cut", postgresql)
    assert Counter(evaluated(folder)) == Counter(t.params["x"] for t in trials)
    assert all(t.value == t.params["x"] for t in trials)
