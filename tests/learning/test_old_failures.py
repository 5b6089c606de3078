"""How often old runs fail is learned from a sample as from all of them."""

from __future__ import annotations

import numpy as np
from optuna.distributions import FloatDistribution

from jumbo_bo.data.history import Task
from jumbo_bo.learning.failures import learn_success
from jumbo_bo.models.success import MOST_ROWS
from jumbo_bo.space.space import Space

SPACE = Space({"a": FloatDistribution(0, 1)})


def test_a_sample_stands_for_all_runs() -> None:
    rng = np.random.default_rng(0)
    u, failed = rng.random((20_000, 1)), rng.random((2_000, 1))
    for of in ((20_000, 2_000), (20_000, 60_000)):  # one in eleven failed; three in four
        success = learn_success(SPACE, (Task("t", u, u[:, 0], failed, of),), seed=0)
        assert success is not None
        share = np.count_nonzero(success.surprise < 0) / (2 * MOST_ROWS)
        expected = of[1] / sum(of)
        assert abs(share - expected) < 3 * np.sqrt(expected * (1 - expected) / (2 * MOST_ROWS))
