"""Netlists as text: the amplifier as a subcircuit, and the test bench around two copies of it.

The first copy is open for signals and closed for direct current (a huge inductor), for gain, phase and noise. The
second has its output tied to its inverting input and follows a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from jumbo_bo.bench.circuit import models
from jumbo_bo.bench.circuit.design import BIAS_CURRENT, Fet, Sizes

SUPPLY = 1.8  # V
COMMON_MODE = 1.0  # V
LOAD = 30e-15  # F
STEP = 0.2  # V, around the common mode
STEP_START = 5e-9  # s
STEP_END = 30e-9  # s, of the simulation
TIME_STEP = 50e-12  # s
NOISE_FREQUENCY = 1e8  # Hz

AC_FILE, STEP_FILE = "response.raw", "step.raw"


def schematic(sizes: Sizes) -> str:
    """The ideal circuit: no junctions at drain and source, no wires, ideal Rz and Cc."""
    cards, names = transistor_models(sizes.fets)
    lines = [
        f"X{name} {fet.drain} {fet.gate} {fet.source} {fet.bulk} {names[name]} "
        f"l={fet.length} w={fet.fingers * fet.width:.4f} nf={fet.fingers}"
        for name, fet in sizes.fets.items()
    ]
    passives = [f"RZ o1 nz {sizes.resistor:.5g}", f"CC nz out {sizes.capacitor:.5g}"]
    return cards + amplifier([*lines, *passives])


def amplifier(lines: Iterable[str]) -> str:
    return "\n".join([".subckt amp inp inn out vdd vss nb", *lines, ".ends"]) + "\n"


def transistor_models(fets: Mapping[str, Fet]) -> tuple[str, dict[str, str]]:
    """Model text, and which model each transistor uses; transistors of one finger size share a model."""
    cards: dict[tuple[models.Kind, float, float], str] = {}
    for fet in fets.values():
        cards.setdefault((fet.kind, fet.width, fet.length), f"model{len(cards)}")
    text = "".join(models.subcircuit(name, *key) for key, name in cards.items())
    return text, {name: cards[fet.kind, fet.width, fet.length] for name, fet in fets.items()}


def deck(amp: str) -> str:
    """The test bench as a file for ngspice. It prints operating point and noise, and writes two binary files."""
    low, high = COMMON_MODE - STEP / 2, COMMON_MODE + STEP / 2
    return f"""* two-stage amplifier
{models.parameters()}.option scale=1e-6
{amp}
VDD vdd 0 {SUPPLY}
* open loop
IB1 vdd nb1 {BIAS_CURRENT}
X1 inp1 inn1 out1 vdd 0 nb1 amp
VIN inp1 0 dc {COMMON_MODE} ac 1
LFB out1 inn1 1e9
CFB inn1 0 1
CL1 out1 0 {LOAD}
* unity gain
VD2 vdd2 0 {SUPPLY}
IB2 vdd2 nb2 {BIAS_CURRENT}
X2 inp2 out2 out2 vdd2 0 nb2 amp
VS inp2 0 dc {COMMON_MODE} pulse({low} {high} {STEP_START} 50p 50p 40n 200n)
CL2 out2 0 {LOAD}
.control
set noaskquit
op
print i(vdd) v(out1) v(inn1)
ac dec 20 1k 20g
write {AC_FILE} v(out1)
noise v(out1) vin dec 4 1meg 1g
setplot noise1
print frequency[8]
print inoise_spectrum[8]
tran {TIME_STEP} {STEP_END}
linearize v(out2)
write {STEP_FILE} v(out2)
quit
.endc
.end
"""
