# ruff: noqa: E402  (thread limits must be set before numpy is imported)
"""Fixtures and settings shared by all tests."""

from __future__ import annotations

import os

# BLAS reads these once. Test processes run side by side, so one thread each is fastest.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

REPO = Path(__file__).resolve().parent.parent

# The same examples on every machine by default; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("default", derandomize=True, deadline=None, max_examples=100, database=None)
settings.register_profile("explore", derandomize=False, deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20220222)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The paper authors' offline data, which is not part of this repository."""
    path = Path(os.environ.get("JUMBO_DATA", REPO.parent / "shared" / "data"))
    if not (path / "jumbo-authors").is_dir():
        pytest.skip(f"no folder 'jumbo-authors' in {path}; set JUMBO_DATA to the folder that holds it")
    return path
