"""Interactive figures by plotly: their parts, and the HTML file around them.

A file needs no network: it loads the `plotly.min.js` beside it or one folder up. Inlined, that script would put 5 MB
into each of the repository's figures; shared, it is there once.
"""

from __future__ import annotations

import html
import math
from pathlib import Path
from typing import Any

import numpy as np

from jumbo_bo.space.space import Array

FEW = 20  # points that are also marked by dots
SCRIPT = "plotly.min.js"
DASHES = {"-": "solid", "--": "dash", ":": "dot"}  # matplotlib -> plotly

Style = tuple[str, str]  # colour, matplotlib's dash


def edges(mean: Array, error: Array, low: float) -> tuple[Array, Array, Array]:
    """Line and band, both no lower than `low`. Without an error the band has no width."""
    width = np.nan_to_num(error)
    return np.maximum(mean, low), np.maximum(mean - width, low), np.maximum(mean + width, low)


def plus_minus(mean: float, error: float) -> str:
    return f"{mean:.3g}" if math.isnan(error) else f"{mean:.3g} ± {error:.2g}"


def traces(x: Array, band: tuple[Array, Array], low: float, label: str, style: Style) -> list[Any]:
    """The band and, over it, the line; one entry of the legend for both."""
    import plotly.graph_objects as go  # type: ignore[import-untyped]

    line, lower, upper = edges(*band, low)
    shared = {"name": html.escape(label), "legendgroup": label}
    around = dict(zip("xy", _outline(x, lower, upper), strict=True))
    fill = {"mode": "lines", "fill": "toself", "fillcolor": style[0], "opacity": 0.15, "line": {"width": 0}}
    text = [plus_minus(mean, error) for mean, error in zip(*band, strict=True)]
    drawn = {"line": {"color": style[0], "dash": DASHES[style[1]], "width": 2}, "customdata": text}
    drawn["mode"] = "lines+markers" if len(x) <= FEW else "lines"
    hover = "%{customdata}<extra>%{fullData.name}, %{x}</extra>"
    return [
        go.Scatter(**shared, **around, **fill, hoverinfo="skip", showlegend=False),
        go.Scatter(**shared, x=x, y=line, **drawn, hovertemplate=hover, showlegend=True),
    ]


def _outline(x: Array, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Polygons around the band, one for each stretch without a gap, NaN between them."""
    there = np.flatnonzero(np.isfinite(upper))
    parts = np.split(there, np.flatnonzero(np.diff(there) > 1) + 1)
    gap = np.array([np.nan])
    xs = [np.concatenate([x[part], x[part][::-1], gap]) for part in parts]
    ys = [np.concatenate([upper[part], lower[part][::-1], gap]) for part in parts]
    return np.concatenate(xs), np.concatenate(ys)


def share_plotly(folder: Path) -> None:
    """Puts plotly's script where the figures in this folder and in the folders below find it."""
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

    script, path = str(get_plotlyjs()), folder / SCRIPT
    if not path.exists() or path.read_text(encoding="utf-8") != script:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(script, encoding="utf-8")


def page(fig: Any, path: Path, title: str, height: int) -> None:
    above = not (path.parent / SCRIPT).exists() and (path.parent.parent / SCRIPT).exists()
    if not above:
        share_plotly(path.parent)
    fig.update_layout(template="plotly_white", height=height, margin={"l": 60, "r": 20, "t": 80, "b": 50})
    fig.update_layout(
        title={
            "text": html.escape(title),
            "font": {"size": 14},
            "yref": "container",
            "y": 0.99,
            "yanchor": "top",
            "pad": {"t": 12},
        },
        font_size=12,
    )
    script = f"../{SCRIPT}" if above else SCRIPT
    # A fixed id: the same figure is the same file.
    body = fig.to_html(include_plotlyjs=script, full_html=False, div_id="figure", config={"displaylogo": False})
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title>'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"<!doctype html>\n<html>\n<head>{head}</head>\n<body>{body}</body>\n</html>\n", encoding="utf-8")
