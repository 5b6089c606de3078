"""Methods compared on the same problems and seeds.

Notation
    pair        (problem, seed); a comparison uses the pairs that both methods have
    y(p, m, s)  log10 regret, floored, at a mark or averaged over the trials (the log10 area), see stats.py
    difference  y(p, m, s) - y(p, reference, s), averaged with the same weight for every suite, in it for every problem,
                in that for every seed; its interval is that of bootstrap.py. Above 0 the method is worse than the
                reference; 0.3 is twice the regret, in the geometric mean.
    outcome     of a problem: the mean difference over its seeds is a win of the method below -TIE, a loss above TIE,
                a tie otherwise
    cold        a method that does not look at old runs, one of COLD
    ratio       of a method on a problem, to the best cold method:
                    max over cold c of 10^(mean over shared seeds of area(p, m, s) - area(p, c, s))
                with area the log10 area: how many times the regret of the cold method that did best on this problem, in
                the geometric mean over trials and seeds. The best one is known only afterwards, so that at 1 a method
                never makes you wish you had left the old runs out. A cold method is compared with itself as well: its
                ratio is 1 or more.
    error       of log10 ratio: the standard error of the mean over seeds; NaN with one seed

A problem without any finite regret says nothing about the methods and is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log10
from typing import NamedTuple

import numpy as np

from jumbo_bo.bench.bootstrap import ONE_SUITE, Interval, Pair, Suites, averages, intervals
from jumbo_bo.bench.stats import COLD, Curves, areas, log_regrets, mean_error
from jumbo_bo.space.space import Array

# A ratio above it is counted. Its log10, 0.021, is a quarter of the narrowest half-interval of an area in the summary
# of fcnet-tt, fcnet-dt and hpobench-mlp (0.085): a method is not called worse for less than can be measured.
WORSE = 1.05
TIE = log10(WORSE)


class Outcomes(NamedTuple):
    wins: int
    ties: int
    losses: int


@dataclass(frozen=True)
class Versus:
    """A method against the reference: at each mark, and last the area."""

    differences: Sequence[Interval]
    outcomes: Sequence[Outcomes]
    problems: int
    pairs: int


class Ratio(NamedTuple):
    problem: str
    value: float
    error: float  # of its log10
    cold: str  # the best cold method there
    seeds: int

    @property
    def worse(self) -> bool:
        return self.value > WORSE

    @property
    def clearly(self) -> bool:
        """Above WORSE by more than two standard errors; never with one seed."""
        return log10(self.value) - 2 * self.error > TIE


def against(
    curves: Curves, floors: Mapping[str, float], reference: str, marks: Sequence[int], suites: Suites = ONE_SUITE
) -> dict[str, Versus]:
    """Every method that shares a pair with the reference, itself included."""
    logs = log_regrets(curves, floors)
    found: dict[str, dict[Pair, Array]] = {}
    for (problem, method), runs in logs.items():
        other = logs.get((problem, reference), {})
        for seed in sorted(set(runs) & set(other)):
            here, there = _values(runs[seed], marks), _values(other[seed], marks)
            if np.isfinite(here).all() and np.isfinite(there).all():
                found.setdefault(method, {})[problem, seed] = here - there
    return {method: _versus(gaps, suites) for method, gaps in found.items()}


def _versus(gaps: Mapping[Pair, Array], suites: Suites) -> Versus:
    pairs, values = list(gaps), np.stack(list(gaps.values()))
    problems = list(dict.fromkeys(problem for problem, _ in pairs))
    mean = np.stack([np.mean([gaps[pair] for pair in pairs if pair[0] == p], axis=0) for p in problems])
    outcomes = [outcomes_of(column) for column in mean.T]
    return Versus(intervals(averages(values, pairs, suites)), outcomes, len(problems), len(pairs))


def outcomes_of(differences: Array) -> Outcomes:  # (problems,)
    wins, losses = int(np.sum(differences < -TIE)), int(np.sum(differences > TIE))
    return Outcomes(wins, len(differences) - wins - losses, losses)


def ratios(curves: Curves, floors: Mapping[str, float], methods: Sequence[str]) -> dict[str, list[Ratio]]:
    """For each method, its ratio on every problem it shares with a cold method, the worst first."""
    area = areas(curves, floors)
    result = {}
    for method in methods:
        found = []
        for problem in floors:
            own = area.get((problem, method), {})
            options = [_ratio(problem, own, cold, area.get((problem, cold), {})) for cold in COLD]
            known = [option for option in options if option is not None]
            if known:
                found.append(max(known, key=lambda ratio: ratio.value))
        result[method] = sorted(found, key=lambda ratio: -ratio.value)
    return result


def _ratio(problem: str, own: Mapping[int, float], cold: str, other: Mapping[int, float]) -> Ratio | None:
    shared = [s for s in sorted(set(own) & set(other)) if np.isfinite(own[s]) and np.isfinite(other[s])]
    if not shared:
        return None
    mean, error = mean_error(np.array([own[s] - other[s] for s in shared]))
    return Ratio(problem, float(10**mean), error, cold, len(shared))


def _values(log: Array, marks: Sequence[int]) -> Array:  # (T,) -> (marks + 1,)
    return np.append(log[[mark - 1 for mark in marks]], log.mean())
