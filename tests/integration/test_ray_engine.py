"""`jumbo run --engine ray` on a real local cluster of two nodes, one of which is lost in the middle."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import FrozenTrial, TrialState

from jumbo_bo.data.history import History, Task
from jumbo_bo.errors import UserError
from jumbo_bo.learning.elsewhere import trained_by
from jumbo_bo.learning.pretrain import Pretraining, pretrain
from jumbo_bo.runner.coordinator import Running
from jumbo_bo.runner.engines import OnRay
from jumbo_bo.runner.run import run
from jumbo_bo.space.space import Space
from jumbo_bo.study.study_file import load

ray = pytest.importorskip("ray", reason="needs the PyPI package ray (make test-integration installs it)")

pytestmark = [
    pytest.mark.integration,
    # Ray leaves sockets and processes to the garbage collector.
    pytest.mark.filterwarnings("ignore"),
]

STUDY = f"""
name = "cluster"
trials = 16
method = "random"

[space]
x = {{ type = "float", low = 0.0, high = 1.0 }}

[objective]
command = ["{sys.executable}", "-I", "-S", "objective.py"]
input = "json"
workers = 4
"""
OBJECTIVE = """
import json, os, sys, time
params = json.load(sys.stdin)
with open("log", "a") as log:
    log.write(json.dumps(params) + "\\n")
time.sleep(2)
print(json.dumps({"value": params["x"]}))
"""


class Cluster:
    def __init__(self) -> None:
        from ray.cluster_utils import Cluster as Local

        small = {"num_cpus": 2, "object_store_memory": 80 * 1024**2, "include_dashboard": False}
        self.cluster = Local(initialize_head=True, head_node_args=small)
        del small["include_dashboard"]
        self.node: Any = self.cluster.add_node(**small)
        self.cluster.wait_for_nodes()

    def lose_a_node(self) -> None:
        """As in a power failure: everything that runs there is gone at once."""
        there = [info.process.pid for infos in self.node.all_processes.values() for info in infos]
        for pid in family(there):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.cluster.remove_node(self.node, allow_graceful=False)


def family(pids: list[int]) -> list[int]:
    """The processes and all their descendants."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = list(pids)
    for pid in found:  # grows meanwhile
        found += [child for child, parent in parents.items() if parent == pid]
    return found


@pytest.fixture
def cluster(only_ray: None) -> Iterator[Cluster]:
    made = Cluster()
    try:
        yield made
    finally:
        ray.shutdown()
        made.cluster.shutdown()


class Saboteur:
    """Watches, and takes a node away once some trials are finished and others are at work."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster, self.lost = cluster, False
        self.done: list[FrozenTrial] = []
        self.stored_then: dict[int, float | None] = {}

    def note(self, text: str) -> None:
        print(text)

    def finished(self, trial: FrozenTrial, best: FrozenTrial | None) -> None:
        self.done.append(trial)

    def tick(self, running: Sequence[Running], finished: int, limit: int) -> None:
        at_work = sum((r.folder / "stdout").exists() and not (r.folder / "ended.json").exists() for r in running)
        if finished >= 4 and at_work >= 3 and not self.lost:
            self.lost = True
            self.stored_then = {t.number: t.value for t in self.done}
            self.cluster.lose_a_node()


def test_nets_that_learn_on_the_cluster_are_the_same(cluster: Cluster) -> None:
    space = Space({"x": FloatDistribution(0, 1)})
    u = space.sample(np.random.default_rng(0), 60)
    old = History(space, (Task("a", u, np.sin(5 * u[:, 0])), Task("b", u, np.cos(5 * u[:, 0]))))
    options = Pretraining(members=2, max_steps=100, gp_rows=0)
    engine = OnRay(cluster.cluster.address)
    with trained_by(engine.each), warnings.catch_warnings():
        warnings.simplefilter("error")  # not on this machine instead
        there = pretrain(old, options, seed=1)
    here = pretrain(old, options, seed=1)
    for ours, theirs in zip(here.layers, there.layers, strict=True):
        np.testing.assert_array_equal(ours[0], theirs[0])
    with pytest.warns(UserWarning, match="not done on the Ray cluster"):
        assert engine.each(only_here, [(os.getpid(),), (os.getpid(),)]) == [True, True]


def only_here(pid: int) -> bool:
    if os.getpid() != pid:
        raise ModuleNotFoundError("No module named 'jumbo_bo'")
    return True


def test_a_lost_node_loses_no_trial(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "objective.py").write_text(OBJECTIVE)
    watch, start = Saboteur(cluster), time.monotonic()
    ending = run(load(tmp_path / "study.toml"), 16, watch, OnRay(cluster.cluster.address))
    assert watch.lost
    assert time.monotonic() - start < 900
    assert (ending.reason, ending.finished) == ("budget", 16)
    trials = optuna.load_study(study_name="cluster", storage=f"sqlite:///{tmp_path}/study.db").get_trials()
    assert [t.state for t in trials] == [TrialState.COMPLETE] * 16
    assert all(t.value == t.params["x"] for t in trials)
    assert watch.stored_then.items() <= {t.number: t.value for t in trials}.items()
    log = Counter(json.loads(line)["x"] for line in (tmp_path / "log").read_text().splitlines())
    assert all(log[trials[number].params["x"]] == 1 for number in watch.stored_then), "evaluated once"
    attempts = [len(list((tmp_path / "cluster.runs").glob(f"trial-{t.number:04d}/attempt-*"))) for t in trials]
    assert max(attempts) > 1, "no attempt was lost with the node; the test shows nothing"


def test_no_cluster_at_the_address() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
    with pytest.raises(UserError, match=rf"there is no Ray cluster at '{address}' .*refused.*ray start --head"):
        OnRay(address)


def test_termination_stops_the_commands_and_the_next_run_goes_on(only_ray: None, tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "objective.py").write_text(OBJECTIVE.replace("sleep(2)", "sleep(60)"))
    code = "from jumbo_bo.cli import main; main()"
    command = [sys.executable, "-c", code, "run", "study.toml", "--engine", "ray", "--trials", "2"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        deadline = time.monotonic() + 600
        while not (tmp_path / "log").exists():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
        process.terminate()
        shown, _ = process.communicate(timeout=300)
    assert process.returncode == 130, shown
    assert "Stopped. Finished trials are kept" in shown
    assert "Traceback" not in shown
    results = [json.loads(path.read_text()) for path in tmp_path.rglob("result.json")]
    assert results
    assert all(result["stopped"] for result in results)
    assert not commands_in(tmp_path)


def commands_in(folder: Path) -> list[int]:
    """The processes that evaluate a trial of the study there."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # no longer there
            if (
                b"objective.py" in (process / "cmdline").read_bytes()
                and (process / "cwd").resolve() == folder.resolve()
            ):
                found.append(int(process.name))
    return found
