"""Sobol' points: SciPy's, to the bit."""

import numpy as np
import pytest
from scipy.stats import qmc

from jumbo_bo.search import sobol as module
from jumbo_bo.search.sobol import sobol


@pytest.mark.parametrize("d", [1, 2, 3, 12, 50, 300])
@pytest.mark.parametrize("n", [1, 2, 256, 1024])
def test_the_points_are_those_of_scipy(d, n):
    here, there = np.random.default_rng(d), np.random.default_rng(d)
    for _ in range(2):
        np.testing.assert_array_equal(sobol(d, n, here), qmc.Sobol(d, rng=there).random(n))
    assert here.random() == there.random()


def test_without_the_numbers_scipy_is_asked(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "NUMBERS", tmp_path / "moved.npz")
    expected = qmc.Sobol(3, rng=np.random.default_rng(0)).random(8)
    np.testing.assert_array_equal(sobol(3, 8, np.random.default_rng(0)), expected)
