"""One simulation by ngspice: netlist in, numbers and waveforms out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from jumbo_bo.bench.circuit import netlist
from jumbo_bo.bench.circuit.programs import Failed, run, tail
from jumbo_bo.space.axes import Array

TIMEOUT = 60.0  # s; it takes 0.1
# Debian's ngspice starts OpenMP threads that wait for each other, and is ten times slower with them.
SETTINGS = "set num_threads=1\n"

Complex = NDArray[np.complex128]


@dataclass(frozen=True, eq=False)
class Simulation:
    supply_current: float  # A
    offset: float  # V, of the output in unity gain at the common mode
    noise: float  # V/sqrt(Hz), input referred, at 100 MHz
    frequency: Array  # (n,) Hz
    response: Complex  # (n,) open loop
    time: Array  # (m,) s
    output: Array  # (m,) V, after a step at the input


def simulate(amp: str, folder: Path) -> Simulation:
    """The subcircuit `amp` in its test bench; all files are in the folder."""
    (folder / "deck.cir").write_text(netlist.deck(amp))
    (folder / ".spiceinit").write_text(SETTINGS)
    files = [folder / netlist.AC_FILE, folder / netlist.STEP_FILE]
    for file in files:
        file.unlink(missing_ok=True)
    printed = run(["ngspice", "-b", "deck.cir"], folder, TIMEOUT)
    (folder / "ngspice.log").write_text(printed)
    if not all(file.exists() for file in files):
        raise Failed(f"ngspice found no solution: {tail(printed)}")
    (frequency, response), (time, output) = (read_raw(file) for file in files)
    if not (np.all(np.isfinite(response)) and np.all(np.isfinite(output))):
        raise Failed("ngspice wrote a waveform that is not finite")
    if time.real[-1] < netlist.STEP_END * (1 - 1e-6):
        raise Failed(f"ngspice stopped after {time.real[-1]:.3g} s of the step response: {tail(printed)}")
    if abs(number(printed, "frequency[8]") / netlist.NOISE_FREQUENCY - 1) > 1e-6:
        raise Failed("ngspice's noise is not at 100 MHz")
    return Simulation(
        supply_current=-number(printed, "i(vdd)"),
        offset=number(printed, "v(inn1)") - netlist.COMMON_MODE,
        noise=number(printed, "inoise_spectrum[8]"),
        frequency=frequency.real,
        response=response,
        time=time.real,
        output=output.real,
    )


def number(printed: str, name: str) -> float:
    """The value that ngspice printed for this name."""
    found = re.search(rf"^{re.escape(name)}\s*=\s*([-+\d.eE]+)", printed, re.MULTILINE)
    if found is None:
        raise Failed(f"ngspice did not print {name}: {tail(printed)}")
    return float(found[1])


def read_raw(path: Path) -> tuple[Complex, Complex]:  # -> (n,), (n,)
    """The two columns of a binary ngspice file."""
    header, mark, data = path.read_bytes().partition(b"Binary:\n")
    fields = dict(re.findall(r"^([\w. ]+):\s*(.*)$", header.decode(errors="replace"), re.MULTILINE))
    if not mark or fields.get("No. Variables", "").strip() != "2":
        raise Failed(f"{path.name} is not an ngspice binary file with two columns")
    rows = int(fields["No. Points"])
    kind = np.complex128 if "complex" in fields["Flags"] else np.float64
    values = np.frombuffer(data, dtype=kind, count=min(2 * rows, len(data) // np.dtype(kind).itemsize))
    if rows == 0 or len(values) < 2 * rows:
        raise Failed(f"{path.name} is cut off: {len(values) // 2} of {rows} rows")
    columns = values.reshape(rows, 2).astype(np.complex128)
    return columns[:, 0], columns[:, 1]
