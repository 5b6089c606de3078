"""Uniform random search, the floor of every comparison."""

from __future__ import annotations

from dataclasses import dataclass

from jumbo_bo.methods.base import Choice, Recipe, View


@dataclass(frozen=True)
class Random(Recipe):
    def __call__(self, view: View) -> Choice:
        return Choice(view.domain.random(view.rng, view.taken), note="Drawn at random")
