"""Known constraints, with and without old runs, against Optuna's samplers, which know constraints as a penalty.

    python benchmarks/constraints.py                  # seeds 0 to 4, about 20 minutes; 100 and above are for tuning
    python benchmarks/constraints.py --seeds 100-102 --trials 8 --methods jumbo,tpe

Two problems, each with three related old tasks of 40 runs. The old runs were made without the constraint in mind: of
the budget problem, most of them break it.

    mixture  four fractions that sum to 1, one of them in narrow bounds, and a temperature; at the optimum a part is 0
    budget   five parameters and a weighted sum of at most 3; the optimum is at the limit

`jumbo` is the default without old runs, `jumbo + old runs` with them. Optuna's samplers are told by how much each
suggestion breaks the constraint (`constraints_func`). They choose three of the four fractions, the fourth is the rest.
What breaks a constraint is not evaluated and does not count as a trial: only their allowed suggestions do. The column
'forbidden' says how many suggestions were lost for each that could be tried.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import optuna
import polars as pl
from optuna.distributions import FloatDistribution
from optuna.samplers import BaseSampler, GPSampler, TPESampler

from jumbo_bo.bench import markdown
from jumbo_bo.data.history import History
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.space.space import Params, Space

OLD, ROWS = 3, 40
MOST = 50  # suggestions of Optuna for each trial
MARKS = (5, 10, 20)


@dataclass(frozen=True)
class Problem:
    name: str
    space: Space
    value: Callable[[Mapping[str, float], float], float]  # of a configuration, for a task at this place
    excess: Callable[[Mapping[str, float]], float]  # by how much the constraint is broken; for Optuna
    rest: str | None = None  # the parameter that follows from the others, for Optuna

    def history(self, seed: int) -> History:
        rng = np.random.default_rng([seed, 1])
        rows = []
        for task in range(OLD):
            place = rng.normal(0, 0.06)
            u = self.space.sample(rng, ROWS) if self.rest else self.space.unconstrained.sample(rng, ROWS)
            for params in map(self.space.decode, u):
                rows.append({"task": f"task {task}", **params, "y": self.value(params, place)})
        return History.from_frame(pl.DataFrame(rows), self.space, objective="y", task="task")

    @cached_property
    def optimum(self) -> float:
        """The best of many points, then of many close to it, closer and closer."""
        rng = np.random.default_rng(0)
        u = np.vstack([self.space.sample(rng, 4_000), self.space.snap(rng.uniform(-0.5, 1.5, (4_000, self.space.d)))])
        for width in (0.1, 0.03, 0.01, 0.003, 0.001, 3e-4, 1e-4):
            values = np.array([self.value(self.space.decode(row), 0.0) for row in u])
            best = u[values.argmin()]
            u = np.vstack([best[None], self.space.snap(best + width * rng.standard_normal((2_000, self.space.d)))])
        return float(values.min())


def mixture(p: Mapping[str, float], place: float) -> float:
    best = {"a": 0.5 + place, "b": 0.35 - place, "c": 0.2, "d": -0.05}
    apart = sum(w * (p[name] - best[name]) ** 2 for (name, w) in zip(best, (4, 8, 6, 20), strict=True))
    return apart + 2 * (p["heat"] - 0.3 - 0.8 * p["b"]) ** 2 + 0.15 * np.sin(12 * p["a"] * (1 + place))


def budget(p: Mapping[str, float], place: float) -> float:
    best = {"a": 0.8 + place, "b": 0.9 - place, "c": 0.3 + place, "d": 1.1, "e": 0.5}
    apart = sum(w * (p[name] - best[name]) ** 2 for (name, w) in zip(best, (4, 2, 3, 1, 1), strict=True))
    return apart + 0.2 * np.sin(9 * p["c"] + 3 * p["e"] + 4 * place) + p["a"] * p["e"]


UNIT = FloatDistribution(0, 1)
PROBLEMS = (
    Problem(
        "mixture",
        Space(
            {"a": UNIT, "b": UNIT, "c": FloatDistribution(0.05, 0.25), "d": UNIT, "heat": UNIT},
            constraints=["a + b + c + d == 1"],
        ),
        mixture,
        lambda p: p["a"] + p["b"] + p["c"] - 1,
        "d",
    ),
    Problem(
        "budget",
        Space(dict.fromkeys("abcde", UNIT), constraints=["3 * a + 2 * b + c + 2 * d + e <= 3"]),
        budget,
        lambda p: 3 * p["a"] + 2 * p["b"] + p["c"] + 2 * p["d"] + p["e"] - 3,
    ),
)


def with_jumbo(problem: Problem, seed: int, trials: int, method: str) -> Iterator[tuple[float, int]]:
    """The value of each trial, and how many suggestions were forbidden before it."""
    history = problem.history(seed) if method.endswith("old runs") else None
    recipe = {"method": "random"} if method == "random" else {}
    optimizer = Optimizer(problem.space, history, n_trials=trials, seed=seed, **recipe)
    for _ in range(trials):
        suggestion = optimizer.ask()
        assert problem.space.allows(suggestion.params)
        value = problem.value(suggestion.params, 0.0)
        optimizer.tell(suggestion, value)
        yield value, 0


def with_optuna(problem: Problem, seed: int, trials: int, method: str) -> Iterator[tuple[float, int]]:
    def excess(trial: optuna.trial.FrozenTrial) -> tuple[float]:
        return (trial.user_attrs["excess"],)

    sampler: BaseSampler = {"tpe": TPESampler, "gp": GPSampler}[method](seed=seed, constraints_func=excess)
    study, lost = optuna.create_study(sampler=sampler), 0
    values: list[float] = []
    names = [name for name in problem.space if name != problem.rest]
    while len(values) < trials and lost < MOST * trials:
        trial = study.ask({name: problem.space.distributions[name] for name in names})
        params: Params = dict(trial.params)
        too_much = problem.excess(params)
        trial.set_user_attr("excess", too_much)
        if too_much > 0:
            lost += 1
            study.tell(trial, max(values, default=0.0))  # it is not evaluated
            continue
        if problem.rest:
            params[problem.rest] = -too_much
        values.append(problem.value(params, 0.0))
        study.tell(trial, values[-1])
        yield values[-1], lost


METHODS = {
    "jumbo + old runs": with_jumbo,
    "jumbo": with_jumbo,
    "random": with_jumbo,
    "tpe": with_optuna,
    "gp": with_optuna,
}


def measured(problem: Problem, method: str, seeds: Sequence[int], trials: int) -> list[str]:
    regret, forbidden, started = [], [], time.process_time()
    for seed in seeds:
        values, lost = zip(*METHODS[method](problem, seed, trials, method), strict=True)
        regret.append(np.minimum.accumulate(values) - problem.optimum)
        forbidden.append(lost[-1] / len(values))
    seconds = (time.process_time() - started) / (len(seeds) * trials)
    middle = np.median(np.array(regret), axis=0)
    marks = [f"{middle[min(m, trials) - 1]:.4f}" for m in MARKS]
    return [problem.name, method, *marks, f"{np.mean(forbidden):.1f}", f"{seconds:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0-4")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--methods", default=",".join(METHODS))
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore")
    rows = []
    for problem in PROBLEMS:
        for method in options.methods.split(","):
            rows.append(measured(problem, method, seeds, options.trials))
            print(*rows[-1], flush=True)
    titles = ["problem", "method", *(f"regret at {m}" for m in MARKS), "forbidden", "CPU s"]
    print(markdown.table(titles, rows))


if __name__ == "__main__":
    main()
