"""Design in, specs and score out: one, many at once, or out of a cache.

    schematic   the ideal netlist
    layout      drawn, extracted with Magic, simulated with its parasitics

A design that cannot be evaluated (no solution, a crash, a time limit, a layout that is not the schematic) is a result
with the score NaN and the reason. A program that is not installed is an error.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from jumbo_bo.bench.circuit import TASK, models, netlist
from jumbo_bo.bench.circuit.design import Design, sizes
from jumbo_bo.bench.circuit.extract import extract, netlist_with_parasitics
from jumbo_bo.bench.circuit.measure import Specs, measure
from jumbo_bo.bench.circuit.programs import Failed, require
from jumbo_bo.bench.circuit.score import score
from jumbo_bo.bench.circuit.simulate import Simulation, simulate
from jumbo_bo.errors import InputError

Mode = Literal["schematic", "layout"]
MODES: tuple[Mode, ...] = ("schematic", "layout")


@dataclass(frozen=True)
class Result:
    specs: Specs | None
    score: float  # NaN: failed
    error: str = ""


def check_tools() -> None:
    """All that both modes need is installed; otherwise an error says how to."""
    for program in ("ngspice", "magic"):
        require(program)
    models.folder()


def run(design: Design, mode: Mode, folder: Path) -> Simulation:
    """The simulation itself; everything it needed stays in the folder."""
    if mode not in MODES:
        raise InputError(f"mode is {mode!r}, expected one of {list(MODES)}")
    sized = sizes(design)
    if mode == "schematic":
        return simulate(netlist.schematic(sized), folder)
    drawn, found = extract(sized, folder)
    return simulate(netlist_with_parasitics(sized, drawn, found), folder)


def evaluate(design: Design, mode: Mode) -> Result:
    with tempfile.TemporaryDirectory(prefix="circuit-") as folder:
        try:
            specs = measure(run(design, mode, Path(folder)))
        except Failed as failure:
            return Result(None, math.nan, str(failure))
    return Result(specs, score(specs))


def evaluate_many(designs: Sequence[Design], mode: Mode, jobs: int = 1) -> Iterator[Result]:
    """Results in the order of the designs, `jobs` at a time. The work is done by ngspice and Magic, which are
    processes of their own, so threads are enough to wait for them."""
    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(lambda design: evaluate(design, mode), designs)


class Cache:
    """Results by design, one JSON line each. Several processes may read and append at the same time. Failures are
    not written: a busy machine may have caused them."""

    def __init__(self, path: Path, mode: Mode) -> None:
        self.path, self.mode = path, mode
        self._read = 0  # bytes of the file that are known
        self._known: dict[str, Result] = {}

    def __call__(self, design: Design) -> Result:
        key = json.dumps([TASK, self.mode, design.params])
        if key not in self._known:
            self._catch_up()
        if key not in self._known:
            result = self._known[key] = evaluate(design, self.mode)
            if result.specs is not None:
                self._append({"key": key, "specs": asdict(result.specs), "score": result.score})
        return self._known[key]

    def _catch_up(self) -> None:
        """Reads the lines that were added since, also by others; an unfinished last line is left for later."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self._read)
            lines = file.read().splitlines(keepends=True)
        for line in lines:
            if not line.endswith(b"\n"):
                break
            self._read += len(line)
            try:
                row = json.loads(line)
                self._known[row["key"]] = Result(Specs(**row["specs"]), row["score"])
            except (ValueError, KeyError, TypeError):
                continue  # half a line that a killed process left

    def _append(self, row: dict[str, object]) -> None:
        with alone(self.path) as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - 1))
            broken = file.read(1) not in (b"", b"\n")  # a process was killed while it wrote
            file.write((b"\n" if broken else b"") + json.dumps(row).encode() + b"\n")


@contextmanager
def alone(path: Path) -> Iterator[BinaryIO]:
    """The file, open for appending, while no other process has it so; the system frees it when a process dies."""
    import fcntl  # not on Windows

    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
