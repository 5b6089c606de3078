"""The plots about one parameter at a time: how much each matters, and how the value follows it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jumbo_bo.influence import Importance, Slice
from jumbo_bo.report.marks import Figure, axis, figure, reach, safe, sight, trace
from jumbo_bo.report.parallel import ticks
from jumbo_bo.report.rows import Row, clip, number, text
from jumbo_bo.space.axes import Nominal
from jumbo_bo.space.space import Space

BARS = 20  # parameters drawn
SLICES = 12
NAME = 24  # characters of a parameter's name beside its bar


def importance(found: Sequence[Importance]) -> Figure | None:
    """Bars with intervals, the most important parameter on top."""
    some = list(found[:BARS])[::-1]
    if not some:
        return None
    made = trace("share", [(i.share, k) for k, i in enumerate(some)], type="bar", orientation="h")
    made["marker"] = {"color": "--old"}
    made["error_x"] = {
        "type": "data",
        "symmetric": False,
        "array": [max(0.0, i.high - i.share) for i in some],
        "arrayminus": [max(0.0, i.share - i.low) for i in some],
        "color": "--ink",
        "thickness": 1.4,
        "width": 4,
    }
    made["text"] = [safe(f"{i.name}: {i.share:.0%} (90%: {i.low:.0%} to {i.high:.0%})") for i in some]
    made |= {"textposition": "none", "hovertemplate": "%{text}<extra></extra>"}
    names: Figure = {"tickvals": list(range(len(some))), "ticktext": [safe(clip(i.name, NAME)) for i in some]}
    most = max(1.0, *(i.high for i in some))
    shares = axis("share of the differences", ends=[0, 1.02 * most], tickformat=".0%", nticks=5)
    return figure([made], shares, axis("", **names), showlegend=False, bargap=0.4) | {"height": 90 + 34 * len(some)}


def along(some: Slice, space: Space, rows: Sequence[Row], top: Row, direction: str) -> Figure:
    """The value along one parameter. The trials set the scale, so that wild predictions do not."""
    i = space.names.index(some.name)
    measured = [row for row in rows if row.measured and not math.isnan(row.u[i])]
    scale = sight([row.value for row in measured], direction)
    others = [row for row in measured if row is not top and scale.holds(row.value)]
    dots = trace("trials", [(float(row.u[i]), row.value) for row in others], mode="markers")
    dots |= {"marker": {"size": 5, "color": "--muted", "symbol": "circle-open"}}
    dots["text"] = [f"trial {row.number}: {number(row.value)}" for row in others]
    best = trace("best", [(float(top.u[i]), top.value)], mode="markers", text=[f"trial {top.number}: best"])
    best |= {"marker": {"size": 12, "color": "--new", "symbol": "diamond"}}
    curve = _curve(some, isinstance(space.axes[i], Nominal))
    for made in (dots, best):
        made["hovertemplate"] = "%{text}<extra></extra>"
    places = ticks(space.axes[i])
    places = places[:: 2 if len(places) > 5 else 1]
    labels: Figure = {"tickvals": [u for u, _ in places], "ticktext": [safe(clip(label, 10)) for _, label in places]}
    title = safe(clip(some.name, 34)) + (" (log scale)" if getattr(space.axes[i], "log", False) else "")
    seen = [scale.low, scale.high, *(p.mean for p in some.predicted if scale.holds(p.mean))]
    y = axis("", scale.log, reach(seen, scale.log, 0.15))
    return figure([*curve, dots, best], axis(title, ends=[-0.03, 1.03], **labels), y, showlegend=False)


def _curve(some: Slice, choices: bool) -> list[Figure]:
    u, p = some.u.tolist(), some.predicted
    values = [clip(text(v), 30) for v in some.values]
    hover = [
        safe(f"{v}: {number(q.mean)} ({number(q.low)} to {number(q.high)})") for v, q in zip(values, p, strict=True)
    ]
    mean = trace("predicted", [(x, q.mean) for x, q in zip(u, p, strict=True)], mode="lines", text=hover)
    mean |= {"hovertemplate": "%{text}<extra></extra>", "line": {"color": "--old", "width": 2.5}}
    old = trace("old runs", list(zip(u, some.old.tolist(), strict=False)), mode="lines", hoverinfo="skip")
    old |= {"line": {"color": "--new", "width": 2, "dash": "dash"}}
    between = [(x, q.low) for x, q in zip(u, p, strict=True)]
    between += [(x, q.high) for x, q in zip(u[::-1], p[::-1], strict=True)]
    band = trace("90% interval", between, mode="lines", line={"width": 0}, hoverinfo="skip")
    band |= {"fill": "toself", "fillcolor": "--band"}
    if choices:  # nothing lies between them
        ends = {"array": [q.high - q.mean for q in p], "arrayminus": [q.mean - q.low for q in p]}
        mean["error_y"] = {"type": "data", "symmetric": False, "color": "--old", "thickness": 1.4, "width": 5} | ends
        mean |= {"mode": "markers", "marker": {"size": 9, "color": "--old"}}
        old |= {"mode": "markers", "marker": {"symbol": "line-ew-open", "size": 18, "color": "--new"}}
        return [mean, old] if old["x"] else [mean]
    return [band, mean, old] if old["x"] else [band, mean]
