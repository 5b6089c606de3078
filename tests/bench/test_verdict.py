"""What the demo says of its two searches."""

from __future__ import annotations

from jumbo_bo.bench import demo
from jumbo_bo.bench.demo import Score


def test_marks_end_with_the_last_trial() -> None:
    assert [demo.marks(n) for n in (1, 5, 12, 30, 40)] == [[1], [5], [5, 10, 12], [5, 10, 30], [5, 10, 30, 40]]


def test_verdict() -> None:
    def of(*regrets: float) -> Score:
        return Score(regrets, (1,) * len(regrets))

    cold = of(0.5, 0.3, 0.2)
    assert demo.verdict(of(0.2, 0.1, 0.0), cold) == "With old runs, 1 trial got at least as far as 3 without them."
    assert demo.verdict(of(0.9, 0.1, 0.0), cold) == "With old runs, 2 trials got at least as far as 3 without them."
    assert "equally far" in demo.verdict(of(0.9, 0.3, 0.2), cold)
    assert "were no help" in demo.verdict(of(0.9, 0.8, 0.7), cold)
