"""The two-stage Miller amplifier: 8 variables and the sizes they stand for.

                 vdd ──┬─────────┬──────────┐
                      M3 ──mir── M4         M6
                       │         ├──── o1 ──┤ gate
                      mir        │          │
                       │        o1 ─ Rz ─ nz ─ Cc ─┤
               inn ── M1        M2 ── inp   ├──── out
                       └── tail ─┘          │
        nb ── M8       nb ── M5      nb ── M7
        vss ──┴──────────────┴──────────────┘

Lengths and widths are in micrometres, the unit of the process; everything else is in SI units.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from optuna.distributions import FloatDistribution

from jumbo_bo.space.space import Params, Space

BIAS_CURRENT = 20e-6  # A, into M8
BIAS_LENGTH = 0.3  # um, of M5, M7, M8
BIAS_DENSITY = 10e-6  # A per um of width, of M5, M7, M8
ZERO_VOLTAGE = 0.15  # V: Rz is this over the current of the second stage
RESISTOR = (60.0, 3000.0)  # ohm, the range of Rz
NARROWEST = 0.9  # um, of a finger
GRID = 2  # decimals of a micrometre

SPACE = Space(
    {
        "i_tail": FloatDistribution(50e-6, 600e-6, log=True),
        "j_input": FloatDistribution(1.0, 20.0, log=True),
        "l_input": FloatDistribution(0.15, 0.5, log=True),
        "j_pmos": FloatDistribution(2.0, 30.0, log=True),
        "l_pmos": FloatDistribution(0.15, 0.5, log=True),
        "ratio": FloatDistribution(0.5, 8.0, log=True),
        "c_miller": FloatDistribution(15e-15, 400e-15, log=True),
        "w_finger": FloatDistribution(1.0, 8.0, log=True),
    }
)


@dataclass(frozen=True)
class Design:
    i_tail: float  # A, tail current
    j_input: float  # uA/um, current density of the input pair
    l_input: float  # um, gate length of the input pair
    j_pmos: float  # uA/um, current density of the PMOS mirror and of the second stage
    l_pmos: float  # um, their gate length
    ratio: float  # current of the second stage over half the tail current
    c_miller: float  # F
    w_finger: float  # um, wanted width of a finger

    def __post_init__(self) -> None:
        SPACE.encode(self.params)  # names the value that is out of range

    @classmethod
    def of(cls, params: Mapping[str, Any]) -> Design:
        SPACE.encode(params)  # names what is missing or unknown
        return cls(**{name: float(value) for name, value in params.items()})

    @property
    def params(self) -> Params:
        return asdict(self)


@dataclass(frozen=True)
class Fet:
    kind: Literal["n", "p"]
    fingers: int
    width: float  # um, of one finger
    length: float  # um
    drain: str
    gate: str
    source: str

    @property
    def bulk(self) -> str:
        return "vss" if self.kind == "n" else "vdd"


@dataclass(frozen=True)
class Sizes:
    fets: Mapping[str, Fet]
    resistor: float  # ohm, Rz
    capacitor: float  # F, Cc


def sizes(design: Design) -> Sizes:
    half = design.i_tail / 2
    second = design.ratio * half
    w_input, w_mirror = half * 1e6 / design.j_input, half * 1e6 / design.j_pmos
    l_input, l_pmos = round(design.l_input, GRID), round(design.l_pmos, GRID)

    def fet(kind: Literal["n", "p"], total: float, length: float, drain: str, gate: str, source: str) -> Fet:
        return Fet(kind, *fold(total, design.w_finger), length, drain, gate, source)

    fets = {
        "M8": fet("n", BIAS_CURRENT / BIAS_DENSITY, BIAS_LENGTH, "nb", "nb", "vss"),
        "M5": fet("n", design.i_tail / BIAS_DENSITY, BIAS_LENGTH, "tail", "nb", "vss"),
        "M7": fet("n", second / BIAS_DENSITY, BIAS_LENGTH, "out", "nb", "vss"),
        "M1": fet("n", w_input, l_input, "mir", "inn", "tail"),
        "M2": fet("n", w_input, l_input, "o1", "inp", "tail"),
        "M3": fet("p", w_mirror, l_pmos, "mir", "mir", "vdd"),
        "M4": fet("p", w_mirror, l_pmos, "o1", "mir", "vdd"),
        "M6": fet("p", design.ratio * w_mirror, l_pmos, "out", "o1", "vdd"),
    }
    low, high = RESISTOR
    return Sizes(fets, min(max(ZERO_VOLTAGE / second, low), high), design.c_miller)


def fold(total: float, wanted: float) -> tuple[int, float]:
    """(fingers, width of one) for a transistor of this total width. Fingers are even, so that both outer ends are
    sources, and no finger is narrower than NARROWEST."""
    fingers = max(2, 2 * math.floor(total / wanted / 2 + 0.5))
    if total / fingers < NARROWEST:
        fingers = max(2, fingers - 2)
    return fingers, max(NARROWEST, round(total / fingers, GRID))
