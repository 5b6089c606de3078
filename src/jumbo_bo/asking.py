"""What one suggestion may be: the features of configurations, and parameters that are held at a value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from jumbo_bo.data.frames import closest
from jumbo_bo.errors import InputError, brief
from jumbo_bo.learning.past import Past
from jumbo_bo.methods.base import Recipe, View
from jumbo_bo.models.gp import Blocks
from jumbo_bo.quantities import Quantities
from jumbo_bo.search.argmax import Featurise, Finite
from jumbo_bo.search.candidates import holding
from jumbo_bo.space.beliefs import Beliefs
from jumbo_bo.space.space import Array, Params, Space


def featuriser(space: Space, past: Past | None, beliefs: Beliefs | None, *also: Quantities) -> Featurise:
    def featurise(u: Array) -> Blocks:
        x = space.transform(u)
        blocks = {"1": np.ones((len(u), 1)), "x": x}
        for quantities in also:
            blocks |= quantities.blocks(x)
        if beliefs is not None:
            blocks["belief"] = beliefs.log_pi(u)
        return blocks if past is None else blocks | dict(past.blocks(x))

    return featurise


def checked_beliefs(space: Space, beliefs: Mapping[str, Any] | None, recipe: Recipe, name: str) -> Beliefs | None:
    if not beliefs:
        return None
    if not recipe.weighs_beliefs:
        raise InputError(f"{name} cannot use beliefs; jumbo-mixture and gp-ucb can")
    return Beliefs(space, beliefs)


def held(view: View, listed: Sequence[Params] | None, fixed: Mapping[str, Any]) -> tuple[View, Sequence[Params] | None]:
    """A view with nothing to choose from but configurations with these values, and their list."""
    if not fixed:
        return view, listed
    space = view.space
    for name, value in fixed.items():
        if name not in space.distributions:
            raise InputError(
                f"fixed names {brief(name)}{closest(name, space.names)}; the parameters are {list(space.names)}"
            )
        axis = space.axes[space.names.index(name)]
        if not np.isfinite(axis.encode([value])[0]):
            raise InputError(f"fixed sets {name!r} to {brief(value)}, expected {axis.describe()}")
    chosen = holding(space, fixed, view.rng, listed)
    points = np.array([space.encode(c) for c in chosen])
    # What is kept between suggestions may be about all that there is to choose from.
    return replace(view, domain=Finite(points, view.domain.featurise), memory={}), chosen
