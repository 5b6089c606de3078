"""The gain in volume that a configuration is chosen for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from optuna.distributions import IntDistribution

from jumbo_bo.methods.averaging import said_by
from jumbo_bo.methods.pareto import looking, spread_out, volume
from jumbo_bo.optimizer import Optimizer
from jumbo_bo.search.front import hypervolume, undominated
from jumbo_bo.space.space import Space

TABLE = Space({"a": IntDistribution(0, 20), "b": IntDistribution(0, 20)})


def test_expected_gains_are_those_of_samples():
    optimizer = Optimizer(TABLE, direction={"cost": "minimize", "purity": "maximize"})
    for u in TABLE.sample(np.random.default_rng(3), 8):
        cost, purity = (u[0] - 0.2) ** 2 + u[1], 3 - (u[0] - 0.8) ** 2 - u[1]
        optimizer.tell(TABLE.decode(u), [float(cost), float(purity)])
    outlook = looking(optimizer.recipe, optimizer._voices(optimizer.view()), np.ones(8, bool))
    blocks = optimizer._domain.featurise(TABLE.sample(np.random.default_rng(0), 3))
    rng, drawn = np.random.default_rng(1), []
    for gps, voice in zip(outlook.gps, outlook.voices, strict=True):
        ((mean, sd),) = said_by(gps, voice.own(blocks))
        middle, better = voice.view.warp.inverse(mean), voice.view.warp.inverse(mean + sd)
        drawn.append(middle + (better - middle) * rng.standard_normal((4_000, 3)))
    samples = np.stack(drawn, axis=-1)  # (s, 3, 2)
    before = hypervolume(outlook.front, outlook.reference)
    found = np.exp(volume(outlook)(blocks))
    for i in range(3):
        gains = [hypervolume(np.vstack([outlook.front, y]), outlook.reference) - before for y in samples[:, i]]
        assert found[i] == pytest.approx(np.mean(gains), abs=5 * np.std(gains) / math.sqrt(len(gains)) + 1e-6)


def test_a_long_front_is_thinned_out():
    x = np.linspace(0, 1, 400)
    front = np.column_stack([x, 1 - x])
    kept = spread_out(front, 50)
    assert len(kept) == 50
    assert {0.0, 1.0} <= set(kept[:, 0])
    assert np.diff(np.sort(kept[:, 0])).max() < 0.05
    assert undominated(kept).all()
