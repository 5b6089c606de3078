"""The picture of 'How big can it get', from what benchmarks/trials.py and benchmarks/rows.py have measured.

python docs/figures/big.py [--out PATH]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

HERE = Path(__file__).parent
RESULTS = HERE.parent.parent / "benchmarks" / "results"
NAMES = {"12 parameters": "12 parameters", "protein": "a table of 62,208"}
COLOURS = {"12 parameters": "#0072B2", "protein": "#D55E00"}
GREY = "0.45"


def measured(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text())


def trials(axes: Axes) -> None:
    rows = measured("trials")["cpu_seconds"]
    for problem, label in NAMES.items():
        for who, line in (("jumbo-mixture", "-"), ("gpsampler", ":")):
            found = sorted((r["trials"], r["next"]) for r in rows if (r["problem"], r["who"]) == (problem, who))
            x, y = zip(*found, strict=True)
            axes.loglog(x, y, f"{line}o", color=COLOURS[problem], markersize=3)
            axes.annotate(
                label if line == "-" else "GPSampler", (x[-1], y[-1]), (4, 0), textcoords="offset points", fontsize=7,
                color=COLOURS[problem], va="center", annotation_clip=False,
            )  # fmt: skip
    axes.set(xlabel="finished trials", ylabel="CPU seconds", title="One suggestion")
    axes.set_xlim(40, 60_000)


def rows(axes: Axes) -> None:
    found = {int(name.split()[1]): r["ours"] for name, r in measured("rows").items() if name.startswith("parquet")}
    n = sorted(found)
    lines = {"seconds to read": "read", "seconds to learn": "learn"}
    for (label, key), colour in zip(lines.items(), COLOURS.values(), strict=True):
        axes.loglog(n, [found[k][key] for k in n], "-o", color=colour, markersize=3, label=label)
    axes.loglog(n, [found[k]["memory"] / 1024 for k in n], "-s", color=GREY, markersize=3, label="GB of memory at peak")
    axes.set(xlabel="old rows", title="Old runs in a Parquet file")
    axes.legend(fontsize=7, frameon=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE / "big.png")
    figure = Figure(figsize=(8, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    trials(left)
    rows(right)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="0.92")
    figure.savefig(parser.parse_args().out, dpi=150)


if __name__ == "__main__":
    main()
