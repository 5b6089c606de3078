"""The main job on real data: old runs are three small FCNet tables, the new problem is the fourth.

Notation
    row       one finished trial: what was tried, its value and why
    losses    (N,) mean over the four training seeds of every configuration of the new problem, best first
    regret    how far a configuration's mean loss is from losses[0]
    mark      a number of trials after which methods are compared

A trial shows the loss of one training seed, drawn by `default_rng([seed, trial])`, so a resumed demo sees the same
noise. Results are about the configuration with the lowest value seen, the one a user would take home.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import optuna
from optuna.trial import TrialState, create_trial

from jumbo_bo.bench.fcnet import leave_one_out
from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.tables import SMALL, table
from jumbo_bo.data.storage import opened
from jumbo_bo.learning.past import Past
from jumbo_bo.methods import DEFAULT, METHODS
from jumbo_bo.optimizer import Optimizer, Suggestion
from jumbo_bo.space.space import Array, Params
from jumbo_bo.studies import attributes

METHOD, RIVAL = DEFAULT, "gp-ucb"
RECIPE = METHODS[METHOD]
MARKS = (5, 10, 30, 100)


@dataclass(frozen=True)
class Options:
    target: str
    trials: int
    storage: str
    seed: int


@dataclass(frozen=True)
class Case:
    problem: Problem
    losses: Array  # (N,)


@dataclass(frozen=True)
class Row:
    params: Params
    value: float
    why: str


@dataclass(frozen=True)
class Score:
    """Of the configuration with the lowest value until each trial."""

    regrets: tuple[float, ...]
    ranks: tuple[int, ...]  # 1 = the optimum


def build(target: str) -> Case:
    return Case(leave_one_out(target, family=SMALL), np.sort(table(SMALL, target).values.mean(axis=1)))


@contextmanager
def open_study(options: Options, problem: Problem) -> Iterator[optuna.Study]:
    """Optuna's study of this demo, new or as it was left."""
    with opened(options.storage) as storage:
        name = f"small-{options.target}-seed{options.seed}"  # demo-...: as it was once, on the complete tables
        yield optuna.create_study(storage=storage, study_name=name, direction=problem.direction, load_if_exists=True)


def stored(study: optuna.Study) -> list[Row]:
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return [Row(dict(t.params), float(t.value or 0.0), str(t.user_attrs.get("why", ""))) for t in trials]


def store(study: optuna.Study, problem: Problem, suggestion: Suggestion, value: float) -> Row:
    row, distributions = Row(suggestion.params, value, suggestion.why), dict(problem.space.distributions)
    study.add_trial(
        create_trial(params=row.params, distributions=distributions, value=value, user_attrs=attributes(suggestion))
    )
    return row


def search(
    problem: Problem, past: Past | None, method: str, told: Sequence[Row], n: int, seed: int
) -> Iterator[tuple[Suggestion, float]]:
    """Trials len(told) + 1 ... n."""
    optimizer = Optimizer(problem.space, past, problem.direction, n, method, seed, problem.candidates)
    for row in told:
        optimizer.tell(row.params, row.value)
    for trial in range(len(told) + 1, n + 1):
        suggestion = optimizer.ask()
        value = problem.objective(suggestion.params, np.random.default_rng([seed, trial]))
        optimizer.tell(suggestion, value)
        yield suggestion, value


def rival(problem: Problem, n: int, seed: int) -> Iterator[Row]:
    """A cold start: plain GP-UCB with the same budget, seed and noise, which knows nothing of the old runs. It is a
    better one than the default without old runs."""
    return (Row(s.params, value, s.why) for s, value in search(problem, None, RIVAL, (), n, seed))


def regrets(problem: Problem, rows: Sequence[Row]) -> list[float]:  # -> (n,)
    """Regret of the configuration with the lowest value, after each trial."""
    best = [min(rows[:n], key=lambda row: row.value) for n in range(1, len(rows) + 1)]
    return [problem.regret(row.params) for row in best]


def score(case: Case, rows: Sequence[Row]) -> Score:
    curve = regrets(case.problem, rows)
    return Score(tuple(curve), tuple(1 + int(np.sum(case.losses - case.losses[0] < r)) for r in curve))


def marks(n: int) -> list[int]:
    return [*(mark for mark in MARKS if mark < n), n]


def verdict(warm: Score, cold: Score) -> str:
    """How many trials the old runs were worth."""
    n, end = len(cold.regrets), cold.regrets[-1]
    first = next((t for t, regret in enumerate(warm.regrets, 1) if regret <= end), None)
    if first is None:
        return f"In {n} trials the old runs were no help: without them the search got further."
    if first == n:
        return f"After {n} trials both searches are equally far."
    trials = f"{first} trial{'s' if first > 1 else ''}"
    return f"With old runs, {trials} got at least as far as {n} without them."


def short(why: str) -> str:
    """Without the prediction: 'Old runs rate this 0.5 sd above average; your 4 trials agree. Exploring'."""
    return why.split(": expected", 1)[0].rstrip(".")
