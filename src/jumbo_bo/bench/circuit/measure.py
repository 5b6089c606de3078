"""Specs from a simulation.

Settling is the time from the step until the output stays within 1 % of the step (2 mV) around its last value. That
alone would call a stuck output fast, so it only counts when the output has made the step: its change must be within
STEP_ERROR of 0.2 V. If it is not, the output has not settled within the simulated time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jumbo_bo.bench.circuit.netlist import STEP, STEP_END, STEP_START, SUPPLY
from jumbo_bo.bench.circuit.simulate import Complex, Simulation
from jumbo_bo.space.axes import Array

SETTLED = 0.01  # of the step
STEP_ERROR = 0.05  # of the step
NEVER = STEP_END - STEP_START  # s
FASTEST = 1e-10  # s: no output is called faster than this
NO_CROSSING = 1e6  # Hz, the unity-gain bandwidth of an amplifier without gain


@dataclass(frozen=True)
class Specs:
    gain: float  # dB, at 1 kHz
    ugb: float  # Hz, unity-gain bandwidth
    pm: float  # degrees, phase margin between 0 and 90
    power: float  # W
    noise: float  # V/sqrt(Hz), input referred at 100 MHz
    settling: float  # s, to 1 % of a 0.2 V step
    offset: float  # V, systematic; not scored
    step: float  # V, change of the output; not scored


def measure(simulation: Simulation) -> Specs:
    ugb, pm = crossing(simulation.frequency, simulation.response)
    return Specs(
        gain=float(decibels(simulation.response)[0]),
        ugb=ugb,
        pm=pm,
        power=SUPPLY * simulation.supply_current,
        noise=simulation.noise,
        settling=settling(simulation.time, simulation.output),
        offset=abs(simulation.offset),
        step=step_size(simulation.time, simulation.output),
    )


def decibels(response: Complex) -> Array:
    result: Array = 20 * np.log10(np.abs(response) + 1e-30)
    return result


def phase(response: Complex) -> Array:
    """Degrees, relative to the lowest frequency, without jumps."""
    angle = np.degrees(np.unwrap(np.angle(response)))
    result: Array = angle - angle[0]
    return result


def crossing(frequency: Array, response: Complex) -> tuple[float, float]:
    """Where the gain first falls through 0 dB, interpolated on logarithmic axes, and the phase margin there."""
    gain, angle, log_f = decibels(response), phase(response), np.log10(frequency)
    falls = np.flatnonzero((gain[:-1] > 0) & (gain[1:] <= 0))
    if gain[0] <= 0 or len(falls) == 0:
        return NO_CROSSING, 0.0
    i = falls[0]
    part = gain[i] / (gain[i] - gain[i + 1])
    ugb, margin = (values[i] + part * (values[i + 1] - values[i]) for values in (log_f, 180 + angle))
    return float(10**ugb), float(np.clip(margin, 0, 90))


def step_size(time: Array, output: Array) -> float:
    before = output[time <= STEP_START]
    return float(output[-1] - before[-1])


def settling(time: Array, output: Array) -> float:
    if abs(step_size(time, output) - STEP) > STEP_ERROR * STEP:
        return NEVER
    moving = np.flatnonzero((time > STEP_START) & (np.abs(output - output[-1]) > SETTLED * STEP))
    return float(min(NEVER, time[moving[-1]] - STEP_START)) if len(moving) else FASTEST
