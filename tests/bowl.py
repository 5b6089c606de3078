"""A bowl on a number and an integer, for the tests of ask and tell."""

from optuna.distributions import FloatDistribution, IntDistribution

from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Space

SPACE = Space({"x": FloatDistribution(0, 1), "n": IntDistribution(1, 5)})


def value(params):
    return (params["x"] - 0.3) ** 2 + 0.1 * (params["n"] - 2) ** 2


def told(n, **options):
    optimizer = Optimizer(SPACE, method="gp-ucb", n_trials=20, **options)
    for _ in range(n):
        suggestion = optimizer.ask()
        optimizer.tell(suggestion, value(suggestion.params))
    return optimizer
