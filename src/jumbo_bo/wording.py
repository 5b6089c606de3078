"""Chances in words."""

from __future__ import annotations


def sentence(gain: float, chance: float) -> str:
    return f"Chance that any configuration {beats(gain)}: {in_words(chance)}"


def beats(gain: float) -> str:
    return f"beats the best by more than {gain:.3g}" if gain else "beats the best"


def in_words(chance: float) -> str:
    """No more digits than the samples give."""
    if chance < 0.005:
        return "less than 1%"
    return "more than 99%" if chance > 0.995 else f"{chance:.0%}"
