"""Two old tasks on one space, and their rows as a training prepares them."""

from dataclasses import replace

import numpy as np
from optuna.distributions import CategoricalDistribution, FloatDistribution

from jumbo_bo.data.history import History, Task
from jumbo_bo.learning import training
from jumbo_bo.learning.pretrain import Pretraining
from jumbo_bo.space.space import Space

SPACE = Space({"a": FloatDistribution(0, 1), "b": FloatDistribution(0, 1), "c": CategoricalDistribution(["x", "y"])})
QUICK = Pretraining(max_steps=50, gp_rows=0)  # the nets alone; GPs on rows are in test_row_gp.py
ALONE = replace(QUICK, members=1)


def first(u):
    return np.sin(4 * u[:, 0]) + u[:, 1] * (u[:, 2] > 0.5)


def second(u):
    return 3 * u[:, 1] - np.sin(4 * u[:, 0])


def task(name, function, n, seed=0):
    u = SPACE.sample(np.random.default_rng(seed), n)
    return Task(name, u, function(u))


def history(*tasks, target=None):
    return History(SPACE, tasks, target, direction="maximize")


TWO = history(task("first", first, 150, 0), task("second", second, 100, 1))  # no row in common


def prepared(history, seed=0, member=0):
    rows = training.old_rows(history, history.tasks)
    return training.prepare(rows, history, np.random.default_rng([seed, member, 0]))


def silent(step, loss):
    pass
