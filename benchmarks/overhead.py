"""What the product around the algorithm costs: a trial of a study, beside Optuna's own samplers and loops.

    pip install torch==2.13.0 greenlet jumbo-bo        (GPSampler needs torch)
    python benchmarks/overhead.py --out overhead.json

Two tables. Samplers: CPU seconds per trial of `study.optimize` on an SQLite file, 6 continuous parameters, 40 trials,
one process per sampler, one thread; JumboSampler with 2,000 old runs (learned beforehand) and without. Loops: wall
seconds per trial of `jumbo run` with two workers and a command that does nothing, against the same command started by
`study.optimize` in two threads; both with random suggestions. Contenders take turns; medians of 3 repeats.
"""

# ruff: noqa: E402 - thread counts are read when numpy, jax and torch are imported
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ[_name] = "1"

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import optuna
from optuna.distributions import FloatDistribution

from jumbo_bo import History, JumboSampler, Space
from jumbo_bo.bench.stamp import stamp
from jumbo_bo.data.history import Task

SPACE = Space({f"x{i}": FloatDistribution(0.0, 1.0) for i in range(6)})
SAMPLERS = ("JumboSampler, 2,000 old runs", "JumboSampler, none", "GPSampler", "TPESampler")
LOOPS = ("jumbo run", "study.optimize")
TRIALS, REPEATS = 40, 3

STUDY = """
name = "idle"
trials = 40
method = "random"
[space]
x = { type = "float", low = 0, high = 1 }
[objective]
command = ["/bin/echo", "{x}"]
workers = 2
"""


def loss(x: np.ndarray, shift: float = 0.0) -> np.ndarray:  # (n, 6) -> (n,)
    result: np.ndarray = ((x - 0.3 - shift) ** 2).sum(-1) + 0.1 * np.sin(5 * x[..., 0])
    return result


def old_runs() -> History:
    u = SPACE.sample(np.random.default_rng(0), 2_000)
    return History(SPACE, (Task("old", u, -loss(u, 0.1)),))


def sampler(name: str, seed: int) -> optuna.samplers.BaseSampler:
    if name == "GPSampler":
        return optuna.samplers.GPSampler(seed=seed)
    if name == "TPESampler":
        return optuna.samplers.TPESampler(seed=seed)
    history = old_runs() if "old" in name else None
    return JumboSampler(history, SPACE, n_trials=TRIALS, seed=0)


def of_sampler(name: str, seed: int, folder: Path) -> float:
    """CPU seconds per trial, the first one aside: it imports, compiles or reads the net."""
    made = sampler(name, seed)
    study = optuna.create_study(storage=f"sqlite:///{folder}/{seed}.db", sampler=made)

    def objective(trial: optuna.Trial) -> float:
        return float(loss(np.array([trial.suggest_float(name, 0.0, 1.0) for name in SPACE])))

    study.optimize(objective, n_trials=1)
    start = time.process_time()
    study.optimize(objective, n_trials=TRIALS - 1)
    return (time.process_time() - start) / (TRIALS - 1)


def of_loop(name: str, folder: Path) -> float:
    """Wall seconds per trial between the start of the first and the end of the last."""
    if name == "jumbo run":
        (folder / "study.toml").write_text(STUDY)
        code = "from jumbo_bo.cli import main; main()"
        subprocess.run([sys.executable, "-c", code, "run", "study.toml"], cwd=folder, check=True, capture_output=True)
        study = optuna.load_study(study_name="idle", storage=f"sqlite:///{folder}/study.db")
    else:

        def objective(trial: optuna.Trial) -> float:
            command = ["/bin/echo", str(trial.suggest_float("x", 0, 1))]
            return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

        study = optuna.create_study(storage=f"sqlite:///{folder}/study.db", sampler=optuna.samplers.RandomSampler(0))
        study.optimize(objective, n_trials=TRIALS, n_jobs=2)
    done = study.get_trials(deepcopy=False)
    assert len(done) == TRIALS
    first, last = min(t.datetime_start for t in done), max(t.datetime_complete for t in done)  # type: ignore[type-var]
    return float((last - first).total_seconds()) / TRIALS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--only", help=argparse.SUPPRESS)  # one measurement, in a process of its own
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        if options.only:
            print(of_sampler(options.only, options.seed, Path(folder)))
            return
        os.environ["JUMBO_CACHE"] = f"{folder}/cache"
        seconds: dict[str, list[float]] = {name: [] for name in (*SAMPLERS, *LOOPS)}
        of_sampler(SAMPLERS[0], 99, Path(folder))  # learns the net
        for repeat in range(REPEATS):
            for name in SAMPLERS:
                command = [sys.executable, __file__, "--only", name, "--seed", str(repeat)]
                text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                seconds[name].append(float(text.split()[-1]))
            for name in LOOPS:
                place = Path(folder) / f"{name}-{repeat}"
                place.mkdir()
                seconds[name].append(of_loop(name, place))
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    for name, value in medians.items():
        reference = medians["GPSampler" if name in SAMPLERS else "study.optimize"]
        print(f"{name:30} {1000 * value:8.1f} ms per trial   ratio {value / reference:.2f}")
    if options.out:
        options.out.write_text(json.dumps({"seconds": seconds, "stamp": stamp("benchmarks/overhead.py")}, indent=1))


if __name__ == "__main__":
    main()
