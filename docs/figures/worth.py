"""The picture of the README: what old runs are worth, from the published runs of the eight suites of docs/results.md.

python docs/figures/worth.py [--out PATH]
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from jumbo_bo.bench import stats, summaries
from jumbo_bo.bench.bootstrap import averages
from jumbo_bo.bench.reports import load
from jumbo_bo.space.space import Array

HERE = Path(__file__).parent
RESULTS = HERE.parent.parent / "benchmarks" / "results"
SUITES = ("fcnet-tt", "fcnet-dt", "hpobench-mlp", "suzuki", "buchwald", "gpu", "x264", "lcbench")
EARLY = 5  # trials with old runs that are compared with more without them
LOOK = {  # name, colour, and by how many points the name is moved up
    "jumbo-mixture": ("jumbo-bo,\nwith old runs", "#D55E00", -8),
    "gp-ucb": ("Bayesian optimization\nwithout old runs", "#0072B2", 12),
    "random": ("random search", "0.45", 0),
}


def lines() -> Mapping[str, Array]:  # method -> (50, 3): mean, low, high
    """Regret as a share of a blind guess's, the geometric mean in which every suite counts the same."""
    joined = summaries.join({suite: load(RESULTS, suite, None, (), (), some=True) for suite in SUITES})
    logs = stats.normalised(joined.curves, joined.floors)
    found = {}
    for method in LOOK:
        own = {(p, seed): log for (p, m), runs in logs.items() if m == method for seed, log in runs.items()}
        length = min(map(len, own.values()))
        found[method] = 10 ** averages(np.stack([log[:length] for log in own.values()]), list(own), joined.suites)
    return found


def draw(found: Mapping[str, Array]) -> Figure:
    figure = Figure(figsize=(7.2, 3.3), layout="constrained", facecolor="white")
    axes = figure.subplots()
    for method, (label, colour, up) in LOOK.items():
        mean, low, high = found[method].T
        x = np.arange(1, len(mean) + 1)
        axes.plot(x, mean, color=colour, linewidth=2.6 if method == "jumbo-mixture" else 1.6)
        axes.fill_between(x, low, high, color=colour, alpha=0.1, linewidth=0)
        at = x[-1], mean[-1]
        axes.annotate(
            label, at, (6, up), textcoords="offset points", color=colour, fontsize=9, va="center", annotation_clip=False
        )
    reached, level = later(found), found["jumbo-mixture"][EARLY - 1, 0]
    if reached is not None:
        axes.annotate(
            "", (reached, level), (EARLY, level), arrowprops={"arrowstyle": "<->", "color": "0.3", "linewidth": 1}
        )
        words = f"as good after {EARLY} trials as without old runs after {reached}"
        axes.annotate(words, (reached, level), (5, 9), textcoords="offset points", color="0.25", fontsize=9)
    axes.set_yscale("log")
    axes.set(xlabel="trials of the new problem", xlim=(1, 50))
    axes.set_title("Distance to the best configuration, as a share of a blind guess's", fontsize=10, loc="left")
    axes.set_xticks([1, 5, 10, 20, 30, 40, 50])
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}" if value >= 0.01 else f"{value:.1%}")
    axes.grid(True, axis="y", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def later(found: Mapping[str, Array]) -> int | None:
    """The trial from which the search without old runs is at least as good as after the early ones with them."""
    level = found["jumbo-mixture"][EARLY - 1, 0]
    as_good = np.flatnonzero(found["gp-ucb"][:, 0] <= level)
    return int(as_good[0]) + 1 if len(as_good) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE / "worth.png")
    given = parser.parse_args()
    found = lines()
    draw(found).savefig(given.out, dpi=130, metadata={"Software": None})
    for method, line in found.items():
        print(
            method,
            *(f"{t}: {line[t - 1, 0]:.3g} [{line[t - 1, 1]:.3g}, {line[t - 1, 2]:.3g}]" for t in (1, 5, 10, 25, 50)),
        )
    print(f"{EARLY} trials with old runs are as good as {later(found)} without")


if __name__ == "__main__":
    main()
