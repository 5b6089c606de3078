"""One question each: what if this part of the method, or of the old runs, were different?

An ablation is a list of variants of a suite's runs. Its runs are runs of that suite like all others, kept and resumed
with them; its table compares every variant with a reference on the same problems and seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jumbo_bo.bench.run import Run

TEMPORAL = ("protein", "parkinsons", "naval")
DATASETS = (*TEMPORAL, "slice")
THRESHOLDS = ("0.0", "0.01", "0.05", "0.1", "0.2", "inf")
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

    def runs(self, seeds: Sequence[int], trials: int) -> list[Run]:
        every = (self.reference, *self.variants)
        return [
            Run(self.suite, v.problem(name), v.method, seed, trials)
            for seed in seeds
            for name in self.problems
            for v in dict.fromkeys(every)
        ]


def _methods(**named: str) -> tuple[Variant, ...]:
    return tuple(Variant(label.replace("_", " "), method) for label, method in named.items())


ABLATIONS = {
    "threshold": Ablation(
        "How much does the threshold l_alpha of the gate matter? (paper, Table 'l_alpha')",
        "fcnet-tt",
        TEMPORAL,
        (
            *(Variant(f"JUMBO {x}", f"jumbo:threshold={x}" if x != "0.1" else "jumbo") for x in THRESHOLDS),
            Variant("Offline DKL", "offline-dkl"),
        ),
    ),
    "warm-block": Ablation(
        "Latent features, as the paper prints, or the net's outputs, as its code has it, for the warm-GP?",
        "fcnet-tt",
        TEMPORAL,
        _methods(
            JUMBO_features="jumbo",
            JUMBO_outputs="jumbo:warm=g",
            Offline_DKL_features="offline-dkl",
            Offline_DKL_outputs="offline-dkl:warm=g",
        ),
    ),
    "gate": Ablation(
        "The gate as printed, or the best cold score inside it?",
        "fcnet-tt",
        TEMPORAL,
        _methods(printed="jumbo", constrained="jumbo:gate=constrained"),
    ),
    "lambda": Ablation(
        "A dynamic lambda, or a constant 0.5? (paper, Figure 'Ablation on the dynamic choice')",
        "fcnet-tt",
        TEMPORAL,
        _methods(dynamic="jumbo", constant="jumbo-constant"),
    ),
    "blr": Ablation(
        "A GP on the features, or Bayesian linear regression? (paper, Figure c)",
        "fcnet-tt",
        TEMPORAL,
        _methods(GP="jumbo", BLR="jumbo-blr"),
    ),
    "guard": Ablation(
        "The joint GP with and without the test that may set the old runs aside, and its parts.",
        "fcnet-tt",
        TEMPORAL,
        _methods(with_the_test="jumbo-joint", without="jumbo-joint:guard=inf"),
    ),
    "tasks": Ablation(
        "One, two or three old tasks?",
        "fcnet-dt",
        DATASETS,
        tuple(
            Variant(f"{label} {k}", method, f"tasks={k}" if k < 3 else "")
            for label, method in (("joint GP", "jumbo-joint"), ("JUMBO", "jumbo"))
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
            for label, method in (("joint GP", "jumbo-joint"), ("JUMBO", "jumbo"))
            for rows in ROWS
        ),
        axis="old rows",
    ),
    "features": Ablation(
        "How many latent features n_z?",
        "fcnet-tt",
        TEMPORAL,
        tuple(
            Variant(f"JUMBO {n_z}", "jumbo" if n_z == 4 else f"jumbo:preset=hpo:n_z={n_z}") for n_z in (2, 4, 8, 16, 32)
        ),
        axis="latent features",
    ),
}
