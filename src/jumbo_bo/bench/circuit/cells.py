"""The devices as rectangles: each function draws one and returns where its wires begin.

Wires leave a device upwards or downwards on met3, at places of a vertical grid. NMOS and PMOS use grids that are half
a pitch apart, so that a wire to one row never meets a wire to the other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from jumbo_bo.bench.circuit.design import Fet
from jumbo_bo.bench.circuit.mag import Drawing

DIFFUSION = 0.36  # um, width of a drain or source between two gates
PITCH = 1.2  # um, of the vertical wires
NARROWEST_SLOT = 3.2  # um: three wires fit
CONTACTS = (("viali", 0.09), ("via1", 0.08), ("via2", 0.1))  # half sizes, from li up to met3
RESISTOR_WIDTH, SHEET_RESISTANCE = 0.35, 319.8  # um, ohm per square
CAPACITANCE = 2.0  # fF per square micrometre
LAYERS = {"n": ("ndiff", "ndc", "nfet"), "p": ("pdiff", "pdc", "pfet")}


@dataclass(frozen=True)
class Pin:
    device: str
    terminal: str  # 'd', 'g', 's', or the net's name for a passive device
    net: str
    x: float  # um
    y: float


def fet_width(fet: Fet) -> float:
    """Between the outer edges of the outer sources."""
    return fet.fingers * (fet.length + DIFFUSION) + DIFFUSION


def slot_width(fet: Fet) -> float:
    return max(fet_width(fet), NARROWEST_SLOT)


def snap(x: float, kind: str) -> float:
    """The nearest place of the grid for wires to this row: multiples of the pitch, for 'p' half a pitch further."""
    offset = PITCH / 2 if kind == "p" else 0.0
    return math.floor((x - offset) / PITCH + 0.5) * PITCH + offset


def draw_fet(drawing: Drawing, name: str, fet: Fet, x0: float, y0: float) -> list[Pin]:
    """Fingers side by side, sources at both ends. Gates join on the side of the routing channel: above an NMOS, below
    a PMOS. Sources meet on one met2 bar, drains on another."""
    upwards = fet.kind == "n"
    width, slot, y = fet_width(fet), slot_width(fet), y0 if upwards else y0 + 0.7
    left, top = x0 + (slot - width) / 2, y + fet.width
    middle = snap(x0 + slot / 2, fet.kind)
    at = {"d": middle - PITCH, "g": middle, "s": middle + PITCH}
    quarters = (y + 0.25 * fet.width, y + 0.75 * fet.width)
    source_y, drain_y = quarters if upwards else quarters[::-1]

    diffusion, contact, gate = LAYERS[fet.kind]
    for i in range(fet.fingers + 1):
        x = left + i * (fet.length + DIFFUSION)
        drawing.box(diffusion, x, y, x + DIFFUSION, top)
        for layer in (contact, "viali"):
            drawing.box(layer, x + 0.09, y + 0.06, x + DIFFUSION - 0.09, top - 0.06)
        drawing.box("met1", x + 0.07, y, x + DIFFUSION - 0.07, top)
        bar = source_y if i % 2 == 0 else drain_y
        drawing.box("via1", x + 0.1, bar - 0.08, x + DIFFUSION - 0.1, bar + 0.08)
        if i < fet.fingers:
            a, b = x + DIFFUSION, x + DIFFUSION + fet.length
            drawing.box(gate, a, y, b, top)
            below, above = (0.13, 0.25) if upwards else (0.25, 0.13)
            drawing.box("poly", a, y - below, b, y)
            drawing.box("poly", a, top, b, top + above)

    right, inner = left + width, (left + DIFFUSION, left + width - DIFFUSION)
    for x, bar, (a, b) in ((at["s"], source_y, (left, right)), (at["d"], drain_y, inner)):
        drawing.box("met2", min(a, x - 0.2), bar - 0.15, max(b, x + 0.2), bar + 0.15)
        drawing.square("via2", x, bar, 0.1)

    low, high = (top + 0.25, top + 0.55) if upwards else (y - 0.55, y - 0.25)
    a, b = min(inner[0], at["g"] - 0.2), max(inner[1], at["g"] + 0.2)
    drawing.box("poly", a, low, b, high)
    drawing.box("pc", a + 0.05, low + 0.06, b - 0.05, high - 0.06)
    gate_y = (low + high) / 2
    _contact_stack(drawing, at["g"], gate_y)
    return [
        Pin(name, "d", fet.drain, at["d"], drain_y),
        Pin(name, "s", fet.source, at["s"], source_y),
        Pin(name, "g", fet.gate, at["g"], gate_y),
    ]


def draw_resistor(drawing: Drawing, ohm: float, x0: float, room: float) -> tuple[list[Pin], float]:
    """High-ohmic poly from net nz to net o1, upright when it fits into `room`, else lying. Also its right end."""
    length = max(0.5, ohm / SHEET_RESISTANCE * RESISTOR_WIDTH)
    a = snap(x0 + 0.6, "n")
    if length <= room:
        b, y_a, end = a + PITCH, 0.2, 0.4 + length
        y_b = end + 0.2
        drawing.box("poly", a - 0.2, 0.0, a + 0.2, 0.4)
        drawing.box("hires", a - RESISTOR_WIDTH / 2, 0.4, a + RESISTOR_WIDTH / 2, end)
        drawing.box("poly", a - 0.2, end, a + 0.2, end + 0.4)
        drawing.box("poly", a + 0.2, end + 0.1, b + 0.2, end + 0.35)
    else:
        b, y_a, y_b = snap(a + length + 1.2, "n"), 0.7, 0.7
        start, end = b - 0.2 - length, b - 0.2
        for x in (a, b):
            drawing.box("poly", x - 0.2, 0.5, x + 0.2, 0.9)
        drawing.box("poly", a + 0.2, 0.53, start, 0.88)
        drawing.box("hires", start, 0.53, end, 0.88)
    for x, y in ((a, y_a), (b, y_b)):
        drawing.square("pc", x, y, 0.12)
        _contact_stack(drawing, x, y)
    return [Pin("Rz", "nz", "nz", a, y_a), Pin("Rz", "o1", "o1", b, y_b)], b + 0.6


def draw_capacitor(drawing: Drawing, farad: float, x0: float, top: float) -> tuple[list[Pin], float]:
    """A square MIM capacitor: met3 below (net out), a plate above it that is wired on met4 (net nz)."""
    side = max(2.0, round(math.sqrt(farad * 1e15 / CAPACITANCE), 2))
    wire = snap(x0 + 1.2, "n")
    left, y = wire + 1.2, top - side
    drawing.box("met3", left, y - 0.2, left + side + 0.4, top + 0.2)
    drawing.box("mimcap", left + 0.2, y, left + 0.2 + side, top)
    drawing.box("mimcc", left + 0.4, y + 0.2, left + side, top - 0.2)
    drawing.box("met4", left + 0.3, y + 0.1, left + 0.1 + side, top - 0.1)
    drawing.box("met4", wire - 0.2, top - 0.7, left + 0.4, top - 0.3)
    drawing.square("via3", wire, top - 0.5, 0.1)
    pins = [Pin("Cc", "out", "out", snap(left + side / 2, "n"), top), Pin("Cc", "nz", "nz", wire, top - 0.5)]
    return pins, left + side + 0.4


def _contact_stack(drawing: Drawing, x: float, y: float) -> None:
    for layer, half in CONTACTS:
        drawing.square(layer, x, y, half)
