"""Journal files and databases that a crash, a full disk or a bad disk has left, and storages that may only be read."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import optuna
import pytest
from optuna.exceptions import StorageInternalError
from optuna.storages import JournalStorage

from jumbo_bo.data.journal import Journal
from jumbo_bo.data.storage import open_storage, opened
from jumbo_bo.errors import UserError

FULL = """
import resource, signal, sys, optuna
from pathlib import Path
from jumbo_bo.data.storage import opened
from jumbo_bo.errors import UserError
address, file = sys.argv[1:]
try:
    with opened(address) as storage:
        study = optuna.load_study(study_name="kept", storage=storage)
        resource.setrlimit(resource.RLIMIT_FSIZE, (Path(file).stat().st_size + 100, resource.RLIM_INFINITY))
        for i in range(100):
            study.set_user_attr(f"attribute {i}", "x" * 1000)
except UserError as error:
    print(error)
"""


@pytest.fixture
def journal(tmp_path):
    study = optuna.create_study(study_name="kept", storage=JournalStorage(Journal(str(tmp_path / "a.journal"))))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    return tmp_path / "a.journal"


def finished(address):
    with opened(str(address), create=False) as storage:
        return [t.value for t in optuna.load_study(study_name="kept", storage=storage).get_trials() if t.value]


def one_more(address):
    with opened(str(address), create=False) as storage:
        study = optuna.load_study(study_name="kept", storage=storage)
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)


@pytest.mark.parametrize("bytes_left", [1, 40, -1])
def test_a_journal_that_ends_in_the_middle_of_a_line_goes_on(journal, caplog, bytes_left):
    before, lines = finished(journal), journal.read_bytes().splitlines(keepends=True)
    part = lines[-1][:bytes_left]  # of one more line
    journal.write_bytes(b"".join(lines) + part)
    assert finished(journal) == before
    assert journal.read_bytes().endswith(part), "who only reads changes nothing"
    optuna.logging.enable_propagation()
    try:
        one_more(journal)
    finally:
        optuna.logging.disable_propagation()
    assert f"these {len(part)} bytes are dropped" in caplog.text
    assert len(finished(journal)) == 4
    assert finished(journal)[:3] == before
    assert all(json.loads(line) for line in journal.read_bytes().splitlines())


def test_a_damaged_line_is_named(journal):
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[4] = lines[4][:20] + b"\n"
    journal.write_bytes(b"".join(lines))
    with pytest.raises(UserError, match=r"a.journal is damaged: line 5 is not JSON\); put back a copy"):
        finished(journal)


@pytest.mark.parametrize("kind", ["journal", "sqlite"])
def test_a_full_disk_says_so_and_loses_nothing(tmp_path, kind):
    file = tmp_path / f"a.{kind}"
    address = str(file) if kind == "journal" else f"sqlite:///{file}"
    with opened(address) as storage:
        optuna.create_study(study_name="kept", storage=storage)
    one_more(address)
    done = subprocess.run([sys.executable, "-c", FULL, address, file], capture_output=True, text=True, check=True)
    assert "free some space on its disk" in done.stdout
    assert "invalid data" not in done.stdout
    one_more(address)
    assert len(finished(address)) == 2


def test_a_write_that_fails_half_way_leaves_no_half_line(journal, monkeypatch):
    def fsync(_):
        raise OSError(28, "No space left on device")

    before, kept = journal.read_bytes(), Journal(str(journal))
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(StorageInternalError, match="No space left"):
        kept.append_logs([{"a": 1}])
    assert journal.read_bytes() == before


@pytest.mark.parametrize("damage", ["garbage inside", "no database"])
def test_a_damaged_database_says_so(tmp_path, damage):
    file = tmp_path / "a.db"
    with opened(f"sqlite:///{file}") as storage:
        optuna.create_study(study_name="kept", storage=storage)
    found = bytearray(file.read_bytes())
    if damage == "garbage inside":
        found[4096:40_000] = bytes(range(256)) * 200
    file.write_bytes(found if damage == "garbage inside" else b"no database" * 1000)
    with pytest.raises(UserError, match=r"(malformed|not a database)\); put back a copy"):
        finished(f"sqlite:///{file}")


def test_a_storage_for_many_processes_is_a_storage(tmp_path):
    for address in (f"sqlite:///{tmp_path}/a.db", str(tmp_path / "a.journal")):
        study = optuna.create_study(storage=open_storage(address))
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
        assert len(study.trials) == 2
    with pytest.raises(UserError, match="is not a storage"):
        open_storage("a.txt")


# Looking without the right to write

STUDY = """
name = "kept"
trials = 3
storage = "ADDRESS"

[space]
x = { type = "float", low = 0.0, high = 1.0 }

[objective]
command = ["true"]
"""
# Permissions are no obstacle to root, unless it gives up that right.
MORTAL = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.getuid() == 0 else []
LOOK = "from jumbo_bo.cli import main; main()"


@pytest.mark.skipif(bool(MORTAL) and not shutil.which("setpriv"), reason="root needs setpriv of util-linux")
@pytest.mark.parametrize("address", ["sqlite:///a.db", "a.journal"])
def test_status_and_report_need_no_write_access(address):
    folder = Path(tempfile.mkdtemp())  # pytest's own may be closed to others
    try:
        (folder / "study.toml").write_text(STUDY.replace("ADDRESS", address))
        with opened(address.replace("a.", f"{folder}/a.", 1)) as storage:
            study = optuna.create_study(study_name="kept", storage=storage)
            study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
        (folder / "kept.runs").mkdir()
        (folder / "kept.runs" / "lock").touch()
        (folder / "kept.runs" / "id").write_text('"mine"')
        (folder / "out").mkdir()
        for path in [*folder.rglob("*"), folder]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        (folder / "out").chmod(0o777)
        touched = [*MORTAL, "touch", folder / "study.toml", folder / "new"]
        assert subprocess.run(touched, capture_output=True, check=False).returncode != 0
        env = os.environ | {"JUMBO_CACHE": str(folder / "out"), "HOME": str(folder / "out")}
        for command in (["status", "study.toml"], ["report", "study.toml", "--output", "out/page.html"]):
            done = subprocess.run(
                [*MORTAL, sys.executable, "-c", LOOK, *command], cwd=folder, capture_output=True, text=True, env=env
            )
            assert done.returncode == 0, done.stderr
        assert (folder / "out" / "page.html").stat().st_size > 1000
    finally:
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755)
        shutil.rmtree(folder)
