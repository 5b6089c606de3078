"""Storages by address: what opens, what is created, and errors in words."""

import subprocess
import sys
from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage, RDBStorage
from sqlalchemy.exc import OperationalError

from jumbo_bo.data.storage import checked, opened, shown, sqlite_file
from jumbo_bo.errors import UserError


def study_names(address):
    with opened(address, create=False) as storage:
        return optuna.get_all_study_names(storage)


@pytest.mark.parametrize(("name", "kind"), [("sqlite:///{}/a.db", RDBStorage), ("{}/a.journal", JournalStorage)])
def test_made_and_opened_again(tmp_path, name, kind):
    address = name.format(tmp_path)
    with opened(address) as storage:
        assert isinstance(storage, kind)
        optuna.create_study(storage=storage, study_name="s").optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=2)
    assert study_names(address) == ["s"]


@pytest.mark.parametrize("name", ["sqlite:///{}/no.db", "{}/no.journal"])
def test_a_storage_that_must_exist_is_not_created(tmp_path, name):
    with pytest.raises(UserError, match="does not exist"), opened(name.format(tmp_path), create=False):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("study.db", "write sqlite:///study.db"),
        ("no such thing://x", "is not a database URL"),
        ("nothing://x", "cannot use the storage nothing://x"),
        ("sqlite:////no/such/folder/a.db", "unable to open database file"),
        ("/no/such/folder/a.journal", "check that it exists"),
    ],
)
def test_mistakes_are_explained(address, message):
    with pytest.raises(UserError, match=message), opened(address):
        pass


def test_a_file_of_something_else_is_left_alone(tmp_path):
    notes = tmp_path / "notes.db"
    notes.write_text("my notes\n" * 100)
    with pytest.raises(UserError, match="file is not a database"), opened(f"sqlite:///{notes}"):
        pass
    assert notes.read_text() == "my notes\n" * 100


def test_errors_inside_the_block_are_explained_and_name_no_password():
    problem = OperationalError("SELECT 1", {}, Exception("server closed the connection"))
    with pytest.raises(UserError, match="server closed the connection") as error, opened("sqlite://"):
        raise problem
    assert "finished trials are kept" in str(error.value)
    assert shown("postgresql+psycopg://me:secret@host/db") == "postgresql+psycopg://me:***@host/db"
    assert shown("a.journal") == "a.journal"


def test_sqlite_files():
    assert sqlite_file(checked("sqlite:///a/b.db")) == Path("a/b.db")
    assert sqlite_file(checked("sqlite://")) is None
    assert sqlite_file(checked("postgresql+psycopg://host/db")) is None


def test_two_processes_create_one_file_at_once(tmp_path):
    code = (
        "import sys; from jumbo_bo.data.storage import opened; import optuna.storages, sqlalchemy\nprint(), input()\n"
        "with opened(sys.argv[1]) as s: s.get_all_studies()"
    )
    command = [sys.executable, "-c", code, f"sqlite:///{tmp_path}/new.db"]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    both = [subprocess.Popen(command, text=True, **pipes) for _ in range(2)]
    for process in both:
        process.stdout.readline()  # it has imported all it needs
    for process in both:
        process.stdin.write("\n")
        process.stdin.flush()
    problems = [process.communicate(timeout=300)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], problems


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_a_missing_driver_is_named_with_its_extra(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, driver, None)
    wanted = pytest.raises(UserError, match=r"run: pip install 'jumbo-bo\[postgresql\]'")
    with wanted as caught, opened(f"postgresql+{driver}://me:secret@host/db"):
        pass
    assert "secret" not in str(caught.value)
