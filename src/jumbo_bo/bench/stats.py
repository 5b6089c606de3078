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
    pair        (problem, seed). Means over pairs give every problem the same weight.
    rank        of a method among all on the same pair, at one trial; ties share the mean rank
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from scipy.stats import rankdata

from jumbo_bo.space.space import Array

MARKS = (10, 25, 50, 100)
SAME = 1 + 1e-12  # means of the same number over different seeds differ in the last digits

Curves = Mapping[tuple[str, str], Mapping[int, Array]]  # (problem, method) -> seed -> (T,) regret


class Interval(NamedTuple):
    mean: float
    low: float
    high: float


class Difference(NamedTuple):
    mean: float  # of a method's log10 area minus the reference's on the same pair: negative is better
    error: float
    pairs: int
    problems: int


@dataclass(frozen=True)
class Ranks:
    marks: Sequence[int]
    table: Mapping[str, Sequence[Interval]]  # method -> average rank at each mark, the last over all marks
    pairs: int
    left_out: Mapping[str, str]  # method -> why it has no rank


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
    return [mark for mark in MARKS if mark <= length] or [length]


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


def log_area(regret: Array, floor: float, ceiling: float = np.inf) -> Array:  # (S, T) -> (S,)
    finite = np.where(np.isinf(regret), ceiling, regret)
    result: Array = np.log10(np.maximum(finite, floor) / floor).mean(axis=1)
    return result


def areas(curves: Curves, floors: Mapping[str, float]) -> dict[tuple[str, str], dict[int, float]]:
    """(problem, method) -> seed -> log10 area."""
    ceilings: dict[str, float] = {}
    for (problem, _), runs in curves.items():
        finite = [float(regret[np.isfinite(regret)].max(initial=0.0)) for regret in runs.values()]
        ceilings[problem] = max(ceilings.get(problem, 0.0), *finite)
    return {
        (p, m): dict(zip(sorted(runs), log_area(stack(runs), floors[p], ceilings[p] or np.inf).tolist(), strict=True))
        for (p, m), runs in curves.items()
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


def ranked(curves: Curves, methods: Sequence[str]) -> tuple[dict[str, list[int]], list[str], dict[str, str]]:
    """The seeds to rank on for each problem, the methods that have them all, and why the others are left out.

    A method needs runs on all problems. Then, beginning with the methods that have the most pairs, each one is taken
    unless the pairs common to all taken so far would fall below half of the most that one method has."""
    problems = problems_of(curves, methods)
    seeds = {m: {p: set(curves.get((p, m), {})) for p in problems} for m in methods}
    size = {m: sum(map(len, seeds[m].values())) for m in methods}
    most = max((size[m] for m in methods if all(seeds[m].values())), default=0)
    common: dict[str, set[int]] = {}
    taken, left_out = [], {}
    for method in sorted(methods, key=lambda m: -size[m]):
        own = seeds[method]
        rest = {p: common.get(p, own[p]) & own[p] for p in problems}
        pairs = sum(map(len, rest.values()))
        if not all(own.values()):
            left_out[method] = f"on {sum(map(bool, own.values()))} of {len(problems)} problems"
        elif not all(rest.values()) or 2 * pairs < most:
            left_out[method] = f"{pairs} of {most} pairs"
        else:
            common = rest
            taken.append(method)
    return {p: sorted(s) for p, s in common.items()}, [m for m in methods if m in taken], left_out


def ranks(curves: Curves, methods: Sequence[str], marks: Sequence[int] = (), resamples: int = 2000) -> Ranks:
    """Average rank at each mark and over all marks, with 95 % intervals: a bootstrap over the seeds of each problem.
    Where a problem has one seed only, there is no interval (NaN)."""
    seeds, taken, left_out = ranked(curves, methods)
    if not (seeds and taken):
        return Ranks(marks, {}, 0, left_out)
    shown = {key: runs for key, runs in curves.items() if key[1] in taken}
    marks = list(marks) or marks_of(length_of(shown))
    rng = np.random.default_rng(0)
    mean = np.zeros((len(taken), len(marks) + 1))
    samples = np.zeros((resamples, *mean.shape))
    for problem, chosen in seeds.items():
        regret = np.stack([[curves[problem, m][seed][[k - 1 for k in marks]] for m in taken] for seed in chosen])
        rank = rankdata(regret, axis=1)  # (seeds, methods, marks)
        rank = np.concatenate([rank, rank.mean(axis=2, keepdims=True)], axis=2)
        n = len(chosen)
        share = rng.multinomial(n, np.full(n, 1 / n), size=resamples) / n if n > 1 else np.full((resamples, n), np.nan)
        mean = mean + rank.mean(axis=0) / len(seeds)
        samples = samples + np.tensordot(share, rank, axes=1) / len(seeds)  # (resamples, methods, marks)
    low, high = np.percentile(samples, [2.5, 97.5], axis=0)
    cells = np.stack([mean, low, high], axis=-1)
    table = {m: [Interval(*map(float, cell)) for cell in cells[k]] for k, m in enumerate(taken)}
    return Ranks(marks, table, sum(map(len, seeds.values())), left_out)


def trials_to_reach(curves: Curves, reference: str = "optuna-gp") -> Reached:
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
            counted = [len(final[p]) + 1 if first is None else first for p, first in found.items()]
            mean[method] = float(np.mean(counted)), sum(first is None for first in found.values())
    return Reached(trial, mean)


def compute_hours(frame: pl.DataFrame, heads: Sequence[Mapping[str, Any]]) -> float:
    """CPU hours of all runs: every suggestion, every result told, and learning from the old runs where it is known."""
    trials = sum(float(frame[name].sum()) for name in ("cpu_ask", "cpu_tell") if name in frame.columns)
    return (trials + sum(float(head.get("cpu_pretraining") or 0.0) for head in heads)) / 3600
