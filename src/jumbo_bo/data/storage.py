"""Optuna storages by address, and their errors in words a person can act on.

An address is a database URL ('sqlite:///study.db', 'postgresql+psycopg://user@host/db') or the path of a journal file
('study.journal').
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import optuna
from optuna.exceptions import StorageInternalError
from optuna.storages import BaseStorage, JournalStorage, RDBStorage

from jumbo_bo.data.journal import Journal
from jumbo_bo.data.patient import PatientStorage
from jumbo_bo.data.tables import open_tables
from jumbo_bo.errors import QUOTED, UserError, brief, clip, first_line, masked
from jumbo_bo.extras import command, require
from jumbo_bo.inputs import check_regular
from jumbo_bo.paths import at_home
from jumbo_bo.waiting import waiting

if TYPE_CHECKING:  # a slow import, and a journal does not need it
    from sqlalchemy.engine import URL

JOURNALS = (".journal", ".log")
FULL = "disk is full", "disk I/O error", "No space left", "File too large", "quota exceeded"
DAMAGED = "malformed", "not a database", "is damaged"
PATIENCE = 60  # seconds to wait for another one to let go of an SQLite file, or for a server to answer


@contextmanager
def opened(address: str, create: bool = True) -> Iterator[BaseStorage]:
    """The storage, closed at the end. Database errors, also later ones inside the block, become a UserError."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    address = at_home(address)
    url = checked(address)
    file = sqlite_file(url) if url else Path(address)
    if not create and file is not None and not file.exists():
        raise UserError(f"{file} does not exist; check the storage {shown(address)!r}, or start with `jumbo run`")
    if file is not None and file.exists():
        check_regular(file)
    storage: BaseStorage | None = None
    try:
        with waiting(f"the storage {shown(address)}", 2 * PATIENCE):
            storage = _open(address, url)
        yield storage
    except database_errors(ImportError) as error:
        raise _explained(address, error) from error
    finally:
        if isinstance(storage, RDBStorage):
            storage.remove_session()
            storage.engine.dispose()


def open_storage(address: str) -> BaseStorage:
    """An Optuna storage for many processes. While a database server is away, as during a restart, it waits for a
    minute; a journal file may end in the middle of a line. Pass it as `storage=`."""
    address = at_home(address)
    url = checked(address)
    try:
        return _open(address, url, patient=True)
    except database_errors(ImportError) as error:
        raise _explained(address, error) from error


def check_has_studies(address: str) -> None:
    """Of a database on a server. Opened as a storage, it would be given the tables that it lacks."""
    url = checked(address)
    if url is None or sqlite_file(url) is not None:
        return
    if url.drivername == "postgresql+psycopg":
        require(f"the storage {shown(address)}", "psycopg")
    from sqlalchemy import create_engine, inspect

    limit = {"connect_timeout": PATIENCE} if url.get_backend_name() == "postgresql" else {}
    try:
        with waiting(f"the storage {shown(address)}", PATIENCE):
            engine = create_engine(url, connect_args=limit)
            try:
                found = inspect(engine).has_table("studies")
            finally:
                engine.dispose()
    except database_errors(ImportError) as error:
        raise _explained(address, error) from error
    if not found:
        raise UserError(f"{shown(address)} is a database without Optuna studies")


def database_errors(*others: type[Exception]) -> tuple[type[Exception], ...]:
    """What a storage may raise, and others. Nobody can have raised SQLAlchemy's before it was loaded."""
    loaded = sys.modules.get("sqlalchemy.exc")
    return StorageInternalError, *others, *([] if loaded is None else [loaded.SQLAlchemyError])


def checked(address: str) -> URL | None:
    """The parsed URL, None for a journal file."""
    if "://" not in address:
        if address.endswith(JOURNALS):
            return None
        raise UserError(
            f"{brief(address)} is not a storage; write sqlite:///{clip(address, QUOTED)}, or a path that ends in "
            f"{' or '.join(JOURNALS)}"
        )
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    try:
        return make_url(address)
    except (ArgumentError, ValueError):  # ValueError: a port that is no number
        raise UserError(f"{brief(address)} is not a database URL; write for example sqlite:///study.db") from None


def sqlite_file(url: URL | None) -> Path | None:
    if url is None or url.get_backend_name() != "sqlite" or url.database in (None, "", ":memory:"):
        return None
    return Path(str(url.database))


def located(address: str, folder: Path) -> str:
    """The address from any folder, when a relative path in it starts at `folder`."""
    address = at_home(address)
    url = checked(address) if "://" in address else None
    file = sqlite_file(url) if url else Path(address)
    if file is None or file.is_absolute() or str(file).startswith("file:"):
        return address
    file = folder / file
    return str(file) if url is None else url.set(database=str(file)).render_as_string(hide_password=False)


def shown(address: str) -> str:
    """The address without its password and other secrets."""
    return masked(address)


def _open(address: str, url: URL | None, patient: bool = False) -> BaseStorage:
    if url is None:
        try:
            return JournalStorage(Journal(address))
        except OSError as error:
            raise _explained(address, error) from error
    from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

    if url.drivername == "postgresql+psycopg":
        require(f"the storage {shown(address)}", "psycopg")
    limits = {"sqlite": {"timeout": PATIENCE}, "postgresql": {"connect_timeout": PATIENCE}}
    limit = limits.get(url.get_backend_name(), {})
    options = {"connect_args": {} if set(limit) & set(url.query) else limit}
    kind = PatientStorage if patient and url.get_backend_name() != "sqlite" else RDBStorage
    try:
        try:
            return open_tables(address, options, kind)
        except (OperationalError, ProgrammingError, IntegrityError):
            time.sleep(1.0)  # another process may be creating the tables at this moment; now they are there
            return open_tables(address, options, kind)
    except RuntimeError as error:  # another schema, or one of another version of Optuna
        raise _explained(address, error) from error


def _explained(address: str, error: Exception) -> UserError:
    reason = cause_of(error)
    if isinstance(error, ImportError):
        return UserError(
            f"the storage {shown(address)} needs a driver ({reason}); for PostgreSQL run: {command('postgresql')}, and "
            "write postgresql+psycopg://..."
        )
    advice = "check that it exists, that its folder is writable and no other program has locked it"
    if any(word in reason for word in FULL):
        advice = "free some space on its disk"
    elif any(word in reason for word in DAMAGED):
        advice = "put back a copy from before, or save what can be read (for SQLite: sqlite3 FILE .recover)"
    return UserError(
        f"cannot use the storage {shown(address)} ({reason}); {advice}, then run the same command again: finished "
        "trials are kept"
    )


def cause_of(error: Exception) -> str:
    """What the database or its driver says, in one line."""
    cause = getattr(error, "orig", None) or getattr(error.__cause__, "orig", None) or error
    return first_line(cause)
