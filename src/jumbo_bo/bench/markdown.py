"""Markdown of results: tables and what made them, as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from jumbo_bo.bench import stats
from jumbo_bo.bench.run import Row, stamp
from jumbo_bo.bench.stats import Curves, Interval, Ranks, Reached
from jumbo_bo.space.space import Array

ABREAST = 4  # problems in one table of regrets


@dataclass(frozen=True)
class Record:
    """The runs a report is about; by problem, the smallest regret that counts and the unit of the tables."""

    frame: pl.DataFrame
    heads: Sequence[Row]
    curves: Curves
    floors: Mapping[str, float]
    units: Mapping[str, float]
    landmarks: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # regrets known without a trial


def document(*parts: str) -> str:
    return "\n\n".join(parts) + "\n"


def regret_tables(record: Record, methods: Sequence[str]) -> list[str]:
    marks = stats.marks_of(stats.length_of(record.curves))
    problems = list(record.units)
    parts = [f"Simple regret at trials {' / '.join(map(str, marks))}, mean ± standard error (number of seeds)."]
    for block in (problems[i : i + ABREAST] for i in range(0, len(problems), ABREAST)):
        rows = [[m, *(_regret(record.curves.get((p, m)), marks, record.units[p]) for p in block)] for m in methods]
        for name in dict.fromkeys(name for p in block for name in record.landmarks.get(p, ())):
            known = [record.landmarks.get(p, {}).get(name, math.nan) / record.units[p] for p in block]
            rows.append([name, *("n/a" if math.isnan(value) else f"{value:.3g}" for value in known)])
        parts.append(table(["method", *(p + _unit(record.units[p]) for p in block)], rows))
    return parts


def rank_table(ranks: Ranks, methods: Sequence[str]) -> str:
    left_out = ", ".join(f"{method} ({why})" for method, why in ranks.left_out.items())
    if not ranks.table:
        return f"No ranks, because no method has runs on all problems: {left_out}."
    note = f"Average rank [95 % interval] at trials {', '.join(map(str, ranks.marks))} and over these: among"
    note += f" {len(ranks.table)} methods on the {ranks.pairs} pairs of problem and seed that all of them have."
    note += f" Without a rank, because they have too few: {left_out}." if left_out else ""
    rows = ([m, *map(_interval, ranks.table.get(m, [None] * (len(ranks.marks) + 1)))] for m in methods)
    return f"{note}\n\n{table(['method', *map(str, ranks.marks), 'all'], rows)}"


def area_table(record: Record, methods: Sequence[str]) -> str:
    found = stats.areas(record.curves, record.floors)
    cells = {key: stats.mean_error(np.array(list(runs.values()))) for key, runs in found.items()}
    rows = []
    for method in methods:
        own = [cells.get((problem, method)) for problem in record.floors]
        means = [cell[0] for cell in own if cell]
        mean = f"{np.mean(means):.2f}" if len(means) == len(own) else "n/a"
        rows.append([method, mean, *(_plus_minus(*cell) if cell else "n/a" for cell in own)])
    note = "log10 area (0 = the optimum at once; lower is better): its mean over problems, and each."
    return f"{note}\n\n{table(['method', 'mean', *record.floors], rows)}"


def reach_table(reached: Reached, methods: Sequence[str], reference: str) -> str:
    problems = stats.problems_of({key: {} for key in reached.trial}, methods)
    if not problems:
        return f"{reference} is not among these methods: no trials to reach its final regret."
    note = f"First trial at which the mean regret over seeds is at most {reference}'s at the last trial."
    note += " In the mean, never counts as one more than the trials there are, and ≥ says so."
    rows = []
    for method in methods:
        mean, never = reached.mean.get(method, (math.nan, 0))
        cells = [str(reached.trial[p, method] or "never") if (p, method) in reached.trial else "n/a" for p in problems]
        rows.append([method, "n/a" if math.isnan(mean) else f"{'≥ ' if never else ''}{mean:.1f}", *cells])
    return f"{note}\n\n{table(['method', 'mean', *problems], rows)}"


def cost_table(record: Record, methods: Sequence[str]) -> str:
    asked = dict(record.frame.group_by("method").agg(pl.col("cpu_ask").mean()).iter_rows())
    learned: dict[str, list[float]] = {}
    for head in record.heads:
        if "cpu_pretraining" in head:
            learned.setdefault(head["method"], []).append(head["cpu_pretraining"])
    rows = ([m, f"{np.mean(learned[m]):.1f}" if m in learned else "n/a", f"{asked[m]:.3f}"] for m in methods)
    unknown = sum("cpu_pretraining" not in head for head in record.heads)
    hours = f"All {len(record.heads)} runs took {stats.compute_hours(record.frame, record.heads):.2f} CPU hours"
    hours += f", without the learning of {unknown} that did not record it" if unknown else ""
    note = "CPU seconds on one thread: learning from the old runs, then each suggestion."
    return f"{note}\n\n{table(['method', 'learning', 'suggestion'], rows)}\n\n{hours}."


def provenance(heads: Sequence[Row]) -> str:
    """Which commit, command and versions made these runs; more than one commit is said aloud."""
    commits = sorted({_source(head) for head in heads})
    versions = sorted({", ".join(f"{name} {v}" for name, v in head["versions"].items()) for head in heads})
    dates = sorted(head["date"] for head in heads)
    text = f"{len(heads)} runs, {dates[0]} to {dates[-1]}, commit {', '.join(commits)}; {'; '.join(versions)}."
    if len(commits) > 1:
        text += "\n**These runs were made by different versions of the source.**"
    return "\n".join([text, "", *(f"    {command}" for command in sorted({head["command"] for head in heads}))])


def made_by(command: str) -> str:
    """The stamp of figures that are made here and now."""
    made = stamp(command)
    versions = ", ".join(f"{name} {version}" for name, version in made["versions"].items())
    return f"{made['date']}, commit {_source(made)}; {versions}.\n\n    {command}"


def _source(head: Row) -> str:
    commit = str(head["commit"])
    short = commit if " " in commit else commit[:12]  # words when there is no commit
    return f"{short} with uncommitted changes" if head["dirty"] else short


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _unit(unit: float) -> str:
    """', 1e-3'; nothing for 1, which stands for no natural unit."""
    power = math.log10(unit)
    return "" if unit == 1 else f", 1e{round(power)}" if math.isclose(power, round(power)) else f", {unit:g}"


def _regret(runs: Mapping[int, Array] | None, marks: Sequence[int], unit: float) -> str:
    if runs is None:
        return "n/a"
    cells = [stats.mean_error(stats.stack(runs)[:, mark - 1] / unit) for mark in marks]
    return " / ".join(_plus_minus(*cell, significant=unit == 1) for cell in cells) + f" ({len(runs)})"


def _plus_minus(mean: float, error: float, significant: bool = False) -> str:
    """Two decimals, none from 100 on; or three significant digits. No error where there is none to give."""
    small = ".3g" if significant else ".2f"
    style = small if mean < 100 else ".0f" if mean < 1e5 else ".3g"
    return f"{mean:{style}}" if math.isnan(error) else f"{mean:{style}} ± {error:{style}}"


def _interval(cell: Interval | None) -> str:
    if cell is None:
        return "n/a"
    mean = f"{cell.mean:.2f}"
    return mean if math.isnan(cell.low) else f"{mean} [{cell.low:.2f}, {cell.high:.2f}]"
