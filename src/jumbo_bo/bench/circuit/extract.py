"""Parasitics from the drawn layout: Magic extracts, every finger is checked, and a netlist with parasitics results.

Magic lists each finger as a transistor of its own. The diffusion of a net is listed once, at the first finger of its
kind that touches the net; it is counted for the transistor that finger belongs to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jumbo_bo.bench.circuit import netlist
from jumbo_bo.bench.circuit.design import Fet, Sizes
from jumbo_bo.bench.circuit.layout import Layout, layout, terminal_resistance
from jumbo_bo.bench.circuit.programs import Failed, run, tail

TECH = Path(__file__).with_name("sky130mini.tech")
TIMEOUT = 60.0  # s; it takes 0.2
SCRIPT = """load amp
extract no all
extract do capacitance
extract do coupling
extract do resistance
extract do adjust
extract all
ext2spice format ngspice
ext2spice subcircuit off
ext2spice hierarchy off
ext2spice scale off
ext2spice cthresh 0
ext2spice rthresh infinite
ext2spice -o amp.spice
quit -noprompt
"""
SAME_NET = {"VSUB": "vss", "vddw": "vdd"}  # substrate and well are tied to the supplies
TRANSISTORS = {"nch": "n", "pch": "p"}
TOLERANCE = 0.006  # um, of a drawn width or length: half a unit of the file, and the printed digits


@dataclass
class Junctions:
    """What the fingers of one transistor add up to: um and um^2."""

    fingers: int = 0
    width: float = 0.0
    areas: dict[str, float] = field(default_factory=lambda: {"d": 0.0, "s": 0.0})
    perimeters: dict[str, float] = field(default_factory=lambda: {"d": 0.0, "s": 0.0})


@dataclass(frozen=True)
class Extraction:
    junctions: Mapping[str, Junctions]  # transistor ->
    capacitors: Mapping[tuple[str, str], float]  # pair of nets, sorted -> F
    resistor: float  # ohm, Rz


def extract(sizes: Sizes, folder: Path) -> tuple[Layout, Extraction]:
    """Draws `amp.mag` in the folder, lets Magic extract it, and reads the result."""
    drawn = layout(sizes)
    (folder / "amp.mag").write_text(drawn.drawing.text())
    return drawn, read(magic(folder), sizes)


def magic(folder: Path) -> str:
    """Magic's netlist of the `amp.mag` in the folder."""
    result = folder / "amp.spice"
    result.unlink(missing_ok=True)
    (folder / "extract.tcl").write_text(SCRIPT)
    command = ["magic", "-dnull", "-noconsole", "-T", str(TECH), "-rcfile", "/dev/null", "extract.tcl"]
    output = run(command, folder, TIMEOUT)
    if not result.exists():
        raise Failed(f"Magic extracted nothing: {tail(output)}")
    return result.read_text()


def read(text: str, sizes: Sizes) -> Extraction:
    """Magic's netlist, checked against the schematic: a wrong connection, size or finger count is a failure."""
    junctions = {name: Junctions() for name in sizes.fets}
    capacitors: dict[tuple[str, str], float] = {}
    resistors: list[float] = []
    for line in text.replace("\n+", " ").splitlines():
        if line.startswith("M"):
            _add_finger(junctions, sizes.fets, line)
        elif line.startswith("C"):
            _, a, b, value = line.split()
            low, high = sorted(SAME_NET.get(net, net) for net in (a, b))
            if low != high:
                capacitors[low, high] = capacitors.get((low, high), 0.0) + _number(value, "fF", line) * 1e-15
        elif line.startswith("R"):
            _, a, b, value = line.split()
            if {a, b} != {"nz", "o1"}:
                raise Failed(f"the layout has a resistor between {a} and {b}, the schematic only between nz and o1")
            resistors.append(float(value))
    for name, fet in sizes.fets.items():
        if junctions[name].fingers != fet.fingers:
            raise Failed(f"{name} has {junctions[name].fingers} fingers in the layout, {fet.fingers} in the schematic")
    if len(resistors) != 1:
        raise Failed(f"the layout has {len(resistors)} resistors between nz and o1, expected 1")
    _check_nets(capacitors, sizes)
    return Extraction(junctions, capacitors, resistors[0])


def netlist_with_parasitics(sizes: Sizes, drawn: Layout, found: Extraction) -> str:
    cards, names = netlist.transistor_models(sizes.fets)
    lines = []
    for name, fet in sizes.fets.items():
        nets = {"g": fet.gate, "d": fet.drain, "s": fet.source}
        for terminal, net in nets.items():
            ohm = terminal_resistance(fet, terminal, drawn.wires[name, terminal])
            lines.append(f"R{name}{terminal} {net} {name}{terminal} {ohm:.4g}")
        sums = found.junctions[name]
        lines.append(
            f"X{name} {name}d {name}g {name}s {fet.bulk} {names[name]} "
            f"l={fet.length} w={sums.width:.4f} nf={fet.fingers} ad={sums.areas['d']:.5g} as={sums.areas['s']:.5g} "
            f"pd={sums.perimeters['d']:.5g} ps={sums.perimeters['s']:.5g}"
        )
    lines.append(f"RZ o1 nz {found.resistor:.5g}")
    lines += [f"C{i} {a} {b} {farad:.5g}" for i, ((a, b), farad) in enumerate(sorted(found.capacitors.items()))]
    return cards + netlist.amplifier(lines)


def _add_finger(junctions: Mapping[str, Junctions], fets: Mapping[str, Fet], line: str) -> None:
    _, first, gate, second, bulk, kind, *rest = line.split()
    values = dict(item.split("=") for item in rest)
    found = (TRANSISTORS.get(kind), gate, {first, second}, SAME_NET.get(bulk))
    owners = [name for name, fet in fets.items() if (fet.kind, fet.gate, {fet.drain, fet.source}, fet.bulk) == found]
    if len(owners) != 1:
        raise Failed(f"the layout has a finger that is not in the schematic: {' '.join(line.split()[:6])}")
    name = owners[0]
    fet, sums = fets[name], junctions[name]
    width, length = _number(values["w"], "u", line), _number(values["l"], "u", line)
    if abs(width - fet.width) > TOLERANCE or abs(length - fet.length) > TOLERANCE:
        raise Failed(f"a finger of {name} is {width} x {length} um in the layout, {fet.width} x {fet.length} wanted")
    sums.fingers += 1
    sums.width += width
    listed = "ds" if first == fet.drain else "sd"  # Magic calls either end the drain
    for terminal, area, perimeter in zip(listed, ("ad", "as"), ("pd", "ps"), strict=True):
        sums.areas[terminal] += _number(values[area], "p", line)
        sums.perimeters[terminal] += _number(values[perimeter], "u", line)


def _number(text: str, unit: str, line: str) -> float:
    found = re.fullmatch(rf"([-+\d.eE]+){unit}", text)
    if found is None:
        raise Failed(f"Magic printed {text!r} where a number in {unit} is expected: {line}")
    return float(found[1])


def _check_nets(capacitors: Mapping[tuple[str, str], float], sizes: Sizes) -> None:
    """All nets are known, and the Miller capacitor is where it belongs: between nz and out, not much smaller than
    wanted (an edge adds a little)."""
    nets = {"nz", *(net for fet in sizes.fets.values() for net in (fet.drain, fet.gate, fet.source))}
    unknown = {net for pair in capacitors for net in pair} - nets
    if unknown:
        raise Failed(f"the layout has nets that are not in the schematic: {', '.join(sorted(unknown))}")
    found = capacitors.get(("nz", "out"), 0.0)
    if found < 0.9 * sizes.capacitor:
        raise Failed(f"the layout has {found:.3g} F between nz and out, {sizes.capacitor:.3g} F wanted")
