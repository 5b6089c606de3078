"""CPU seconds of one suggestion after many trials, against Optuna's GPSampler and BoTorch, in one process and thread.

    pip install torch greenlet jumbo-bo[bench]        (GPSampler needs torch, and is slower without greenlet)
    python benchmarks/trials.py --trials 50,200,500,1000 --out trials.json
    python benchmarks/trials.py --trials 2000,5000,10000 --problems table,12 --rivals none
    python benchmarks/trials.py --rivals gpsampler,botorch    (after pip install botorch)

Problems: the FCNet table of 62,208 configurations with three old tasks, and bowls with ripples in 12, 50 and 100
continuous parameters with 2,000 old runs. Trials are random configurations, the same for all. 'first' is the ask right
after them by a new object, so it pays for everything an object does once; 'next' is the median of those after it, each
answered; 'batch' is ask_many(64) as a multiple of 'next'. Growth is the slope of log seconds over log trials between
neighbouring numbers of trials. Every figure includes the explanation. A rival that took LIMIT seconds is not asked
again with more trials.
"""

# ruff: noqa: E402 - thread counts are read when numpy, jax and torch are imported
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NPROC", "POLARS_MAX_THREADS"):
    os.environ[_name] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"

import argparse
import json
import math
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from optuna.distributions import FloatDistribution

from jumbo_bo.bench.fcnet import leave_one_out
from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.run import split_names
from jumbo_bo.bench.stamp import stamp
from jumbo_bo.data.history import History
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.learning.pretrain import pretrain
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Params, Space

LIMIT = 30.0
BATCH = 64
Trial = tuple[Params, float]
Asker = Callable[[list[Trial], int], dict[str, float]]


def smooth(d: int, rows: int = 2000) -> Problem:
    """The old task is the same bowl with ripples, moved a little."""
    space = Space({f"x{i}": FloatDistribution(0.0, 1.0) for i in range(d)})
    centre = np.linspace(0.2, 0.8, d)

    def f(x: np.ndarray, c: np.ndarray) -> np.ndarray:  # (n, d) -> (n,)
        return ((x - c) ** 2).sum(-1) + 0.1 * np.sin(6.0 * x[..., :-1] * x[..., 1:]).sum(-1)

    old = np.random.default_rng(0).random((rows, d))
    frame = pl.DataFrame(old, schema=list(space.names)).with_columns(value=pl.Series(f(old, centre + 0.05)))
    history = History.from_frame(frame, space, objective="value", direction="minimize")

    def loss(params: Params) -> float:
        return float(f(np.array([params[name] for name in space.names]), centre))

    return Problem(f"{d} parameters", space, history, lambda params, rng: loss(params), loss)


def cpu(act: Callable[[], object]) -> float:
    start = time.process_time()
    act()
    return time.process_time() - start


def jumbo(problem: Problem, net: FeatureNet, method: str, asks: int, batch: bool) -> Asker:
    def measure(trials: list[Trial], seed: int) -> dict[str, float]:
        optimizer = Optimizer(problem.space, net, n_trials=2 * len(trials), method=method, seed=seed)
        for params, value in trials:
            optimizer.tell(params, value)
        seconds = []
        for _ in range(1 + asks):
            seconds.append(cpu(optimizer.ask))
            suggestion = optimizer.suggestions[-1]
            optimizer.tell(suggestion, problem.objective(suggestion.params, np.random.default_rng(seed)))
        result = {"first": seconds[0], "next": statistics.median(seconds[1:])}
        return result | ({"batch": cpu(lambda: optimizer.ask_many(BATCH)) / result["next"]} if batch else {})

    return measure


def gp_sampler(problem: Problem) -> Asker:
    import optuna
    import torch
    from ask_time import gp_sampler as timed  # refuses to run without greenlet

    torch.set_num_threads(1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    measure = timed(problem)
    return lambda trials, seed: dict(zip(("first", "next"), measure(trials, seed), strict=True))


def botorch(problem: Problem) -> Asker:
    """SingleTaskGP and LogEI as in BoTorch's tutorials; a table is scored row by row."""
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)
    space = problem.space

    def once(trials: list[Trial], seed: int) -> None:
        torch.manual_seed(seed)
        u = np.array([space.encode(params) for params, _ in trials])
        x = torch.as_tensor(space.transform(u))
        y = -torch.tensor([[value] for _, value in trials], dtype=torch.double)
        model = SingleTaskGP(x, (y - y.mean()) / y.std())
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        score = LogExpectedImprovement(model, best_f=float(((y - y.mean()) / y.std()).max()))
        if space.cardinality is None:
            bounds = torch.stack([torch.zeros(x.shape[1]), torch.ones(x.shape[1])]).double()
            optimize_acqf(score, bounds, q=1, num_restarts=10, raw_samples=512)
            return
        with torch.no_grad():
            for rows in torch.as_tensor(space.transform(space.grid())).split(4096):
                score(rows.unsqueeze(1))

    def measure(trials: list[Trial], seed: int) -> dict[str, float]:
        return {name: cpu(lambda: once(trials, seed)) for name in ("first", "next")}

    return measure


RIVALS = {"gpsampler": gp_sampler, "botorch": botorch}


def compare(problem: Problem, sizes: list[int], rivals: list[str], options: argparse.Namespace) -> list[dict]:
    net, rows = pretrain(problem.history, seed=0), []
    askers = {options.method: jumbo(problem, net, options.method, options.asks, options.batch)}
    askers |= {name: RIVALS[name](problem) for name in rivals}
    for name, ask in askers.items():
        before, seed = None, 100
        ask(_trials(problem, 20, seed), seed)  # loads lazy imports
        for n in sizes:
            row = {"problem": problem.name, "who": name, "trials": n, **ask(_trials(problem, n, seed), seed)}
            if before:
                row["growth"] = math.log(row["next"] / before["next"]) / math.log(n / before["trials"])
            before = row
            rows.append(row)
            print(json.dumps(row), flush=True)
            if name in rivals and row["next"] > LIMIT:
                break
    return rows


def _trials(problem: Problem, n: int, seed: int) -> list[Trial]:
    rng = np.random.default_rng([seed, n])
    points = [problem.space.decode(u) for u in problem.space.sample(rng, n)]
    return [(params, problem.objective(params, rng)) for params in points]


def table(rows: list[dict], method: str) -> str:
    """One line per problem and number of trials, rivals as ratios: ours / theirs."""
    known = {(row["problem"], row["trials"], row["who"]): row for row in rows}
    lines = [
        "| problem | trials | first, s | next, s | growth | / GPSampler | / BoTorch | batch of 64 |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (problem, n, who), row in known.items():
        if who == method:
            rivals = (known.get((problem, n, rival)) for rival in RIVALS)
            ratios = [f"{row['next'] / rival['next']:.3f}" if rival else "" for rival in rivals]
            growth, batch = (f"{row[name]:.1f}" if name in row else "" for name in ("growth", "batch"))
            cells = [problem, f"{n:,}", f"{row['first']:.2f}", f"{row['next']:.3f}", growth, *ratios, batch]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU seconds of one ask after many trials.")
    parser.add_argument("--trials", default="50,200,500,1000")
    parser.add_argument("--problems", default="table,12,50,100")
    parser.add_argument("--rivals", default="gpsampler", help="gpsampler,botorch or none")
    parser.add_argument("--method", default="jumbo-mixture")
    parser.add_argument("--asks", type=int, default=5, help="answered suggestions that 'next' is the median of")
    parser.add_argument("--batch", action="store_true", help=f"also time ask_many({BATCH})")
    parser.add_argument("--out", type=Path, help="also write the figures to this JSON file")
    options = parser.parse_args()
    sizes = [int(n) for n in split_names(options.trials)]
    rivals = [] if options.rivals == "none" else split_names(options.rivals)
    rows = []
    for name in split_names(options.problems):
        rows += compare(leave_one_out("protein") if name == "table" else smooth(int(name)), sizes, rivals, options)
    print(table(rows, options.method))
    if options.out is not None:
        record = {**stamp("python benchmarks/trials.py"), "cpu_seconds": rows}
        options.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
