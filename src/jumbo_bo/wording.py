"""Chances, and what was learned, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

MOST_NAMED = 4  # tasks that are listed one by one


def sentence(gain: float, chance: float) -> str:
    return f"Chance that any configuration {beats(gain)}: {in_words(chance)}"


def beats(gain: float) -> str:
    return f"beats the best by more than {gain:.3g}" if gain else "beats the best"


def in_words(chance: float) -> str:
    """No more digits than the samples give."""
    if chance < 0.005:
        return "less than 1%"
    return "more than 99%" if chance > 0.995 else f"{chance:.0%}"


def learned(r2: Mapping[str, float | None], unlearned: Sequence[str] = ()) -> str:
    """How well rows can be predicted that were held out while learning; `r2` is None where there were too few.

    >>> learned({"a": 0.981, "b": 0.9, "c": None})
    'It explains 94% of the variation in rows held out (a 98%, b 90%).'
    """
    known = {name: max(0.0, value) for name, value in r2.items() if value is not None and name not in unlearned}
    each = ", ".join(f"{name} {value:.0%}" for name, value in known.items())
    if len(known) > MOST_NAMED:
        worst, best = min(known, key=known.__getitem__), max(known, key=known.__getitem__)
        each = f"from {worst} {known[worst]:.0%} to {best} {known[best]:.0%}"
    said = []
    if known:
        mean = sum(known.values()) / len(known)
        said += [
            f"It explains {mean:.0%} of the variation in rows held out" + (f" ({each})." if len(known) > 1 else ".")
        ]
    if unlearned:
        more = f" and {len(unlearned) - MOST_NAMED} more" if len(unlearned) > MOST_NAMED else ""
        said += [f"Left out, as nothing predicts them: {', '.join(unlearned[:MOST_NAMED])}{more}."]
    return " ".join(said)
