"""A bowl on two parameters, with old runs of shifted ones: for methods that learn from many small tasks."""

import numpy as np
from optuna.distributions import FloatDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

SPACE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1)})


def value(params, bump=0.0):
    return (params["a"] - 0.7) ** 2 + 0.3 * (params["b"] - 0.2 + bump) ** 2


def old_runs(noise, tasks=6, n=40):
    """Every run of every task has a shift of its own, of this standard deviation."""
    rng = np.random.default_rng(0)
    made = []
    for k in range(tasks):
        u = SPACE.sample(rng, n)
        made.append(Task(f"old {k}", u, np.array([-value(SPACE.decode(row), noise * rng.normal()) for row in u])))
    return History(SPACE, tuple(made))


def told(n, past, recipe, **options):
    """The optimizer after n trials of its own."""
    optimizer = Optimizer(SPACE, past, n_trials=20, method=recipe, **options)
    for _ in range(n):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, value(suggestion.params))
    return optimizer
