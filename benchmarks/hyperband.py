"""BOHB as Optuna has it, HyperbandPruner with TPESampler, on FCNet's two fidelities, beside our `bohb`.

    python benchmarks/hyperband.py [--seeds 4] [--first-seed 100] [--data DIR]

A configuration that TPE proposes is moved to the closest old run not looked at yet. Its value after 3 epochs is
reported; when Optuna does not prune it, it counts as a trial and its value after 100 epochs is told. Prints the simple
regret after 50 trials, in the units of docs/baselines.md, and how many old values were looked at.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import optuna

from jumbo_bo.bench import fcnet
from jumbo_bo.bench.problem import Problem
from jumbo_bo.methods.optuna_samplers import distributions, to_params, to_u

TRIALS = 50


def run(problem: Problem, seed: int, eta: int) -> tuple[float, int]:  # -> regret, looks
    space, (task,) = problem.space, problem.history.tasks
    t, dists, noise = space.transform(task.u), distributions(space), np.random.default_rng([seed, 1])
    pruner = optuna.pruners.HyperbandPruner(min_resource=3, max_resource=100, reduction_factor=eta)
    study = optuna.create_study(study_name="bohb", sampler=optuna.samplers.TPESampler(seed=seed), pruner=pruner)
    free, tried, looks, regret = np.ones(len(t), dtype=bool), 0, 0, np.inf
    while tried < TRIALS and free.any():
        trial = study.ask(dists)
        apart = np.sum((t - space.transform(to_u(space, trial.params)[None])) ** 2, axis=1)
        row = int(np.where(free, apart, np.inf).argmin())
        free[row], looks = False, looks + 1
        for name, value in to_params(space, task.u[row]).items():
            study._storage.set_trial_param(trial._trial_id, name, dists[name].to_internal_repr(value), dists[name])
        trial.report(float(np.log(-task.y[row])), step=3)
        if trial.should_prune():
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            continue
        params = space.decode(task.u[row])
        tried, regret = tried + 1, min(regret, problem.regret(params))
        study.tell(trial, float(np.log(problem.objective(params, noise))))
    return regret / problem.unit, looks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--data", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    print("| eta | " + " | ".join(fcnet.EPOCH3) + " |\n| --- |" + " --- |" * len(fcnet.EPOCH3))
    for eta in (33, 3):
        cells = []
        for dataset in fcnet.EPOCH3:
            problem = fcnet.temporal(dataset, options.data)
            seeds = range(options.first_seed, options.first_seed + options.seeds)
            regret, looks = zip(*(run(problem, seed, eta) for seed in seeds), strict=True)
            error = np.std(regret, ddof=1) / np.sqrt(len(regret))
            cells.append(f"{np.mean(regret):.2f} ± {error:.2f}, {np.mean(looks):.0f} looks")
        print(f"| {eta} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
