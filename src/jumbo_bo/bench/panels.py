"""One description of a figure, drawn twice: a PNG for the documentation and an interactive page."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jumbo_bo.bench import interactive

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")  # Okabe and Ito's


@dataclass(frozen=True)
class Line:
    name: str
    x: Sequence[float]
    y: Sequence[float]
    colour: int = 0
    dashed: bool = False


@dataclass(frozen=True)
class Bars:
    name: str
    y: Sequence[float]  # one per category
    group: int  # bars of one group stand in the same place, on top of each other
    colour: int = 0
    base: Sequence[float] | None = None


@dataclass(frozen=True)
class Panel:
    title: str
    x: str
    y: str
    drawn: tuple[Line | Bars, ...]
    categories: tuple[str, ...] = ()
    log: str = ""  # the axes with a log scale: '', 'y' or 'xy'


def png(panels: Sequence[Panel], path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.4 * len(panels), 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    for ax, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        groups = 1 + max((d.group for d in panel.drawn if isinstance(d, Bars)), default=0)
        for d in panel.drawn:
            if isinstance(d, Line):
                ax.plot(d.x, d.y, "--" if d.dashed else "-", color=COLOURS[d.colour], label=d.name, lw=1.6)
            else:
                at = [i + (d.group + 0.5) * 0.8 / groups - 0.4 for i in range(len(d.y))]
                ax.bar(at, d.y, 0.72 / groups, bottom=d.base, color=COLOURS[d.colour], label=d.name)
        if panel.categories:
            ax.set_xticks(range(len(panel.categories)), panel.categories, rotation=35, ha="right", fontsize="small")
            ax.set_ylim(0, 1.25 * ax.get_ylim()[1])  # room for the legend
        ax.set(xlabel=panel.x, ylabel=panel.y)
        ax.set_title(panel.title, fontsize="medium", loc="left")
        if "x" in panel.log:
            ax.set_xscale("log")
        if "y" in panel.log:
            ax.set_yscale("log")
        ax.grid(True, axis="y", alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize="x-small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def page(title: str, figures: dict[str, Sequence[Panel]], path: Path) -> None:
    """All figures in one file. It loads the script of interactive.py from the folder above."""
    interactive.share_plotly(path.parent.parent)
    plots = [(f"p{i}-{j}", panel) for i, panels in enumerate(figures.values()) for j, panel in enumerate(panels)]
    body = ""
    for i, (name, panels) in enumerate(figures.items()):
        body += f"<h2>{html.escape(name)}</h2>\n"
        body += "".join(f'<div class="plot" id="p{i}-{j}"></div>\n' for j in range(len(panels)))
    data = json.dumps({name: plotly(panel) for name, panel in plots}, separators=(",", ":")).replace("<", "\\u003c")
    text = f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{html.escape(title)}</title>
<style>body {{ font-family: sans-serif; margin: 1rem; }} .plot {{ display: inline-block; width: 600px; height: 460px; }}
</style>
</head>
<body>
<h1>{html.escape(title)}</h1>
{body}<script src="../{interactive.SCRIPT}"></script>
<script>
const plots = {data};
for (const [id, plot] of Object.entries(plots)) Plotly.newPlot(id, plot.data, plot.layout, {{responsive: true}});
</script>
</body>
</html>
"""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="\n")


def plotly(panel: Panel) -> dict[str, Any]:
    data: list[dict[str, Any]] = []
    for d in panel.drawn:
        colour = COLOURS[d.colour]
        if isinstance(d, Line):
            line = {"color": colour, "dash": "dash" if d.dashed else "solid"}
            data.append({"type": "scatter", "name": d.name, "x": list(d.x), "y": list(d.y), "line": line})
        else:
            place = {"x": list(panel.categories), "y": list(d.y), "base": d.base and list(d.base)}
            data.append({"type": "bar", "name": d.name, "offsetgroup": d.group, "marker": {"color": colour}, **place})
    axes = {
        f"{axis}axis": {"title": {"text": name}, "type": "log" if axis in panel.log else None}
        for axis, name in (("x", panel.x), ("y", panel.y))
    }
    return {"data": data, "layout": {"title": {"text": panel.title}, "barmode": "group", **axes}}
