"""One question each: what if this part of the method, or of the old runs, were different?

An ablation is a list of variants of a suite's runs. Its runs are runs of that suite like all others, kept and resumed
with them; its table compares every variant with a reference on the same problems and seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jumbo_bo.bench import circuit, figures, interactive, markdown, reports, stats
from jumbo_bo.bench.run import Run
from jumbo_bo.bench.stats import Curves
from jumbo_bo.bench.suites import SUITES
from jumbo_bo.space.space import Array

TEMPORAL = ("protein", "parkinsons", "naval")
DATASETS = (*TEMPORAL, "slice")
THRESHOLDS = ("0.0", "0.01", "0.05", "0.1", "0.2", "inf")  # of the paper
SHARES = ("0.0", "0.05", "0.1", "0.2", "0.5", "1.0", "inf")  # of the spread of the warm score
NETS_ALONE = "jumbo-joint:preset=default:gp_rows=0"
ROWS = (30, 100, 300, 1_000, 3_000, 10_000, 62_208)


@dataclass(frozen=True)
class Variant:
    label: str
    method: str
    options: str = ""  # of the problem, see suites.py

    def problem(self, name: str) -> str:
        return f"{name}@{self.options}" if self.options else name


@dataclass(frozen=True)
class Ablation:
    question: str
    suite: str
    problems: tuple[str, ...]
    variants: tuple[Variant, ...]
    reference: Variant = Variant("GP-UCB", "gp-ucb")
    axis: str = ""  # the variants are points along this axis: their labels are '<curve> <number>'

    @property
    def every(self) -> tuple[Variant, ...]:
        return tuple(dict.fromkeys((self.reference, *self.variants)))

    def runs(self, seeds: Sequence[int], trials: int | None = None) -> list[Run]:
        return [
            Run(self.suite, v.problem(name), v.method, seed, trials or SUITES[self.suite].trials)
            for seed in seeds
            for name in self.problems
            for v in self.every
        ]


def _temporal(question: str, *variants: Variant, axis: str = "") -> Ablation:
    return Ablation(question, "fcnet-tt", TEMPORAL, variants, axis=axis)


def _circuit(question: str, *variants: Variant) -> Ablation:
    return Ablation(question, "circuit", (circuit.TASK,), variants)


_THRESHOLDS = (
    *(Variant(f"printed {x}", f"jumbo-printed:threshold={x}" if x != "0.1" else "jumbo-printed") for x in THRESHOLDS),
    Variant("Offline DKL", "offline-dkl"),
)

_SHARES = tuple(Variant(f"JUMBO {x}", f"jumbo:threshold={x}" if x != "0.2" else "jumbo") for x in SHARES)
_FORMS = (
    Variant("JUMBO, constant lambda", "jumbo:gate=constant"),
    Variant("JUMBO, linear regression", "jumbo:warm=linear"),
)

ABLATIONS = {
    "threshold": _temporal(
        "How much does the threshold l_alpha of the gate matter? (paper, Table 'l_alpha')", *_SHARES, *_THRESHOLDS
    ),
    "slice": Ablation(
        "From three other data sets to Slice: the threshold, a constant lambda, linear regression?",
        "fcnet-dt",
        ("slice",),
        (*_SHARES, *_FORMS),
    ),
    "circuit-forms": _circuit(
        "The threshold of JUMBO at its best, a constant lambda, linear regression, and one signal for the circuit?",
        *_SHARES,
        *_FORMS,
        Variant("JUMBO, one signal", "jumbo", "tasks=1"),
    ),
    "parts": _temporal(
        "JUMBO at its best with one part as the paper prints it: what made the difference?",
        Variant("JUMBO", "jumbo"),
        Variant("the paper's net", "jumbo:preset=hpo"),
        Variant("exploration 10 exp(-t/T)", "jumbo:beta0=10,rate=1"),
        Variant("may leave the gate", "jumbo:gate=printed"),
        Variant("the joint GP as the warm one", "jumbo:warm=joint"),
        Variant("exploration never turned up", "jumbo:push=false"),
        Variant("as printed", "jumbo-printed"),
        Variant("as released", "jumbo-released"),
    ),
    "circuit-threshold": _circuit(
        "How much does the threshold l_alpha matter for the circuit? (paper, Table 'l_alpha', row 'Circuit')",
        *_THRESHOLDS,
    ),
    "circuit-tasks": _circuit(
        "Only the schematic score, or also phase margin and bandwidth? (paper, Figure 'Circuit', b)",
        *(
            Variant(f"{label}, {words}", method, options)
            for label, method in (("joint GP", "jumbo-joint"), ("printed", "jumbo-printed"))
            for words, options in (("one signal", "tasks=1"), ("three signals", ""))
        ),
    ),
    "circuit-nets": _circuit(
        "Nets and GPs on the old rows, or nets alone, as the joint GP's knowledge of the old runs?",
        Variant("nets and GPs", "jumbo-joint"),
        Variant("nets alone", NETS_ALONE),
    ),
    "warm-block": _temporal(
        "Latent features, as the paper prints, or the net's outputs, as its code has it, for the warm-GP?",
        Variant("printed features", "jumbo-printed"),
        Variant("printed outputs", "jumbo-printed:warm=g"),
        Variant("Offline DKL features", "offline-dkl"),
        Variant("Offline DKL outputs", "offline-dkl:warm=g"),
    ),
    "gate": _temporal(
        "The gate as printed, or the best cold score inside it?",
        Variant("printed", "jumbo-printed"),
        Variant("constrained", "jumbo-printed:gate=constrained"),
    ),
    "lambda": _temporal(
        "A dynamic lambda, or a constant 0.5? (paper, Figure 'Ablation on the dynamic choice')",
        Variant("JUMBO, dynamic", "jumbo"),
        Variant("JUMBO, constant", "jumbo:gate=constant"),
        Variant("printed, dynamic", "jumbo-printed"),
        Variant("printed, constant", "jumbo-constant"),
    ),
    "blr": _temporal(
        "A GP on the features, or Bayesian linear regression? (paper, Figure c)",
        Variant("JUMBO, GP", "jumbo"),
        Variant("JUMBO, BLR", "jumbo:warm=linear"),
        Variant("printed, GP", "jumbo-printed"),
        Variant("printed, BLR", "jumbo-blr"),
    ),
    "guard": _temporal(
        "The joint GP, without the test that may set the old runs aside, without the contrast, and with nets alone.",
        Variant("joint GP", "jumbo-joint"),
        Variant("without the test", "jumbo-joint:guard=inf"),
        Variant("without the contrast", "jumbo-joint:contrast=false"),
        Variant("nets alone", NETS_ALONE),
    ),
    "tasks": Ablation(
        "One, two or three old tasks?",
        "fcnet-dt",
        DATASETS,
        tuple(
            Variant(f"{label} {k}", method, f"tasks={k}" if k < 3 else "")
            for label, method in (("JUMBO", "jumbo"), ("joint GP", "jumbo-joint"), ("printed", "jumbo-printed"))
            for k in (1, 2, 3)
        ),
        axis="old tasks",
    ),
    "rows": Ablation(
        "How many old rows? (Naval -> Parkinsons)",
        "fcnet-dt",
        ("parkinsons",),
        tuple(
            Variant(f"{label} {rows}", method, f"from=naval,rows={rows}")
            for label, method in (("joint GP", "jumbo-joint"), ("printed", "jumbo-printed"))
            for rows in ROWS
        ),
        axis="old rows",
    ),
    "features": _temporal(
        "How many latent features n_z?",
        *(
            Variant(f"printed {n_z}", "jumbo-printed" if n_z == 4 else f"jumbo-printed:preset=hpo:n_z={n_z}")
            for n_z in (2, 4, 8, 16, 32)
        ),
        axis="latent features",
    ),
}


def report(out: Path, name: str, trials: int | None = None) -> str:
    """Writes `<out>/ablations/<name>.md`, `.png` and `.html`; returns the Markdown. Its runs are published too."""
    ablation = ABLATIONS[name]
    problems = [v.problem(p) for v in ablation.every for p in ablation.problems]
    record = reports.load(out, ablation.suite, trials, [v.method for v in ablation.every], problems)
    curves = {
        (problem, v.label): record.curves[v.problem(problem), v.method]
        for problem in ablation.problems
        for v in ablation.every
        if (v.problem(problem), v.method) in record.curves
    }
    reports.publish(record.frame, out / ablation.suite / "runs.parquet")
    labels = [v.label for v in ablation.every if any((p, v.label) in curves for p in ablation.problems)]
    differences = stats.normalised_to(curves, record.floors, ablation.reference.label)
    folder = out / "ablations"
    interactive.share_plotly(out)
    _draw(ablation, differences, folder / name)
    text = markdown.document(
        f"# {name}",
        ablation.question,
        _table(ablation, curves, labels, differences),
        f"![{name}]({name}.png)",
        f"[The same figure to look closer]({name}.html): open it in a browser.",
        markdown.provenance(record.heads),
    )
    (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return text


def _table(ablation: Ablation, curves: Curves, labels: Sequence[str], differences: dict[str, stats.Difference]) -> str:
    reference = ablation.reference.label
    last = {key: stats.stack(runs)[:, -1] for key, runs in curves.items()}
    note = f"Regret at the last trial, divided by the mean of {reference} (mean ± standard error); and the log10 area"
    note += f" minus that of {reference} on the same problems and seeds, averaged (below 0 is better)."
    rows = []
    for label in labels:
        cells = []
        for problem in ablation.problems:
            scale = float(np.mean(last.get((problem, reference), np.nan)))
            cells.append(_ratio(last.get((problem, label)), scale))
        found = differences.get(label)
        shown = f"{found.mean:+.2f} ± {found.error:.2f} ({found.pairs} runs)" if found else "n/a"
        rows.append([label, *cells, shown])
    return f"{note}\n\n{markdown.table(['variant', *ablation.problems, 'log10 area'], rows)}"


def _ratio(regret: Array | None, scale: float) -> str:
    if regret is None or not scale > 0:
        return "n/a"
    mean, error = stats.mean_error(regret / scale)
    return f"{mean:.2f}" if np.isnan(error) else f"{mean:.2f} ± {error:.2f}"


def _draw(ablation: Ablation, differences: dict[str, stats.Difference], path: Path) -> None:
    label = f"log10 area minus that of {ablation.reference.label} (lower is better)"
    found = {v.label: differences[v.label] for v in ablation.variants if v.label in differences}
    png, html = path.with_suffix(".png"), path.with_suffix(".html")
    if not ablation.axis:
        bars = {name: (d.mean, d.error) for name, d in found.items()}
        figures.bars_png(bars, png, label)
        figures.bars_html(bars, html, label)
        return
    points: dict[str, dict[float, stats.Difference]] = {}
    for name, difference in found.items():
        curve, _, value = name.rpartition(" ")
        points.setdefault(curve, {})[float(value)] = difference
    x = np.array(sorted({value for curve in points.values() for value in curve}))
    gap = stats.Difference(np.nan, np.nan, 0, 0)
    lines = {
        curve: (
            np.array([at.get(value, gap).mean for value in x]),
            np.array([at.get(value, gap).error for value in x]),
        )
        for curve, at in points.items()
    }
    logarithmic = bool(x.max() > 20)
    figures.lines_png(x, lines, png, ablation.axis, logarithmic, label)
    figures.lines_html(x, lines, html, ablation.axis, logarithmic, label)
