"""Which files and folders hold runs. Nothing is opened but the first bytes of what may be a database or a journal."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from jumbo_bo.data.files import FIRST_ROW
from jumbo_bo.data.storage import JOURNALS, checked, shown, sqlite_file
from jumbo_bo.data.trackers.wandb import RUN_FOLDERS
from jumbo_bo.errors import MissingFile, UserError, first_line
from jumbo_bo.inputs import check_regular
from jumbo_bo.paths import at_home

DATABASES = (".db", ".sqlite", ".sqlite3")
MAGIC = b"SQLite format 3\0"
NOT_DATA = {"__pycache__", "node_modules", "site-packages"}  # and what is hidden
MOST_ENTRIES = 200_000  # files and folders looked at, which takes 1 s of CPU time


class Place(NamedTuple):
    kind: str  # table, json, optuna, mlflow, wandb, ray
    where: str  # a path, or an address
    size: int = 0  # bytes, of a file


class Skipped(NamedTuple):
    where: str
    why: str


def about(where: str, error: UserError) -> str:
    """What is wrong with a place that is named already."""
    return str(error).removeprefix(where).removeprefix(":").strip()


def places(
    given: Sequence[str], leave_out: Collection[Path] = (), seen: Callable[[int], None] = lambda n: None
) -> Iterator[Place | Skipped]:
    """Each once, also where links lead to it twice. `seen` is told how many entries were looked at."""
    known: set[tuple[int, int]] = set()
    for text in given:
        where = at_home(text)
        if "://" in where and not where.startswith("file:"):
            yield _of_address(where)
            continue
        path = Path(where.removeprefix("file://"))
        if not path.exists():
            raise MissingFile(f"{path} does not exist; looked from {os.getcwd()}")
        found = _in_folder(path, leave_out, seen) if path.is_dir() else _of_file(path)
        for place in found:
            if isinstance(place, Place):
                state = os.stat(_path_in(place))
                if (state.st_dev, state.st_ino) in known:
                    continue
                known.add((state.st_dev, state.st_ino))
            yield place


def _path_in(place: Place) -> str:
    return place.where.removeprefix("sqlite:///")


def _of_address(address: str) -> Place:
    if address.startswith(("http://", "https://", "databricks")):
        return Place("mlflow", address)
    file = sqlite_file(checked(address))
    if file is None:
        return Place("optuna", address)
    found = next(_of_file(file), None) if file.exists() else None
    if isinstance(found, Place):
        return found
    why = found.why if found else "does not exist" if not file.exists() else "is no database with runs"
    raise UserError(f"{shown(address)}: {file} {why}")


def _in_folder(root: Path, leave_out: Collection[Path], seen: Callable[[int], None]) -> Iterator[Place | Skipped]:
    """A folder of a tracker is one place; what lies in it is not looked at again. Links to folders are not followed."""
    apart = {os.path.realpath(path) for path in leave_out}
    failed: list[OSError] = []
    n = 0
    for folder, folders, files in os.walk(root, onerror=failed.append):
        n += len(folders) + len(files)
        seen(n)
        if n > MOST_ENTRIES:
            yield Skipped(str(root), f"has more than {MOST_ENTRIES:,} files; those after {folder} were not looked at")
            return
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in NOT_DATA)
        folders[:] = [f for f in folders if os.path.realpath(os.path.join(folder, f)) not in apart]
        inside = [f for f in folders if not os.path.islink(os.path.join(folder, f))]
        trials = [f for f in inside if _has(folder, f, "params.json", "result.json")]
        runs = [f for f in inside if f.startswith(RUN_FOLDERS) and _has(folder, f, "files")]
        experiments = [f for f in inside if _has(folder, f, "meta.yaml")]
        kinds = {"ray": trials, "wandb": runs, "mlflow": experiments}
        yield from (Place(kind, folder) for kind, found in kinds.items() if found)
        folders[:] = [f for f in folders if f not in {*trials, *runs, *experiments}]
        for file in sorted(files):
            yield from _of_file(Path(folder) / file)
    for error in failed:
        yield Skipped(str(error.filename), f"cannot be looked at: {error.strerror}")


def _has(folder: str, name: str, *any_of: str) -> bool:
    return any(os.path.exists(os.path.join(folder, name, file)) for file in any_of)


def _of_file(file: Path) -> Iterator[Place | Skipped]:
    """Nothing when it is no file that runs are kept in."""
    kind = file.suffix.lower()
    try:
        if kind not in (*FIRST_ROW, ".json", *JOURNALS, *DATABASES):
            return
        check_regular(file)
        size = file.stat().st_size
        if kind in FIRST_ROW:
            yield Place("table", str(file), size)
        elif kind == ".json":
            if _starts(file, 64).lstrip().startswith(b"["):
                yield Place("json", str(file), size)
        elif kind in JOURNALS:
            if _starts(file, 64).startswith(b'{"op_code"'):
                yield Place("optuna", str(file), size)
        elif _starts(file, len(MAGIC)) == MAGIC:
            tables = _tables(file)
            if {"studies", "trials"} <= tables:
                yield Place("optuna", f"sqlite:///{file}", size)
            elif {"experiments", "runs"} <= tables:
                yield Place("mlflow", f"sqlite:///{file}", size)
    except UserError as error:
        yield Skipped(str(file), about(str(file), error))
    except OSError as error:
        yield Skipped(str(file), f"cannot be read: {error.strerror}")
    except sqlite3.Error as error:
        yield Skipped(str(file), f"cannot be read as a database: {first_line(error)}")


def _starts(file: Path, n: int) -> bytes:
    with file.open("rb") as opened:
        return opened.read(n)


def _tables(file: Path) -> set[str]:
    """Without a change to the file, whatever is in it."""
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, timeout=5)) as database:
        return {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
