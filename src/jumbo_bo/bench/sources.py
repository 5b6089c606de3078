"""Where the tables of the suites lcbench, x264, gpu, suzuki and buchwald come from, and how their tasks are split.

The file of a suite is in long form: a column per parameter, `task`, and the objective last.

Development and report: the tasks in the order of the SHA-256 of `suite/problem`; the last `reported` are for reports,
the others for tuning. A development target knows only the other development tasks, so that no number of a report task
can reach a setting. A report target knows all others.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from jumbo_bo.bench.folders import find_folder


@dataclass(frozen=True, eq=False)
class Source:
    name: str
    file: str
    text: str
    parameters: tuple[str, ...]
    objective: str
    direction: Literal["minimize", "maximize"]
    tasks: Mapping[str, str]  # problem -> task in the file
    origin: str  # repository @ commit, licence: where in it
    reported: int  # tasks of the report half
    shown: int | None = None  # of these, targets of the suite; None: all
    log_scaled: tuple[str, ...] = ()  # parameters; other numbers are linear
    log_objective: bool = False
    old_tasks: int | None = None  # drawn by the seed; None: all others
    rows: int | None = None  # drawn by the seed from each; None: all

    @cached_property
    def _order(self) -> tuple[str, ...]:
        return tuple(sorted(self.tasks, key=lambda name: hashlib.sha256(f"{self.name}/{name}".encode()).digest()))

    @property
    def development(self) -> tuple[str, ...]:
        return self._order[: -self.reported]

    @property
    def report(self) -> tuple[str, ...]:
        return self._order[-self.reported :]

    def folder(self, data: Path | None) -> Path:
        columns = ", ".join((*self.parameters, "task", self.objective))
        advice = f"make it from {self.origin}: one row per measured configuration, columns {columns}; then pass its "
        return find_folder(data, "transfer", self.file, advice + "folder with --data or JUMBO_DATA")

    def others(self, target: str) -> tuple[str, ...]:
        """Tasks that may be old runs of this target, in the order of the file's names."""
        allowed = self.development if target in self.development else self.tasks
        return tuple(name for name in self.tasks if name in allowed and name != target)


def numbered(count: int) -> dict[str, str]:
    return {f"v{i}": f"v{i}" for i in range(count)}


_LCBENCH = (
    "APSFailure adult airlines albert Australian bank-marketing car christine cnae-9 connect-4 covertype credit-g "
    "dionis fabert Fashion-MNIST helena higgs jannis jasmine kc1 kr-vs-kp mfeat-factors MiniBooNE nomao numerai28.6 "
    "phoneme segment shuttle sylvine vehicle volkert"
)
_HALIDES = {"chloride": "Cl", "bromide": "Br", "iodide": "I", "triflate": "O=S(O"}
_QUINOLINE = {name: f"{atom}C1=CC=C(N=CC=C2)C2=C1" for name, atom in _HALIDES.items()}
_QUINOLINE["triflate"] += ")(C(F)(F)F)=O"
_BORON = {"acid": "B(O)O", "ester": "B4OC(C)(C)C(C)(C)O4", "trifluoroborate": "[B-](F)(F)F"}
_HALOGENS = {"chloride": "chloro", "bromide": "bromo", "iodide": "iodo"}
_X264 = (
    "cabac ref deblock analyse me subme mixed_ref me_range trellis 8x8dct fast_pskip chroma_qp_offset bframes "
    "b_pyramid b_adapt direct weightb open_gop weightp scenecut rc_lookahead mbtree aq-mode"
)

SOURCES = {
    source.name: source
    for source in (
        Source(
            "lcbench",
            "lcbench.parquet",
            "LCBench: a network trained on 35 OpenML data sets, 2,000 configurations each; the others -> this one.",
            ("batch_size", "max_dropout", "max_units", "num_layers", "learning_rate", "momentum", "weight_decay"),
            "val_accuracy",
            "maximize",
            {
                **{name.lower(): name for name in _LCBENCH.split()},
                "amazon-employee": "Amazon_employee_access",
                "blood-transfusion": "blood-transfusion-service-center",
                "jungle-chess": "jungle_chess_2pcs_raw_endgame_complete",
                "kddcup09": "KDDCup09_appetency",
            },
            "ltiao/LCBenchLite @ 42ea3c2f (Apache-2.0), <data set>/results.parquet.gzip, the accuracy after 50 epochs",
            reported=20,
            log_scaled=("batch_size", "max_units", "learning_rate", "weight_decay"),
        ),
        Source(
            "x264",
            "x264.parquet",
            "A video encoder's options: the size of a video, 201 configurations; other videos -> this one.",
            tuple(_X264.split()),
            "size",
            "minimize",
            numbered(150),
            "llesoil/input_sensitivity @ aec6b95b (MIT), data/x264/<video>.csv of 150 videos",
            reported=75,
            shown=20,
            log_objective=True,
            old_tasks=60,
        ),
        Source(
            "gpu",
            "gpu-dedispersion.parquet",
            "The time of a GPU kernel, 11,130 configurations; five other GPUs -> this one.",
            ("block_size_x", "block_size_y", "tile_size_x", "tile_size_y", "tile_stride_x", "tile_stride_y"),
            "time_ms",
            "minimize",
            {name.lower(): name for name in ("A100", "A4000", "A6000", "MI250X", "W6600", "W7800")},
            "AutoTuningAssociation/benchmark_hub @ 8eeb99e7 (MIT), cachefiles/dedispersion_milo/<GPU>.json.gz",
            reported=3,
            rows=1000,
        ),
        Source(
            "suzuki",
            "suzuki.parquet",
            "The yield of a Suzuki coupling, 308 conditions; eleven other pairs of reactants -> this one.",
            ("base", "ligand", "solvent"),
            "yield",
            "maximize",
            {
                f"{halide}-{boron}": f"{left} + CC1=CC=C(N(C2CCCCO2)N=C3)C3=C1{right}"
                for halide, left in _QUINOLINE.items()
                for boron, right in _BORON.items()
            },
            "aspuru-guzik-group/olympus @ 440b6b58 (MIT), src/olympus/datasets/dataset_suzuki_edbo/data.csv, task = "
            "'electrophile + nucleophile' (SMILES)",
            reported=6,
        ),
        Source(
            "buchwald",
            "buchwald.parquet",
            "The yield of a Buchwald-Hartwig amination, about 275 conditions; 14 other aryl halides -> this one.",
            ("base", "ligand", "additive"),
            "yield",
            "maximize",
            {
                **{f"cf3-{kind}": f"1-{atom}-4-(trifluoromethyl)benzene" for kind, atom in _HALOGENS.items()},
                **{f"methoxy-{kind}": f"1-{atom}-4-methoxybenzene" for kind, atom in _HALOGENS.items()},
                **{f"ethyl-{kind}": f"1-{atom}-4-ethylbenzene" for kind, atom in _HALOGENS.items()},
                "ethyl-iodide": "1-ethyl-4-iodobenzene",  # substituents are named in alphabetical order
                **{f"2-pyridyl-{kind}": f"2-{atom}pyridine" for kind, atom in _HALOGENS.items()},
                **{f"3-pyridyl-{kind}": f"3-{atom}pyridine" for kind, atom in _HALOGENS.items()},
            },
            "emdgroup/baybe @ 02177ac0 (Apache-2.0), benchmarks/data/ArylHalides/data.csv, task = the aryl halide",
            reported=8,
        ),
    )
}
