"""How many of the latent dimensions carry the variance? (paper, Figure 'Explained Variance of latent dimensions')

The net sees configurations drawn uniformly; its latent features are centred, and `share[i]` is the part of their
variance in the first i + 1 principal components. For comparison the same of the net's input T(u) and of an untrained
net's features: what a net compresses before it has learned anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from jumbo_bo.bench import figures, interactive, markdown
from jumbo_bo.bench.problem import Problem
from jumbo_bo.bench.run import Row
from jumbo_bo.bench.suites import SUITES
from jumbo_bo.learning.pretrain import pretrain
from jumbo_bo.learning.training import resolve
from jumbo_bo.space.space import Array

SAMPLE = 4096
MARKS = (1, 2, 4, 8)
N_Z = 32  # latent dimensions


def share(features: Array) -> Array:  # (m, p) -> (p,) cumulative, rising to 1
    """The part of the total variance in the first components. Nothing varies: all of it is in the first."""
    variances = np.linalg.svd(features - features.mean(axis=0), compute_uv=False) ** 2
    total = variances.sum()
    result: Array = np.cumsum(variances) / total if total > 0 else np.ones(len(variances))
    return result


def shares(problem: Problem, preset: str, seed: int) -> dict[str, Array]:
    """By kind: the features of a trained net, those of the same net before training, and the input."""
    t = problem.space.transform(problem.space.sample(np.random.default_rng([seed, 4]), SAMPLE))
    options = resolve(preset)
    trained = pretrain(problem.history, options, seed)
    untrained = pretrain(problem.history, replace(options, max_steps=1, learning_rate=1e-12), seed)
    kinds: Mapping[str, Callable[[], Array]] = {
        "trained": lambda: trained.features(t),
        "untrained": lambda: untrained.features(t),
        "input": lambda: t,
    }
    return {kind: share(values()) for kind, values in kinds.items()}


def compression(out: Path, suite: str, seeds: int, command: str, data: Path | None = None) -> str:
    """Writes `<out>/<suite>/compression.md`, `.parquet`, `.png` and `.html`; returns the Markdown."""
    chosen = SUITES[suite]
    rows: list[Row] = []
    curves: dict[str, list[Array]] = {}
    missing = chosen.without_data(data)
    for name in (name for name in chosen.problems if name not in missing):
        for seed in range(seeds):
            for kind, values in shares(chosen(name, data, seed), f"{chosen.net}:n_z={N_Z}", seed).items():
                label = {"problem": name, "seed": seed, "kind": kind}
                rows += [{**label, "components": i + 1, "share": float(v)} for i, v in enumerate(values)]
                curves.setdefault(kind, []).append(values)
    path = out / suite / "compression"
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pl.DataFrame(rows)
    frame.write_parquet(path.with_suffix(".parquet"))
    interactive.share_plotly(out)
    _draw(curves, path)
    figure = "![Explained variance](compression.png)"
    text = markdown.document(f"# {suite}: space compression", _table(frame), figure, markdown.made_by(command))
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    return text


def _draw(curves: Mapping[str, Sequence[Array]], path: Path) -> None:
    n = max(len(v) for values in curves.values() for v in values)
    lines = {}
    for label, values in curves.items():
        padded = np.array([np.concatenate([v, np.ones(n - len(v))]) for v in values])
        lines[label] = padded.mean(axis=0), padded.std(axis=0)
    x = np.arange(1.0, n + 1)
    for draw, suffix in ((figures.lines_png, ".png"), (figures.lines_html, ".html")):
        draw(x, lines, path.with_suffix(suffix), "principal components", False, "share of the variance")


def _table(frame: pl.DataFrame) -> str:
    note = f"Share of the variance of the latent space ({N_Z} dimensions) in the first components, mean over seeds; "
    note += "the input and the untrained net for comparison."
    kinds = ("trained", "untrained", "input")
    rows = []
    for (problem,), some in frame.group_by("problem", maintain_order=True):
        cells = []
        for kind in kinds:
            own = some.filter(pl.col("kind") == kind)
            means = [own.filter(pl.col("components") == k)["share"].to_numpy() for k in MARKS]
            cells.append(" / ".join(f"{mean.mean():.2f}" if len(mean) else "1.00" for mean in means))
        rows.append([str(problem), *cells])
    marks = " / ".join(map(str, MARKS))
    return f"{note}\n\n{markdown.table(['problem', *(f'{kind}, first {marks}' for kind in kinds)], rows)}"
