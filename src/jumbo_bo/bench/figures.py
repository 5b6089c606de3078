"""Pictures of results: PNG by matplotlib for pages, HTML by plotly to look closer.

A method has the same colour and dash in every figure; relatives share a colour.
"""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jumbo_bo.bench import stats
from jumbo_bo.bench.interactive import FEW, Style, edges, page, plus_minus, traces
from jumbo_bo.bench.stats import Curves
from jumbo_bo.space.space import Array

RED, ORANGE, BLUE, PURPLE, BROWN = "#d62728", "#ff7f0e", "#1f77b4", "#9467bd", "#8c564b"
GREY, GREEN, TEAL, OLIVE, PINK = "#7f7f7f", "#2ca02c", "#17a2a2", "#9a9a1e", "#e377c2"
STYLES = {
    "jumbo-mixture": (RED, "-"),
    "jumbo-joint": (RED, ":"),
    "jumbo": (ORANGE, "-"),
    "jumbo-printed": (ORANGE, "--"),
    "jumbo-released": (ORANGE, ":"),
    "jumbo-blr": (OLIVE, ":"),
    "jumbo-constant": (PINK, ":"),
    "offline-dkl": (BROWN, "--"),
    "gp-ucb": (BLUE, "-"),
    "box-gp-ucb": (BLUE, "--"),
    "mf-gp-ucb": (TEAL, "-"),
    "optuna-gp": (PURPLE, "-"),
    "tpe": (BROWN, "-"),
    "bohb": (BROWN, ":"),
    "cma-es": (GREY, "--"),
    "random": (GREY, "-"),
    "rgpe": (GREEN, "-"),
    "empirical-gp": (RED, "--"),
    "scaml-gp": (GREEN, ":"),
    "best-first": (GREY, ":"),
    "mt-gp": (GREEN, "--"),
    "gcp": (PINK, "-"),
    "cts": (PINK, "--"),
    "mt-ablr": (OLIVE, "-"),
    "dngo": (OLIVE, "--"),
    "mt-bohamiann": (PURPLE, "--"),
    "fsbo": (TEAL, "--"),
    "hyperbo": (TEAL, ":"),
}
OTHERS = tuple((colour, dash) for dash in ("-", "--", ":") for colour in (BLUE, RED, GREEN, PURPLE, ORANGE, TEAL, PINK))
FEW_TICKS = 8  # all of them are written at a logarithmic axis
COLUMNS = 4  # panels beside each other

Bars = Mapping[str, tuple[float, float]]  # label -> mean, error
Lines = Mapping[str, tuple[Array, Array]]  # label -> mean (n,), error (n,)
Landmarks = Mapping[str, Mapping[str, float]]  # problem -> label -> regret, a horizontal line
NONE: Landmarks = {}


def styles(labels: Sequence[str]) -> dict[str, Style]:
    """The fixed styles; a label that has none takes the next one that no label here has."""
    taken = {STYLES[label] for label in labels if label in STYLES}
    free = [style for style in OTHERS if style not in taken]
    others = [label for label in labels if label not in STYLES]
    return {label: STYLES[label] for label in labels if label in STYLES} | {
        label: free[i % len(free)] for i, label in enumerate(others)
    }


def regret_png(
    curves: Curves, methods: Sequence[str], floors: Mapping[str, float], path: Path, landmarks: Landmarks = NONE
) -> None:
    """Mean regret over trials with a band of one standard error, one panel per problem, log scale. The dotted line is
    the floor, where a mean comes near it; a mean of zero, which a log axis has no place for, is drawn at a tenth of
    it. Landmarks are horizontal lines."""
    columns, rows = _grid(len(floors))
    fig = figure(2.45 * columns + 1.4, 2.3 * rows + 0.1) if len(floors) > 1 else figure(6.4, 3.6)
    panels = fig.subplots(rows, columns, squeeze=False).flat
    look = styles(methods)
    for i, (ax, problem) in enumerate(zip(panels, [*floors, *[None] * (rows * columns - len(floors))], strict=True)):
        if problem is None:
            ax.set_axis_off()
            continue
        means = _means(curves, problem, methods)
        for method, (mean, error) in means.items():
            _line(ax, np.arange(1.0, len(mean) + 1), (mean, error), floors[problem] / 10, method, look[method])
        if _near(means, floors[problem]):
            ax.axhline(floors[problem], color="0.6", linewidth=0.8, linestyle=":")
        for name, regret in landmarks.get(problem, {}).items():
            ax.axhline(regret, color="0.2", linewidth=1, linestyle="-.")
            ax.text(1, regret, name, transform=ax.get_yaxis_transform(), ha="right", va="bottom", fontsize="small")
        ax.set(yscale="log", xlabel="trial", ylabel="" if i % columns else "simple regret")
        ax.set_title(problem, fontsize="medium" if len(problem) <= 24 else "small")
        ax.grid(True, which="major", alpha=0.3)
    _legend(fig, methods)
    save(fig, path)


def regret_html(
    curves: Curves, methods: Sequence[str], floors: Mapping[str, float], path: Path, landmarks: Landmarks = NONE
) -> None:
    """The same; a click on a method in the legend hides it in all panels."""
    from plotly.subplots import make_subplots  # type: ignore[import-untyped]

    columns, rows = _grid(len(floors))
    gaps = {"horizontal_spacing": 0.2 / columns, "vertical_spacing": 0.22 / rows}
    fig = make_subplots(rows, columns, subplot_titles=list(floors), **gaps)
    look = styles(methods)
    listed: set[str] = set()
    for i, (problem, floor) in enumerate(floors.items()):
        cell = {"row": i // columns + 1, "col": i % columns + 1}
        means = _means(curves, problem, methods)
        for method, (mean, error) in means.items():
            x = np.arange(1.0, len(mean) + 1)
            for trace in traces(x, (mean, error), floor / 10, method, look[method]):
                trace.showlegend = trace.showlegend and method not in listed
                fig.add_trace(trace, **cell)
            listed.add(method)
        if _near(means, floor):
            fig.add_hline(floor, line={"color": "#999", "width": 1, "dash": "dot"}, **cell)
        for name, regret in landmarks.get(problem, {}).items():
            fig.add_hline(regret, line={"color": "#333", "width": 1, "dash": "dashdot"}, **cell)
            # On a log axis an annotation wants the logarithm, a line does not.
            place = {"x": stats.length_of(curves), "y": math.log10(regret), "xanchor": "right", "yanchor": "bottom"}
            fig.add_annotation(text=html.escape(name), showarrow=False, **place, **cell)
    fig.update_annotations(font_size=13)
    fig.update_yaxes(type="log", exponentformat="power", dtick=1)
    fig.update_xaxes(title_text="trial", title_standoff=4)
    page(fig, path, "simple regret, mean ± standard error", 330 * rows + 60)


def bars_png(bars: Bars, path: Path, label: str = "") -> None:
    """Horizontal bars from zero, in the order given, with one error to each side."""
    fig = figure(6.4, 0.34 * len(bars) + 0.9)
    ax = fig.subplots()
    look = styles(list(bars))
    means, errors = np.array(list(bars.values())).T
    colours = [look[name][0] for name in bars]
    ax.barh(range(len(bars)), means, xerr=errors, color=colours, alpha=0.85, capsize=3, height=0.7)
    ax.set(yticks=range(len(bars)), yticklabels=list(bars), xlabel=label)
    ax.invert_yaxis()
    ax.axvline(0, color="0.3", linewidth=0.8)
    ax.grid(True, axis="x", alpha=0.3)
    save(fig, path)


def bars_html(bars: Bars, path: Path, label: str = "") -> None:
    import plotly.graph_objects as go  # type: ignore[import-untyped]

    look = styles(list(bars))
    means, errors = np.array(list(bars.values())).T
    text = [plus_minus(mean, error) for mean, error in bars.values()]
    trace = go.Bar(
        x=means,
        y=list(bars),
        orientation="h",
        error_x={"array": errors},
        marker_color=[look[name][0] for name in bars],
        customdata=text,
        hovertemplate="%{y}: %{customdata}<extra></extra>",
    )
    fig = go.Figure(trace)
    fig.update_xaxes(title_text=label)
    fig.update_yaxes(autorange="reversed", automargin=True)
    page(fig, path, label, 30 * len(bars) + 140)


def lines_png(x: Array, lines: Lines, path: Path, xlabel: str = "", logx: bool = False, ylabel: str = "") -> None:
    """Means over x with a band of one error."""
    fig = figure(6.4, 3.6)
    ax = fig.subplots()
    look = styles(list(lines))
    for label, band in lines.items():
        _line(ax, x, band, -math.inf, label, look[label])
    ax.set(xlabel=xlabel, ylabel=textwrap.fill(ylabel, 36), xscale="log" if logx else "linear")
    if logx and len(x) <= FEW_TICKS:
        ax.set_xticks(x, [f"{value:,.0f}" for value in x])
        ax.minorticks_off()
    elif not logx:
        ax.locator_params(axis="x", integer=True)
    ax.grid(True, alpha=0.3)
    _legend(fig, list(lines))
    save(fig, path)


def lines_html(x: Array, lines: Lines, path: Path, xlabel: str = "", logx: bool = False, ylabel: str = "") -> None:
    import plotly.graph_objects as go

    look = styles(list(lines))
    drawn = [t for label, band in lines.items() for t in traces(x, band, -math.inf, label, look[label])]
    fig = go.Figure(drawn)
    fig.update_xaxes(title_text=xlabel, type="log" if logx else "linear")
    fig.update_yaxes(title_text=ylabel)
    page(fig, path, ylabel, 460)


def _grid(panels: int) -> tuple[int, int]:  # -> columns, rows
    columns = min(panels, COLUMNS)
    return columns, math.ceil(panels / columns)


def _near(means: Lines, floor: float) -> bool:
    """Some mean is within a factor of ten of the floor."""
    return any(bool(np.any(mean < 10 * floor)) for mean, _ in means.values())


def _means(curves: Curves, problem: str, methods: Sequence[str]) -> dict[str, tuple[Array, Array]]:
    found = {
        method: stats.band(stats.stack(curves[problem, method])) for method in methods if (problem, method) in curves
    }
    return {method: (np.where(np.isfinite(mean), mean, np.nan), error) for method, (mean, error) in found.items()}


def figure(width: float, height: float) -> Any:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    fig = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(fig)
    return fig


def save(fig: Any, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(path, dpi=150)


def _legend(fig: Any, order: Sequence[str]) -> None:
    """One entry per label of any panel, right of the panels."""
    found = {label: line for ax in fig.axes for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    labels = [label for label in order if label in found]
    fig.legend([found[label] for label in labels], labels, loc="outside right upper", fontsize="small")


def _line(ax: Any, x: Array, band: tuple[Array, Array], low: float, label: str, style: Style) -> None:
    line, lower, upper = edges(*band, low)
    dots = {"marker": "o", "markersize": 3.5} if len(x) <= FEW else {}
    ax.plot(x, line, color=style[0], linestyle=style[1], linewidth=1.4, label=label, **dots)
    ax.fill_between(x, lower, upper, color=style[0], alpha=0.15, lw=0)
