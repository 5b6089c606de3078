"""Numbers from finished runs; nothing here reads a file or draws.

Notation
    S, T        number of seeds, number of trials
    regret      (S, T) simple regret: the smallest noise-free regret among the trials so far, infinite before the first
                trial that has one
    error       standard error of the mean over seeds, standard deviation / sqrt(S); NaN when there is none to give:
                one seed, or an infinite mean
    log10 area  mean over trials of log10(max(regret, floor) / floor): 0 = the optimum at once, 1 = ten times the floor
                on (geometric) average. A table's floor is the gap between its best and second best value. An infinite
                regret counts as the ceiling, the largest finite regret of any run on that problem: a failed trial is
                as bad as the worst one seen.
    normalised  regret, floored, divided by the regret of a guess: the first trial of the methods in COLD, its geometric
                mean over seeds and methods. 1 = no better than a guess. Without such a method, by the ceiling. Its
                averages are geometric.
    pair        (problem, seed). Means over problems give every suite the same weight, see bootstrap.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from jumbo_bo.bench.bootstrap import ONE_SUITE, Suites, average
from jumbo_bo.space.space import Array

MARKS = (1, 5, 10, 25, 50, 100)
COLD = ("gp-ucb", "optuna-gp", "botorch-logei", "tpe", "cma-es", "random")  # they do not look at old runs
SAME = 1 + 1e-12  # means of the same number over different seeds differ in the last digits

Curves = Mapping[tuple[str, str], Mapping[int, Array]]  # (problem, method) -> seed -> (T,) regret


class Difference(NamedTuple):
    mean: float  # of a method's log10 area minus the reference's on the same pair: negative is better
    error: float
    pairs: int
    problems: int


@dataclass(frozen=True)
class Reached:
    trial: Mapping[tuple[str, str], int | None]  # (problem, method) -> first trial; None = never
    mean: Mapping[str, tuple[float, int]]  # method -> mean over problems with never = T + 1, and how often never


def curves_of(frame: pl.DataFrame) -> dict[tuple[str, str], dict[int, Array]]:
    """A regret that is missing or NaN is that of a failed trial: the smallest so far stays."""
    curves: dict[tuple[str, str], dict[int, Array]] = {}
    key = ["problem", "method", "seed"]
    for (problem, method, seed), rows in frame.sort(*key, "trial").group_by(key, maintain_order=True):
        regret = rows["regret"].cast(pl.Float64).fill_null(np.inf).fill_nan(np.inf).to_numpy()
        curves.setdefault((str(problem), str(method)), {})[int(str(seed))] = np.minimum.accumulate(regret)
    return curves


def stack(runs: Mapping[int, Array]) -> Array:  # -> (S, T), by seed
    return np.stack([runs[seed] for seed in sorted(runs)])


def problems_of(curves: Curves, methods: Iterable[str]) -> list[str]:
    chosen = set(methods)
    return list(dict.fromkeys(problem for problem, method in curves if method in chosen))


def marks_of(length: int) -> list[int]:
    """The last trial is always one."""
    return [*(mark for mark in MARKS if mark < length), length]


def length_of(curves: Curves) -> int:
    """Trials that all runs have."""
    return min(len(regret) for runs in curves.values() for regret in runs.values())


def band(values: Array) -> tuple[Array, Array]:  # (S, ...) -> mean and standard error (...)
    mean = values.mean(axis=0)
    if len(values) < 2:
        return mean, np.full_like(mean, np.nan)
    finite = np.isfinite(mean)
    spread = np.where(finite, values, 0.0).std(axis=0, ddof=1) / np.sqrt(len(values))
    return mean, np.where(finite, spread, np.nan)


def mean_error(values: Array) -> tuple[float, float]:  # (S,) -> mean, standard error
    mean, error = band(values)
    return float(mean), float(error)


def log_regrets(curves: Curves, floors: Mapping[str, float]) -> dict[tuple[str, str], dict[int, Array]]:
    """(problem, method) -> seed -> (T,) log10(max(regret, floor) / floor), infinite where a problem has no ceiling."""
    ceilings = _ceilings(curves)
    return {
        (p, m): {s: _log_regret(regret, floors[p], ceilings[p]) for s, regret in sorted(runs.items())}
        for (p, m), runs in curves.items()
    }


def _log_regret(regret: Array, floor: float, ceiling: float) -> Array:
    finite = np.where(np.isinf(regret), ceiling, regret)
    result: Array = np.log10(np.maximum(finite, floor) / floor)
    return result


def _ceilings(curves: Curves) -> dict[str, float]:
    """Problem -> the largest finite regret of any run; infinite when there is none."""
    finite: dict[str, list[float]] = {}
    for (problem, _), runs in curves.items():
        finite.setdefault(problem, []).extend(r[np.isfinite(r)].max() for r in runs.values() if np.isfinite(r).any())
    return {problem: float(max(found, default=np.inf)) for problem, found in finite.items()}


def areas(curves: Curves, floors: Mapping[str, float]) -> dict[tuple[str, str], dict[int, float]]:
    """(problem, method) -> seed -> log10 area."""
    logs = log_regrets(curves, floors)
    return {key: {seed: float(log.mean()) for seed, log in runs.items()} for key, runs in logs.items()}


def guess_of(curves: Curves) -> str:
    """What normalised regrets are shares of, in words."""
    return "a blind guess's" if any(method in COLD for _, method in curves) else "the largest of any run"


def normalised(curves: Curves, floors: Mapping[str, float]) -> dict[tuple[str, str], dict[int, Array]]:
    """(problem, method) -> seed -> (T,) log10 of the normalised regret; without the problems that have no ceiling."""
    logs = log_regrets(curves, floors)
    first: dict[str, list[float]] = {}
    for (problem, method), runs in logs.items():
        if method in COLD:
            first.setdefault(problem, []).append(float(np.mean([log[0] for log in runs.values()])))
    guess = {p: float(np.log10(max(c, floors[p]) / floors[p])) for p, c in _ceilings(curves).items()}
    guess |= {problem: float(np.mean(means)) for problem, means in first.items()}
    return {
        (p, m): {seed: log - guess[p] for seed, log in runs.items()}
        for (p, m), runs in logs.items()
        if np.isfinite(guess[p])
    }


def normalised_to(curves: Curves, floors: Mapping[str, float], reference: str) -> dict[str, Difference]:
    """Mean difference of the log10 area from the reference's, over the pairs that both have. Its error is that of the
    paired differences within problems: the problems are the ones of interest, not a sample of others."""
    area = areas(curves, floors)
    gaps: dict[str, list[Array]] = {}
    for (problem, method), runs in area.items():
        other = area.get((problem, reference), {})
        shared = sorted(set(runs) & set(other))
        if shared:
            gaps.setdefault(method, []).append(np.array([runs[seed] - other[seed] for seed in shared]))
    result = {}
    for method, parts in gaps.items():
        means, errors = zip(*map(mean_error, parts), strict=True)
        error = float(np.linalg.norm(errors)) / len(parts)
        result[method] = Difference(float(np.mean(means)), error, sum(map(len, parts)), len(parts))
    return result


def trials_to_reach(curves: Curves, reference: str = "optuna-gp", suites: Suites = ONE_SUITE) -> Reached:
    """The first trial at which a method's mean regret over seeds is at most the reference's at its last trial. Only
    problems where the reference has a finite one count; a method that lacks one of them has no mean."""
    final = {problem: band(stack(runs))[0] for (problem, method), runs in curves.items() if method == reference}
    final = {problem: regret for problem, regret in final.items() if np.isfinite(regret[-1])}
    trial: dict[tuple[str, str], int | None] = {}
    for (problem, method), runs in curves.items():
        if problem in final:
            there = np.flatnonzero(band(stack(runs))[0] <= final[problem][-1] * SAME)
            trial[problem, method] = int(there[0]) + 1 if len(there) else None
    mean = {}
    for method in dict.fromkeys(m for _, m in trial):
        if all((problem, method) in trial for problem in final):
            found = {problem: trial[problem, method] for problem in final}
            counted = {p: float(len(final[p]) + 1 if first is None else first) for p, first in found.items()}
            mean[method] = average(counted, suites), sum(first is None for first in found.values())
    return Reached(trial, mean)


def compute_hours(frame: pl.DataFrame, heads: Sequence[Mapping[str, Any]]) -> float:
    """CPU hours of all runs: every suggestion, every result told, and learning from the old runs where it is known."""
    trials = sum(float(frame[name].sum()) for name in ("cpu_ask", "cpu_tell") if name in frame.columns)
    return (trials + sum(float(head.get("cpu_pretraining") or 0.0) for head in heads)) / 3600
