"""Optuna's tables without Alembic: opened when they are those of the installed Optuna, refused by Optuna when not."""

import optuna
import pytest
from optuna.storages import RDBStorage
from optuna.storages._rdb import storage as optuna_storage
from sqlalchemy import create_engine, text

from jumbo_bo.data.storage import opened
from jumbo_bo.data.tables import MANAGER, own_version
from jumbo_bo.errors import UserError


@pytest.fixture
def address(tmp_path):
    made = f"sqlite:///{tmp_path}/a.db"
    with opened(made) as storage:
        optuna.create_study(storage=storage, study_name="s")
    return made


def set_version(address, version):
    engine = create_engine(address)
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE alembic_version SET version_num = '{version}'"))
    engine.dispose()


def test_the_version_is_the_one_that_optuna_names(address):
    storage = RDBStorage(address)
    assert own_version() == storage.get_head_version() == storage.get_current_version()
    storage.engine.dispose()


@pytest.mark.parametrize(
    ("version", "advice"), [("v2.6.0.a", "optuna storage upgrade"), ("v99.0.0.a", "updating optuna to the latest")]
)
def test_tables_of_another_version_are_refused_in_the_words_of_optuna(address, version, advice):
    set_version(address, version)
    with pytest.raises(UserError, match=advice), opened(address):
        pass


def test_optuna_is_left_as_it_was(address):
    before = getattr(optuna_storage, MANAGER)
    with opened(address):
        assert getattr(optuna_storage, MANAGER) is before
    set_version(address, "v2.6.0.a")
    with pytest.raises(UserError), opened(address):
        pass
    assert getattr(optuna_storage, MANAGER) is before
