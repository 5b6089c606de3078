"""Two small problems with old runs, for the tests of methods: a mixed space and a finite one."""

import math

import numpy as np
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.learning.pretrain import Pretraining, pretrain
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

MIXED = Space(
    {
        "lr": FloatDistribution(1e-4, 1e-1, log=True),
        "layers": IntDistribution(1, 4),
        "act": CategoricalDistribution(["relu", "tanh", "gelu"]),
        "batch": CategoricalDistribution([16, 32, 64]),
    }
)
SMALL = Space({"a": IntDistribution(0, 4), "b": CategoricalDistribution(["x", "y"])})


def loss(params):
    if "a" in params:
        return (params["a"] - 3) ** 2 + (params["b"] == "x")
    return (math.log10(params["lr"]) + 2.5) ** 2 + 0.3 * abs(params["layers"] - 2) + (params["act"] != "tanh")


def old_runs(space, tasks=2, n=60):
    rng = np.random.default_rng(7)
    made = []
    for k in range(tasks):
        u = space.sample(rng, n)
        y = np.array([-loss(space.decode(row)) - 0.1 * k for row in u])
        made.append(Task(f"old {k}", u, y))
    return History(space, tuple(made))


def learned_nets():
    quick = Pretraining(max_steps=300, least_r2=None)
    return {space: pretrain(old_runs(space), quick) for space in (MIXED, SMALL)}


def follow(optimizer, trials, value=loss):
    """The optimizer after so many trials of its own."""
    for _ in range(trials):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, value(suggestion.params))
    return optimizer


def run(method, space, history, trials, seed=0, value=loss, **options):
    return follow(Optimizer(space, history, n_trials=trials, method=method, seed=seed, **options), trials, value)
