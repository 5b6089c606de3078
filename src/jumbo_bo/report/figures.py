"""The plots of a report that show one mark per trial or per old task; None where there is nothing to show."""

from __future__ import annotations

import math
from collections.abc import Sequence

from jumbo_bo.report.marks import Figure, Sight, axis, figure, is_wide, marks, reach, safe, sight, trace
from jumbo_bo.report.rows import Row, clip, number, spent

MANY = 100  # bars from which hatching is left out
UNITS = (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0), ("seconds", 1.0))
BARS = 20  # old tasks drawn as bars; the table has all


def progress(rows: Sequence[Row], direction: str) -> Figure | None:
    """Values against trials, and the best so far. A bad trial far from the others is an arrow at the edge."""
    seen = [row for row in rows if not math.isnan(row.value)]
    failed = [row.number for row in rows if row.state == "failed"]
    if not seen and not failed:
        return None
    better = [row for row in seen if row.improved]
    steps = [(row.number, row.value) for row in better]
    if steps:
        steps.append((rows[-1].number, steps[-1][1]))
    scale = sight([row.value for row in seen], direction) if seen else None
    far = [row for row in seen if scale and not scale.holds(row.value)]
    arrow = "triangle-up" if direction == "minimize" else "triangle-down"
    kinds = (
        ("trial", [r for r in seen if r.measured and not r.improved], {"symbol": "circle-open", "color": "--muted"}),
        ("pruned, last value", [r for r in seen if not r.measured], {"symbol": "triangle-down-open", "color": "--new"}),
        ("improvement", better, {"symbol": "diamond", "size": 11, "color": "--old"}),
    )
    data = [
        marks(name, [(r.number, r.value) for r in some if r not in far], marker)
        for name, some, marker in kinds
        if any(r not in far for r in some)
    ]
    if far and scale:
        made = marks("far off", [(r.number, scale.edge(r.value)) for r in far], {"symbol": arrow, "color": "--bad"})
        made |= {"text": [number(r.value) for r in far], "cliponaxis": False}
        data.append(made | {"hovertemplate": "trial %{x}: %{text}<extra></extra>"})
    if steps:
        line = {"shape": "hv", "width": 2.5, "color": "--old"}
        data.insert(0, trace("best so far", steps, mode="lines", line=line, hoverinfo="skip"))
    if failed:  # no value: along the lower edge, on an axis of their own
        mark = marks("failed", [(n, 0.03) for n in failed], {"symbol": "x", "size": 9, "color": "--bad"})
        data.append(mark | {"yaxis": "y2", "hovertemplate": "trial %{x} failed<extra></extra>"})
    y = _values(scale) if scale else axis("value", showticklabels=False)
    edge = {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True}
    return figure(data, _trials(rows), y, yaxis2=edge)


def predicted(rows: Sequence[Row]) -> list[tuple[Row, bool]]:
    """Measured trials with a prediction made before, and whether the value fell inside the 90 % interval."""
    found = []
    for row in rows:
        p = row.reasons.predicted if row.reasons else None
        if row.measured and p is not None and all(map(math.isfinite, (p.mean, p.low, p.high))):
            found.append((row, p.low <= row.value <= p.high))
    return found


def calibration(rows: Sequence[Row]) -> Figure | None:
    """Predicted against observed; on the diagonal, the prediction was exact. The values set the scale: a prediction
    far from all of them, as the first ones may be, is shown as an arrow at the edge."""
    pairs = [(row, row.reasons.predicted, inside) for row, inside in predicted(rows) if row.reasons]
    if not pairs:
        return None
    seen = [row.value for row, _, _ in pairs]
    log = is_wide([*seen, *(p.mean for _, p, _ in pairs)])
    x_ends, y_ends = reach(seen, log, 0.06), reach(seen, log, 0.6)
    low, high = (10**end for end in y_ends) if log else y_ends
    corner = [10**end for end in x_ends] if log else x_ends
    line = {"color": "--muted", "dash": "dot", "width": 1.5}
    data = [trace("exact", [(v, v) for v in corner], mode="lines", line=line, hoverinfo="skip")]
    kinds: tuple[tuple[str, bool, Figure], ...] = (
        ("inside the interval", True, {"symbol": "circle", "color": "--old"}),
        ("outside", False, {"symbol": "x", "color": "--bad"}),
    )
    for name, wanted, marker in kinds:
        some = [(row, p) for row, p, inside in pairs if inside == wanted]
        if not some:
            continue
        some.sort(key=lambda pair: not low <= pair[1].mean <= high)  # the legend shows the first mark
        symbols = [_arrow(p.mean, low, high) or marker["symbol"] for _, p in some]
        marker |= {"symbol": symbols, "size": [9 if low <= p.mean <= high else 13 for _, p in some]}
        marker |= {"opacity": 1, "line": {"width": 0}}
        middle = [min(max(p.mean, low), high) for _, p in some]
        made = marks(name, [(row.value, m) for (row, _), m in zip(some, middle, strict=True)], marker)
        made["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": [max(0.0, min(p.high, high) - m) for (_, p), m in zip(some, middle, strict=True)],
            "arrayminus": [max(0.0, m - max(p.low, low)) for (_, p), m in zip(some, middle, strict=True)],
            "width": 0,
            "thickness": 1.2,
            "color": marker["color"],
        }
        made |= {"text": [str(row.number) for row, _ in some], "customdata": [number(p.mean) for _, p in some]}
        made["hovertemplate"] = "trial %{text}: observed %{x:.4g}, predicted %{customdata}<extra></extra>"
        data.append(made | {"cliponaxis": False})
    axes = (axis(name, log, ends) for name, ends in (("observed", x_ends), ("predicted", y_ends)))
    return figure(data, *axes)


def _arrow(value: float, low: float, high: float) -> str:
    return "triangle-up" if value > high else "triangle-down" if value < low else ""


def voices(rows: Sequence[Row]) -> Figure | None:
    """What the old runs and the new trials said about each suggestion before it was tried."""
    some = [(row.number, row.reasons) for row in rows if row.reasons and math.isfinite(row.reasons.old)]
    if not some:
        return None
    shape = "/" if len(some) <= MANY else ""
    hatch = {"shape": shape, "fillmode": "overlay", "fgcolor": "--page", "size": 6}
    old = trace("old runs", [(n, e.old) for n, e in some], type="bar", marker={"color": "--old"})
    new = trace("new trials", [(n, e.new) for n, e in some], type="bar", marker={"color": "--new", "pattern": hatch})
    total = marks("together", [(n, e.old + e.new) for n, e in some], {"symbol": "diamond", "size": 6, "color": "--ink"})
    for made in (old, new, total):
        made["hovertemplate"] = f"trial %{{x}}, {made['name']}: %{{y:+.2f}}<extra></extra>"
    y = axis("better than average (sd)", zeroline=True, zerolinecolor="--muted")
    return figure([old, new, total], _trials(rows), y, barmode="relative", bargap=0.25)


def trust(rows: Sequence[Row], now: float) -> Figure | None:
    """How much of the model's predictions comes from the old runs, when a trial was suggested and now (NaN: not known);
    for the gated method, which side of the gate."""
    some = [(row.number, row.reasons) for row in rows if row.reasons]
    share = [(n, e.trust) for n, e in some if e.trust is not None]
    marker, line = {"color": "--old", "size": 7, "symbol": "circle"}, {"color": "--old", "width": 2}
    if share:
        made = trace("old runs' share", share, mode="lines+markers", marker=marker, line=line)
        made["hovertemplate"] = "trial %{x}: %{y:.0%} from the old runs<extra></extra>"
        data = [made]
        if math.isfinite(now):
            last = marks("now", [(rows[-1].number + 1, now)], {"symbol": "diamond", "size": 11, "color": "--new"})
            data.append(last | {"hovertemplate": "now: %{y:.0%} from the old runs<extra></extra>"})
        return figure(data, _trials(rows, 1), axis("old runs' share", ends=[-0.03, 1.05], tickformat=".0%"))
    gate = [(n, int(e.inside_gate)) for n, e in some if e.inside_gate is not None]
    if not gate:
        return None
    sides = (("inside the gate", 1, marker), ("outside", 0, marker | {"symbol": "x", "color": "--bad"}))
    data = [marks(name, [p for p in gate if p[1] == side], m) for name, side, m in sides]
    for made in data:
        made["hovertemplate"] = f"trial %{{x}}: {made['name']}<extra></extra>"
    y = axis("", ends=[-0.4, 1.4], tickvals=[0, 1], ticktext=["outside", "inside"])
    return figure([made for made in data if made["x"]], _trials(rows), y)


def tasks(names: Sequence[str], weights: Sequence[float], errors: Sequence[float]) -> Figure | None:
    """Weights of the old tasks, and what each does to the error of predictions; the heaviest on top."""
    order = sorted(range(len(names)), key=lambda i: -abs(weights[i]))[:BARS][::-1]
    if not order:
        return None
    labels: Figure = {"tickvals": list(range(len(order))), "ticktext": [safe(clip(names[i], 18)) for i in order]}
    data = []
    for k, (title, values, colour, digits) in enumerate(
        (("weight", weights, "--old", "2f"), ("error", errors, "--new", "0%"))
    ):
        points = [(values[i], row) for row, i in enumerate(order)]
        made = trace(title, points, type="bar", orientation="h", marker={"color": colour}, xaxis=f"x{k + 1}")
        made["text"] = [f"{v:+.{digits}}" if math.isfinite(v) else "" for v, _ in points]
        made["insidetextfont"] = {"color": "--page"}
        made["hovertemplate"] = f"{title} %{{text}}<extra></extra>"
        data.append(made)
    axes = [
        axis("weight", domain=[0, 0.47], nticks=4),
        axis("change of the error", domain=[0.53, 1], nticks=4, tickformat="+.0%"),
    ]
    bars = figure(data, axes[0], axis("", **labels), xaxis2=axes[1], showlegend=False, bargap=0.35)
    return bars | {"height": 130 + 34 * len(order)}


def _trials(rows: Sequence[Row], more: int = 0) -> Figure:
    last = rows[-1].number + more
    pad = 0.5 + 0.01 * last
    return axis("trial", ends=[-pad, last + pad], tickformat="d", dtick=1 if last <= 12 else None)


def _values(scale: Sight) -> Figure:
    return axis("value", scale.log, reach([scale.low, scale.high], scale.log, 0.08))


def durations(rows: Sequence[Row]) -> Figure | None:
    """How long each finished trial took."""
    some = [row for row in rows if math.isfinite(row.seconds)]
    if not some:
        return None
    longest = max(row.seconds for row in some)
    unit, size = next((unit for unit in UNITS if longest >= 2 * unit[1]), UNITS[-1])
    made = trace("time", [(row.number, row.seconds / size) for row in some], type="bar", marker={"color": "--old"})
    made["text"] = [f"trial {row.number}: {spent(row.seconds)}" for row in some]
    made |= {"textposition": "none", "hovertemplate": "%{text}<extra></extra>"}
    return figure([made], _trials(rows), axis(unit, rangemode="tozero"), showlegend=False) | {"height": 260}
