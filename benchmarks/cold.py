"""The suite without old runs, function by function: what was found, its cost, and how the default compares.

    jumbo bench cold --methods jumbo-mixture,gp-ucb,optuna-gp,tpe,random --seeds 10
    python benchmarks/peers/setup.py botorch-logei
    python benchmarks/peers/run.py botorch-logei --suite cold --seeds 10 --trials 60
    python benchmarks/cold.py            # OUT/cold/functions.md, from the finished runs

`jumbo bench report cold` averages over the functions. Here each one has a table of its own, because a method that is
good at narrow valleys may be bad at flat plains. Seeds from 100 on are for tuning: give them another folder.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from jumbo_bo.bench import markdown, paired, ranking, reports, stats
from jumbo_bo.bench.bootstrap import Interval
from jumbo_bo.bench.markdown import Record
from jumbo_bo.bench.run import split_names
from jumbo_bo.bench.stats import Curves
from jumbo_bo.bench.suites import SUITES
from jumbo_bo.methods import DEFAULT
from jumbo_bo.space.space import Array

SUITE, TRIALS, MARKS = "cold", 60, (10, 30, 60)
NOTE = f"""No noise, no old runs. After {", ".join(map(str, MARKS))} trials: best value minus optimum, median over seeds
[quartiles]. CPU s: of a suggestion, on one thread. Rank: at the last trial, among the methods of the table, on the
seeds that all of them have. Difference: log10 regret at the last trial minus that of {DEFAULT} on the same seeds.
Above 0 {DEFAULT} is better, and 0.3 is twice its regret. In brackets are 95 % intervals of a bootstrap, none for one
seed and too narrow for fewer than five; bold are differences whose interval does not hold 0."""


def report(out: Path, methods: Sequence[str] = ()) -> str:
    """Writes the tables and returns them."""
    record = reports.load(out, SUITE, TRIALS, methods, SUITES[SUITE].problems)
    if DEFAULT not in {method for _, method in record.curves}:
        raise SystemExit(f"no finished runs of {DEFAULT}, which the others are compared with; jumbo bench {SUITE}")
    order = list(methods) or reports.by_area(record.curves, record.floors)
    parts = [f"## {name}\n\n{function_table(record, name, order)}" for name in record.floors]
    whole = f"## All functions\n\n{overall_table(record, order)}"
    text = markdown.document("# Without old runs", NOTE, whole, *parts, markdown.provenance(record.heads))
    (out / SUITE / "functions.md").write_text(text, encoding="utf-8")
    return text


def function_table(record: Record, problem: str, order: Sequence[str]) -> str:
    curves = {key: runs for key, runs in record.curves.items() if key[0] == problem}
    own = record.frame.filter(pl.col("problem") == problem)
    seconds = dict(own.group_by("method").agg(pl.col("cpu_ask").mean()).iter_rows())
    compared = comparison(curves, record.floors, [m for m in order if m in seconds])
    rows = []
    for method in (m for m in order if m in seconds):
        regret = stats.stack(curves[problem, method])
        found = [quartiles(regret[:, mark - 1]) for mark in MARKS]
        rows.append([method, str(len(regret)), *found, f"{seconds[method]:.2f}", *compared[method]])
    return markdown.table(["method", "seeds", *map(str, MARKS), "CPU s", "rank", "difference"], rows)


def overall_table(record: Record, order: Sequence[str]) -> str:
    """Over all functions; a method that lacks some has no rank."""
    compared = comparison(record.curves, record.floors, order)
    count = {method: sum(m == method for _, m in record.curves) for method in order}
    rows = ([method, str(count[method]), *compared[method]] for method in order)
    return markdown.table(["method", "functions", "rank", "difference"], rows)


def comparison(curves: Curves, floors: Mapping[str, float], methods: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Of each method, its rank and its difference from the default at the last trial."""
    ranks = ranking.ranks(curves, methods, MARKS[-1:]).table
    versus = paired.against(curves, floors, DEFAULT, MARKS[-1:])
    result = {}
    for method in methods:
        rank = markdown.interval(ranks[method][0]) if method in ranks else "n/a"
        shared = method in versus and method != DEFAULT
        result[method] = rank, difference(versus[method].differences[0]) if shared else ""
    return result


def difference(cell: Interval) -> str:
    text = markdown.interval(cell, "+.2f")
    return f"**{text}**" if cell.low > 0 or cell.high < 0 else text


def quartiles(values: Array) -> str:  # (S,) ->
    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    return f"{middle:.3g} [{low:.3g}, {high:.3g}]" if len(values) > 1 else f"{middle:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="", help="only these, in this order; default: all, the best first")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="the folder of the runs")
    options = parser.parse_args()
    print(report(options.out, split_names(options.methods)))


if __name__ == "__main__":
    main()
