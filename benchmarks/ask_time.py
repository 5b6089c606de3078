"""CPU seconds of one suggestion after 50 trials, against Optuna's GPSampler, in one process with one thread.

    pip install torch greenlet jumbo-bo[bench]        (GPSampler needs torch, and is slower without greenlet)
    python benchmarks/ask_time.py --out ask_time.json

Two problems: the FCNet table of 62,208 configurations, and 12 continuous parameters with 2,000 old runs. Every
contender is given the same 50 trials. 'first' is the ask right after them by a new object, so it pays for everything
an object does once; 'next' is the ask after that one was answered. Medians of 5 repeats, contenders taking turns.
"""

# ruff: noqa: E402 - thread counts are read when numpy, jax and torch are imported
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC", "POLARS_MAX_THREADS"):
    os.environ[_name] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import greenlet  # without it GPSampler falls back to a slower search, and the comparison would flatter us
import numpy as np
import optuna
import polars as pl
import torch
from optuna.distributions import FloatDistribution

from jumbo_bo.bench.fcnet import leave_one_out
from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.stamp import stamp
from jumbo_bo.data.history import History
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.learning.pretrain import pretrain
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Params, Space

TRIALS = 50
REPEATS = 5
METHODS = ("jumbo-mixture", "jumbo-joint", "gp-ucb")
REFERENCE = "optuna GPSampler"

Trial = tuple[Params, float]
Contender = Callable[[list[Trial], int], tuple[float, float]]  # (trials, seed) -> seconds of the first and the next ask


def smooth(rows: int) -> Problem:
    """12 continuous parameters; the old task is the same bowl with ripples, moved a little. Up to 1,000 rows have a GP
    beside the nets, which every score asks."""
    space = Space({f"x{i}": FloatDistribution(0.0, 1.0) for i in range(12)})
    centre = np.linspace(0.2, 0.8, 12)

    def f(x: np.ndarray, c: np.ndarray) -> np.ndarray:  # (n, 12) -> (n,)
        return ((x - c) ** 2).sum(-1) + 0.1 * np.sin(6.0 * x[..., :-1] * x[..., 1:]).sum(-1)

    old = np.random.default_rng(0).random((rows, 12))
    frame = pl.DataFrame(old, schema=list(space.names)).with_columns(value=pl.Series(f(old, centre + 0.05)))
    history = History.from_frame(frame, space, objective="value", direction="minimize")

    def loss(params: Params) -> float:
        return float(f(np.array([params[name] for name in space.names]), centre))

    name = f"12 continuous parameters, {rows:,} old runs"
    return Problem(name, space, history, lambda params, rng: loss(params), loss)


def jumbo(problem: Problem, net: FeatureNet, method: str) -> Contender:
    def measure(trials: list[Trial], seed: int) -> tuple[float, float]:
        history = None if method == "gp-ucb" else net
        optimizer = Optimizer(problem.space, history, n_trials=2 * TRIALS, method=method, seed=seed)
        for params, value in trials:
            optimizer.tell(params, value)
        seconds = []
        for _ in range(2):
            start = time.process_time()
            suggestion = optimizer.ask()
            seconds.append(time.process_time() - start)
            optimizer.tell(suggestion, problem.objective(suggestion.params, np.random.default_rng(seed)))
        return seconds[0], seconds[1]

    return measure


def gp_sampler(problem: Problem) -> Contender:
    distributions = dict(problem.space.distributions)

    def measure(trials: list[Trial], seed: int) -> tuple[float, float]:
        study = optuna.create_study(sampler=optuna.samplers.GPSampler(seed=seed))
        for params, value in trials:
            study.add_trial(optuna.create_trial(params=params, distributions=distributions, value=value))
        seconds = []
        for _ in range(2):
            start = time.process_time()
            trial = study.ask(distributions)
            seconds.append(time.process_time() - start)
            study.tell(trial, problem.objective(trial.params, np.random.default_rng(seed)))
        return seconds[0], seconds[1]

    return measure


def compare(problem: Problem) -> dict[str, dict[str, float]]:
    net = pretrain(problem.history, seed=0)
    contenders = {method: jumbo(problem, net, method) for method in METHODS} | {REFERENCE: gp_sampler(problem)}
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for repeat in range(REPEATS + 1):
        rng = np.random.default_rng(repeat)
        points = [problem.space.decode(u) for u in problem.space.sample(rng, TRIALS)]
        trials = [(params, problem.objective(params, rng)) for params in points]
        for name, measure in contenders.items():
            seconds[name].append(measure(trials, repeat))
    # Repeat 0 only loads lazy imports.
    result = {
        name: {"first": statistics.median(a for a, _ in pairs[1:]), "next": statistics.median(b for _, b in pairs[1:])}
        for name, pairs in seconds.items()
    }
    for row in result.values():
        row |= {f"{which} / {REFERENCE}": row[which] / result[REFERENCE][which] for which in ("first", "next")}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU seconds of one ask after 50 trials.")
    parser.add_argument("--out", type=Path, help="also write the figures to this JSON file")
    out: Path | None = parser.parse_args().out
    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    results = {}
    print("| problem | | first ask, s | next ask, s | first / GPSampler | next / GPSampler |")
    print("| --- | --- | --- | --- | --- | --- |")
    for problem in (leave_one_out("protein"), smooth(2000), smooth(1000)):
        title = f"{problem.space.cardinality:,} configurations" if problem.space.cardinality else problem.name
        results[title] = compare(problem)
        for name, row in results[title].items():
            print(f"| {title} | {name} | " + " | ".join(f"{number:.3f}" for number in row.values()) + " |")
    if out is not None:
        versions = {"optuna": optuna.__version__, "torch": torch.__version__, "greenlet": greenlet.__version__}
        record = {**stamp("python benchmarks/ask_time.py"), "with": versions, "cpu_seconds": results}
        out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
