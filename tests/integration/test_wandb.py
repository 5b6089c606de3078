"""The real wandb, offline, writes runs; from_wandb reads its logs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution

from jumbo_bo.data.trackers import from_wandb
from jumbo_bo.space.space import Space

pytest.importorskip("wandb", reason="needs the PyPI package wandb (pip install wandb)")
pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore::DeprecationWarning:wandb")]

SPACE = Space(
    {
        "lr": FloatDistribution(1e-5, 1.0, log=True),
        "opt.name": CategoricalDistribution(["adam", "sgd"]),
        "norm": CategoricalDistribution([True, False]),
    }
)

# In a process of its own, which ends with wandb's helpers.
TRAIN = """
import os, wandb
for i in range(6):
    config = {"lr": 10.0 ** -i, "opt": {"name": ["adam", "sgd"][i % 2]}, "norm": i < 3, "pad": "x" * 20_000}
    run = wandb.init(project="digits", group=f"g{i % 2}", name=f"run{i}", config=config)
    for step in range(30):
        run.log({"loss": 100 * i + step, "val/acc": -i})
    run.config.update({"late": i})
    if i == 5:
        os._exit(3)  # killed in the middle
    run.finish(exit_code=int(i == 4))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    quiet = {
        "WANDB_MODE": "offline",
        "WANDB_SILENT": "true",
        "WANDB_DIR": str(folder),
        "WANDB_ERROR_REPORTING": "false",
    }
    command = [sys.executable, "-c", TRAIN]
    ended = subprocess.run(command, env=os.environ | quiet, cwd=folder, capture_output=True, text=True, timeout=900)
    assert ended.returncode == 3, ended.stderr
    return folder


def test_offline_runs(folder: Path) -> None:
    history = from_wandb(folder / "wandb", SPACE, objective="loss")
    assert [t.name for t in history.tasks] == ["digits"]
    (task,) = history.tasks
    runs = sorted((-float(y), SPACE.decode(u)) for u, y in zip(task.u, task.y, strict=True))
    assert [value for value, _ in runs] == [29.0, 129.0, 229.0, 329.0]  # the last of each
    for i, (_, params) in enumerate(runs):
        assert params["lr"] == pytest.approx(10.0**-i)
        assert params["opt.name"] == ["adam", "sgd"][i % 2]
        assert params["norm"] is (i < 3)
    reasons = {d.reason: d.count for r in history.reports for ds in r.dropped.values() for d in ds}
    assert reasons == {"run failed": 1, "run is not finished": 1}


def test_offline_runs_by_group(folder: Path) -> None:
    history = from_wandb(folder, SPACE, objective="val/acc", direction="maximize", task="group")
    assert {t.name: sorted(t.y.tolist()) for t in history.tasks} == {"g0": [-2.0, 0.0], "g1": [-3.0, -1.0]}
    late = from_wandb(folder, SPACE, objective="loss", task="late")
    assert len(late.tasks) == 4
