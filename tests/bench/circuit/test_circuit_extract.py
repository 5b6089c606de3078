"""Reading Magic's netlist: sums by hand, and every tampering is noticed."""

from __future__ import annotations

import re

import pytest

from jumbo_bo.bench.circuit import models
from jumbo_bo.bench.circuit.design import Design, sizes
from jumbo_bo.bench.circuit.extract import netlist_with_parasitics, read
from jumbo_bo.bench.circuit.layout import layout
from jumbo_bo.bench.circuit.programs import Failed

SIZES = sizes(Design(200e-6, 5.0, 0.2, 10.0, 0.25, 2.0, 100e-15, 2.5))
PASSIVES = "R0 nz o1 752.5\nC0 out nz 101.5fF\nC1 o1 VSUB 0.5fF\nC2 o1 vss 1fF\nC3 vddw vdd 9fF\nC4 nz out 1fF\n"


def magic_text() -> str:
    """As Magic writes it: fingers turned every second time, diffusion listed at a transistor's first finger."""
    lines = ["* NGSPICE file"]
    for fet in SIZES.fets.values():
        for i in range(fet.fingers):
            first, second = (fet.drain, fet.source) if i % 2 else (fet.source, fet.drain)
            bulk, kind = ("VSUB", "nch") if fet.kind == "n" else ("vddw", "pch")
            lines.append(f"M{len(lines)} {first} {fet.gate} {second} {bulk} {kind} w={fet.width}u l={fet.length}u")
            lines.append("+  ad=3p pd=30u as=2.5p ps=20u" if i == 0 else "+  ad=0p pd=0u as=0p ps=0u")
    return "\n".join(lines) + "\n" + PASSIVES


def test_sums() -> None:
    found = read(magic_text(), SIZES)
    m6 = found.junctions["M6"]
    assert (m6.fingers, m6.width) == (8, 20.0)
    assert m6.areas == {"d": 2.5, "s": 3.0}  # the first finger is listed source first
    assert m6.perimeters == {"d": 20.0, "s": 30.0}
    assert found.resistor == 752.5
    capacitors = {pair: round(farad * 1e15, 9) for pair, farad in found.capacitors.items()}
    assert capacitors == {("nz", "out"): 102.5, ("o1", "vss"): 1.5}  # substrate is vss; nothing inside a net


@pytest.mark.parametrize(
    ("pattern", "new", "message"),
    [
        (r"M\d+ tail nb vss VSUB nch .*\n.*\n", "", "M5 has 4 fingers in the layout, 8 in the schematic"),
        ("out nb vss", "o1 nb vss", "finger that is not in the schematic: M[0-9]+ o1 nb vss"),
        ("mir inn tail VSUB nch", "mir inn tail VSUB pch", "not in the schematic"),
        ("mir inn tail VSUB nch", "mir inn tail vddw nch", "not in the schematic"),
        (r"w=2\.5u l=0\.2u", "w=2.4u l=0.2u", r"finger of M1 is 2\.4 x 0\.2 um .* 2\.5 x 0\.2"),
        ("R0 nz o1", "R0 nz out", "resistor between nz and out"),
        (r"R0.*\n", "", "0 resistors"),
        (r"C0.*\n", "", r"1e-15 F between nz and out, 1e-13 F wanted"),
        ("C2 o1 vss", "C2 o1 a_100_200#", r"nets that are not in the schematic: a_100_200#"),
        ("101.5fF", "101.5pF", r"'101.5pF' where a number in fF"),
        ("ad=3p", "ad=3n", "'3n' where a number in p"),
    ],
)
def test_tampering_is_noticed(pattern: str, new: str, message: str) -> None:
    text = magic_text()
    tampered = re.sub(pattern, new, text)
    assert tampered != text
    with pytest.raises(Failed, match=message):
        read(tampered, SIZES)


def test_netlist_has_every_parasitic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "subcircuit", lambda name, *size: "")
    text = netlist_with_parasitics(SIZES, layout(SIZES), read(magic_text(), SIZES))
    assert "XM6 M6d M6g M6s vdd model3 l=0.25 w=20.0000 nf=8 ad=2.5 as=3 pd=20 ps=30\n" in text
    assert "RZ o1 nz 752.5\nC0 nz out 1.025e-13\nC1 o1 vss 1.5e-15\n.ends\n" in text
    assert len(re.findall(r"^RM\d[dgs] \w+ M\d[dgs] [\d.]+$", text, re.MULTILINE)) == 24
