"""Pictures of one design: the drawn layout, the frequency response, the response to a step; PNG and one HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jumbo_bo.bench.circuit.layout import Layout
from jumbo_bo.bench.circuit.mag import UNITS, Rectangle
from jumbo_bo.bench.circuit.measure import decibels, phase
from jumbo_bo.bench.circuit.netlist import COMMON_MODE, STEP, STEP_START
from jumbo_bo.bench.circuit.simulate import Simulation
from jumbo_bo.bench.interactive import page
from jumbo_bo.space.space import Array

MODE_COLOURS = {"schematic": "#7f7f7f", "layout": "#d62728"}
BEHIND = {"boxstyle": "round,pad=0.15", "facecolor": "white", "edgecolor": "none", "alpha": 0.8}  # labels


@dataclass(frozen=True)
class Paint:
    """How the layers of one kind are shown, in the order of the stack."""

    text: str
    layers: tuple[str, ...]
    colour: str
    opacity: float


PAINTS = (
    Paint("n-well", ("nwell",), "#c7b8a0", 0.35),
    Paint("diffusion", ("ndiff", "pdiff", "nfet", "pfet", "ndc", "pdc"), "#2ca02c", 0.6),
    Paint("poly", ("poly", "pc", "nfet", "pfet"), "#d62728", 0.8),
    Paint("resistor", ("hires",), "#8c564b", 1.0),
    Paint("met1", ("met1", "viali"), "#1f77b4", 0.45),
    Paint("met2", ("met2",), "#9467bd", 0.5),
    Paint("met3", ("met3",), "#17becf", 0.55),
    Paint("capacitor", ("mimcap",), "#bcbd22", 0.7),
    Paint("met4", ("met4",), "#ff7f0e", 0.35),
    Paint("vias", ("via1", "via2", "via3"), "#111111", 0.9),
)


@dataclass(frozen=True)
class Curve:
    title: str
    x_title: str
    y_title: str
    log_x: bool
    lines: Mapping[str, tuple[Array, Array]]  # 'schematic', 'layout' -> x, y
    level: float  # drawn as a thin line: what the response is measured against


def curves(simulations: Mapping[str, Simulation]) -> list[Curve]:
    gain = {mode: (s.frequency, decibels(s.response)) for mode, s in simulations.items()}
    angle = {mode: (s.frequency, phase(s.response)) for mode, s in simulations.items()}
    step = {mode: ((s.time - STEP_START) * 1e9, s.output) for mode, s in simulations.items()}
    return [
        Curve("open-loop gain", "frequency in Hz", "gain in dB", True, gain, 0.0),
        Curve("open-loop phase", "frequency in Hz", "phase in degrees", True, angle, -180.0),
        Curve("step of 0.2 V, unity gain", "time in ns", "output in V", False, step, COMMON_MODE + STEP / 2),
    ]


def draw_layout(drawn: Layout, title: str, path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Patch
    from matplotlib.patches import Rectangle as Box

    width, height = _extent(drawn)
    fig, ax = plt.subplots(figsize=(13, max(3.5, 13 * height / width + 1.2)), layout="constrained")
    for paint in PAINTS:
        boxes = [
            Box((left / UNITS, bottom / UNITS), (right - left) / UNITS, (top - bottom) / UNITS)
            for left, bottom, right, top in _boxes(drawn, paint)
        ]
        ax.add_collection(PatchCollection(boxes, facecolor=paint.colour, alpha=paint.opacity, edgecolor="none"))
    for label in drawn.drawing.labels:
        if label.text != "vddw":
            ax.text(label.x / UNITS, label.y / UNITS, label.text, ha="left", va="center", fontsize=8, bbox=BEHIND)
    for name, (x, y) in drawn.places.items():
        ax.text(x, y, name, ha="center", va="center", fontsize=11, weight="bold")
    ax.set(aspect="equal", xlabel="um", ylabel="um", title=title)
    ax.autoscale_view()
    handles = [Patch(facecolor=paint.colour, alpha=paint.opacity, label=paint.text) for paint in PAINTS]
    fig.legend(handles=handles, loc="outside lower center", ncols=len(PAINTS), fontsize=9, frameon=False)
    fig.savefig(path, dpi=130)
    plt.close(fig)


def draw_responses(simulations: Mapping[str, Simulation], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    fig, axes = plt.subplots(1, 3, figsize=(14, 4.2), layout="constrained")
    for ax, curve in zip(axes, curves(simulations), strict=True):
        for mode, (x, y) in curve.lines.items():
            ax.plot(x, y, color=MODE_COLOURS[mode], label=mode)
        ax.axhline(curve.level, color="black", linewidth=0.6, linestyle=":")
        ax.set(title=curve.title, xlabel=curve.x_title, ylabel=curve.y_title)
        ax.set_xscale("log" if curve.log_x else "linear")
        ax.grid(alpha=0.3)
    axes[2].set_xlim(-1, 10)
    axes[0].legend()
    fig.savefig(path, dpi=120)
    plt.close(fig)


def write_page(drawn: Layout, simulations: Mapping[str, Simulation], title: str, path: Path) -> None:
    """All of it to look at closely: a click on a layer hides it."""
    from plotly.subplots import make_subplots  # type: ignore[import-untyped]

    found = curves(simulations)
    titles = ["layout", *(curve.title for curve in found)]
    grid = [[{"colspan": 3}, None, None], [{}, {}, {}]]
    fig = make_subplots(rows=2, cols=3, specs=grid, subplot_titles=titles, row_heights=[0.6, 0.4], vertical_spacing=0.1)
    for trace in _layout_traces(drawn):
        fig.add_trace(trace, row=1, col=1)
    fig.update_xaxes(title_text="um", row=1, col=1)
    fig.update_yaxes(title_text="um", scaleanchor="x", scaleratio=1, row=1, col=1)
    for column, curve in enumerate(found, start=1):
        for mode, (x, y) in curve.lines.items():
            fig.add_scatter(
                x=x,
                y=y,
                name=mode,
                legendgroup=mode,
                showlegend=column == 1,
                line={"color": MODE_COLOURS[mode]},
                row=2,
                col=column,
            )
        fig.add_hline(curve.level, line={"width": 1, "dash": "dot"}, row=2, col=column)
        kind = "log" if curve.log_x else "linear"
        fig.update_xaxes(title_text=curve.x_title, type=kind, exponentformat="SI", row=2, col=column)
        fig.update_yaxes(title_text=curve.y_title, row=2, col=column)
    fig.update_xaxes(range=[-1, 10], row=2, col=3)
    page(fig, path, title, 950)


def _layout_traces(drawn: Layout) -> Iterator[Any]:
    import plotly.graph_objects as go  # type: ignore[import-untyped]

    for paint in PAINTS:
        xs: list[float | None] = []
        ys: list[float | None] = []
        for left, bottom, right, top in _boxes(drawn, paint):
            xs += [left / UNITS, right / UNITS, right / UNITS, left / UNITS, left / UNITS, None]
            ys += [bottom / UNITS, bottom / UNITS, top / UNITS, top / UNITS, bottom / UNITS, None]
        yield go.Scatter(
            x=xs,
            y=ys,
            name=paint.text,
            mode="lines",
            fill="toself",
            fillcolor=paint.colour,
            opacity=paint.opacity,
            line={"width": 0},
            hoverinfo="name",
        )
    x, y = ([place[i] for place in drawn.places.values()] for i in (0, 1))
    text = list(drawn.places)
    yield go.Scatter(x=x, y=y, text=text, mode="text", name="devices", textfont={"size": 14}, hoverinfo="skip")


def _boxes(drawn: Layout, paint: Paint) -> list[Rectangle]:
    return [box for layer in paint.layers for box in drawn.drawing.boxes.get(layer, [])]


def _extent(drawn: Layout) -> tuple[float, float]:
    left, bottom, right, top = zip(*(box for boxes in drawn.drawing.boxes.values() for box in boxes), strict=True)
    return (max(right) - min(left)) / UNITS, (max(top) - min(bottom)) / UNITS
