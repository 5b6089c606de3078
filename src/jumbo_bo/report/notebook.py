"""The plots of the report as Plotly figures, for an optimizer in a notebook."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.resources import files
from itertools import combinations
from typing import Any

from jumbo_bo.errors import InputError
from jumbo_bo.influence import importance, slices
from jumbo_bo.notebook import asked
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.pareto import ParetoOptimizer
from jumbo_bo.report import along, figures
from jumbo_bo.report.goals import pair
from jumbo_bo.report.marks import Figure
from jumbo_bo.report.rows import Row, best

TITLES = {
    "progress": "Best so far",
    "predictions": "Predicted against observed",
    "importance": "What matters",
    "slices": "One parameter at a time",
}
ROW = 300  # pixels
GAP = 0.09  # of the width between panels


def drawn(optimizer: Optimizer, kind: str | None = None) -> Any:  # a plotly.graph_objects.Figure
    """Of this kind, or all in one."""
    import plotly.graph_objects as go  # type: ignore[import-untyped]

    if kind is not None and kind not in TITLES:
        raise InputError(f"kind is {kind!r}, expected one of {', '.join(TITLES)}, or None for all")
    rows = rows_of(optimizer)
    kinds = list(TITLES) if kind is None else [kind]
    panels = [(title, figure) for name in kinds for title, figure in _panels(name, optimizer, rows)]
    if not panels:
        raise InputError("there is nothing to plot yet; tell() the value of a trial first")
    return go.Figure(themed(_side_by_side(panels)))


def front(optimizer: ParetoOptimizer) -> Any:  # a plotly.graph_objects.Figure
    """Of several goals, a panel for every two of them."""
    import plotly.graph_objects as go

    goals, made = optimizer.goals, asked(optimizer)
    first, rows = goals[0].name, []
    top = {tuple(sorted(t.params.items())) for t in optimizer.front}
    for number, ((params, values), one) in enumerate(zip(optimizer.told, made, strict=True)):
        state = "failed" if math.isnan(values[first]) else "done"
        others = {name: value for name, value in values.items() if name != first}
        counts = tuple(sorted(params.items())) in top
        row = Row(
            number, state, values[first], params, optimizer.space.encode(params), one.why if one else "", None, counts
        )
        rows.append(replace(row, quantities=others))
    if not any(row.improved for row in rows):
        raise InputError("there is nothing to plot yet; tell() the values of a trial first")
    best = [row for row in rows if row.improved]
    pairs = combinations(range(len(goals)), 2)
    panels = [(f"{goals[a].name}, {goals[b].name}", pair(rows, best, goals, a, b, [])) for a, b in pairs]
    return go.Figure(themed(_side_by_side(panels)))


def rows_of(optimizer: Optimizer) -> list[Row]:
    """The trials as the report has them."""
    found, top = [], math.nan
    for number, ((params, y), made) in enumerate(zip(optimizer.told, asked(optimizer), strict=True)):
        improved = not math.isnan(y) and not (y >= top if optimizer.direction == "minimize" else y <= top)
        top = y if improved else top
        state, u = "failed" if math.isnan(y) else "done", optimizer.space.encode(params)
        why, reasons = (made.why, made.explanation) if made else ("", None)
        found.append(Row(number, state, y, params, u, why, reasons, improved))
    return found


def _panels(kind: str, optimizer: Optimizer, rows: Sequence[Row]) -> list[tuple[str, Figure]]:
    """Those that have something to show."""
    top = best(rows)
    if not rows:
        return []
    if kind == "progress":
        made = figures.progress(rows, optimizer.direction)
    elif kind == "predictions":
        made = figures.calibration(rows)
    elif kind == "importance":
        made = along.importance(importance(optimizer))
    else:
        names = [i.name for i in importance(optimizer) if top and i.name in top.params][: along.SLICES]
        cut = slices(optimizer, top.params, names) if top else []
        titles = [TITLES[kind], *[""] * len(cut)]
        made_of = [along.along(s, optimizer.space, rows, top, optimizer.direction) for s in cut if top]
        return list(zip(titles, made_of, strict=False))
    return [] if made is None else [(TITLES[kind], made)]


def _side_by_side(panels: Sequence[tuple[str, Figure]]) -> Figure:
    """Two in a row, each with axes of its own."""
    lines = math.ceil(len(panels) / 2)
    height, data = 0.72 / lines, []
    layout: Figure = {"annotations": [], "showlegend": False, "height": 40 + ROW * lines, "template": "none"}
    layout |= {"paper_bgcolor": "--page", "plot_bgcolor": "--page", "font": {"color": "--ink"}}
    layout |= {"margin": {"l": 70, "r": 20, "t": 40, "b": 20}, "hovermode": "closest", "bargap": 0.4}
    for k, (title, figure) in enumerate(panels):
        line, column = divmod(k, 2)
        wide = len(panels) == 1
        x = [0.0, 1.0] if wide else [column * (0.5 + GAP / 2), 0.5 - GAP / 2 + column * (0.5 + GAP / 2)]
        y = [1 - (line + 0.06) / lines - height, 1 - (line + 0.06) / lines]
        for trace in figure["data"]:
            own = {"xaxis": _named(trace.get("xaxis", "x"), k), "yaxis": _named(trace.get("yaxis", "y"), k)}
            data.append(trace | own)
        for name, axis in figure["layout"].items():
            if re.fullmatch(r"[xy]axis\d*", name):
                layout[_named(name.replace("axis", ""), k, "axis")] = _placed(name, axis, x, y, k)
        place = {"x": (x[0] + x[1]) / 2, "y": y[1], "xref": "paper", "yref": "paper", "yanchor": "bottom"}
        layout["annotations"].append({"text": f"<b>{title}</b>", "showarrow": False, **place})
    return {"data": data, "layout": layout}


def _placed(name: str, axis: Figure, x: Sequence[float], y: Sequence[float], k: int) -> Figure:
    made = {"gridcolor": "--line", "zeroline": False, "exponentformat": "power"} | axis
    if "title" in axis:
        made["title"] = axis["title"] | {"standoff": 6}
    made["anchor"] = _named("y" if name[0] == "x" else "x", k)
    if "overlaying" in axis:
        return made | {"overlaying": _named(axis["overlaying"], k)}
    return made | {"domain": list(x if name[0] == "x" else y)}


def _named(axis: str, k: int, kind: str = "") -> str:
    """The axis 'x', 'y' or 'y2' of the panel k; `kind` "axis" for its name in a layout."""
    number = 2 * k + (2 if axis.endswith("2") else 1)
    return f"{axis[0]}{kind}{number if number > 1 else ''}"


def themed(value: Any, key: str = "") -> Any:
    """With the colours of page.css, light mode; as page.js does it."""
    if isinstance(value, Mapping):
        return {name: themed(v, name) for name, v in value.items()}
    if isinstance(value, list):
        return [themed(v, key) for v in value]
    is_colour = isinstance(value, str) and value.startswith("--") and "color" in key
    return _colours()[value] if is_colour else value


def _colours() -> dict[str, str]:
    css = files("jumbo_bo.report").joinpath("page.css").read_text(encoding="utf-8")
    light = css.partition(":root {")[2].partition("}")[0]
    return {name: colour.strip() for name, colour in re.findall(r"(--\w+): ([^;]+);", light)}
