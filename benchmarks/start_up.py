"""CPU seconds of `jumbo status` and `jumbo ask` in fresh processes, as ratios to `import optuna` in the same run.

The study has a SQLite storage, five finished trials and old runs of three tasks in one CSV file. 'ask, cold' learns
from them; 'ask' finds what was learned in the cache. Each figure is the smallest of several processes that take turns:
what a quiet machine needs. Python keeps its bytecode, as in an ordinary installation.

    python benchmarks/start_up.py                       # 1e4 and 1e6 old rows
    python benchmarks/start_up.py --rows 10000 --times 3
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

D, TASKS, TRIALS = 12, 3, 5
STUDY = """
name = "start"
storage = "{storage}"
method = "jumbo-mixture"
[space]
{space}
[[history]]
files = "old.csv"
task = "task"
objective = "loss"
"""
JUMBO = (sys.executable, "-c", "from jumbo_bo.cli import main; main()")
OPTUNA = (sys.executable, "-c", "import optuna")
OPENED = (sys.executable, "-c", "import optuna; optuna.load_study(study_name='start', storage='sqlite:///study.db')")


def write_study(folder: Path, rows: int, storage: str = "sqlite:///study.db") -> None:
    rng = np.random.default_rng(0)
    x = rng.random((rows, D))
    task = rng.integers(TASKS, size=rows)
    loss = ((x - 0.2 * task[:, None]) ** 2).sum(axis=1) + 0.01 * rng.standard_normal(rows)
    columns = {f"x{i}": x[:, i] for i in range(D)} | {"task": task, "loss": loss}
    pl.DataFrame(columns).write_csv(folder / "old.csv")
    space = "\n".join(f'x{i} = {{ type = "float", low = 0.0, high = 1.0 }}' for i in range(D))
    (folder / "study.toml").write_text(STUDY.format(space=space, storage=storage))


def cpu(command: tuple[str, ...], folder: Path) -> float:
    """User and system seconds of the process and its children."""
    own = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "JUMBO_CACHE": "cache"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, env=os.environ | own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(rows: int, times: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_study(folder, rows)
        cpu((sys.executable, "-c", "import jax, optax, jumbo_bo.learning.pretrain"), folder)  # its bytecode
        cold = cpu((*JUMBO, "ask", "study.toml"), folder)
        for i in range(TRIALS):
            cpu((*JUMBO, "tell", "study.toml", str(i), str(1.0 + i / 7)), folder)
            cpu((*JUMBO, "ask", "study.toml"), folder)
        commands = {
            "import optuna": OPTUNA,
            "optuna.load_study": OPENED,
            "status": (*JUMBO, "status", "study.toml"),
            "ask": (*JUMBO, "ask", "study.toml"),
        }
        seconds: dict[str, list[float]] = {what: [] for what in commands}
        for _ in range(times):
            for what, command in commands.items():
                seconds[what].append(cpu(command, folder))
        return {what: min(s) for what, s in seconds.items()} | {"ask, cold": cold}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000, 1_000_000])
    parser.add_argument("--times", type=int, default=5)
    options = parser.parse_args()
    print(f"{'old rows':>10}  {'what':<20} {'CPU s':>7} {'/ import optuna':>16}")
    for rows in options.rows:
        found = measure(rows, options.times)
        for what, seconds in found.items():
            print(f"{rows:>10,}  {what:<20} {seconds:7.2f} {seconds / found['import optuna']:16.1f}")
