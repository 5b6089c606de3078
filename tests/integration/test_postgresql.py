"""Studies in a real PostgreSQL: several processes at once, and a study that moves there from SQLite."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import FrozenTrial
from typer.testing import CliRunner

from jumbo_bo import cli
from jumbo_bo.data.storage import opened

pytestmark = pytest.mark.integration

OBJECTIVE = """
import json, sys
p = json.load(sys.stdin)
print(json.dumps({"value": (p["x"] - 0.3) ** 2 + 0.1 * (p["kind"] == "b")}))
"""
STUDY = """
name = "moved"
trials = 12
storage = "STORAGE"

[space]
x = { type = "float", low = 0, high = 1 }
kind = { type = "categorical", choices = ["a", "b"] }

[[history]]
files = "old.csv"

[objective]
command = ["python", "objective.py"]
input = "json"
"""
WORKER = """
import sys, optuna
from optuna.distributions import IntDistribution
from jumbo_bo import JumboSampler, Space
from jumbo_bo.data.storage import opened
space = Space({"a": IntDistribution(0, 9), "b": IntDistribution(0, 9)})
with opened(sys.argv[1]) as storage:
    study = optuna.load_study(study_name="three", storage=storage, sampler=JumboSampler(search_space=space, seed=0))
    study.optimize(lambda t: (t.suggest_int("a", 0, 9) - 3) ** 2 + (t.suggest_int("b", 0, 9) - 7) ** 2, n_trials=10)
"""
# A grid of 10 x 10, where all want the same few configurations; the server may go away meanwhile.
ONE_OF_MANY = """
import sys, time, optuna
from optuna.distributions import IntDistribution
from jumbo_bo import JumboSampler, Space, open_storage
address, trials, seconds = sys.argv[1:]
sampler = JumboSampler(search_space=Space({"a": IntDistribution(0, 9), "b": IntDistribution(0, 9)}), seed=0)
study = optuna.load_study(study_name="many", storage=open_storage(address), sampler=sampler)
def objective(trial):
    a, b = trial.suggest_int("a", 0, 9), trial.suggest_int("b", 0, 9)
    time.sleep(float(seconds))
    return (a - 3) ** 2 + (b - 7) ** 2
study.optimize(objective, n_trials=int(trials))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "objective.py").write_text(OBJECTIVE)
    rows = [f"{i / 40},{kind},{(i / 40 - 0.35) ** 2 + 0.2 * (kind == 'b')}" for i in range(40) for kind in "ab"]
    (tmp_path / "old.csv").write_text("\n".join(["x,kind,value", *rows]) + "\n")
    return tmp_path


def test_jumbo_find_reads_and_makes_nothing(folder: Path, own_server: Any) -> None:
    (folder / "study.toml").write_text(STUDY.replace("STORAGE", "sqlite:///own.db"))

    def found() -> dict[str, Any]:
        result = CliRunner().invoke(cli.app, ["find", str(folder / "study.toml"), own_server.url, "--json"])
        assert result.exit_code == 0, result.output
        said: dict[str, Any] = json.loads(result.stdout)
        return said

    assert ["without Optuna studies" in place["why"] for place in found()["skipped"]] == [True]
    assert ["without Optuna studies" in place["why"] for place in found()["skipped"]] == [True], "no tables were made"
    with opened(own_server.url) as storage:
        study = optuna.create_study(study_name="old", storage=storage)
        study.optimize(lambda t: t.suggest_float("x", 0, 1) + (t.suggest_categorical("kind", "ab") == "a"), n_trials=12)
    (each,) = found()["found"]
    assert (each["name"], each["used"], each["usable"]) == ("old", 12, True)


def jumbo_run(folder: Path, storage: str, trials: int) -> None:
    (folder / "study.toml").write_text(STUDY.replace("STORAGE", storage))
    command = [Path(sys.executable).with_name("jumbo"), "run", "study.toml", "--trials", str(trials)]
    path = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin", "JUMBO_CACHE": str(folder / "cache")}
    done = subprocess.run(command, cwd=folder, env=path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def trials(address: str, study: str = "moved") -> list[FrozenTrial]:
    with opened(address) as storage:
        return optuna.load_study(study_name=study, storage=storage).get_trials()


def test_a_study_moves_from_sqlite_and_goes_on(folder: Path, postgresql: str) -> None:
    for name in ("stays", "moves"):
        jumbo_run(folder, f"sqlite:///{name}.db", 5)
    jumbo_run(folder, "sqlite:///stays.db", 10)
    with opened(f"sqlite:///{folder}/moves.db") as source, opened(postgresql) as destination:
        optuna.copy_study(from_study_name="moved", from_storage=source, to_storage=destination)
    jumbo_run(folder, postgresql, 10)
    here, there = trials(f"sqlite:///{folder}/stays.db"), trials(postgresql)
    assert [t.state.name for t in there] == ["COMPLETE"] * 10
    assert [(t.params, t.value) for t in there] == [(t.params, t.value) for t in here], "as if it had never moved"
    assert [t.user_attrs["why"] for t in there] == [t.user_attrs["why"] for t in here]


def test_three_processes_share_one_study(postgresql: str) -> None:
    with opened(postgresql) as storage:
        optuna.create_study(study_name="three", storage=storage)
    workers = [subprocess.Popen([sys.executable, "-c", WORKER, postgresql]) for _ in range(3)]
    assert [worker.wait(1200) for worker in workers] == [0, 0, 0]
    found = trials(postgresql, "three")
    assert [t.state.name for t in found] == ["COMPLETE"] * 30
    assert max(Counter(tuple(t.params.values()) for t in found).values()) == 1, "no configuration twice"
    assert min(t.value for t in found) == 0


def start_many(address: str, processes: int, trials: int, seconds: float) -> list[subprocess.Popen[bytes]]:
    with opened(address) as storage:
        optuna.create_study(study_name="many", storage=storage)
    command = [sys.executable, "-c", ONE_OF_MANY, address, str(trials), str(seconds)]
    return [subprocess.Popen(command) for _ in range(processes)]


def check_all_different(address: str, n: int) -> None:
    found = trials(address, "many")
    assert [t.state.name for t in found] == ["COMPLETE"] * n
    assert max(Counter(tuple(t.params.values()) for t in found).values()) == 1, "no configuration twice"
    assert all(t.value == (t.params["a"] - 3) ** 2 + (t.params["b"] - 7) ** 2 for t in found)


def test_sixteen_processes_that_decide_at_once_try_nothing_twice(postgresql: str) -> None:
    workers = start_many(postgresql, 16, 6, 0.0)
    assert [worker.wait(1200) for worker in workers] == [0] * 16
    check_all_different(postgresql, 96)


def test_a_restart_of_the_server_leaves_no_trial_behind(own_server: Any) -> None:
    workers = start_many(own_server.url, 4, 12, 0.2)
    for n in (6, 20):
        deadline = time.monotonic() + 600
        while len(trials(own_server.url, "many")) < n:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        own_server.stop()
        assert all(worker.poll() is None for worker in workers)
        time.sleep(1.0)
        own_server.start()
    assert [worker.wait(1200) for worker in workers] == [0] * 4
    check_all_different(own_server.url, 48)
