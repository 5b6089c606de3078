"""Uniform random search, the floor of every comparison."""

from __future__ import annotations

from dataclasses import dataclass

from jumbo_bo.methods.base import Choice, View


@dataclass(frozen=True)
class Random:
    preset: str | None = None
    old_scale: bool = False

    def __call__(self, view: View) -> Choice:
        return Choice(view.domain.random(view.rng, view.taken), note="Drawn at random")
