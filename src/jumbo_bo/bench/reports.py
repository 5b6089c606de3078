"""The report of a suite's finished runs: Markdown, figures and the published record.

`<out>/<suite>/report.md`, `regret.png`, `regret.html`, `runs.parquet` (every trial and what made it)
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from jumbo_bo.bench import figures, interactive, markdown, ranking, stats
from jumbo_bo.bench.markdown import Record
from jumbo_bo.bench.run import read_runs
from jumbo_bo.bench.stats import Curves
from jumbo_bo.errors import InputError
from jumbo_bo.paths import whole

MOST_DRAWN = 8  # curves in one picture
REFERENCE = "optuna-gp"  # Optuna's GPSampler: what a user would pick instead


def report(
    out: Path,
    suite: str,
    trials: int | None,
    methods: Sequence[str],
    problems: Sequence[str],
    drawn: Sequence[str] = (),
) -> str:
    """Writes a suite's files and returns the Markdown. The figures show the methods `drawn`, by default the first
    that have a rank. Runs of other methods, problems or lengths stay in `runs.parquet`."""
    record = load(out, suite, trials, methods, problems)
    undrawn = [method for method in drawn if method not in {m for _, m in record.curves}]
    if undrawn:
        raise InputError(f"{', '.join(undrawn)} cannot be drawn: not among the methods of this report")
    order = list(methods) or by_area(record.curves, record.floors)
    folder = out / suite
    interactive.share_plotly(out)
    ranks = ranking.ranks(record.curves, order)
    shown = list(drawn) or most_drawn([m for m in order if m in ranks.table] or order)
    for draw, name in ((figures.regret_png, "regret.png"), (figures.regret_html, "regret.html")):
        draw(record.curves, shown, record.floors, folder / name, record.landmarks)
    text = markdown.document(
        f"# {suite}",
        markdown.average_table(record, order),
        markdown.regret_tables(record, order),
        markdown.rank_table(ranks, order),
        markdown.area_table(record, order),
        markdown.reach_table(stats.trials_to_reach(record.curves, REFERENCE), order, REFERENCE),
        markdown.cost_table(record, order),
        "![Simple regret](regret.png)",
        "[The same figure to look closer](regret.html): open it in a browser.",
        markdown.provenance(record.heads),
    )
    (folder / "report.md").write_text(text, encoding="utf-8")
    publish(record.frame, folder / "runs.parquet")
    return text


def load(
    out: Path, suite: str, trials: int | None, methods: Sequence[str], problems: Sequence[str], some: bool = False
) -> Record:
    """The finished runs of these methods and problems. None given means all problems, and all methods that are not a
    variant for an ablation ('jumbo:warm=g'). All methods must be there, or `some`."""
    frame, heads = read_runs(out, suite, trials)
    names = list(problems) or sorted({head["problem"] for head in heads if "@" not in head["problem"]})
    there = sorted({(head["problem"], head["method"]) for head in heads})
    missing = [m for m in methods if not any((p, m) in there for p in names)]
    if (missing and not (some and len(missing) < len(methods))) or not any(p in names for p, _ in there):
        raise InputError(f"no finished runs of {missing or names} in {suite}; there are {there}")
    heads = [h for h in heads if h["problem"] in names]
    heads = [h for h in heads if (h["method"] in methods if methods else ":" not in h["method"])]
    chosen = pl.DataFrame({"stamp": [json.dumps(head) for head in heads]}, schema={"stamp": pl.String})
    frame = frame.join(chosen, on="stamp", how="semi")
    first = {head["problem"]: head for head in reversed(heads)}
    floors, units = ({p: float(first[p][key]) for p in names if p in first} for key in ("floor", "unit"))
    found = stats.curves_of(frame)
    curves = {key: found[key] for key in sorted(found, key=lambda key: names.index(key[0]))}
    landmarks = {p: first[p].get("landmarks", {}) for p in floors}
    return Record(frame, heads, curves, floors, units, landmarks)


def publish(frame: pl.DataFrame, path: Path) -> None:
    """Writes these runs to `path`; those in it that are not among them stay."""
    if path.exists():
        old, keys = pl.read_parquet(path), {_key(stamp) for stamp in frame["stamp"].unique()}
        kept = [stamp for stamp in old["stamp"].unique() if _key(stamp) not in keys]
        frame = pl.concat([frame, old.filter(pl.col("stamp").is_in(kept))], how="diagonal_relaxed")
    frame = frame.sort("problem", "method", "seed", "stamp", "trial")  # the same runs, the same file
    with whole(path) as part:
        frame.write_parquet(part)


def most_drawn(methods: Sequence[str]) -> list[str]:
    """The first MOST_DRAWN, the reference among them if it is there at all."""
    first = list(methods[:MOST_DRAWN])
    return first if REFERENCE in first or REFERENCE not in methods else [*first[:-1], REFERENCE]


def by_area(curves: Curves, floors: Mapping[str, float]) -> list[str]:
    """Methods by their mean log10 area; those that lack problems come last."""
    means: dict[str, list[float]] = {}
    for (_, method), runs in stats.areas(curves, floors).items():
        means.setdefault(method, []).append(float(np.mean(list(runs.values()))))
    return sorted(means, key=lambda method: (-len(means[method]), float(np.mean(means[method])), method))


def _key(stamp: str) -> tuple[object, ...]:
    head = json.loads(stamp)
    return tuple(head.get(name) for name in ("problem", "method", "seed", "trials"))
