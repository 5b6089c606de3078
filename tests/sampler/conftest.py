"""What all tests of the sampler share: one cache of nets, old studies, and quiet."""

import optuna
import pytest
from sampled import old_study


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("nets")


@pytest.fixture(autouse=True)
def own_cache(shared_cache, monkeypatch):
    monkeypatch.setenv("JUMBO_CACHE", str(shared_cache))


@pytest.fixture(autouse=True)
def quiet():
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    yield
    optuna.logging.set_verbosity(level)


@pytest.fixture(scope="session")
def old():
    return [old_study("old-1", 0.3), old_study("old-22", -0.2)]
