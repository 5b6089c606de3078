"""Markdown of results: tables and what made them, as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from jumbo_bo.bench import stats
from jumbo_bo.bench.bootstrap import Interval, averages, intervals
from jumbo_bo.bench.ranking import Ranks, Table
from jumbo_bo.bench.run import Row
from jumbo_bo.bench.stamp import stamp
from jumbo_bo.bench.stats import Curves, Reached
from jumbo_bo.space.space import Array

ABREAST = 6  # problems beside each other in a table; more of them are folded away


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


def average_table(record: Record, methods: Sequence[str]) -> str:
    marks = stats.marks_of(stats.length_of(record.curves))
    logs = stats.normalised(record.curves, record.floors)
    rows = []
    for method in methods:
        own = {(p, seed): log for p in record.units for seed, log in logs.get((p, method), {}).items()}
        if not own:
            rows.append([method, "0", *["n/a"] * len(marks)])
            continue
        values = np.stack([log[[mark - 1 for mark in marks]] for log in own.values()])
        cells = 10 ** averages(values, list(own))
        rows.append([method, str(len({p for p, _ in own})), *(interval(cell, ".2g") for cell in intervals(cells))])
    note = f"Regret as a share of {stats.guess_of(record.curves)} (lower is better), geometric mean over problems and"
    note += f" seeds [95 % interval], at trials {', '.join(map(str, marks))}."
    return f"{note}\n\n{table(['method', 'problems', *map(str, marks)], rows)}"


def folded(title: str, *parts: str) -> str:
    """A section that a reader opens by a click."""
    return document("<details>", f"<summary>{title}</summary>", *parts, "</details>").rstrip()


def regret_tables(record: Record, methods: Sequence[str]) -> str:
    """One table per problem: methods by marks."""
    marks = stats.marks_of(stats.length_of(record.curves))
    parts = []
    for problem, unit in record.units.items():
        rows = [[m, *_regret(record.curves.get((problem, m)), marks, unit)] for m in methods]
        for name, known in record.landmarks.get(problem, {}).items():
            rows.append([name, "", *[f"{known / unit:.3g}"] * len(marks)])
        parts.append(table([problem + _unit(unit), "seeds", *map(str, marks)], rows))
    note = f"Simple regret at trials {', '.join(map(str, marks))}, mean ± standard error over seeds"
    if len(parts) <= ABREAST:
        return "\n\n".join([f"{note}.", *parts])
    return folded(f"{note}, on each of the {len(parts)} problems", *parts)


def rank_table(ranks: Ranks, methods: Sequence[str]) -> str:
    left_out = ", ".join(f"{method} ({why})" for method, why in ranks.left_out.items())
    if not ranks.table:
        return f"No ranks, because no method has runs on all problems: {left_out}."
    note = f"Average rank [95 % interval] at trials {', '.join(map(str, ranks.marks))} and over these: among"
    note += f" {len(ranks.table)} methods on the {ranks.pairs} pairs of problem and seed that all of them have."
    note += f" Without a rank, because they have too few: {left_out}." if left_out else ""
    return f"{note}\n\n{ranks_of(ranks.table, ranks.marks, methods)}"


def ranks_of(cells: Table, marks: Sequence[int], methods: Sequence[str]) -> str:
    rows = ([m, *map(interval, cells.get(m, [None] * (len(marks) + 1)))] for m in methods)
    return table(["method", *map(str, marks), "all"], rows)


def area_table(record: Record, methods: Sequence[str]) -> str:
    found = stats.areas(record.curves, record.floors)
    cells = {key: stats.mean_error(np.array(list(runs.values()))) for key, runs in found.items()}
    means, each = {}, {}
    for method in methods:
        own = {problem: cells.get((problem, method)) for problem in record.floors}
        known = [cell[0] for cell in own.values() if cell]
        means[method] = f"{np.mean(known):.2f}" if len(known) == len(own) else "n/a"
        each.update({(p, method): _plus_minus(*cell) for p, cell in own.items() if cell})
    note = "log10 area (0 = the optimum at once; lower is better): its mean over problems, and each."
    return _by_problem(note, list(record.floors), means, each)


def reach_table(reached: Reached, methods: Sequence[str], reference: str) -> str:
    problems = stats.problems_of({key: {} for key in reached.trial}, methods)
    if not problems:
        return f"{reference} is not among these methods: no trials to reach its final regret."
    note = f"First trial at which the mean regret over seeds is at most {reference}'s at the last trial."
    note += " In the mean, never counts as one more than the trials there are, and ≥ says so."
    means = {method: reach_mean(reached, method) for method in methods}
    return _by_problem(note, problems, means, {key: str(trial or "never") for key, trial in reached.trial.items()})


def reach_mean(reached: Reached, method: str) -> str:
    mean, never = reached.mean.get(method, (math.nan, 0))
    return "n/a" if math.isnan(mean) else f"{'≥ ' if never else ''}{mean:.1f}"


def _by_problem(
    note: str, problems: Sequence[str], means: Mapping[str, str], cells: Mapping[tuple[str, str], str]
) -> str:
    """Methods by problems in one table; those of many problems in several, folded away below the means."""

    def part(some: Sequence[str]) -> list[list[str]]:
        return [[cells.get((p, m), "n/a") for p in some] for m in means]

    if len(problems) <= ABREAST:
        rows = [[m, mean, *more] for (m, mean), more in zip(means.items(), part(problems), strict=True)]
        return f"{note}\n\n{table(['method', 'mean', *problems], rows)}"
    blocks = [problems[i : i + ABREAST] for i in range(0, len(problems), ABREAST)]
    each = [table(["method", *b], [[m, *row] for m, row in zip(means, part(b), strict=True)]) for b in blocks]
    return f"{note}\n\n{table(['method', 'mean'], means.items())}\n\n{folded('On each problem', *each)}"


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


def _regret(runs: Mapping[int, Array] | None, marks: Sequence[int], unit: float) -> list[str]:
    """The number of seeds, and the regret at each mark."""
    if runs is None:
        return ["0", *["n/a"] * len(marks)]
    cells = [stats.mean_error(stats.stack(runs)[:, mark - 1] / unit) for mark in marks]
    return [str(len(runs)), *(_plus_minus(*cell, significant=unit == 1) for cell in cells)]


def _plus_minus(mean: float, error: float, significant: bool = False) -> str:
    """Two decimals, none from 100 on; or three significant digits. No error where there is none to give."""
    small = ".3g" if significant else ".2f"
    style = small if mean < 100 else ".0f" if mean < 1e5 else ".3g"
    return f"{mean:{style}}" if math.isnan(error) else f"{mean:{style}} ± {error:{style}}"


def interval(cell: Interval | None, style: str = ".2f") -> str:
    if cell is None:
        return "n/a"
    low, high = f"{cell.low:{style}}", f"{cell.high:{style}}"
    return f"{cell.mean:{style}}" + ("" if math.isnan(cell.low) else f" [{low}, {high}]")
