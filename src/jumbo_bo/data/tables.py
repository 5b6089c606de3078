"""Optuna's tables in a database, opened without Alembic where that is not needed.

Optuna loads Alembic to compare the version of the tables with its own, which takes half as long as everything else that
opening a SQLite file takes. Here the two are compared first; Optuna's own check follows unless they are the same.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import Any

from optuna.storages import RDBStorage

MANAGER = "_VersionManager"  # what Optuna checks with
_REVISION = re.compile(r'^(down_)?revision = "(.+)"$', re.MULTILINE)
_lock = Lock()


def open_tables(address: str, engine_kwargs: dict[str, Any], kind: type[RDBStorage] = RDBStorage) -> RDBStorage:
    optuna_storage = import_module(RDBStorage.__module__)
    check = getattr(optuna_storage, MANAGER, None)
    if check is None:  # another Optuna
        return kind(address, engine_kwargs)
    with _lock:
        setattr(optuna_storage, MANAGER, lambda url, engine, session: _checked(engine) or check(url, engine, session))
        try:
            return kind(address, engine_kwargs)
        finally:
            setattr(optuna_storage, MANAGER, check)


class _UpToDate:
    """In place of Optuna's manager of versions."""

    def check_table_schema_compatibility(self) -> None:
        pass


def _checked(engine: Any) -> _UpToDate | None:
    """None when the tables are new, or of another version."""
    from sqlalchemy import inspect, text

    with engine.connect() as connection:
        if not inspect(connection).has_table("alembic_version"):
            return None
        found = [row[0] for row in connection.execute(text("SELECT version_num FROM alembic_version"))]
    return _UpToDate() if found == [own_version()] else None


@cache
def own_version() -> str | None:
    """Of the tables that the installed Optuna makes: the one revision that no other follows. None: cannot tell."""
    folder = Path(import_module(RDBStorage.__module__).__file__ or "").parent / "alembic" / "versions"
    found = [match for file in folder.glob("*.py") for match in _REVISION.findall(file.read_text(encoding="utf-8"))]
    newest = {name for down, name in found if not down} - {name for down, name in found if down}
    return newest.pop() if len(newest) == 1 else None
