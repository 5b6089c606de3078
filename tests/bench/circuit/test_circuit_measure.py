"""Specs of waveforms whose answer is known in closed form."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from jumbo_bo.bench.circuit import netlist, simulate
from jumbo_bo.bench.circuit.measure import FASTEST, NEVER, NO_CROSSING, Specs, crossing, decibels, measure, settling
from jumbo_bo.bench.circuit.programs import Failed
from jumbo_bo.bench.circuit.score import GOALS, score
from jumbo_bo.bench.circuit.simulate import Simulation, number, read_raw

F = np.logspace(3, np.log10(20e9), 147)
T = np.linspace(0, 30e-9, 601)
MET = Specs(gain=50, ugb=4e9, pm=70, power=0.6e-3, noise=7e-9, settling=0.5e-9, offset=0, step=0.2)


def step(tau: float, height: float = 0.2) -> np.ndarray:
    after = np.maximum(T - 5e-9, 0)
    return 0.9 + height * (1 - np.exp(-after / tau))


def two_poles(gain: float, p1: float, p2: float) -> np.ndarray:
    return gain / (1 + 1j * F / p1) / (1 + 1j * F / p2)


def test_crossing_of_one_pole() -> None:
    ugb, margin = crossing(F, two_poles(1000, 1e6, 1e15))
    assert ugb == pytest.approx(1e9, rel=1e-3)  # gain-bandwidth product
    assert margin == pytest.approx(90, abs=0.1)


def test_crossing_of_two_poles_at_the_second() -> None:
    # |H| = 1 where f = p2: gain p1 / p2 / sqrt(2) = 1, margin 45 degrees
    ugb, margin = crossing(F, two_poles(1000 * np.sqrt(2), 1e6, 1e9))
    assert ugb == pytest.approx(1e9, rel=2e-3)
    assert margin == pytest.approx(45, abs=0.2)


def test_phase_is_counted_from_the_lowest_frequency_through_180_degrees() -> None:
    three = -two_poles(1000, 1e6, 1e8) / (1 + 1j * F / 1e8)  # an inverting amplifier, unstable in a loop
    assert crossing(F, three)[1] == 0.0


def test_no_gain_no_bandwidth() -> None:
    assert crossing(F, two_poles(0.5, 1e6, 1e9)) == (NO_CROSSING, 0.0)
    assert decibels(two_poles(100, 1e6, 1e9))[0] == pytest.approx(40, abs=1e-4)


@pytest.mark.parametrize("tau", [0.3e-9, 1e-9, 3e-9])
def test_settling_of_an_exponential(tau: float) -> None:
    assert settling(T, step(tau)) == pytest.approx(tau * np.log(100), abs=55e-12 + 0.05 * tau)


def test_a_stuck_output_is_not_fast() -> None:
    stuck = np.full_like(T, 0.9)
    assert np.all(stuck == stuck[-1])  # within 1 % of its last value all the time
    assert settling(T, stuck) == NEVER


@pytest.mark.parametrize(
    ("height", "counts"), [(0.2, True), (0.191, True), (0.209, True), (0.189, False), (0.3, False)]
)
def test_only_a_complete_step_counts(height: float, counts: bool) -> None:
    assert (settling(T, step(0.2e-9, height)) < 2e-9) is counts


def test_ringing_and_late_movement_count() -> None:
    after = np.maximum(T - 5e-9, 0)
    assert settling(T, step(0.1e-9) + 0.05 * np.sin(2e9 * after)) > 24e-9
    blip = step(0.1e-9) + np.where(np.abs(T - 20e-9) < 30e-12, 0.003, 0.0)
    assert settling(T, blip) == pytest.approx(15e-9, abs=30e-12)
    assert settling(T, np.where(T > 5e-9, 1.1, 0.9)) == FASTEST


def test_measure_uses_the_supply() -> None:
    simulation = Simulation(1e-3, -2e-3, 5e-9, F, two_poles(1000, 1e6, 1e12), T, step(1e-9))
    found = measure(simulation)
    assert (found.power, found.noise, found.offset) == (pytest.approx(1.8e-3), 5e-9, 2e-3)
    assert found.step == pytest.approx(0.2, abs=1e-6)


def test_score_by_hand() -> None:
    assert score(MET) == 0.0
    assert score(replace(MET, power=0.3e-3)) == pytest.approx(0.1 * 0.3 / 0.9)
    assert score(replace(MET, gain=23.0)) == pytest.approx(-23 / 69)
    missed = replace(MET, settling=3e-9, noise=24e-9, power=1.2e-3)
    assert score(missed) == pytest.approx(-2 / 4 - 16 / 32 - 0.6 / 1.8)
    assert score(replace(MET, gain=-20.0, pm=0.0)) == pytest.approx(-2)


def test_every_goal_pulls_in_its_direction() -> None:
    for goal in GOALS:
        worse = replace(MET, **{goal.name: goal.target * (0.5 if goal.sense > 0 else 2.0)})
        assert goal.miss(MET) == 0.0
        assert goal.miss(worse) == pytest.approx(-1 / 3)


def raw(path: Path, columns: np.ndarray, rows: int | None = None) -> Path:
    kind = "complex" if np.iscomplexobj(columns) else "real"
    points = rows or len(columns)
    header = f"Title: * x\nFlags: {kind}\nNo. Variables: 2\nNo. Points: {points}\nVariables:\n\t0\tt\nBinary:\n"
    path.write_bytes(header.encode() + columns.tobytes())
    return path


def test_raw_files(tmp_path: Path) -> None:
    real, complex_ = np.array([[0.0, 1.0], [2.0, 3.0]]), np.array([[1e3, 1 + 2j], [2e3, 3 - 1j]])
    for columns in (real, complex_):
        first, second = read_raw(raw(tmp_path / "x.raw", columns))
        assert np.array_equal(first, columns[:, 0])
        assert np.array_equal(second, columns[:, 1])
    with pytest.raises(Failed, match="cut off: 2 of 5 rows"):
        read_raw(raw(tmp_path / "x.raw", real, rows=5))
    (tmp_path / "x.raw").write_text("no such vector")
    with pytest.raises(Failed, match="is not an ngspice binary file"):
        read_raw(tmp_path / "x.raw")


PRINTED = "i(vdd) = -4.5e-04\nv(inn1) = 9.99e-01\nfrequency[8] = 1e+08\ninoise_spectrum[8] = 8e-09\n"


@pytest.mark.parametrize(
    ("end", "printed", "height", "message"),
    [
        (30e-9, PRINTED, 0.2, ""),
        (12e-9, PRINTED, 0.2, r"stopped after 1\.2e-08 s"),  # the time step became too small
        (30e-9, PRINTED.replace("1e+08", "9e+07"), 0.2, "not at 100 MHz"),
        (30e-9, "singular matrix", 0.2, "singular matrix"),
        (30e-9, PRINTED, np.nan, "not finite"),
        (None, "no convergence", 0.2, "found no solution: no convergence"),
    ],
)
def test_an_incomplete_simulation_is_a_failure(
    end: float | None, printed: str, height: float, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ngspice(command: list[str], folder: Path, timeout: float) -> str:
        raw(folder / netlist.AC_FILE, np.column_stack([F, two_poles(1000, 1e6, 1e9)]))
        if end is not None:
            raw(folder / netlist.STEP_FILE, np.column_stack([T, step(1e-9, height)])[end * (1 + 1e-9) >= T])
        return printed

    monkeypatch.setattr(simulate, "run", ngspice)
    monkeypatch.setattr(netlist, "deck", lambda amp: amp)
    if message:
        with pytest.raises(Failed, match=message):
            simulate.simulate("", tmp_path)
        return
    found = simulate.simulate("", tmp_path)
    assert (found.supply_current, found.noise) == (4.5e-4, 8e-9)
    assert found.offset == pytest.approx(-1e-3)
    assert np.array_equal(found.output, step(1e-9))


def test_printed_numbers() -> None:
    text = "i(vdd) = -4.5e-04\nv(inn1) = 9.99e-01\n"
    assert number(text, "i(vdd)") == -4.5e-4
    with pytest.raises(Failed, match=r"did not print inoise_spectrum\[8\]: i\(vdd\)"):
        number(text, "inoise_spectrum[8]")
