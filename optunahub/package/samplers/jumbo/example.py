"""An old study of a related problem, then a new one that starts from it."""

from __future__ import annotations

import math

import optuna
import optunahub


def objective(trial: optuna.Trial, best: float = 0.01) -> float:
    lr = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    layers = trial.suggest_int("layers", 1, 6)
    return math.log10(lr / best) ** 2 + 0.2 * (layers - 3) ** 2


if __name__ == "__main__":
    old = optuna.create_study(study_name="last-week", sampler=optuna.samplers.RandomSampler(seed=0))
    old.optimize(lambda trial: objective(trial, best=0.02), n_trials=40)

    module = optunahub.load_module("samplers/jumbo")
    sampler = module.JumboSampler(source_studies=[old], n_trials=8, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=8)
    print(study.best_trial.number, study.best_value, study.best_params)
    print(study.best_trial.user_attrs["why"])
