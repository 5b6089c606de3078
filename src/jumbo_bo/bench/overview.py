"""The picture of several suites: who is ahead on average, and by how much in each suite.

Left the average rank over trials, every suite with the same weight; beside it one panel per suite with the normalised
regret. The methods chosen have a colour, the others in the left panel are grey. The background is opaque, so that the
picture reads on dark pages too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jumbo_bo.bench import figures, interactive, ranking, stats
from jumbo_bo.bench.bootstrap import Suites, averages, names
from jumbo_bo.bench.stats import COLD, Curves
from jumbo_bo.space.space import Array

COLUMNS = 4  # panels of suites beside each other
RIVALS = 2  # other methods with old runs that have a colour
GREY = "0.62"
GAP = 0.19  # inches between names
TITLE = {"fontsize": "medium", "x": 0.02, "ha": "left"}
RANK = "average rank"

Lines = Mapping[str, Array]  # method -> (T, 3) mean, low, high


def chosen(order: Sequence[str], reference: str) -> list[str]:
    """The reference, the best others that learn from old runs, the best that does not; `order` is best first."""
    others = [method for method in order if method != reference]
    warm, cold = [m for m in others if m not in COLD], [m for m in others if m in COLD]
    return [reference, *warm[:RIVALS], *cold[:1]]


def draw(curves: Curves, floors: Mapping[str, float], suites: Suites, methods: Sequence[str], path: Path) -> None:
    """`<path>.png`, and `<path>.html` with all methods."""
    every = list(dict.fromkeys([*methods, *(method for _, method in curves)]))
    rank = rank_lines(curves, every, suites)
    logs = stats.normalised(curves, floors)
    regret = {suite: regret_lines(logs, suite, suites, every) for suite in names([p for p, _ in logs], suites)}
    share = f"regret as a share of {stats.guess_of(curves)}"
    sizes = {suite: sum(suites.get(p, "") == suite for p in {p for p, _ in logs}) for suite in regret}
    _png((rank, regret), methods, sizes, share, path.with_suffix(".png"))
    _html(rank, regret, [m for m in every if m in rank or m in methods], share, path.with_suffix(".html"))


def rank_lines(curves: Curves, methods: Sequence[str], suites: Suites) -> Lines:
    """Of the methods that have a rank, at every trial."""
    found = ranking.ranks(curves, methods, range(1, stats.length_of(curves) + 1), suites)
    return {method: np.array(cells[:-1]) for method, cells in found.table.items()}


def regret_lines(logs: Curves, suite: str, suites: Suites, methods: Sequence[str]) -> Lines:
    """Normalised regret of the methods that have all problems of the suite; `logs` are its logarithms."""
    problems = {problem for problem, _ in logs if suites.get(problem, "") == suite}
    lines = {}
    for method in methods:
        own = {(p, seed): log for p in sorted(problems) for seed, log in logs.get((p, method), {}).items()}
        if {p for p, _ in own} == problems:
            length = min(map(len, own.values()))
            lines[method] = 10 ** averages(np.stack([log[:length] for log in own.values()]), list(own))
    return lines


def spread(places: Sequence[float], gap: float) -> list[float]:
    """The nearest places, by least squares, that keep the order and lie at least `gap` apart."""
    from scipy.optimize import isotonic_regression

    order = np.argsort(places, kind="stable")
    steps = gap * np.arange(len(order))
    result = np.empty(len(order))
    result[order] = isotonic_regression(np.asarray(places, dtype=float)[order] - steps).x + steps
    return [float(place) for place in result]


def colours(methods: Sequence[str]) -> dict[str, interactive.Style]:
    """As in every figure, except that no line is dashed: relatives that share a colour there get another here."""
    usual = figures.styles(methods)
    found: dict[str, str] = {}
    for method in sorted(methods, key=lambda m: usual[m][1] != "-"):
        free = [c for c in (usual[method][0], *(c for c, _ in figures.OTHERS)) if c not in found.values()]
        found[method] = free[0] if free else usual[method][0]
    return {method: (found[method], "-") for method in methods}


def _png(
    lines: tuple[Lines, Mapping[str, Lines]], methods: Sequence[str], sizes: Mapping[str, int], share: str, path: Path
) -> None:
    rank, regret = lines
    columns = min(len(regret), COLUMNS)
    rows = math.ceil(len(regret) / columns)
    height = max(2.0 * rows, 3.4) + 0.5
    width = max(2.1 * columns, 4.4)  # room for the title over one panel
    fig = figures.figure(4.6 + width, height)
    left, right = fig.subfigures(1, 2, width_ratios=[4.6, width])
    look = colours(methods)
    ax = left.subplots()
    for method in sorted(rank, key=lambda m: m in methods):  # the chosen ones over the others
        _draw(ax, rank[method], look.get(method), method == methods[0])
    _axes(ax, rank)
    _labels(ax, {m: line[-1, 0] for m, line in rank.items()}, look, GAP / height)
    left.suptitle(f"Average rank over {len(regret)} suite{'s' if len(regret) > 1 else ''} (1 = best)", **TITLE)
    panels = right.subplots(rows, columns, squeeze=False).flat
    for ax, suite in zip(panels, [*regret, *[None] * (rows * columns - len(regret))], strict=True):
        if suite is None:
            ax.set_axis_off()
            continue
        shown = {m: regret[suite][m] for m in reversed(methods) if m in regret[suite]}
        for method, line in shown.items():
            _draw(ax, line[:, :1], look[method], method == methods[0])  # differences are paired, bands are not
        ax.set_yscale("log")
        _axes(ax, shown)
        _decades(ax)
        ax.set_title(f"{suite} ({sizes[suite]} problem{'s' if sizes[suite] > 1 else ''})", fontsize="small", loc="left")
    right.suptitle(f"{share.capitalize()} (lower is better)", **TITLE)
    figures.save(fig, path)


def _draw(ax: Any, lines: Array, style: interactive.Style | None, first: bool) -> None:  # (T, 1 or 3)
    x = np.arange(1, len(lines) + 1)
    if style is None:
        ax.plot(x, lines[:, 0], color=GREY, linewidth=0.8)
        return
    ax.plot(x, lines[:, 0], color=style[0], linestyle=style[1], linewidth=2.4 if first else 1.4)
    if lines.shape[1] > 1:
        ax.fill_between(x, lines[:, 1], lines[:, 2], color=style[0], alpha=0.13, lw=0)


def _axes(ax: Any, lines: Lines) -> None:
    last = max((len(line) for line in lines.values()), default=1)
    marks = stats.marks_of(last)
    ax.set_xscale("log")
    ax.set_xticks(marks, map(str, marks), fontsize="small")
    ax.set_xlim(1, max(last, 2))
    ax.minorticks_off()
    ax.set_xlabel("trial", fontsize="small", labelpad=1)
    ax.tick_params(axis="y", labelsize="small")
    ax.grid(True, alpha=0.3)
    ax.spines[["top", "right"]].set_visible(False)


def _decades(ax: Any) -> None:
    """Plain numbers: the powers of ten, and 2 and 5 times these where few powers are there."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    low, high = ax.get_ylim()
    subs = (1.0,) if high / low > 100 else (1.0, 2.0, 5.0)
    ax.yaxis.set_major_locator(LogLocator(subs=subs, numticks=6))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.minorticks_off()


def _labels(ax: Any, ends: Mapping[str, float], look: Mapping[str, interactive.Style], gap: float) -> None:
    """Names at the right ends of their lines, moved apart where they would overlap."""
    to_axes = ax.transData + ax.transAxes.inverted()
    places = spread([float(to_axes.transform((1.0, end))[1]) for end in ends.values()], gap)
    for method, place in zip(ends, places, strict=True):
        colour = look[method][0] if method in look else GREY
        words = {"weight": "bold" if method == next(iter(look)) else "normal", "fontsize": "small"}
        name = f"{method}, no old runs" if method in look and method in COLD else method
        ax.text(1.02, place, name, transform=ax.transAxes, color=colour, va="center", **words)


def _html(rank: Lines, regret: Mapping[str, Lines], methods: Sequence[str], share: str, path: Path) -> None:
    """All methods; a click on one in the legend hides it in all panels."""
    from plotly.subplots import make_subplots  # type: ignore[import-untyped]

    panels = {RANK: rank, **{f"{suite}: {share}": lines for suite, lines in regret.items()}}
    columns = min(len(panels), 3)
    rows = math.ceil(len(panels) / columns)
    fig = make_subplots(
        rows, columns, subplot_titles=list(panels), horizontal_spacing=0.2 / columns, vertical_spacing=0.22 / rows
    )
    look = figures.styles(methods)
    listed: set[str] = set()
    for i, (title, lines) in enumerate(panels.items()):
        cell = {"row": i // columns + 1, "col": i % columns + 1}
        for method in (m for m in methods if m in lines):
            mean, low, high = lines[method].T
            band = mean, (high - low) / 2
            for trace in interactive.traces(
                np.arange(1.0, len(mean) + 1), band, float(np.min(mean)) / 10, method, look[method]
            ):
                trace.showlegend = trace.showlegend and method not in listed
                fig.add_trace(trace, **cell)
            listed.add(method)
        if title != RANK:
            fig.update_yaxes(type="log", exponentformat="power", **cell)
    fig.update_annotations(font_size=13)
    fig.update_xaxes(title_text="trial", title_standoff=4, type="log", tickvals=list(stats.MARKS))
    interactive.page(
        fig, path, "average rank and regret in each suite, mean ± half the width of the 95 % interval", 360 * rows + 60
    )
