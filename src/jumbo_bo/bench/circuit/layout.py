"""The layout: NMOS row, routing channel, PMOS row, supply rails; and the wire resistances that follow from it.

     vdd rail      met2
     PMOS row      M3 M4 M6
     channel       one met2 track per net, met3 wires up and down to the devices
     NMOS row      M8 M5 M1 M2 M7, then Rz and Cc
     vss rail      met2

Resistances are series values for one terminal: a gate is fed from one side (a third of its fingers' poly), a strap or
a bar from its middle (a twelfth of its length, as for evenly spread currents), then come the vertical wire and the
track to the middle of its net.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jumbo_bo.bench.circuit.cells import DIFFUSION, Pin, draw_capacitor, draw_fet, draw_resistor, slot_width
from jumbo_bo.bench.circuit.design import Fet, Sizes
from jumbo_bo.bench.circuit.mag import Drawing

NMOS_ROW, PMOS_ROW = ("M8", "M5", "M1", "M2", "M7"), ("M3", "M4", "M6")
TRACKS = ("nb", "tail", "o1", "mir", "inp", "inn", "nz", "out")  # from the bottom
TRACK_PITCH, GAP, WIRE = 0.8, 2.0, 0.3  # um: between tracks, between devices, width of a wire
VSS_RAIL = -3.0  # um, middle of the rail
INPUTS_AT = -3.0  # um: the tracks of inp, inn and nb begin here

# ohm per square, ohm per contact
POLY, LI, MET2, MET3 = 48.2, 12.8, 0.125, 0.047
MCON, VIA1, VIA2 = 9.3, 4.5, 3.41


@dataclass(frozen=True)
class Wire:
    vertical: float  # um of met3
    horizontal: float  # um of met2

    @property
    def resistance(self) -> float:
        return MET3 * self.vertical / WIRE + MET2 * self.horizontal / WIRE + 2 * VIA2


@dataclass(frozen=True)
class Layout:
    drawing: Drawing
    wires: Mapping[tuple[str, str], Wire]  # (device, terminal) -> its wire
    places: Mapping[str, tuple[float, float]]  # device -> where its name can be written, um
    width: float  # um
    height: float  # um

    @property
    def area(self) -> float:  # um^2
        return self.width * self.height


def layout(sizes: Sizes) -> Layout:
    drawing, fets = Drawing(), sizes.fets
    channel = max(fets[name].width for name in NMOS_ROW) + 2.2  # bottom of the routing channel
    top = channel + len(TRACKS) * TRACK_PITCH
    pmos_width = max(fets[name].width for name in PMOS_ROW)
    vdd_rail = top + 1.6 + pmos_width + 2.5

    pins, x = _row(drawing, fets, NMOS_ROW, 0.0, 0.0)
    resistor, x = draw_resistor(drawing, sizes.resistor, x, room=channel - 2.0)
    passives_end = x + GAP
    capacitor, x = draw_capacitor(drawing, sizes.capacitor, passives_end, top=channel - 1.2)
    right = x + 1.0

    width = sum(slot_width(fets[name]) for name in PMOS_ROW) + GAP * (len(PMOS_ROW) - 1)
    start = max(0.0, (passives_end - width) / 2)
    pmos, x = _row(drawing, fets, PMOS_ROW, start, top + 1.6)
    right = max(right, x)
    drawing.box("nwell", start - 1, top + 1.2, x - 1, top + 1.6 + pmos_width + 2.2)
    drawing.label("nwell", start - 0.9, top + 1.3, "vddw")

    drawing.box("met2", -2, vdd_rail, right, vdd_rail + 2)
    drawing.label("met2", -1.5, vdd_rail + 1, "vdd")
    drawing.box("met2", -2, VSS_RAIL - 1, passives_end, VSS_RAIL + 1)
    drawing.label("met2", -1.5, VSS_RAIL, "vss")

    heights = {net: channel + i * TRACK_PITCH + 0.3 for i, net in enumerate(TRACKS)}
    heights |= {"vss": VSS_RAIL, "vdd": vdd_rail + 1}
    pins += [*resistor, *capacitor, *pmos]
    wires = _route(drawing, pins, heights, right + 2)
    places = {name: _below(pins, name, -0.9) for name in NMOS_ROW}
    places |= {name: _below(pins, name, vdd_rail - 0.8) for name in PMOS_ROW}
    places |= {"Rz": _below(pins, "Rz", -0.9), "Cc": (capacitor[0].x, capacitor[0].y - 1.0)}
    return Layout(drawing, wires, places, right + 2, vdd_rail + 6)


def terminal_resistance(fet: Fet, terminal: str, wire: Wire) -> float:
    bar = fet.fingers * (fet.length + DIFFUSION) / WIRE  # squares
    if terminal == "g":
        fingers = POLY * fet.width / fet.length / 3 / fet.fingers
        return fingers + LI * bar / 12 + MCON + VIA1 + wire.resistance
    return MET2 * bar / 12 + (VIA1 + MCON) / max(1, fet.fingers / 2) + wire.resistance


def _below(pins: Sequence[Pin], device: str, y: float) -> tuple[float, float]:
    places = [pin.x for pin in pins if pin.device == device]
    return sum(places) / len(places), y


def _row(
    drawing: Drawing, fets: Mapping[str, Fet], names: Sequence[str], x: float, y: float
) -> tuple[list[Pin], float]:
    """Transistors side by side from x on; also returns where the next device may begin."""
    pins = []
    for name in names:
        pins += draw_fet(drawing, name, fets[name], x, y)
        x += slot_width(fets[name]) + GAP
    return pins, x


def _route(
    drawing: Drawing, pins: Sequence[Pin], heights: Mapping[str, float], right: float
) -> dict[tuple[str, str], Wire]:
    """Draws the tracks, and a vertical wire from each pin to its track or rail."""
    middles = {}
    for net in TRACKS:
        places = [pin.x for pin in pins if pin.net == net]
        middles[net] = (min(places) + max(places)) / 2
        if net in ("inp", "inn", "nb"):
            places.append(INPUTS_AT)
        if net == "out":
            places.append(right)
        drawing.box("met2", min(places) - 0.15, heights[net] - 0.15, max(places) + 0.15, heights[net] + 0.15)
        drawing.label("met2", places[0], heights[net], net)
    wires = {}
    for pin in pins:
        y = heights[pin.net]
        horizontal = abs(pin.x - middles[pin.net]) if pin.net in middles else 0.0
        wires[pin.device, pin.terminal] = Wire(abs(y - pin.y), horizontal)
        drawing.box("met3", pin.x - 0.15, min(pin.y, y) - 0.15, pin.x + 0.15, max(pin.y, y) + 0.15)
        drawing.square("via2", pin.x, y, 0.1)
    return wires
