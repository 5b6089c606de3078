"""One number from the specs: 0 for a design that meets all of them, less for each miss, a little more for less power.

A spec with value o and target t contributes min(0, (o - t) / (o + t)) when it should be at least t, with the sign
turned when it should be at most t.
"""

from __future__ import annotations

from dataclasses import dataclass

from jumbo_bo.bench.circuit.measure import Specs

SMALLEST = 1e-12  # a value below counts as this
SAVING = 0.1  # weight of the power that is saved


@dataclass(frozen=True)
class Goal:
    name: str
    target: float
    sense: int  # +1: at least, -1: at most
    text: str
    scale: float  # shown value = value * scale
    unit: str

    def miss(self, specs: object) -> float:
        """0 when the goal is met, else negative, at least -1; `specs` has an attribute of the goal's name."""
        return min(0.0, self.sense * relative(max(getattr(specs, self.name), SMALLEST), self.target))


GOALS = (
    Goal("gain", 46.0, +1, "gain", 1, "dB"),
    Goal("ugb", 3e9, +1, "unity-gain bandwidth", 1e-9, "GHz"),
    Goal("pm", 60.0, +1, "phase margin", 1, "deg"),
    Goal("power", 0.6e-3, -1, "power", 1e3, "mW"),
    Goal("noise", 8e-9, -1, "noise at 100 MHz", 1e9, "nV/sqrt(Hz)"),
    Goal("settling", 1e-9, -1, "1 % settling", 1e9, "ns"),
)
POWER = next(goal.target for goal in GOALS if goal.name == "power")


def relative(value: float, target: float) -> float:
    return (value - target) / (value + target)


def score(specs: Specs) -> float:
    return sum(goal.miss(specs) for goal in GOALS) + SAVING * max(0.0, -relative(specs.power, POWER))
