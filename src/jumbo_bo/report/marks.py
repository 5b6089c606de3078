"""What the plots are made of: traces and axes as plain Plotly JSON.

A colour is the name of a variable of page.css ('--old'); page.js looks it up when it draws, so that light and dark mode
are one list of colours in one place. Marks that differ in colour also differ in shape, width or pattern.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

Figure = dict[str, Any]

WIDE = 30.0  # positive values spanning more than this factor get a log axis
LARGEST = 300.0  # exponent of ten
FAR = 3.0  # times as far from the best as three quarters of the values: out of sight
FEW = 5  # values that are all in sight


def safe(text: str) -> str:
    """Plotly reads labels as a little HTML."""
    return html.escape(text, quote=False)


def figure(data: list[Figure], x: Figure, y: Figure, **layout: Any) -> Figure:
    return {"data": data, "layout": {"xaxis": x, "yaxis": y, **layout}}


def trace(name: str, points: Sequence[Sequence[Any]], **rest: Any) -> Figure:
    return {"name": name, "x": [p[0] for p in points], "y": [p[1] for p in points], "type": "scatter", **rest}


def marks(name: str, points: Sequence[Sequence[Any]], marker: Figure) -> Figure:
    hover = "trial %{x}: %{y:.4g}<extra></extra>"
    return trace(name, points, mode="markers", marker={"size": 8} | marker, hovertemplate=hover)


def axis(title: str, log: bool = False, ends: Sequence[float] | None = None, **rest: Any) -> Figure:
    """`ends` as Plotly wants them: on a log axis, exponents of ten."""
    made = {"title": {"text": title}, "type": "log" if log else "linear", **rest}
    if ends is not None:
        made["range"] = list(ends)
        if log:
            made |= _log_ticks(*ends)
    return made


def _log_ticks(low: float, high: float) -> Figure:
    """Plotly's own are two sizes of digits; these are numbers a person would write."""
    digits = range(1, 10) if high - low < 0.7 else (1, 2, 5) if high - low < 2.2 else (1,)
    every = max(1, math.ceil((high - low) / 8))
    exponents = range(math.floor(low), math.ceil(high) + 1)
    found = [(d, e) for e in exponents if e % every == 0 for d in digits if low <= e + math.log10(d) <= high]
    text = [f"{d * 10.0**e:g}" if -4 <= e < 6 else f"10<sup>{e}</sup>" if d == 1 else f"{d}e{e}" for d, e in found]
    return {"tickvals": [d * 10.0**e for d, e in found], "ticktext": text}


def is_wide(values: Iterable[float]) -> bool:
    known = list(values)
    return bool(known) and min(known) > 0 and max(known) > WIDE * min(known)


def reach(values: Sequence[float], log: bool, beyond: float) -> list[float]:
    """The ends of an axis, as Plotly wants them, with a share of the span on either side."""
    low, high = min(values), max(values)
    if log:
        low, high = math.log10(low), math.log10(high)
    pad = beyond * (high - low) or beyond * abs(high) or 1.0
    low, high = low - pad, high + pad
    return [max(low, -LARGEST), min(high, LARGEST)] if log else [low, high]


class Sight(NamedTuple):
    """The part of the values that is worth looking at."""

    low: float
    high: float
    log: bool

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high

    def edge(self, value: float) -> float:
        return min(max(value, self.low), self.high)


def sight(values: Sequence[float], direction: str) -> Sight:
    """Without the few bad values that would flatten all others into a line. The good ones are always in it."""
    v = np.asarray(values, dtype=float)
    log = bool(v.min() > 0)
    worse = (1.0 if direction == "minimize" else -1.0) * (np.log10(v) if log else v / 10)  # no overflow
    best, most = worse.min(), float(np.quantile(worse, 0.75))
    far = worse > most + FAR * (most - best)
    kept = v if len(v) < FEW or most == best else v[~far]
    return Sight(float(kept.min()), float(kept.max()), is_wide(kept.tolist()))
