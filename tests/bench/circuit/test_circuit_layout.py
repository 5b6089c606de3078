"""The layout against an independent tracing of its metal, and by hand."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from jumbo_bo.bench.circuit.cells import PITCH, slot_width, snap
from jumbo_bo.bench.circuit.design import SPACE, Design, Fet, Sizes, sizes
from jumbo_bo.bench.circuit.layout import NMOS_ROW, PMOS_ROW, TRACKS, Layout, Wire, layout, terminal_resistance
from jumbo_bo.bench.circuit.mag import Drawing, Rectangle

CORNERS = [np.zeros(8), np.ones(8), np.full(8, 0.5)]
U = [*CORNERS, *np.random.default_rng(7).uniform(size=(12, 8))]


def drawn(u: np.ndarray) -> tuple[Sizes, Layout]:
    sized = sizes(Design.of(SPACE.decode(u)))
    return sized, layout(sized)


def touch(a: Rectangle, b: Rectangle) -> bool:
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]


def metal_pieces(found: Layout) -> Iterator[list[tuple[str, Rectangle]]]:
    """Connected pieces of met2 and met3: rectangles of a layer that touch, joined by via2."""
    boxes = [(layer, box) for layer in ("met2", "met3", "via2") for box in found.drawing.boxes[layer]]
    todo = set(range(len(boxes)))
    while todo:
        piece, frontier = [], [todo.pop()]
        while frontier:
            i = frontier.pop()
            piece.append(boxes[i])
            near = [j for j in todo if "via2" in (boxes[i][0], boxes[j][0]) or boxes[i][0] == boxes[j][0]]
            linked = [j for j in near if touch(boxes[i][1], boxes[j][1])]
            todo -= set(linked)
            frontier += linked
        yield piece


@pytest.mark.parametrize("u", U)
def test_no_metal_joins_two_nets_and_none_is_in_two_parts(u: np.ndarray) -> None:
    _, found = drawn(u)
    nets = [label for label in found.drawing.labels if label.layer == "met2"]
    seen = []
    for piece in metal_pieces(found):
        here = {n.text for n in nets for layer, b in piece if layer == "met2" and touch(b, (n.x, n.y, n.x, n.y))}
        assert len(here) <= 1, f"{here} are one piece of metal"
        seen += sorted(here)
    assert sorted(seen) == sorted([*TRACKS, "vdd", "vss"])


@pytest.mark.parametrize("u", U)
def test_every_finger_is_drawn(u: np.ndarray) -> None:
    sized, found = drawn(u)
    for kind in "np":
        wanted = sorted(
            (round(fet.length * 100), round(fet.width * 100))
            for fet in sized.fets.values()
            if fet.kind == kind
            for _ in range(fet.fingers)
        )
        boxes = found.drawing.boxes[f"{kind}fet"]
        assert np.abs(np.subtract(sorted((r - a, t - b) for a, b, r, t in boxes), wanted)).max() <= 1  # 0.01 um


@pytest.mark.parametrize("u", U)
def test_passives_have_their_sizes(u: np.ndarray) -> None:
    sized, found = drawn(u)
    (left, bottom, right, top) = found.drawing.boxes["hires"][0]
    long, wide = max(right - left, top - bottom), min(right - left, top - bottom)
    if sized.resistor > 460:  # shorter ones are drawn with the shortest body
        assert 319.8 * long / wide == pytest.approx(sized.resistor, rel=0.04)
    (left, bottom, right, top) = found.drawing.boxes["mimcap"][0]
    if sized.capacitor > 8e-15:
        assert 2.0e-19 * (right - left) * (top - bottom) == pytest.approx(sized.capacitor, rel=0.01)


@pytest.mark.parametrize("u", CORNERS)
def test_devices_of_a_row_do_not_overlap(u: np.ndarray) -> None:
    sized, found = drawn(u)
    for names in (NMOS_ROW, PMOS_ROW):
        kind = sized.fets[names[0]].kind
        columns = sorted((left, right) for left, _, right, _ in found.drawing.boxes[f"{kind}diff"])
        assert all(a[1] < b[0] for a, b in pairwise(columns))
        assert len(columns) == sum(sized.fets[name].fingers + 1 for name in names)


def test_wires_to_the_two_rows_never_share_a_place() -> None:
    xs = np.linspace(-5, 50, 400)
    n, p = ({round(snap(x, kind) / PITCH * 2) for x in xs} for kind in "np")
    assert all(k % 2 == 0 for k in n)
    assert all(k % 2 == 1 for k in p)
    assert max(abs(snap(x, "p") - x) for x in xs) <= PITCH / 2 + 1e-9


def test_terminal_resistance_by_hand() -> None:
    fet = Fet("n", 4, 3.0, 0.24, "d", "g", "s")  # 4 * (0.24 + 0.36) / 0.3 = 8 squares
    wire = Wire(vertical=6.0, horizontal=12.0)
    assert wire.resistance == pytest.approx(0.047 * 20 + 0.125 * 40 + 2 * 3.41)
    gate = 48.2 * 12.5 / 3 / 4 + 12.8 * 8 / 12 + 9.3 + 4.5 + wire.resistance
    assert terminal_resistance(fet, "g", wire) == pytest.approx(gate)
    assert terminal_resistance(fet, "d", wire) == pytest.approx(0.125 * 8 / 12 + 13.8 / 2 + wire.resistance)


def test_wire_lengths_are_those_drawn() -> None:
    sized, found = drawn(np.full(8, 0.5))
    lengths = sorted(top - bottom for _, bottom, _, top in found.drawing.boxes["met3"])
    wires = sorted(round(wire.vertical * 100) + 30 for wire in found.wires.values())
    _, bottom, _, top = found.drawing.boxes["mimcap"][0]
    lengths.remove(top - bottom + 40)  # the lower plate of the capacitor is met3 too
    assert np.abs(np.subtract(lengths, wires)).max() <= 1
    assert len(wires) == 3 * len(sized.fets) + 4
    assert slot_width(sized.fets["M8"]) == 3.2


def test_magic_file() -> None:
    drawing = Drawing("t")
    drawing.box("met1", 1, 2, 0, 0.5)
    drawing.box("met1", 1, 2, 1.001, 3)  # nothing
    drawing.label("met1", 0.5, 1, "a")
    assert drawing.text() == (
        "magic\ntech t\ntimestamp 1\n<< met1 >>\nrect 0 50 100 200\n<< labels >>\n"
        "rlabel met1 50 100 50 100 0 a\n<< end >>\n"
    )
