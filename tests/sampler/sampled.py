"""Two small problems as Optuna states them, and an old study of the first."""

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import create_trial

from jumbo_bo.learning.training import Pretraining
from jumbo_bo.methods import JumboJoint
from jumbo_bo.space.space import Space

SMALL = Pretraining(members=1, max_epochs=30, n_u=16)
QUICK = JumboJoint(preset=SMALL)
SPACE = {"x": FloatDistribution(-5, 5), "n": IntDistribution(1, 6)}
GRID = {"a": IntDistribution(0, 1), "b": IntDistribution(0, 2), "c": CategoricalDistribution(["p", "q"])}


def f(params, shift=0.0):
    return (params["x"] - 1 - shift) ** 2 + 0.5 * (params["n"] - 2) ** 2


def objective(trial):
    return f({"x": trial.suggest_float("x", -5, 5), "n": trial.suggest_int("n", 1, 6)})


def cost(params):
    return (params["a"] - 0.7) ** 2 + params["b"] + (params["c"] == "p")


def on_the_grid(trial):
    names = {"a": 1, "b": 2}
    params = {name: trial.suggest_int(name, 0, high) for name, high in names.items()}
    return cost(params | {"c": trial.suggest_categorical("c", ["p", "q"])})


def old_study(name="old", shift=0.3, n=60, storage=None):
    study = optuna.create_study(study_name=name, storage=storage)
    space = Space(SPACE)
    for row in space.sample(np.random.default_rng(len(name)), n):
        params = space.decode(row)
        study.add_trial(create_trial(params=params, distributions=SPACE, value=f(params, shift)))
    return study
