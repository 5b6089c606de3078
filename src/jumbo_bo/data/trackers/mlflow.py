"""MLflow tracking stores -> History, through MLflow's own client (extra 'mlflow').

A store is read, never written: MLflow upgrades the tables of an older SQLite file as soon as it opens it, so a copy is
opened instead.
"""

from __future__ import annotations

import os
import socket
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from jumbo_bo.data.frames import Columns, closest
from jumbo_bo.data.history import History
from jumbo_bo.data.storage import checked, shown, sqlite_file
from jumbo_bo.data.trackers.runs import Run, to_history
from jumbo_bo.errors import InputError, MissingFile, UserError, first_line
from jumbo_bo.extras import require
from jumbo_bo.paths import at_home
from jumbo_bo.space.space import Space
from jumbo_bo.waiting import waiting

PAGE = 10_000  # runs per request; a file store reads all its runs for each
FILE_STORE = "MLFLOW_ALLOW_FILE_STORE"  # MLflow asks for this before it opens one
RETRIES = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"
KNOCK, ANSWER = 10.0, 250.0  # seconds; MLflow waits 120 for an answer, and asks twice
WHY = {"FAILED": "run failed", "KILLED": "run was killed"}


def from_mlflow(
    tracking_uri: str | os.PathLike[str],
    space: Space,
    *,
    objective: str = "value",
    experiments: Sequence[str] | None = None,
    **columns: Any,
) -> History:
    """Each experiment (all, or those named) is a task: 'sqlite:///mlflow.db', a folder 'mlruns', or a server's address.

    The value is the last one of the metric `objective`. `task` may be 'tags.<name>' or 'params.<name>'. Deleted runs
    and experiments do not count; runs that failed, still run or lack the metric are left out and counted.
    """
    options = Columns.of({**columns, "objective": objective})
    address = at_home(tracking_uri)
    with _opened(address) as client:
        try:
            known = {e.name: e.experiment_id for e in _all(client.search_experiments)}
        except Exception as error:  # MLflow, SQLAlchemy, a connection: many kinds, one meaning for the user
            raise _unreadable(address, error) from error
        for name in experiments or ():
            if name not in known:
                hint = closest(name, known)
                raise InputError(f"{shown(address)} has no experiment {name!r}{hint}; it has {sorted(known)}")
        wanted = {known[name]: name for name in (known if experiments is None else experiments)}
        try:
            found = list(_all(client.search_runs, experiment_ids=list(wanted))) if wanted else []
        except Exception as error:
            raise _unreadable(address, error) from error
    found.sort(key=lambda run: (run.info.start_time or 0, run.info.run_id))
    runs = [_run(run, wanted[run.info.experiment_id]) for run in found]
    return to_history(shown(address), runs, space, options, "experiment")


def first_runs(tracking_uri: str, n: int) -> dict[str, tuple[list[Run], bool]]:
    """Of each experiment a few runs, the newest ones, and whether these are all."""
    address = at_home(tracking_uri)
    with _opened(address) as client:
        try:
            found = {}
            for experiment in _all(client.search_experiments):
                page = client.search_runs([experiment.experiment_id], max_results=n)
                found[experiment.name] = [_run(run, experiment.name) for run in page], not page.token
            return found
        except Exception as error:
            raise _unreadable(address, error) from error


def _all(search: Callable[..., Any], **options: Any) -> Iterator[Any]:
    token: str | None = None
    while True:
        page = search(max_results=PAGE, page_token=token, **options)
        yield from page
        token = page.token
        if not token:
            return


def _run(run: Any, experiment: str) -> Run:
    info, data = run.info, run.data
    tags = {f"tags.{name}": value for name, value in data.tags.items()}
    params = {f"params.{name}": value for name, value in data.params.items()}
    unusable = "" if info.status == "FINISHED" else WHY.get(info.status, "run is not finished")
    labels = {**tags, **params, "experiment": experiment}
    return Run(f"run {info.run_name!r} {info.run_id}", data.params, data.metrics, labels, unusable)


@contextmanager
def _opened(address: str) -> Iterator[Any]:
    require("reading an MLflow store", "mlflow")
    from mlflow import MlflowClient

    scheme = urlsplit(address).scheme.split("+")[0]
    if scheme in ("postgresql", "mysql", "mssql"):
        raise UserError(
            f"{shown(address)}: opening a database directly may change its tables; pass the address of its tracking "
            "server, for example http://127.0.0.1:5000"
        )
    if scheme == "sqlite":
        with _copied(address) as copy:
            client = _client(MlflowClient, f"sqlite:///{copy}", address)
            try:
                yield client
            finally:  # else the deleted copy takes space until the process ends
                client._tracking_client.store.engine.dispose()
    elif scheme in ("", "file"):
        folder = _checked_folder(unquote(urlsplit(address).path) if scheme else address)
        with _environment(FILE_STORE, "true"):
            yield _client(MlflowClient, folder.absolute().as_uri(), address)
    else:
        _knock(address)
        # MLflow itself asks eight times, with longer and longer pauses, and says nothing.
        with (
            _environment(RETRIES, os.environ.get(RETRIES, "1")),
            waiting(f"answers of {shown(address)}", ANSWER, "for each"),
        ):
            yield _client(MlflowClient, address, address)


def _knock(address: str) -> None:
    """A server that is not there is known at once; one behind a proxy is left to MLflow."""
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https"):
        return
    try:
        host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
        if parts.scheme in getproxies() and not proxy_bypass(host):
            return
        with waiting(f"{shown(address)} to accept a connection", KNOCK):
            socket.create_connection((host, port), timeout=KNOCK).close()
    except (OSError, ValueError) as error:  # ValueError: a port that is no number
        raise _unreachable(address, error) from None


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


def _client(kind: Callable[..., Any], uri: str, address: str) -> Any:
    try:
        return kind(tracking_uri=uri)
    except Exception as error:
        raise _unreadable(address, error) from error


@contextmanager
def _copied(address: str) -> Iterator[Path]:
    """A copy of an SQLite store, consistent even while a training script writes to it."""
    file = sqlite_file(checked(address))
    if file is None or not file.exists():
        raise MissingFile(f"{file} does not exist; check the tracking store {address!r}")
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / "mlflow.db"
        try:
            with (
                closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as old,
                closing(sqlite3.connect(copy)) as new,
            ):
                old.backup(new)
                tables = sorted(name for (name,) in new.execute("SELECT name FROM sqlite_master WHERE type = 'table'"))
        except sqlite3.Error as error:
            raise _unreadable(address, error) from error
        if not {"experiments", "runs"} <= set(tables):
            raise InputError(f"{address} is not an MLflow tracking store; it has the tables {tables}")
        yield copy


def _checked_folder(path: str) -> Path:
    folder = Path(path)
    if not folder.is_dir():  # MLflow would create it
        raise MissingFile(f"{folder} does not exist; looked from {os.getcwd()}")
    if not any(folder.glob("*/meta.yaml")):
        raise InputError(f"{folder} contains no MLflow experiments; pass the folder that does, usually called mlruns")
    return folder


def _unreachable(address: str, error: BaseException) -> InputError:
    return InputError(
        f"{shown(address)} cannot be reached ({first_line(error)}); check the address, or start the server"
    )


def _unreadable(address: str, error: Exception) -> InputError:
    if lost := _of_connection(error):
        return _unreachable(address, lost)
    return InputError(f"{shown(address)} cannot be read as an MLflow tracking store: {first_line(error)}")


def _of_connection(error: object) -> BaseException | None:
    """The system's error that MLflow and its libraries have wrapped, as a cause or among their arguments."""
    if isinstance(error, ConnectionError | TimeoutError):
        return error
    if not isinstance(error, BaseException):
        return None
    inner = (error.__cause__ or error.__context__, *error.args)
    return next((found for one in inner if (found := _of_connection(one))), None)
