"""Average ranks of methods on the pairs that all of them have.

Notation
    rank        of a method among all on the same pair, at one trial; ties share the mean rank
    average     every suite has the same weight, see bootstrap.py; 'all' is the mean over the marks
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import rankdata

from jumbo_bo.bench.bootstrap import ONE_SUITE, Interval, Suites, averages, intervals, names
from jumbo_bo.bench.stats import Curves, length_of, marks_of, problems_of

Table = Mapping[str, Sequence[Interval]]  # method -> average rank at each mark, the last over all marks


@dataclass(frozen=True)
class Ranks:
    marks: Sequence[int]
    table: Table
    pairs: int
    left_out: Mapping[str, str]  # method -> why it has no rank
    by_suite: Mapping[str, Table] = field(default_factory=dict)  # among the same methods


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


def ranks(curves: Curves, methods: Sequence[str], marks: Sequence[int] = (), suites: Suites = ONE_SUITE) -> Ranks:
    """Average rank at each mark and over all marks with 95 % intervals, over all suites and in each."""
    seeds, taken, left_out = ranked(curves, methods)
    if not (seeds and taken):
        return Ranks(marks, {}, 0, left_out)
    marks = list(marks) or marks_of(length_of({key: runs for key, runs in curves.items() if key[1] in taken}))
    at = [mark - 1 for mark in marks]
    pairs = [(problem, seed) for problem, chosen in seeds.items() for seed in chosen]
    rank = rankdata([[curves[p, m][seed][at] for m in taken] for p, seed in pairs], axis=1)  # (N, methods, marks)
    rank = np.concatenate([rank, rank.mean(axis=2, keepdims=True)], axis=2)

    def table(chosen: Sequence[int]) -> Table:
        cells = averages(rank[chosen], [pairs[i] for i in chosen], suites)
        return {m: intervals(own) for m, own in zip(taken, cells, strict=True)}

    by_suite = {
        suite: table([i for i, (problem, _) in enumerate(pairs) if suites.get(problem, "") == suite])
        for suite in names(list(seeds), suites)
    }
    return Ranks(marks, table(range(len(pairs))), len(pairs), left_out, by_suite)
