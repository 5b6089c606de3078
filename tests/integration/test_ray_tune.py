"""Ray Tune on a real local cluster of two nodes, one of which is killed in the middle."""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution, IntDistribution

from jumbo_bo import History, JumboSampler, Space
from jumbo_bo.data.history import Task
from jumbo_bo.data.storage import opened

ray = pytest.importorskip("ray", reason="needs the PyPI package ray[tune] (make test-integration installs it)")
pytestmark = [
    pytest.mark.integration,
    # Ray's own affairs: deprecated calls inside it, and sockets and processes it leaves to the garbage collector.
    pytest.mark.filterwarnings("ignore"),
]

SPACE = Space({"x": FloatDistribution(0, 1), "n": IntDistribution(1, 9)})
N_TRIALS = 12


def loss(params: dict[str, float], shift: float = 0.0) -> float:
    return float((params["x"] - 0.3 - shift) ** 2 + 0.02 * (params["n"] - 4) ** 2)


def old_runs() -> History:
    u = SPACE.sample(np.random.default_rng(0), 150)
    tasks = [Task(f"old{s}", u, -np.array([loss(SPACE.decode(row), s) for row in u])) for s in (-0.05, 0.05)]
    return History(SPACE, tuple(tasks))


@pytest.fixture
def cluster(only_ray: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """The head runs no trials; two workers do, one trial at a time each."""
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    monkeypatch.setenv("RAY_TRAIN_ENABLE_V2_MIGRATION_WARNINGS", "0")
    memory = {"object_store_memory": 80_000_000}
    notice = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500, "health_check_failure_threshold": 4}
    head = {"num_cpus": 0, **memory, "include_dashboard": False, "_system_config": notice}
    made = Cluster(initialize_head=True, head_node_args=head)
    try:
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        yield made
    finally:
        ray.shutdown()
        made.shutdown()
        gc.collect()  # the files that Ray leaves open are closed while their warnings are ignored


def test_a_killed_node_loses_no_finished_result(cluster: object, tmp_path: Path) -> None:
    from ray import cloudpickle, tune
    from ray.tune.search import ConcurrencyLimiter
    from ray.tune.search.optuna import OptunaSearch

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # the workers do not have this file
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=80_000_000) for _ in range(2)]  # type: ignore[attr-defined]
    done = tmp_path / "done"
    done.mkdir()

    def objective(config: dict[str, float]) -> None:
        time.sleep(1.0)
        value = loss(config)
        (done / f"{config['x']!r}-{config['n']}").write_text(repr(value))
        tune.report({"loss": value})

    killed: list[int] = []

    def kill_one_node() -> None:
        while len(list(done.iterdir())) < 4:
            time.sleep(0.05)
        killed.append(len(list(done.iterdir())))
        cluster.remove_node(nodes[0], allow_graceful=False)  # type: ignore[attr-defined]

    with opened(f"sqlite:///{tmp_path}/tune.db") as storage:
        sampler = JumboSampler(old_runs(), n_trials=N_TRIALS, seed=0)
        search = OptunaSearch(
            space=dict(SPACE.distributions), metric="loss", mode="min", sampler=sampler, storage=storage, study_name="s"
        )
        tuner = tune.Tuner(
            objective,
            tune_config=tune.TuneConfig(
                search_alg=ConcurrencyLimiter(search, 2), num_samples=N_TRIALS, reuse_actors=True
            ),
            run_config=tune.RunConfig(
                storage_path=str(tmp_path / "results"), failure_config=tune.FailureConfig(max_failures=10), verbose=0
            ),
        )
        killer = threading.Thread(target=kill_one_node, daemon=True)
        killer.start()
        results = tuner.fit()
        killer.join(10)
        trials = optuna.load_study(study_name="s", storage=storage).get_trials()

    assert list((tmp_path / "results").rglob("searcher-state-*")), "Tune has kept the searcher, sampler included"
    assert killed, "the node was killed while the run was going"
    assert killed[0] < N_TRIALS
    # Tune may give up the one trial that was running there: when two of its calls fail at once, the second is final.
    assert results.num_errors <= 1
    found = {(r.config["x"], r.config["n"]): r.metrics["loss"] for r in results if r.error is None}
    assert len(found) == N_TRIALS - results.num_errors
    assert all(value == loss({"x": x, "n": n}) for (x, n), value in found.items())
    assert len(trials) == N_TRIALS
    finished = [t for t in trials if t.state.name == "COMPLETE"]
    assert {(t.params["x"], t.params["n"]): t.value for t in finished} == found
    assert all("old runs" in t.user_attrs["why"].lower() for t in trials)
    assert min(found.values()) < 0.01
