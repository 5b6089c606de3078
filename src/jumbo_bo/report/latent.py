"""The map: old runs and new trials as the pretrained net sees them, flattened to two directions.

Notation
    h       (n, n_z) the net's features of the old runs
    plane   (n_z, 2) the two directions in which h varies most
    quality (n,)     standardised value of an old run, the average over the tasks that tried its configuration
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from jumbo_bo.data.history import History
from jumbo_bo.learning.features import FeatureNet
from jumbo_bo.learning.heads import too_many
from jumbo_bo.report.marks import Figure, axis, figure, marks
from jumbo_bo.report.rows import Row, best, number
from jumbo_bo.space.space import Array

OLD_POINTS = 1500  # old runs drawn


def latent_map(net: FeatureNet, history: History, rows: Sequence[Row]) -> tuple[Figure, float]:
    """Old runs and new trials in the two main directions of the net's features; the share of variation they show."""
    u, quality = _some_runs(history)
    h = net.features(history.space.transform(u))
    centre = h.mean(axis=0)
    _, s, directions = np.linalg.svd(h - centre, full_matrices=False)
    plane = directions[:2].T  # (n_z, 2), fewer columns when there are fewer features or old runs
    rises = quality @ ((h - centre) @ plane)
    plane = plane * np.where(rises < 0, -1.0, 1.0)  # better old runs to the right and to the top
    placed = [row for row in rows if not np.isnan(row.u).any()]
    new = net.features(history.space.transform(np.array([row.u for row in placed]).reshape(-1, history.space.d)))
    order = np.argsort(quality, kind="stable")  # the good ones on top
    data = [_old_points(_flat((h - centre) @ plane)[order], quality[order])]
    data += _new_points(_flat((new - centre) @ plane), placed, best(rows))
    hidden: Figure = {"showticklabels": False, "showgrid": False}
    made = figure(data, axis("", **hidden), axis("", **hidden))
    return made, float((s[:2] ** 2).sum() / max((s**2).sum(), 1e-300))


def _some_runs(history: History) -> tuple[Array, Array]:  # -> u (n, d), quality (n,)
    rng = np.random.default_rng(0)
    if too_many(history.tasks):  # one by one: a configuration that several tasks tried is drawn for each of them
        rows = np.sort(rng.permutation(sum(len(t.y) for t in history.tasks))[:OLD_POINTS])
        each = [(t.u, t.z) for t in history.tasks]
        return np.vstack([u for u, _ in each])[rows], np.concatenate([z for _, z in each])[rows]
    u, z, weight = history.wide()
    if len(u) > OLD_POINTS:
        pick = np.sort(rng.choice(len(u), OLD_POINTS, replace=False))
        u, z, weight = u[pick], z[pick], weight[pick]
    return u, (z * (weight > 0)).sum(axis=1) / np.maximum((weight > 0).sum(axis=1), 1)


def _old_points(xy: Array, quality: Array) -> Figure:
    low, high = np.quantile(quality, [0.02, 0.98]) if len(quality) else (0.0, 1.0)
    bar = {
        "title": {"text": "old runs: worse → better", "side": "top"},
        "orientation": "h",
        "thickness": 10,
        "len": 0.6,
        "x": 0,
        "xanchor": "left",
        "y": -0.1,
        "yanchor": "top",
        "outlinewidth": 0,
        "showticklabels": False,
    }
    scale = [[0, "--map0"], [0.5, "--map1"], [1, "--map2"]]
    marker = {"size": 5, "color": quality.round(3).tolist(), "colorscale": scale, "colorbar": bar}
    marker |= {"cmin": float(low), "cmax": float(max(high, low + 1e-9))}
    trace = marks("old run", xy.round(4).tolist(), marker)
    return trace | {"hovertemplate": "old runs: %{marker.color:+.2f} sd<extra></extra>", "showlegend": False}


def _new_points(xy: Array, rows: Sequence[Row], top: Row | None) -> list[Figure]:
    outlined = {"line": {"width": 1.5, "color": "--page"}}
    kinds: tuple[tuple[str, list[int], Figure], ...] = (
        ("new trial", [], {"symbol": "circle", "size": 10, "color": "--new"}),
        ("failed", [], {"symbol": "x", "size": 9, "color": "--bad"}),
        ("best", [], {"symbol": "star", "size": 18, "color": "--new"}),
    )
    for i, row in enumerate(rows):
        kinds[2 if row is top else 1 if row.state == "failed" else 0][1].append(i)
    labelled = _with_room(xy, [i for _, some, _ in reversed(kinds) for i in some])
    traces = []
    for name, some, marker in kinds:
        if some:
            trace = marks(name, xy[some].round(4).tolist(), marker | outlined)
            trace |= {"mode": "markers+text", "text": [str(rows[i].number) if i in labelled else "" for i in some]}
            trace |= {"textposition": "top center", "textfont": {"size": 12, "color": "--ink"}}
            about = [number(rows[i].value) if not math.isnan(rows[i].value) else rows[i].state for i in some]
            trace["customdata"] = [f"trial {rows[i].number}: {words}" for i, words in zip(some, about, strict=True)]
            traces.append(trace | {"hovertemplate": "%{customdata}<extra></extra>"})
    return traces


def _with_room(xy: Array, order: Sequence[int]) -> set[int]:
    """The points whose numbers can stand without covering one of an earlier point."""
    size = np.array([0.035, 0.045]) * np.maximum(np.ptp(xy, axis=0), 1e-9) if len(xy) else np.ones(2)
    chosen: list[int] = []
    for i in order:
        if not (np.abs(xy[chosen] - xy[i]) < size).all(axis=1).any():
            chosen.append(i)
    return set(chosen)


def _flat(xy: Array) -> Array:  # (m, 0 ... 2) -> (m, 2)
    return np.pad(xy, ((0, 0), (0, 2 - xy.shape[1])))
