"""From finished runs to a Markdown table and a picture.

Notation
    S, T        number of seeds, number of trials
    regret      (S, T) simple regret: the smallest noise-free regret among the trials so far
    error       standard error of the mean over seeds, standard deviation / sqrt(S)
    log10 area  (S,) mean over trials of log10(max(regret, floor) / floor): 0 = the optimum at once, 1 = ten times
                the floor on (geometric) average. A table's floor is the gap between its best and second best value.
    rank        of a method among all at trials 10, 25 and 50 of the same problem and seed; ties share the mean rank
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy.stats import rankdata

from jumbo_bo.bench.run import Row, read_runs
from jumbo_bo.space import Array

MARKS = (10, 25, 50)
MOST_DRAWN = 8  # curves in one picture

Curves = Mapping[tuple[str, str], Mapping[int, Array]]  # (problem, method) -> seed -> (T,) regret


def report(
    out: Path,
    suite: str,
    trials: int | None,
    methods: Sequence[str],
    problems: Sequence[str],
    drawn: Sequence[str] = (),
) -> str:
    """Writes `<out>/<suite>/report.md`, `regret.png` and `runs.parquet` (every trial and what made it); returns the
    Markdown. The picture shows the methods `drawn`, by default the first MOST_DRAWN."""
    frame, heads = read_runs(out, suite, trials)
    heads = [head for head in heads if head["problem"] in problems and head["method"] in (methods or [head["method"]])]
    curves = {
        key: curve for key, curve in curves_of(frame).items() if key in {(h["problem"], h["method"]) for h in heads}
    }
    missing = [method for method in (*methods, *drawn) if method not in {m for _, m in curves}]
    if missing or not curves:
        raise ValueError(f"no finished runs of {missing or list(problems)}; there are {sorted(set(curves_of(frame)))}")
    first = {problem: next((h for h in heads if h["problem"] == problem), None) for problem in problems}
    floors = {problem: float(head["floor"]) for problem, head in first.items() if head}
    units = {problem: float(head["unit"]) for problem, head in first.items() if head}
    order = list(methods) or _by_area(curves, floors)
    figure(curves, list(drawn) or order[:MOST_DRAWN], floors, out / suite / "regret.png")
    text = "\n".join(
        [
            f"# {suite}",
            "",
            table(curves, order, units, floors),
            "",
            costs(frame, heads, order),
            "",
            "![regret](regret.png)",
            "",
            *provenance(heads),
            "",
        ]
    )
    (out / suite / "report.md").write_text(text)
    shown = pl.DataFrame({"problem": p, "method": m} for p, m in curves)
    frame.join(shown, on=["problem", "method"], how="semi").write_parquet(out / suite / "runs.parquet")
    return text


def curves_of(frame: pl.DataFrame) -> dict[tuple[str, str], dict[int, Array]]:
    curves: dict[tuple[str, str], dict[int, Array]] = {}
    for (problem, method, seed), rows in frame.sort("trial").group_by(["problem", "method", "seed"]):
        curves.setdefault((str(problem), str(method)), {})[int(str(seed))] = rows["regret"].to_numpy()
    return curves


def mean_error(values: Array) -> tuple[float, float]:  # (S,) -> mean, standard error
    n = len(values)
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(n)) if n > 1 else float("nan")


def log_area(regret: Array, floor: float) -> Array:  # (S, T) -> (S,)
    result: Array = np.log10(np.maximum(regret, floor) / floor).mean(axis=1)
    return result


def average_rank(curves: Curves, methods: Sequence[str]) -> tuple[dict[str, float], int]:
    """Mean rank of each method, and the number of (problem, seed) pairs that all methods have."""
    ranks: list[Array] = []
    pairs = 0
    for problem in dict.fromkeys(p for p, _ in curves):
        runs = [curves.get((problem, method), {}) for method in methods]
        for seed in set.intersection(*(set(run) for run in runs)):
            pairs += 1
            regret = np.stack([run[seed] for run in runs])
            ranks += [rankdata(regret[:, mark - 1]) for mark in _marks(regret.shape[1])]
    mean = np.mean(ranks, axis=0) if ranks else np.full(len(methods), np.nan)
    return dict(zip(methods, map(float, mean), strict=True)), pairs


def table(curves: Curves, methods: Sequence[str], units: Mapping[str, float], floors: Mapping[str, float]) -> str:
    problems = [problem for problem in units if any((problem, method) in curves for method in methods)]
    length = len(next(iter(next(iter(curves.values())).values())))
    marks = _marks(length)
    lines = [f"Simple regret at trials {' / '.join(map(str, marks))}, mean ± standard error (number of seeds).", ""]
    lines += ["| method | " + " | ".join(f"{p}, 1e{round(math.log10(units[p]))}" for p in problems) + " |"]
    lines += ["| --- |" + " --- |" * len(problems)]
    for method in methods:
        cells = [_cell(curves.get((problem, method)), marks, units[problem]) for problem in problems]
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    rank, pairs = average_rank(curves, methods)
    lines += ["", "log10 area (0 = the optimum at once; lower is better), its mean over problems, and average rank "]
    lines[-1] += f"over the {pairs} pairs of problem and seed that all methods have."
    lines += ["", "| method | " + " | ".join(problems) + " | mean | rank |", "| --- |" + " --- |" * (len(problems) + 2)]
    for method in methods:
        areas = {p: log_area(_stack(curves[p, method]), floors[p]) for p in problems if (p, method) in curves}
        cells = ["{:.2f} ± {:.2f}".format(*mean_error(areas[p])) if p in areas else "n/a" for p in problems]
        mean = f"{np.mean([a.mean() for a in areas.values()]):.2f}" if len(areas) == len(problems) else "n/a"
        lines.append(f"| {method} | " + " | ".join([*cells, mean, f"{rank[method]:.2f}"]) + " |")
    return "\n".join(lines)


def costs(frame: pl.DataFrame, heads: Sequence[Row], methods: Sequence[str]) -> str:
    """CPU seconds, means over all runs of a method."""
    lines = ["CPU seconds on one thread: learning from the old runs, then each suggestion.", ""]
    lines += ["| method | learning | suggestion |", "| --- | --- | --- |"]
    asked = {str(m): float(str(s)) for m, s in frame.group_by("method").agg(pl.col("cpu_ask").mean()).iter_rows()}
    for method in methods:
        learned = [head["cpu_pretraining"] for head in heads if head["method"] == method and "cpu_pretraining" in head]
        lines.append(f"| {method} | {f'{np.mean(learned):.1f}' if learned else 'n/a'} | {asked[method]:.3f} |")
    return "\n".join(lines)


def figure(curves: Curves, methods: Sequence[str], floors: Mapping[str, float], path: Path) -> None:
    """Mean regret over trials with a band of one standard error, one panel per problem, log scale."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    problems = list(floors)
    fig = Figure(figsize=(4.2 * len(problems) + 1.4, 3.4), layout="constrained")
    FigureCanvasAgg(fig)
    for ax, problem in zip(fig.subplots(1, len(problems), squeeze=False)[0], problems, strict=True):
        for i, method in enumerate(methods):
            if (problem, method) in curves:
                _band(ax, _stack(curves[problem, method]), floors[problem], method, f"C{i}")
        ax.set(yscale="log", title=problem, xlabel="trial", ylabel="simple regret")
        ax.axhline(floors[problem], color="0.7", linewidth=0.8, linestyle=":")
        ax.grid(True, which="major", alpha=0.3)
    handles, labels = max((ax.get_legend_handles_labels() for ax in fig.axes), key=lambda drawn: len(drawn[1]))
    fig.legend(handles, labels, loc="outside right center", fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, dpi=150)


def provenance(heads: Sequence[Row]) -> list[str]:
    """Which commit, command and versions made these runs; more than one commit is said aloud."""
    commits = sorted({_source(head) for head in heads})
    versions = sorted({", ".join(f"{name} {v}" for name, v in head["versions"].items()) for head in heads})
    dates = sorted(head["date"] for head in heads)
    lines = [f"{len(heads)} runs, {dates[0]} to {dates[-1]}, commit {', '.join(commits)}; {'; '.join(versions)}."]
    if len(commits) > 1:
        lines.append("**These runs were made by different versions of the source.**")
    return [*lines, "", *(f"    {command}" for command in sorted({head["command"] for head in heads}))]


def _source(head: Row) -> str:
    commit = str(head["commit"])
    short = commit if " " in commit else commit[:12]  # words when there is no commit
    return short + " with uncommitted changes" * bool(head["dirty"])


def _marks(length: int) -> list[int]:
    return [mark for mark in MARKS if mark <= length] or [length]


def _stack(runs: Mapping[int, Array]) -> Array:  # -> (S, T), by seed
    return np.stack([runs[seed] for seed in sorted(runs)])


def _cell(runs: Mapping[int, Array] | None, marks: Sequence[int], unit: float) -> str:
    if runs is None:
        return "n/a"
    pairs = [mean_error(_stack(runs)[:, mark - 1] / unit) for mark in marks]
    return " / ".join(f"{mean:.2f} ± {error:.2f}" for mean, error in pairs) + f" ({len(runs)})"


def _band(ax: Any, regret: Array, floor: float, label: str, color: str) -> None:
    trials = np.arange(1, regret.shape[1] + 1)
    mean = regret.mean(axis=0)
    error = regret.std(axis=0, ddof=1) / np.sqrt(len(regret)) if len(regret) > 1 else np.zeros_like(mean)
    low = floor / 10  # zero has no place on a log axis: a mean of zero is drawn at the lower edge
    ax.plot(trials, np.maximum(mean, low), color=color, label=label)
    ax.fill_between(trials, np.maximum(mean - error, low), np.maximum(mean + error, low), color=color, alpha=0.2, lw=0)


def _by_area(curves: Curves, floors: Mapping[str, float]) -> list[str]:
    areas: dict[str, list[float]] = {}
    for (problem, method), runs in curves.items():
        areas.setdefault(method, []).append(float(log_area(_stack(runs), floors[problem]).mean()))
    return sorted(areas, key=lambda method: (float(np.mean(areas[method])), method))
