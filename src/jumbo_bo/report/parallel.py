"""Parallel coordinates, turned on their side: a line of the plot per parameter, so long names fit on a phone.

Every trial is a path from its value on top down through its parameters. The better a trial, the bolder its path.
Parameters stand where the search sees them, u in [0, 1], which puts log scales, steps and choices in their places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from jumbo_bo.report.marks import Figure, safe, sight
from jumbo_bo.report.rows import Row, best, clip, number, text
from jumbo_bo.space.axes import Axis, Continuous, centres
from jumbo_bo.space.space import Space

ROW = 66  # pixels
LABELS = 44  # characters in the tick labels of a line, so that they fit on a phone
MOST = 20  # paths drawn of a group: more would be one dark area
GROUPS = (  # share of the trials, name, colour, width
    (0.1, "best tenth", "--rank1", 2.2),
    (0.25, "best quarter", "--rank2", 1.6),
    (0.5, "best half", "--rank3", 1.2),
    (1.0, "other half", "--rank4", 0.8),
)


def parallel(rows: Sequence[Row], space: Space, direction: str) -> Figure | None:
    measured = [row for row in rows if row.measured and not np.isnan(row.u).all()]
    if not measured:
        return None
    sign = 1.0 if direction == "minimize" else -1.0
    ranked = sorted(measured, key=lambda row: (sign * row.value, row.number))
    scale = _Scale([row.value for row in measured], direction)
    data: list[Figure] = []
    top, start = best(rows), 0
    for share, name, colour, width in GROUPS:
        end = math.ceil(share * len(ranked))
        group = [row for row in ranked[start:end] if row is not top]
        start = max(start, end)
        if group:
            drawn = [group[i] for i in np.linspace(0, len(group) - 1, min(MOST, len(group))).round().astype(int)]
            data.insert(0, _paths(name, drawn, space, scale) | {"line": {"color": colour, "width": width}})
    if top in measured:
        line = {"line": {"color": "--new", "width": 3.5}, "mode": "lines+markers"}
        mark = {"marker": {"symbol": "diamond", "size": 9, "color": "--new"}, "cliponaxis": False}
        data.append(_paths("best", [top], space, scale) | line | mark)
    layout = {
        "xaxis": {"range": [-0.012, 1.012], "visible": False, "fixedrange": True},
        "yaxis": {"range": [space.d + 0.5, -0.6], "visible": False, "fixedrange": True},
        "shapes": [_line(i) for i in range(space.d + 1)],
        "annotations": _words(space, scale),
        "legend": {"traceorder": "reversed"},
    }
    return {"data": data, "layout": layout, "height": ROW * (space.d + 1) + 60}


class _Scale:
    """The axis of the values. Those far off are at its end."""

    def __init__(self, values: Sequence[float], direction: str) -> None:
        self.seen = sight(values, direction)
        self.low, self.high, self.log = self.seen
        self.beyond = "≥ " * (max(values) > self.high), "≤ " * (min(values) < self.low)

    def place(self, value: float) -> float:
        value = self.seen.edge(value)
        low, high, value = (math.log(v) if self.log else v / 2 for v in (self.low, self.high, value))  # no overflow
        return (value - low) / (high - low) if high > low else 0.5

    def ticks(self) -> list[tuple[float, str]]:
        if self.low == self.high:
            return [(0.5, number(self.low))]
        low, high, found = self.low, self.high, []
        for s in (0.0, 0.25, 0.5, 0.75, 1.0):
            found.append((s, number(low ** (1 - s) * high**s if self.log else low * (1 - s) + high * s)))
        above, below = self.beyond
        found[0], found[-1] = (0.0, below + found[0][1]), (1.0, above + found[-1][1])
        return found


def ticks(axis: Axis) -> list[tuple[float, str]]:
    """Places and labels, few enough to be read."""
    if isinstance(axis, Continuous):
        found = [(u, f"{axis.decode(u):.3g}") for u in np.linspace(0, 1, 5).tolist()]
        if axis.log and len(powers := _powers(axis.low, axis.high)) >= 2:
            found = [(float(axis.encode([p])[0]), f"{p:g}") for p in powers]
    elif axis.levels is not None and axis.levels <= 12:
        width = max(6, LABELS // axis.levels - 2)
        found = [(u, clip(text(axis.decode(u)), width)) for u in centres(axis).tolist()]
    else:
        values = list(dict.fromkeys(axis.decode(u) for u in np.linspace(0, 1, 5).tolist()))
        found = [(float(axis.encode([v])[0]), clip(text(v), 16)) for v in values]
    while len(found) > 2 and sum(len(label) + 2 for _, label in found) > LABELS:
        found = found[::2]
    return found


def _powers(low: float, high: float) -> list[float]:
    """Powers of ten within the range."""
    return [10.0**e for e in range(math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9) + 1)]


def _paths(name: str, group: Sequence[Row], space: Space, scale: _Scale) -> Figure:
    """One line with gaps between the trials."""
    x: list[float | None] = []
    y: list[int | None] = []
    words: list[str] = []
    for row in group:
        x += [round(scale.place(row.value), 4), *(None if math.isnan(u) else round(u, 4) for u in row.u.tolist()), None]
        y += [*range(space.d + 1), None]
        about = f"trial {row.number}: {number(row.value)}"
        words += [about, *(f"{about}<br>{_pair(n, row)}" for n in space.names), ""]
    hover = {"text": words, "hovertemplate": "%{text}<extra></extra>"}
    return {"name": name, "type": "scatter", "mode": "lines", "x": x, "y": y} | hover


def _pair(name: str, row: Row) -> str:
    return safe(f"{clip(name, 40)} = {clip(text(row.params.get(name, '')), 40)}")


def _line(i: int) -> Figure:
    return {
        "type": "line",
        "x0": 0,
        "x1": 1,
        "y0": i,
        "y1": i,
        "layer": "below",
        "line": {"color": "--muted", "width": 1},
    }


def _words(space: Space, scale: _Scale) -> list[Figure]:
    """Names above the lines, labels below them."""
    lines: list[tuple[str, list[tuple[float, str]]]] = [("value (log scale)" if scale.log else "value", scale.ticks())]
    for name, axis in zip(space.names, space.axes, strict=True):
        lines.append((f"{name} (log scale)" if getattr(axis, "log", False) else name, ticks(axis)))
    found = []
    for i, (name, marks) in enumerate(lines):
        found.append(_word(safe(clip(name, 40)), 0.0, i, 14, 13, "--ink"))
        found += [_word(safe(label), u, i, -12, 11) for u, label in marks]
    return found


def _word(label: str, x: float, y: float, shift: int, size: int, colour: str = "--muted") -> dict[str, Any]:
    anchor = "left" if x < 0.05 else "right" if x > 0.95 else "center"
    place = {"x": x, "y": y, "yshift": shift, "xanchor": anchor, "showarrow": False, "borderpad": 0}
    return place | {"text": label, "bgcolor": "--veil", "font": {"size": size, "color": colour}}
